/* filter: a stage that leaves records out, as a function of the program says. Which are left is an index, made once by asking it for every
 * record: 8 bytes for each that stays. Threads ask it for parts of them, so none of it depends on how many there are.
 */
#include "chain.h"
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1024 /* records that a thread takes at once */ };

typedef struct filter {
    const weft_chain *operand;
    int64_t n;
    int64_t *records; /* [n] those that stay, in their order */
} filter;

static void filter_close(void *self)
{
    filter *f = self;
    free(f->records);
    free(f);
}

static int64_t there(const filter *f, int64_t i)
{
    return i / f->n * f->operand->found.records + f->records[i % f->n];
}

static weft_status filter_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                               void *scratch, weft_error *error)
{
    const filter *f = self;
    return weft_chain_ask(f->operand, there(f, i), wants, n_wants, scratch, error);
}

static weft_status filter_count(const void *self, int64_t i, int field, void *scratch, int64_t *n,
                                weft_error *error)
{
    const filter *f = self;
    return weft_chain_count(f->operand, there(f, i), field, scratch, n, error);
}

static void filter_place(const void *self, int field, int64_t i, int64_t number, char *text,
                         size_t bytes)
{
    const filter *f = self;
    weft_chain_place(f->operand, field, there(f, i), number, text, bytes);
}

static const weft_chain_kind filter_kind = {.name = "filter",
                                            .read = filter_read,
                                            .count = filter_count,
                                            .place = filter_place,
                                            .close = filter_close,
                                            .is_stage = true};

/* ---- asking the function ---------------------------------------------------------------------------- */

typedef struct asking {
    const weft_chain *chain;
    const weft_filter_options *options;
    int64_t **kept; /* [parts] records of each that stay */
    int64_t *n_kept;
} asking;

/* A record that is read whole. */
typedef struct record {
    void *scratch;
    void *numbers[WEFT_MAX_FIELDS];
    size_t bytes[WEFT_MAX_FIELDS]; /* there is room for */
    int64_t counts[WEFT_MAX_FIELDS];
} record;

static void record_close(record *r)
{
    for (int f = 0; f < WEFT_MAX_FIELDS; f++)
        free(r->numbers[f]);
    free(r->scratch);
}

static weft_status make_room(record *r, int f, size_t bytes, weft_error *error)
{
    if (r->numbers[f] != NULL && bytes <= r->bytes[f]) return WEFT_OK;
    free(r->numbers[f]);
    r->bytes[f] = bytes + bytes / 2 + 64;
    r->numbers[f] = malloc(r->bytes[f]);
    return r->numbers[f] ? WEFT_OK : weft_fail_memory(error, r->bytes[f]);
}

static weft_status read_record(const weft_chain *chain, int64_t i, record *r, weft_error *error)
{
    weft_want wants[WEFT_MAX_FIELDS];
    int n_wants = 0;
    for (int f = 0; f < chain->found.n_fields; f++) {
        const weft_field *field = &chain->found.fields[f];
        WEFT_TRY(weft_chain_count(chain, i, f, r->scratch, &r->counts[f], error));
        const int64_t n = weft_field_count(field) * (field->is_ragged ? r->counts[f] : 1);
        WEFT_TRY(make_room(r, f, (size_t)n * weft_dtype_bytes(field->dtype), error));
        if (n > 0) wants[n_wants++] = (weft_want){f, field->dtype, 0, n, r->numbers[f]};
    }
    return weft_chain_ask(chain, i, wants, n_wants, r->scratch, error);
}

static weft_status judge(const asking *a, int64_t i, record *r, bool *stays, weft_error *error)
{
    char place[160];
    weft_error own = {.rank = -1};
    WEFT_TRY(read_record(a->chain, i, r, error));
    *stays = false;
    const weft_status status = a->options->function(
        a->options->argument, i, (const void *const *)r->numbers, r->counts, stays, &own);
    if (status == WEFT_OK) return WEFT_OK;
    weft_chain_place(a->chain, 0, i, 0, place, sizeof place);
    return weft_fail(error, status, "%.300s (filter %.60s, record %lld: %s)",
                     *own.message ? own.message : "its function gave no reason", a->options->name,
                     (long long)i, place);
}

static weft_status ask_part(void *argument, int64_t part, weft_error *error)
{
    const asking *a = argument;
    const int64_t first = part * PART, left = a->chain->found.records - first;
    const int64_t n = left < PART ? left : PART;
    const size_t bytes = (a->chain->found.scratch_bytes + 127) / 64 * 64;
    record r = {.scratch = aligned_alloc(64, bytes)};
    int64_t *kept = a->kept[part] = malloc((size_t)n * sizeof *kept);
    weft_status status = r.scratch && kept ? WEFT_OK : weft_fail_memory(error, bytes);
    for (int64_t i = first; i < first + n && status == WEFT_OK; i++) {
        bool stays = false;
        status = judge(a, i, &r, &stays, error);
        if (stays) kept[a->n_kept[part]++] = i;
    }
    record_close(&r);
    return status;
}

