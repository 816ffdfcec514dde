/* member: a whole file of one value: an image, an array, a number, a text. Images are decoded in a process apart. */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../apart/apart.h"
#include "npy.h"
#include "scale.h"

typedef enum member_type { BYTES, TEXT, NUMBER, IMAGE, ARRAY } member_type;

static const struct {
    const char *ending;
    member_type type;
} types[] = {{"jpg", IMAGE}, {"jpeg", IMAGE},   {"png", IMAGE}, {"npy", ARRAY}, {"cls", NUMBER},
             {"id", NUMBER}, {"index", NUMBER}, {"txt", TEXT},  {"text", TEXT}, {"json", TEXT}};

/* By what stands behind the last point: "seg.png" is an image. */
static member_type type_of(const char *ending)
{
    const char *last = strrchr(ending, '.');
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i].ending, last ? last + 1 : ending) == 0) return types[i].type;
    return BYTES;
}

static weft_status parse_array(const weft_source *source, const weft_member *m, weft_npy *array,
                               weft_error *error)
{
    const int64_t n = m->bytes < WEFT_NPY_HEADER ? m->bytes : WEFT_NPY_HEADER;
    char *head;
    WEFT_TRY(weft_source_take(source, &head, n, m->at, error));
    const weft_status status =
        weft_npy_parse(source, "an array in it", (unsigned char *)head, n, m->bytes, array, error);
    free(head);
    return status;
}

weft_status weft_member_field(weft_table *table, const char *ending, const weft_member *first,
                              weft_error *error)
{
    const int64_t any[WEFT_RECORD_DIMS] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const size_t n = strlen(ending);
    weft_npy array = {0};
    weft_record_field *field = NULL;
    switch (type_of(ending)) {
    case NUMBER:
        field = weft_table_field(table, ending, n, WEFT_I64, 0, NULL);
        break;
    case IMAGE:
        field = weft_table_field(table, ending, n, WEFT_U8, 3,
                                 (int64_t[]){table->rows > 0 ? table->rows : -1,
                                             table->columns > 0 ? table->columns : -1, -1});
        break;
    case TEXT:
        field = weft_table_text(table, ending, n);
        break;
    case BYTES:
        field = weft_table_field(table, ending, n, WEFT_U8, 1, any);
        break;
    case ARRAY:
        WEFT_TRY(parse_array(&table->source, first, &array, error));
        if (array.n_dims > WEFT_RECORD_DIMS)
            return weft_source_fail(&table->source, error,
                                    "an array in it has %d dims, and up to %d can be", array.n_dims,
                                    WEFT_RECORD_DIMS);
        field = weft_table_field(table, ending, n, array.dtype, array.n_dims, any);
    }
    return field != NULL ? WEFT_OK : weft_fail_memory(error, sizeof *field);
}

/* ---- images ---------------------------------------------------------------------------------------- */

/* Sizes that the field has are those that images are scaled to. */
static weft_scaling scaling_of(const weft_record_field *field, const files_answer *size)
{
    return (weft_scaling){size->rows, size->columns, size->channels,
                          field->dims[0] > 0 ? field->dims[0] : size->rows,
                          field->dims[1] > 0 ? field->dims[1] : size->columns};
}

/* Pixels begin to end at the size that is wanted. */
static weft_status put_pixels(const weft_scaling *s, const unsigned char *pixels, int64_t begin,
                              int64_t end, void *to, weft_error *error)
{
    if (s->rows == s->to_rows && s->columns == s->to_columns) {
        memcpy(to, pixels + begin, (size_t)(end - begin));
        return WEFT_OK;
    }
    const size_t n = (size_t)(s->to_rows * s->to_columns * s->channels);
    unsigned char *scaled = malloc(n);
    if (scaled == NULL) return weft_fail_memory(error, n);
    weft_image_scale(pixels, s, scaled);
    memcpy(to, scaled + begin, (size_t)(end - begin));
    free(scaled);
    return WEFT_OK;
}

