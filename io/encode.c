/* encode: a stage that makes tokens of a text, as a function of the program says: no file of tokens is needed.
 *
 * How many tokens each record has is an index, made once by encoding all: 8 bytes a record. So documents are packed, and windows found,
 * without encoding again. A record is encoded when it is read. Those that were read last are held, as several windows may be of one.
 */
#include "chain.h"
#include "kept.h"
#include "sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART = 64, /* records that a thread takes at once */
    N_HELD = 16,
    LONGEST = 1 << 26,  /* bytes of a text: as it is encoded whole whenever a part of it is read */
    MOST_HELD = 1 << 20 /* tokens that stay */
};

/* A record's tokens. Who wants another's place for his own record, or at the same time, encodes for himself. */
typedef struct held {
    _Atomic bool is_taken;
    int64_t record; /* -1: none */
    int64_t n, room;
    int32_t *tokens; /* [room] */
} held;

typedef struct encode {
    const weft_chain *operand;
    int field;
    char name[WEFT_MAX_NAME + 1];
    weft_encode_function function;
    const void *argument;
    int64_t *counts; /* [records] */
    held *held;      /* [N_HELD] */
} encode;

static void encode_close(void *self)
{
    encode *e = self;
    for (int i = 0; e->held != NULL && i < N_HELD; i++)
        free(e->held[i].tokens);
    free(e->held);
    free(e->counts);
    free(e);
}

/* ---- encoding --------------------------------------------------------------------------------------- */

static weft_status fail_record(const encode *e, int64_t record, weft_status status, const char *why,
                               weft_error *error)
{
    char place[160];
    weft_chain_place(e->operand, e->field, record, 0, place, sizeof place);
    return weft_fail(error, status, "%.300s (encode %.60s, record %lld: %s)", why, e->name,
                     (long long)record, place);
}

static weft_status make_room(held *h, int64_t n, weft_error *error)
{
    if (n <= h->room) return WEFT_OK;
    free(h->tokens);
    h->room = n + n / 4;
    h->tokens = malloc((size_t)h->room * sizeof *h->tokens);
    if (h->tokens != NULL) return WEFT_OK;
    h->room = 0;
    return weft_fail_memory(error, (size_t)n * sizeof *h->tokens);
}

static weft_status call(const encode *e, int64_t record, const unsigned char *text, int64_t bytes,
                        held *h, weft_error *error)
{
    weft_error own = {.rank = -1};
    const int64_t room = bytes + WEFT_ENCODE_MORE;
    h->n = 0;
    WEFT_TRY(make_room(h, room, error));
    const weft_status status = e->function(e->argument, text, bytes, h->tokens, &h->n, &own);
    if (status != WEFT_OK)
        return fail_record(e, record, status,
                           *own.message ? own.message : "its function gave no reason", error);
    if (h->n >= 0 && h->n <= room) return WEFT_OK;
    return fail_record(e, record, WEFT_USAGE,
                       "its function says more tokens than there is room for: as many as bytes, "
                       "and 16",
                       error);
}