static weft_status join(filter *f, const asking *a, int64_t n_parts, weft_error *error)
{
    for (int64_t p = 0; p < n_parts; p++)
        f->n += a->n_kept[p];
    f->records = malloc(((size_t)f->n + 1) * sizeof *f->records);
    if (f->records == NULL) return weft_fail_memory(error, (size_t)f->n * sizeof *f->records);
    int64_t at = 0;
    for (int64_t p = 0; p < n_parts; at += a->n_kept[p++])
        if (a->n_kept[p] > 0)
            memcpy(f->records + at, a->kept[p], (size_t)a->n_kept[p] * sizeof *f->records);
    return WEFT_OK;
}

static weft_status ask_all(filter *f, const weft_filter_options *o, weft_error *error)
{
    const int64_t n_parts = (f->operand->found.records + PART - 1) / PART;
    asking a = {.chain = f->operand,
                .options = o,
                .kept = calloc((size_t)n_parts, sizeof *a.kept),
                .n_kept = calloc((size_t)n_parts, sizeof *a.n_kept)};
    weft_status status =
        a.kept && a.n_kept ? WEFT_OK : weft_fail_memory(error, (size_t)n_parts * sizeof *a.kept);
    if (status == WEFT_OK)
        status = weft_parts_do(n_parts, o->n_threads > 0 ? o->n_threads : 1, ask_part, &a, error);
    if (status == WEFT_OK) status = join(f, &a, n_parts, error);
    for (int64_t p = 0; a.kept != NULL && p < n_parts; p++)
        free(a.kept[p]);
    free(a.kept), free(a.n_kept);
    return status;
}

/* ---- keeping it ------------------------------------------------------------------------------------- */

static weft_hash key_of(const filter *f, const char *name)
{
    weft_hashing hashing;
    const weft_hash below = weft_chain_digest(f->operand);
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, "filter 1", sizeof "filter 1");
    weft_hash_add(&hashing, name, strlen(name) + 1);
    weft_hash_add(&hashing, below.bytes, sizeof below.bytes);
    return weft_hash_end(&hashing);
}

/* Numbers of records, each above the one before. */
static bool is_sound(const filter *f, const int64_t *records, size_t bytes)
{
    const size_t n = bytes / sizeof *records;
    int64_t last = -1;
    if (bytes % sizeof *records != 0) return false;
    for (size_t i = 0; i < n; last = records[i++])
        if (records[i] <= last || records[i] >= f->operand->found.records) return false;
    return true;
}

static weft_status find_index(filter *f, const weft_filter_options *o, weft_error *error)
{
    const weft_hash key = key_of(f, o->name);
    void *bytes = NULL;
    size_t n = 0;
    if (o->folder) WEFT_TRY(weft_kept_load(o->folder, "filter", &key, &bytes, &n, error));
    const bool is_there = bytes != NULL && is_sound(f, bytes, n);
    if (is_there)
        f->records = bytes, f->n = (int64_t)(n / sizeof *f->records);
    else
        free(bytes);
    if (!is_there) WEFT_TRY(ask_all(f, o, error));
    if (f->n == 0)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_filter: %.60s leaves none of %lld records; let some stay",
                         o->name, (long long)f->operand->found.records);
    if (!o->folder || is_there) return WEFT_OK;
    return weft_kept_store(o->folder, "filter", &key, f->records, (size_t)f->n * sizeof *f->records,
                           error);
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

static weft_status check(const weft_chain *chain, const weft_filter_options *o, weft_error *error)
{
    if (o->function == NULL || o->name == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_filter: name and function are to be said, and %s is NULL",
                         o->name == NULL ? "name" : "function");
    WEFT_TRY(weft_name_check("weft_chain_filter: name", o->name, error));
    WEFT_GIVEN_RANGE(o->n_threads, 0, 64, error);
    return weft_chain_check_fixed(chain, "weft_chain_filter", "an index is of one",
                                  "filter first and shuffle then", error);
}

weft_status weft_chain_filter(weft_chain **chain, const weft_filter_options *options,
                              weft_error *error)
{
    char setting[160], digits[WEFT_HASH_DIGITS + 1];
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(*chain, options, error));
    filter *f = calloc(1, sizeof *f);
    if (f == NULL) return weft_fail_memory(error, sizeof *f);
    f->operand = *chain;
    const weft_status status = find_index(f, options, error);
    if (status != WEFT_OK) {
        filter_close(f);
        return status;
    }
    weft_chain_found found = (*chain)->found;
    const weft_hash hash = weft_hash_of(f->records, (size_t)f->n * sizeof *f->records);
    found.records = f->n;
    weft_hash_print(&hash, digits);
    snprintf(setting, sizeof setting, "%.63s, index %.16s", options->name, digits);
    return weft_stage_make(&filter_kind, f, &found, setting, chain, 1, chain, error);
}
