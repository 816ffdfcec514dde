/* memory_test: the programs, as a user starts them, with memory refused at one allocation, or at it and all after.
 * They exit with status 1 and a sentence, or need none. The run directory is as good as before, and continues to the
 * same end.
 */
#include "command.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mesh/shortage.h"
#include "test.h"

enum { LINE = 4096, SECONDS = 30 };

static char folder[64];
static shortage_told *told;
static bool is_all; /* --all: hundreds to thousands of each, evenly; else a few */

/* `%s` is the test's folder, everywhere. */
typedef struct act {
    const char *name, *program, *arguments;
    const char *before; /* what the shell makes first */
    int most, most_all; /* tries in the quick suite, and in the long one */
    const char *after;  /* must end with 0 after every try */
    const char *same;   /* a file that must be as `like`, where the program has ended with 0 */
    const char *like;
    const char *launcher; /* what stands before it; NULL: nothing */
} act;

#define BIN   WEFT_TEST_BIN
#define MODEL "--layers 1 --width 8 --heads 2 --batch 4 --seq 8 --dtype f64 --quiet --save-every 2 "
#define TRAIN BIN "/gpt train --data %1$s/text.txt " MODEL
#define PLAN                                                                                       \
    "train --dry-run --json --explain --layers 1 --width 8 --heads 2 --batch 4 --seq 8 "           \
    "--mesh data:2,model:2 --layout batch:data,hidden:model,seq:data "
#define GOES_ON                                                                                    \
    "! ls %1$s/run/ckpt/*/damaged && " TRAIN "--steps 6 --run %1$s/run && " BIN                    \
    "/weft ckpt diff %1$s/whole %1$s/run"

static const act acts[] = {
    {"a training that goes on", "gpt",
     "train --data %1$s/text.txt " MODEL "--steps 6 --run %1$s/run",
     "rm -rf %1$s/run; cp -r %1$s/half %1$s/run", 12, 400, GOES_ON, NULL, NULL},
    {"a training on two ranks", "gpt",
     "train --data %1$s/text.txt " MODEL
     "--mesh data:2 --layout batch:data --zero 1 --steps 6 --run %1$s/run",
     "rm -rf %1$s/run; cp -r %1$s/half %1$s/run", 8, 400,
     "! ls %1$s/run/ckpt/*/damaged && " BIN "/weft ckpt verify %1$s/run", NULL, NULL},
    {"a plan explained", "gpt", PLAN ">%1$s/out", BIN "/gpt " PLAN ">%1$s/plan", 24, 600, ":",
     "out", "plan"},
    {"a training of two processes", "gpt",
     "train --data %1$s/text.txt " MODEL "--layout batch:data --steps 6 --run %1$s/run",
     "rm -rf %1$s/run; cp -r %1$s/half %1$s/run", 0, 24,
     "! ls %1$s/run/ckpt/*/damaged && " BIN "/weft ckpt verify %1$s/run", NULL, NULL,
     SHORTAGE_RANK_VARIABLE "=1 " WEFT_TEST_MPIEXEC " -n 2 --oversubscribe "},
    {"list", "weft", "ckpt list %1$s/whole --json >%1$s/out", ":", 6, 1500, ":", "out", "list"},
    {"verify", "weft", "ckpt verify %1$s/whole", ":", 6, 1500, ":", NULL, NULL},
    {"export", "weft", "ckpt export %1$s/whole %1$s/made.safetensors",
     "rm -f %1$s/made.safetensors", 8, 1500, ":", "made.safetensors", "whole.safetensors"},
    {"import", "weft", "ckpt import %1$s/whole.safetensors %1$s/made", "rm -rf %1$s/made", 8, 1500,
     "! ls -d %1$s/made/step_???????? || " BIN "/weft ckpt verify %1$s/made", NULL, NULL},
};
enum { N_ACTS = sizeof acts / sizeof *acts };

/* Exit status of the shell; 124: it hung. What it says goes to the file "said". */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static int shell(const char *environment, const char *format)
{
    char line[LINE], full[2 * LINE];
    snprintf(line, sizeof line, format, folder);
    snprintf(full, sizeof full, "%s timeout -k 1 %d sh -c '%s' >%s/said 2>&1", environment, SECONDS,
             line, folder);
    const int status = system(full);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *said(void)
{
    static char text[1200];
    char path[128];
    snprintf(path, sizeof path, "%s/said", folder);
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file) fclose(file);
    return text;
}

