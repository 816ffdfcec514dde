/* joined: several tensors in one exchange have the bits that each has in an exchange of its own.
 * RANKS: 2 3 4 6 8
 */
#include "on_ranks.h"

#include "layout/random_specs.h"

enum { PARTS = 7, FLIGHTS = 2 };

/* Steps that may be joined, the same on all ranks. */
static struct {
    int n;
    weft_dtype dtype;
    weft_combine combine;
    weft_shape shapes[PARTS];
    weft_move_part parts[PARTS];
} set; /* picked while no rank runs */

/* ---- steps --------------------------------------------------------------------------------------- */

static void end_by(weft_spec *spec, weft_combine combine)
{
    if (spec->partial) spec->combine = (uint8_t)combine;
}

/* A step of a random conversion of states of the set's combine; false: the conversion has none. */
static bool pick_step(const weft_mesh *mesh, weft_shape *shape, weft_convert_step *step)
{
    weft_convert_step steps[WEFT_MAX_CONVERT];
    *shape = random_shape();
    weft_spec from = random_spec(mesh, shape, 2), to = random_spec(mesh, shape, 0);
    const int width = weft_combine_width(set.combine);
    if (width > 1) shape->dims[shape->n_dims++] = (weft_dim){"~", width};
    end_by(&from, set.combine);
    const int n = weft_convert_plan(mesh, shape, &from, &to, steps);
    if (n > 0) *step = steps[pick(n)];
    return n > 0;
}

static bool may_join(const weft_convert_step *a, const weft_convert_step *b)
{
    const bool ends[2] = {a->axes & a->from.partial & ~(uint32_t)a->to.partial,
                          b->axes & b->from.partial & ~(uint32_t)b->to.partial};
    return a->kind == b->kind && a->axes == b->axes && ends[0] == ends[1];
}

/* As many as turn up in some tries. */
static void pick_set(const weft_mesh *mesh)
{
    static const weft_combine combines[] = {WEFT_SUM, WEFT_SUM, WEFT_MAX, WEFT_LSE, WEFT_MOMENTS};
    set.combine = combines[pick(5)];
    set.dtype = set.combine == WEFT_SUM ? (weft_dtype)pick(WEFT_DTYPES) : WEFT_F32;
    set.n = 0;
    for (int tries = 0; tries < 200 && set.n < PARTS; tries++) {
        weft_move_part *part = &set.parts[set.n];
        part->shape = &set.shapes[set.n];
        if (!pick_step(mesh, &set.shapes[set.n], &part->step)) continue;
        set.n += set.n == 0 || may_join(&set.parts[0].step, &part->step);
    }
}

static int64_t bytes_of(const weft_mesh *mesh, int k, const weft_spec *spec, int rank)
{
    weft_box box;
    weft_spec_box(spec, mesh, &set.shapes[k], rank, &box);
    return weft_box_count(&box, set.shapes[k].n_dims) * (int64_t)weft_dtype_bytes(set.dtype);
}

/* Numbers whose sum depends on its order; every first number of moments is a count. */
static void *fill(const ranks *all, int k, int rank, int64_t *bytes)
{
    *bytes = bytes_of(all->mesh, k, &set.parts[k].step.from, rank);
    void *data = dirty(*bytes);
    const int width = weft_combine_width(set.combine);
    const int64_t count = *bytes / (int64_t)weft_dtype_bytes(set.dtype);
    for (int64_t i = 0; i < count; i++) {
        const double x = sin(0.3 + 1.7 * rank + 0.9 * k + 0.37 * (double)i);
        const bool is_count = set.combine == WEFT_MOMENTS && i % width == 0;
        const double value = is_count ? 1 + rank + (double)i : i % width ? x * x : x;
        if (set.dtype == WEFT_F32) ((float *)data)[i] = (float)value;
        if (set.dtype == WEFT_F64) ((double *)data)[i] = value;
        if (set.dtype == WEFT_I32) ((int32_t *)data)[i] = (int32_t)(1000 * value);
    }
    return data;
}

/* ---- alone and joined ------------------------------------------------------------------------------ */

static weft_comm *comm_of(const ranks *all, int rank)
{
    const uint32_t axes = set.parts[0].step.axes;
    return axes ? weft_comm_of(all->comms, rank, axes) : NULL;
}

