/* chain: what all sources and stages share: being made and closed, asked for records, and told by a digest. */
#include "chain.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields -------------------------------------------------------------------------------------- */

int64_t weft_field_count(const weft_field *field)
{
    int64_t n = 1;
    for (int d = field->is_ragged; d < field->shape.n_dims; d++)
        n *= field->shape.dims[d].size;
    return n;
}

static uint32_t native_of(const weft_field *field)
{
    return field->native != 0 ? field->native : 1u << field->dtype;
}

bool weft_field_takes(const weft_field *field, weft_dtype dtype)
{
    if ((unsigned)dtype >= WEFT_DTYPES) return false;
    if (field->dtypes != 0) return field->dtypes >> dtype & 1;
    return native_of(field) >> dtype & 1 || weft_converts(field->dtype, dtype);
}

int weft_chain_field(const weft_chain *chain, const char *name)
{
    for (int i = 0; i < chain->found.n_fields; i++)
        if (strcmp(chain->found.fields[i].name, name) == 0) return i;
    return -1;
}

weft_status weft_chain_check_fixed(const weft_chain *chain, const char *call, const char *kept,
                                   const char *way_out, weft_error *error)
{
    if (!chain->found.varies) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: passes of the chain differ by its %s, and %s; %s, or freeze the chain",
                     call, chain->kind->name, kept, way_out);
}

/* ---- asking -------------------------------------------------------------------------------------- */

enum { PIECE = 4096 /* numbers that are converted at once */ };

static weft_status read_of(const weft_chain *c, int64_t i, const weft_want *wants, int n_wants,
                           void *scratch, weft_error *error)
{
    const int64_t record = c->kind->is_stage ? i : i % c->found.records;
    return c->kind->read(c->self, record, wants, n_wants, scratch, error);
}

/* Numbers no wider than wanted are read to the end of where they go, and widened from the front; others a piece at a time. */
static weft_status ask_other(const weft_chain *c, int64_t i, const weft_want *want, void *scratch,
                             weft_error *error)
{
    const weft_field *field = &c->found.fields[want->field];
    const size_t from = weft_dtype_bytes(field->dtype), to = weft_dtype_bytes(want->dtype);
    const int64_t n = want->end - want->begin;
    weft_want piece = {.field = want->field, .dtype = field->dtype};
    if (from <= to) {
        piece.begin = want->begin, piece.end = want->end;
        piece.to = (char *)want->to + (size_t)n * (to - from);
        WEFT_TRY(read_of(c, i, &piece, 1, scratch, error));
        return weft_convert(field->dtype, piece.to, want->dtype, want->to, n, error);
    }
    int64_t room[PIECE]; /* the widest there are */
    piece.to = room;
    for (int64_t at = 0; at < n; at += PIECE) {
        piece.begin = want->begin + at;
        piece.end = n - at < PIECE ? want->end : piece.begin + PIECE;
        WEFT_TRY(read_of(c, i, &piece, 1, scratch, error));
        WEFT_TRY(weft_convert(field->dtype, room, want->dtype, (char *)want->to + (size_t)at * to,
                              piece.end - piece.begin, error));
    }
    return WEFT_OK;
}

weft_status weft_chain_ask(const weft_chain *chain, int64_t i, const weft_want *wants, int n_wants,
                           void *scratch, weft_error *error)
{
    for (int w = 0, n; w < n_wants; w += n) {
        n = 0;
        while (w + n < n_wants &&
               native_of(&chain->found.fields[wants[w + n].field]) >> wants[w + n].dtype & 1)
            n++;
        if (n > 0) WEFT_TRY(read_of(chain, i, wants + w, n, scratch, error));
        if (n == 0) WEFT_TRY(ask_other(chain, i, &wants[w], scratch, error));
        if (n == 0) n = 1;
    }
    return WEFT_OK;
}

weft_status weft_chain_count(const weft_chain *chain, int64_t i, int field, void *scratch,
                             int64_t *n, weft_error *error)
{
    const weft_field *f = &chain->found.fields[field];
    *n = f->shape.n_dims > 0 ? f->shape.dims[0].size : 1;
    if (!f->is_ragged) return WEFT_OK;
    const int64_t record = chain->kind->is_stage ? i : i % chain->found.records;
    return chain->kind->count(chain->self, record, field, scratch, n, error);
}

void weft_chain_place(const weft_chain *chain, int field, int64_t i, int64_t number, char *text,
                      size_t bytes)
{
    const int64_t record = chain->kind->is_stage ? i : i % chain->found.records;
    if (chain->kind->place)
        chain->kind->place(chain->self, field, record, number, text, bytes);
    else
        snprintf(text, bytes, "%.80s of sample %lld", chain->found.fields[field].name,
                 (long long)record);
}

/* ---- identity ------------------------------------------------------------------------------------ */

static void add_text(weft_hashing *hashing, const char *text)
{
    weft_hash_add(hashing, text ? text : "", (text ? strlen(text) : 0) + 1);
}

