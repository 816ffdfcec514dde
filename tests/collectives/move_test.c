/* move: random tensors converted between random specs; every element is looked at on every rank.
 * RANKS: 2 3 4 6 8
 */
#include "on_ranks.h"
#include "stacked.h"

#include "layout/random_specs.h"

/* Summand of element `place` that rank r holds when the value is partial: integers that add exactly in every dtype, so
 * small ones where a dtype is narrow. */
static double summand(const weft_mesh *mesh, weft_dtype dtype, uint32_t partial, int r,
                      int64_t place)
{
    int which;
    weft_mesh_group(mesh, partial, r, NULL, &which);
    const int64_t number = place * 3 + 1 + which * (place % 5 + 100);
    return (double)(weft_dtype_bytes(dtype) < 4 ? number % 16 : number);
}

/* What rank r must hold of element `place` when the axes in `ended` have been added up. */
static double total(const weft_mesh *mesh, weft_dtype dtype, uint32_t partial, uint32_t ended,
                    int r, int64_t place)
{
    int among[64];
    double sum = 0;
    const int n = weft_mesh_group(mesh, ended, r, among, NULL);
    for (int i = 0; i < n; i++)
        sum += summand(mesh, dtype, partial, among[i], place);
    return sum;
}

/* Global place of element i of a box. */
static int64_t place_in(const weft_shape *shape, const weft_box *box, int64_t i)
{
    int64_t at[WEFT_MAX_DIMS];
    for (int d = shape->n_dims - 1; d >= 0; d--) {
        const int64_t length = box->end[d] - box->begin[d];
        at[d] = box->begin[d] + i % length;
        i /= length;
    }
    return place_of(shape, at);
}

/* One conversion, the same on all ranks. */
typedef struct conversion {
    weft_shape shape;
    weft_dtype dtype;
    weft_spec from, to;
} conversion;

static const conversion *current; /* set while no rank runs */

static void *run_step(const ranks *all, int rank, const weft_convert_step *step, void *from)
{
    const conversion *c = current;
    weft_error error = {0};
    weft_box box;
    weft_move *move;
    if (!CHECK_OK(weft_move_create(all->mesh, &c->shape, c->dtype, step, rank, &move, &error),
                  error))
        return from;
    CHECK_EQ_INT(weft_move_wire_bytes(move),
                 weft_convert_bytes(all->mesh, &c->shape, c->dtype, step, rank));
    weft_spec_box(&step->to, all->mesh, &c->shape, rank, &box);
    const int64_t scratch_bytes = weft_move_scratch(move);
    char *scratch = dirty(scratch_bytes + 1);
    void *to = dirty(weft_box_count(&box, c->shape.n_dims) * (int64_t)weft_dtype_bytes(c->dtype));
    weft_comm *comm = step->axes ? weft_comm_of(all->comms, rank, step->axes) : NULL;
    weft_flight *flight;
    CHECK_OK(weft_flight_create(move, comm, &flight, &error), error);
    for (int round = 0; round < 2; round++) { /* a move is run many times */
        CHECK_OK(weft_flight_start(flight, from, to, scratch, &error), error);
        CHECK_OK(weft_flight_finish(flight, &error), error);
    }
    CHECK_EQ_INT(scratch[scratch_bytes], (char)0xA5);
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    free(scratch), free(from);
    return to;
}

static bool has_place(const conversion *c, const weft_box *box, int64_t place)
{
    for (int d = c->shape.n_dims - 1; d >= 0; d--) {
        const int64_t at = place % c->shape.dims[d].size;
        if (at < box->begin[d] || at >= box->end[d]) return false;
        place /= c->shape.dims[d].size;
    }
    return true;
}

/* Where a value begins to be partial, an element counts on one rank of those axes: on that which had it, or of those on
 * coordinate 0. */
