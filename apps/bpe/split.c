/* split: GPT-2's pattern, which wants to know what Unicode calls a letter and a number: PCRE2's business.
 *
 * PCRE2 looks through the whole of a text that may not be UTF-8, at every match. So a text is gone through in parts: a part
 * is looked through at its first match and taken for granted from then on. */
#include "split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "bpe.h"

enum { PART = 1 << 16 };

struct splitter {
    pcre2_code *code;
    pcre2_match_data *match;
};

static const char pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

void splitter_close(splitter **s)
{
    if (!*s) return;
    pcre2_match_data_free((*s)->match);
    pcre2_code_free((*s)->code);
    free(*s);
    *s = NULL;
}

weft_status splitter_open(splitter **out, weft_error *error)
{
    int code;
    PCRE2_SIZE at;
    splitter *s = *out = calloc(1, sizeof *s);
    if (s)
        s->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                &code, &at, NULL);
    if (s && s->code) s->match = pcre2_match_data_create_from_pattern(s->code, NULL);
    if (s && s->match) {
        (void)pcre2_jit_compile(s->code,
                                PCRE2_JIT_COMPLETE); /* where there is none, it interprets */
        return WEFT_OK;
    }
    splitter_close(out);
    return weft_fail_memory(error, sizeof *s);
}

/* Pieces of a part that is UTF-8 up to *end, at least; *end: where it is no more. */
static weft_status split_good(splitter *s, const unsigned char *text, size_t *end, piece_taker take,
                              void *with, weft_error *error)
{
    size_t at = 0;
    uint32_t how = 0;
    while (at < *end) {
        const int found = pcre2_match(s->code, text, *end, at, how, s->match, NULL);
        if (found <= PCRE2_ERROR_UTF8_ERR1 && found >= PCRE2_ERROR_UTF8_ERR21) {
            *end = pcre2_get_startchar(s->match);
            continue;
        }
        if (found < 0) return weft_fail_memory(error, PART); /* every character is matched */
        const PCRE2_SIZE *piece = pcre2_get_ovector_pointer(s->match);
        WEFT_TRY(take(with, text + at, piece[1] - at, error));
        at = piece[1];
        how = PCRE2_NO_UTF_CHECK;
    }
    return WEFT_OK;
}

static bool is_graphic(unsigned char c)
{
    return c > ' ' && c < 127;
}

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* White space begins a piece where it follows something else. */
size_t bpe_cut(const unsigned char *text, size_t bytes)
{
    for (size_t i = bytes; i-- > 1;)
        if (is_space(text[i]) && is_graphic(text[i - 1])) return i;
    return 0;
}

/* A part's length: a good place to cut, looked for further and further on. */
static size_t part_of(const unsigned char *text, size_t bytes)
{
    for (size_t n = PART; n < bytes; n *= 2) {
        const size_t cut = bpe_cut(text, n);
        if (cut > 0) return cut;
    }
    return bytes;
}

weft_status split(splitter *s, const unsigned char *text, size_t bytes, piece_taker take,
                  void *with, weft_error *error)
{
    for (size_t at = 0; at < bytes;) {
        const size_t end = at + part_of(text + at, bytes - at);
        while (at < end) {
            size_t good = end - at;
            WEFT_TRY(split_good(s, text + at, &good, take, with, error));
            at += good;
            if (at < end) WEFT_TRY(take(with, text + at++, 1, error));
        }
    }
    return WEFT_OK;
}
