/* fields.c: letters of a saved program, and attributes field by field: for each kind of field how it is written and read, so that
 * it comes back bit by bit.
 */
#include "saved.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* ---- letters ----------------------------------------------------------------------------------- */

bool weft_saved_fail(weft_saved_text *t, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    weft_text_formatv(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)!weft_fail(t->error, WEFT_USAGE, "line %d of the saved program: %s", t->line, text);
    return false;
}

static void skip(weft_saved_text *t)
{
    while (*t->at == ' ')
        t->at++;
}

bool weft_saved_has(weft_saved_text *t, const char *text)
{
    skip(t);
    const size_t length = strlen(text);
    if (strncmp(t->at, text, length) != 0) return false;
    const bool is_word = isalnum((unsigned char)text[length - 1]) != 0;
    const char next = t->at[length];
    if (is_word && (isalnum((unsigned char)next) || next == '_')) return false;
    t->at += length;
    return true;
}

bool weft_saved_expect(weft_saved_text *t, const char *text)
{
    if (weft_saved_has(t, text)) return true;
    return weft_saved_fail(t, "\"%s\" stands where \"%.30s\" does in the file", text, t->at);
}

bool weft_saved_whole(weft_saved_text *t, int64_t least, int64_t most, int64_t *number)
{
    skip(t);
    const bool is_negative = *t->at == '-';
    const char *at = t->at + (is_negative ? 1 : 0);
    uint64_t read = 0;
    bool fits = isdigit((unsigned char)*at) != 0;
    for (; isdigit((unsigned char)*at); at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        fits = fits && read <= (UINT64_MAX - digit) / 10;
        read = 10 * read + digit;
    }
    fits = fits && read <= (uint64_t)INT64_MAX + (is_negative ? 1 : 0);
    *number = fits ? (int64_t)(is_negative ? -read : read) : 0;
    if (!fits || *number < least || *number > most)
        return weft_saved_fail(t, "\"%.30s\" is no whole number from %lld to %lld", t->at,
                               (long long)least, (long long)most);
    t->at = at;
    return true;
}

static bool is_plain(char c)
{
    return c != 0 && (isalnum((unsigned char)c) || strchr("_-./~'", c) != NULL);
}

void weft_saved_put(const char *text, FILE *file)
{
    bool all = text[0] != 0;
    for (const char *c = text; *c != 0; c++)
        all = all && is_plain(*c);
    if (all) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (const char *c = text; *c != 0; c++)
        fprintf(file, (unsigned char)*c < ' ' || *c == '"' || *c == '\\' ? "\\x%02x" : "%c",
                (unsigned char)*c);
    fputc('"', file);
}

static int digit_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands between quotes, into text [its length + 1]. False: it is not ended, or has a wrong escape. */
static bool unquote(weft_saved_text *t, char *text)
{
    for (t->at++; *t->at != '"'; t->at++) {
        if (*t->at == 0 || *t->at == '\n') return false;
        if (*t->at != '\\') {
            *text++ = *t->at;
            continue;
        }
        if (t->at[1] != 'x' || digit_of(t->at[2]) < 0 || digit_of(t->at[3]) < 0) return false;
        const int letter = 16 * digit_of(t->at[2]) + digit_of(t->at[3]);
        if (letter == 0) return false;
        *text++ = (char)letter;
        t->at += 3;
    }
    t->at++;
    *text = 0;
    return true;
}

bool weft_saved_word(weft_saved_text *t, const char **word)
{
    skip(t);
    const char *begin = t->at;
    size_t length = 0;
    if (*begin == '"')
        length = strcspn(begin + 1, "\"\n");
    else
        while (is_plain(begin[length]))
            length++;
    if (length == 0 && *begin != '"')
        return weft_saved_fail(t, "a name is missing before \"%.30s\"", begin);
    char *text = malloc(length + 1);
    bool is_read = text != NULL;
    if (is_read && *begin == '"') {
        is_read = unquote(t, text);
    } else if (is_read) {
        memcpy(text, begin, length);
        text[length] = 0;
        t->at += length;
    }
    *word = is_read ? weft_graph_intern(t->graph, text) : NULL;
    free(text);
    return *word != NULL || weft_saved_fail(t, "the text %.30s is not ended by \"", begin);
}

/* ---- kinds ------------------------------------------------------------------------------------- */

static bool read_name(weft_saved_text *t, void *field)
{
    return weft_saved_word(t, field);
}

static void put_exact(double number, FILE *file)
{
    fprintf(file, "%a", number);
}

static bool read_exact(weft_saved_text *t, double *number)
{
    const int length = weft_number_read(t->at, number);
    if (length == 0) return weft_saved_fail(t, "\"%.30s\" is no number", t->at);
    t->at += length;
    return true;
}

static void put_number(const void *field, FILE *file)
{
    put_exact(*(const double *)field, file);
}
static bool read_number(weft_saved_text *t, void *field)
{
    return read_exact(t, field);
}

static bool read_bool(weft_saved_text *t, void *field)
{
    *(bool *)field = weft_saved_has(t, "true");
    return *(bool *)field || weft_saved_expect(t, "false");
}

static bool read_int(weft_saved_text *t, void *field)
{
    int64_t number;
    if (!weft_saved_whole(t, INT32_MIN, INT32_MAX, &number)) return false;
    *(int *)field = (int)number;
    return true;
}

static bool read_unsigned(weft_saved_text *t, void *field)
{
    int64_t number;
    if (!weft_saved_whole(t, 0, UINT32_MAX, &number)) return false;
    *(unsigned *)field = (unsigned)number;
    return true;
}

static bool read_int64(weft_saved_text *t, void *field)
{
    return weft_saved_whole(t, INT64_MIN, INT64_MAX, field);
}

