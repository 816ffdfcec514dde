/* random_chains_test: chains that seeds draw give the same samples to the bit on any mesh, by threads and by processes. So they do with any number
 * of ranks and threads that read, batches ahead and rows a batch. A run that kill -9 ended is continued from its last checkpoint with others of these.
 *
 * For each seed this program starts itself several times in turn, by itself or by mpiexec: each run continues the one before. It
 * writes down the hash of every sample that it was given, and ends itself by SIGKILL at a drawn sample; the last one does not. The hashes are compared
 * with those of the chain asked directly, backwards. A variable sums all numbers, exactly: what was learned from is what was given.
 *
 *     random_chains_test [SEED | --many N]
 */
#include "drawn_chain.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain.h"
#include "oracle/seeds.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"
#include "weft/ops.h"

#include "jobs.h"

enum { SAMPLES = 50, MOST_BATCH = 9, LOST = 40 /* exit status of one that did not get on */ };

/* How a run is made. */
typedef struct way {
    int n_processes; /* 0: threads of one process */
    const char *mesh;
    int threads, ahead, readers, batch;
    int64_t dies; /* before the batch with this sample; -1: never */
} way;

/* ---- a run: started by itself --------------------------------------------------------------------- */

typedef struct run {
    drawn drawn;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value x, seen;
    weft_program *program;
    weft_dataset *data;
    weft_checkpoints *checkpoints;
    weft_checkpoint_state state;
    int log;
    int64_t batch;
} run;

static weft_status run_open(run *r, const weft_world *world, const char *mesh, int batch,
                            weft_error *error)
{
    r->batch = batch;
    r->graph = weft_graph_create(1);
    r->x = weft_input(r->graph, "x", WEFT_I64, WEFT_DIMS({"batch", batch}, {"wide", DRAWN_WIDE}));
    r->seen = weft_variable(r->graph, "seen", WEFT_F64, WEFT_SCALAR, weft_constant_of(0));
    const weft_value sum = weft_sum(WEFT_SCALAR, weft_cast(r->x, WEFT_F64));
    const weft_value all =
        weft_group(r->graph, WEFT_VALUES(weft_assign(r->seen, weft_add(r->seen, sum))));
    WEFT_TRY(weft_mesh_create(world, mesh, &r->mesh, error));
    WEFT_TRY(weft_layout_create("batch:d?,wide:m?", &r->layout, error));
    return weft_compile(r->mesh, r->layout, WEFT_VALUES(all), NULL, &r->program, error);
}

static weft_status run_continue(run *r, const char *folder, const weft_feed_options *feed,
                                weft_error *error)
{
    char path[300];
    weft_chain *chain = r->drawn.chain;
    WEFT_TRY(weft_chain_dataset(&chain, feed, &r->data, error));
    r->drawn.chain = NULL;
    snprintf(path, sizeof path, "%s/log", folder);
    r->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "%s/ckpt", folder);
    const weft_checkpoint_options options = {.data = weft_dataset_facts(r->data)};
    WEFT_TRY(weft_checkpoints_open(path, &options, &r->checkpoints, error));
    WEFT_TRY(weft_checkpoints_restore(r->checkpoints, r->program, WEFT_NEWEST, &r->state, error));
    weft_dataset_seek(r->data, r->state.sample);
    return weft_dataset_start(r->data, r->program, error);
}

/* One write each: what is written is there when the process is killed. */
static void run_log(const run *r, int64_t position, const int64_t *x)
{
    char text[MOST_BATCH * 48];
    size_t used = 0;
    for (int64_t row = 0; row < r->batch; row++)
        used += (size_t)sprintf(
            text + used, "%lld %016llx\n", (long long)(position + row),
            (unsigned long long)drawn_hash(x + row * DRAWN_WIDE, DRAWN_WIDE * sizeof *x, 1));
    if (weft_world_is_root() && write(r->log, text, used) != (ssize_t)used) _exit(LOST);
}

static weft_status run_step(run *r, weft_error *error)
{
    int64_t x[MOST_BATCH * DRAWN_WIDE];
    const int64_t position = weft_dataset_position(r->data);
    WEFT_TRY(weft_dataset_next(r->data, r->program, error));
    WEFT_TRY(weft_read(r->program, r->x, WEFT_I64, x, r->batch * DRAWN_WIDE * 8, error));
    run_log(r, position, x);
    WEFT_TRY(weft_run(r->program, error));
    r->state.step++;
    r->state.sample = weft_dataset_position(r->data);
    r->state.seed = 1;
    if (r->state.step % 2 == 0)
        WEFT_TRY(weft_checkpoints_save(r->checkpoints, r->program, &r->state, error));
    return weft_checkpoints_poll(r->checkpoints, error);
}

