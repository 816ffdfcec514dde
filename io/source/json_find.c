/* json_find: a walk over a JSON object that checks all of it, and remembers where one value is.
 *
 * It goes by the grammar of RFC 8259, and refuses what it would have to think about. So whatever it takes, jansson takes too, and with
 * the same value: tests/io/json_find_test.c compares both.
 */
#include "json_find.h"

#include <string.h>

#include "weft/number.h"

enum {
    DEEPEST = 32,
    MOST_DIGITS = 18,   /* of a whole number: any of so many is an int64 */
    MOST_LETTERS = 40,  /* of a number */
    MOST_EXPONENT = 99, /* beyond, numbers may overflow */
};

typedef struct walk {
    const char *at, *end; /* *end is 0 */
} walk;

static void skip_blanks(walk *w)
{
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\t' || *w->at == '\n' || *w->at == '\r'))
        w->at++;
}

/* ---- texts ---------------------------------------------------------------------------------------- */

/* Whether any of eight bytes is a quote, a backslash, below a blank, or above 0x7F. */
static bool is_special(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    const uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    return (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | (word - ones * ' ') | word) &
           high;
}

static const char *plain_end(const char *at, const char *end)
{
    for (uint64_t word; end - at >= 8; at += 8) {
        memcpy(&word, at, sizeof word);
        if (is_special(word)) break;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= ' ' &&
           (unsigned char)*at < 0x80)
        at++;
    return at;
}

/* Bytes of a letter of UTF-8 above 0x7F; 0: it is none. */
static int letter_bytes(const char *at, const char *end)
{
    const unsigned char *u = (const unsigned char *)at;
    const int n = u[0] >= 0xC2 && u[0] <= 0xDF   ? 2
                  : u[0] >= 0xE0 && u[0] <= 0xEF ? 3
                  : u[0] >= 0xF0 && u[0] <= 0xF4 ? 4
                                                 : 0;
    if (n == 0 || end - at < n) return 0;
    for (int i = 1; i < n; i++)
        if ((u[i] & 0xC0) != 0x80) return 0;
    if ((u[0] == 0xE0 && u[1] < 0xA0) || (u[0] == 0xED && u[1] > 0x9F)) return 0;
    if ((u[0] == 0xF0 && u[1] < 0x90) || (u[0] == 0xF4 && u[1] > 0x8F)) return 0;
    return n;
}

/* Four digits behind \u; -1: they are none. */
static int hex(const char *at, const char *end)
{
    int sum = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        sum = 16 * sum + digit;
    }
    return sum;
}

static int put_letter(int32_t code, char to[4])
{
    if (code < 0x80) return to[0] = (char)code, 1;
    const int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(first[n] | code);
    return n;
}

/* What an escape stands for, at its backslash: to [4], *n bytes. returns the bytes it has itself; 0: it is none */
static int escape(const char *at, const char *end, char to[4], int *n)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = end - at >= 2 && at[1] ? strchr(letters, at[1]) : NULL;
    *n = 1;
    if (letter != NULL) return to[0] = meant[letter - letters], 2;
    if (end - at < 2 || at[1] != 'u') return 0;
    int32_t code = hex(at + 2, end);
    if (code < 0 || (code >= 0xDC00 && code <= 0xDFFF)) return 0;
    if (code < 0xD800 || code > 0xDBFF) return *n = put_letter(code, to), 6;
    const int low = end - at >= 12 && at[6] == '\\' && at[7] == 'u' ? hex(at + 8, end) : -1;
    if (low < 0xDC00 || low > 0xDFFF) return 0;
    *n = put_letter(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), to);
    return 12;
}

/* From behind the first quote to behind the last. */
static bool walk_text(walk *w, weft_json_value *value)
{
    char letter[4];
    int made;
    *value = (weft_json_value){.kind = WEFT_JSON_TEXT, .begin = w->at};
    for (;;) {
        const char *end = plain_end(w->at, w->end);
        value->n += end - w->at;
        w->at = end;
        if (end == w->end || (unsigned char)*end < ' ') return false;
        if (*end == '"') break;
        const bool is_escape = *end == '\\';
        const int n = is_escape ? escape(end, w->end, letter, &made) : letter_bytes(end, w->end);
        if (n == 0) return false;
        value->has_escapes |= is_escape;
        value->n += is_escape ? made : n;
        w->at += n;
    }
    value->end = w->at++;
    return true;
}

