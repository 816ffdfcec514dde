/* json_find.h (private): one value of a JSON object, found in its text without making anything of the others.
 *
 *     weft_json_value text;
 *     if (weft_json_find(line, n, "text", &text) && text.kind == WEFT_JSON_TEXT) weft_json_take_text(&text, 0, text.n, to);
 *
 * The whole text is checked by the grammar. So the value is that of a parser that builds a tree: jansson, whose numbers and sentences hold.
 * Text that is rare, or no JSON, is left to it.
 */
#ifndef WEFT_IO_JSON_FIND_H
#define WEFT_IO_JSON_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/dtype.h"

typedef enum weft_json_kind {
    WEFT_JSON_ABSENT, /* the object has no such key */
    WEFT_JSON_NULL,
    WEFT_JSON_BOOLEAN,
    WEFT_JSON_WHOLE,
    WEFT_JSON_REAL,
    WEFT_JSON_TEXT,
    WEFT_JSON_ROW,  /* of numbers */
    WEFT_JSON_OTHER /* an object, a row of anything else */
} weft_json_kind;

typedef struct weft_json_value {
    weft_json_kind kind;
    const char *begin, *end; /* in the line; of a text and a row what stands inside */
    int64_t n;               /* bytes of a text, numbers of a row */
    bool has_escapes;        /* of a text */
    bool is_whole;           /* of a row: each number is whole, or there is none */
} weft_json_value;

/* weft_json_find - the value of a key, of several the last. line [n + 1], ended by a 0. Local. returns false for what is no object of
 * good JSON, and for some that are: keys with escapes, numbers of many digits, values deep inside */
bool weft_json_find(const char *line, int64_t n, const char *key, weft_json_value *value);
/* weft_json_take_text - bytes [begin, end) of a text. Local. */
void weft_json_take_text(const weft_json_value *value, int64_t begin, int64_t end, char *to);
/* weft_json_take_numbers - numbers [begin, end) of a row, or the number itself: of WEFT_I64 where all are whole, else of WEFT_F64. Local. */
void weft_json_take_numbers(const weft_json_value *value, weft_dtype dtype, int64_t begin,
                            int64_t end, void *to);

#endif