static weft_status encode_record(const encode *e, int64_t record, held *h, void *scratch,
                                 weft_error *error)
{
    int64_t bytes = 0;
    h->record = -1;
    WEFT_TRY(weft_chain_count(e->operand, record, e->field, scratch, &bytes, error));
    if (bytes > LONGEST)
        return fail_record(e, record, WEFT_USAGE,
                           "the text has more than 64 MiB, and is encoded whole when a part of it "
                           "is read; make a file of tokens of it (weft tokens encode), or split it",
                           error);
    unsigned char *text = malloc((size_t)bytes + 1);
    if (text == NULL) return weft_fail_memory(error, (size_t)bytes);
    const weft_want want = {e->field, WEFT_U8, 0, bytes, text};
    weft_status status =
        bytes > 0 ? weft_chain_ask(e->operand, record, &want, 1, scratch, error) : WEFT_OK;
    if (status == WEFT_OK) status = call(e, record, text, bytes, h, error);
    if (status == WEFT_OK) h->record = record;
    free(text);
    return status;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static held *take(const encode *e, int64_t record, held *own)
{
    held *h = &e->held[record % N_HELD];
    bool is_free = false;
    *own = (held){.record = -1};
    return weft_sync_replace(&h->is_taken, &is_free, true) ? h : own;
}

static void give(held *h, held *own)
{
    if (h == own || h->room > MOST_HELD) {
        free(h->tokens);
        h->tokens = NULL, h->room = 0, h->record = -1;
    }
    if (h != own) weft_sync_store_release(&h->is_taken, false);
}

static weft_status put(const encode *e, int64_t record, const weft_want *wants, int n_wants,
                       held *h, void *scratch, weft_error *error)
{
    if (h->record != record) WEFT_TRY(encode_record(e, record, h, scratch, error));
    if (h->n != e->counts[record])
        return fail_record(e, record, WEFT_IO,
                           "the text has another number of tokens than it had; do not change data, "
                           "or what encodes it, while it is read",
                           error);
    for (const weft_want *w = wants; w < wants + n_wants; w++)
        memcpy(w->to, h->tokens + w->begin, (size_t)(w->end - w->begin) * sizeof *h->tokens);
    return WEFT_OK;
}

static weft_status encode_read(const void *self, int64_t record, const weft_want *wants,
                               int n_wants, void *scratch, weft_error *error)
{
    const encode *e = self;
    held own, *h = take(e, record, &own);
    const weft_status status = put(e, record, wants, n_wants, h, scratch, error);
    give(h, &own);
    return status;
}

static weft_status encode_count(const void *self, int64_t record, int field, void *scratch,
                                int64_t *n, weft_error *error)
{
    (void)field, (void)scratch, (void)error;
    *n = ((const encode *)self)->counts[record];
    return WEFT_OK;
}

static void encode_place(const void *self, int field, int64_t record, int64_t number, char *text,
                         size_t bytes)
{
    const encode *e = self;
    char below[200];
    (void)field;
    weft_chain_place(e->operand, e->field, record, 0, below, sizeof below);
    snprintf(text, bytes, "token %lld of the text at %s", (long long)number, below);
}

static const weft_chain_kind encode_kind = {.name = "encode",
                                            .read = encode_read,
                                            .count = encode_count,
                                            .place = encode_place,
                                            .close = encode_close};

/* ---- the index -------------------------------------------------------------------------------------- */

static weft_status count_part(void *argument, int64_t part, weft_error *error)
{
    const encode *e = argument;
    const int64_t first = part * PART, left = e->operand->found.records - first;
    const size_t bytes = (e->operand->found.scratch_bytes + 127) / 64 * 64;
    held h = {.record = -1};
    void *scratch = aligned_alloc(64, bytes);
    weft_status status = scratch ? WEFT_OK : weft_fail_memory(error, bytes);
    for (int64_t i = first; status == WEFT_OK && i < first + (left < PART ? left : PART); i++) {
        status = encode_record(e, i, &h, scratch, error);
        e->counts[i] = h.n;
    }
    free(h.tokens), free(scratch);
    return status;
}

static weft_status count_all(encode *e, int n_threads, weft_error *error)
{
    const int64_t records = e->operand->found.records;
    e->counts = malloc((size_t)records * sizeof *e->counts);
    if (e->counts == NULL) return weft_fail_memory(error, (size_t)records * sizeof *e->counts);
    return weft_parts_do((records + PART - 1) / PART, n_threads, count_part, e, error);
}

static weft_hash key_of(const encode *e)
{
    char text[160];
    weft_hashing hashing;
    const weft_hash below = weft_chain_digest(e->operand);
    snprintf(text, sizeof text, "encode 1: field %d, %s", e->field, e->name);
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, text, strlen(text) + 1);
    weft_hash_add(&hashing, below.bytes, sizeof below.bytes);
    return weft_hash_end(&hashing);
}