void weft_json_take_text(const weft_json_value *value, int64_t begin, int64_t end, char *to)
{
    const char *at = value->begin;
    char letter[4];
    if (!value->has_escapes) {
        memcpy(to, at + begin, (size_t)(end - begin));
        return;
    }
    for (int64_t done = 0; done < end;) {
        const char *slash = memchr(at, '\\', (size_t)(value->end - at));
        const char *from = at;
        int64_t n = (slash ? slash : value->end) - at;
        int made = 0;
        if (n == 0)
            at += escape(at, value->end, letter, &made), from = letter, n = made;
        else
            at += n;
        const int64_t low = begin > done ? begin - done : 0, high = end - done < n ? end - done : n;
        if (low < high) memcpy(to + (done + low - begin), from + low, (size_t)(high - low));
        done += n;
    }
}

/* ---- numbers -------------------------------------------------------------------------------------- */

static int64_t count_digits(walk *w)
{
    const char *begin = w->at;
    while (*w->at >= '0' && *w->at <= '9')
        w->at++;
    return w->at - begin;
}

static bool walk_exponent(walk *w)
{
    int64_t exponent = 0;
    w->at++;
    if (*w->at == '+' || *w->at == '-') w->at++;
    const char *begin = w->at;
    if (count_digits(w) == 0) return false;
    for (const char *c = begin; c < w->at && exponent <= MOST_EXPONENT; c++)
        exponent = 10 * exponent + (*c - '0');
    return exponent <= MOST_EXPONENT;
}

static bool walk_number(walk *w, weft_json_value *value)
{
    *value = (weft_json_value){.kind = WEFT_JSON_WHOLE, .begin = w->at};
    if (*w->at == '-') w->at++;
    const char first = *w->at;
    const int64_t digits = count_digits(w);
    if (digits == 0 || (digits > 1 && first == '0')) return false;
    if (*w->at == '.') {
        w->at++;
        value->kind = WEFT_JSON_REAL;
        if (count_digits(w) == 0) return false;
    }
    if (*w->at == 'e' || *w->at == 'E') {
        value->kind = WEFT_JSON_REAL;
        if (!walk_exponent(w)) return false;
    }
    value->end = w->at;
    return value->kind == WEFT_JSON_WHOLE ? digits <= MOST_DIGITS
                                          : value->end - value->begin <= MOST_LETTERS;
}

static int64_t whole(const char *at, const char *end)
{
    const bool is_minus = *at == '-';
    int64_t sum = 0;
    for (at += is_minus; at < end; at++)
        sum = 10 * sum + (*at - '0');
    return is_minus ? -sum : sum;
}

/* Few digits and few places behind the point: both parts are exact, so the quotient is rounded once. */
static bool short_real(const char *at, const char *end, double *number)
{
    enum { MOST = 15 };
    static const double tens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const bool is_minus = *at == '-';
    int64_t sum = 0;
    int digits = 0, behind = 0;
    bool has_point = false;
    for (at += is_minus; at < end; at++) {
        const bool is_point = *at == '.';
        has_point |= is_point;
        if (is_point) continue;
        if (*at < '0' || *at > '9' || ++digits > MOST) return false;
        sum = 10 * sum + (*at - '0');
        behind += has_point;
    }
    const double size = (double)sum / tens[behind];
    *number = is_minus ? -size : size;
    return true;
}

static double real(const char *at, const char *end)
{
    char copy[MOST_LETTERS + 1];
    double number = 0;
    const char *digits = at + (*at == '-');
    while (digits < end && *digits >= '0' && *digits <= '9')
        digits++;
    if (digits == end) return (double)whole(at, end);
    if (short_real(at, end, &number)) return number;
    memcpy(copy, at, (size_t)(end - at));
    copy[end - at] = '\0';
    (void)weft_number_read(copy, &number);
    return number;
}

static void put(const char *at, const char *end, weft_dtype dtype, void *to)
{
    if (dtype == WEFT_F64)
        *(double *)to = real(at, end);
    else
        *(int64_t *)to = whole(at, end);
}