/* dims [3], pixels begin to end where `to` is given */
static weft_status read_image(const weft_source *source, const weft_record_field *field,
                              const weft_member *m, int64_t *dims, int64_t begin, int64_t end,
                              void *to, weft_error *error)
{
    char place[260];
    weft_apart *a = NULL;
    weft_status status = WEFT_OK;
    snprintf(place, sizeof place, "%.200s: the image at byte %lld", source->path, (long long)m->at);
    WEFT_TRY(weft_source_check(source, error));
    WEFT_TRY(weft_apart_take(source->path, "an image or has one",
                             (weft_apart_key){source->number, m->at}, m->bytes, &a, error));
    if (!a->has_it) status = weft_source_read(source, a->from, m->bytes, m->at, error);
    if (!a->has_it && status == WEFT_OK) status = weft_apart_image(a, place, error);
    const weft_scaling size = scaling_of(field, &a->answer);
    if (status == WEFT_OK && to != NULL && end > size.to_rows * size.to_columns * size.channels)
        status = weft_fail(error, WEFT_USAGE, "%.240s has another size than it had", place);
    if (status == WEFT_OK && to != NULL)
        status = put_pixels(&size, (const unsigned char *)a->to, begin, end, to, error);
    weft_apart_give(a);
    if (dims != NULL) dims[0] = size.to_rows, dims[1] = size.to_columns, dims[2] = size.channels;
    return status;
}

/* ---- all --------------------------------------------------------------------------------------------- */

static weft_status check_array(const weft_source *source, const weft_record_field *field,
                               const weft_member *m, weft_npy *array, weft_error *error)
{
    WEFT_TRY(parse_array(source, m, array, error));
    if (array->dtype == field->dtype && array->n_dims == field->n_dims) return WEFT_OK;
    return weft_source_fail(
        source, error,
        "the array at byte %lld is %s of %d dims, and the first is %s of %d; save all alike",
        (long long)m->at, weft_dtype_name(array->dtype), array->n_dims,
        weft_dtype_name(field->dtype), field->n_dims);
}

weft_status weft_member_shape(const weft_source *source, const weft_record_field *field,
                              const char *ending, const weft_member *m, int64_t *dims,
                              weft_error *error)
{
    weft_npy array;
    const member_type type = type_of(ending);
    if (type == IMAGE) return read_image(source, field, m, dims, 0, 0, NULL, error);
    dims[0] = m->bytes;
    if (type != ARRAY) return WEFT_OK;
    WEFT_TRY(check_array(source, field, m, &array, error));
    memcpy(dims, array.dims, (size_t)array.n_dims * sizeof *dims);
    return WEFT_OK;
}

static weft_status read_number(const weft_source *source, const weft_member *m, void *to,
                               weft_error *error)
{
    char text[32] = "";
    const int64_t n = m->bytes < 31 ? m->bytes : 31;
    WEFT_TRY(weft_source_read(source, text, n, m->at, error));
    const size_t blank = strspn(text, " \t\r\n"), length = strcspn(text + blank, " \t\r\n");
    if (weft_text_i64(text + blank, length, to)) return WEFT_OK;
    return weft_source_fail(
        source, error,
        "the member at byte %lld is a whole number by its ending and begins with \"%.20s\"",
        (long long)m->at, text);
}

weft_status weft_member_read(const weft_source *source, const weft_record_field *field,
                             const char *ending, const weft_member *m, int64_t begin, int64_t end,
                             void *to, weft_error *error)
{
    weft_npy array;
    const member_type type = type_of(ending);
    if (type == IMAGE) return read_image(source, field, m, NULL, begin, end, to, error);
    if (type == NUMBER) return read_number(source, m, to, error);
    if (type != ARRAY) return weft_source_read(source, to, end - begin, m->at + begin, error);
    WEFT_TRY(check_array(source, field, m, &array, error));
    return weft_npy_read(source, &array, m->at, begin, end, to, error);
}
