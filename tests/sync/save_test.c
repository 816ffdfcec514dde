/* save_test: in all orders within a bound, a checkpoint that is written beside a run holds the variables as they were when it
 * was asked for. It is there once, as a whole or not at all, and the watch is told of none that is not there.
 */
#include "save.h"

#include "explored.h"
#include "weft/checkpoint.h"
#include "weft/ops.h"
#include "work.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 2, MOST_SAVES = 2, COPIES = 3, APART = 4096 };

/* How an order ends. */
typedef enum ending { WAITED_FOR, POLLED, CLOSED, WRITTEN } ending;

typedef struct training {
    weft_mesh *mesh;
    weft_graph *graph;
    weft_value a, b;
    weft_program *program;
    weft_checkpoint_options options;
    int n_saves;
    ending ending;
    /* of this order */
    int32_t wanted[MOST_SAVES][2 * NUMBERS]; /* by each save */
    int n_asked, n_published, n_said;
} training;

static training *now;
static char folder[256];

/* ---- the disk (--wrap, tests/sync/CMakeLists.txt) ----------------------------------------------------- */

static struct {
    int32_t numbers[2 * NUMBERS];
    _Atomic int n_written;
    bool is_synced;
} disk;

weft_status __wrap_weft_bytes_write(int file, const char *path, const void *from, int64_t bytes,
                                    int64_t at, weft_error *error);
weft_status __wrap_weft_file_sync(int file, const char *path, weft_error *error);
weft_status __wrap_weft_save_publish(weft_checkpoints *c, weft_error *error);
void __wrap_weft_watch_saved(int64_t step);
bool __wrap_weft_frame_fits(const weft_frame *frame, const weft_manifest *manifest);
void __wrap_weft_frame_place(const weft_frame *frame, weft_manifest *manifest);
weft_status __wrap_weft_frame_lay(const weft_frame *frame, const weft_manifest *manifest,
                                  const char *path, weft_error *error);
void __wrap_weft_frame_drop(weft_frame *frame);
weft_status __wrap_weft_directory_make(const char *path, weft_error *error);
weft_status __wrap_weft_directory_anchor(const char *path, weft_error *error);
weft_status __wrap_weft_directory_sync(const char *path, weft_error *error);
weft_status __wrap_weft_directory_remove(const char *path, weft_error *error);
int __wrap_weft_work_threads(const weft_mesh *mesh);

weft_status __wrap_weft_bytes_write(int file, const char *path, const void *from, int64_t bytes,
                                    int64_t at, weft_error *error)
{
    (void)file, (void)path, (void)error;
    weft_sync_add(&disk.n_written, 1);
    memcpy(&disk.numbers[at / APART * NUMBERS], from, (size_t)bytes);
    return WEFT_OK;
}

weft_status __wrap_weft_file_sync(int file, const char *path, weft_error *error)
{
    (void)file, (void)path, (void)error;
    if (weft_sync_load(&disk.n_written) != 2)
        schedule_fail("of 2 blocks %d were written", atomic_load(&disk.n_written));
    disk.is_synced = true;
    return WEFT_OK;
}

weft_status __wrap_weft_save_publish(weft_checkpoints *c, weft_error *error)
{
    const int number = (int)c->save->manifest->state.step;
    (void)error;
    if (!disk.is_synced) schedule_fail("save %d is published before it is on the disk", number);
    if (number != now->n_published) schedule_fail("save %d is published twice", number);
    for (int i = 0; i < 2 * NUMBERS; i++)
        if (disk.numbers[i] != now->wanted[number][i])
            schedule_fail("save %d has %d for number %d, not %d", number, disk.numbers[i], i,
                          now->wanted[number][i]);
    now->n_published++;
    disk.is_synced = false;
    weft_sync_store(&disk.n_written, 0);
    return WEFT_OK;
}

void __wrap_weft_watch_saved(int64_t step)
{
    if (step >= now->n_published) schedule_fail("step %d is told of and not there", (int)step);
    now->n_said++;
}

