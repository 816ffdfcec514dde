/* checkpoint_large_test: tensors of many blocks, cut in every way among ranks, come back bit for
 * bit; a program that goes on while it is saved does not change what is saved. */
/* RANKS: 2 4 */
#include "checkpoint_net.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "snapshot_guard.h"

/* w1 is [7, WIDE] of f64: 17 MB and no whole number of blocks, so that copies of it are shared out
 * among their holders and rows of it are cut inside blocks. */
enum { WIDE = 310001, LESS_WIDE = 90001 };

static const net_options wide = {.dtype = WEFT_F64, .hidden = WIDE, .is_bare = true},
                         less_wide = {.dtype = WEFT_F64, .hidden = LESS_WIDE};

static const place all_places[] = {
    {"data:1", "", 0, 1},
    {"data:2", "batch:data", 0, 2},
    {"data:2", "batch:data", 3, 2},
    {"model:2", "hidden:model", 0, 2},
    {"model:2", "pixel:model", 0, 2},
    {"data:2,model:2", "batch:data,hidden:model", 0, 4},
    {"data:2,model:2", "batch:data,hidden:model", 1, 4},
};

static bool fits(const place *p)
{
    return world.n_processes == 1 || p->n_ranks == world.n_processes;
}

/* A hash of all variables: which they are, not where. */
static uint64_t fingerprint(net *n)
{
    uint64_t sum = 0;
    weft_value variable;
    weft_error error = {0};
    for (int i = 0; (variable = weft_variable_at(n->program, i)).id != 0; i++) {
        const int64_t count = weft_shape_count(weft_shape_of(variable));
        uint64_t *bits = malloc((size_t)count * sizeof *bits);
        CHECK_OK(
            weft_read(n->program, variable, WEFT_F64, bits, count * (int64_t)sizeof *bits, &error),
            error);
        for (int64_t j = 0; j < count; j++)
            sum = (sum ^ bits[j]) * 0x9E3779B97F4A7C15u + (sum >> 29);
        free(bits);
    }
    return sum;
}

static void test_every_cut_restores_every_other(void)
{
    weft_error error = {0};
    char directory[128];
    for (size_t from = 0; from < sizeof all_places / sizeof *all_places; from++) {
        weft_checkpoint_state state;
        net n;
        if (!fits(&all_places[from])) continue;
        snprintf(directory, sizeof directory, "%s%d", scratch("large"), (int)from);
        if (!CHECK_OK(net_open(&all_places[from], &wide, &n, &error), error)) return;
        weft_set_runs(n.program, 1);
        const uint64_t saved = fingerprint(&n);
        CHECK_OK(net_save(&n, directory, &error), error);
        net_close(&n);
        for (size_t to = 0; to < sizeof all_places / sizeof *all_places; to++) {
            if (!fits(&all_places[to]) || (to + from) % 6 != 1) continue;
            if (!CHECK_OK(net_open(&all_places[to], &wide, &n, &error), error)) return;
            CHECK_OK(net_restore(&n, directory, 1, &state, &error), error);
            CHECK(fingerprint(&n) == saved);
            net_close(&n);
        }
    }
}

/* Saves of one weft_checkpoints share staging memory and what HDF5 has laid. Steps go on at once:
 * each checkpoint must be of its own step, and HDF5's structures of the second as good as of the
 * first. */
static void check_steps_beside(const place *where, bool is_synchronous)
{
    weft_error error = {0};
    const weft_checkpoint_options options = {.is_synchronous = is_synchronous, .keep = 3};
    uint64_t at_step[4] = {0};
    char directory[128];
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("beside"));
    if (!CHECK_OK(net_open(where, &less_wide, &n, &error), error)) return;
    if (CHECK_OK(weft_checkpoints_open(directory, &options, &c, &error), error)) {
        for (int step = 1; step <= 3; step++) {
            CHECK_OK(net_run(&n, step, step, NULL, &error), error);
            at_step[step] = fingerprint(&n);
            state = net_state(&n);
            CHECK_OK(weft_checkpoints_save(c, n.program, &state, &error), error);
        }
        CHECK_OK(net_run(&n, 4, 4, NULL, &error), error);
        CHECK_OK(weft_checkpoints_wait(c, &error), error);
        for (int step = 3; step >= 1; step--) {
            CHECK_OK(weft_checkpoints_restore(c, n.program, step, &state, &error), error);
            CHECK(fingerprint(&n) == at_step[step]);
        }
    }
    weft_checkpoints_close(&c);
    net_close(&n);
}

static void test_steps_beside_a_save_are_not_in_it(void)
{
    for (size_t i = 1; i < sizeof all_places / sizeof *all_places; i += 2) { /* one of each kind */
        if (!fits(&all_places[i])) continue;
        check_steps_beside(&all_places[i], false);
        check_steps_beside(&all_places[i], true);
    }
}

/* ---- the guard
 * ---------------------------------------------------------------------------------------------------
 */

static weft_snapshot_guard guard;
static atomic_bool is_released, was_early;
static atomic_int n_waits;

static void wait_released(weft_snapshot_guard *h, const void *memory)
{
    (void)h, (void)memory;
    atomic_fetch_add(&n_waits, 1);
    while (!atomic_load(&is_released))
        usleep(1000);
}

static void *release_later(void *before)
{
    usleep(50000);
    /* The run is waiting by now, or has not come so far: nothing has changed either way. */
    net *n = before;
    double w1;
    weft_box box;
    memcpy(&w1,
           weft_local(n->program, weft_variable_at(n->program, 0), weft_mesh_first_local(n->mesh),
                      &box),
           sizeof w1);
    atomic_store(&was_early, w1 != 0.25);
    atomic_store(&is_released, true);
    return NULL;
}

