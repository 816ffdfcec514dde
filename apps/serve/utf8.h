/* utf8.h: bytes of anybody as text that every reader of JSON takes. */
#ifndef WEFT_APPS_SERVE_UTF8_H
#define WEFT_APPS_SERVE_UTF8_H

#include <stddef.h>

/* serve_utf8 - bytes as UTF-8: each byte that is none of it becomes U+FFFD. text: room for 3 n bytes. returns how many there are. Local. */
size_t serve_utf8(const char *bytes, size_t n, char *text);

/* serve_utf8_cut - how many bytes at the end may become a letter when more come. Local. */
size_t serve_utf8_cut(const char *bytes, size_t n);

#endif
