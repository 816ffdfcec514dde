/* checkpoint_gate_test: a save that should not be is refused; a step directory is there as a whole or not at all, and holds
 * what it says. */
/* RANKS: 2 3 4 */
#include "checkpoint_places.h"
#include "collectives/stacked.h"
#include "part.h"

#include <fcntl.h>
#include <sys/stat.h>
#ifdef WEFT_HAVE_HDF5
#include <hdf5.h>
#endif

static const net_options f64 = {.dtype = WEFT_F64};

/* ---- what is on disk ------------------------------------------------------------------------- */

static bool steps_are(const char *directory, const int64_t *expected, int n)
{
    int64_t steps[8] = {0};
    if (weft_stored_steps(directory, steps, 8) != n) return false;
    return n == 0 || memcmp(steps, expected, (size_t)n * sizeof *steps) == 0;
}

static void test_the_newest_stay(void)
{
    char directory[128], left_over[160];
    weft_error error = {0};
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("keep"));
    snprintf(left_over, sizeof left_over, "%s/step_00000099.tmp", directory);
    if (CHECK_OK(net_open(&places[0], &f64, &n, &error), error)) {
        for (int step = 1; step <= 4; step++) {
            CHECK_OK(net_run(&n, step, step, NULL, &error), error);
            CHECK_OK(net_save(&n, directory, &error), error);
            CHECK_OK(net_save(&n, directory, &error), error); /* the same step takes its place */
            if (step == 2 && weft_world_is_root()) CHECK_EQ_INT(mkdir(left_over, 0777), 0);
            CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK);
        }
        CHECK(steps_are(directory, (int64_t[]){3, 4}, 2));
        CHECK(access(left_over, F_OK) != 0);
    }
    net_close(&n);
}

static void test_poll_commits(void)
{
    char directory[128];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("poll"));
    if (CHECK_OK(net_open(&places[n_places - 1], &f64, &n, &error), error) &&
        CHECK_OK(weft_checkpoints_open(directory, NULL, &c, &error), error)) {
        weft_checkpoint_state state = net_state(&n);
        CHECK_OK(weft_checkpoints_save(c, n.program, &state, &error), error);
        int n_polls = 0;
        for (; n_polls < 20000; n_polls++) {
            int64_t step = -1;
            bool is_missing = false;
            CHECK_OK(weft_checkpoints_poll(c, &error), error);
            /* It appears while nobody polls, so processes may see it at different polls. */
            CHECK_OK(
                weft_world_any(weft_stored_steps(directory, &step, 1) != 1, &is_missing, &error),
                error);
            if (!is_missing) break;
            usleep(500);
        }
        CHECK(n_polls < 20000);
        CHECK_OK(weft_checkpoints_wait(c, &error), error);
        CHECK(steps_are(directory, (int64_t[]){0}, 1));
    }
    weft_checkpoints_close(&c);
    net_close(&n);
}

static void test_stored_tells_what_it_is(void)
{
    char directory[128], whole[NET_BYTES];
    weft_error error = {0};
    weft_stored *stored = NULL;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("stored/ckpt"));
    if (!CHECK_OK(net_open(&places[n_places - 1], &f64, &n, &error), error)) return;
    CHECK_OK(net_run(&n, 1, 2, NULL, &error), error);
    CHECK_OK(net_save(&n, directory, &error), error);
    const int64_t bytes = net_read(&n, whole);
    if (CHECK_OK(weft_stored_open(scratch("stored"), &stored, &error), error)) {
        CHECK_TEXT(weft_stored_mesh(stored), places[n_places - 1].mesh);
        CHECK_TEXT(weft_stored_layout(stored), "");
        CHECK_TEXT(weft_stored_path(stored), "step_00000002");
        CHECK_OK(weft_stored_verify(stored, &error), error);
        int64_t at = 0;
        int n_slots = 0;
        for (int i = 0; i < weft_stored_n_tensors(stored); i++) {
            char part[NET_BYTES];
            const weft_stored_tensor *t = weft_stored_tensor_at(stored, i);
            CHECK_OK(weft_stored_read(stored, i, part, &error), error);
            CHECK(memcmp(part, whole + at, (size_t)t->bytes) == 0);
            CHECK(t->offset % 4096 == 0);
            at += t->bytes;
            n_slots += t->is_slot;
        }
        CHECK_EQ_INT(at, bytes);
        CHECK_EQ_INT(n_slots, 2 * 4);
    }
    weft_stored_close(&stored);
    net_close(&n);
}