static int run(const act *a, int64_t at, bool is_for_good)
{
    char environment[LINE], line[LINE];
    memset(told, 0, sizeof *told);
    snprintf(environment, sizeof environment,
             "env LD_PRELOAD=" WEFT_TEST_SHORTAGE_LIBRARY " " SHORTAGE_VARIABLE
             "=\"%lld %d %s %s/told\"",
             (long long)at, is_for_good, a->program, folder);
    snprintf(line, sizeof line, "%s" BIN "/%s %s", a->launcher ? a->launcher : "", a->program,
             a->arguments);
    return shell(environment, line);
}

static bool is_same_file(const char *a, const char *b)
{
    char line[LINE];
    snprintf(line, sizeof line, "cmp %s/%s %s/%s", folder, a, folder, b);
    return system(line) == 0;
}

/* Returns whether memory was refused. */
static bool try_one(const act *a, int64_t at, bool is_for_good, int *n_ended)
{
    char text[2400];
    CHECK_EQ_INT(shell("", a->before), 0);
    const int status = run(a, at, is_for_good);
    snprintf(text, sizeof text, "%s, call %lld%s, from %s %s %s %s %s %s: status %d: %s", a->name,
             (long long)at, is_for_good ? " and after" : "", told->where[0], told->where[1],
             told->where[2], told->where[3], told->where[4], told->where[5], status, said());
    const bool has_sentence = strstr(said(), "allocate") || strstr(said(), "memory");
    const bool has_struck = atomic_load(&told->has_struck);
    weft_test_check(status == 0 || (status == 1 && has_sentence && has_struck), __FILE__, __LINE__,
                    text);
    if (status == 0 && a->same)
        weft_test_check(is_same_file(a->same, a->like), __FILE__, __LINE__, text);
    const int after = shell("", a->after);
    if (after != 0) fprintf(stderr, "  %s\n  afterwards: %s\n", text, said());
    CHECK_EQ_INT(after, 0);
    *n_ended += status == 1;
    return has_struck;
}

static void check_act(const act *a)
{
    const int64_t most = is_all ? a->most_all : a->most;
    if (most == 0 || (a->launcher && !WEFT_TEST_MPIEXEC[0])) return;
    CHECK_EQ_INT(shell("", a->before), 0);
    CHECK_EQ_INT(run(a, 0, false), 0);
    const int64_t n = atomic_load(&told->seen);
    const int64_t stride = n <= most ? 1 : (n + most - 1) / most;
    int n_tried = 0, n_ended = 0;
    CHECK(n > 0);
    for (int64_t at = 1 + stride / 3, i = 0; at <= n; at += stride, i++)
        n_tried += try_one(a, at, i % 2 == 1, &n_ended);
    printf("    %s: %lld calls, %d refused, %d ended with the sentence and 1\n", a->name,
           (long long)n, n_tried, n_ended);
}

static bool begin(void)
{
    char path[128];
    snprintf(folder, sizeof folder, "%s/weft-memory-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL) return false;
    snprintf(path, sizeof path, "%s/told", folder);
    const int file = open(path, O_RDWR | O_CREAT, 0666);
    if (file < 0 || ftruncate(file, sizeof *told) != 0) return false;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return told != MAP_FAILED &&
           CHECK_EQ_INT(shell("",
                              "seq 1 900 >%1$s/text.txt && " TRAIN
                              "--steps 4 --run %1$s/half && cp -r %1$s/half %1$s/whole && " TRAIN
                              "--steps 6 --run %1$s/whole && " BIN
                              "/weft ckpt list %1$s/whole --json >%1$s/list && " BIN
                              "/weft ckpt export %1$s/whole %1$s/whole.safetensors"),
                        0);
}

static const char *only; /* one of the acts; NULL: all */

static void test_programs_end_with_the_sentence(void)
{
    if (!begin()) {
        fprintf(stderr, "%s\n", said());
        return;
    }
    for (int i = 0; i < N_ACTS; i++)
        if (only == NULL || strcmp(only, acts[i].name) == 0) check_act(&acts[i]);
    CHECK_EQ_INT(shell("", "rm -rf %1$s/*"), 0);
    rmdir(folder);
}

#ifdef WEFT_SANITIZE
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        is_all |= strcmp(argv[i], "--all") == 0;
        if (argv[i][0] != '-') only = argv[i];
    }
    if (is_sanitized)
        weft_test_skip("the library that refuses memory would stand before the sanitizer");
    else
        RUN(test_programs_end_with_the_sentence);
    return weft_test_report();
}
