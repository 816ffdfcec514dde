/* parquet_meta: the footer of a Parquet file: which columns there are, and where their chunks lie.
 *
 * source  parquet.thrift, the format's own description. Flat columns and lists of one level can be read: those of three levels as they
 * are written today, and of two as they were. A column that is none of these says why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parquet.h"

enum {
    REQUIRED,
    OPTIONAL,
    REPEATED,
    DECIMAL = 5,
    UINT_32 = 13,
    UINT_64 = 14,
    MOST_LEAVES = 1 << 16
};

typedef struct element {
    const char *name;
    int64_t name_n, type, width, repeats, n_children, converted;
    bool is_half;
} element;

static void read_logical(weft_thrift *t, element *e)
{
    int id = 0, type;
    while (weft_thrift_field(t, &id, &type)) {
        e->is_half = id == 15;
        if (id == 5) e->converted = DECIMAL;
        weft_thrift_skip(t, type);
    }
}

static void read_element(weft_thrift *t, element *e)
{
    int id = 0, type;
    *e = (element){.name = "", .type = -1, .converted = -1};
    while (weft_thrift_field(t, &id, &type)) {
        if (id == 1)
            e->type = weft_thrift_number(t, type);
        else if (id == 2)
            e->width = weft_thrift_number(t, type);
        else if (id == 3)
            e->repeats = weft_thrift_number(t, type);
        else if (id == 4)
            e->name = weft_thrift_text(t, type, &e->name_n);
        else if (id == 5)
            e->n_children = weft_thrift_number(t, type);
        else if (id == 6)
            e->converted = weft_thrift_number(t, type);
        else if (id == 10 && type == WEFT_THRIFT_STRUCT)
            read_logical(t, e);
        else
            weft_thrift_skip(t, type);
    }
}

/* ---- the schema ----------------------------------------------------------------------------------- */

typedef struct schema {
    element *elements; /* [n], a parent before its children */
    int64_t n, at, leaves;
    bool is_bad;
} schema;

static void set_leaf(weft_parquet_column *c, const element *e)
{
    static const int widths[] = {1, 4, 8, 12, 4, 8, 0, 0};
    if (e->type < 0 || e->type > WEFT_PARQUET_FIXED) {
        c->outside = "a type that is unknown";
        return;
    }
    c->type = (weft_parquet_type)e->type;
    c->width = c->type == WEFT_PARQUET_FIXED && e->width > 0 && e->width <= 1 << 20
                   ? (int)e->width
                   : widths[c->type];
    c->is_half = e->is_half && c->width == 2;
    if (c->type == WEFT_PARQUET_INT96) c->outside = "a time of 96 bits";
    if (c->type == WEFT_PARQUET_FIXED && c->width == 0)
        c->outside = "pieces of bytes of a length that cannot be";
    if (e->converted == DECIMAL) c->outside = "decimal numbers";
    if (e->converted == UINT_32 || e->converted == UINT_64)
        c->outside = "unsigned numbers of 32 or 64 bits";
}

/* Past an element and all below it; counts the leaves. */
static const element *walk(schema *s, int depth)
{
    if (s->at >= s->n || depth > 64) {
        s->is_bad = true;
        return &s->elements[0];
    }
    const element *e = &s->elements[s->at++];
    if (e->n_children == 0) s->leaves++;
    for (int64_t i = 0; i < e->n_children && !s->is_bad; i++)
        (void)walk(s, depth + 1);
    return e;
}

/* A list of one level has one leaf under one that repeats. */
static void set_group(schema *s, weft_parquet_column *c, const element *outer)
{
    const int64_t begin = s->at - 1;
    const element *e = outer;
    int n_repeats = 0, def = 0;
    while (e->n_children == 1 && begin + 1 < s->n) {
        def += e->repeats != REQUIRED;
        n_repeats += e->repeats == REPEATED;
        if (e->repeats == REPEATED) c->entry_def = def;
        e++;
        if (e >= s->elements + s->n) return;
    }
    def += e->repeats != REQUIRED;
    n_repeats += e->repeats == REPEATED;
    if (e->repeats == REPEATED) c->entry_def = def;
    c->most_def = def;
    c->most_rep = n_repeats;
    if (e->n_children != 0)
        c->outside = "a group of columns";
    else
        set_leaf(c, e);
    if (n_repeats > 1) c->outside = "a list of lists";
    if (c->outside == NULL && n_repeats == 1 && c->width == 0) c->outside = "a list of texts";
    if (c->outside == NULL && n_repeats == 1 && c->type == WEFT_PARQUET_FIXED && !c->is_half)
        c->outside = "a list of pieces of bytes";
}