static void *convert_alone(const ranks *all, int rank, int k, const void *from, int64_t *wire)
{
    weft_error error = {0};
    weft_move *move;
    weft_flight *flight;
    const weft_move_part *part = &set.parts[k];
    void *to = dirty(bytes_of(all->mesh, k, &part->step.to, rank));
    if (!CHECK_OK(
            weft_move_create(all->mesh, part->shape, set.dtype, &part->step, rank, &move, &error),
            error))
        return to;
    void *scratch = dirty(weft_move_scratch(move));
    *wire += weft_move_wire_bytes(move);
    CHECK_OK(weft_flight_create(move, comm_of(all, rank), &flight, &error), error);
    CHECK_OK(weft_flight_start(flight, from, to, scratch, &error), error);
    CHECK_OK(weft_flight_finish(flight, &error), error);
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    free(scratch);
    return to;
}

typedef struct trip {
    weft_flight *flight;
    weft_move_memory memory[PARTS];
    char *scratch;
    int64_t scratch_bytes;
} trip;

/* An all_reduce of the second trip is done where its operands are. */
static void begin_trip(const ranks *all, int rank, weft_move *move, trip *t, bool is_second)
{
    weft_error error = {0};
    const bool in_place = is_second && set.parts[0].step.kind == WEFT_ALL_REDUCE;
    for (int k = 0; k < set.n; k++) {
        int64_t bytes;
        void *from = fill(all, k, rank, &bytes);
        const int64_t to_bytes = bytes_of(all->mesh, k, &set.parts[k].step.to, rank);
        t->memory[k] = (weft_move_memory){from, in_place ? from : dirty(to_bytes)};
    }
    t->scratch_bytes = weft_move_scratch(move);
    t->scratch = dirty(t->scratch_bytes + 1);
    CHECK_OK(weft_flight_create(move, comm_of(all, rank), &t->flight, &error), error);
    CHECK_OK(weft_flight_start_joined(t->flight, t->memory, t->scratch, &error), error);
}

static void end_trip(const ranks *all, int rank, trip *t, void *const *expected)
{
    weft_error error = {0};
    CHECK_OK(weft_flight_finish(t->flight, &error), error);
    CHECK_EQ_INT(t->scratch[t->scratch_bytes], (char)0xA5);
    for (int k = 0; k < set.n; k++) {
        const weft_move_memory *m = &t->memory[k];
        const int64_t bytes = bytes_of(all->mesh, k, &set.parts[k].step.to, rank);
        CHECK(bytes == 0 || memcmp(m->to, expected[k], (size_t)bytes) == 0);
        if (m->to != m->from) free(m->to);
        free((void *)(uintptr_t)m->from);
    }
    weft_flight_destroy(&t->flight);
    free(t->scratch);
}

static void join_on_rank(void *argument, int rank)
{
    const ranks *all = argument;
    weft_error error = {0};
    weft_move *move;
    void *expected[PARTS];
    trip trips[FLIGHTS];
    int64_t wire = 0;
    for (int k = 0; k < set.n; k++) {
        int64_t bytes;
        void *from = fill(all, k, rank, &bytes);
        expected[k] = convert_alone(all, rank, k, from, &wire);
        free(from);
    }
    if (CHECK_OK(
            weft_move_create_joined(all->mesh, set.parts, set.n, set.dtype, rank, &move, &error),
            error)) {
        CHECK_EQ_INT(weft_move_wire_bytes(move), wire);
        for (int i = 0; i < FLIGHTS; i++)
            begin_trip(all, rank, move, &trips[i], i == 1);
        for (int i = 0; i < FLIGHTS; i++) /* in an order of its own */
            end_trip(all, rank, &trips[(i + rank) % FLIGHTS], expected);
        weft_move_destroy(&move);
    }
    for (int k = 0; k < set.n; k++)
        free(expected[k]);
}

static void test_joined_tensors_have_the_bits_of_each_alone(void)
{
    char texts[MAX_MESHES][48];
    const int n_meshes = meshes_here(texts);
    int n_joined[WEFT_CONVERTS] = {0};
    for (int m = 0; m < n_meshes; m++) {
        ranks all;
        if (open_ranks(texts[m], &all))
            for (int trial = 0; trial < 120; trial++) {
                pick_set(all.mesh);
                if (set.n == 0) continue;
                n_joined[set.parts[0].step.kind] += set.n > 2;
                weft_mesh_each(all.mesh, join_on_rank, &all);
            }
        close_ranks(&all);
    }
    CHECK(n_joined[WEFT_ALL_REDUCE] > 0 && n_joined[WEFT_REDUCE_SCATTER] > 0);
    CHECK(n_joined[WEFT_ALL_GATHER] > 0);
}