void weft_saved_put_shape(const weft_shape *shape, FILE *file)
{
    fputc('[', file);
    for (int d = 0; d < shape->n_dims; d++) {
        fputs(d > 0 ? ", " : "", file);
        weft_saved_put(shape->dims[d].name, file);
        fputc(':', file);
        weft_decimal_print(shape->dims[d].size, file);
    }
    fputc(']', file);
}

bool weft_saved_shape(weft_saved_text *t, weft_shape *shape)
{
    weft_error why = {WEFT_OK, -1, ""};
    memset(shape, 0, sizeof *shape);
    if (!weft_saved_expect(t, "[")) return false;
    while (!weft_saved_has(t, "]")) {
        if (shape->n_dims > 0 && !weft_saved_expect(t, ",")) return false;
        if (shape->n_dims == WEFT_MAX_DIMS)
            return weft_saved_fail(t, "a tensor of more than %d dims", WEFT_MAX_DIMS);
        weft_dim *dim = &shape->dims[shape->n_dims++];
        if (!weft_saved_word(t, &dim->name) || !weft_saved_expect(t, ":") ||
            !weft_saved_whole(t, 1, INT64_MAX, &dim->size))
            return false;
    }
    return weft_shape_check(shape, &why) == WEFT_OK || weft_saved_fail(t, "%s", why.message);
}

static void put_shape(const void *field, FILE *file)
{
    weft_saved_put_shape(field, file);
}
static bool read_shape(weft_saved_text *t, void *field)
{
    return weft_saved_shape(t, field);
}

static const char *const initials[] = {"constant", "normal", "uniform", "formula"};

static void put_initial(const void *field, FILE *file)
{
    const weft_initial *initial = field;
    fprintf(file, "%s(", initials[initial->kind]);
    put_exact(initial->a, file);
    fputs(", ", file);
    put_exact(initial->b, file);
    fputc(')', file);
}

static bool read_initial(weft_saved_text *t, void *field)
{
    weft_initial *initial = field;
    int kind = 0;
    while (kind < 4 && !weft_saved_has(t, initials[kind]))
        kind++;
    if (kind == 4) return weft_saved_fail(t, "\"%.30s\" is no initial value", t->at);
    initial->kind = (weft_initial_kind)kind;
    return weft_saved_expect(t, "(") && read_exact(t, &initial->a) && weft_saved_expect(t, ",") &&
           read_exact(t, &initial->b) && weft_saved_expect(t, ")");
}

/* NULL in `put`: as the kind itself prints it. */
static const struct {
    const weft_field_kind *kind;
    void (*put)(const void *field, FILE *file);
    bool (*read)(weft_saved_text *t, void *field);
} kinds[] = {
    {&weft_field_name, NULL, read_name},         {&weft_field_number, put_number, read_number},
    {&weft_field_bool, NULL, read_bool},         {&weft_field_int, NULL, read_int},
    {&weft_field_unsigned, NULL, read_unsigned}, {&weft_field_int64, NULL, read_int64},
    {&weft_field_shape, put_shape, read_shape},  {&weft_field_initial, put_initial, read_initial},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* N_KINDS: it is of another kind, which an op has for itself. */
static int kind_of(const weft_field *field)
{
    int k = 0;
    while (k < N_KINDS && kinds[k].kind != field->kind)
        k++;
    return k;
}

/* ---- fields ------------------------------------------------------------------------------------ */

bool weft_saved_can_hold(const weft_attributes *attributes)
{
    for (int f = 0; attributes != NULL && f < attributes->n_fields; f++)
        if (kind_of(&attributes->fields[f]) == N_KINDS) return false;
    return true;
}

static bool is_zero(const char *value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (value[i] != 0) return false;
    return true;
}

/* Names are as C writes them, "conv.window[1].stride", without blanks. */
static void put_key(const char *name, FILE *file)
{
    for (; *name != 0; name++)
        if (*name != ' ') fputc(*name, file);
}

static bool has_key(weft_saved_text *t, const char *name)
{
    const char *at = t->at;
    for (; *name != 0; name++)
        if (*name != ' ' && *at++ != *name) return false;
    if (*at != '=') return false;
    t->at = at + 1;
    return true;
}

void weft_saved_put_attributes(const weft_attributes *attributes, const void *values, FILE *file)
{
    const char *between = "";
    fputc('{', file);
    for (int f = 0; f < attributes->n_fields; f++) {
        const weft_field *field = &attributes->fields[f];
        const char *value = (const char *)values + field->offset;
        const int k = kind_of(field);
        if (is_zero(value, field->kind->bytes)) continue;
        fputs(between, file);
        put_key(field->name, file);
        fputc('=', file);
        if (kinds[k].put != NULL)
            kinds[k].put(value, file);
        else if (field->kind == &weft_field_name)
            weft_saved_put(*(const char *const *)(const void *)value, file);
        else
            field->kind->print(value, file);
        between = ", ";
    }
    fputc('}', file);
}

bool weft_saved_attributes(weft_saved_text *t, const weft_attributes *attributes, void *values)
{
    if (!weft_saved_expect(t, "{")) return false;
    for (bool is_first = true; !weft_saved_has(t, "}"); is_first = false) {
        int f = 0;
        if (!is_first && !weft_saved_expect(t, ",")) return false;
        skip(t);
        while (f < attributes->n_fields && !has_key(t, attributes->fields[f].name))
            f++;
        if (f == attributes->n_fields)
            return weft_saved_fail(t, "the op has no attribute \"%.30s\"", t->at);
        const int k = kind_of(&attributes->fields[f]);
        if (k == N_KINDS) return weft_saved_fail(t, "an attribute that no file can hold");
        if (!kinds[k].read(t, (char *)values + attributes->fields[f].offset)) return false;
    }
    return true;
}