static bool counts_here(const weft_mesh *mesh, const conversion *c, int rank, int64_t place)
{
    const uint32_t begun = c->to.partial & ~(uint32_t)c->from.partial;
    const uint32_t others = ((1u << weft_mesh_n_axes(mesh)) - 1) & ~begun;
    int at[WEFT_MAX_AXES], among[64];
    weft_mesh_coordinates(mesh, rank, at);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (begun >> a & 1 && at[a] != 0 &&
            weft_spec_state(&c->from, c->shape.n_dims, a) == WEFT_REPLICATED)
            return false;
    const int n = weft_mesh_group(mesh, others, rank, among, NULL);
    for (int i = 0; i < n; i++) {
        weft_box box;
        weft_spec_box(&c->from, mesh, &c->shape, among[i], &box);
        if (has_place(c, &box, place)) return true;
    }
    return false;
}

/* What the rank has of the tensor before. */
static void *fill(const ranks *all, int rank, const conversion *c)
{
    weft_box box;
    weft_spec_box(&c->from, all->mesh, &c->shape, rank, &box);
    const int64_t count = weft_box_count(&box, c->shape.n_dims);
    void *data = dirty(count * (int64_t)weft_dtype_bytes(c->dtype));
    for (int64_t i = 0; i < count; i++)
        weft_dtype_put(
            c->dtype, data, i,
            summand(all->mesh, c->dtype, c->from.partial, rank, place_in(&c->shape, &box, i)));
    return data;
}

static void check_result(const ranks *all, int rank, const conversion *c, const void *data)
{
    const uint32_t partial = c->from.partial, ended = partial & ~(uint32_t)c->to.partial;
    weft_box box;
    weft_spec_box(&c->to, all->mesh, &c->shape, rank, &box);
    int64_t n_wrong = 0, count = weft_box_count(&box, c->shape.n_dims);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = place_in(&c->shape, &box, i);
        const double expected = counts_here(all->mesh, c, rank, place)
                                    ? total(all->mesh, c->dtype, partial, ended, rank, place)
                                    : 0;
        n_wrong += weft_dtype_get(c->dtype, data, i) != expected;
    }
    if (CHECK_EQ_INT(n_wrong, 0)) return;
    char from[200], to[200];
    weft_spec_print(&c->from, all->mesh, &c->shape, from, sizeof from);
    weft_spec_print(&c->to, all->mesh, &c->shape, to, sizeof to);
    fprintf(stderr, "  rank %d: %s to %s\n", rank, from, to);
}

static void convert_on_rank(void *argument, int rank)
{
    const ranks *all = argument;
    const conversion *c = current;
    void *data = fill(all, rank, c);
    weft_convert_step steps[WEFT_MAX_CONVERT];
    const int n = weft_convert_plan(all->mesh, &c->shape, &c->from, &c->to, steps);
    for (int s = 0; s < n; s++)
        data = run_step(all, rank, &steps[s], data);
    check_result(all, rank, c, data);
    free(data);
}

/* `to` may stay partial, or begin to be, over axes it does not use otherwise. */
static void be_partial(const weft_mesh *mesh, conversion *c)
{
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (pick(3) > 0) continue;
        if (weft_spec_state(&c->to, c->shape.n_dims, a) != WEFT_REPLICATED) continue;
        c->to.partial |= (uint8_t)(1u << a);
        c->to.combine = WEFT_SUM;
    }
}

/* Conversions at random on every mesh that there can be here; of what they begin with, one axis in `partial_one_in` is partial.
 * Each rank does `convert`. */
static void convert_at_random(int n_trials, int partial_one_in, void (*convert)(void *, int))
{
    char texts[MAX_MESHES][48];
    const int n_meshes = meshes_here(texts);
    for (int m = 0; m < n_meshes; m++) {
        ranks all;
        if (open_ranks(texts[m], &all))
            for (int trial = 0; trial < n_trials; trial++) {
                conversion c = {.shape = random_shape(), .dtype = (weft_dtype)pick(WEFT_DTYPES)};
                c.from = random_spec(all.mesh, &c.shape, partial_one_in);
                c.to = random_spec(all.mesh, &c.shape, 0);
                be_partial(all.mesh, &c);
                if (pick(2) == 0) add_windows(&c.to, &c.shape);
                current = &c;
                weft_mesh_each(all.mesh, convert, &all);
            }
        close_ranks(&all);
    }
}

