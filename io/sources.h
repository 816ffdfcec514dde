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

/* weft_text_windows - a text, or tokens of n_words words where that is not 0, as windows of seq + 1 (weft_text_open). Local. */
weft_status weft_text_windows(const char *path, int64_t n_words, int64_t seq, weft_chain **chain,
                              weft_error *error);

#endif
