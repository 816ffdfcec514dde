/* check: an op under the oracle: values against a scalar reference, gradients against differences, meshes against one rank. */
#include "check.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/extend/size.h"

typedef struct checking {
    weft_check check; /* as this version has it */
    weft_mesh *alone;
    int64_t n_runs;
} checking;

static const weft_check_placing as_it_comes;

/* ---- comparing ------------------------------------------------------------------------------- */

/* Within `relative` of the largest element (of 1e-3 when all are smaller: below that is what cancelling left); false: *at
 * is the first that is not. */
static bool is_near(const double *a, const double *b, int64_t count, double relative, int64_t *at)
{
    double largest = 1e-3;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(b[i])) largest = fmax(largest, fabs(b[i]));
    for (int64_t i = 0; i < count; i++) {
        *at = i;
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) continue;
        if (!(fabs(a[i] - b[i]) <= relative * largest)) return false;
    }
    return true;
}

static double tolerance_of(const weft_check *check, weft_dtype dtype)
{
    const double f64 = check->tolerance > 0 ? check->tolerance : 1e-12;
    if (dtype == WEFT_I32) return 0;
    return dtype == WEFT_F64 ? f64 : check->tolerance > 0 ? 1e7 * f64 : 1e-5;
}

/* ---- one rank against the reference ---------------------------------------------------------- */

static weft_status fill_operand(const weft_check *check, int k, const weft_shape *shape,
                                weft_check_tensor *in, weft_error *error)
{
    *in = (weft_check_tensor){.shape = shape, .count = weft_shape_count(shape)};
    in->data = calloc((size_t)in->count + 1, sizeof *in->data);
    if (in->data == NULL) return weft_fail_memory(error, (size_t)in->count * sizeof *in->data);
    for (int64_t i = 0; i < in->count; i++)
        in->data[i] = weft_check_element(check, k, i);
    return WEFT_OK;
}

static weft_status compare_reference(const weft_check *check, const weft_check_result *result,
                                     const char *dtype, weft_error *error)
{
    weft_check_tensor in[WEFT_CHECK_IN] = {{0}}, out = {&result->shape, result->count, NULL};
    weft_shape shapes[WEFT_CHECK_IN];
    weft_status status = WEFT_OK;
    int64_t at = 0;
    for (int k = 0; k < check->n_in && status == WEFT_OK; k++) {
        shapes[k] = weft_check_shape(check, k);
        status = fill_operand(check, k, &shapes[k], &in[k], error);
    }
    out.data = calloc((size_t)out.count + 1, sizeof *out.data);
    if (status == WEFT_OK && out.data == NULL) status = weft_fail_memory(error, sizeof *out.data);
    if (status == WEFT_OK) {
        check->reference(in, &out, check->argument);
        if (!is_near(result->data, out.data, out.count, tolerance_of(check, result->dtype), &at))
            status =
                weft_fail(error, WEFT_MISMATCH,
                          "%s in %s: element %lld of %lld is %.17g, and the reference says %.17g",
                          check->name, dtype, (long long)at, (long long)out.count, result->data[at],
                          out.data[at]);
    }
    for (int k = 0; k < check->n_in; k++)
        free(in[k].data);
    free(out.data);
    return status;
}

static weft_status check_values(checking *c, weft_dtype dtype, weft_error *error)
{
    weft_check_result result;
    WEFT_TRY(weft_check_run(c->alone, &c->check, dtype, &as_it_comes, NULL, false, &result, error));
    c->n_runs++;
    const weft_status status = compare_reference(&c->check, &result, weft_dtype_name(dtype), error);
    weft_check_free(&result);
    return status;
}

/* ---- gradients against differences ----------------------------------------------------------- */

/* The sum of weights times the result, with one element moved. */
static weft_status sum_moved(checking *c, const weft_check_change *moved, double *sum,
                             weft_error *error)
{
    weft_check_result result;
    WEFT_TRY(
        weft_check_run(c->alone, &c->check, WEFT_F64, &as_it_comes, moved, false, &result, error));
    c->n_runs++;
    *sum = 0;
    for (int64_t i = 0; i < result.count; i++)
        *sum += result.data[i] * (weft_check_unit(WEFT_CHECK_IN, i) + 0.5);
    weft_check_free(&result);
    return WEFT_OK;
}

/* At most 16 elements of operand k, spread over all. */
static weft_status check_slopes(checking *c, int k, const double *gradient, weft_error *error)
{
    const weft_shape shape = weft_check_shape(&c->check, k);
    const int64_t count = weft_shape_count(&shape), stride = (count + 15) / 16;
    const double by = 1e-5;
    double largest = 1e-2;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(gradient[i]));
    for (int64_t i = 0; i < count; i += stride) {
        double above, below;
        WEFT_TRY(sum_moved(c, &(weft_check_change){k, i, by}, &above, error));
        WEFT_TRY(sum_moved(c, &(weft_check_change){k, i, -by}, &below, error));
        const double slope = (above - below) / (2 * by);
        if (!(fabs(slope - gradient[i]) <= 1e-5 * largest))
            return weft_fail(error, WEFT_MISMATCH,
                             "%s: the gradient of operand %d, element %lld of %lld, is %.10g, and "
                             "differences say %.10g",
                             c->check.name, k, (long long)i, (long long)count, gradient[i], slope);
    }
    return WEFT_OK;
}

