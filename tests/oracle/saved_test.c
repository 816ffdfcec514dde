/* saved_test: programs drawn at random, of all ops and compositions, with gradients, scans and parts, are saved, loaded in another
 * process and compiled and run there: the same digests, the same bits. On another mesh they do what the graph that was built does. Files
 * that were changed are refused by a sentence.
 *
 *     saved_test [SEED]    only the program of that seed
 *     saved_test --many N  the seeds 1 to N, and four changed files of each
 */
#include "deed.h"
#include "drawn.h"
#include "seeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/saved.h"
#include "weft/scan.h"

static weft_oracle oracle;
static seed_range seeds;
static const char *self;
static char folder[] = "/tmp/weft-saved-XXXXXX";
static int n_saved, n_elsewhere, n_refused, n_changed, n_loaded;

static const char *path_of(uint64_t seed, const char *end)
{
    static char path[2][200];
    static int turn;
    turn = 1 - turn;
    snprintf(path[turn], sizeof path[turn], "%s/%llu%s", folder, (unsigned long long)seed, end);
    return path[turn];
}

/* ---- in another process -------------------------------------------------------------------------- */

/* What the parent's inputs were, without the code that made them. */
static bool write_inputs(const weft_oracle_build *build, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    for (int k = 0; k < build->n_inputs; k++)
        fprintf(file, "%u %a %a\n", build->inputs[k].id, build->low[k], build->high[k]);
    return fclose(file) == 0;
}

static bool read_inputs(weft_oracle_build *build, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    unsigned id;
    double low, high;
    while (fscanf(file, "%u %la %la", &id, &low, &high) == 3) {
        build->inputs[build->n_inputs] = (weft_value){build->graph, id};
        build->low[build->n_inputs] = low;
        build->high[build->n_inputs++] = high;
    }
    return fclose(file) == 0;
}

static weft_mesh *mesh_called(const char *text)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        if (strcmp(weft_mesh_text(oracle.meshes[m]), text) == 0) return oracle.meshes[m];
    return oracle.alone;
}

/* saved_test --load PROGRAM INPUTS RESULT */
static int load(char **argv)
{
    const weft_saved *saved = NULL;
    weft_error error = {0};
    deed done = {0};
    weft_oracle_build build = {0};
    weft_status status = weft_graph_load(argv[2], &build.graph, &saved, &error);
    if (status == WEFT_OK && read_inputs(&build, argv[3]))
        status =
            do_it(&build, saved->outputs, mesh_called(saved->mesh), saved->layout, &done, &error);
    FILE *file = fopen(argv[4], "w");
    if (file == NULL) return 1;
    fprintf(file, "%llx %llx\n%s\n", done.plan, done.bits, error.message);
    fclose(file);
    weft_graph_destroy(&build.graph);
    return status == WEFT_OK ? 0 : 1;
}

static bool is_done_elsewhere(uint64_t seed, deed *done, char *sentence, size_t bytes)
{
    char result[200], inputs[200];
    snprintf(result, sizeof result, "%s", path_of(seed, ".result"));
    snprintf(inputs, sizeof inputs, "%s", path_of(seed, ".inputs"));
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exec " WEFT_TEST_EMULATOR " \"$0\" \"$@\"", self, "--load",
              path_of(seed, ".weft"), inputs, result, (char *)NULL);
        _exit(127);
    }
    int how = 0;
    if (child < 0 || waitpid(child, &how, 0) != child) return false;
    FILE *file = fopen(result, "r");
    if (file == NULL) return false;
    const bool is_read = fscanf(file, "%llx %llx\n", &done->plan, &done->bits) == 2;
    if (fgets(sentence, (int)bytes, file) == NULL) sentence[0] = 0;
    fclose(file);
    return is_read && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* ---- changed files ------------------------------------------------------------------------------- */

static char *text_of(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "r");
    char *text = file == NULL ? NULL : malloc(1 << 22);
    *bytes = text == NULL ? 0 : fread(text, 1, (1 << 22) - 1, file);
    if (file != NULL) fclose(file);
    return text;
}

static void change(char *text, size_t *bytes, drawn_dice *dice)
{
    static const char letters[] = "0123456789%[]{}(),:=\"\\ -ax\n~";
    const size_t at = (size_t)drawn_roll(dice, (int)*bytes);
    const int which = drawn_roll(dice, 3);
    if (which == 0) text[at] = letters[drawn_roll(dice, (int)sizeof letters - 1)];
    if (which == 1) memmove(text + at, text + at + 1, *bytes-- - at - 1);
    if (which == 2) {
        memmove(text + at + 1, text + at, (*bytes)++ - at);
        text[at] = letters[drawn_roll(dice, (int)sizeof letters - 1)];
    }
}