static weft_status read_columns(const weft_source *source, schema *s, weft_parquet_meta *meta,
                                weft_error *error)
{
    const int64_t n = s->n > 0 ? s->elements[0].n_children : 0;
    s->at = 1;
    for (int64_t i = 0; i < n && !s->is_bad && s->at < s->n; i++) {
        void *columns = meta->columns;
        const weft_status status =
            weft_grow(&columns, meta->n_columns, &meta->column_room, sizeof *meta->columns, error);
        meta->columns = columns;
        if (status != WEFT_OK) return status;
        weft_parquet_column c = {.leaf = (int)s->leaves};
        const element *e = &s->elements[s->at++];
        snprintf(c.name, sizeof c.name, "%.*s", (int)(e->name_n < 1000 ? e->name_n : 1000),
                 e->name);
        set_group(s, &c, e);
        s->at--;
        (void)walk(s, 0);
        meta->columns[meta->n_columns++] = c;
    }
    meta->n_leaves = s->leaves;
    if (!s->is_bad && s->at == s->n && meta->n_columns == n && n > 0 && s->leaves <= MOST_LEAVES)
        return WEFT_OK;
    return weft_source_fail(source, error, "its schema is damaged; write it again");
}

static weft_status read_schema(const weft_source *source, weft_thrift *t, int type,
                               weft_parquet_meta *meta, weft_error *error)
{
    int entry;
    schema s = {.n = weft_thrift_list(t, type, &entry)};
    s.elements = calloc((size_t)s.n + 1, sizeof *s.elements);
    if (s.elements == NULL) return weft_fail_memory(error, (size_t)s.n * sizeof *s.elements);
    for (int64_t i = 0; i < s.n; i++)
        read_element(t, &s.elements[i]);
    for (int64_t i = 0; i < s.n; i++)
        if (s.elements[i].n_children < 0 || s.elements[i].n_children > s.n) t->is_bad = true;
    if (entry != WEFT_THRIFT_STRUCT || meta->columns != NULL) t->is_bad = true;
    const weft_status status =
        t->is_bad ? weft_source_fail(source, error, "its schema is damaged; write it again")
                  : read_columns(source, &s, meta, error);
    free(s.elements);
    return status;
}

/* ---- row groups ------------------------------------------------------------------------------------ */

static void read_chunk_meta(weft_thrift *t, weft_parquet_chunk *c)
{
    int id = 0, type;
    int64_t pages = 0, dictionary = 0;
    while (weft_thrift_field(t, &id, &type)) {
        if (id == 4)
            c->codec = (int)weft_thrift_number(t, type);
        else if (id == 5)
            c->n_values = weft_thrift_number(t, type);
        else if (id == 7)
            c->bytes = weft_thrift_number(t, type);
        else if (id == 9)
            pages = weft_thrift_number(t, type);
        else if (id == 11)
            dictionary = weft_thrift_number(t, type);
        else
            weft_thrift_skip(t, type);
    }
    c->at = dictionary > 0 && dictionary < pages ? dictionary : pages;
}

static void read_chunk(weft_thrift *t, weft_parquet_chunk *c)
{
    int id = 0, type;
    *c = (weft_parquet_chunk){.codec = -1};
    while (weft_thrift_field(t, &id, &type)) {
        if (id == 1) t->is_bad = true; /* in another file */
        if (id == 3 && type == WEFT_THRIFT_STRUCT)
            read_chunk_meta(t, c);
        else
            weft_thrift_skip(t, type);
    }
}

