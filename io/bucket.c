/* bucket: a stage that puts records with rows of any length into buckets of one size: their values one behind the other, and where each row
 * begins. No row is cut. Which row is in which bucket is an index (pack_index.h).
 */
#include "pack_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_AHEAD = 4096 };
static const char offsets_name[] = "offsets", row_dim[] = "row", value_dim[] = "value",
                  end_dim[] = "end";

/* Field f of a bucket is of[f] of a record; the offsets are of none. */
enum { OFFSETS = -1 };

typedef struct bucket {
    const weft_chain *operand;
    int field; /* ragged */
    int64_t values, rows;
    weft_pack_index index;
    int n_fields, of[WEFT_MAX_FIELDS];
    size_t width[WEFT_MAX_FIELDS]; /* bytes of a field in one record, or of one value */
    size_t scratch;                /* where the operand's begins */
} bucket;

static void bucket_close(void *self)
{
    bucket *b = self;
    weft_pack_index_free(&b->index);
    free(b);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static int64_t first_piece(const bucket *b, int64_t i)
{
    return i > 0 ? b->index.packing.ends[i - 1] : 0;
}

/* Where rows begin, [rows + 1]; those that are none begin at the end. */
static weft_status find_offsets(const bucket *b, int64_t i, int32_t *offsets, void *scratch,
                                weft_error *error)
{
    const int64_t first = first_piece(b, i), n = b->index.packing.ends[i] - first;
    int64_t at = 0;
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t count = 0;
        offsets[r] = (int32_t)at;
        if (r >= n) continue;
        const weft_pack_piece *piece = &b->index.packing.pieces[first + r];
        WEFT_TRY(weft_chain_count(b->operand, piece->document, b->field, scratch, &count, error));
        if ((count > 0 ? count : 1) != piece->length)
            return weft_fail(error, WEFT_IO,
                             "weft_chain_bucket: record %lld has %lld in %.60s, and had others "
                             "when buckets were made; do not change data while it is read",
                             (long long)piece->document, (long long)count,
                             b->operand->found.fields[b->field].name);
        at += count;
    }
    offsets[b->rows] = (int32_t)at;
    return WEFT_OK;
}

/* Numbers [begin, end) of a record's field to their place in what is wanted, [begin, end) of the bucket's. at: the record's first there. */
static weft_status read_part(const bucket *b, const weft_want *w, int64_t record, int64_t at,
                             int64_t n, void *scratch, weft_error *error)
{
    const int64_t begin = at > w->begin ? at : w->begin, end = at + n < w->end ? at + n : w->end;
    if (begin >= end) return WEFT_OK;
    const weft_want there = {b->of[w->field], w->dtype, begin - at, end - at,
                             (char *)w->to +
                                 (size_t)(begin - w->begin) * weft_dtype_bytes(w->dtype)};
    return weft_chain_ask(b->operand, record, &there, 1, scratch, error);
}

static weft_status read_want(const bucket *b, int64_t i, const weft_want *w, const int32_t *offsets,
                             void *scratch, weft_error *error)
{
    const int64_t first = first_piece(b, i), n = b->index.packing.ends[i] - first;
    const bool is_ragged = b->of[w->field] == b->field;
    if (b->of[w->field] == OFFSETS) {
        memcpy(w->to, offsets + w->begin, (size_t)(w->end - w->begin) * sizeof *offsets);
        return WEFT_OK;
    }
    memset(w->to, 0, (size_t)(w->end - w->begin) * weft_dtype_bytes(w->dtype));
    const int64_t width = (int64_t)b->width[w->field];
    for (int64_t r = 0; r < n; r++) {
        const int64_t at = is_ragged ? offsets[r] * width : r * width;
        const int64_t count = is_ragged ? (offsets[r + 1] - offsets[r]) * width : width;
        WEFT_TRY(read_part(b, w, b->index.packing.pieces[first + r].document, at, count, scratch,
                           error));
    }
    return WEFT_OK;
}

static weft_status bucket_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                               void *scratch, weft_error *error)
{
    const bucket *b = self;
    int32_t *offsets = scratch;
    void *below = (char *)scratch + b->scratch;
    WEFT_TRY(find_offsets(b, i, offsets, below, error));
    for (int w = 0; w < n_wants; w++)
        WEFT_TRY(read_want(b, i, &wants[w], offsets, below, error));
    return WEFT_OK;
}

static const weft_chain_kind bucket_kind = {
    .name = "bucket", .read = bucket_read, .close = bucket_close};

/* ---- what is asked for ------------------------------------------------------------------------------ */

static bool is_row(const weft_field *f)
{
    return f->is_ragged && f->shape.n_dims >= 1;
}

static weft_status find_field(const weft_chain *chain, const char *name, int *field,
                              weft_error *error)
{
    int n = 0, named = name != NULL ? weft_chain_field(chain, name) : -1;
    for (int f = chain->found.n_fields - 1; f >= 0; f--)
        if (is_row(&chain->found.fields[f])) n++, *field = f;
    if (named >= 0 && is_row(&chain->found.fields[named])) *field = named;
    if (n == 1 && (name == NULL || named == *field)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_chain_bucket: %d fields have other sizes in each record%s%.80s%s, and "
                     "it takes one; open it with those of one size alone",
                     n, name ? ", and of " : "", name ? name : "", name ? " is asked" : "");
}

