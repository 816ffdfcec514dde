/* facts: what data is, in words, and how two such texts differ. */
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/hash.h"
#include "checkpoint/peers.h"
#include "weft/collectives.h"

/* ---- one text ----------------------------------------------------------------------------------- */

typedef struct fact {
    const char *name, *value; /* not ended */
    int n_name, n_value;
} fact;

/* The fact at *at, which goes on to the next; false: there is none. */
static bool next_fact(const char **at, fact *f)
{
    if (**at == '\0') return false;
    const char *end = strstr(*at, "; ");
    const size_t n = end != NULL ? (size_t)(end - *at) : strlen(*at);
    const char *gap = memmem(*at, n, ": ", 2);
    f->name = *at;
    f->n_name = (int)(gap != NULL ? (size_t)(gap - *at) : n);
    f->value = gap != NULL ? gap + 2 : *at + n;
    f->n_value = (int)(*at + n - f->value);
    *at += end != NULL ? n + 2 : n;
    return true;
}

static bool find_fact(const char *facts, const fact *like, fact *found)
{
    while (next_fact(&facts, found))
        if (found->n_name == like->n_name &&
            memcmp(found->name, like->name, (size_t)like->n_name) == 0)
            return true;
    return false;
}

bool weft_facts_value(const char *facts, const char *name, char *value, size_t bytes)
{
    const fact like = {.name = name, .n_name = (int)strlen(name)};
    fact found;
    return find_fact(facts, &like, &found) &&
           (size_t)snprintf(value, bytes, "%.*s", found.n_value, found.value) < bytes;
}

/* Bytes that a manifest and a sentence can hold. */
static bool is_plain(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return false;
    return true;
}

weft_status weft_facts_check(const char *facts, weft_error *error)
{
    if (strlen(facts) < WEFT_FACTS_BYTES && is_plain(facts)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "what is said of the data has %zu bytes%s; there can be %d, all of them to be "
                     "printed, as weft_dataset_facts gives them",
                     strlen(facts), is_plain(facts) ? "" : ", with a control character",
                     WEFT_FACTS_BYTES - 1);
}

static weft_status check_part(const char *what, const char *part, const char *mark,
                              weft_error *error)
{
    if (part[0] != '\0' && is_plain(part) && strstr(part, mark) == NULL) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_dataset_fact: the %s \"%.60s\" is empty, or has a control character or "
                     "\"%s\" in it; give another",
                     what, part, mark);
}

void weft_facts_shorten(const char *value, char *text, size_t bytes)
{
    enum { REST = 72 };
    const size_t n = strlen(value), kept = n < bytes ? n : bytes - REST;
    for (size_t i = 0; i <= kept; i++)
        text[i] = i == kept                       ? '\0'
                  : value[i] == ';'               ? ','
                  : (unsigned char)value[i] < ' ' ? ' '
                                                  : value[i];
    if (kept == n) return;
    char digits[WEFT_HASH_DIGITS + 1];
    const weft_hash hash = weft_hash_of(value, n);
    weft_hash_print(&hash, digits);
    snprintf(text + kept, bytes - kept, "... (%zu bytes, hash %s)", n, digits);
}

/* Those that are there but the one of that name, and it. returns its length, -1: there is no room */
static int put_all(const char *facts, const fact *set, char *text)
{
    int used = 0;
    fact f;
    while (next_fact(&facts, &f)) {
        if (f.n_name == set->n_name && memcmp(f.name, set->name, (size_t)f.n_name) == 0) continue;
        used += sprintf(text + used, "%.*s: %.*s; ", f.n_name, f.name, f.n_value, f.value);
    }
    if (used + set->n_name + 2 + set->n_value >= WEFT_FACTS_BYTES) return -1;
    return used +
           sprintf(text + used, "%.*s: %.*s", set->n_name, set->name, set->n_value, set->value);
}

