/* mlp: a two-layer perceptron on images. mlp IMAGES LABELS [MESH [LAYOUT]] */
#include <stdio.h>
#include <weft.h>

typedef struct mlp {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    weft_dataset *data;
} mlp;

static weft_status train(mlp *m, int n, char **arguments, weft_error *error)
{
    weft_world world;
    if (n < 3)
        return weft_fail(error, WEFT_USAGE, "two files, please: mlp IMAGES LABELS [MESH [LAYOUT]]");
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, n > 3 ? arguments[3] : "", &m->mesh, error));
    WEFT_TRY(weft_layout_create(n > 4 ? arguments[4] : "", &m->layout, error));

    weft_graph *g = m->graph = weft_graph_create(1);
    weft_dim batch = {"batch", 128}, pixel = {"pixel", 784}, hidden = {"hidden", 1024},
             digit = {"digit", 10};
    weft_value image = weft_input(g, "image", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value label = weft_input(g, "label", WEFT_I32, WEFT_DIMS(batch));
    weft_value w1 =
        weft_variable(g, "w1", WEFT_F32, WEFT_DIMS(pixel, hidden), weft_normal(0.0, 0.05));
    weft_value w2 =
        weft_variable(g, "w2", WEFT_F32, WEFT_DIMS(hidden, digit), weft_normal(0.0, 0.05));
    weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, hidden), image, w1));
    weft_value logits = weft_einsum(WEFT_DIMS(batch, digit), h, w2);
    weft_value loss = weft_mean(weft_cross_entropy(logits, label, digit));
    weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
    WEFT_TRY(weft_compile(m->mesh, m->layout, WEFT_VALUES(loss, update), NULL, &m->program, error));
    if (weft_idx_open(arguments[1], arguments[2], 0, 0, true, 1, &m->data, error) == WEFT_OK)
        (void)!weft_dataset_start(m->data, m->program, error);
    WEFT_TRY(weft_world_agree(error)); /* a file may be missing on one host only */
    for (int step = 1; step <= 100; step++) {
        double value;
        WEFT_TRY(weft_dataset_next(m->data, m->program, error));
        WEFT_TRY(weft_run(m->program, error));
        WEFT_TRY(weft_read_scalar(m->program, loss, &value, error));
        if (step % 20 == 0 && weft_mesh_is_root(m->mesh))
            printf("step %3d  loss %.4f\n", step, value);
    }
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    mlp m = {0};
    weft_error error = {0};
    if (train(&m, n, arguments, &error) && weft_world_is_root())
        fprintf(stderr, "mlp: %s\n", error.message);
    weft_dataset_close(&m.data);
    weft_program_destroy(&m.program);
    weft_graph_destroy(&m.graph);
    weft_layout_destroy(&m.layout);
    weft_mesh_destroy(&m.mesh);
    weft_world_close();
    return error.status == WEFT_OK ? 0 : 2;
}