/* Its places are known from a save before. */
bool __wrap_weft_frame_fits(const weft_frame *frame, const weft_manifest *manifest)
{
    (void)frame, (void)manifest;
    return true;
}

void __wrap_weft_frame_place(const weft_frame *frame, weft_manifest *manifest)
{
    (void)frame;
    for (int i = 0; i < manifest->n_entries; i++)
        manifest->entries[i].tensor.offset = i * APART;
    weft_manifest_sort(manifest);
}

weft_status __wrap_weft_frame_lay(const weft_frame *frame, const weft_manifest *manifest,
                                  const char *path, weft_error *error)
{
    (void)frame, (void)manifest, (void)path, (void)error;
    return WEFT_OK;
}

void __wrap_weft_frame_drop(weft_frame *frame)
{
    (void)frame;
}

weft_status __wrap_weft_directory_make(const char *path, weft_error *error)
{
    (void)path, (void)error;
    return WEFT_OK;
}

weft_status __wrap_weft_directory_anchor(const char *path, weft_error *error)
{
    (void)path, (void)error;
    return WEFT_OK;
}

weft_status __wrap_weft_directory_sync(const char *path, weft_error *error)
{
    (void)path, (void)error;
    return WEFT_OK;
}

weft_status __wrap_weft_directory_remove(const char *path, weft_error *error)
{
    (void)path, (void)error;
    return WEFT_OK;
}

int __wrap_weft_work_threads(const weft_mesh *mesh)
{
    (void)mesh;
    return COPIES;
}

/* ---- a training, and its saves ------------------------------------------------------------------------ */

static void run_once(training *t)
{
    weft_error error = {0};
    if (weft_run(t->program, &error) != WEFT_OK) schedule_fail("%s", error.message);
}