/* Whether a program that was changed and is one still is compiled, or refused by a sentence. */
static void check_compiles(weft_values outputs, const char *what)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    CHECK_OK(weft_layout_create("", &layout, &error), error);
    const weft_status status = weft_compile(oracle.alone, layout, outputs, NULL, &program, &error);
    weft_test_check(status == WEFT_OK || error.message[0] != 0, __FILE__, __LINE__, what);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
}

/* Whether a changed file is refused by a sentence; with a digest made anew it may be a program too. */
static void check_changed(uint64_t seed, int which)
{
    size_t bytes;
    char what[700];
    char *text = text_of(path_of(seed, ".weft"), &bytes);
    drawn_dice dice = drawn_dice_of(seed, 100 + (uint64_t)which);
    const bool is_sealed = which % 2 == 1;
    if (text == NULL || bytes < 24) {
        free(text);
        CHECK(false);
        return;
    }
    char *old = malloc(bytes);
    memcpy(old, text, bytes);
    const size_t n_old = bytes;
    if (is_sealed) bytes -= 24;
    change(text, &bytes, &dice);
    FILE *file = fopen(path_of(seed, ".changed"), "w");
    CHECK(file != NULL && fwrite(text, 1, bytes, file) == bytes);
    if (is_sealed)
        fprintf(file, "digest %016llx\n", (unsigned long long)weft_digest(0, text, bytes));
    fclose(file);
    const bool differs = is_sealed || bytes != n_old || memcmp(old, text, bytes) != 0;
    weft_graph *graph = NULL;
    const weft_saved *saved = NULL;
    weft_error error = {0};
    const weft_status status = weft_graph_load(path_of(seed, ".changed"), &graph, &saved, &error);
    snprintf(what, sizeof what, "seed %llu, change %d: status %d, \"%s\"", (unsigned long long)seed,
             which, (int)status, error.message);
    const bool is_good = status == WEFT_OK ? (is_sealed || !differs) && graph != NULL
                                           : error.message[0] != 0 && graph == NULL;
    weft_test_check(is_good, __FILE__, __LINE__, what);
    if (status == WEFT_OK) check_compiles(saved->outputs, what);
    n_changed++;
    n_loaded += status == WEFT_OK;
    weft_graph_destroy(&graph);
    free(old);
    free(text);
}

/* ---- a seed -------------------------------------------------------------------------------------- */

/* What was built, and what the file has, on a mesh and layout that it does not name. */
static void check_on_another_mesh(uint64_t seed, const drawn *graph, const weft_oracle_build *build)
{
    char rules[200] = "", what[900];
    deed here, there = {0};
    weft_error error = {0}, loads = {0};
    const weft_saved *saved = NULL;
    weft_oracle_build loaded = *build;
    weft_mesh *mesh = seed % 2 == 0 ? graph->mesh : oracle.alone;
    if (seed % 2 == 0) drawn_layout(graph, rules, sizeof rules);
    const weft_values outputs = {build->outputs, build->n_outputs};
    const weft_status wanted = do_it(build, outputs, mesh, rules, &here, &error);
    weft_status status = weft_graph_load(path_of(seed, ".weft"), &loaded.graph, &saved, &loads);
    for (int k = 0; k < loaded.n_inputs; k++)
        loaded.inputs[k].graph = loaded.graph;
    if (status == WEFT_OK) status = do_it(&loaded, saved->outputs, mesh, rules, &there, &loads);
    snprintf(
        what, sizeof what,
        "seed %llu, other mesh: status %d and %d, plan %llx and %llx, bits %llx and %llx; %.300s",
        (unsigned long long)seed, (int)wanted, (int)status, here.plan, there.plan, here.bits,
        there.bits, loads.message);
    weft_test_check(status == wanted && here.plan == there.plan && here.bits == there.bits,
                    __FILE__, __LINE__, what);
    n_elsewhere += status == WEFT_OK;
    weft_graph_destroy(&loaded.graph);
}

