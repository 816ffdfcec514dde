/* parquet: flat columns of a Parquet file, and lists of one level.
 *
 * A row of a page cannot be found without those before it. So the wanted columns are decoded once, when the file is opened. They go one
 * after the other into a file without a name. Then any row is one read. Memory: a chunk of one column while it is decoded, and 8 bytes
 * a row for a column of texts or lists.
 *
 * A null is NaN in a column of floats, and an empty text or list; in one of whole numbers it is refused.
 */
#include "parquet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parquet_page.h"

typedef struct stored {
    int64_t begin;          /* in the file without a name */
    int64_t width;          /* bytes of an element */
    int64_t n, room, *ends; /* [rows] in elements, of texts and lists */
} stored;

typedef struct parquet {
    weft_parquet_meta meta;
    weft_source decoded;
    int64_t n, room;
    stored *columns; /* [n], those that are wanted: fields */
    weft_parquet_values out;
} parquet;

/* ---- rows ------------------------------------------------------------------------------------------- */

static bool put(weft_parquet_values *out, const void *bytes, int64_t n)
{
    if (out->n_bytes + n > out->room) {
        uint8_t *grown = realloc(out->bytes, (size_t)(out->room = 2 * out->room + n + 4096));
        if (grown == NULL) return false;
        out->bytes = grown;
    }
    if (n > 0) memcpy(out->bytes + out->n_bytes, bytes, (size_t)n);
    out->n_bytes += n;
    return true;
}

static bool put_null(weft_parquet_values *out, const weft_parquet_column *c)
{
    if (c->is_half) return put(out, &(uint16_t){0x7e00}, 2);
    if (c->type == WEFT_PARQUET_FLOAT) return put(out, &(float){__builtin_nanf("")}, 4);
    return put(out, &(double){__builtin_nan("")}, 8);
}

static bool may_be_null(const weft_parquet_column *c)
{
    return c->is_half || c->type == WEFT_PARQUET_FLOAT || c->type == WEFT_PARQUET_DOUBLE ||
           c->width == 0;
}

/* Where row `rows` of the column begins. */
static weft_status begin_row(parquet *p, const weft_parquet_column *c, stored *s, int64_t *rows,
                             int64_t elements, weft_error *error)
{
    ++*rows;
    if (c->width > 0 && c->most_rep == 0) return WEFT_OK;
    void *ends = s->ends;
    (void)p;
    const weft_status status = weft_grow(&ends, s->n, &s->room, sizeof *s->ends, error);
    s->ends = ends;
    if (status == WEFT_OK) s->ends[s->n++] = elements;
    return status;
}

/* Entries of a page as rows; elements: of texts bytes, of lists entries. */
static weft_status add_page(weft_table *table, parquet *p, const weft_parquet_column *c, stored *s,
                            const weft_parquet_pages *pages, int64_t *rows, int64_t *elements,
                            weft_error *error)
{
    const weft_parquet_values *v = &pages->values;
    int64_t next = 0;
    for (int64_t i = 0; i < pages->n; i++) {
        const uint32_t def = c->most_def > 0 ? pages->defs[i] : 0;
        const bool is_there = def == (uint32_t)c->most_def,
                   is_entry = c->most_rep == 0 || def >= (uint32_t)c->entry_def;
        if (c->most_rep == 0 || pages->reps[i] == 0)
            WEFT_TRY(begin_row(p, c, s, rows, *elements, error));
        if (*rows == 0)
            return weft_source_fail(&table->source, error,
                                    "column %s begins inside a list; it is damaged, write it again",
                                    c->name);
        if (!is_entry) continue;
        if (!is_there && !may_be_null(c))
            return weft_source_fail(
                &table->source, error,
                "column %s has no value in row %lld, and whole numbers have nothing that stands "
                "for none; fill it: table[\"%s\"].fill_null(0)",
                c->name, (long long)*rows - 1, c->name);
        const int64_t begin = c->width > 0           ? next * c->width
                              : next > 0 && is_there ? v->ends[next - 1]
                                                     : 0;
        const int64_t n = !is_there ? 0 : c->width > 0 ? c->width : v->ends[next] - begin;
        const bool is_good =
            is_there ? put(&p->out, v->bytes + begin, n) : c->width == 0 || put_null(&p->out, c);
        if (!is_good) return weft_fail_memory(error, (size_t)p->out.room);
        next += is_there;
        *elements += c->width > 0 ? 1 : n;
    }
    WEFT_TRY(weft_source_write(&p->decoded, (char *)p->out.bytes, (size_t)p->out.n_bytes, error));
    p->out.n_bytes = 0;
    return WEFT_OK;
}

static weft_status add_chunk(weft_table *table, parquet *p, const weft_parquet_column *c, stored *s,
                             int64_t group, int64_t *elements, weft_error *error)
{
    const weft_parquet_chunk *chunk = &p->meta.chunks[group * p->meta.n_leaves + c->leaf];
    const int64_t said = p->meta.group_rows[group];
    weft_parquet_pages pages;
    int64_t rows = 0;
    weft_status status = weft_parquet_pages_open(&table->source, c, chunk, &pages, error);
    if (status == WEFT_OK && c->most_rep == 0 && chunk->n_values != said)
        status = weft_source_fail(&table->source, error,
                                  "column %s has other than as many values as rows", c->name);
    while (status == WEFT_OK && (status = weft_parquet_pages_next(&pages, error)) == WEFT_OK &&
           pages.n > 0)
        status = add_page(table, p, c, s, &pages, &rows, elements, error);
    weft_parquet_pages_close(&pages);
    WEFT_TRY(status);
    if (rows == said) return WEFT_OK;
    return weft_source_fail(
        &table->source, error,
        "column %s has %lld rows in row group %lld, which has %lld; it is damaged, write it again",
        c->name, (long long)rows, (long long)group, (long long)said);
}