static void test_a_run_waits_before_it_writes(void)
{
    weft_error error = {0};
    const net_options small = {.dtype = WEFT_F64};
    const place where = {"data:1", "", 0, 1};
    pthread_t thread;
    net n;
    if (world.n_processes > 1 || !CHECK_OK(net_open(&where, &small, &n, &error), error)) return;
    double w1[PIXEL * HIDDEN];
    for (int i = 0; i < PIXEL * HIDDEN; i++)
        w1[i] = 0.25;
    CHECK_OK(weft_write(n.program, weft_variable_at(n.program, 0), WEFT_F64, w1, sizeof w1, &error),
             error);
    guard = (weft_snapshot_guard){.wait = wait_released};
    weft_snapshot_guard_start(&guard, n.program);
    CHECK_EQ_INT(pthread_create(&thread, NULL, release_later, &n), 0);
    CHECK_OK(net_run(&n, 1, 1, NULL, &error), error);
    pthread_join(thread, NULL);
    CHECK(!atomic_load(&was_early));
    const int n_in_run = atomic_load(&n_waits);
    CHECK(n_in_run > 0);
    CHECK_OK(weft_write(n.program, weft_variable_at(n.program, 0), WEFT_F64, w1, sizeof w1, &error),
             error);
    CHECK_EQ_INT(atomic_load(&n_waits), n_in_run + 1);
    net_close(&n); /* waits, and ends the guard */
    CHECK_EQ_INT(atomic_load(&n_waits), n_in_run + 2);
    CHECK(guard.program == NULL);
}

/* ---- one variable after the other ------------------------------------------------------------ */

enum { MOST_HELD = 32 };

/* What is held, as it was before the run. */
static struct {
    net *n;
    int n_variables, n_asked; /* of them, so far, by the run */
    bool is_asked[MOST_HELD], was_changed, was_unknown, had_changed_others;
    int order[MOST_HELD], asked[MOST_HELD];
    char *before[MOST_HELD];
} held;

static const void *memory_of(int i, size_t *bytes)
{
    weft_box box;
    const weft_value v = weft_variable_at(held.n->program, i);
    const int rank = weft_mesh_first_local(held.n->mesh);
    const void *memory = weft_local(held.n->program, v, rank, &box);
    *bytes =
        (size_t)weft_box_count(&box, weft_shape_of(v)->n_dims) * weft_dtype_bytes(weft_dtype_of(v));
    return memory;
}

static bool is_as_before(int i)
{
    size_t bytes;
    const void *memory = memory_of(i, &bytes);
    return memcmp(memory, held.before[i], bytes) == 0;
}

static void look_at_held(weft_snapshot_guard *h, const void *memory)
{
    size_t bytes;
    int i = 0;
    (void)h;
    while (i < held.n_variables && memory_of(i, &bytes) != memory)
        i++;
    if (memory == NULL) return; /* the program is destroyed */
    held.was_unknown |= i == held.n_variables;
    if (i == held.n_variables || held.is_asked[i]) return;
    held.was_changed |= !is_as_before(i);
    for (int k = 0; k < held.n_variables; k++)
        held.had_changed_others |= held.is_asked[k] && !is_as_before(k);
    held.is_asked[i] = true;
    held.asked[held.n_asked++] = i;
}

/* Each variable is asked for before it is written, as late as can be: when others are written already; and in the order in
 * which a save takes them. */
static void test_a_run_waits_for_one_variable_at_a_time(void)
{
    weft_error error = {0};
    const net_options small = {.dtype = WEFT_F64};
    const place where = {"data:1", "", 0, 1};
    net n;
    if (world.n_processes > 1 || !CHECK_OK(net_open(&where, &small, &n, &error), error)) return;
    held.n = &n;
    while (weft_variable_at(n.program, held.n_variables).id != 0)
        held.n_variables++;
    if (!CHECK(held.n_variables <= MOST_HELD)) return;
    for (int i = 0; i < held.n_variables; i++) {
        size_t bytes;
        const void *memory = memory_of(i, &bytes);
        if (CHECK((held.before[i] = malloc(bytes)) != NULL)) memcpy(held.before[i], memory, bytes);
    }
    weft_write_order(n.program, held.n_variables, held.order);
    guard = (weft_snapshot_guard){.wait = look_at_held};
    weft_snapshot_guard_start(&guard, n.program);
    CHECK_OK(net_run(&n, 1, 1, NULL, &error), error);
    CHECK_EQ_INT(held.n_asked, held.n_variables); /* adam writes them all */
    CHECK(!held.was_changed && !held.was_unknown && held.had_changed_others);
    CHECK(memcmp(held.order, held.asked, (size_t)held.n_asked * sizeof *held.order) == 0);
    for (int i = 0; i < held.n_variables; i++) {
        CHECK(!is_as_before(i));
        free(held.before[i]);
    }
    net_close(&n);
}

static void run_all(void)
{
    RUN(test_every_cut_restores_every_other);
    RUN(test_steps_beside_a_save_are_not_in_it);
    RUN(test_a_run_waits_before_it_writes);
    RUN(test_a_run_waits_for_one_variable_at_a_time);
}

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    if (CAN_SAVE)
        run_all();
    else
        weft_test_skip("built without HDF5, which checkpoints are written with");
    CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK); /* nobody still reads */
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}