static void test_hdf5_reads_it(void)
{
#ifdef WEFT_HAVE_HDF5
    char path[256], whole[NET_BYTES], dims[64] = "";
    double values[PIXEL * HIDDEN] = {0};
    weft_error error = {0};
    net n;
    if (!CHECK_OK(net_open(&places[n_places - 1], &f64, &n, &error), error)) return;
    CHECK_OK(net_run(&n, 1, 2, NULL, &error), error);
    CHECK_OK(net_save(&n, scratch("hdf5"), &error), error);
    net_read(&n, whole); /* w1 is first */
    snprintf(path, sizeof path, "%s/step_00000002/state.h5", scratch("hdf5"));
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t data = H5Dopen2(file, "/parameters/w1", H5P_DEFAULT);
    const hid_t slot = H5Dopen2(file, "/slots/w1/m", H5P_DEFAULT);
    const hid_t odd = H5Dopen2(file, "/parameters/odd%2Fname.1:0-x", H5P_DEFAULT);
    CHECK(file >= 0 && data >= 0 && slot >= 0 && odd >= 0);
    CHECK(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    CHECK(memcmp(values, whole, sizeof values) == 0);
    const hid_t attribute = H5Aopen(data, "dims", H5P_DEFAULT), type = H5Aget_type(attribute);
    CHECK(H5Aread(attribute, type, dims) >= 0);
    CHECK(strcmp(dims, "pixel,hidden") == 0);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Dclose(odd);
    H5Dclose(slot);
    H5Dclose(data);
    H5Fclose(file);
    net_close(&n);
#endif
}

/* Of what the alignment leaves between tensors HDF5 may keep no list: with one, every tensor's place is looked for in
 * all of it, and 16,384 of them took minutes. */
static void test_gaps_are_not_kept(void)
{
#ifdef WEFT_HAVE_HDF5
    char path[256];
    weft_error error = {0};
    H5F_fspace_strategy_t strategy = H5F_FSPACE_STRATEGY_FSM_AGGR;
    hbool_t is_kept = 1;
    hsize_t least = 0;
    net n;
    if (!CHECK_OK(net_open(&places[0], &f64, &n, &error), error)) return;
    CHECK_OK(net_save(&n, scratch("gaps"), &error), error);
    snprintf(path, sizeof path, "%s/step_00000000/state.h5", scratch("gaps"));
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t creation = file >= 0 ? H5Fget_create_plist(file) : -1;
    CHECK(creation >= 0 && H5Pget_file_space_strategy(creation, &strategy, &is_kept, &least) >= 0);
    CHECK(strategy == H5F_FSPACE_STRATEGY_AGGR && !is_kept);
    if (creation >= 0) H5Pclose(creation);
    if (file >= 0) H5Fclose(file);
    net_close(&n);
#endif
}

/* ---- the gate -------------------------------------------------------------------------------- */

/* The last local rank's first element of a variable that is on all ranks. */
static double *first_element(net *n, int rank, weft_value variable)
{
    weft_box box;
    return weft_local(n->program, variable, rank, &box);
}

static void test_nan_is_not_saved(void)
{
    char directory[128];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("nan"));
    if (!CHECK_OK(net_open(&places[0], &f64, &n, &error), error)) return;
    double w1[PIXEL * HIDDEN] = {[2 * HIDDEN + 3] = NAN};
    const weft_checkpoint_state state = {.step = 5};
    CHECK_OK(weft_write(n.program, weft_variable_at(n.program, 0), WEFT_F64, w1, sizeof w1, &error),
             error);
    CHECK_EQ_INT(net_save(&n, directory, &error), WEFT_NONFINITE);
    CHECK_TEXT(error.message, "w1 holds a NaN");
    CHECK_TEXT(error.message, "[pixel:2, hidden:3]");
    CHECK(steps_are(directory, NULL, 0));
    error = (weft_error){0};
    const weft_checkpoint_options options = {.allow_nonfinite = true, .is_synchronous = true};
    if (CHECK_OK(weft_checkpoints_open(directory, &options, &c, &error), error))
        CHECK_OK(weft_checkpoints_save(c, n.program, &state, &error), error);
    CHECK(steps_are(directory, (int64_t[]){5}, 1));
    weft_checkpoints_close(&c);
    net_close(&n);
}

/* Ranks of one process hold in common what would be equal. */
static void test_threads_have_no_replicas(void)
{
    weft_error error = {0};
    const place two = {"data:2", "batch:data", 0, 2};
    net n;
    if (world.n_processes != 1 || !CHECK_OK(net_open(&two, &f64, &n, &error), error)) return;
    const weft_value b1 = weft_variable_at(n.program, 1);
    CHECK(first_element(&n, 0, b1) == first_element(&n, 1, b1));
    CHECK_OK(weft_check_replicas(n.program, &error), error);
    net_close(&n);
}

