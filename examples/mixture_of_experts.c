/* mixture_of_experts: every point is sent to one of four small networks, and all of it is einsums.
 *
 *     mixture_of_experts [MESH [LAYOUT]]       mixture_of_experts data:2,model:2 batch:data,expert:model
 *
 * The gate chooses an expert for each point. Each expert has a number of slots; a point takes the next free slot of its
 * expert, or none when it is full (then its answer is 0). `dispatch` [batch, expert, slot] says who sits where: an einsum
 * with it carries points to slots, another carries answers back. With the layout `batch:data,expert:model` the experts
 * are on different ranks, and the einsums become the exchanges that others write by hand.
 */
#include <stdio.h>
#include <weft.h>

enum { POINTS = 256, IN = 4, OUT = 3, HIDDEN = 16, EXPERTS = 4, SLOTS = 96, STEPS = 300 };

typedef struct run {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
} run;

typedef struct sums {
    weft_value answer; /* [batch, out]                           */
    weft_value load;   /* [expert]: points that sit there        */
    weft_value uneven; /* 1 when all experts have the same share */
} sums;

static double unit(uint32_t stream, int i)
{
    const weft_philox_key key = {3, stream, 0};
    uint32_t words[4];
    weft_philox(key, (uint64_t)i, words);
    return 2.0 * weft_philox_unit(words[0]) - 1.0;
}

/* The signs of the first two coordinates say which of four linear maps a point goes through. */
static void draw(double (*x)[IN], double (*y)[OUT])
{
    for (int i = 0; i < POINTS; i++) {
        for (int a = 0; a < IN; a++)
            x[i][a] = unit(0, i * IN + a);
        const int map = (x[i][0] > 0) + 2 * (x[i][1] > 0);
        for (int o = 0; o < OUT; o++) {
            y[i][o] = 0;
            for (int a = 0; a < IN; a++)
                y[i][o] += unit(1, (map * OUT + o) * IN + a) * x[i][a];
        }
    }
}

static weft_value weight(weft_graph *g, const char *name, weft_shape shape)
{
    return weft_variable(g, name, WEFT_F64, shape, weft_normal(0.0, 0.5));
}

static sums mixture(weft_value x, weft_dim batch, weft_dim in, weft_dim out)
{
    weft_graph *g = x.graph;
    weft_dim expert = {"expert", EXPERTS}, slot = {"slot", SLOTS}, hidden = {"hidden", HIDDEN};
    weft_dim before = {"before", POINTS}; /* the batch again, to count those who came before */

    /* gate [batch, expert], and the one expert of each point as 0 and 1 */
    weft_value gate = weft_softmax(
        weft_einsum(WEFT_DIMS(batch, expert), x, weight(g, "gate", WEFT_DIMS(in, expert))), expert);
    weft_value chosen = weft_one_hot(weft_argmax(gate, expert), expert, WEFT_F64);

    /* a point's slot: how many before it chose the same expert */
    weft_value earlier =
        weft_less(weft_broadcast_to(weft_iota(g, WEFT_I32, before), WEFT_DIMS(before, batch)),
                  weft_broadcast_to(weft_iota(g, WEFT_I32, batch), WEFT_DIMS(before, batch)));
    weft_value queue = weft_einsum(WEFT_DIMS(batch, expert), weft_cast(earlier, WEFT_F64),
                                   weft_rename(chosen, batch, before));
    weft_value place = weft_cast(weft_sum(WEFT_DIMS(batch), weft_mul(queue, chosen)), WEFT_I32);
    weft_value dispatch =
        weft_einsum(WEFT_DIMS(batch, expert, slot), chosen, weft_one_hot(place, slot, WEFT_F64));

    /* to the slots, through the experts, and back, weighted by the gate */
    weft_value seated = weft_einsum(WEFT_DIMS(expert, slot, in), dispatch, x);
    weft_value h = weft_relu(weft_einsum(WEFT_DIMS(expert, slot, hidden), seated,
                                         weight(g, "up", WEFT_DIMS(expert, in, hidden))));
    weft_value said = weft_einsum(WEFT_DIMS(expert, slot, out), h,
                                  weight(g, "down", WEFT_DIMS(expert, hidden, out)));
    sums s;
    s.answer = weft_einsum(WEFT_DIMS(batch, out), weft_mul(dispatch, gate), said);
    s.load = weft_sum(WEFT_DIMS(expert), dispatch);
    /* share of points times mean of gate, summed over experts: least when the load is even */
    s.uneven = weft_scale(weft_einsum(WEFT_SCALAR, weft_mean_over(WEFT_DIMS(expert), chosen),
                                      weft_mean_over(WEFT_DIMS(expert), gate)),
                          EXPERTS);
    return s;
}

static weft_status learn(run *r, const char *mesh, const char *layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, mesh, &r->mesh, error));
    WEFT_TRY(weft_layout_create(layout, &r->layout, error));

    /* In f64: which expert a point goes to may hang on the last digits of the gate. */
    weft_graph *g = r->graph = weft_graph_create(5);
    weft_dim batch = {"batch", POINTS}, in = {"in", IN}, out = {"out", OUT};
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, in));
    weft_value y = weft_input(g, "y", WEFT_F64, WEFT_DIMS(batch, out));
    sums s = mixture(x, batch, in, out);
    weft_value loss = weft_mean(weft_square(weft_sub(s.answer, y)));
    weft_optimizer_options options = {0};
    options.rate = 0.01;
    weft_value update = weft_adam(weft_add(loss, weft_scale(s.uneven, 0.1)), &options);
    WEFT_TRY(weft_compile(r->mesh, r->layout, WEFT_VALUES(loss, s.load, update), NULL, &r->program,
                          error));

    double points[POINTS][IN], answers[POINTS][OUT], load[EXPERTS];
    draw(points, answers);
    WEFT_TRY(weft_write(r->program, x, WEFT_F64, points, sizeof points, error));
    WEFT_TRY(weft_write(r->program, y, WEFT_F64, answers, sizeof answers, error));
    for (int step = 1; step <= STEPS; step++) {
        double value;
        WEFT_TRY(weft_run(r->program, error));
        if (step != 1 && step % 60 != 0) continue;
        WEFT_TRY(weft_read_scalar(r->program, loss, &value, error));
        WEFT_TRY(weft_read(r->program, s.load, WEFT_F64, load, sizeof load, error));
        if (!weft_mesh_is_root(r->mesh)) continue;
        printf("step %3d  loss %.4f  points at the experts", step, value);
        for (int e = 0; e < EXPERTS; e++)
            printf(" %3.0f", load[e]);
        printf("\n");
    }
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    run r = {NULL, NULL, NULL, NULL};
    weft_error error = WEFT_NO_ERROR;
    if (learn(&r, n > 1 ? arguments[1] : "", n > 2 ? arguments[2] : "", &error) != WEFT_OK)
        fprintf(stderr, "mixture_of_experts: %s\n", error.message);
    weft_program_destroy(&r.program);
    weft_graph_destroy(&r.graph);
    weft_layout_destroy(&r.layout);
    weft_mesh_destroy(&r.mesh);
    weft_world_close();
    return error.status == WEFT_OK ? 0 : 2;
}
