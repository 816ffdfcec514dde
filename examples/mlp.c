/* mlp: a perceptron learns on which of three spiral arms a point of the plane lies.
 *
 *     mlp [MESH [LAYOUT]]              mlp data:2,model:2 batch:data,hidden:model
 *
 * The program never mentions ranks: which rank holds which part of batch and hidden is the layout's business. So the
 * losses are those of one rank on every mesh, except for the last digits of its sums.
 */
#include <math.h>
#include <stdio.h>
#include <weft.h>

enum { POINTS = 300, ARMS = 3, HIDDEN = 64, STEPS = 200 };

typedef struct spiral {
    float point[POINTS][2];
    int32_t arm[POINTS];
} spiral;

/* What is made on the way, to be given back at the end. */
typedef struct run {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
} run;

/* Three arms that wind once around the middle, a little blurred. */
static void draw(spiral *s)
{
    const weft_philox_key key = {7, 0, 0}; /* numbers are a function of key and counter: no state */
    for (int i = 0; i < POINTS; i++) {
        const int arm = i % ARMS;
        const double radius = (i + 1.0) / POINTS;
        uint32_t words[4];
        weft_philox(key, (uint64_t)i, words);
        const double blur = 0.3 * (weft_philox_unit(words[0]) - 0.5);
        const double angle = 6.283 * (radius + (double)arm / ARMS) + blur;
        s->point[i][0] = (float)(radius * cos(angle));
        s->point[i][1] = (float)(radius * sin(angle));
        s->arm[i] = arm;
    }
}

static weft_value layer(weft_value x, const char *name, weft_dim in, weft_dim out,
                        const char *activation)
{
    weft_dense_options options = {0};
    options.name = name; /* of its variables: "first/weight", "first/bias" */
    options.in = WEFT_DIMS(in);
    options.out = WEFT_DIMS(out);
    options.activation = activation;
    options.initializer = "he_normal";
    return weft_dense(x, &options);
}

static weft_status train(run *r, const char *mesh, const char *layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, mesh, &r->mesh, error));
    WEFT_TRY(weft_layout_create(layout, &r->layout, error));

    /* The model: names and sizes of dims, and what is computed of what. */
    weft_graph *g = r->graph = weft_graph_create(1);
    weft_dim batch = {"batch", POINTS}, plane = {"plane", 2}, arm = {"arm", ARMS};
    weft_dim hidden = {"hidden", HIDDEN}, again = {"again", HIDDEN};
    weft_value point = weft_input(g, "point", WEFT_F32, WEFT_DIMS(batch, plane));
    weft_value truth = weft_input(g, "truth", WEFT_I32, WEFT_DIMS(batch));
    weft_value h = layer(point, "first", plane, hidden, "relu");
    h = layer(h, "second", hidden, again, "relu");
    weft_value logits = layer(h, "third", again, arm, NULL);
    weft_value loss = weft_mean(weft_cross_entropy(logits, truth, arm));
    weft_value is_right = weft_equal(weft_argmax(logits, arm), truth);
    weft_value right = weft_sum(WEFT_SCALAR, weft_cast(is_right, WEFT_F32));
    weft_optimizer_options options = {0};
    options.rate = 0.01;
    weft_value update = weft_adam(loss, &options);

    /* The program: the same for this mesh and layout. A mistake above is said here, with its line. */
    WEFT_TRY(weft_compile(r->mesh, r->layout, WEFT_VALUES(loss, right, update), NULL, &r->program,
                          error));
    spiral s;
    draw(&s);
    WEFT_TRY(weft_write(r->program, point, WEFT_F32, s.point, sizeof s.point, error));
    WEFT_TRY(weft_write(r->program, truth, WEFT_I32, s.arm, sizeof s.arm, error));
    for (int step = 1; step <= STEPS; step++) {
        double value, n_right;
        WEFT_TRY(weft_run(r->program, error));
        WEFT_TRY(weft_read_scalar(r->program, loss, &value, error));
        WEFT_TRY(weft_read_scalar(r->program, right, &n_right, error));
        if ((step == 1 || step % 40 == 0) && weft_mesh_is_root(r->mesh))
            printf("step %3d  loss %.4f  %3.0f of %d right\n", step, value, n_right, POINTS);
    }
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    run r = {NULL, NULL, NULL, NULL};
    weft_error error = WEFT_NO_ERROR;
    if (train(&r, n > 1 ? arguments[1] : "", n > 2 ? arguments[2] : "", &error) != WEFT_OK)
        fprintf(stderr, "mlp: %s\n", error.message);
    weft_program_destroy(&r.program);
    weft_graph_destroy(&r.graph);
    weft_layout_destroy(&r.layout);
    weft_mesh_destroy(&r.mesh);
    weft_world_close();
    return error.status == WEFT_OK ? 0 : 2;
}
