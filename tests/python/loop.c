/* loop: the training loop of docs/python.md in C: loop FOLDER [MESH [LAYOUT]] reads images [512, 64] f32 and labels [512] i32
 * there, and writes the losses of its steps, all digits. */
#include <stdio.h>
#include <weft.h>

enum { SAMPLES = 512, BATCH = 64, PIXELS = 64, HIDDEN = 128, DIGITS = 10, EPOCHS = 3 };

typedef struct loop {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    float images[SAMPLES][PIXELS];
    int32_t labels[SAMPLES];
} loop;

static weft_status read_file(const char *folder, const char *name, void *data, size_t bytes,
                             weft_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    const bool is_whole = file != NULL && fread(data, 1, bytes, file) == bytes;
    if (file != NULL) fclose(file);
    return is_whole ? WEFT_OK : weft_fail(error, WEFT_IO, "%.200s is not all there", path);
}

static weft_value dense(weft_value x, const char *name, weft_dim in, weft_dim out)
{
    weft_dense_options options = {0};
    options.name = name;
    options.in = WEFT_DIMS(in);
    options.out = WEFT_DIMS(out);
    return weft_dense(x, &options);
}

static weft_status train(loop *l, const char *mesh, const char *layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, mesh, &l->mesh, error));
    WEFT_TRY(weft_layout_create(layout, &l->layout, error));
    weft_graph *g = l->graph = weft_graph_create(0);
    const weft_dim batch = {"batch", BATCH}, pixel = {"pixel", PIXELS}, hidden = {"hidden", HIDDEN},
                   digit = {"digit", DIGITS};
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value y = weft_input(g, "y", WEFT_I32, WEFT_DIMS(batch));
    weft_norm_options norm = {0};
    norm.name = "norm";
    norm.feature = hidden;
    weft_value h = weft_norm(weft_relu(dense(x, "first", pixel, hidden)), &norm);
    weft_value loss = weft_mean(weft_cross_entropy(dense(h, "last", hidden, digit), y, digit));
    weft_optimizer_options options = {0};
    options.rate = 1e-3;
    weft_value update = weft_adam(loss, &options);
    WEFT_TRY(weft_compile(l->mesh, l->layout, WEFT_VALUES(loss, update), NULL, &l->program, error));
    for (int step = 0; step < EPOCHS * (SAMPLES / BATCH); step++) {
        const int at = step % (SAMPLES / BATCH) * BATCH;
        double value;
        WEFT_TRY(
            weft_write(l->program, x, WEFT_F32, l->images[at], BATCH * sizeof *l->images, error));
        WEFT_TRY(
            weft_write(l->program, y, WEFT_I32, &l->labels[at], BATCH * sizeof *l->labels, error));
        WEFT_TRY(weft_run(l->program, error));
        WEFT_TRY(weft_read_scalar(l->program, loss, &value, error));
        printf("%a\n", value);
    }
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    static loop l;
    weft_error error = WEFT_NO_ERROR;
    const char *folder = n > 1 ? arguments[1] : ".";
    weft_status status = read_file(folder, "images", l.images, sizeof l.images, &error);
    if (status == WEFT_OK) status = read_file(folder, "labels", l.labels, sizeof l.labels, &error);
    if (status == WEFT_OK)
        status = train(&l, n > 2 ? arguments[2] : "", n > 3 ? arguments[3] : "", &error);
    if (status != WEFT_OK) fprintf(stderr, "loop: %s\n", error.message);
    (void)!weft_program_destroy(&l.program);
    (void)!weft_graph_destroy(&l.graph);
    weft_layout_destroy(&l.layout);
    (void)!weft_mesh_destroy(&l.mesh);
    weft_world_close();
    return status == WEFT_OK ? 0 : 2;
}
