/* bring_test: an all_gather whose result all ranks have in one memory: each puts its own part there, and when all have, every
 * element is there, and nobody wrote what is another's. One process, no ranks; random specs.
 */
#include "weft/collectives.h"

#include <stdlib.h>

#include "layout/random_specs.h"

/* From a random spec, the innermost axis of one of its dims taken away; false: it splits nothing. */
static bool random_gather(const weft_mesh *mesh, const weft_shape *shape, weft_convert_step *step)
{
    weft_spec from = random_spec(mesh, shape, 0);
    weft_convert_step steps[WEFT_MAX_CONVERT];
    for (int d = 0; d < shape->n_dims; d++) {
        if (from.n_split[d] == 0) continue;
        weft_spec to = from;
        to.split[d][--to.n_split[d]] = 0;
        const int n = weft_convert_plan(mesh, shape, &from, &to, steps);
        *step = steps[0];
        return n == 1 && step->kind == WEFT_ALL_GATHER;
    }
    return false;
}

static int64_t place_in_box(const weft_shape *shape, const weft_box *box, int64_t i)
{
    int64_t place = 0, at[WEFT_MAX_DIMS] = {0};
    for (int d = shape->n_dims - 1; d >= 0; d--) {
        const int64_t length = box->end[d] - box->begin[d];
        at[d] = box->begin[d] + i % length;
        i /= length;
    }
    for (int d = 0; d < shape->n_dims; d++)
        place = place * shape->dims[d].size + at[d];
    return place;
}

/* Two tensors of the same kind, one of them in the other's numbers and 1000 more. */
static int64_t bring(const weft_mesh *mesh, const weft_shape *shape, const weft_convert_step *step,
                     int rank, double *const to[2])
{
    weft_error error = {0};
    weft_move *move = NULL;
    weft_box box;
    const weft_move_part parts[2] = {{shape, *step}, {shape, *step}};
    double *from[2];
    weft_spec_box(&step->from, mesh, shape, rank, &box);
    const int64_t count = weft_box_count(&box, shape->n_dims);
    for (int k = 0; k < 2; k++) {
        from[k] = calloc((size_t)count + 1, sizeof **from);
        for (int64_t i = 0; i < count; i++)
            from[k][i] = (double)place_in_box(shape, &box, i) + 1000 * k;
    }
    const weft_move_memory memory[2] = {{from[0], to[0]}, {from[1], to[1]}};
    const int n_parts = 1 + rank % 2; /* alone, where it may travel unpacked, and with another */
    CHECK_OK(weft_move_create_joined(mesh, parts, n_parts, WEFT_F64, rank, &move, &error), error);
    CHECK_OK(weft_move_bring(move, memory, &error), error);
    if (n_parts == 1) {
        weft_move *other = NULL;
        CHECK_OK(weft_move_create(mesh, shape, WEFT_F64, step, rank, &other, &error), error);
        CHECK_OK(weft_move_bring(other, &memory[1], &error), error);
        weft_move_destroy(&other);
    }
    weft_move_destroy(&move);
    free(from[0]), free(from[1]);
    return count;
}

static int64_t count_written(const double *data, int64_t n)
{
    int64_t written = 0;
    for (int64_t i = 0; i < n; i++)
        written += data[i] >= 0;
    return written;
}

/* The group of `first` along the step's axes. */
static void check_group(const weft_mesh *mesh, const weft_shape *shape,
                        const weft_convert_step *step, int first)
{
    int among[512];
    weft_box box;
    double *to[2];
    const int n = weft_mesh_group(mesh, step->axes, first, among, NULL);
    weft_spec_box(&step->to, mesh, shape, first, &box);
    const int64_t count = weft_box_count(&box, shape->n_dims);
    for (int k = 0; k < 2; k++) {
        to[k] = malloc(((size_t)count + 1) * sizeof **to);
        for (int64_t i = 0; i < count; i++)
            to[k][i] = -1;
    }
    int64_t written = 0;
    for (int i = 0; i < n; i++) {
        written += bring(mesh, shape, step, among[i], to);
        CHECK_EQ_INT(count_written(to[0], count), written);
        CHECK_EQ_INT(count_written(to[1], count), written);
    }
    CHECK_EQ_INT(written, count);
    for (int64_t i = 0; i < count; i++) {
        CHECK(to[0][i] == (double)place_in_box(shape, &box, i));
        CHECK(to[1][i] == to[0][i] + 1000);
    }
    free(to[0]), free(to[1]);
}

static void test_each_rank_brings_its_part(void)
{
    int n_gathers = 0;
    for (int i = 0; i < 600; i++) {
        weft_mesh *mesh = random_mesh();
        const weft_shape shape = random_shape();
        weft_convert_step step;
        if (random_gather(mesh, &shape, &step)) {
            n_gathers++;
            for (int rank = 0; rank < weft_mesh_n_ranks(mesh); rank += 3)
                check_group(mesh, &shape, &step, rank);
        }
        weft_mesh_destroy(&mesh);
    }
    CHECK(n_gathers > 100);
}

static void test_other_steps_are_refused(void)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_move *move = NULL;
    const weft_shape shape = {1, {{"i", 6}}};
    const weft_spec partial = {.partial = 1, .combine = WEFT_SUM}, whole = {0};
    const weft_convert_step step = {WEFT_ALL_REDUCE, 1, partial, whole};
    float data[6] = {0};
    const weft_move_memory memory = {data, data};
    CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
    CHECK_OK(weft_move_create(mesh, &shape, WEFT_F32, &step, 0, &move, &error), error);
    CHECK_EQ_INT(weft_move_bring(move, &memory, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "weft_move_bring: all_reduce does more than to put each rank's part "
                              "in its place; only an all_gather can be carried out so");
    weft_move_destroy(&move);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    RUN(test_each_rank_brings_its_part);
    RUN(test_other_steps_are_refused);
    return weft_test_report();
}
