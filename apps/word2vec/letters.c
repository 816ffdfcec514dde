/* letters: what a letter is, and which is its small one, is PCRE2's business. */
#include "letters.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

/* Joiners stand within words of Persian and of the scripts of India. A mark begins no word: behind a sign it belongs to that. */
static const char word[] = "['\\p{L}]['\\p{L}\\p{M}\\x{200C}\\x{200D}]*+";
/* What is replaced: an apostrophe between letters; a sigma at the end of a word; a large letter. */
static const char large[] = "((?<=[\\p{L}\\p{M}])\\x{2019}(?=\\p{L}))|"
                            "((?<=[\\p{L}\\p{M}])\\x{03A3}(?![\\p{L}\\p{M}]))|[\\p{Lu}\\p{Lt}]";
static const char small[] = "${1:+':${2:+\xcf\x82:\\L$0}}";

struct letters {
    pcre2_code *word, *large;
    pcre2_match_data *match;
};

void letters_close(letters **l)
{
    if (!*l) return;
    pcre2_match_data_free((*l)->match);
    pcre2_code_free((*l)->word);
    pcre2_code_free((*l)->large);
    free(*l);
    *l = NULL;
}

static pcre2_code *compile(const char *pattern)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *made = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (made)
        (void)pcre2_jit_compile(made, PCRE2_JIT_COMPLETE); /* where there is none, it interprets */
    return made;
}

weft_status letters_open(letters **out, weft_error *error)
{
    letters *l = *out = calloc(1, sizeof *l);
    if (l) {
        l->word = compile(word);
        l->large = compile(large);
        l->match = pcre2_match_data_create(3, NULL);
        if (l->word && l->large && l->match) return WEFT_OK;
    }
    letters_close(out);
    return weft_fail_memory(error, sizeof *l);
}

/* The whole text is looked through here, and taken for granted from then on. */
static weft_status check_utf8(const letters *l, const char *text, size_t bytes, const char *what,
                              weft_error *error)
{
    const int found = pcre2_match(l->word, (PCRE2_SPTR)text, bytes, 0, 0, l->match, NULL);
    if (found > PCRE2_ERROR_UTF8_ERR1 || found < PCRE2_ERROR_UTF8_ERR21) return WEFT_OK;
    const size_t at = pcre2_get_startchar(l->match);
    return weft_fail(error, WEFT_USAGE,
                     "%.250s is no UTF-8: byte %zu of it, 0x%02x, begins no letter and no sign; "
                     "convert it, as iconv -f LATIN1 -t UTF-8 does",
                     what, at, (unsigned char)text[at]);
}

/* Most large letters of many texts: what follows then has few to look for. */
static void fold_plain(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] >= 'A' && text[i] <= 'Z') text[i] = (char)(text[i] | 0x20);
}

weft_status letters_fold(const letters *l, char **text, size_t *bytes, const char *what,
                         weft_error *error)
{
    WEFT_TRY(check_utf8(l, *text, *bytes, what, error));
    fold_plain(*text, *bytes);
    const uint32_t how = PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED |
                         PCRE2_SUBSTITUTE_UNSET_EMPTY | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH |
                         PCRE2_NO_UTF_CHECK;
    for (size_t room = *bytes + 64;;) {
        char *folded = malloc(room);
        if (!folded) return weft_fail_memory(error, room);
        PCRE2_SIZE n = room;
        const int found =
            pcre2_substitute(l->large, (PCRE2_SPTR)*text, *bytes, 0, how, l->match, NULL,
                             (PCRE2_SPTR)small, PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)folded, &n);
        if (found >= 0) {
            free(*text);
            *text = folded;
            *bytes = n;
            return WEFT_OK;
        }
        free(folded);
        if (found != PCRE2_ERROR_NOMEMORY || n <= room) return weft_fail_memory(error, room);
        room = n; /* a few small letters are longer than the large ones */
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '\'';
}

/* Most words of many texts are plain letters between plain signs: those are seen without a match, ten times as fast. */
const char *letters_next(const letters *l, const char *text, size_t bytes, size_t *at, size_t *n)
{
    size_t begin = *at;
    while (begin < bytes && (unsigned char)text[begin] < 0x80 && !is_plain(text[begin]))
        begin++;
    size_t end = begin;
    while (end < bytes && is_plain(text[end]))
        end++;
    if (end == begin || (end < bytes && (unsigned char)text[end] >= 0x80)) {
        if (pcre2_match(l->word, (PCRE2_SPTR)text, bytes, begin, PCRE2_NO_UTF_CHECK, l->match,
                        NULL) < 0)
            return NULL;
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(l->match);
        begin = found[0], end = found[1];
    }
    *at = end;
    *n = end - begin;
    return text + begin;
}
