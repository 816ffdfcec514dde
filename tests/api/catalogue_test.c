/* catalogue_test: every public function, called with every parameter wrong in every way, in children.
 *
 * The calls are written from the public headers (catalogue.py), so none can be forgotten; here are, for every type, the
 * wrong values and a good one. A call may refuse or go on; it may not end in a signal, loop, or make a sanitizer
 * speak. A status that is not WEFT_OK comes with one sentence; NULL where a pointer has to be is always refused. Values
 * that builders return are compiled and run, so that nothing is taken that breaks later.
 *
 *     test_api_catalogue [FUNCTION]     all, or only that function's calls, each told
 */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WEFT_NO_HERE /* the functions themselves, not the macros that record a place */
#include "weft.h"
#include "weft/arena.h"
#include "weft/extend/check.h"
#include "weft/extend/combine.h"
#include "weft/extend/element.h"
#include "weft/extend/engine.h"
#include "weft/extend/optimizer.h"
#include "weft/extend/plugin.h"
#include "weft/extend/size.h"
#include "weft/research/plan.h"
#include "weft/research/policy.h"
#include "weft/research/advise.h"
#include "weft/research/predict.h"
#include "weft/research/search.h"
#include "weft/research/trace.h"

#include "test.h"

/* Children end without giving back what the call left; a size nobody has is refused, not reported. */
WEFT_API const char *__asan_default_options(void); /* seen by the sanitizer's library */
const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1";
}

/* What good arguments are made of. */
typedef struct fixture {
    char folder[64], book[96], words[96], run[96], fresh_run[96], records[96], exported[96],
        saved[96], saved_to[96], ring[128];
    weft_error error;
    weft_world world;
    weft_mesh *mesh, *spare_mesh, *planned_mesh;
    weft_layout *layout, *spare_layout;
    weft_graph *graph, *spare_graph, *other_graph;
    weft_program *program, *spare_program, *planned_program;
    weft_dim row, column, fresh, two, both_dim, entry, query, memory, feature, both;
    weft_shape rows_only, turned, flat;
    weft_value x, w, gain, ids, flags, table, rows, queries, keys, loss, update, other, slot;
    weft_value one_loss[1], one_weight[1], taken[64];
    weft_values losses, weights;
    weft_comms *comms;
    weft_comm *comm;
    weft_convert_step step;
    weft_move_part part;
    weft_box whole[4]; /* of `turned`: all of it is rank 0's, on the planned mesh too */
    weft_move_boxes boxes;
    weft_move_memory moved;
    weft_move *move;
    weft_flight *flight, *started;
    weft_comm_exchange *exchange;
    weft_request request;
    weft_checkpoint_state state;
    weft_arena *arena;
    weft_dataset *dataset;
    weft_chain *chain;
    weft_checkpoints *checkpoints;
    weft_stored *stored;
    weft_postmortem *postmortem;
    weft_live *live;
    weft_machine_model *machine;
    weft_trace *trace;
    weft_trace_part trace_part;
    weft_site site;
    weft_update working;
    double numbers[24];
    /* room for whatever a call writes */
    _Alignas(64) char buffer[4096];
    weft_predicted_step predicted[128];
    weft_advice advice;
    weft_box_copy box; /* of nothing */
    void *made, *made_too;
    weft_saving saving;
    /* what came of the call */
    bool gave_status, gave_value;
    weft_status status;
    weft_value value;
} fixture;

typedef struct parameter {
    const char *name;
    int n_wrong;
    int must_refuse, is_buffer_size, is_format;
} parameter;
typedef struct entry {
    const char *name;
    void (*call)(fixture *f, int p, int v);
    int n_parameters;
    const parameter *parameters;
} entry;

/* p is the parameter that is wrong; past them all: every one is, in the first way. */
enum { EVERY_ONE = 1000 };
static bool is_wrong(int p, int i)
{
    return p == i || p == EVERY_ONE;
}

#include "catalogue_values.h"
#include "catalogue_tensors.h"
#include "catalogue_options.h"
#include "catalogue_results.h"
#include "catalogue_fixture.h"

/* ---- one call, in a child -------------------------------------------------------------------- */

enum { WELL = 0, NO_SENTENCE = 3, NOT_REFUSED = 4, SECONDS = 20, MOST_ATTEMPTS = 2000 };

static bool is_sentence(const weft_error *error)
{
    return error->message[0] != '\0' && strchr(error->message, '\n') == NULL;
}

/* Compile what a builder returned, and run it on what the fixture has. */
static void use_value(fixture *f)
{
    weft_error error = {0};
    weft_program *program = NULL;
    const weft_graph *graph = f->value.graph;
    if (graph == NULL) return;
    if (weft_compile(f->mesh, f->layout, (weft_values){&f->value, 1}, NULL, &program, &error) !=
        WEFT_OK) {
        if (!is_sentence(&error)) _exit(NO_SENTENCE);
        return;
    }
    int32_t ids[4] = {0, 1, 2, 3};
    (void)!weft_write(program, f->x, WEFT_F64, f->numbers, sizeof f->numbers, NULL);
    (void)!weft_write(program, f->rows, WEFT_F64, f->numbers, sizeof f->numbers, NULL);
    (void)!weft_write(program, f->ids, WEFT_I32, ids, sizeof ids, NULL);
    (void)!weft_run(program, &error);
    weft_program_destroy(&program);
}

static void call_and_judge(fixture *f, const entry *e, int p, int v, bool must_refuse,
                           bool has_error)
{
    e->call(f, p, v);
    if (f->gave_status && f->status != WEFT_OK && has_error && f->error.status != WEFT_OK &&
        !is_sentence(&f->error))
        _exit(NO_SENTENCE);
    if (f->gave_status && f->status == WEFT_OK && must_refuse) _exit(NOT_REFUSED);
    if (f->gave_status && f->status != WEFT_OK && has_error && f->error.status == WEFT_OK &&
        strstr(e->name, "destroy") == NULL && strcmp(e->name, "weft_fail") != 0)
        _exit(NO_SENTENCE);
    if (f->gave_value) use_value(f);
}