static void check_program(uint64_t seed, const drawn *graph, const weft_oracle_build *build)
{
    char sentence[600] = "", what[800];
    deed here, there = {0};
    weft_error error = {0};
    char rules[200] = "";
    weft_mesh *mesh = seed % 2 == 0 ? oracle.alone : graph->mesh;
    if (seed % 2 == 1) drawn_layout(graph, rules, sizeof rules);
    const weft_saving saving = {.outputs = {build->outputs, build->n_outputs},
                                .mesh = weft_mesh_text(mesh),
                                .layout = rules};
    weft_status status = do_it(build, saving.outputs, mesh, rules, &here, &error);
    if (status != WEFT_OK && rules[0] != 0) { /* a dim that the graph has not */
        rules[0] = 0;
        error = (weft_error){0};
        status = do_it(build, saving.outputs, mesh, rules, &here, &error);
    }
    if (status != WEFT_OK) {
        n_refused++; /* there is nothing to save */
        return;
    }
    if (!CHECK_OK(weft_graph_save(build->graph, path_of(seed, ".weft"), &saving, &error), error))
        return;
    n_saved++;
    const bool is_done = write_inputs(build, path_of(seed, ".inputs")) &&
                         is_done_elsewhere(seed, &there, sentence, sizeof sentence);
    snprintf(what, sizeof what, "seed %llu: plan %llx and %llx, bits %llx and %llx; %s",
             (unsigned long long)seed, here.plan, there.plan, here.bits, there.bits, sentence);
    weft_test_check(is_done && here.plan == there.plan && here.bits == there.bits, __FILE__,
                    __LINE__, what);
    check_on_another_mesh(seed, graph, build);
    for (int i = 0; i < 4; i++)
        check_changed(seed, i);
}

static void remove_files(uint64_t seed)
{
    static const char *const ends[] = {".weft", ".inputs", ".result", ".changed"};
    for (int i = 0; i < 4; i++)
        (void)unlink(path_of(seed, ends[i]));
}

static void test_programs_are_the_same_in_another_process(void)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        const drawn graph = drawn_of(seed, &oracle);
        const drawn_how how = {.graph = &graph};
        weft_oracle_build build = {.graph = weft_graph_create(77), .argument = &how};
        drawn_build(&build);
        if (weft_graph_error(build.graph)->status == WEFT_OK)
            check_program(seed, &graph, &build);
        else
            n_refused++;
        weft_graph_destroy(&build.graph);
        remove_files(seed);
    }
    CHECK(n_saved > 0 && n_elsewhere > 0);
    printf("%d programs saved, %d of them run on another mesh, %d refused before that; %d changed "
           "files, of which %d are programs\n",
           n_saved, n_elsewhere, n_refused, n_changed, n_loaded);
}

/* ---- by hand ------------------------------------------------------------------------------------- */

static void half_slope(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)argument, (void)x, (void)y;
    dx[0] = weft_scale(dy, 0.5);
}

static void test_a_gradient_rule_is_let_go_once_it_was_taken(void)
{
    weft_graph *graph = weft_graph_create(1), *loaded = NULL;
    const weft_saved *saved = NULL;
    const weft_dim a = {"a", 4};
    weft_error error = {0};
    const weft_value x = weft_variable(graph, "x", WEFT_F64, WEFT_DIMS(a), weft_constant_of(1.0));
    const weft_value y = weft_custom_gradient(WEFT_VALUES(x), weft_tanh(x), half_slope, NULL);
    const weft_value loss = weft_sum(WEFT_SCALAR, y);
    weft_saving what = {.outputs = {&loss, 1}};
    CHECK(weft_graph_save(graph, path_of(0, ".weft"), &what, &error) == WEFT_USAGE);
    CHECK(strstr(error.message, "no gradient has been taken") != NULL);
    what.is_frozen = true;
    error = (weft_error){0};
    CHECK_OK(weft_graph_save(graph, path_of(0, ".weft"), &what, &error), error);
    weft_value dx;
    weft_gradients(loss, (weft_values){&x, 1}, &dx, 0);
    const weft_value both[] = {loss, dx};
    what = (weft_saving){.outputs = {both, 2}, .layout = "a:data", .checkpoint = "runs/a b"};
    CHECK_OK(weft_graph_save(graph, path_of(0, ".weft"), &what, &error), error);
    if (CHECK_OK(weft_graph_load(path_of(0, ".weft"), &loaded, &saved, &error), error)) {
        CHECK(saved->outputs.n_values == 2 && saved->mesh == NULL);
        CHECK(strcmp(saved->layout, "a:data") == 0 && strcmp(saved->checkpoint, "runs/a b") == 0);
    }
    weft_graph_destroy(&loaded);
    weft_graph_destroy(&graph);
    remove_files(0);
}