static void test_replicas_that_differ(void)
{
    weft_error error = {0};
    net n;
    if (world.n_processes == 1) return; /* each process has its own */
    for (int i = 0; i < n_places; i++) {
        const place *where = &places[i];
        if (where->n_ranks == 1 || where->zero || strncmp(where->mesh, "data", 4) != 0) continue;
        if (!CHECK_OK(net_open(where, &f64, &n, &error), error)) return;
        CHECK_OK(weft_check_replicas(n.program, &error), error);
        /* b1 is variable 1: one bit of the last rank's copy */
        const int last = where->n_ranks - 1;
        if (weft_mesh_first_local(n.mesh) == last) {
            const weft_value b1 = weft_variable_at(n.program, 1);
            double element;
            CHECK_OK(weft_part_get(n.program, b1, last, 0, &element, sizeof element, &error),
                     error);
            element = nextafter(element, 2.0);
            weft_part_put(n.program, b1, last, 0, &element, sizeof element);
        }
        CHECK_EQ_INT(weft_check_replicas(n.program, &error), WEFT_CORRUPT);
        CHECK_TEXT(error.message, "b1");
        error = (weft_error){0};
        CHECK_EQ_INT(net_save(&n, scratch("replica"), &error), WEFT_CORRUPT);
        CHECK(steps_are(scratch("replica"), NULL, 0));
        error = (weft_error){0};
        net_close(&n);
    }
    const place three = {"data:3", "batch:data", 0, 3};
    if (world.n_processes != 3) return;
    if (!CHECK_OK(net_open(&three, &f64, &n, &error), error)) return;
    double *element = first_element(&n, 0, weft_variable_at(n.program, 2));
    if (element) *element = nextafter(*element, 2.0);
    CHECK_EQ_INT(weft_check_replicas(n.program, &error), WEFT_CORRUPT);
    CHECK_TEXT(error.message, "rank 0 holds other bytes of w2 than ranks 1, 2");
    CHECK_EQ_INT(error.rank, 0);
    net_close(&n);
}

static void test_steps_that_differ(void)
{
    weft_error error = {0};
    net n;
    if (world.n_processes == 1) return;
    if (!CHECK_OK(net_open(&places[0], &f64, &n, &error), error)) return;
    if (world.process == 1) weft_set_runs(n.program, 3);
    CHECK_EQ_INT(net_save(&n, scratch("differ"), &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, "process 1 is at step 3");
    net_close(&n);
}

static void test_a_directory_that_goes_away(void)
{
    char directory[128];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("gone"));
    if (CHECK_OK(net_open(&places[0], &f64, &n, &error), error) &&
        CHECK_OK(weft_checkpoints_open(directory, NULL, &c, &error), error)) {
        const weft_checkpoint_state state = net_state(&n);
        int file = -1;
        if (weft_world_is_root()) {
            CHECK_EQ_INT(rmdir(directory), 0);
            file = open(directory, O_CREAT | O_WRONLY, 0666);
        }
        CHECK_EQ_INT(weft_checkpoints_save(c, n.program, &state, &error), WEFT_IO);
        CHECK_TEXT(error.message, directory);
        error = (weft_error){0};
        if (weft_world_is_root()) CHECK(close(file) == 0 && unlink(directory) == 0);
        CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK);
        CHECK_OK(weft_checkpoints_save(c, n.program, &state, &error), error);
        CHECK_OK(weft_checkpoints_wait(c, &error), error);
        CHECK(steps_are(directory, (int64_t[]){0}, 1));
    }
    weft_checkpoints_close(&c);
    net_close(&n);
}

/* Processes of one host hold in common what would be equal, but not by an engine that stands on another one. */
static void run_apart(void)
{
    RUN(test_replicas_that_differ);
}

static void run_all(void)
{
    RUN(test_the_newest_stay);
    RUN(test_poll_commits);
    RUN(test_stored_tells_what_it_is);
    RUN(test_hdf5_reads_it);
    RUN(test_gaps_are_not_kept);
    RUN(test_nan_is_not_saved);
    RUN(test_threads_have_no_replicas);
    test_again_by_stacked(run_apart);
    RUN(test_steps_that_differ);
    RUN(test_a_directory_that_goes_away);
}

int main(void)
{
    return in_world(run_all);
}