/* Parameter p is wrong in way v; p is -1: none is. */
typedef struct attempt {
    int p, v;
} attempt;

static const parameter *wrong_one(const entry *e, attempt a)
{
    return a.p == EVERY_ONE || a.p < 0 ? NULL : &e->parameters[a.p];
}

static void try_one(fixture *f, const entry *e, attempt a, bool says)
{
    const parameter *wrong = wrong_one(e, a);
    bool has_error = false;
    for (int i = 0; i < e->n_parameters; i++)
        has_error = has_error || (strcmp(e->parameters[i].name, "error") == 0 && !is_wrong(a.p, i));
    alarm(SECONDS);
    call_and_judge(f, e, a.p, a.v, wrong != NULL && a.v == 0 && wrong->must_refuse, has_error);
    if (says && f->error.status != WEFT_OK)
        fprintf(stderr, "%s, %s, way %d: %s\n", e->name, wrong ? wrong->name : "-", a.v,
                f->error.message);
}

static int *at; /* which attempt a child is at; its parent sees it */

/* A child's: builders are called one after the other, each with a graph of its own, and what is refused, which leaves nothing
 * behind. What other calls leave, the next would meet, so that is the next child's. */
static void try_some(const fixture *fresh, const entry *e, const attempt *attempts, int n,
                     bool says)
{
    static fixture f;
    f = *fresh;
    while (true) {
        try_one(&f, e, attempts[*at], says);
        const bool is_builder = f.gave_value, is_refused = f.gave_status && f.status != WEFT_OK;
        if (!(is_builder || is_refused) || *at + 1 == n) _exit(WELL);
        f = *fresh;
        if (is_builder) make_graph(&f);
        ++*at;
    }
}

static void report(const entry *e, attempt a, int status)
{
    const parameter *wrong = wrong_one(e, a);
    const char *what = WIFSIGNALED(status)                  ? strsignal(WTERMSIG(status))
                       : WEXITSTATUS(status) == NO_SENTENCE ? "refused without a sentence"
                       : WEXITSTATUS(status) == NOT_REFUSED ? "NULL was not refused"
                                                            : "a sanitizer's report";
    fprintf(stderr, "%s: parameter %s, wrong in way %d: %s\n", e->name,
            wrong != NULL      ? wrong->name
            : a.p == EVERY_ONE ? "all of them"
                               : "none",
            a.v, what);
}

/* A size of the caller's own buffer may be smaller than it is, not larger; nor may a
 * format say nothing, or ask for what is not there. */
static bool cannot_be_checked(const parameter *wrong, int v)
{
    if (wrong->is_format) {
        const char *text = wrongs_char_ptr[v];
        return text != NULL && (text[0] == '\0' || strchr(text, '%') != NULL);
    }
    if (!wrong->is_buffer_size) return false;
    const int n = wrong->n_wrong;
    if (n == n_wrong_int) return wrongs_int[v] > 2;
    if (n == n_wrong_int64_t) return wrongs_int64_t[v] > 16;
    return true;
}

static int n_tried, n_well;

/* All attempts, in as many children as it takes; one that does not end well is told in a line. */
static void try_all(const fixture *f, const entry *e, const attempt *attempts, int n, bool says)
{
    for (*at = 0; *at < n; ++*at) {
        const int first = *at;
        int status = 0;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            if (!says) (void)!freopen("/dev/null", "w", stdout);
            try_some(f, e, attempts, n, says);
        }
        if (!CHECK(child > 0 && waitpid(child, &status, 0) == child)) return;
        const bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == WELL;
        n_tried += *at - first + 1;
        n_well += *at - first + is_well;
        if (!is_well) report(e, attempts[*at], status);
    }
}

static void try_entry(const fixture *f, const entry *e, bool says)
{
    static attempt attempts[MOST_ATTEMPTS];
    int n = 0;
    attempts[n++] = (attempt){-1, 0};
    attempts[n++] = (attempt){EVERY_ONE, 0};
    for (int p = 0; p < e->n_parameters; p++)
        for (int v = 0; v < e->parameters[p].n_wrong && CHECK(n < MOST_ATTEMPTS); v++)
            if (!cannot_be_checked(&e->parameters[p], v)) attempts[n++] = (attempt){p, v};
    try_all(f, e, attempts, n, says);
}

int main(int argc, char **argv)
{
    const char *names[N(catalogue)];
    int n_entries = 0;
    at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 1;
    memset(long_text, 'n', sizeof long_text - 1);
    memset(filled[1], 0xff, sizeof filled[1]);
    memset(filled[2], 0x07, sizeof filled[2]);
    make_dims(&the);
    make_programs(&the);
    make_exchanges(&the);
    make_files(&the);
    for (int i = 0; i < N(catalogue); i++) {
        names[i] = catalogue[i].name;
        if (argc > 1 && strcmp(argv[1], names[i]) != 0) continue;
        try_entry(&the, &catalogue[i], argc > 1);
        n_entries++;
    }
    remove_files(&the);
    if (n_entries == 0) {
        const char *near = weft_nearest(argv[1], names, N(catalogue));
        fprintf(stderr, "there is no public function %s%s%s\n", argv[1],
                near != NULL ? "; did you mean " : "", near != NULL ? near : "");
        return 2;
    }
    printf("%d functions, %d calls: %d ended well\n", n_entries, n_tried, n_well);
    CHECK_EQ_INT(n_well, n_tried);
    return weft_test_report();
}