static weft_status check_gradients(checking *c, weft_error *error)
{
    weft_check_result result;
    WEFT_TRY(
        weft_check_run(c->alone, &c->check, WEFT_F64, &as_it_comes, NULL, true, &result, error));
    c->n_runs++;
    weft_status status = WEFT_OK;
    for (int k = 0; k < c->check.n_in && status == WEFT_OK; k++)
        if (result.gradient[k] != NULL) status = check_slopes(c, k, result.gradient[k], error);
    weft_check_free(&result);
    return status;
}

/* ---- meshes against one rank ----------------------------------------------------------------- */

/* The placements of all operands, and last of the result. */
typedef struct choices {
    int counts[WEFT_CHECK_IN + 1];
    char texts[WEFT_CHECK_IN + 1][WEFT_CHECK_PLACES][WEFT_CHECK_TEXT];
} choices;

/* Returns how many combinations there are. */
static int64_t list_choices(const weft_check *check, const weft_mesh *mesh, const weft_shape *out,
                            choices *all)
{
    int64_t total = 1;
    for (int k = 0; k <= check->n_in; k++) {
        const bool is_in = k < check->n_in;
        const weft_shape shape = is_in ? weft_check_shape(check, k) : *out;
        const bool is_whole = is_in && check->in[k].never_split;
        all->texts[k][0][0] = '\0';
        all->counts[k] = is_whole ? 1
                                  : weft_check_places(mesh, &shape, is_in && !check->in[k].is_i32,
                                                      all->texts[k]);
        total *= all->counts[k];
    }
    return total;
}

static void choose(const weft_check *check, const choices *all, int64_t index,
                   weft_check_placing *placing)
{
    *placing = (weft_check_placing){{NULL}, NULL, {false}};
    for (int k = 0; k <= check->n_in; k++) {
        const char *text = all->texts[k][index % all->counts[k]];
        index /= all->counts[k];
        if (k == check->n_in)
            placing->out = text;
        else
            placing->in[k] = text, placing->is_part[k] = strstr(text, "part:") != NULL;
    }
}

static weft_status fail_placed(const checking *c, const weft_mesh *mesh,
                               const weft_check_placing *placing, const char *found,
                               weft_error *error)
{
    char text[300];
    size_t used = 0;
    for (int k = 0; k < c->check.n_in && used < sizeof text; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\"", k ? ", " : "",
                                 placing->in[k]);
    return weft_fail(error, WEFT_MISMATCH, "%s on %s, operands placed %s, the result \"%s\": %s",
                     c->check.name, weft_mesh_text(mesh), text, placing->out, found);
}

static weft_status compare_runs(const checking *c, const weft_mesh *mesh,
                                const weft_check_placing *placing, const weft_check_result *result,
                                const weft_check_result *one, weft_error *error)
{
    const double within =
        10 * tolerance_of(&c->check, one->dtype == WEFT_I32 ? WEFT_F64 : one->dtype);
    char found[200];
    int64_t at = 0;
    if (!is_near(result->data, one->data, one->count, one->dtype == WEFT_I32 ? 0 : within, &at)) {
        weft_text_format(found, sizeof found, "element %lld is %.17g, and on one rank %.17g",
                         (long long)at, result->data[at], one->data[at]);
        return fail_placed(c, mesh, placing, found, error);
    }
    for (int k = 0; k < c->check.n_in; k++) {
        const weft_shape shape = weft_check_shape(&c->check, k);
        if (one->gradient[k] == NULL ||
            is_near(result->gradient[k], one->gradient[k], weft_shape_count(&shape), within, &at))
            continue;
        weft_text_format(
            found, sizeof found,
            "the gradient of operand %d, element %lld, is %.17g, and on one rank %.17g", k,
            (long long)at, result->gradient[k][at], one->gradient[k][at]);
        return fail_placed(c, mesh, placing, found, error);
    }
    return WEFT_OK;
}

static weft_status check_placing(checking *c, weft_mesh *mesh, weft_dtype dtype,
                                 const weft_check_placing *placing, const weft_check_result *one,
                                 weft_error *error)
{
    weft_check_result result;
    weft_error why = {WEFT_OK, -1, ""};
    c->n_runs++;
    if (weft_check_run(mesh, &c->check, dtype, placing, NULL, c->check.has_gradient, &result,
                       &why) != WEFT_OK)
        return fail_placed(c, mesh, placing, why.message, error);
    const weft_status status = compare_runs(c, mesh, placing, &result, one, error);
    weft_check_free(&result);
    return status;
}