/* ---- large, and misuse ------------------------------------------------------------------------- */

/* More than one piece of a window, and than one chunk of memory that threads combine. */
static void test_large_tensors_are_joined_too(void)
{
    char texts[MAX_MESHES][48];
    const int n_meshes = meshes_here(texts);
    for (int m = 0; m < n_meshes; m++) {
        ranks all;
        set.n = 3, set.dtype = WEFT_F64, set.combine = WEFT_SUM;
        for (int k = 0; k < set.n; k++) {
            const weft_convert_step step = {
                WEFT_ALL_REDUCE, 1, {.partial = 1, .combine = WEFT_SUM}, {.partial = 0}};
            set.shapes[k] = (weft_shape){1, {{"i", k == 1 ? 3 : 30011 * (k + 1)}}};
            set.parts[k] = (weft_move_part){&set.shapes[k], step};
        }
        if (open_ranks(texts[m], &all)) weft_mesh_each(all.mesh, join_on_rank, &all);
        close_ranks(&all);
    }
}

static void test_other_steps_are_not_joined(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    weft_move *move;
    CHECK_OK(weft_mesh_plan("data:2,model:2", &mesh, &error), error);
    const weft_shape shape = {1, {{"i", 8}}};
    weft_move_part parts[2] = {{&shape, {.kind = WEFT_ALL_REDUCE, .axes = 1}},
                               {&shape, {.kind = WEFT_ALL_REDUCE, .axes = 2}}};
    parts[0].step.from = (weft_spec){.partial = 1, .combine = WEFT_SUM};
    parts[1].step.from = (weft_spec){.partial = 2, .combine = WEFT_SUM};
    CHECK_EQ_INT(weft_move_create_joined(mesh, parts, 2, WEFT_F32, 0, &move, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "all_reduce over axes 0x2 cannot be one exchange");
    CHECK(move == NULL);
    error = (weft_error){0};
    parts[1] = parts[0];
    parts[1].step.from.combine = WEFT_MAX;
    CHECK_EQ_INT(weft_move_create_joined(mesh, parts, 2, WEFT_F32, 0, &move, &error), WEFT_USAGE);
    error = (weft_error){0};
    CHECK_EQ_INT(weft_move_create_joined(mesh, parts, 0, WEFT_F32, 0, &move, &error), WEFT_USAGE);
    weft_mesh_destroy(&mesh);
}

static void test_a_joined_flight_wants_memory_of_each(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    weft_move *move;
    weft_flight *flight;
    double numbers[4] = {1, 2, 3, 4};
    weft_move_memory memory[2] = {{numbers, numbers}, {NULL, numbers + 2}};
    CHECK_OK(weft_mesh_plan("data:1", &mesh, &error), error);
    const weft_shape shape = {1, {{"i", 2}}};
    const weft_convert_step step = {
        WEFT_ALL_REDUCE, 1, {.partial = 1, .combine = WEFT_SUM}, {.partial = 0}};
    const weft_move_part parts[2] = {{&shape, step}, {&shape, step}};
    CHECK_OK(weft_move_create_joined(mesh, parts, 2, WEFT_F64, 0, &move, &error), error);
    CHECK_OK(weft_flight_create(move, NULL, &flight, &error), error);
    CHECK_EQ_INT(weft_flight_start(flight, numbers, numbers, NULL, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "2 tensors move together");
    error = (weft_error){0};
    CHECK_EQ_INT(weft_flight_start_joined(flight, memory, NULL, &error), WEFT_USAGE);
    error = (weft_error){0};
    memory[1].from = numbers;
    CHECK_OK(weft_flight_start_joined(flight, memory, NULL, &error), error);
    CHECK_OK(weft_flight_finish(flight, &error), error);
    CHECK(numbers[0] == 1 && numbers[2] == 1 && numbers[3] == 2);
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    if (open_world()) {
        RUN(test_joined_tensors_have_the_bits_of_each_alone);
        RUN(test_large_tensors_are_joined_too);
        RUN(test_other_steps_are_not_joined);
        RUN(test_a_joined_flight_wants_memory_of_each);
    }
    weft_world_close();
    return weft_test_report();
}
