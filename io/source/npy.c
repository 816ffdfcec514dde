/* npy: an array of NumPy's: a row of its first dim is a record.
 *
 * source  NumPy's own description of the format (numpy.lib.format): magic, version, length, a Python dict, then the elements. The dict
 * is read as the literal that it is, in whatever order its keys stand.
 */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the dict ------------------------------------------------------------------------------------ */

/* Past spaces, and past `c` where that is the next letter. */
static bool take(const char **at, char c)
{
    *at += strspn(*at, " \t\n");
    if (**at != c) return false;
    ++*at;
    return true;
}

static bool take_text(const char **at, char *to, size_t room)
{
    *at += strspn(*at, " \t\n");
    const char quote = **at;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(*at + 1, quote);
    if (end == NULL || (size_t)(end - *at - 1) >= room) return false;
    memcpy(to, *at + 1, (size_t)(end - *at - 1));
    to[end - *at - 1] = '\0';
    *at = end + 1;
    return true;
}

static bool take_word(const char **at, const char *word)
{
    *at += strspn(*at, " \t\n");
    if (strncmp(*at, word, strlen(word)) != 0) return false;
    *at += strlen(word);
    return true;
}

static bool take_shape(const char **at, weft_npy *array)
{
    if (!take(at, '(')) return false;
    while (!take(at, ')')) {
        const size_t n = strspn(*at, "0123456789");
        if (array->n_dims > WEFT_RECORD_DIMS || !weft_text_i64(*at, n, &array->dims[array->n_dims]))
            return false;
        array->n_dims++;
        *at += n;
        (void)take(at, 'L'); /* as Python 2 wrote them */
        if (!take(at, ',') && **at != ')') return false;
    }
    return true;
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
static bool take_dict(const char *at, weft_npy *array, char descr[16], bool *is_fortran)
{
    char key[16];
    unsigned seen = 0;
    if (!take(&at, '{')) return false;
    while (!take(&at, '}')) {
        if (!take_text(&at, key, sizeof key) || !take(&at, ':')) return false;
        const unsigned which = strcmp(key, "descr") == 0           ? 1
                               : strcmp(key, "fortran_order") == 0 ? 2
                               : strcmp(key, "shape") == 0         ? 4
                                                                   : 0;
        if (which == 0 || (seen & which) != 0) return false;
        seen |= which;
        if (which == 1 && !take_text(&at, descr, 16)) return false;
        if (which == 2 && !(*is_fortran = take_word(&at, "True")) && !take_word(&at, "False"))
            return false;
        if (which == 4 && !take_shape(&at, array)) return false;
        (void)take(&at, ',');
    }
    return seen == 7;
}

/* ---- types ------------------------------------------------------------------------------------------ */

static const struct {
    char letter;
    int stored;
    weft_dtype
        dtype; /* the narrowest of ours that has all its numbers; u8 of 8 bytes are refused above i64 */
} types[] = {{'f', 4, WEFT_F32}, {'f', 8, WEFT_F64}, {'f', 2, WEFT_F16}, {'i', 1, WEFT_I32},
             {'i', 2, WEFT_I32}, {'i', 4, WEFT_I32}, {'i', 8, WEFT_I64}, {'u', 1, WEFT_U8},
             {'u', 2, WEFT_I32}, {'u', 4, WEFT_I64}, {'b', 1, WEFT_U8}};

static bool find_type(const char *descr, weft_npy *array)
{
    int64_t stored;
    if (descr[0] == '\0' || strchr("<>|=", descr[0]) == NULL || descr[1] == '\0' ||
        !weft_text_i64(descr + 2, strlen(descr + 2), &stored))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].letter == descr[1] && types[i].stored == stored) {
            array->letter = descr[1];
            array->stored = (int)stored;
            array->dtype = types[i].dtype;
            array->is_swapped = descr[0] == '>' && stored > 1;
            return true;
        }
    return false;
}

static weft_status check_bytes(const weft_source *source, const char *what, weft_npy *array,
                               int64_t bytes, weft_error *error)
{
    array->count = 1;
    for (int d = 0; d < array->n_dims; d++)
        if (__builtin_mul_overflow(array->count, array->dims[d], &array->count) ||
            array->count > INT64_C(1) << 56)
            return weft_source_fail(source, error,
                                    "%s says it has more than 2^56 elements; it is damaged", what);
    const int64_t said = array->begin + array->count * array->stored;
    if (said == bytes) return WEFT_OK;
    return weft_source_fail(source, error,
                            "%s says %lld elements of %d bytes, with its header %lld bytes, and "
                            "has %lld; it is %s, write it again",
                            what, (long long)array->count, array->stored, (long long)said,
                            (long long)bytes, bytes < said ? "cut off" : "damaged");
}