static void test_random_conversions_move_every_element(void)
{
    convert_at_random(150, 4, convert_on_rank);
}

/* The whole conversion as one WEFT_MOVE, which must be able to do everything. */
static void move_on_rank(void *argument, int rank)
{
    const ranks *all = argument;
    const conversion *c = current;
    void *data = fill(all, rank, c);
    const weft_convert_step step = {WEFT_MOVE, everybody(all), c->from, c->to};
    data = run_step(all, rank, &step, data);
    check_result(all, rank, c, data);
    free(data);
}

static void test_the_mover_alone_can_do_everything(void)
{
    convert_at_random(100, 3, move_on_rank);
}

/* ---- the order of combination ---------------------------------------------------------------- */

typedef struct reduction {
    const ranks *all;
    weft_shape shape;
    weft_combine combine;
    weft_dtype dtype;
    int dim; /* that is scattered */
} reduction;

static void *run_alone(const reduction *r, int rank, weft_convert_step step, const void *data,
                       int64_t bytes)
{
    weft_error error = {0};
    weft_move *move;
    void *to = dirty(bytes);
    if (!CHECK_OK(weft_move_create(r->all->mesh, &r->shape, r->dtype, &step, rank, &move, &error),
                  error))
        return to;
    void *scratch = dirty(weft_move_scratch(move));
    weft_comm *comm = weft_comm_of(r->all->comms, rank, step.axes);
    weft_flight *flight;
    CHECK_OK(weft_flight_create(move, comm, &flight, &error), error);
    CHECK_OK(weft_flight_start(flight, data, to, scratch, &error), error);
    CHECK_OK(weft_flight_finish(flight, &error), error);
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    free(scratch);
    return to;
}

/* Numbers whose sum depends on its order; every first number of a state is a legal count. */
static void fill_states(const reduction *r, int rank, void *data, int64_t count)
{
    const int width = weft_combine_width(r->combine);
    for (int64_t i = 0; i < count; i++) {
        const double x = sin(0.3 + 1.7 * rank + 0.37 * (double)i);
        const bool is_count = r->combine == WEFT_MOMENTS && i % width == 0;
        weft_dtype_put(r->dtype, data, i,
                       is_count    ? 1 + (rank + (double)i)
                       : i % width ? x * x
                                   : x);
    }
}

static void scatter_gather_on_rank(void *argument, int rank)
{
    const reduction *r = argument;
    const int64_t count = weft_shape_count(&r->shape);
    const int64_t bytes = count * (int64_t)weft_dtype_bytes(r->dtype);
    const uint32_t axis = 1;
    weft_spec partial = {.partial = axis, .combine = (uint8_t)r->combine}, whole = {0}, split = {0};
    split.n_split[r->dim] = 1; /* over axis 0 */
    void *data = dirty(bytes);
    fill_states(r, rank, data, count);
    void *reduced =
        run_alone(r, rank, (weft_convert_step){WEFT_ALL_REDUCE, axis, partial, whole}, data, bytes);
    void *scattered = run_alone(
        r, rank, (weft_convert_step){WEFT_REDUCE_SCATTER, axis, partial, split}, data, bytes);
    void *gathered = run_alone(r, rank, (weft_convert_step){WEFT_ALL_GATHER, axis, split, whole},
                               scattered, bytes);
    CHECK(memcmp(gathered, reduced, (size_t)bytes) == 0);
    free(data), free(reduced), free(scattered), free(gathered);
}

static void test_reduce_scatter_then_all_gather_is_all_reduce(void)
{
    static const weft_combine combines[] = {WEFT_SUM, WEFT_MAX, WEFT_LSE, WEFT_MOMENTS};
    char texts[MAX_MESHES][48];
    const int n_meshes = meshes_here(texts);
    for (int m = 0; m < n_meshes; m++) {
        ranks all;
        if (!open_ranks(texts[m], &all)) continue;
        for (int k = 0; k < 4 * 2 * 2; k++) {
            const weft_combine combine = combines[k / 4];
            reduction r = {.all = &all, .combine = combine, .dtype = k & 1 ? WEFT_F64 : WEFT_F32};
            r.dim = k >> 1 & 1;
            r.shape = (weft_shape){3, {{"i", 7}, {"j", 95}, {"~", weft_combine_width(combine)}}};
            weft_mesh_each(all.mesh, scatter_gather_on_rank, &r);
        }
        close_ranks(&all);
    }
}

