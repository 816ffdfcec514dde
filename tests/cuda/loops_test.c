/* loops_test: loops compiled on the device cuda: to the CPU's numbers, as CUDA C where the toolkit's compiler is,
 * kept on disk whatever is done to the files; and faults in the generated text are found. */
#include "child.h"
#include "mesh/cuda/parts.h"
#include "mesh/devices.h"
#include "ops/kernel/cuda/compile.h"
#include "ops/kernel/cuda/plugin.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { ROWS = 3, WIDTH = 300, RESULTS = 8, ROOM = RESULTS * ROWS * WIDTH };

static weft_device_kind kind;
static const weft_dim row = {"row", ROWS}, column = {"column", WIDTH};

/* Elements, random numbers, rows of one pass and of two, states joined, values of rows, columns. */
static int build(weft_graph *g, weft_value of[RESULTS])
{
    weft_value x = weft_variable(g, "x", WEFT_F32, WEFT_DIMS(row, column), weft_uniform(-2, 2));
    weft_value y = weft_variable(g, "y", WEFT_F32, WEFT_DIMS(column), weft_uniform(-1, 1));
    int n = 0;
    of[n++] = weft_gelu(weft_add(weft_scale(x, 1.5), y));
    of[n++] = weft_softmax(weft_tanh(x), column);
    of[n++] = weft_dropout(weft_exp(x), 0.25);
    of[n++] = weft_random_normal(g, WEFT_F32, WEFT_DIMS(row, column), 1, 2);
    of[n++] = weft_sum(WEFT_DIMS(row), weft_mul(x, y));
    of[n++] = weft_cast(weft_cast(weft_log(weft_shift(weft_square(x), 1)), WEFT_BF16), WEFT_F32);
    of[n++] = weft_where(weft_greater(x, y), weft_cast(weft_iota(g, WEFT_I32, column), WEFT_F32),
                         weft_random_uniform(g, WEFT_F32, WEFT_DIMS(row, column), 0, 1));
    of[n++] = weft_logsumexp(x, column);
    return n;
}

/* All results, one behind the other; returns how many numbers. */
static int64_t compute(weft_device_kind on, float *out, weft_error *error)
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(3);
    weft_value of[RESULTS];
    int64_t n = 0;
    weft_mesh_use_device(on);
    weft_status status = weft_mesh_create(&alone, "data:1", &mesh, error);
    weft_mesh_use_device(WEFT_CPU);
    const int n_results = build(g, of);
    if (status == WEFT_OK) status = weft_layout_create("", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, (weft_values){of, n_results}, NULL, &program, error);
    if (status == WEFT_OK) status = weft_run(program, error);
    for (int k = 0; k < n_results && status == WEFT_OK; k++) {
        const int64_t count = weft_shape_count(weft_shape_of(of[k]));
        status =
            weft_read(program, of[k], WEFT_F32, out + n, count * (int64_t)sizeof(float), error);
        n += count;
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    return status == WEFT_OK ? n : -1;
}

static bool is_right(void)
{
    static float expected[ROOM], got[ROOM];
    weft_error error = {0};
    const int64_t n = compute(WEFT_CPU, expected, &error), m = compute(kind, got, &error);
    if (error.status != WEFT_OK) printf("%s\n", error.message);
    if (n < 0 || m != n) return false;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <=
              1e-5 * fmax(1, fabs((double)expected[i]))))
            return printf("number %lld is %.9g, and on the CPU %.9g\n", (long long)i,
                          (double)got[i], (double)expected[i]),
                   false;
    return true;
}

/* ---- in processes of their own, which have compiled nothing ------------------------------------- */

static char cache[] = "/tmp/weft_loops_XXXXXX";

/* The device is opened by each child: what a process had opened before it forked would be both's. */
static bool open_device(void)
{
    weft_error error = {0};
    if (cuda_open_all(&error) != WEFT_OK) return puts(error.message), false;
    kind = (weft_device_kind)weft_device_named("cuda");
    return true;
}

typedef struct setting {
    const char *variable, *value; /* NULL: none */
    int n_compiled;               /* so many kernels; -1: any */
} setting;

static int look_with(const void *argument)
{
    const setting *s = argument;
    setenv("XDG_CACHE_HOME", cache, 1);
    if (s->variable != NULL) setenv(s->variable, s->value, 1);
    const bool is = open_device() && is_right();
    const int n = cuda_compile_counts().n_compiled;
    return !is ? 1 : s->n_compiled >= 0 && n != s->n_compiled ? 2 : 0;
}

/* 0: the CPU's numbers, and so many kernels compiled. */
static int look(const char *variable, const char *value, int n_compiled)
{
    return in_a_child(look_with, &(setting){variable, value, n_compiled}, false);
}