weft_status weft_facts_set(char **facts, const char *name, const char *value, weft_error *error)
{
    char text[WEFT_FACTS_BYTES + 8];
    WEFT_TRY(check_part("name", name, ": ", error));
    WEFT_TRY(check_part("name", name, "; ", error));
    WEFT_TRY(check_part("value", value, "; ", error));
    const size_t n_name = strlen(name), n_value = strlen(value);
    const fact set = {name, value, (int)n_name, (int)n_value};
    if (n_name + n_value >= WEFT_FACTS_BYTES || put_all(*facts ? *facts : "", &set, text) < 0)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_fact: %.60s has no room; all that is said of a data set has "
                         "at most %d bytes",
                         name, WEFT_FACTS_BYTES - 1);
    if (*facts == NULL && (*facts = malloc(WEFT_FACTS_BYTES)) == NULL)
        return weft_fail_memory(error, WEFT_FACTS_BYTES);
    strcpy(*facts, text);
    return WEFT_OK;
}

/* ---- two texts ---------------------------------------------------------------------------------- */

/* "seq was 64 and is 32"; false: it is the same. b NULL: the second does not say it. */
static bool tell(const fact *a, const fact *b, const weft_facts_words *w, char *text, size_t bytes)
{
    static const fact none = {"", "not said", 0, 8};
    if (b == NULL) b = &none;
    if (a->n_value == b->n_value && memcmp(a->value, b->value, (size_t)a->n_value) == 0)
        return false;
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%.*s %s %.*s%s and %s%.*s%s", used > 0 ? ", " : "",
             a->n_name, a->name, w->before, a->n_value, a->value, w->after_first, w->between,
             b->n_value, b->value, w->after_second);
    return true;
}

bool weft_facts_differ(const char *first, const char *second, const weft_facts_words *words,
                       char *text, size_t bytes)
{
    bool differ = false;
    fact a, b;
    text[0] = '\0';
    for (const char *at = first; next_fact(&at, &a);)
        differ |= tell(&a, find_fact(second, &a, &b) ? &b : NULL, words, text, bytes);
    for (const char *at = second; next_fact(&at, &b);)
        if (!find_fact(first, &b, &a)) {
            const fact none = {b.name, "not said", b.n_name, 8};
            differ |= tell(&none, &b, words, text, bytes);
        }
    return differ;
}

/* ---- many processes ----------------------------------------------------------------------------- */

/* What a process tells first: all that is needed where all agree. */
typedef struct mark {
    weft_hash hash;
    int64_t rank; /* its first */
} mark;

static weft_status gather(const weft_peers *peers, const void *mine, size_t bytes, char **all,
                          weft_error *error)
{
    *all = calloc((size_t)peers->n, bytes);
    return weft_peers_gather(peers, mine, (int64_t)bytes, *all, error);
}

static weft_status tell_both(const weft_peers *peers, const mark *marks, int odd, const char *facts,
                             weft_error *error)
{
    char mine[WEFT_FACTS_MOST] = "", what[320], here[40], there[40], *all;
    const weft_facts_words words = {"is", here, "", there};
    snprintf(mine, sizeof mine, "%s", facts);
    weft_status status = gather(peers, mine, sizeof mine, &all, error);
    snprintf(here, sizeof here, " at rank %lld", (long long)marks[0].rank);
    snprintf(there, sizeof there, " at rank %lld", (long long)marks[odd].rank);
    if (status == WEFT_OK &&
        weft_facts_differ(all, all + (size_t)odd * sizeof mine, &words, what, sizeof what))
        status =
            weft_fail(error, WEFT_MISMATCH,
                      "ranks have other data: %s; give all ranks the same files and options", what);
    free(all);
    return status;
}

static weft_status compare(const weft_peers *peers, int64_t rank, const char *facts,
                           weft_error *error)
{
    const mark mine = {weft_hash_of(facts, strlen(facts)), rank};
    char *all;
    int odd = 0;
    weft_status status = gather(peers, &mine, sizeof mine, &all, error);
    const mark *marks = (const mark *)(const void *)all;
    for (int p = 1; status == WEFT_OK && odd == 0 && p < peers->n; p++)
        if (!weft_hash_equal(&marks[p].hash, &marks[0].hash)) odd = p;
    if (odd > 0) status = tell_both(peers, marks, odd, facts, error);
    free(all);
    return status;
}

weft_status weft_facts_agree(weft_mesh *mesh, const char *facts, weft_error *error)
{
    weft_peers peers;
    WEFT_TRY(weft_peers_open(mesh, &peers, error));
    weft_status status = WEFT_OK;
    if (peers.n > 1) status = compare(&peers, weft_mesh_first_local(mesh), facts, error);
    weft_peers_close(&peers);
    return status;
}
