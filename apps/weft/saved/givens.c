/* givens: what goes into a saved program by --input: numbers, and files of NumPy, each checked to be the tensor's. */
#include <stdlib.h>
#include <string.h>

#include "saved.h"
#include "weft/data.h"
#include "weft/number.h"

enum { NAME = WEFT_MAX_PATH + 16 };

/* One word of --input. */
typedef struct given {
    char name[NAME];
    const char *what; /* what stands behind the =, to `end` */
    size_t length;
    weft_value value;
    void *numbers; /* of the value's dtype, malloc-ed */
    int64_t bytes;
} given;

/* The next word at *at, which is moved behind it; false: there is none. */
static bool next_word(const char **at, given *g)
{
    const char *word = *at + strspn(*at, " ");
    const size_t length = strcspn(word, " "), name = strcspn(word, "=");
    *at = word + length;
    *g = (given){.what = word + (name < length ? name + 1 : length)};
    g->length = (size_t)(*at - g->what);
    snprintf(g->name, sizeof g->name, "%.*s", (int)(name < length ? name : length), word);
    return length > 0;
}

static weft_status fail_shape(const given *g, const char *path, const weft_chain *chain,
                              weft_error *error)
{
    const weft_shape *row = weft_chain_field_shape(chain, 0);
    char wanted[256], there[256] = "";
    size_t used = 0;
    weft_shape_print(weft_shape_of(g->value), wanted, sizeof wanted);
    for (int d = 0; d < row->n_dims && used < sizeof there; d++)
        used += (size_t)snprintf(there + used, sizeof there - used, " x %lld",
                                 (long long)row->dims[d].size);
    return weft_fail(error, WEFT_USAGE,
                     "--input %.80s=%.200s: the file has %lld%s numbers, and the program wants %s; "
                     "give as many along each dim",
                     g->name, path, (long long)weft_chain_records(chain), there, wanted);
}

/* A file's first dim counts its records, the others are a record's. */
static bool has_shape(const given *g, const weft_chain *chain)
{
    const weft_shape *wanted = weft_shape_of(g->value), *row = weft_chain_field_shape(chain, 0);
    bool is_same = weft_chain_fields(chain) == 1 && wanted->n_dims == row->n_dims + 1 &&
                   wanted->dims[0].size == weft_chain_records(chain);
    for (int d = 0; is_same && d < row->n_dims; d++)
        is_same = wanted->dims[d + 1].size == row->dims[d].size;
    return is_same;
}

/* From numbers of one dtype to the value's: any floats to floats; integers where each fits. */
static weft_status convert(const given *g, weft_dtype from, const void *numbers, weft_error *error)
{
    const weft_dtype to = weft_dtype_of(g->value);
    const int64_t count = weft_shape_count(weft_shape_of(g->value));
    if (from == to) {
        memcpy(g->numbers, numbers, (size_t)g->bytes);
        return WEFT_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        const double number = weft_dtype_get(from, numbers, i);
        weft_dtype_put(to, g->numbers, i, number);
        const double kept = weft_dtype_get(to, g->numbers, i);
        if (!weft_dtype_is_float(to) && kept != number)
            return weft_fail(error, WEFT_USAGE,
                             "--input %.80s: number %lld is %.10g, which is none of %s; give "
                             "integers that fit",
                             g->name, (long long)i, number, weft_dtype_name(to));
    }
    return WEFT_OK;
}

static weft_status read_records(const given *g, const char *path, const weft_chain *chain,
                                weft_error *error)
{
    if (!has_shape(g, chain)) return fail_shape(g, path, chain, error);
    const weft_dtype dtype = weft_chain_field_dtype(chain, 0);
    const int64_t bytes =
        weft_shape_count(weft_shape_of(g->value)) * (int64_t)weft_dtype_bytes(dtype);
    void *numbers = malloc((size_t)bytes + 1);
    if (numbers == NULL) return weft_fail_memory(error, (size_t)bytes);
    weft_status status =
        weft_chain_read(chain, 0, weft_chain_records(chain), 0, numbers, bytes, error);
    if (status == WEFT_OK) status = convert(g, dtype, numbers, error);
    free(numbers);
    return status;
}