static bool is_sound(const encode *e, const int64_t *counts, size_t bytes)
{
    const int64_t records = e->operand->found.records;
    if (bytes != (size_t)records * sizeof *counts) return false;
    for (int64_t i = 0; i < records; i++)
        if (counts[i] < 0 || counts[i] > LONGEST + WEFT_ENCODE_MORE) return false;
    return true;
}

static weft_status find_index(encode *e, const weft_encode_options *o, weft_error *error)
{
    const weft_hash key = key_of(e);
    const size_t bytes = (size_t)e->operand->found.records * sizeof *e->counts;
    void *kept = NULL;
    size_t n = 0;
    if (o->folder) WEFT_TRY(weft_kept_load(o->folder, "encode", &key, &kept, &n, error));
    if (kept != NULL && is_sound(e, kept, n)) return e->counts = kept, WEFT_OK;
    free(kept);
    WEFT_TRY(count_all(e, o->n_threads > 0 ? o->n_threads : 1, error));
    return o->folder ? weft_kept_store(o->folder, "encode", &key, e->counts, bytes, error)
                     : WEFT_OK;
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

static weft_status check(const weft_chain *chain, const weft_encode_options *o, weft_error *error)
{
    if (o->function == NULL || o->name == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_encode: name and function are to be said, and %s is NULL",
                         o->name == NULL ? "name" : "function");
    WEFT_TRY(weft_name_check("weft_chain_encode: name", o->name, error));
    WEFT_GIVEN_RANGE(o->n_threads, 0, 64, error);
    return weft_chain_check_fixed(chain, "weft_chain_encode", "an index is of one",
                                  "encode first and shuffle then", error);
}

static bool is_text(const weft_field *f)
{
    return f->is_ragged && f->dtype == WEFT_U8 && f->shape.n_dims == 1;
}

/* "text", or the only text there is. */
static weft_status find_field(const weft_chain *chain, const char *name, int *field,
                              weft_error *error)
{
    int n_texts = 0, named = weft_chain_field(chain, name ? name : "text");
    for (int f = chain->found.n_fields - 1; f >= 0; f--)
        if (is_text(&chain->found.fields[f])) n_texts++, *field = f;
    if (named >= 0 && is_text(&chain->found.fields[named])) return *field = named, WEFT_OK;
    if (name == NULL && n_texts == 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_chain_encode: %d fields are texts, and %.80s is none of them; name one "
                     "that is",
                     n_texts, name ? name : "text");
}

static weft_status make(encode *e, weft_chain **chain, weft_error *error)
{
    char setting[200], digits[WEFT_HASH_DIGITS + 1];
    weft_chain_found found = {.records = e->operand->found.records,
                              .n_fields = 1,
                              .scratch_bytes = e->operand->found.scratch_bytes};
    const weft_hash hash = weft_hash_of(e->counts, (size_t)found.records * sizeof *e->counts);
    found.fields[0] = (weft_field){
        .name = "tokens", .dtype = WEFT_I32, .is_ragged = true, .shape = {1, {{"token", 0}}}};
    weft_hash_print(&hash, digits);
    snprintf(setting, sizeof setting, "%.60s of %.80s, index %.16s", e->name,
             e->operand->found.fields[e->field].name, digits);
    return weft_stage_make(&encode_kind, e, &found, setting, chain, 1, chain, error);
}

weft_status weft_chain_encode(weft_chain **chain, const weft_encode_options *options,
                              weft_error *error)
{
    int field = -1;
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(*chain, options, error));
    WEFT_TRY(find_field(*chain, options->field, &field, error));
    encode *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(error, sizeof *e);
    e->operand = *chain, e->field = field;
    e->function = options->function, e->argument = options->argument;
    snprintf(e->name, sizeof e->name, "%s", options->name);
    e->held = calloc(N_HELD, sizeof *e->held);
    for (int i = 0; e->held != NULL && i < N_HELD; i++)
        e->held[i].record = -1;
    weft_status status = e->held ? WEFT_OK : weft_fail_memory(error, N_HELD * sizeof *e->held);
    if (status == WEFT_OK) status = find_index(e, options, error);
    if (status == WEFT_OK) return make(e, chain, error);
    encode_close(e);
    return status;
}