/* What of a net is in training: a dropout, and a norm by what the batch has. */
static weft_value net(weft_graph *graph, bool is_training)
{
    const weft_dim batch = {"batch", 8}, channel = {"channel", 3};
    const weft_batch_norm_options options = {
        .name = "norm", .channel = channel, .is_fixed = !is_training};
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, channel));
    weft_value update;
    x = weft_batch_norm(x, &options, &update);
    return is_training ? weft_dropout(x, 0.5) : x;
}

static deed deed_of(weft_graph *graph, weft_value y)
{
    deed done;
    weft_error error = {0};
    const weft_oracle_build build = {.graph = graph,
                                     .n_inputs = 1,
                                     .inputs = {weft_graph_find(graph, "x", &error)},
                                     .low = {-1.0},
                                     .high = {3.0}};
    CHECK_OK(do_it(&build, (weft_values){&y, 1}, oracle.alone, "", &done, &error), error);
    return done;
}

static void test_frozen_is_without_dropout_and_by_averages(void)
{
    weft_graph *trained = weft_graph_create(1), *plain = weft_graph_create(1), *frozen = NULL;
    const weft_saved *saved = NULL;
    weft_error error = {0};
    const weft_value y = net(trained, true), fixed = net(plain, false);
    const weft_saving what = {.outputs = {&y, 1}, .is_frozen = true};
    CHECK_OK(weft_graph_save(trained, path_of(0, ".weft"), &what, &error), error);
    if (CHECK_OK(weft_graph_load(path_of(0, ".weft"), &frozen, &saved, &error), error)) {
        CHECK(saved->is_frozen);
        const deed is = deed_of(frozen, saved->outputs.values[0]);
        CHECK(is.bits == deed_of(plain, fixed).bits);
        CHECK(is.bits != deed_of(trained, y).bits);
    }
    weft_graph_destroy(&frozen);
    weft_graph_destroy(&plain);
    weft_graph_destroy(&trained);
    remove_files(0);
}

/* One of each version of the file's form: it is read for ever. */
static void test_files_of_every_version_are_read(void)
{
    weft_graph *graph = NULL;
    const weft_saved *saved = NULL;
    weft_error error = {0};
    if (CHECK_OK(weft_graph_load(WEFT_TEST_DATA "/oracle/saved_1.weft", &graph, &saved, &error),
                 error)) {
        CHECK(saved->version == 1 && strcmp(saved->mesh, "data:2") == 0);
        CHECK(deed_of(graph, saved->outputs.values[0]).bits != 0);
    }
    weft_graph_destroy(&graph);
}

/* saved_test --keep FILE: such a file of today's version. */
static int keep(const char *path)
{
    weft_graph *graph = weft_graph_create(5);
    weft_error error = {0};
    const weft_dim channel = {"channel", 3};
    const weft_value y = net(graph, true);
    const weft_value w =
        weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(channel), weft_normal(0.0, 0.1));
    const weft_value trip = weft_scan_begin(graph, 3), h = weft_scan_carry(y);
    weft_scan_next(h, weft_tanh(weft_mul(h, w)));
    weft_scan_end(trip);
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_scan_last(h));
    weft_value dw;
    weft_gradients(loss, (weft_values){&w, 1}, &dw, 0);
    const weft_value outputs[] = {weft_name(loss, "loss"),
                                  weft_assign(w, weft_sub(w, weft_scale(dw, 0.1)))};
    const weft_saving what = {.outputs = {outputs, 2}, .mesh = "data:2", .layout = "batch:data"};
    if (weft_graph_save(graph, path, &what, &error) == WEFT_OK) return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:2,model:2", "model:3,data:2"};
    weft_error error = {0};
    self = argv[0];
    if (argc == 3 && strcmp(argv[1], "--keep") == 0) return keep(argv[2]);
    if (!CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) return 1;
    if (argc == 5 && strcmp(argv[1], "--load") == 0) return load(argv);
    if (!seeds_of(argc, argv, (uint64_t)weft_test_cases(300), &seeds)) return 2;
    if (mkdtemp(folder) == NULL) return 1;
    RUN(test_a_gradient_rule_is_let_go_once_it_was_taken);
    RUN(test_frozen_is_without_dropout_and_by_averages);
    RUN(test_files_of_every_version_are_read);
    RUN(test_programs_are_the_same_in_another_process);
    rmdir(folder);
    weft_oracle_close(&oracle);
    return weft_test_report();
}
