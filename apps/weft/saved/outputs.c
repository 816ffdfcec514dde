/* outputs: what comes out of a saved program: told in lines or as JSON, written to files of NumPy.
 *
 * A scalar is told after each step. Of the others, those whose first dim is the batch have rows of all steps in their file, the rest
 * what the last step left.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../json.h"
#include "saved.h"
#include "weft/collectives.h"

enum { SHOWN = 4096 /* numbers of a tensor in the JSON */ };

typedef struct output {
    weft_value value;
    char name[WEFT_MAX_PATH + 16];
    weft_dtype dtype;
    const weft_shape *shape;
    void *numbers; /* of the last step */
    int64_t bytes;
    npy *file; /* of the root, where --output is given */
} output;

struct outputs {
    weft_program *program;
    const char *folder; /* "": none */
    bool is_root, is_quiet;
    int n;
    output *all;     /* [n] */
    json_t *scalars; /* an object a step */
};

static bool is_scalar(const output *out)
{
    return out->shape->n_dims == 0;
}

static bool is_batch(const output *out)
{
    return !is_scalar(out) && strcmp(out->shape->dims[0].name, "batch") == 0;
}

/* ---- opening ------------------------------------------------------------------------------------- */

/* Names of tensors may have the folders of their layers. */
static void path_of(const outputs *o, const output *out, char *path, size_t bytes)
{
    const int n = snprintf(path, bytes, "%.3000s/", o->folder);
    snprintf(path + n, bytes - (size_t)n, "%s.npy", out->name);
    for (char *c = path + n; *c != '\0'; c++)
        if (*c == '/') *c = '.';
}

static weft_status describe(output *out, const opened_output *said, weft_error *error)
{
    out->value = said->value;
    snprintf(out->name, sizeof out->name, "%s", said->name);
    out->dtype = weft_dtype_of(out->value);
    out->shape = weft_shape_of(out->value);
    out->bytes = weft_shape_count(out->shape) * (int64_t)weft_dtype_bytes(out->dtype);
    out->numbers = malloc((size_t)out->bytes + 1);
    return out->numbers ? WEFT_OK : weft_fail_memory(error, (size_t)out->bytes);
}

static weft_status create_file(const outputs *o, output *out, weft_error *error)
{
    char path[4096];
    path_of(o, out, path, sizeof path);
    return npy_create(path, out->dtype, out->shape, &out->file, error);
}

static weft_status create_files(outputs *o, weft_error *error)
{
    if (*o->folder == '\0' || !o->is_root) return WEFT_OK;
    if (mkdir(o->folder, 0777) != 0 && errno != EEXIST)
        return weft_fail(error, WEFT_IO, "--output %.300s: this folder cannot be made: %s",
                         o->folder, strerror(errno));
    for (int i = 0; i < o->n; i++)
        WEFT_TRY(create_file(o, &o->all[i], error));
    return WEFT_OK;
}

static weft_status describe_all(outputs *o, const weft_saved *saved, weft_error *error)
{
    opened_output *all = NULL;
    int n = 0;
    WEFT_TRY(opened_outputs(saved, &all, &n, error));
    o->all = calloc((size_t)n + 1, sizeof *o->all);
    weft_status status = o->all && o->scalars ? WEFT_OK : weft_fail_memory(error, sizeof *o->all);
    for (; status == WEFT_OK && o->n < n; o->n++)
        status = describe(&o->all[o->n], &all[o->n], error);
    free(all);
    return status;
}

weft_status outputs_open(const settings *s, const weft_saved *saved, weft_program *program,
                         outputs **made, weft_error *error)
{
    weft_error own = {.rank = -1};
    outputs *o = *made = calloc(1, sizeof *o);
    if (o == NULL)
        (void)!weft_fail_memory(&own, sizeof *o);
    else {
        o->program = program;
        o->folder = settings_text(s, "output");
        o->is_quiet = settings_flag(s, "json");
        o->is_root = weft_mesh_is_root(weft_program_mesh(program));
        o->scalars = json_array();
        if (describe_all(o, saved, &own) == WEFT_OK) (void)!create_files(o, &own);
    }
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

/* ---- steps --------------------------------------------------------------------------------------- */

static void tell_scalars(const outputs *o, int64_t step)
{
    int n_told = 0;
    json_t *told = json_object();
    for (int i = 0; i < o->n; i++) {
        const output *out = &o->all[i];
        if (!is_scalar(out)) continue;
        const double number = weft_dtype_get(out->dtype, out->numbers, 0);
        json_object_set_new(told, out->name, app_json_number(number));
        if (o->is_root && !o->is_quiet)
            printf("%s%s %.9g", n_told == 0 ? "" : ", ", out->name, number);
        if (n_told++ == 0) json_object_set_new(told, "step", json_integer(step));
    }
    if (n_told > 0 && o->is_root && !o->is_quiet) printf("   (step %lld)\n", (long long)step);
    if (n_told > 0)
        json_array_append_new(o->scalars, told);
    else
        json_decref(told);
}

weft_status outputs_take(outputs *o, int64_t step, weft_error *error)
{
    weft_error own = {.rank = -1};
    for (int i = 0; i < o->n; i++) {
        const output *out = &o->all[i];
        WEFT_TRY(weft_read(o->program, out->value, out->dtype, out->numbers, out->bytes, error));
        if (out->file && is_batch(out) && own.status == WEFT_OK)
            (void)!npy_put(out->file, out->numbers, &own);
    }
    tell_scalars(o, step);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static weft_status end_files(outputs *o, weft_error *error)
{
    for (int i = 0; i < o->n; i++) {
        output *out = &o->all[i];
        if (out->file && !is_batch(out)) WEFT_TRY(npy_put(out->file, out->numbers, error));
        if (out->file) WEFT_TRY(npy_end(&out->file, error));
    }
    return WEFT_OK;
}

weft_status outputs_end(outputs *o, weft_error *error)
{
    weft_error own = {.rank = -1};
    for (int i = 0; i < o->n && !o->is_quiet; i++)
        if (!is_scalar(&o->all[i]))
            WEFT_TRY(weft_print(o->program, o->all[i].value, stdout, error));
    (void)!end_files(o, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static json_t *output_json(const output *out)
{
    json_t *dims = json_array(), *numbers = json_null();
    const int64_t count = weft_shape_count(out->shape);
    for (int d = 0; d < out->shape->n_dims; d++)
        json_array_append_new(dims, json_pack("{s:s, s:I}", "name", out->shape->dims[d].name,
                                              "size", (json_int_t)out->shape->dims[d].size));
    if (count <= SHOWN) numbers = json_array();
    for (int64_t i = 0; i < count && count <= SHOWN; i++)
        json_array_append_new(numbers,
                              app_json_number(weft_dtype_get(out->dtype, out->numbers, i)));
    return json_pack("{s:s, s:s, s:o, s:o}", "name", out->name, "dtype",
                     weft_dtype_name(out->dtype), "dims", dims, "numbers", numbers);
}

json_t *outputs_json(const outputs *o)
{
    json_t *all = json_array();
    for (int i = 0; i < o->n; i++)
        json_array_append_new(all, output_json(&o->all[i]));
    return json_pack("{s:O, s:o}", "scalars", o->scalars, "outputs", all);
}

void outputs_close(outputs **closed)
{
    outputs *o = *closed;
    if (o == NULL) return;
    for (int i = 0; i < o->n; i++) {
        npy_drop(&o->all[i].file);
        free(o->all[i].numbers);
    }
    json_decref(o->scalars);
    free(o->all);
    free(o);
    *closed = NULL;
}
