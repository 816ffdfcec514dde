/* fake_watch_test: ranks that wait for a device: one that is busy for longer than ranks are patient ends nothing, and one
 * that does nothing any more ends the job with a sentence of its own.
 *
 * Each case is a job, in a process of its own: a verdict ends it.
 */
#include "mesh/fake_device.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { N = 64, LEAST = 3, PRODUCTS = 4 }; /* no patience is less */

typedef struct busy { /* the next `n` of one rank's device's commands take so long */
    double seconds;
    int n;
    double patience; /* with devices */
} busy;

typedef struct job {
    pid_t process;
    char words[64];
} job;

/* Products, one after the other, that each make two of the same numbers of two: more of a device's commands than sleep. */
static weft_value multiply(weft_graph *graph, weft_value x)
{
    static const weft_dim batch = {"batch", N}, sides[] = {{"a", 2}, {"b", 2}};
    for (int i = 0; i < PRODUCTS; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        const weft_dim from = sides[i % 2], to = sides[(i + 1) % 2];
        x = weft_einsum(
            WEFT_DIMS(batch, to), x,
            weft_variable(graph, name, WEFT_F32, WEFT_DIMS(from, to), weft_constant_of(0.5)));
    }
    return x;
}

/* Two ranks, one of which finds its device busy while the other waits for it in an all_reduce. */
static weft_status run(busy how, double *sum, weft_error *error)
{
    weft_world world;
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    float numbers[2 * N];
    for (int i = 0; i < 2 * N; i++)
        numbers[i] = (float)(i / 2);
    fake_use(true);
    weft_watch_patience(LEAST);
    weft_watch_device_patience(how.patience);
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, "data:2", &mesh, error));
    WEFT_TRY(weft_layout_create("batch:data", &layout, error));
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS({"batch", N}, {"a", 2}));
    weft_value all = weft_sum(WEFT_SCALAR, multiply(graph, x));
    WEFT_TRY(weft_compile(mesh, layout, WEFT_VALUES(all), NULL, &program, error));
    WEFT_TRY(weft_write(program, x, WEFT_F32, numbers, sizeof numbers, error));
    fake_sleep(how.seconds, how.n);
    WEFT_TRY(weft_run(program, error));
    WEFT_TRY(weft_read_scalar(program, all, sum, error));
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return WEFT_OK;
}

static job begin(busy how)
{
    job j = {.words = "/tmp/weft-fake-watch-XXXXXX"};
    const int file = mkstemp(j.words);
    j.process = fork();
    if (j.process != 0) {
        close(file);
        return j;
    }
    weft_error error = {0};
    double sum = 0;
    alarm(60);
    dup2(file, STDERR_FILENO);
    const weft_status status = run(how, &sum, &error);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", error.message);
    _exit(status == WEFT_OK && sum == N * (N - 1) && fake_sleeps_left() == 0 ? 0 : 1);
}

/* Its exit status, and what it said. words [bytes] */
static int end(const job *j, char *words, size_t bytes)
{
    int status = 0;
    CHECK(waitpid(j->process, &status, 0) == j->process);
    FILE *file = fopen(j->words, "r");
    words[file ? fread(words, 1, bytes - 1, file) : 0] = '\0';
    if (file) fclose(file);
    unlink(j->words);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_goes_on(const job *j)
{
    char words[8192];
    const int status = end(j, words, sizeof words);
    if (!CHECK(status == 0 && strstr(words, "Exit status") == NULL))
        printf("status %d: %s\n", status, words);
}

static void test_a_busy_device_ends_nothing_and_a_hung_one_the_job(void)
{
    char words[8192];
    const job sleeps = begin((busy){LEAST + 1, 1, 3 * LEAST}), /* one long kernel */
        goes_on = begin((busy){0.4 * LEAST, PRODUCTS, LEAST}), /* in all for longer than patience */
        hangs = begin((busy){INFINITY, 1, LEAST});
    check_goes_on(&sleeps);
    check_goes_on(&goes_on);
    CHECK_EQ_INT(end(&hangs, words, sizeof words), 72);
    CHECK_TEXT(words, "waits for a device that hangs: for 3 s it has done nothing");
    CHECK_TEXT(words, "of its device fake, which has done");
    CHECK_TEXT(words, "weft_watch_device_patience");
}

int main(void)
{
    if (WEFT_TEST_EMULATOR[0] != '\0') {
        weft_test_skip("patience is in seconds, and an emulator's are not the program's");
        return weft_test_report();
    }
    RUN(test_a_busy_device_ends_nothing_and_a_hung_one_the_job);
    return weft_test_report();
}
