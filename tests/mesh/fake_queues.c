/* fake_queues: commands that are done later, in any order that events allow (fake_device.h). */
#include "fake_parts.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

/* ---- commands -------------------------------------------------------------------------------- */

static uint32_t random_below(fake_stream *s, uint32_t n)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 33) % n;
}

void fake_uses(fake_command *c, const void *at, int64_t bytes, bool is_written)
{
    if (at == NULL || bytes <= 0) return;
    if (c->n_stretches == c->room_stretches) {
        c->room_stretches = 2 * c->room_stretches + 4;
        c->stretches = realloc(c->stretches, (size_t)c->room_stretches * sizeof *c->stretches);
    }
    c->stretches[c->n_stretches++] = (fake_stretch){at, bytes, is_written};
}

static void free_command(fake_command *c)
{
    free(c->stretches);
    free(c);
}

static bool has_met(const fake_command *a, const fake_command *b)
{
    for (int i = 0; i < a->n_stretches; i++)
        for (int k = 0; k < b->n_stretches; k++) {
            const fake_stretch *x = &a->stretches[i], *y = &b->stretches[k];
            if ((x->is_written || y->is_written) && x->at < y->at + y->bytes &&
                y->at < x->at + x->bytes)
                return true;
        }
    return false;
}

/* Those of other queues that may be done before it or after it. */
static void look_for_races(const fake_stream *s, const fake_command *c)
{
    for (int q = 0; q < s->n_queues; q++) {
        const fake_queue *other = &s->queues[q];
        for (size_t i = other->n; q != c->queue && i-- > 0;) {
            const fake_command *earlier = other->all[i];
            char what[200];
            if (earlier->number <= c->clock[q]) break;
            if (!has_met(earlier, c)) continue;
            snprintf(what, sizeof what, "%s on queue %d and %s on queue %d have no order", c->what,
                     c->queue, earlier->what, q);
            fake_note(FAKE_RACE, what);
        }
    }
}

static uint64_t newest(const fake_queue *q)
{
    return q->base + q->n;
}

static bool is_over(const fake_stream *s, weft_event event)
{
    const fake_queue *q = &s->queues[event.queue];
    return event.number <= q->base + q->done;
}

static void know(uint64_t *clock, const uint64_t *more)
{
    for (int q = 0; q < WEFT_QUEUES; q++)
        if (more[q] > clock[q]) clock[q] = more[q];
}

/* Whoever waits for the event comes after all that its last command came after, and after that one. */
static void know_event(const fake_stream *s, uint64_t *clock, weft_event event)
{
    const fake_queue *q = &s->queues[event.queue];
    if (event.number <= q->base) return;
    know(clock, q->all[event.number - q->base - 1]->clock);
    if (event.number > clock[event.queue]) clock[event.queue] = event.number;
}

static fake_command *next_of(const fake_queue *q)
{
    return q->done < q->n ? q->all[q->done] : NULL;
}

static bool may_run(const fake_stream *s, const fake_command *c)
{
    return c != NULL && (c->after.number == 0 || atomic_load(&fake_planted) == FAKE_NO_FOLLOW ||
                         is_over(s, c->after));
}

static void execute(fake_stream *s, fake_command *c)
{
    for (int i = 0; i < c->n_stretches; i++)
        if (!fake_is_alive(c->stretches[i].at, c->stretches[i].bytes)) {
            char what[200];
            snprintf(what, sizeof what, "%s uses memory that is not taken", c->what);
            fake_note(FAKE_DEAD, what);
            return;
        }
    if (c->run != NULL) c->run(s, c);
    fake_note_done(c->order < s->newest_done);
    if (c->order > s->newest_done) s->newest_done = c->order;
}

/* ---- time ------------------------------------------------------------------------------------ */

static pthread_mutex_t napping = PTHREAD_MUTEX_INITIALIZER;
static double nap_seconds;
static int n_naps;
static const fake_stream *sleeper; /* NULL: whoever is next */

void fake_sleep(double seconds, int n)
{
    pthread_mutex_lock(&napping);
    nap_seconds = seconds;
    n_naps = n;
    sleeper = NULL;
    pthread_mutex_unlock(&napping);
}