/* Each file of the cache is cut, grown or changed; with NULL removed. Returns how many there are. */
static int damage(const char *how)
{
    char folder[100], path[400];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/weft", cache);
    DIR *all = opendir(folder);
    for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        n++;
        if (how == NULL) {
            CHECK_EQ_INT(unlink(path), 0);
            continue;
        }
        FILE *file = fopen(path, "r+");
        if (!CHECK(file != NULL)) continue;
        fseek(file, 0, SEEK_END);
        const long bytes = ftell(file);
        if (how[0] == 'c') CHECK_EQ_INT(ftruncate(fileno(file), bytes / 2), 0);
        if (how[0] == 'b') fseek(file, bytes - bytes / 3, SEEK_SET), fputc('?', file);
        if (how[0] == 'e') CHECK_EQ_INT(ftruncate(fileno(file), 0), 0);
        fclose(file);
    }
    if (all != NULL) closedir(all);
    return n;
}

/* So that a processor of the GPU has 512 threads of it at once. */
#define MOST_REGISTERS "128"

static void test_loops_have_the_numbers_of_the_cpu_and_are_cuda_c(void)
{
    CHECK_EQ_INT(look("TEST_NVRTC_ALSO", MOST_REGISTERS, -1), 0);
    CHECK(damage("nothing") > 5);
}

static void test_a_loop_of_too_many_registers_is_found(void)
{
    if (access(WEFT_TEST_NVRTC, R_OK) != 0) return; /* nobody counts them */
    (void)damage(NULL);
    CHECK(look("TEST_NVRTC_ALSO", "8", -1) != 0);
    (void)damage(NULL);
    CHECK_EQ_INT(look(NULL, NULL, -1), 0);
}

static void test_what_was_compiled_is_found_again(void)
{
    CHECK_EQ_INT(look(NULL, NULL, 0), 0);
}

static void test_a_damaged_file_is_as_none(void)
{
    static const char *const ways[] = {"cut", "byte", "empty"};
    for (int k = 0; k < 3; k++) {
        const int n = damage(ways[k]);
        CHECK_EQ_INT(look(NULL, NULL, n), 0);
        CHECK_EQ_INT(look(NULL, NULL, 0), 0);
    }
}

/* Without a folder, as with one, and processes that all compile at once. */
static void test_processes_share_it(void)
{
    int status = 0;
    (void)damage(NULL);
    fflush(NULL);
    for (int k = 0; k < 3; k++)
        if (fork() == 0) _exit(look(NULL, NULL, -1));
    for (int k = 0; k < 3; k++) {
        CHECK(wait(&status) > 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK_EQ_INT(look(NULL, NULL, 0), 0);
    CHECK_EQ_INT(look("XDG_CACHE_HOME", "/dev/null/none", -1), 0);
}

/* What a generator could get wrong: a meeting left out; an element too many; the wrong element; one pass over the row too few. */
static void test_faults_in_what_is_generated_are_found(void)
{
    static const char *const faults[] = {"SYNC();=", "k < WORD(1);=k <= WORD(1);",
                                         "IN_BLOCK; k=IN_BLOCK + 1; k",
                                         "half = BLOCK_THREADS / 2=half = BLOCK_THREADS / 4"};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        (void)damage(NULL);
        weft_test_check(look("TEST_NVRTC_FAULT", faults[k], -1) != 0, __FILE__, __LINE__,
                        faults[k]);
    }
    (void)damage(NULL);
}

static bool is_emulated(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(!open_device() ? 1 : strncmp(cuda_gpu_here.name, "emulated", 8) != 0 ? OTHER_GPU : 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    return WIFEXITED(status) && WEXITSTATUS(status) != OTHER_GPU;
}

int main(void)
{
    char folder[100];
    if (!is_emulated()) {
        weft_test_skip("it is about the emulated GPU, and this is another");
        return weft_test_report();
    }
    if (!CHECK(mkdtemp(cache) != NULL)) return weft_test_report();
    RUN(test_loops_have_the_numbers_of_the_cpu_and_are_cuda_c);
    RUN(test_a_loop_of_too_many_registers_is_found);
    RUN(test_what_was_compiled_is_found_again);
    RUN(test_a_damaged_file_is_as_none);
    RUN(test_processes_share_it);
    RUN(test_faults_in_what_is_generated_are_found);
    snprintf(folder, sizeof folder, "%s/weft", cache);
    CHECK_EQ_INT(rmdir(folder), 0);
    CHECK_EQ_INT(rmdir(cache), 0);
    return weft_test_report();
}