/* ---- many under way ---------------------------------------------------------------------------- */

enum { MOVES = 30, FLIGHTS = 3 };

static struct {
    int n;
    conversion conversions[MOVES];
    weft_convert_step steps[MOVES];
} many; /* the same on all ranks */

typedef struct trip {
    int which; /* of the conversions */
    weft_flight *flight;
    void *from, *to, *scratch;
} trip;

static void begin_trip(const ranks *all, int rank, weft_move *move, trip *t)
{
    const conversion *c = &many.conversions[t->which];
    const weft_convert_step *step = &many.steps[t->which];
    weft_comm *comm = step->axes ? weft_comm_of(all->comms, rank, step->axes) : NULL;
    weft_error error = {0};
    weft_box box;
    weft_spec_box(&c->to, all->mesh, &c->shape, rank, &box);
    t->from = fill(all, rank, c);
    t->to = dirty(weft_box_count(&box, c->shape.n_dims) * (int64_t)weft_dtype_bytes(c->dtype));
    t->scratch = dirty(weft_move_scratch(move));
    CHECK_OK(weft_flight_create(move, comm, &t->flight, &error), error);
    CHECK_OK(weft_flight_start(t->flight, t->from, t->to, t->scratch, &error), error);
    weft_flight_destroy(&t->flight); /* under way: refused */
    CHECK(t->flight != NULL);
}

static void end_trip(const ranks *all, int rank, trip *t)
{
    weft_error error = {0};
    CHECK_OK(weft_flight_finish(t->flight, &error), error);
    check_result(all, rank, &many.conversions[t->which], t->to);
    weft_flight_destroy(&t->flight);
    free(t->from), free(t->to), free(t->scratch);
}

/* Calls that block, while all the others are under way. */
static void reduce_between(const ranks *all, int rank, int64_t count)
{
    weft_comm *comm = weft_comm_of(all->comms, rank, everybody(all));
    weft_error error = {0};
    double *data = dirty(count * (int64_t)sizeof *data), sum = 0;
    void *scratch = dirty(weft_all_reduce_scratch(comm, WEFT_SUM, WEFT_F64, count));
    for (int64_t i = 0; i < count; i++)
        data[i] = rank + 1;
    for (int r = 0; r < weft_mesh_n_ranks(all->mesh); r++)
        sum += r + 1;
    CHECK_OK(weft_all_reduce(comm, WEFT_SUM, WEFT_F64, data, data, count, scratch, &error), error);
    CHECK(data[0] == sum && data[count - 1] == sum);
    CHECK_OK(weft_broadcast(comm, 0, data, 8, &error), error);
    free(data), free(scratch);
}

/* Each rank finishes them in an order of its own. */
static void shuffle(trip *trips, int n, int rank)
{
    uint64_t state = 88172645463325252u + (uint64_t)rank;
    for (int i = n - 1; i > 0; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int k = (int)((state >> 33) % (uint64_t)(i + 1));
        const trip swapped = trips[i];
        trips[i] = trips[k];
        trips[k] = swapped;
    }
}

static void many_on_rank(void *argument, int rank)
{
    const ranks *all = argument;
    weft_error error = {0};
    weft_move *moves[MOVES];
    trip trips[MOVES * FLIGHTS];
    for (int m = 0; m < many.n; m++)
        CHECK_OK(weft_move_create(all->mesh, &many.conversions[m].shape, many.conversions[m].dtype,
                                  &many.steps[m], rank, &moves[m], &error),
                 error);
    const int n = many.n * FLIGHTS;
    for (int i = 0; i < n; i++) {
        trips[i].which = i % many.n;
        begin_trip(all, rank, moves[trips[i].which], &trips[i]);
        if (i == n / 3) reduce_between(all, rank, 10);
    }
    reduce_between(all, rank, 3000);
    shuffle(trips, n, rank);
    for (int i = 0; i < n; i++) {
        end_trip(all, rank, &trips[i]);
        if (i == n / 2) reduce_between(all, rank, 700);
    }
    for (int m = 0; m < many.n; m++)
        weft_move_destroy(&moves[m]);
}