static weft_status check(const weft_chain *chain, const weft_bucket_options *o, weft_error *error)
{
    WEFT_GIVEN_RANGE(o->values, 1, INT64_C(1) << 30, error);
    WEFT_GIVEN_RANGE(o->look_ahead, 0, INT64_C(1) << 20, error);
    WEFT_GIVEN_RANGE(o->n_threads, 0, 64, error);
    WEFT_TRY(weft_chain_check_fixed(chain, "weft_chain_bucket", "an index is of one",
                                    "make buckets first and shuffle them then", error));
    for (int f = 0; f < chain->found.n_fields; f++)
        if (!chain->found.fields[f].is_ragged &&
            chain->found.fields[f].shape.n_dims + 1 >= WEFT_MAX_DIMS)
            return weft_fail(
                error, WEFT_USAGE,
                "weft_chain_bucket: %.80s has %d dims, and with rows and batch at most "
                "%d can be; leave it out",
                chain->found.fields[f].name, chain->found.fields[f].shape.n_dims, WEFT_MAX_DIMS);
    if (chain->found.n_fields < WEFT_MAX_FIELDS && weft_chain_field(chain, offsets_name) < 0)
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_chain_bucket: records have %d fields, and with \"offsets\", which none "
                     "may be called, at most %d can be; leave some out",
                     chain->found.n_fields, WEFT_MAX_FIELDS);
}

/* A field of records as one of buckets: dims[0] is a bucket's own. */
static void add_field(bucket *b, int f, weft_chain_found *found)
{
    const weft_field *from = &b->operand->found.fields[f];
    weft_field *to = &found->fields[b->n_fields];
    const bool is_ragged = f == b->field;
    *to = (weft_field){.name = from->name,
                       .dtype = from->dtype,
                       .is_unnamed = from->is_unnamed,
                       .ids = from->ids,
                       .mend = from->mend,
                       .labels = from->labels,
                       .n_labels = from->n_labels};
    to->shape.dims[0] = is_ragged ? (weft_dim){value_dim, b->values} : (weft_dim){row_dim, b->rows};
    to->shape.n_dims = 1;
    for (int d = is_ragged; d < from->shape.n_dims; d++)
        to->shape.dims[to->shape.n_dims++] = from->shape.dims[d];
    b->width[b->n_fields] = (size_t)weft_field_count(from);
    b->of[b->n_fields++] = f;
}

static weft_status make(bucket *b, weft_chain **chain, weft_error *error)
{
    char setting[240], digits[WEFT_HASH_DIGITS + 1];
    const weft_packing *packing = &b->index.packing;
    weft_chain_found found = {.records = packing->n_windows};
    int64_t used = 0;
    for (int64_t w = 0, at = 0; w < packing->n_windows; at = packing->ends[w++])
        if (packing->ends[w] - at > b->rows) b->rows = packing->ends[w] - at;
    for (int64_t p = 0; p < packing->n_pieces; p++)
        used += packing->pieces[p].length;
    for (int f = 0; f < b->operand->found.n_fields; f++)
        add_field(b, f, &found);
    found.fields[b->n_fields] = (weft_field){
        .name = offsets_name, .dtype = WEFT_I32, .shape = {1, {{end_dim, b->rows + 1}}}};
    b->of[b->n_fields++] = OFFSETS;
    found.n_fields = b->n_fields;
    b->scratch = ((size_t)b->rows + 1) * sizeof(int32_t);
    b->scratch = (b->scratch + 63) / 64 * 64;
    found.scratch_bytes = b->scratch + b->operand->found.scratch_bytes;
    const weft_hash hash = weft_pack_index_hash(&b->index);
    weft_hash_print(&hash, digits);
    /* in tenths of a percent, of whole numbers: the same on every machine */
    const int64_t full = (int64_t)((unsigned __int128)used * 1000 /
                                   ((unsigned __int128)packing->n_windows * (uint64_t)b->values));
    snprintf(setting, sizeof setting, "%lld of %.80s, %lld rows, %lld.%lld %% full, index %.16s",
             (long long)b->values, b->operand->found.fields[b->field].name, (long long)b->rows,
             (long long)full / 10, (long long)full % 10, digits);
    return weft_stage_make(&bucket_kind, b, &found, setting, chain, 1, chain, error);
}

weft_status weft_chain_bucket(weft_chain **chain, const weft_bucket_options *options,
                              weft_error *error)
{
    int field = -1;
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(*chain, options, error));
    WEFT_TRY(find_field(*chain, options->field, &field, error));
    bucket *b = calloc(1, sizeof *b);
    if (b == NULL) return weft_fail_memory(error, sizeof *b);
    b->operand = *chain, b->field = field, b->values = options->values;
    const weft_pack_order order = {.operand = *chain,
                                   .field = field,
                                   .seq = options->values,
                                   .look_ahead =
                                       options->look_ahead > 0 ? options->look_ahead : LOOK_AHEAD,
                                   .is_whole = true,
                                   .stage = "bucket",
                                   .folder = options->folder,
                                   .n_threads = options->n_threads};
    const weft_status status = weft_pack_index_find(&order, &b->index, error);
    if (status == WEFT_OK) return make(b, chain, error);
    bucket_close(b);
    return status;
}
