/* sources.h (private): the functions that open files of each format as records, for the table in sources.c. */
#ifndef WEFT_IO_SOURCES_H
#define WEFT_IO_SOURCES_H

#include "chain.h"

#define WEFT_SOURCE(name)                                                                          \
    weft_status weft_##name##_source(const char *path, const weft_open_options *options,           \
                                     weft_chain **chain, weft_error *error)
WEFT_SOURCE(text);    /* one record, "text" [byte], ragged: the whole file */
WEFT_SOURCE(tokens);  /* one record, "tokens" [token], ragged */
WEFT_SOURCE(idx);     /* "image" [pixel], or "label" */
WEFT_SOURCE(records); /* what source/records.h reads: options->format, or what is seen */

#endif