/* One step each: from and to are its own. */
static void pick_many(const weft_mesh *mesh, uint32_t axes)
{
    for (many.n = 0; many.n < MOVES;) {
        conversion c = {.shape = random_shape(), .dtype = (weft_dtype)pick(WEFT_DTYPES)};
        weft_convert_step steps[WEFT_MAX_CONVERT];
        c.from = random_spec(mesh, &c.shape, 3);
        c.to = random_spec(mesh, &c.shape, 0);
        if (pick(3) == 0) add_windows(&c.to, &c.shape);
        const int n = weft_convert_plan(mesh, &c.shape, &c.from, &c.to, steps);
        weft_convert_step step = {WEFT_MOVE, axes, c.from, c.to};
        if (n > 0 && pick(4) > 0) step = steps[0];
        c.from = step.from;
        c.to = step.to;
        many.conversions[many.n] = c;
        many.steps[many.n++] = step;
    }
}

static void test_many_flights_are_finished_in_any_order(void)
{
    char texts[MAX_MESHES][48];
    const int n_meshes = meshes_here(texts);
    for (int m = 0; m < n_meshes; m++) {
        ranks all;
        if (open_ranks(texts[m], &all))
            for (int trial = 0; trial < 6; trial++) {
                pick_many(all.mesh, everybody(&all));
                weft_mesh_each(all.mesh, many_on_rank, &all);
            }
        close_ranks(&all);
    }
}

/* ---- planning, and misuse -------------------------------------------------------------------- */

static void test_a_plan_of_many_ranks_knows_its_bytes(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    weft_move *move;
    CHECK_OK(weft_mesh_plan("data:64,model:8", &mesh, &error), error);
    weft_shape shape = {2, {{"i", 640}, {"j", 16}}};
    weft_convert_step step = {.kind = WEFT_ALL_GATHER, .axes = 1};
    step.from.n_split[0] = 1; /* over data */
    CHECK_OK(weft_move_create(mesh, &shape, WEFT_F32, &step, 77, &move, &error), error);
    CHECK_EQ_INT(weft_move_wire_bytes(move), 640 * 16 * 4);
    CHECK_EQ_INT(weft_move_scratch(move), 0); /* rows come straight to their places */
    weft_flight *flight;
    CHECK_EQ_INT(weft_flight_create(move, NULL, &flight, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "among 64 ranks");
    weft_move_destroy(&move);
    error = (weft_error){0};
    step = (weft_convert_step){.kind = WEFT_ALL_REDUCE, .axes = 1};
    step.from.partial = 1, step.from.combine = WEFT_LSE;
    CHECK_EQ_INT(weft_move_create(mesh, &shape, WEFT_I32, &step, 0, &move, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "kind lse");
    CHECK(move == NULL);
    error = (weft_error){0};
    step = (weft_convert_step){.kind = WEFT_ALL_GATHER, .axes = 1};
    step.from.n_split[0] = 1; /* over data */
    step.from.window[0] = (weft_window){.lead = 640, .low = -1, .high = 1, .stride = 1, .over = 1};
    CHECK_EQ_INT(weft_move_create(mesh, &shape, WEFT_F32, &step, 0, &move, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "split through a window over one of the step's axes");
    weft_mesh_destroy(&mesh);
}

static void run_all(void)
{
    RUN(test_random_conversions_move_every_element);
    RUN(test_the_mover_alone_can_do_everything);
    RUN(test_reduce_scatter_then_all_gather_is_all_reduce);
    RUN(test_many_flights_are_finished_in_any_order);
    RUN(test_a_plan_of_many_ranks_knows_its_bytes);
}

int main(void)
{
    if (open_world()) {
        run_all();
        test_again_by_stacked(run_all);
    }
    weft_world_close();
    return weft_test_report();
}