static weft_status read_file(const given *g, const char *path, weft_error *error)
{
    weft_chain *chain = NULL;
    WEFT_TRY(weft_chain_open(path, &(weft_open_options){.format = "npy"}, &chain, error));
    const weft_status status = read_records(g, path, chain, error);
    weft_chain_close(&chain);
    return status;
}

/* Every number of the tensor is this one. */
static weft_status fill(const given *g, double number, weft_error *error)
{
    const weft_dtype dtype = weft_dtype_of(g->value);
    const int64_t count = weft_shape_count(weft_shape_of(g->value));
    for (int64_t i = 0; i < count; i++)
        weft_dtype_put(dtype, g->numbers, i, number);
    if (weft_dtype_is_float(dtype) || weft_dtype_get(dtype, g->numbers, 0) == number)
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--input %.80s=%.*s: it is none of %s; give an integer that fits", g->name,
                     (int)g->length, g->what, weft_dtype_name(dtype));
}

static weft_status read_given(weft_program *program, given *g, weft_error *error)
{
    char text[4096];
    double number;
    weft_error unknown = {.rank = -1};
    if (g->length == 0)
        return weft_fail(error, WEFT_USAGE,
                         "--input %.80s: nothing stands behind it; write NAME=FILE.npy or "
                         "NAME=NUMBER",
                         g->name);
    g->value = weft_find(program, g->name, &unknown);
    if (g->value.id == 0) /* the sentence begins with the function's name */
        return weft_fail(error, WEFT_USAGE, "--input %.80s%.400s", g->name,
                         strchr(unknown.message, ':'));
    g->bytes = weft_shape_count(weft_shape_of(g->value)) *
               (int64_t)weft_dtype_bytes(weft_dtype_of(g->value));
    g->numbers = calloc(1, (size_t)g->bytes + 1);
    if (g->numbers == NULL) return weft_fail_memory(error, (size_t)g->bytes);
    snprintf(text, sizeof text, "%.*s", (int)g->length, g->what);
    if (weft_number_read(text, &number) == (int)g->length) return fill(g, number, error);
    return read_file(g, text, error);
}

weft_status givens_write(const settings *s, weft_program *program, weft_error *error)
{
    const char *at = settings_text(s, "input");
    given g;
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && next_word(&at, &g)) {
        weft_error own = {.rank = -1};
        (void)!read_given(program, &g, &own);
        status = weft_world_agree(&own); /* all of them write it, or none */
        if (status == WEFT_OK)
            status = weft_write(program, g.value, weft_dtype_of(g.value), g.numbers, g.bytes, &own);
        if (status != WEFT_OK) *error = own;
        free(g.numbers);
    }
    return status;
}

bool givens_names(const settings *s, const char *name)
{
    const char *at = settings_text(s, "input");
    given g;
    while (next_word(&at, &g))
        if (strcmp(g.name, name) == 0) return true;
    return false;
}

static bool has_field(const weft_chain *data, const char *name)
{
    for (int f = 0; f < weft_chain_fields(data); f++)
        if (strcmp(weft_chain_field_name(data, f), name) == 0) return true;
    return false;
}

weft_status givens_check(const settings *s, const weft_saved *saved, weft_program *program,
                         const weft_chain *data, weft_error *error)
{
    for (int i = 0; i < saved->inputs.n_values; i++) {
        const weft_value input = saved->inputs.values[i];
        const char *name = weft_name_of(input);
        char shape[256];
        if (weft_find_input(program, name).id == 0 || givens_names(s, name)) continue;
        if (has_field(data, name)) continue;
        weft_shape_print(weft_shape_of(input), shape, sizeof shape);
        return weft_fail(error, WEFT_USAGE,
                         "nothing fills the input %.80s, %s%s; give --input %.80s=FILE.npy, or "
                         "--data with a field of that name",
                         name, weft_dtype_name(weft_dtype_of(input)), shape, name);
    }
    return WEFT_OK;
}
