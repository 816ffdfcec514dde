/* text.h: a text file as a whole, whatever its length and that of its lines: settings, JSON, vocabularies, books. */
#ifndef WEFT_APPS_TEXT_H
#define WEFT_APPS_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "weft/io.h"

typedef struct app_text {
    char *bytes; /* [n], and a 0 behind them; own it: free */
    size_t n;
} app_text;

/* app_text_read - all of a file, if it is of the kind that is wanted (weft_file_check). Without the byte order mark that it may
 * begin with, but for WEFT_FILE_TEXT, where it is part of the text. Of lines none has a byte 0. Local.
 * what     how sentences call it: "configuration file"
 * returns  WEFT_IO with the system's reason, WEFT_USAGE for another kind; nothing to be freed then */
weft_status app_text_read(const char *path, const char *what, weft_file_use use, app_text *text,
                          weft_error *error);

/* app_text_line - the next line of a text, ended by 0 in its place, without "\r\n"; NULL: there is none. *at: NULL at first; then
 * where the next one begins. Local. */
char *app_text_line(app_text *text, char **at);

/* app_json_read - a file of JSON, in which names are there once. Local. returns besides: WEFT_USAGE with line and column. Own *json:
 * json_decref; NULL on failure. */
weft_status app_json_read(const char *path, const char *what, json_t **json, weft_error *error);

#endif