void weft_json_take_numbers(const weft_json_value *value, weft_dtype dtype, int64_t begin,
                            int64_t end, void *to)
{
    const char *at = value->begin;
    if (value->kind != WEFT_JSON_ROW) {
        put(at, value->end, dtype, to);
        return;
    }
    for (int64_t i = 0; i < end; i++) {
        at += strspn(at, " \t\r\n,");
        const size_t n = strcspn(at, " \t\r\n,]");
        if (i >= begin) put(at, at + n, dtype, (char *)to + 8 * (i - begin));
        at += n;
    }
}

/* ---- values --------------------------------------------------------------------------------------- */

static bool walk_value(walk *w, int deep, weft_json_value *value);

static bool walk_word(walk *w, const char *word, weft_json_kind kind, weft_json_value *value)
{
    const size_t n = strlen(word);
    if (w->end - w->at < (int64_t)n || memcmp(w->at, word, n) != 0) return false;
    *value = (weft_json_value){.kind = kind, .begin = w->at, .end = w->at + n};
    w->at += n;
    return true;
}

/* Behind the bracket. */
static bool walk_row(walk *w, int deep, weft_json_value *value)
{
    weft_json_value one;
    *value = (weft_json_value){.kind = WEFT_JSON_ROW, .begin = w->at, .is_whole = true};
    skip_blanks(w);
    for (bool is_first = true; *w->at != ']' || !is_first; is_first = false) {
        if (!walk_value(w, deep + 1, &one)) return false;
        value->n++;
        value->is_whole &= one.kind == WEFT_JSON_WHOLE;
        if (one.kind != WEFT_JSON_WHOLE && one.kind != WEFT_JSON_REAL)
            value->kind = WEFT_JSON_OTHER;
        skip_blanks(w);
        if (*w->at == ']') break;
        if (*w->at++ != ',') return false;
        skip_blanks(w);
    }
    value->end = w->at++;
    return true;
}

/* Behind the brace; of the key's value, where one is asked for. */
static bool walk_object(walk *w, int deep, const char *key, weft_json_value *found)
{
    weft_json_value name, one;
    const size_t length = key ? strlen(key) : 0;
    skip_blanks(w);
    if (*w->at == '}') return w->at++, true;
    for (;;) {
        if (*w->at++ != '"' || !walk_text(w, &name) || name.has_escapes) return false;
        skip_blanks(w);
        if (*w->at++ != ':') return false;
        skip_blanks(w);
        if (!walk_value(w, deep + 1, &one)) return false;
        if (key != NULL && (size_t)name.n == length && memcmp(name.begin, key, length) == 0)
            *found = one;
        skip_blanks(w);
        if (*w->at == '}') return w->at++, true;
        if (*w->at++ != ',') return false;
        skip_blanks(w);
    }
}

/* The byte behind the text is 0, so one look is safe where the text is at its end. */
static bool walk_value(walk *w, int deep, weft_json_value *value)
{
    if (deep > DEEPEST || w->at >= w->end) return false;
    switch (*w->at) {
    case '"':
        w->at++;
        return walk_text(w, value);
    case '[':
        w->at++;
        return walk_row(w, deep, value);
    case '{':
        *value = (weft_json_value){.kind = WEFT_JSON_OTHER, .begin = w->at++};
        return walk_object(w, deep, NULL, NULL);
    case 't':
        return walk_word(w, "true", WEFT_JSON_BOOLEAN, value);
    case 'f':
        return walk_word(w, "false", WEFT_JSON_BOOLEAN, value);
    case 'n':
        return walk_word(w, "null", WEFT_JSON_NULL, value);
    default:
        return walk_number(w, value);
    }
}

bool weft_json_find(const char *line, int64_t n, const char *key, weft_json_value *value)
{
    walk w = {line, line + n};
    *value = (weft_json_value){.kind = WEFT_JSON_ABSENT};
    skip_blanks(&w);
    if (w.at >= w.end || *w.at++ != '{' || !walk_object(&w, 0, key, value)) return false;
    skip_blanks(&w);
    return w.at == w.end;
}