/* ---- columns ----------------------------------------------------------------------------------------- */

static const weft_dtype dtypes[] = {WEFT_U8,  WEFT_I32, WEFT_I64, WEFT_U8,
                                    WEFT_F32, WEFT_F64, WEFT_U8,  WEFT_U8};

static weft_status add_field(weft_table *table, const weft_parquet_column *c, stored *s,
                             weft_error *error)
{
    const bool is_bytes = c->type == WEFT_PARQUET_FIXED && !c->is_half;
    const int64_t dim = is_bytes ? c->width : -1;
    const bool has_dim = is_bytes || c->most_rep > 0;
    const weft_dtype dtype = c->is_half ? WEFT_F16 : dtypes[c->type];
    const weft_record_field *field =
        c->width == 0 ? weft_table_text(table, c->name, strlen(c->name))
                      : weft_table_field(table, c->name, strlen(c->name), dtype, has_dim, &dim);
    s->width = c->width == 0 || is_bytes ? 1 : c->width;
    return field != NULL ? WEFT_OK : weft_fail_memory(error, sizeof *field);
}

static weft_status add_column(weft_table *table, parquet *p, const weft_parquet_column *c,
                              weft_error *error)
{
    void *columns = p->columns;
    int64_t elements = 0;
    if (c->outside != NULL)
        return weft_source_fail(
            &table->source, error,
            "column %s has %s, which is not read; name other fields, or in Python write what is "
            "meant: pyarrow.parquet.write_table(table, NEW)",
            c->name, c->outside);
    const weft_status status = weft_grow(&columns, p->n, &p->room, sizeof *p->columns, error);
    p->columns = columns;
    if (status != WEFT_OK) return status;
    stored *s = &p->columns[p->n++];
    *s = (stored){.begin = lseek(p->decoded.file, 0, SEEK_END)};
    WEFT_TRY(add_field(table, c, s, error));
    for (int64_t g = 0; g < p->meta.n_groups; g++)
        WEFT_TRY(add_chunk(table, p, c, s, g, &elements, error));
    if (c->width == 0 || c->most_rep > 0) {
        int64_t rows = 0;
        WEFT_TRY(begin_row(p, c, s, &rows, elements, error)); /* the end of the last */
    }
    return WEFT_OK;
}

static weft_status parquet_open(weft_table *table, const char *wanted, weft_error *error)
{
    parquet *p = table->state = calloc(1, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    p->decoded = (weft_source){.path = table->source.path, .file = -1, .is_own = true};
    WEFT_TRY(weft_parquet_footer(&table->source, &p->meta, error));
    WEFT_TRY(weft_source_nameless(&p->decoded, error));
    for (int64_t i = 0; i < p->meta.n_columns; i++) {
        const weft_parquet_column *c = &p->meta.columns[i];
        if (weft_table_wants(wanted, c->name, strlen(c->name)))
            WEFT_TRY(add_column(table, p, c, error));
    }
    weft_parquet_values_free(&p->out);
    p->decoded.bytes = lseek(p->decoded.file, 0, SEEK_END);
    table->n_records = p->meta.n_rows;
    return WEFT_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------- */

static weft_status parquet_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                                 weft_error *error)
{
    const stored *s = &((const parquet *)table->state)->columns[field];
    (void)error;
    *dims = s->ends[record + 1] - s->ends[record];
    return WEFT_OK;
}

static weft_status parquet_read(const weft_table *table, int64_t record, int field, int64_t begin,
                                int64_t end, void *to, weft_error *error)
{
    const parquet *p = table->state;
    const stored *s = &p->columns[field];
    const weft_record_field *f = &table->fields[field];
    const int64_t row = f->n_dims > 0 && s->ends == NULL ? f->dims[0] : 1;
    const int64_t from = (s->ends != NULL ? s->ends[record] : record * row) + begin;
    return weft_source_read(&p->decoded, to, (end - begin) * s->width, s->begin + from * s->width,
                            error);
}

static void parquet_close(weft_table *table)
{
    parquet *p = table->state;
    for (int64_t i = 0; i < p->n; i++)
        free(p->columns[i].ends);
    free(p->columns);
    weft_parquet_values_free(&p->out);
    weft_parquet_meta_free(&p->meta);
    weft_source_close(&p->decoded);
    free(p);
}

static bool parquet_is(const unsigned char *head, size_t n)
{
    return n >= 4 && memcmp(head, "PAR1", 4) == 0;
}

const weft_record_kind weft_kind_parquet = {.name = "parquet",
                                            .endings = " .parquet ",
                                            .is = parquet_is,
                                            .open = parquet_open,
                                            .shape = parquet_shape,
                                            .read = parquet_read,
                                            .close = parquet_close};
