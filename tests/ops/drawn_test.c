/* drawn_test: inputs that nobody has written, made for kernels that are timed: ids are all below their dim, and differ; floats differ,
 * from one side to the other of 0; scalars, and integers that are no ids, are 0.
 */
#include "ops/planned.h"
#include "ops/run/program.h"
#include "test.h"

enum { WORDS = 7, BATCH = 200 };

static const weft_dim batch = {"batch", BATCH}, word = {"word", WORDS}, in = {"in", 5};

/* ids go through a rename before they are looked up. */
static weft_value looked_up(weft_graph *graph, weft_value ids)
{
    const weft_value table = weft_input(graph, "table", WEFT_F32, WEFT_DIMS(word, in));
    return weft_gather(table, weft_rename(ids, batch, (weft_dim){"sample", BATCH}), word);
}

/* The inputs' numbers, of one rank that has all of them. */
static void draw(planned *p, weft_values inputs, double *numbers[])
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_mesh_create(&alone, "one:1", &p->mesh, &error), error);
    CHECK_OK(weft_layout_create("", &p->layout, &error), error);
    const weft_value sums[] = {weft_sum(WEFT_SCALAR, looked_up(p->graph, inputs.values[0])),
                               weft_scale(inputs.values[1], 2), weft_scale(inputs.values[2], 2),
                               weft_add(inputs.values[3], inputs.values[3])};
    CHECK_OK(weft_compile(p->mesh, p->layout, (weft_values){sums, 4}, NULL, &p->program, &error),
             error);
    CHECK_OK(weft_draw_inputs(&p->program->ranks[0], &error), error);
    for (int i = 0; i < inputs.n_values; i++) {
        const weft_shape *shape = weft_shape_of(inputs.values[i]);
        weft_box box;
        const void *memory = weft_local(p->program, inputs.values[i], 0, &box);
        for (int64_t n = 0; n < weft_box_count(&box, shape->n_dims); n++)
            numbers[i][n] = weft_dtype_get(weft_dtype_of(inputs.values[i]), memory, n);
    }
}

static void find_range(const double *numbers, double *low, double *high)
{
    *low = *high = numbers[0];
    for (int i = 1; i < BATCH; i++) {
        *low = fmin(*low, numbers[i]);
        *high = fmax(*high, numbers[i]);
    }
}

static void test_inputs_are_made_by_what_they_are_for(void)
{
    static double ids[BATCH], floats[BATCH], rate[1], flags[BATCH];
    double low, high;
    planned p = {.graph = weft_graph_create(1)};
    const weft_value inputs[] = {weft_input(p.graph, "ids", WEFT_I32, WEFT_DIMS(batch)),
                                 weft_input(p.graph, "x", WEFT_F32, WEFT_DIMS(batch)),
                                 weft_input(p.graph, "rate", WEFT_F32, WEFT_SCALAR),
                                 weft_input(p.graph, "flags", WEFT_I32, WEFT_DIMS(batch))};
    rate[0] = flags[3] = 1;
    draw(&p, (weft_values){inputs, 4}, (double *[]){ids, floats, rate, flags});
    find_range(ids, &low, &high);
    CHECK(low == 0 && high == WORDS - 1);
    find_range(floats, &low, &high);
    CHECK(low >= -1 && low < -0.9 && high > 0.9 && high <= 1);
    find_range(flags, &low, &high);
    CHECK(low == 0 && high == 0 && rate[0] == 0);
    close_planned(&p);
}

int main(void)
{
    RUN(test_inputs_are_made_by_what_they_are_for);
    return weft_test_report();
}
