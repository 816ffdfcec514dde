/* csv: a table of text: a line is a record, a column a field.
 *
 * Commas, semicolons or tabs separate: whichever the first line has most of. A cell in double quotes may hold separators and line
 * breaks, and a quote as two. The first line is a header when no cell of it is a number and none is empty. A column is of i64 when all its
 * cells are whole numbers, f64 when all are numbers (empty, NA, NaN, null: NaN), else of text. One read finds all of that, and where
 * lines begin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

enum { MOST_COLUMNS = 1 << 20 };
typedef enum cell_type { WHOLE, NUMBER, TEXT } cell_type;

typedef struct csv {
    weft_lines lines;
    int64_t first; /* 1: there is a header */
    char separator;
    int64_t n_columns, room;
    unsigned char *types; /* [n_columns] */
} csv;

typedef struct cell {
    const char *text;
    size_t n;
    bool has_quotes; /* "" in it stands for " */
} cell;

/* The next cell of a line that ends at `end`; *at: behind its separator, NULL behind the last. */
static cell next_cell(const char **at, const char *end, char separator)
{
    const char *c = *at;
    cell one = {c, 0, false};
    if (c < end && *c == '"') {
        one.text = ++c;
        while (c < end && (*c != '"' || (c + 1 < end && c[1] == '"'))) {
            if (*c == '"') c++, one.has_quotes = true;
            c++;
        }
        one.n = (size_t)(c - one.text);
        while (c < end && *c != separator)
            c++;
    } else {
        const char *stop = memchr(c, separator, (size_t)(end - c));
        c = stop != NULL ? stop : end;
        one.n = (size_t)(c - one.text);
    }
    *at = c < end ? c + 1 : NULL;
    return one;
}

static size_t copy_cell(const cell *one, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < one->n; i++) {
        if (one->text[i] == '"' && one->has_quotes) i++;
        if (to != NULL) to[n] = one->text[i];
        n++;
    }
    return n;
}

static cell_type type_of(const cell *one)
{
    int64_t whole;
    double number;
    if (weft_text_i64(one->text, one->n, &whole)) return WHOLE;
    return weft_text_f64(one->text, one->n, &number) ? NUMBER : TEXT;
}

static char find_separator(const char *line)
{
    static const char separators[] = ",;\t";
    int most = 0;
    char best = ',';
    for (const char *s = separators; *s != '\0'; s++) {
        int n = 0;
        bool is_inside = false;
        for (const char *c = line; *c != '\0'; c++) {
            is_inside ^= *c == '"';
            n += *c == *s && !is_inside;
        }
        if (n > most) most = n, best = *s;
    }
    return best;
}

/* ---- columns ------------------------------------------------------------------------------------- */

static weft_status name_columns(weft_table *table, csv *c, const char *line, int64_t n,
                                weft_error *error)
{
    const char *at = line;
    bool is_header = true;
    for (int64_t i = 0; at != NULL; i++) {
        const cell one = next_cell(&at, line + n, c->separator);
        is_header = is_header && type_of(&one) == TEXT;
        c->n_columns = i + 1;
    }
    c->first = is_header;
    if (c->n_columns > MOST_COLUMNS)
        return weft_source_fail(&table->source, error,
                                "its first line has more than 2^20 columns; is it a table?");
    c->types = calloc((size_t)c->n_columns, 1);
    if (c->types == NULL) return weft_fail_memory(error, (size_t)c->n_columns);
    at = line;
    for (int64_t i = 0; i < c->n_columns; i++) {
        char name[WEFT_RECORD_NAME];
        const cell one = next_cell(&at, line + n, c->separator);
        snprintf(name, sizeof name, "column%lld", (long long)i + 1);
        const bool is_named = is_header && one.n > 0;
        if (!weft_table_field(table, is_named ? one.text : name, is_named ? one.n : strlen(name),
                              WEFT_I64, 0, NULL))
            return weft_fail_memory(error, sizeof *table->fields);
    }
    return WEFT_OK;
}