static weft_status read_group(weft_thrift *t, weft_parquet_meta *meta, int64_t *rows,
                              weft_error *error)
{
    int id = 0, type, entry;
    const int64_t before = meta->n_chunks;
    while (weft_thrift_field(t, &id, &type)) {
        if (id == 3)
            *rows = weft_thrift_number(t, type);
        else if (id != 1)
            weft_thrift_skip(t, type);
        if (id != 1) continue;
        for (int64_t n = weft_thrift_list(t, type, &entry); n > 0 && !t->is_bad; n--) {
            void *chunks = meta->chunks;
            const weft_status status =
                weft_grow(&chunks, meta->n_chunks, &meta->chunk_room, sizeof *meta->chunks, error);
            meta->chunks = chunks;
            if (status != WEFT_OK) return status;
            read_chunk(t, &meta->chunks[meta->n_chunks++]);
        }
    }
    if (meta->n_chunks - before != meta->n_leaves || *rows < 0 || *rows > INT64_C(1) << 48)
        t->is_bad = true;
    return WEFT_OK;
}

static weft_status read_groups(weft_thrift *t, int type, weft_parquet_meta *meta, weft_error *error)
{
    int entry;
    for (int64_t n = weft_thrift_list(t, type, &entry); n > 0 && !t->is_bad; n--) {
        void *rows = meta->group_rows;
        const weft_status status =
            weft_grow(&rows, meta->n_groups, &meta->group_room, sizeof *meta->group_rows, error);
        meta->group_rows = rows;
        if (status != WEFT_OK) return status;
        meta->group_rows[meta->n_groups] = 0;
        WEFT_TRY(read_group(t, meta, &meta->group_rows[meta->n_groups], error));
        meta->n_groups++;
    }
    return WEFT_OK;
}

static weft_status read_meta(const weft_source *source, weft_thrift *t, weft_parquet_meta *meta,
                             weft_error *error)
{
    int id = 0, type;
    int64_t rows = 0;
    while (weft_thrift_field(t, &id, &type)) {
        if (id == 2)
            WEFT_TRY(read_schema(source, t, type, meta, error));
        else if (id == 3)
            meta->n_rows = weft_thrift_number(t, type);
        else if (id == 4)
            WEFT_TRY(read_groups(t, type, meta, error));
        else
            weft_thrift_skip(t, type);
    }
    for (int64_t g = 0; g < meta->n_groups; g++)
        rows += meta->group_rows[g];
    if (!t->is_bad && rows == meta->n_rows && meta->n_columns > 0) return WEFT_OK;
    return weft_source_fail(source, error,
                            "its footer is damaged, or in parts of other files; write it again");
}

weft_status weft_parquet_footer(const weft_source *source, weft_parquet_meta *meta,
                                weft_error *error)
{
    unsigned char tail[8];
    char *footer;
    if (source->bytes < 12)
        return weft_source_fail(source, error, "it is cut off: it has %lld bytes; get it again",
                                (long long)source->bytes);
    WEFT_TRY(weft_source_read(source, tail, 8, source->bytes - 8, error));
    if (memcmp(tail + 4, "PARE", 4) == 0)
        return weft_source_fail(source, error, "its footer is encrypted; write it without");
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return weft_source_fail(source, error,
                                "it does not end in PAR1, so it is cut off; get it again");
    const int64_t n =
        (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 | (int64_t)tail[3] << 24;
    if (n > source->bytes - 12)
        return weft_source_fail(
            source, error,
            "it says that its footer has %lld bytes, and has %lld in all; get it again",
            (long long)n, (long long)source->bytes);
    WEFT_TRY(weft_source_take(source, &footer, n, source->bytes - 8 - n, error));
    weft_thrift t = {(const uint8_t *)footer, (const uint8_t *)footer + n, false, 0};
    const weft_status status = read_meta(source, &t, meta, error);
    free(footer);
    return status;
}

void weft_parquet_meta_free(weft_parquet_meta *meta)
{
    free(meta->columns);
    free(meta->group_rows);
    free(meta->chunks);
}
