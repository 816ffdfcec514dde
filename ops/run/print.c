/* print: one line about a value, by one rank. */
#include <math.h>
#include <stdlib.h>

#include "program.h"
#include "text.h"
#include "weft/collectives.h"
#include "weft/program.h"

enum { N_SHOWN = 8 };

typedef struct summary { /* of the numbers that are finite */
    double sum, least, most;
    int64_t n_finite;
} summary;

static summary look(weft_dtype dtype, const void *data, int64_t count)
{
    summary s = {0, INFINITY, -INFINITY, 0};
    for (int64_t i = 0; i < count; i++) {
        const double x = weft_dtype_get(dtype, data, i);
        if (!isfinite(x)) continue;
        s.sum += x, s.n_finite++;
        s.least = fmin(s.least, x), s.most = fmax(s.most, x);
    }
    return s;
}

/* A NaN has a sign on some processors, which says nothing. */
static void show(FILE *file, weft_dtype dtype, double x)
{
    const int digits = weft_dtype_is_float(dtype) ? 6 : 10; /* all of an integer */
    fprintf(file, " %.*g", digits, isnan(x) ? fabs(x) : x);
}

static void print(FILE *file, weft_value value, const void *data, int64_t count)
{
    char dims[240];
    const locale_t before = weft_text_plain();
    const weft_dtype dtype = weft_dtype_of(value);
    const summary s = look(dtype, data, count);
    const char *name = weft_name_of(value);
    weft_shape_print(weft_shape_of(value), dims, sizeof dims);
    fprintf(file, "%s %s%s:", name != NULL && *name ? name : "a value", weft_dtype_name(dtype),
            dims);
    if (s.n_finite > 0)
        fprintf(file, " mean %.6g, from %.6g to %.6g", s.sum / (double)s.n_finite, s.least, s.most);
    if (s.n_finite < count)
        fprintf(file, "%s %lld of %lld are NaN or Inf", s.n_finite > 0 ? "," : "",
                (long long)(count - s.n_finite), (long long)count);
    fprintf(file, "; first");
    for (int64_t i = 0; i < count && i < N_SHOWN; i++)
        show(file, dtype, weft_dtype_get(dtype, data, i));
    fprintf(file, "%s\n", count > N_SHOWN ? " ..." : "");
    weft_text_end(before);
    fflush(file);
}

weft_status weft_print(weft_program *program, weft_value value, FILE *file, weft_error *error)
{
    WEFT_GIVEN(program, error);
    const weft_dtype dtype = weft_dtype_of(value);
    const bool is_there = weft_home_of(program, value) != 0; /* else weft_read says why not */
    const int64_t count = is_there ? weft_shape_count(weft_shape_of(value)) : 1;
    const int64_t bytes = count * (int64_t)weft_dtype_bytes(dtype);
    weft_error own = {.rank = -1};
    void *data = malloc((size_t)bytes + 8);
    if (weft_check_given(file != NULL, __func__, "file", &own) == WEFT_OK && data == NULL)
        weft_fail_memory(&own, (size_t)bytes);
    weft_status status = weft_world_agree(&own); /* nobody is left waiting */
    if (status != WEFT_OK) {
        weft_fail(error, status, "%s", own.message);
        if (error) error->rank = own.rank;
    } else
        status = weft_read(program, value, dtype, data, bytes, error);
    if (status == WEFT_OK && weft_mesh_is_root(weft_program_mesh(program)))
        print(file, value, data, count);
    free(data);
    return status;
}
