/* fake_facts: what a fake device has seen, and what it does wrong. */
#include "fake_parts.h"

_Atomic int fake_planted;

static fake_facts seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fake_note(fake_fault_seen fault, const char *what)
{
    pthread_mutex_lock(&lock);
    ++*(fault == FAKE_RACE ? &seen.n_races : &seen.n_dead);
    if (seen.first[0] == '\0') snprintf(seen.first, sizeof seen.first, "%s", what);
    pthread_mutex_unlock(&lock);
}

void fake_note_done(bool is_overtaken)
{
    pthread_mutex_lock(&lock);
    seen.n_commands++;
    seen.n_overtaken += is_overtaken;
    pthread_mutex_unlock(&lock);
}

void fake_note_combined(void)
{
    pthread_mutex_lock(&lock);
    seen.n_combined++;
    pthread_mutex_unlock(&lock);
}

fake_facts fake_seen(void)
{
    pthread_mutex_lock(&lock);
    const fake_facts facts = seen;
    pthread_mutex_unlock(&lock);
    return facts;
}

void fake_forget(void)
{
    pthread_mutex_lock(&lock);
    seen = (fake_facts){0};
    pthread_mutex_unlock(&lock);
}
