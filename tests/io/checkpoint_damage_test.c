/* checkpoint_damage_test: bits that flip, files that end early, processes that are killed: every one is found, and
 * the checkpoint before is still good. */
#include "again.h"
#include "checkpoint_two.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "checkpoint/manifest.h"

enum { FLIPS = 240, TRUNCATIONS = 50, KILLS = 20 };
/* The same numbers in every run of this test. */
static uint32_t draw(uint32_t below)
{
    static uint64_t state = 12345;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* The newest is damaged: restore must mark it and give step 1. */
static void check_falls_back(net *n)
{
    char values[NET_BYTES], mark[160];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state = {0};
    snprintf(mark, sizeof mark, "%s/step_00000002/damaged", directory);
    if (!CHECK_OK(weft_checkpoints_open(directory, NULL, &c, &error), error)) return;
    CHECK_EQ_INT(weft_checkpoints_restore(c, n->program, 2, &state, &error), WEFT_CORRUPT);
    error = (weft_error){0};
    CHECK_OK(weft_checkpoints_restore(c, n->program, WEFT_NEWEST, &state, &error), error);
    CHECK_EQ_INT(state.step, 1);
    CHECK_EQ_INT(weft_runs(n->program), 1);
    CHECK_TEXT(weft_checkpoints_skipped(c), "step 2 is damaged: ");
    net_read(n, values);
    CHECK(memcmp(values, older, sizeof values) == 0);
    CHECK_EQ_INT(access(mark, F_OK), 0);
    /* Not tried again. */
    CHECK_OK(weft_checkpoints_restore(c, n->program, WEFT_NEWEST, &state, &error), error);
    CHECK(state.step == 1 && weft_checkpoints_skipped(c)[0] == 0);
    CHECK_EQ_INT(unlink(mark), 0);
    weft_checkpoints_close(&c);
}

static void flip(const char *path, int64_t at, int bit)
{
    const int file = open(path, O_RDWR);
    unsigned char byte = 0;
    CHECK_EQ_INT(pread(file, &byte, 1, at), 1);
    byte ^= (unsigned char)(1u << bit);
    CHECK_EQ_INT(pwrite(file, &byte, 1, at), 1);
    close(file);
}

/* A byte of a tensor: most of a small file is space between them. */
static int64_t draw_in_tensor(void)
{
    weft_error error = {0};
    weft_stored *stored;
    if (!CHECK_OK(weft_stored_open(directory, &stored, &error), error)) return 0;
    const weft_stored_tensor *t =
        weft_stored_tensor_at(stored, (int)draw((uint32_t)weft_stored_n_tensors(stored)));
    const int64_t at = t->offset + draw((uint32_t)t->bytes);
    weft_stored_close(&stored);
    return at;
}

static void test_every_flipped_bit_is_found(void)
{
    weft_error error = {0};
    net n;
    if (!make_two("flip") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    CHECK(stored_is_good());
    for (int i = 0; i < FLIPS; i++) {
        const char *path = i % 3 == 0 ? manifest_path : data_path;
        const int64_t at = i % 3 == 1 ? draw_in_tensor() : draw((uint32_t)file_bytes(path));
        const int bit = (int)draw(8);
        flip(path, at, bit);
        CHECK(!stored_is_good());
        if (i % 4 == 0) check_falls_back(&n);
        flip(path, at, bit);
    }
    CHECK(stored_is_good());
    net_close(&n);
}

static void test_every_truncation_is_found(void)
{
    weft_error error = {0};
    net n;
    if (!make_two("cut") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    for (int i = 0; i < TRUNCATIONS; i++) {
        const char *path = i % 2 ? manifest_path : data_path;
        const int64_t bytes = file_bytes(path);
        char *kept = malloc((size_t)bytes);
        int file = open(path, O_RDWR);
        CHECK_EQ_INT(pread(file, kept, (size_t)bytes, 0), bytes);
        CHECK_EQ_INT(ftruncate(file, draw((uint32_t)bytes)), 0);
        CHECK(!stored_is_good());
        if (i < 4) check_falls_back(&n);
        CHECK_EQ_INT(pwrite(file, kept, (size_t)bytes, 0), bytes);
        close(file);
        free(kept);
    }
    CHECK(stored_is_good());
    CHECK_EQ_INT(unlink(data_path), 0);
    CHECK(!stored_is_good());
    check_falls_back(&n);
    CHECK_EQ_INT(unlink(manifest_path), 0);
    check_falls_back(&n);
    net_close(&n);
}

static void test_a_step_under_another_name(void)
{
    char command[600];
    weft_error error = {0};
    net n;
    if (!make_two("moved") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    snprintf(command, sizeof command,
             "rm -rf %s/step_00000002 && cp -r %s/step_00000001 %s/step_00000002", directory,
             directory, directory);
    CHECK_EQ_INT(system(command), 0);
    check_falls_back(&n);
    net_close(&n);
}

static void test_nothing_good_is_an_error(void)
{
    char path[256];
    weft_error error = {0};
    weft_checkpoint_state state;
    net n;
    if (!make_two("bad") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    snprintf(path, sizeof path, "%s/step_00000001/manifest.json", directory);
    flip(path, 20, 1);
    flip(manifest_path, 20, 1);
    for (int i = 0; i < 2; i++) { /* first found out, then known */
        error = (weft_error){0};
        CHECK_EQ_INT(net_restore(&n, directory, WEFT_NEWEST, &state, &error), WEFT_CORRUPT);
        CHECK_TEXT(error.message, "2 of them are damaged");
    }
    net_close(&n);
}

/* ---- more than one block --------------------------------------------------------------------- */

enum {
    ROWS = 1100,
    COLUMNS = 1501,
    BIG = ROWS * COLUMNS
}; /* 6.6 MB: two blocks, and runs across their border */

static weft_status big_open(const char *mesh, const char *layout_text, net *n, weft_error *error)
{
    const weft_dim row = {"row", ROWS}, column = {"column", COLUMNS};
    weft_layout *layout;
    *n = (net){.graph = weft_graph_create(5)};
    weft_value table =
        weft_variable(n->graph, "table", WEFT_F32, WEFT_DIMS(row, column), weft_uniform(-1.0, 1.0));
    n->loss = weft_mean(table);
    WEFT_TRY(weft_mesh_create(&world, mesh, &n->mesh, error));
    WEFT_TRY(weft_layout_create(layout_text, &layout, error));
    const weft_status status =
        weft_compile(n->mesh, layout, WEFT_VALUES(n->loss), NULL, &n->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void test_blocks_are_named_and_put_together(void)
{
    static const char *const places[][2] = {{"model:3", "column:model"},
                                            {"data:3", "row:data"},
                                            {"data:2,model:2", "row:data,column:model"}};
    weft_error error = {0};
    weft_checkpoint_state state;
    weft_stored *stored = NULL;
    net n;
    float *expected = malloc(BIG * sizeof *expected), *found = malloc(BIG * sizeof *found);
    snprintf(directory, sizeof directory, "%s", scratch("big"));
    CHECK_OK(big_open("model:2", "column:model", &n, &error), error);
    weft_set_runs(n.program, 2);
    weft_value table = weft_variable_at(n.program, 0);
    CHECK_OK(weft_read(n.program, table, WEFT_F32, expected, BIG * sizeof *expected, &error),
             error);
    CHECK_OK(net_save(&n, directory, &error), error);
    net_close(&n);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(big_open(places[i][0], places[i][1], &n, &error), error);
        table = weft_variable_at(n.program, 0);
        memset(found, 0, BIG * sizeof *found);
        CHECK_OK(weft_write(n.program, table, WEFT_F32, found, BIG * sizeof *found, &error), error);
        CHECK_OK(net_restore(&n, directory, WEFT_NEWEST, &state, &error), error);
        CHECK_OK(weft_read(n.program, table, WEFT_F32, found, BIG * sizeof *found, &error), error);
        CHECK(memcmp(expected, found, BIG * sizeof *found) == 0);
        net_close(&n);
    }
    if (CHECK_OK(weft_stored_open(directory, &stored, &error), error)) {
        snprintf(data_path, sizeof data_path, "%s/state.h5", weft_stored_path(stored));
        flip(data_path, weft_stored_tensor_at(stored, 0)->offset + WEFT_BLOCK_BYTES + 77, 3);
        CHECK_EQ_INT(weft_stored_verify(stored, &error), WEFT_CORRUPT);
        CHECK_TEXT(error.message, "tensor table, block 1 of 2");
    }
    weft_stored_close(&stored);
    free(expected);
    free(found);
}

/* ---- killed ---------------------------------------------------------------------------------- */

static void fill_w1(net *n, double number, weft_error *error)
{
    double w1[PIXEL * HIDDEN];
    for (int i = 0; i < PIXEL * HIDDEN; i++)
        w1[i] = number;
    CHECK_OK(
        weft_write(n->program, weft_variable_at(n->program, 0), WEFT_F64, w1, sizeof w1, error),
        *error);
}

/* The victim: from the newest on, one save a step, for ever; w1 is the step all over. */
static int be_victim(const char *where)
{
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state;
    net n;
    if (net_open(&alone, &f64, &n, &error) != WEFT_OK ||
        weft_checkpoints_open(where, NULL, &c, &error) != WEFT_OK ||
        weft_checkpoints_restore(c, n.program, WEFT_NEWEST, &state, &error) != WEFT_OK)
        return 1;
    for (;;) {
        state.step++;
        fill_w1(&n, (double)state.step, &error);
        if (weft_checkpoints_save(c, n.program, &state, &error) != WEFT_OK) return 2;
    }
}

static int64_t newest_on_disk(const char *where)
{
    int64_t steps[16];
    const int n = weft_stored_steps(where, steps, 16);
    return n > 0 ? steps[(n < 16 ? n : 16) - 1] : 0;
}

/* Start a victim, let it commit something, kill it at any moment after that. */
static int64_t kill_one(const char *where, int64_t before)
{
    const pid_t victim = fork();
    if (victim == 0) {
        weft_test_again("--victim", where);
        _exit(3);
    }
    int64_t seen = before;
    for (int i = 0; i < 20000 && seen == before; i++) {
        usleep(500);
        seen = newest_on_disk(where);
    }
    usleep(draw(60000));
    seen = newest_on_disk(where);
    int status = 0;
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    CHECK(WIFSIGNALED(status) && seen > before);
    return seen;
}

static void test_killed_while_saving(void)
{
    char where[128];
    int64_t seen = 0;
    int n_torn = 0;
    weft_error error = {0};
    snprintf(where, sizeof where, "%s", scratch("kill"));
    for (int i = 0; i < KILLS; i++) {
        double w1[PIXEL * HIDDEN];
        weft_stored *stored = NULL;
        weft_checkpoint_state state = {0};
        net n;
        seen = kill_one(where, seen);
        if (!CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
        CHECK_OK(net_restore(&n, where, WEFT_NEWEST, &state, &error), error);
        CHECK(state.step >= seen); /* what was there when it was killed is there still */
        CHECK_EQ_INT(state.step, newest_on_disk(where)); /* none was marked as damaged */
        CHECK_OK(
            weft_read(n.program, weft_variable_at(n.program, 0), WEFT_F64, w1, sizeof w1, &error),
            error);
        for (int k = 0; k < PIXEL * HIDDEN; k++)
            n_torn += w1[k] != (double)state.step;
        if (CHECK_OK(weft_stored_open(where, &stored, &error), error))
            CHECK_OK(weft_stored_verify(stored, &error), error);
        weft_stored_close(&stored);
        net_close(&n);
        seen = state.step;
    }
    CHECK_EQ_INT(n_torn, 0);
}

static void run_all(void)
{
    RUN(test_every_flipped_bit_is_found);
    RUN(test_every_truncation_is_found);
    RUN(test_a_step_under_another_name);
    RUN(test_nothing_good_is_an_error);
    RUN(test_blocks_are_named_and_put_together);
    RUN(test_killed_while_saving);
}

int main(int n_arguments, char **arguments)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    if (n_arguments == 3 && strcmp(arguments[1], "--victim") == 0) return be_victim(arguments[2]);
    if (CAN_SAVE)
        run_all();
    else
        check_cannot_save();
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}
