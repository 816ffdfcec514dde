/* lines: a file of text. Each line is a record. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "weft/io.h"

enum { CHUNK = 1 << 18 };

typedef struct scan {
    weft_lines *lines;
    int64_t begin; /* of the line under way */
    bool is_inside, is_blank, is_quoted;
} scan;

static weft_status add(weft_lines *lines, int64_t begin, weft_error *error)
{
    void *begins = lines->begins;
    const weft_status status =
        weft_grow(&begins, lines->n + 1, &lines->room, sizeof *lines->begins, error);
    lines->begins = begins;
    if (status == WEFT_OK) lines->begins[lines->n++] = begin;
    return status;
}

static weft_status end_line(scan *s, int64_t next, weft_error *error)
{
    if (!s->is_blank) WEFT_TRY(add(s->lines, s->begin, error));
    s->begin = next;
    s->is_blank = true;
    s->is_inside = false;
    return WEFT_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Without quotes, from line break to line break as memchr finds them. */
static weft_status scan_plain(scan *s, const char *bytes, int64_t n, int64_t at, weft_error *error)
{
    for (int64_t i = 0; i < n;) {
        const char *end = memchr(bytes + i, '\n', (size_t)(n - i));
        const int64_t stop = end != NULL ? end - bytes : n;
        while (s->is_blank && i < stop)
            s->is_blank = is_space(bytes[i++]);
        i = stop + 1;
        if (end != NULL) WEFT_TRY(end_line(s, at + stop + 1, error));
    }
    return WEFT_OK;
}

static weft_status scan_quoted(scan *s, const char *bytes, int64_t n, int64_t at, weft_error *error)
{
    for (int64_t i = 0; i < n; i++) {
        if (bytes[i] == '"') s->is_inside = !s->is_inside;
        s->is_blank = s->is_blank && is_space(bytes[i]) && bytes[i] != '\t'; /* that may separate */
        if (bytes[i] == '\n' && !s->is_inside) WEFT_TRY(end_line(s, at + i + 1, error));
    }
    return WEFT_OK;
}

static weft_status scan_all(const weft_source *source, scan *s, char *chunk, weft_error *error)
{
    for (int64_t at = 0, n; at < source->bytes; at += n) {
        n = source->bytes - at < CHUNK ? source->bytes - at : CHUNK;
        WEFT_TRY(weft_source_read(source, chunk, n, at, error));
        const int64_t mark = at == 0 ? (int64_t)weft_text_mark(chunk, (size_t)n) : 0;
        if (at == 0) s->begin = mark;
        WEFT_TRY(
            (s->is_quoted ? scan_quoted : scan_plain)(s, chunk + mark, n - mark, at + mark, error));
    }
    if (s->is_inside)
        return weft_source_fail(source, error,
                                "a \" in line %lld is not closed; double it where it belongs to "
                                "the text",
                                (long long)weft_lines_number(source, s->lines, -1));
    return end_line(s, source->bytes, error);
}

weft_status weft_lines_find(const weft_source *source, bool is_quoted, weft_lines *lines,
                            weft_error *error)
{
    scan s = {.lines = lines, .is_blank = true, .is_quoted = is_quoted};
    char *chunk = malloc(CHUNK);
    if (chunk == NULL) return weft_fail_memory(error, CHUNK);
    weft_status status = scan_all(source, &s, chunk, error);
    free(chunk);
    WEFT_TRY(status);
    WEFT_TRY(add(lines, source->bytes, error));
    lines->n--;
    return WEFT_OK;
}

/* Blank lines are no records, and stand behind the one before. */
static int64_t without_blank_lines(const char *line, int64_t n)
{
    for (;;) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            n--;
        int64_t last = n;
        while (last > 0 && line[last - 1] != '\n' && is_space(line[last - 1]))
            last--;
        if (last == 0 || line[last - 1] != '\n') return n;
        n = last;
    }
}

weft_status weft_lines_take(const weft_source *source, const weft_lines *lines, int64_t i,
                            char **line, int64_t *n, weft_error *error)
{
    const int64_t begin = lines->begins[i];
    WEFT_TRY(weft_source_take(source, line, lines->begins[i + 1] - begin, begin, error));
    *n = without_blank_lines(*line, lines->begins[i + 1] - begin);
    (*line)[*n] = '\0';
    return WEFT_OK;
}

int64_t weft_lines_number(const weft_source *source, const weft_lines *lines, int64_t i)
{
    const int64_t end = i >= 0 ? lines->begins[i] : source->bytes;
    int64_t number = 1;
    char chunk[4096];
    for (int64_t at = 0, n; at < end; at += n) {
        n = end - at < (int64_t)sizeof chunk ? end - at : (int64_t)sizeof chunk;
        if (weft_source_read(source, chunk, n, at, NULL) != WEFT_OK) break;
        for (int64_t k = 0; k < n; k++)
            number += chunk[k] == '\n';
    }
    return number;
}

/* ---- the kind ------------------------------------------------------------------------------------- */

static weft_status lines_open(weft_table *table, const char *wanted, weft_error *error)
{
    weft_lines *lines = table->state = calloc(1, sizeof *lines);
    (void)wanted;
    if (lines == NULL) return weft_fail_memory(error, sizeof *lines);
    WEFT_TRY(weft_lines_find(&table->source, false, lines, error));
    table->n_records = lines->n;
    return weft_table_text(table, "text", 4) ? WEFT_OK
                                             : weft_fail_memory(error, sizeof *table->fields);
}

static weft_status lines_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                               weft_error *error)
{
    char *line;
    (void)field;
    WEFT_TRY(weft_lines_take(&table->source, table->state, record, &line, dims, error));
    free(line);
    return WEFT_OK;
}

static weft_status lines_read(const weft_table *table, int64_t record, int field, int64_t begin,
                              int64_t end, void *to, weft_error *error)
{
    const weft_lines *lines = table->state;
    (void)field;
    return weft_source_read(&table->source, to, end - begin, lines->begins[record] + begin, error);
}

static void lines_close(weft_table *table)
{
    weft_lines *lines = table->state;
    free(lines->begins);
    free(lines);
}

const weft_record_kind weft_kind_lines = {.name = "lines",
                                          .endings = " .txt .text .md .log ",
                                          .open = lines_open,
                                          .shape = lines_shape,
                                          .read = lines_read,
                                          .close = lines_close};