static weft_status run_all(run *r, int64_t dies, bool is_victim, weft_error *error)
{
    double seen = 0;
    while (r->state.sample < SAMPLES) {
        if (dies >= 0 && is_victim && r->state.sample + r->batch > dies) kill(getpid(), SIGKILL);
        WEFT_TRY(run_step(r, error));
    }
    WEFT_TRY(weft_checkpoints_wait(r->checkpoints, error));
    WEFT_TRY(weft_read_scalar(r->program, r->seen, &seen, error));
    char text[80];
    const int n = sprintf(text, "end %lld %.17g\n", (long long)r->state.sample, seen);
    if (weft_world_is_root() && write(r->log, text, (size_t)n) != n) return WEFT_IO;
    return WEFT_OK;
}

/* --run SEED FOLDER MESH THREADS AHEAD READERS BATCH DIES VICTIM */
static int do_run(char **words)
{
    run r = {.log = -1};
    weft_world world;
    weft_error error = {.rank = -1};
    const weft_feed_options feed = {atoi(words[3]), atoi(words[4]), atoi(words[5])};
    if (weft_world_open(&world, &error) != WEFT_OK) return LOST;
    const bool is_victim = world.process == atoi(words[8]);
    weft_status status =
        drawn_open(&r.drawn, strtoull(words[0], NULL, 10), words[1], false) ? WEFT_OK : WEFT_USAGE;
    if (status == WEFT_OK) status = run_open(&r, &world, words[2], atoi(words[6]), &error);
    if (status == WEFT_OK) status = run_continue(&r, words[1], &feed, &error);
    if (status == WEFT_OK) status = run_all(&r, atoll(words[7]), is_victim, &error);
    if (status != WEFT_OK) fprintf(stderr, "random_chains: %s\n", error.message);
    weft_checkpoints_close(&r.checkpoints);
    weft_dataset_close(&r.data);
    weft_chain_close(&r.drawn.chain);
    weft_program_destroy(&r.program);
    weft_graph_destroy(&r.graph);
    weft_layout_destroy(&r.layout);
    weft_mesh_destroy(&r.mesh);
    weft_world_close();
    return status == WEFT_OK ? 0 : LOST;
}

/* ---- the runs of a seed --------------------------------------------------------------------------- */

static struct {
    int runs, mpi, killed;
} tally;
static char self[4000], folder[] = "/tmp/weft-chains-XXXXXX";

static way draw_way(dice *d, int number, int64_t from)
{
    static const char *const meshes[7][3] = {
        [1] = {"d:1", "m:1", "d:1"}, [2] = {"d:2", "m:2", "d:2"},
        [3] = {"d:3", "m:3", "d:3"}, [4] = {"d:4", "d:2,m:2", "m:4"},
        [5] = {"d:5", "d:5", "m:5"}, [6] = {"d:3,m:2", "d:6", "m:3,d:2"},
    };
    static const int batches[] = {3, 4, 6, 9};
    const bool is_mpi = WEFT_TEST_MPIEXEC[0] != '\0' && roll(d, 3) == 0;
    const int n = is_mpi ? 2 + roll(d, 3) : 1 + roll(d, 6);
    way w = {.n_processes = is_mpi ? n : 0,
             .mesh = meshes[n][roll(d, 3)],
             .threads = 1 + roll(d, 4),
             .ahead = 1 + roll(d, 4),
             .batch = batches[roll(d, 4)],
             .readers = roll(d, n + 1),
             .dies = -1};
    if (number > 0) w.dies = from + 1 + roll(d, 20);
    return w;
}

