/* train: a model with the plug-in's op and combine, trained by its optimizer.
 *
 *     train [MESH [LAYOUT [FILE]]]             train data:2,model:2 batch:data,gate:model
 *
 * Each sample has gates; the model is to say how likely it is that all of them are open: a product over gates, which the
 * layout may split, so that each rank has a part of the product. The program is saved in FILE: it needs the plug-in to be loaded
 * (weft run FILE --plugin libplugin.so).
 */
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

enum { STEPS = 60 };

static const weft_dim batch = {"batch", 24}, in = {"in", 6}, gate = {"gate", 5};

static weft_value likely_open(weft_value x, weft_value w)
{
    weft_value each = plugin_softsign(weft_einsum(WEFT_DIMS(batch, gate), x, w));
    return plugin_product(weft_shift(weft_scale(each, 0.5), 0.5), "gate");
}

/* Whether the first gates of a hidden truth are open. */
static void fill(float *x, float *y)
{
    unsigned state = 7;
    for (int b = 0; b < (int)batch.size; b++) {
        y[b] = 1;
        for (int i = 0; i < (int)in.size; i++) {
            state = state * 1103515245u + 12345u;
            x[b * (int)in.size + i] = (float)(state >> 16 & 1023) / 512.0f - 1.0f;
            if (i < 2 && x[b * (int)in.size + i] < 0) y[b] = 0;
        }
    }
}

static weft_status save(weft_graph *graph, weft_value loss, const char *mesh, const char *rules,
                        const char *file, weft_error *error)
{
    weft_saving what = {0};
    what.outputs = (weft_values){&loss, 1};
    what.mesh = mesh;
    what.layout = rules;
    return weft_graph_save(graph, file, &what, error);
}

static weft_status train(const weft_world *world, const char *mesh_text, const char *rules,
                         const char *file, weft_error *error)
{
    static float x_data[24 * 6], y_data[24];
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, in));
    weft_value y = weft_input(graph, "y", WEFT_F32, WEFT_DIMS(batch));
    weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(in, gate), weft_normal(0, 0.5));
    weft_value loss = weft_mean(weft_square(weft_sub(likely_open(x, w), y)));
    weft_optimizer_options options = {0};
    options.rate = 0.02;
    weft_value update = plugin_signum(loss, &options);
    fill(x_data, y_data);
    if (file != NULL) WEFT_TRY(save(graph, weft_name(loss, "loss"), mesh_text, rules, file, error));
    WEFT_TRY(weft_mesh_create(world, mesh_text, &mesh, error));
    WEFT_TRY(weft_layout_create(rules, &layout, error));
    WEFT_TRY(weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, error));
    WEFT_TRY(weft_write(program, x, WEFT_F32, x_data, sizeof x_data, error));
    WEFT_TRY(weft_write(program, y, WEFT_F32, y_data, sizeof y_data, error));
    for (int step = 1; step <= STEPS; step++) {
        double now;
        WEFT_TRY(weft_run(program, error));
        WEFT_TRY(weft_read_scalar(program, loss, &now, error));
        if (step % 20 == 0 || step == 1)
            if (weft_world_is_root()) printf("step %3d  loss %.6f\n", step, now);
    }
    weft_traffic traffic[16];
    const int n = weft_plan_traffic(program, 0, traffic, 16);
    for (int i = 0; i < n && weft_world_is_root(); i++)
        printf("%s: %lld times, %lld bytes a step\n", weft_convert_name(traffic[i].kind),
               (long long)traffic[i].count, (long long)traffic[i].bytes);
    (void)weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    (void)weft_mesh_destroy(&mesh);
    (void)weft_graph_destroy(&graph);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    weft_error error = WEFT_NO_ERROR;
    weft_world world;
    weft_status status = weft_world_open(&world, &error);
    if (status == WEFT_OK) status = plugin_register(&error);
    if (status == WEFT_OK)
        status = train(&world, argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "",
                       argc > 3 ? argv[3] : NULL, &error);
    if (status != WEFT_OK) fprintf(stderr, "train: %s\n", error.message);
    weft_world_close();
    return status != WEFT_OK;
}