int fake_sleeps_left(void)
{
    pthread_mutex_lock(&napping);
    const int n = n_naps;
    pthread_mutex_unlock(&napping);
    return n;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How long the next command takes, if it is one of those that take long. */
static double nap(const fake_stream *s)
{
    pthread_mutex_lock(&napping);
    const bool is_its = n_naps > 0 && (sleeper == NULL || sleeper == s);
    const double seconds = is_its ? nap_seconds : 0;
    if (is_its) sleeper = s;
    n_naps -= is_its;
    pthread_mutex_unlock(&napping);
    return seconds;
}

/* A command that takes long is begun, or not over yet. */
static bool is_busy(fake_stream *s)
{
    if (s->is_asleep && seconds_now() < s->busy_until) return true;
    if (s->is_asleep) return s->is_asleep = false;
    const double seconds = nap(s);
    s->is_asleep = seconds > 0;
    s->busy_until = s->is_asleep ? seconds_now() + seconds : 0;
    return s->is_asleep;
}

/* One command, any that may be next. */
static void step(fake_stream *s)
{
    if (is_busy(s)) {
        usleep(1000);
        return;
    }
    int which[WEFT_QUEUES], n = 0;
    for (int q = 0; q < s->n_queues; q++)
        if (may_run(s, next_of(&s->queues[q]))) which[n++] = q;
    if (n == 0) fputs("fake device: the queues wait for each other\n", stderr), abort();
    fake_queue *q = &s->queues[which[random_below(s, (uint32_t)n)]];
    execute(s, next_of(q));
    q->done++;
    s->n_done++;
}

static bool is_empty(const fake_stream *s)
{
    for (int q = 0; q < s->n_queues; q++)
        if (next_of(&s->queues[q]) != NULL) return false;
    return true;
}

void fake_drain(fake_stream *s)
{
    while (!is_empty(s))
        step(s);
    for (int q = 0; q < s->n_queues; q++) {
        fake_queue *empty = &s->queues[q];
        for (size_t i = 0; i < empty->n; i++)
            free_command(empty->all[i]);
        empty->base += empty->n;
        empty->n = empty->done = 0;
    }
}

fake_command *fake_command_of(const char *what)
{
    fake_command *c = calloc(1, sizeof *c);
    if (c == NULL) perror("fake device"), exit(1);
    c->what = what;
    return c;
}

/* Now and then something is done at once: the device does not sleep until somebody waits. */
void fake_put_onto(weft_stream *handle, int number, fake_command *c)
{
    fake_stream *s = fake_stream_of(handle);
    pthread_mutex_lock(&s->lock);
    fake_queue *q = &s->queues[number];
    if (number >= s->n_queues) s->n_queues = number + 1;
    if (q->n == q->room) {
        q->room = 2 * q->room + 64;
        q->all = realloc(q->all, q->room * sizeof(fake_command *));
    }
    c->queue = number;
    c->number = newest(q) + 1;
    c->order = ++s->order;
    if (c->after.number > 0) know_event(s, q->clock, c->after);
    memcpy(c->clock, q->clock, sizeof c->clock);
    c->clock[number] = c->number;
    look_for_races(s, c);
    q->all[q->n++] = c;
    q->clock[number] = c->number;
    for (uint32_t n = !s->is_asleep && random_below(s, 4) == 0 ? random_below(s, 3) : 0;
         n > 0 && !is_empty(s); n--)
        step(s);
    pthread_mutex_unlock(&s->lock);
}

/* ---- events ---------------------------------------------------------------------------------- */

weft_event fake_record(weft_stream *handle, int number)
{
    fake_stream *s = fake_stream_of(handle);
    pthread_mutex_lock(&s->lock);
    const weft_event event = {number, newest(&s->queues[number])};
    pthread_mutex_unlock(&s->lock);
    return event;
}

void fake_follow(weft_stream *handle, int number, weft_event event)
{
    fake_command *c = fake_command_of("follow");
    if (atomic_load(&fake_planted) != FAKE_NO_FOLLOW) c->after = event;
    fake_put_onto(handle, number, c);
}

bool fake_is_done(weft_stream *handle, weft_event event)
{
    fake_stream *s = fake_stream_of(handle);
    pthread_mutex_lock(&s->lock);
    if (!is_over(s, event)) step(s);
    const bool is = is_over(s, event) || atomic_load(&fake_planted) == FAKE_NO_WAIT;
    pthread_mutex_unlock(&s->lock);
    return is;
}

void fake_wait(weft_stream *handle, weft_event event)
{
    fake_stream *s = fake_stream_of(handle);
    if (atomic_load(&fake_planted) == FAKE_NO_WAIT) return;
    pthread_mutex_lock(&s->lock);
    while (!is_over(s, event))
        step(s);
    for (int q = 0; q < WEFT_QUEUES; q++)
        know_event(s, s->queues[q].clock, event); /* what the host does next is after it */
    pthread_mutex_unlock(&s->lock);
}

void fake_finish(weft_stream *handle)
{
    fake_stream *s = fake_stream_of(handle);
    pthread_mutex_lock(&s->lock);
    fake_drain(s);
    pthread_mutex_unlock(&s->lock);
}

uint64_t fake_done(weft_stream *handle)
{
    fake_stream *s = fake_stream_of(handle);
    pthread_mutex_lock(&s->lock);
    const uint64_t n = s->n_done;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- streams --------------------------------------------------------------------------------- */

weft_status fake_stream_create(int n_lanes, weft_stream **handle, weft_error *error)
{
    static _Atomic uint64_t seed = 1;
    fake_stream *s = calloc(1, sizeof *s);
    *handle = (weft_stream *)s;
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    s->random = atomic_fetch_add(&seed, 1) * 0x9E3779B97F4A7C15u;
    pthread_mutex_init(&s->lock, NULL);
    const weft_status status = fake_cpu()->stream_create(n_lanes, &s->lanes, error);
    if (status == WEFT_OK) return WEFT_OK;
    free(s);
    *handle = NULL;
    return status;
}

void fake_stream_destroy(weft_stream **handle)
{
    fake_stream *s = fake_stream_of(*handle);
    if (s == NULL) return;
    fake_drain(s);
    for (int q = 0; q < s->n_queues; q++)
        free(s->queues[q].all);
    fake_cpu()->stream_destroy(&s->lanes);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *handle = NULL;
}