static void add_field(weft_hashing *hashing, const weft_field *field)
{
    char size[24];
    add_text(hashing, field->name);
    add_text(hashing, weft_dtype_name(field->dtype));
    for (int d = 0; d < field->shape.n_dims; d++) {
        snprintf(size, sizeof size, "%lld", (long long)field->shape.dims[d].size);
        add_text(hashing, field->shape.dims[d].name);
        add_text(hashing, size);
    }
    add_text(hashing, field->is_ragged ? "ragged" : "");
}

weft_hash weft_chain_digest(const weft_chain *chain)
{
    weft_hashing hashing;
    char records[24];
    if (chain->kind->is_same) return weft_chain_digest(chain->operands[0]);
    weft_hash_begin(&hashing);
    add_text(&hashing, chain->kind->name);
    add_text(&hashing, chain->setting);
    add_text(&hashing, chain->facts);
    snprintf(records, sizeof records, "%lld", (long long)chain->found.records);
    add_text(&hashing, records);
    for (int i = 0; i < chain->found.n_fields; i++)
        add_field(&hashing, &chain->found.fields[i]);
    for (int i = 0; i < chain->n_operands; i++) {
        const weft_hash hash = weft_chain_digest(chain->operands[i]);
        weft_hash_add(&hashing, hash.bytes, sizeof hash.bytes);
    }
    return weft_hash_end(&hashing);
}

weft_status weft_chain_say(weft_chain **chain, const char *name, const char *value,
                           weft_error *error)
{
    char text[400];
    weft_facts_shorten(value, text, sizeof text);
    const weft_status status = weft_facts_set(&(*chain)->facts, name, text, error);
    if (status != WEFT_OK) weft_chain_close(chain);
    return status;
}

weft_status weft_chain_say_number(weft_chain **chain, const char *name, int64_t number,
                                  weft_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return weft_chain_say(chain, name, text, error);
}

/* ---- life ---------------------------------------------------------------------------------------- */

weft_status weft_chain_make(const weft_chain_kind *kind, void *self, const weft_chain_found *found,
                            weft_chain **chain, weft_error *error)
{
    *chain = calloc(1, sizeof **chain);
    if (*chain == NULL) {
        if (kind->close) kind->close(self);
        return weft_fail_memory(error, sizeof **chain);
    }
    (*chain)->kind = kind;
    (*chain)->self = self;
    (*chain)->found = *found;
    return WEFT_OK;
}

weft_status weft_stage_make(const weft_chain_kind *kind, void *self, const weft_chain_found *found,
                            const char *setting, weft_chain **operands, int n_operands,
                            weft_chain **chain, weft_error *error)
{
    weft_chain *made;
    WEFT_TRY(weft_chain_make(kind, self, found, &made, error));
    made->setting = strdup(setting);
    made->operands = calloc((size_t)n_operands, sizeof *made->operands);
    if (made->setting == NULL || made->operands == NULL) {
        weft_chain_close(&made);
        return weft_fail_memory(error, (size_t)n_operands * sizeof *operands);
    }
    for (int i = 0; i < n_operands; i++)
        made->operands[i] = operands[i], operands[i] = NULL;
    made->n_operands = n_operands;
    *chain = made;
    return WEFT_OK;
}

const weft_chain *weft_chain_base(const weft_chain *chain)
{
    while (chain->kind->is_order || chain->kind->is_same)
        chain = chain->operands[0];
    return chain;
}

void weft_chain_close(weft_chain **chain)
{
    weft_chain *c = chain ? *chain : NULL;
    if (c == NULL) return;
    if (c->kind->close) c->kind->close(c->self);
    for (int i = 0; i < c->n_operands; i++)
        weft_chain_close(&c->operands[i]);
    free(c->operands);
    free(c->setting);
    free(c->told);
    free(c->facts);
    free(c);
    *chain = NULL;
}

/* ---- what a reader asks -------------------------------------------------------------------------- */

int64_t weft_chain_records(const weft_chain *chain)
{
    return chain ? chain->found.records : 0;
}

int weft_chain_fields(const weft_chain *chain)
{
    return chain ? chain->found.n_fields : 0;
}

static const weft_field *field_at(const weft_chain *chain, int field)
{
    return chain && field >= 0 && field < chain->found.n_fields ? &chain->found.fields[field]
                                                                : NULL;
}

const char *weft_chain_field_name(const weft_chain *chain, int field)
{
    const weft_field *f = field_at(chain, field);
    return f ? f->name : NULL;
}

weft_dtype weft_chain_field_dtype(const weft_chain *chain, int field)
{
    const weft_field *f = field_at(chain, field);
    return f ? f->dtype : WEFT_DTYPES;
}

const weft_shape *weft_chain_field_shape(const weft_chain *chain, int field)
{
    const weft_field *f = field_at(chain, field);
    return f ? &f->shape : NULL;
}
