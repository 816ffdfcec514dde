/* checkpoint_bytes_test: a restore reads what its ranks hold, in whole blocks of a hash, and no
 * block twice. */
/* RANKS: 2 4 */
#include "checkpoint_net.h"
#include "faults.h"

enum { ROWS = 1024, COLUMNS = 4096, BLOCK = 4 << 20 }; /* 16 MiB of f32: 4 blocks */

/* A layer of one large matrix; nothing is run. */
static weft_status open_matrix(const place *where, net *n, weft_error *error)
{
    const weft_dim batch = {"batch", BATCH}, row = {"row", ROWS}, column = {"column", COLUMNS};
    weft_layout *layout = NULL;
    *n = (net){.graph = weft_graph_create(5)};
    n->image = weft_input(n->graph, "x", WEFT_F32, WEFT_DIMS(batch, row));
    weft_value w =
        weft_variable(n->graph, "w", WEFT_F32, WEFT_DIMS(row, column), weft_normal(0.0, 1.0));
    n->loss = weft_mean(weft_einsum(WEFT_DIMS(batch, column), n->image, w));
    weft_lanes_choose(world.n_processes > 1 ? 0 : 3);
    WEFT_TRY(weft_mesh_create(&world, where->mesh, &n->mesh, error));
    WEFT_TRY(weft_layout_create(where->layout, &layout, error));
    const weft_status status =
        weft_compile(n->mesh, layout, WEFT_VALUES(n->loss), NULL, &n->program, error);
    weft_layout_destroy(&layout);
    return status;
}

/* What the ranks of this process hold. */
static int64_t bytes_held(const net *n)
{
    int64_t bytes = 0;
    weft_box box;
    const int first = weft_mesh_first_local(n->mesh), end = first + weft_mesh_n_local(n->mesh);
    for (int rank = first; rank < end; rank++)
        if (weft_local(n->program, weft_variable_at(n->program, 0), rank, &box))
            bytes += weft_box_count(&box, 2) * (int64_t)sizeof(float);
    return bytes;
}

/* How much more than what it holds a process reads. */
static double ratio_of(const char *mesh, const char *layout)
{
    weft_error error = {0};
    weft_checkpoint_state state;
    const place where = {mesh, layout, 0, world.n_processes};
    double ratio = 0;
    net n;
    if (CHECK_OK(open_matrix(&where, &n, &error), error)) {
        CHECK_OK(net_save(&n, scratch("bytes"), &error), error);
        faults_start(&(fault_plan){.folder = scratch("bytes"), .calls = 1u << FAULT_READ});
        CHECK_OK(net_restore(&n, scratch("bytes"), WEFT_NEWEST, &state, &error), error);
        faults_stop();
        CHECK(faults_bytes_read() <= (int64_t)ROWS * COLUMNS * 4 + BLOCK);
        ratio = (double)faults_bytes_read() / (double)bytes_held(&n);
    }
    net_close(&n);
    return ratio;
}

static void test_a_rank_reads_its_own_rows(void)
{
    char mesh[32];
    snprintf(mesh, sizeof mesh, "model:%d", world.n_processes);
    const double rows = ratio_of(mesh, "row:model"), whole = ratio_of(mesh, "");
    const double columns = ratio_of(mesh, "column:model");
    if (weft_world_is_root())
        printf("  bytes read of bytes held: %.4f of rows, %.4f of the whole, %.4f of columns\n",
               rows, whole, columns);
    CHECK(rows >= 1 && rows <= 1.05);
    CHECK(whole >= 1 && whole <= 1.05);
    CHECK(columns >= 1 && columns <= 1.05 * world.n_processes);
}

int main(void)
{
    weft_error error = {0};
    if (!CAN_SAVE) {
        weft_test_skip("built without HDF5, which checkpoints are written with");
        return weft_test_report();
    }
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    RUN(test_a_rank_reads_its_own_rows);
    CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK); /* nobody still reads */
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}
