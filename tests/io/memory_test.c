#include "memory_acts.h"

static bool is_all; /* --all: else MOST of an act */
static int n_died;

/* All of them, or at most so many, evenly. A process of its own for each takes its time. */
static int stride_of(const act *a)
{
    const int64_t most = weft_test_cases(a->is_once ? MOST / 4 : MOST);
    return is_all || shared->n_calls <= most ? 1 : (int)((shared->n_calls + most - 1) / most);
}

static void print_where(const act *a, const place *where, bool is_for_good)
{
    fprintf(stderr, "  in %s on %s, call %lld%s, from", a->name, where->mesh, (long long)shared->at,
            is_for_good ? " and after" : "");
    for (int i = 0; i < SHORTAGE_FRAMES && shared->told.where[i][0]; i++)
        fprintf(stderr, " %s", shared->told.where[i]);
    fprintf(stderr, "\n");
}

/* at 0: memory is counted, not refused. */
static void try_one(const act *a, bench *b, int64_t at, bool is_for_good)
{
    weft_error error = {0};
    if (a->before) a->before(b);
    alarm(SECONDS);
    shortage_start(at, is_for_good);
    const weft_status status = a->during(b, &error);
    shortage_stop();
    alarm(0);
    if (status != WEFT_OK) {
        CHECK(error.message[0] != 0);
        CHECK_EQ_INT(status, WEFT_MEMORY);
        if (status != WEFT_MEMORY) fprintf(stderr, "  %s\n", error.message);
    }
    if (!shared->told.has_struck) CHECK_OK(status, error);
    a->after(b, status);
    if (at == 0) shared->n_calls = shared->told.seen;
    for (int k = 0; at == 0 && k < SHORTAGE_SPARED; k++)
        shared->n_spared[k] += shared->told.spared[k];
    shared->n_tried += shared->told.has_struck;
    shared->n_refused += status != WEFT_OK;
}

/* From `at` on, in this process. */
static void try_from(const act *a, const place *where, int64_t at, bool is_for_good)
{
    weft_error error = {0};
    bench b = {.where = where};
    shortage_tell(&shared->told);
    CHECK_OK(weft_world_open(&world, &error), error);
    for (bool goes_on = true; goes_on; at += stride_of(a)) {
        const int failed = atomic_load(&weft_test_.n_failed);
        shared->at = at;
        try_one(a, &b, at, is_for_good);
        if (atomic_load(&weft_test_.n_failed) > failed) print_where(a, where, is_for_good);
        goes_on = at > 0 && shared->told.has_struck && !a->is_once;
    }
    net_close(&b.n);
    weft_world_close();
}

typedef void (*child_work)(const act *a, const place *where, int64_t at, bool is_for_good);

/* Returns the child's wait status. */
static int in_child(child_work work, const act *a, const place *where, int64_t at, bool is_for_good)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const int failed = atomic_load(&weft_test_.n_failed);
        work(a, where, at, is_for_good);
        fflush(NULL);
        exit(atomic_load(&weft_test_.n_failed) > failed);
    }
    waitpid(child, &status, 0);
    return status;
}

static void remove_folder(void)
{
    weft_error error = {0};
    CHECK_OK(weft_directory_remove(folder, &error), error);
}

/* A child that dies (by SIGALRM: hangs) is one try that failed; the next goes on after it. */
static void check_act(const act *a, const place *where, bool is_for_good)
{
    shared->n_calls = shared->n_tried = shared->n_refused = 0;
    shared->digest = 0;
    remove_folder();
    CHECK_EQ_INT(in_child(try_from, a, where, 0, false), 0);
    for (int64_t at = 1; at <= shared->n_calls; at = shared->at + stride_of(a)) {
        const int status = in_child(try_from, a, where, at, is_for_good);
        if (WIFSIGNALED(status)) {
            CHECK_EQ_INT(WTERMSIG(status), 0);
            print_where(a, where, is_for_good);
            n_died++;
        } else {
            CHECK_EQ_INT(WEXITSTATUS(status), 0);
        }
        if (!WIFSIGNALED(status) && !a->is_once) break;
    }
    printf("    %s on %s, %s: %lld calls, %lld refused, %lld ended in the sentence\n", a->name,
           where->mesh, is_for_good ? "one and all after it" : "one", (long long)shared->n_calls,
           (long long)shared->n_tried, (long long)shared->n_refused);
}

static const place places[] = {
    {"data:1", "", 0, 1},
    {"data:2,model:2", "batch:data,hidden:model", 1, 4},
};
enum { N_PLACES = sizeof places / sizeof *places };

static void find_expected(const act *none, const place *where, int64_t at, bool is_for_good)
{
    bench b = {.where = where};
    weft_error error = {0};
    (void)none, (void)at, (void)is_for_good;
    CHECK_OK(weft_world_open(&world, &error), error);
    must_open(&b);
    CHECK_OK(net_run(&b.n, 1, STEPS, shared->losses, &error), error);
    net_read(&b.n, shared->states[0]);
    CHECK_OK(net_run(&b.n, STEPS + 1, STEPS + 1, NULL, &error), error);
    net_read(&b.n, shared->states[1]);
    net_close(&b.n);
    weft_world_close();
}

static const char *only; /* one of the acts; NULL: all */

static void test_memory_that_is_refused_is_a_sentence(void)
{
    for (int p = 0; p < N_PLACES; p++) {
        CHECK_EQ_INT(in_child(find_expected, NULL, &places[p], 0, false), 0);
        for (int i = 0; i < 2 * N_ACTS; i++) {
            const act *a = &acts[i / 2];
            if ((only && strcmp(only, a->name) != 0) || (a->needs_hdf5 && !CAN_SAVE)) continue;
            if (a->is_once && p > 0) continue;
            check_act(a, &places[p], i % 2 == 1);
        }
    }
    for (int k = 0; shortage_spared_reason(k); k++)
        printf("    spared: %lld calls: %s\n", (long long)shared->n_spared[k],
               shortage_spared_reason(k));
}

static bool begin(void)
{
    snprintf(root, sizeof root, "%s/weft-memory-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(root) == NULL) return false;
    snprintf(folder, sizeof folder, "%s/ckpt", root);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    write_data();
    return shared != MAP_FAILED;
}

int main(int argc, char **argv)
{
    weft_error error = {0};
    for (int i = 1; i < argc; i++) {
        is_all |= strcmp(argv[i], "--all") == 0;
        if (argv[i][0] != '-') only = argv[i];
    }
    if (!begin()) return 1;
    RUN(test_memory_that_is_refused_is_a_sentence);
    CHECK_EQ_INT(n_died, 0);
    CHECK_OK(weft_directory_remove(root, &error), error);
    return weft_test_report();
}