static weft_status check_line(const weft_table *table, csv *c, int64_t i, const char *line,
                              int64_t n, weft_error *error)
{
    const char *at = line;
    int64_t column = 0;
    for (; at != NULL; column++) {
        const cell one = next_cell(&at, line + n, c->separator);
        if (column >= c->n_columns) continue;
        unsigned char *type = &c->types[column];
        if (*type == TEXT) continue;
        const unsigned char found = (unsigned char)type_of(&one);
        if (found > *type) *type = found;
    }
    if (column == c->n_columns) return WEFT_OK;
    return weft_source_fail(&table->source, error,
                            "line %lld has %lld cells, and the first has %lld; write all alike, "
                            "and a cell that holds the separator in \"quotes\"",
                            (long long)weft_lines_number(&table->source, &c->lines, i),
                            (long long)column, (long long)c->n_columns);
}

static weft_status check_lines(weft_table *table, csv *c, weft_error *error)
{
    for (int64_t i = 0; i < c->lines.n; i++) {
        char *line;
        int64_t n;
        WEFT_TRY(weft_lines_take(&table->source, &c->lines, i, &line, &n, error));
        weft_status status = WEFT_OK;
        if (i == 0) {
            c->separator = find_separator(line);
            status = name_columns(table, c, line, n, error);
        }
        if (status == WEFT_OK && i >= c->first) status = check_line(table, c, i, line, n, error);
        free(line);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status csv_open(weft_table *table, const char *wanted, weft_error *error)
{
    csv *c = table->state = calloc(1, sizeof *c);
    (void)wanted;
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    WEFT_TRY(weft_lines_find(&table->source, true, &c->lines, error));
    WEFT_TRY(check_lines(table, c, error));
    table->n_records = c->lines.n - c->first;
    for (int64_t i = 0; i < c->n_columns; i++) {
        weft_record_field *field = &table->fields[i];
        if (c->types[i] == NUMBER) field->dtype = WEFT_F64;
        if (c->types[i] != TEXT) continue;
        field->dtype = WEFT_U8;
        field->is_text = true;
        field->n_dims = 1;
        field->dims[0] = -1;
    }
    return WEFT_OK;
}

/* ---- cells ---------------------------------------------------------------------------------------- */

static weft_status take_cell(const weft_table *table, int64_t record, int field, char **line,
                             cell *one, weft_error *error)
{
    const csv *c = table->state;
    int64_t n;
    WEFT_TRY(weft_lines_take(&table->source, &c->lines, record + c->first, line, &n, error));
    const char *at = *line;
    for (int i = 0; i <= field && at != NULL; i++)
        *one = next_cell(&at, *line + n, c->separator);
    return WEFT_OK;
}

static weft_status csv_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                             weft_error *error)
{
    char *line;
    cell one = {"", 0, false};
    WEFT_TRY(take_cell(table, record, field, &line, &one, error));
    *dims = (int64_t)copy_cell(&one, NULL);
    free(line);
    return WEFT_OK;
}

static void put_text(const cell *one, char *whole, int64_t begin, int64_t end, void *to)
{
    copy_cell(one, whole);
    memcpy(to, whole + begin, (size_t)(end - begin));
}

static weft_status csv_read(const weft_table *table, int64_t record, int field, int64_t begin,
                            int64_t end, void *to, weft_error *error)
{
    char *line;
    cell one = {"", 0, false};
    WEFT_TRY(take_cell(table, record, field, &line, &one, error));
    const weft_record_field *f = &table->fields[field];
    if (f->is_text)
        put_text(&one, line, begin, end, to); /* never longer than what it is read from */
    else if (f->dtype == WEFT_I64)
        (void)weft_text_i64(one.text, one.n, to);
    else
        (void)weft_text_f64(one.text, one.n, to);
    free(line);
    return WEFT_OK;
}

static void csv_close(weft_table *table)
{
    csv *c = table->state;
    free(c->lines.begins);
    free(c->types);
    free(c);
}

const weft_record_kind weft_kind_csv = {.name = "csv",
                                        .endings = " .csv .tsv ",
                                        .open = csv_open,
                                        .shape = csv_shape,
                                        .read = csv_read,
                                        .close = csv_close};
