/* search_measure: the best of a search run here, and put in the order of the clock. */
#include "search.h"

#include "stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12 /* after one that is not counted */, MOST_RANKS = 256 };

weft_status app_search_measure_check(const app_search *search, int ranks, weft_error *error)
{
    if (search->world->n_processes > 1)
        return weft_fail(
            error, WEFT_USAGE,
            "--measure runs ranks as threads of one process; start the search without a "
            "launcher");
    if (ranks <= MOST_RANKS) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--measure and %d ranks: at most %d run here; leave --measure away", ranks,
                     MOST_RANKS);
}

/* Times do not depend on numbers. */
static weft_status write_zeros(weft_program *program, weft_error *error)
{
    for (uint32_t id = 1; (int)id <= weft_plan_n_tensors(program); id++) {
        weft_planned_tensor tensor;
        WEFT_TRY(weft_plan_tensor_at(program, id, 0, &tensor, error));
        if (tensor.kind != WEFT_TENSOR_INPUT) continue;
        const int64_t bytes =
            weft_shape_count(tensor.shape) * (int64_t)weft_dtype_bytes(tensor.dtype);
        void *zeros = calloc((size_t)bytes + 1, 1);
        if (!zeros) return weft_fail_memory(error, (size_t)bytes);
        const weft_status status = weft_write(program, weft_find_input(program, tensor.name),
                                              tensor.dtype, zeros, bytes, error);
        free(zeros);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status run(weft_program *program, double *seconds, weft_error *error)
{
    WEFT_TRY(write_zeros(program, error));
    *seconds = INFINITY;
    for (int i = 0; i <= STEPS; i++) {
        const double begun = app_seconds();
        WEFT_TRY(weft_run(program, error));
        if (i > 0) *seconds = fmin(*seconds, app_seconds() - begun);
    }
    return WEFT_OK;
}

static weft_status compile(const app_search *search, const weft_search_options *options,
                           const weft_choice *choice, weft_mesh *mesh, weft_built_graph *built,
                           weft_program **program, weft_error *error)
{
    weft_layout *layout = NULL;
    WEFT_TRY(search->build(search->context, choice, built, error));
    WEFT_TRY(weft_layout_create(choice->layout, &layout, error));
    weft_status status = weft_layout_store(layout, choice->zero, options->store_dim, error);
    built->options.machine = options->machine;
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, (weft_values){built->values, built->n_values},
                              &built->options, program, error);
    weft_layout_destroy(&layout);
    return status;
}

static weft_status measure(const app_search *search, const weft_search_options *options,
                           const weft_choice *choice, double *seconds, weft_error *error)
{
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_built_graph built = {0};
    weft_status status =
        weft_mesh_create(search->world, *choice->mesh ? choice->mesh : "one:1", &mesh, error);
    if (status == WEFT_OK) status = compile(search, options, choice, mesh, &built, &program, error);
    if (status == WEFT_OK) status = run(program, seconds, error);
    (void)weft_program_destroy(&program);
    if (built.graph) (void)weft_graph_destroy(&built.graph);
    (void)weft_mesh_destroy(&mesh);
    return status;
}

/* By insertion: those that were not run stay behind. */
static void sort(app_search_result *result, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && result->measured[k] < result->measured[k - 1]; k--) {
            const weft_found_choice choice = result->found.best[k];
            const double seconds = result->measured[k];
            result->found.best[k] = result->found.best[k - 1];
            result->measured[k] = result->measured[k - 1];
            result->found.best[k - 1] = choice;
            result->measured[k - 1] = seconds;
        }
}

/* What the search would choose without the clock is among the first n, or becomes one more. returns how many they are then */
static int take_chosen(weft_found *found, int n)
{
    const int to = n < WEFT_MAX_FOUND ? n : n - 1;
    int at = 0;
    while (at < found->n && !app_search_same(&found->best[at].choice, &found->chosen.choice))
        at++;
    if (at < n) return n;
    if (at == found->n && found->n < WEFT_MAX_FOUND) found->n++;
    if (at == found->n) at--; /* the last of ten gives way */
    memmove(&found->best[to + 1], &found->best[to], (size_t)(at - to) * sizeof *found->best);
    found->best[to] = found->chosen;
    return to + 1;
}

weft_status app_search_measure(const app_search *search, int n, app_search_result *result,
                               weft_error *error)
{
    if (n > result->found.n) n = result->found.n;
    n = take_chosen(&result->found, n);
    for (int i = 0; i < n; i++)
        WEFT_TRY(measure(search, result->options, &result->found.best[i].choice,
                         &result->measured[i], error));
    sort(result, n);
    return WEFT_OK;
}