/* What the program itself writes waits for all variables. */
static void write_once(training *t)
{
    const int32_t numbers[NUMBERS] = {5, 5};
    weft_error error = {0};
    if (weft_write(t->program, t->a, WEFT_I32, numbers, sizeof numbers, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
}

static void ask(training *t, weft_checkpoints *c)
{
    const weft_checkpoint_state state = {.step = t->n_asked};
    int32_t *wanted = t->wanted[t->n_asked++];
    weft_error error = {0};
    if (weft_read(t->program, t->a, WEFT_I32, wanted, NUMBERS * sizeof *wanted, &error) ||
        weft_read(t->program, t->b, WEFT_I32, wanted + NUMBERS, NUMBERS * sizeof *wanted, &error) ||
        weft_checkpoints_save(c, t->program, &state, &error))
        schedule_fail("%s", error.message);
}

static void end_saves(training *t, weft_checkpoints *c)
{
    weft_waiter wait = {"a save to end", WEFT_ANY, {0, 0}, NULL, 0, false};
    weft_error error = {0};
    weft_status status = WEFT_OK;
    if (t->ending == WAITED_FOR || t->ending == WRITTEN) status = weft_checkpoints_wait(c, &error);
    while (t->ending == POLLED && status == WEFT_OK && weft_checkpoints_is_saving(c)) {
        status = weft_checkpoints_poll(c, &error);
        if (weft_checkpoints_is_saving(c)) weft_waiter_nap(&wait, 1);
    }
    if (status != WEFT_OK) schedule_fail("%s", error.message);
}

static void save_and_run(void *state)
{
    training *t = state;
    weft_checkpoints *c = NULL;
    weft_error error = {0};
    now = t;
    t->n_asked = t->n_published = t->n_said = 0;
    disk.is_synced = false;
    atomic_store(&disk.n_written, 0);
    if (weft_checkpoints_open(folder, &t->options, &c, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
    c->frame.is_kept = true;
    for (int i = 0; i < t->n_saves; i++) {
        ask(t, c);
        if (t->ending == WRITTEN)
            write_once(t);
        else
            run_once(t);
    }
    end_saves(t, c);
    weft_checkpoints_close(&c);
    const bool is_whole = t->n_published == t->n_saves && t->n_said >= t->n_saves;
    if (t->ending != CLOSED && !is_whole)
        schedule_fail("of %d saves %d are there, and %d were told of", t->n_saves, t->n_published,
                      t->n_said);
}

/* a' = 75 - a, b' = 30 - b: each run gives each other numbers, and two give the old ones. */
static bool open_training(training *t)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    const weft_shape shape = WEFT_DIMS({"number", NUMBERS});
    weft_error error = {0};
    t->graph = weft_graph_create(1);
    t->a = weft_variable(t->graph, "a", WEFT_I32, shape, weft_constant_of(5));
    t->b = weft_variable(t->graph, "b", WEFT_I32, shape, weft_constant_of(70));
    const weft_value more = weft_constant(t->graph, WEFT_I32, shape, 75),
                     less = weft_constant(t->graph, WEFT_I32, shape, 30),
                     first = weft_assign(t->a, weft_sub(more, t->a)),
                     second = weft_assign(t->b, weft_sub(less, t->b));
    weft_lanes_choose(1); /* the rank's own thread alone */
    return CHECK_OK(weft_mesh_create(&alone, "d:1", &t->mesh, &error), error) &&
           CHECK_OK(
               weft_compile(t->mesh, NULL, WEFT_VALUES(first, second), NULL, &t->program, &error),
               error);
}

static void check_saves(const char *what, int n_saves, ending how, bool is_synchronous,
                        schedule_options options)
{
    char name[100];
    training t = {.n_saves = n_saves, .ending = how, .options.is_synchronous = is_synchronous};
    snprintf(name, sizeof name, "%s, %d saves%s", what, n_saves,
             options.seed != 0 ? ", at random" : "");
    if (open_training(&t)) explore(name, save_and_run, &t, options);
    (void)!weft_program_destroy(&t.program);
    (void)!weft_mesh_destroy(&t.mesh);
    (void)!weft_graph_destroy(&t.graph);
}

static schedule_options all(int n_preemptions)
{
    return (schedule_options){.n_preemptions = n_preemptions, .most_runs = weft_test_cases(5000)};
}

static schedule_options random_ones(uint64_t seed)
{
    return (schedule_options){.seed = seed, .most_runs = weft_test_cases(5000)};
}

static void test_what_is_saved_is_of_one_moment(void)
{
    check_saves("waited for", 1, WAITED_FOR, false, all(2));
    check_saves("waited for", 2, WAITED_FOR, false, random_ones(3));
    check_saves("polled", 1, POLLED, false, all(1));
    check_saves("written to", 1, WRITTEN, false, all(1));
    check_saves("before it goes on", 1, WAITED_FOR, true, all(1));
}

static void test_a_save_given_up_is_whole_or_not_there(void)
{
    check_saves("closed", 1, CLOSED, false, all(2));
    check_saves("closed", 2, CLOSED, false, random_ones(4));
}

/* The folders that saves are written in, which nobody makes here. */
static bool make_folders(void)
{
    char path[sizeof folder + 64];
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/weft-save-XXXXXX", base ? base : "/tmp");
    bool is_made = CHECK(mkdtemp(folder) != NULL);
    for (int i = 0; i < MOST_SAVES; i++) {
        snprintf(path, sizeof path, "%s/step_%08d.tmp", folder, i);
        is_made = CHECK(mkdir(path, 0777) == 0) && is_made;
        snprintf(path, sizeof path, "%s/step_%08d.tmp/" WEFT_STATE_FILE, folder, i);
        const int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
        is_made = CHECK(file >= 0) && is_made;
        if (file >= 0) close(file);
    }
    return is_made;
}

/* At any end of the process: the first order that fails is one. */
static void remove_folders(void)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    (void)!system(command);
}

int main(void)
{
    if (make_folders()) {
        RUN(test_what_is_saved_is_of_one_moment);
        RUN(test_a_save_given_up_is_whole_or_not_there);
    }
    remove_folders();
    return weft_test_report();
}