weft_status weft_npy_parse(const weft_source *source, const char *what, const unsigned char *head,
                           int64_t n, int64_t bytes, weft_npy *array, weft_error *error)
{
    char descr[16] = "", dict[WEFT_NPY_HEADER];
    bool is_fortran = false;
    *array = (weft_npy){0};
    const int wide = n > 6 && head[6] > 1 ? 4 : 2;
    if (n < 8 + wide || memcmp(head, "\x93NUMPY", 6) != 0 || head[6] < 1 || head[6] > 3)
        return weft_source_fail(
            source, error, "%s has no header of a NumPy array; write it again by numpy.save", what);
    int64_t length = head[8] | head[9] << 8;
    if (wide == 4) length |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
    array->begin = 8 + wide + length;
    if (array->begin > n || length >= WEFT_NPY_HEADER)
        return weft_source_fail(source, error,
                                "%s says its header has %lld bytes, and %lld are there; it is cut "
                                "off or damaged, write it again",
                                what, (long long)array->begin, (long long)n);
    memcpy(dict, head + 8 + wide, (size_t)length);
    dict[length] = '\0';
    if (memchr(dict, '[', (size_t)length) != NULL)
        return weft_source_fail(
            source, error,
            "%s has records of several types; save each of its fields as an array of its own",
            what);
    if (!take_dict(dict, array, descr, &is_fortran))
        return weft_source_fail(
            source, error,
            "%s has a header that cannot be read: %.60s; write it again by numpy.save", what, dict);
    if (!find_type(descr, array))
        return weft_source_fail(source, error,
                                "%s has elements of type %s, and f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 and "
                                "b1 can be read; in Python: a.astype(\"f4\")",
                                what, descr);
    if (is_fortran && array->n_dims > 1)
        return weft_source_fail(source, error,
                                "%s lies column by column, so a record is not in one piece; in "
                                "Python: numpy.ascontiguousarray(a)",
                                what);
    if (array->n_dims == 0)
        return weft_source_fail(
            source, error, "%s is a single number, without a dim for records; leave it out", what);
    return check_bytes(source, what, array, bytes, error);
}

/* ---- elements ---------------------------------------------------------------------------------------- */

static void swap(unsigned char *element, int n)
{
    for (int i = 0; i < n / 2; i++) {
        const unsigned char c = element[i];
        element[i] = element[n - 1 - i];
        element[n - 1 - i] = c;
    }
}

static int64_t integer_of(const unsigned char *from, int bytes, bool is_signed)
{
    uint64_t bits = 0;
    memcpy(&bits, from, (size_t)bytes); /* little endian, as everything that Weft runs on */
    if (!is_signed || bytes == 8) return (int64_t)bits;
    const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    return (int64_t)((bits ^ sign) - sign);
}

void weft_npy_convert(const weft_npy *array, const unsigned char *from, int64_t n, void *to)
{
    const size_t width = weft_dtype_bytes(array->dtype);
    for (int64_t i = 0; i < n; i++) {
        unsigned char element[8] = {0};
        memcpy(element, from + i * array->stored, (size_t)array->stored);
        if (array->is_swapped) swap(element, array->stored);
        if (width != (size_t)array->stored) {
            const int64_t number = integer_of(element, array->stored, array->letter == 'i');
            memcpy(element, &number, sizeof number);
        }
        memcpy((char *)to + (size_t)i * width, element, width);
    }
}

weft_status weft_npy_read(const weft_source *source, const weft_npy *array, int64_t at,
                          int64_t begin, int64_t end, void *to, weft_error *error)
{
    const size_t width = weft_dtype_bytes(array->dtype);
    const int64_t from = at + array->begin;
    unsigned char piece[4096];
    if (width == (size_t)array->stored && !array->is_swapped)
        return weft_source_read(source, to, (end - begin) * array->stored,
                                from + begin * array->stored, error);
    for (int64_t i = begin, n; i < end; i += n) {
        n = (int64_t)sizeof piece / array->stored;
        n = end - i < n ? end - i : n;
        WEFT_TRY(
            weft_source_read(source, piece, n * array->stored, from + i * array->stored, error));
        weft_npy_convert(array, piece, n, (char *)to + (size_t)(i - begin) * width);
    }
    return WEFT_OK;
}

/* ---- the kind ------------------------------------------------------------------------------------------ */

static bool npy_is(const unsigned char *head, size_t n)
{
    return n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0;
}

static weft_status npy_open(weft_table *table, const char *wanted, weft_error *error)
{
    const weft_source *source = &table->source;
    const int64_t n = source->bytes < WEFT_NPY_HEADER ? source->bytes : WEFT_NPY_HEADER;
    weft_npy *array = table->state = calloc(1, sizeof *array);
    char *head = NULL;
    (void)wanted;
    if (array == NULL) return weft_fail_memory(error, sizeof *array);
    WEFT_TRY(weft_source_take(source, &head, n, 0, error));
    const weft_status status =
        weft_npy_parse(source, "the array", (unsigned char *)head, n, source->bytes, array, error);
    free(head);
    WEFT_TRY(status);
    table->n_records = array->dims[0];
    if (weft_table_field(table, "array", 5, array->dtype, array->n_dims - 1, array->dims + 1))
        return WEFT_OK;
    return weft_fail_memory(error, sizeof *table->fields);
}

static weft_status npy_read(const weft_table *table, int64_t record, int field, int64_t begin,
                            int64_t end, void *to, weft_error *error)
{
    const weft_npy *array = table->state;
    const int64_t row = array->count / array->dims[0];
    (void)field;
    return weft_npy_read(&table->source, array, 0, record * row + begin, record * row + end, to,
                         error);
}

static void npy_close(weft_table *table)
{
    free(table->state);
}

const weft_record_kind weft_kind_npy = {.name = "npy",
                                        .endings = " .npy ",
                                        .is = npy_is,
                                        .open = npy_open,
                                        .read = npy_read,
                                        .close = npy_close};