static weft_status check_mesh(checking *c, const char *text, weft_dtype dtype,
                              const weft_check_result *one, choices *all, weft_error *error)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1};
    weft_mesh *mesh = NULL;
    WEFT_TRY(weft_mesh_create(&alone, text, &mesh, error));
    const int64_t total = list_choices(&c->check, mesh, &one->shape, all);
    const int64_t most = c->check.most > 0 ? c->check.most : 200, n = total < most ? total : most;
    weft_status status = WEFT_OK;
    for (int64_t i = 0; i < n && status == WEFT_OK; i++) {
        const double drawn = weft_check_unit(99, i) + weft_check_unit(98, i) / 1048576.0;
        weft_check_placing placing;
        choose(&c->check, all, total <= most ? i : (int64_t)(drawn * (double)total) % total,
               &placing);
        status = check_placing(c, mesh, dtype, &placing, one, error);
    }
    (void)weft_mesh_destroy(&mesh);
    return status;
}

static weft_status check_meshes(checking *c, weft_dtype dtype, weft_error *error)
{
    static const char *const usual[] = {"data:2", "data:3", "data:2,model:2", "data:4", NULL};
    const char *const *meshes = c->check.meshes != NULL ? c->check.meshes : usual;
    weft_check_result one;
    choices *all = malloc(sizeof *all);
    if (all == NULL) return weft_fail_memory(error, sizeof *all);
    weft_status status = weft_check_run(c->alone, &c->check, dtype, &as_it_comes, NULL,
                                        c->check.has_gradient, &one, error);
    c->n_runs += status == WEFT_OK;
    for (int m = 0; status == WEFT_OK && meshes[m] != NULL; m++)
        status = check_mesh(c, meshes[m], dtype, &one, all, error);
    weft_check_free(&one);
    free(all);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static weft_status look_at(const weft_check *check, weft_error *error)
{
    WEFT_TRY(weft_check_given(check->name != NULL, "weft_check_op", "check->name", error));
    WEFT_TRY(weft_check_given(check->build != NULL, "weft_check_op", "check->build", error));
    WEFT_TRY(
        weft_check_given(check->reference != NULL, "weft_check_op", "check->reference", error));
    if (check->n_in < 1 || check->n_in > WEFT_CHECK_IN)
        return weft_fail(error, WEFT_USAGE,
                         "weft_check_op: %.64s has %d operands; it has from 1 to %d", check->name,
                         check->n_in, WEFT_CHECK_IN);
    if (check->dtypes & ~(uint32_t)((1u << WEFT_F32) | (1u << WEFT_F64)))
        return weft_fail(
            error, WEFT_USAGE,
            "weft_check_op: %.64s is to be tried in dtypes %#x; float operands are f32 "
            "or f64",
            check->name, (unsigned)check->dtypes);
    for (int k = 0; k < check->n_in; k++) {
        const weft_shape shape = weft_check_shape(check, k);
        if (check->in[k].n_dims > 0)
            WEFT_TRY(weft_check_given(check->in[k].dims != NULL, "weft_check_op", "dims", error));
        if (shape.n_dims >= WEFT_MAX_DIMS)
            return weft_fail(
                error, WEFT_USAGE,
                "weft_check_op: operand %d of %.64s has %d dims; to be a partial sum too "
                "it has at most %d",
                k, check->name, shape.n_dims, WEFT_MAX_DIMS - 1);
        WEFT_TRY(weft_shape_check(&shape, error));
    }
    return WEFT_OK;
}

static weft_status check_all(checking *c, weft_error *error)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1};
    const uint32_t usual = (1u << WEFT_F32) | (1u << WEFT_F64);
    const uint32_t dtypes = c->check.dtypes != 0 ? c->check.dtypes : usual;
    WEFT_TRY(weft_mesh_create(&alone, "data:1", &c->alone, error));
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
        if (dtypes >> dtype & 1) WEFT_TRY(check_values(c, (weft_dtype)dtype, error));
    if (c->check.has_gradient) WEFT_TRY(check_gradients(c, error));
    return check_meshes(c, dtypes >> WEFT_F64 & 1 ? WEFT_F64 : WEFT_F32, error);
}

WEFT_SIZE_IS_WHOLE(weft_check, spare);

weft_status weft_check_op(const weft_check *check, int64_t *n_runs, weft_error *error)
{
    checking c = {.n_runs = 0};
    if (n_runs != NULL) *n_runs = 0;
    WEFT_GIVEN(check, error);
    WEFT_TRY(weft_size_take(check, &c.check, WEFT_SIZE_TO(weft_check, most), sizeof c.check,
                            "weft_check_op", error));
    WEFT_TRY(look_at(&c.check, error));
    const weft_status status = check_all(&c, error);
    (void)weft_mesh_destroy(&c.alone);
    if (n_runs != NULL) *n_runs = c.n_runs;
    return status;
}
