/* text: a text file read as a whole, so no line is too long for a buffer, and its rest is never taken for a line. */
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"

static weft_status fail_reading(const char *path, const char *what, const char *verb,
                                weft_error *error)
{
    return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO,
                     "cannot %s %s %.300s: %s; name a file that is there and may be read", verb,
                     what, path, strerror(errno));
}

static weft_status take(FILE *file, const char *path, const char *what, app_text *text,
                        weft_error *error)
{
    size_t room = 0, n;
    do {
        if (text->n + 1 >= room) {
            room = room ? 2 * room : 1 << 16;
            char *bytes = realloc(text->bytes, room);
            if (!bytes) return weft_fail_memory(error, room);
            text->bytes = bytes;
        }
        n = fread(text->bytes + text->n, 1, room - 1 - text->n, file);
        text->n += n;
    } while (n > 0);
    text->bytes[text->n] = '\0';
    return ferror(file) ? fail_reading(path, what, "read", error) : WEFT_OK;
}

/* A pipe would be waited for, and every process would have another part of it. */
static weft_status check_regular(const char *path, const char *what, weft_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || S_ISREG(facts.st_mode)) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "%s %.300s is not a regular file; name a file, not a %s", what,
                     path, S_ISDIR(facts.st_mode) ? "directory" : "device or pipe");
}

/* A line would end there, and the next begin nowhere. */
static weft_status check_lines(const app_text *text, const char *path, weft_error *error)
{
    const char *zero = memchr(text->bytes, 0, text->n);
    int line = 1;
    if (!zero) return WEFT_OK;
    for (const char *c = text->bytes; c < zero; c++)
        line += *c == '\n';
    return weft_fail(error, WEFT_USAGE,
                     "%.300s, line %d: a byte 0, which no text has; save it as text in UTF-8", path,
                     line);
}

static weft_status check(app_text *text, const char *path, weft_file_use use, weft_error *error)
{
    WEFT_TRY(weft_bytes_check(text->bytes, text->n, path, use, error));
    if (use == WEFT_FILE_TEXT) return WEFT_OK;
    const size_t mark = weft_text_mark(text->bytes, text->n);
    text->n -= mark;
    memmove(text->bytes, text->bytes + mark, text->n + 1);
    return use == WEFT_FILE_LINES ? check_lines(text, path, error) : WEFT_OK;
}

weft_status app_text_read(const char *path, const char *what, weft_file_use use, app_text *text,
                          weft_error *error)
{
    *text = (app_text){0};
    if (use == WEFT_FILE_TEXT) WEFT_TRY(check_regular(path, what, error));
    FILE *file = fopen(path, "rbe");
    if (!file) return fail_reading(path, what, "open", error);
    weft_status status = take(file, path, what, text, error);
    fclose(file);
    if (status == WEFT_OK) status = check(text, path, use, error);
    if (status == WEFT_OK) return WEFT_OK;
    free(text->bytes);
    *text = (app_text){0};
    return status;
}

char *app_text_line(app_text *text, char **at)
{
    char *line = *at ? *at : text->bytes, *end = text->bytes + text->n;
    if (line >= end) return NULL;
    char *stop = memchr(line, '\n', (size_t)(end - line));
    *at = stop ? stop + 1 : end;
    if (!stop) stop = end;
    if (stop > line && stop[-1] == '\r') stop--;
    *stop = '\0';
    return line;
}

weft_status app_json_read(const char *path, const char *what, json_t **json, weft_error *error)
{
    app_text text;
    json_error_t where;
    *json = NULL;
    WEFT_TRY(app_text_read(path, what, WEFT_FILE_JSON, &text, error));
    *json = json_loadb(text.bytes, text.n, JSON_REJECT_DUPLICATES, &where);
    free(text.bytes);
    if (*json) return WEFT_OK;
    WEFT_TRY(app_json_status(error));
    return weft_fail(error, WEFT_USAGE, "%.240s:%d:%d: this is no JSON: %.140s", path, where.line,
                     where.column, where.text);
}
