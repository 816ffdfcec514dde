/* lines.h (private): where the lines of a file begin, found in one read: 8 bytes a line. */
#ifndef WEFT_IO_LINES_H
#define WEFT_IO_LINES_H

#include "source.h"

typedef struct weft_lines {
    int64_t n, room;
    int64_t *begins; /* [n + 1]; the last is the end of the file */
} weft_lines;

/* weft_lines_find - lines that hold more than white space; quoted: a line break between " belongs to the line. Local. */
weft_status weft_lines_find(const weft_source *source, bool is_quoted, weft_lines *lines,
                            weft_error *error);
/* weft_lines_take - line i without its end, in memory of malloc, ended by a 0. Local. */
weft_status weft_lines_take(const weft_source *source, const weft_lines *lines, int64_t i,
                            char **line, int64_t *n, weft_error *error);
/* weft_lines_number - the number of record i as an editor counts lines, from 1: counted again, for a sentence. Local. */
int64_t weft_lines_number(const weft_source *source, const weft_lines *lines, int64_t i);

#endif