static int start(const way *w, uint64_t seed, const char *where, int victim)
{
    char line[9000], launcher[300] = "";
    if (w->n_processes > 0)
        snprintf(launcher, sizeof launcher, JOBS_MPIRUN "-n %d ", w->n_processes);
    snprintf(line, sizeof line, "%s%s --run %llu %s %s %d %d %d %d %lld %d 2>%s/said", launcher,
             self, (unsigned long long)seed, where, w->mesh, w->threads, w->ahead, w->readers,
             w->batch, (long long)w->dies, victim, where);
    const int status = system(line);
    tally.runs++;
    tally.mpi += w->n_processes > 0;
    tally.killed += w->dies >= 0 && w->dies < SAMPLES;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* [n] hashes and the sums up to and with each, asked from the last to the first. */
static void ask_directly(const weft_chain *chain, int n, uint64_t *hashes, double *sums)
{
    void *scratch = aligned_alloc(64, (chain->found.scratch_bytes + 64) / 64 * 64);
    weft_error error = {.rank = -1};
    for (int i = n - 1; i >= 0; i--) {
        int64_t x[DRAWN_WIDE];
        const weft_want want = {0, WEFT_I64, 0, DRAWN_WIDE, x};
        CHECK_OK(weft_chain_ask(chain, i, &want, 1, scratch, &error), error);
        hashes[i] = drawn_hash(x, sizeof x, 1);
        sums[i] = 0;
        for (int w = 0; w < DRAWN_WIDE; w++)
            sums[i] += (double)x[w];
    }
    for (int i = 1; i < n; i++)
        sums[i] += sums[i - 1];
    free(scratch);
}

/* Every line is what the chain has; returns how many samples in a row there are from the first on. */
static int check_log(const char *where, const uint64_t *hashes, const double *sums, int n)
{
    char path[300], line[120];
    bool is_there[SAMPLES + MOST_BATCH] = {false};
    int n_wrong = 0, reached = 0;
    snprintf(path, sizeof path, "%s/log", where);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        long long sample;
        unsigned long long hash;
        double seen;
        if (sscanf(line, "end %lld %lg", &sample, &seen) == 2) {
            CHECK_CLOSE(seen, sums[sample - 1], 0);
        } else if (CHECK(sscanf(line, "%lld %llx", &sample, &hash) == 2 && sample < n)) {
            n_wrong += hash != hashes[sample];
            is_there[sample] = true;
        }
    }
    if (file != NULL) fclose(file);
    CHECK_EQ_INT(n_wrong, 0);
    while (reached < n && is_there[reached])
        reached++;
    return reached;
}

static void show_last_words(const char *where)
{
    char path[300], line[600];
    snprintf(path, sizeof path, "%s/said", where);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        fputs(line, stderr);
    if (file != NULL) fclose(file);
}

static void check_seed(uint64_t seed)
{
    enum { MOST = SAMPLES + MOST_BATCH };
    char where[200];
    uint64_t hashes[MOST];
    double sums[MOST];
    drawn plain;
    dice d = {seed ^ 0x5bd1e995u};
    const int failed = atomic_load(&weft_test_.n_failed);
    snprintf(where, sizeof where, "%s/%llu", folder, (unsigned long long)seed);
    CHECK_EQ_INT(mkdir(where, 0700), 0);
    if (drawn_open(&plain, seed, where, true)) {
        int reached = 0;
        ask_directly(plain.chain, MOST, hashes, sums);
        for (int left = 1 + roll(&d, 3); left >= 0; left--) {
            const way w = draw_way(&d, left, reached);
            const int status =
                start(&w, seed, where, roll(&d, w.n_processes > 0 ? w.n_processes : 1));
            if (!CHECK(w.dies < 0 || w.dies >= SAMPLES ? status == 0 : status != LOST))
                show_last_words(where);
            reached = check_log(where, hashes, sums, MOST);
        }
        CHECK(reached >= SAMPLES);
    }
    weft_chain_close(&plain.chain);
    if (atomic_load(&weft_test_.n_failed) > failed)
        fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
}

static seed_range seeds;

static void test_samples_are_the_same_on_any_mesh_and_after_kills(void)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        check_seed(seed);
}

int main(int argc, char **argv)
{
    char command[128];
#ifdef WEFT_FILES_FOLDER
    setenv("WEFT_FILES_PATH", WEFT_FILES_FOLDER, 1);
#endif
    if (argc == 11 && strcmp(argv[1], "--run") == 0) return do_run(argv + 2);
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!seeds_of(argc, argv, (uint64_t)weft_test_cases(8), &seeds)) return 2;
    if (!CHECK(n > 0) || !CHECK(mkdtemp(folder) != NULL)) return weft_test_report();
    jobs_prepare_mpi();
    RUN(test_samples_are_the_same_on_any_mesh_and_after_kills);
    printf("%d runs, %d of them by mpiexec; %d were killed\n", tally.runs, tally.mpi, tally.killed);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ_INT(system(command), 0);
    return weft_test_report();
}
