/* page: the HTML file of a report.
 *
 * The page comes from the files in the folder page: CMake makes one text of them (page.cmake), with a line where the data goes.
 * Data are JSON in a script element that runs nothing. A browser ends such an element at "</script", whatever stands around
 * it: so no < of the data is written as itself.
 */
#include "page.h"

#include <stdlib.h>
#include <string.h>

/* Made from the folder page: its lines without their ends, and which of them the data replace. */
extern const char *const report_page_lines[];
extern const int report_page_n_lines, report_page_data_line;

static const char *escape_of(char c)
{
    switch (c) {
    case '<':
        return "\\u003c";
    case '>':
        return "\\u003e";
    case '&':
        return "\\u0026";
    default:
        return NULL;
    }
}

static char *escaped(const char *text)
{
    size_t n = 1, at = 0;
    for (const char *c = text; *c; c++)
        n += escape_of(*c) ? strlen(escape_of(*c)) : 1;
    char *safe = malloc(n);
    for (const char *c = text; safe && *c; c++) {
        const char *escape = escape_of(*c);
        const size_t bytes = escape ? strlen(escape) : 1;
        memcpy(safe + at, escape ? escape : c, bytes);
        at += bytes;
    }
    if (safe) safe[at] = '\0';
    return safe;
}

char *report_page_text(const json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(10));
    char *safe = text ? escaped(text) : NULL;
    free(text);
    return safe;
}

size_t report_page_bytes(const char *text)
{
    size_t n = strlen(text) + 1;
    for (int i = 0; i < report_page_n_lines; i++)
        if (i != report_page_data_line) n += strlen(report_page_lines[i]) + 1;
    return n;
}

void report_page_write(const char *text, FILE *file)
{
    for (int i = 0; i < report_page_n_lines; i++)
        fprintf(file, "%s\n", i == report_page_data_line ? text : report_page_lines[i]);
}

bool report_page_is_ours(const char *path)
{
    char begin[400];
    FILE *file = fopen(path, "re");
    if (!file) return false;
    begin[fread(begin, 1, sizeof begin - 1, file)] = '\0';
    fclose(file);
    return strstr(begin, "<meta name=\"generator\" content=\"weft report\"") != NULL;
}
