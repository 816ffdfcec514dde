/* run_saved_test: `weft run`, as its user runs it. A saved training and a saved inference give the numbers of the library: on the mesh
 * that they were saved for, on others, on MPI. Files go in and out. Mistakes are one sentence.
 */
#include "command.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "weft/collectives.h"
#include "weft/data.h"
#include "weft/layers.h"
#include "weft/optim.h"
#include "weft/program.h"
#include "weft/saved.h"

enum { BATCH = 4, WIDE = 6, TEXT = 2048, STEPS = 3 };

static char folder[] = "/tmp/weft-run-saved-XXXXXX";
static const weft_world world = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
static weft_mesh *alone;
static float x[2 * BATCH * WIDE], y[2 * BATCH]; /* of two batches */

typedef struct net {
    weft_graph *graph;
    weft_value x, y, score, loss, update;
} net;

static net build(void)
{
    const weft_dim batch = {"batch", BATCH}, feature = {"feature", WIDE}, hidden = {"hidden", 8};
    net n = {.graph = weft_graph_create(7)};
    n.x = weft_input(n.graph, "x", WEFT_F32, WEFT_DIMS(batch, feature));
    n.y = weft_input(n.graph, "y", WEFT_F32, WEFT_DIMS(batch));
    const weft_value h = weft_relu(
        weft_dense(n.x, &(weft_dense_options){
                            .name = "first", .in = WEFT_DIMS(feature), .out = WEFT_DIMS(hidden)}));
    const weft_value w =
        weft_variable(n.graph, "last", WEFT_F32, WEFT_DIMS(hidden), weft_normal(0, 0.5));
    n.score = weft_name(weft_einsum(WEFT_DIMS(batch), h, w), "score");
    const weft_value off = weft_sub(n.score, n.y);
    n.loss = weft_name(weft_mean(weft_mul(off, off)), "loss");
    n.update = weft_sgd(n.loss, &(weft_optimizer_options){.rate = 0.05});
    return n;
}

/* The file, as the shell names it. */
static const char *in_folder(const char *name)
{
    static char path[2][TEXT];
    static int turn;
    turn = 1 - turn;
    snprintf(path[turn], TEXT, "%s/%s", folder, name);
    return path[turn];
}

static void write_npy(const char *name, const char *dtype, const char *shape, const void *data,
                      size_t bytes)
{
    char head[128];
    FILE *file = fopen(in_folder(name), "wb");
    if (!CHECK(file != NULL)) return;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0v\0", 10);
    const int n =
        snprintf(head + 10, sizeof head - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, shape);
    head[10 + n] = ' ', head[127] = '\n';
    fwrite(head, 1, sizeof head, file);
    fwrite(data, 1, bytes, file);
    fclose(file);
}

static void save(const net *n, const char *name, weft_values outputs, const weft_saving *how)
{
    weft_error error = {.rank = -1};
    weft_saving what = *how;
    what.outputs = outputs;
    CHECK_OK(weft_graph_save(n->graph, in_folder(name), &what, &error), error);
}

static const command_result *run_with(const char *launcher, const char *arguments)
{
    static command_result result;
    char line[3 * TEXT];
    snprintf(line, sizeof line, "cd %s && timeout -k 1 600 %s " WEFT_TEST_BIN "/weft run %s 2>&1",
             folder, launcher, arguments);
    result = command_run_all(line);
    return &result;
}

static const command_result *run(const char *arguments)
{
    return run_with("", arguments);
}

static json_t *run_json(const char *launcher, const char *arguments)
{
    char line[TEXT];
    snprintf(line, sizeof line, "%s --json", arguments);
    const command_result *r = run_with(launcher, line);
    json_t *all = r->status == 0
                      ? json_loads(strchr(r->text, '{') ? strchr(r->text, '{') : "", 0, NULL)
                      : NULL;
    if (!CHECK(all != NULL))
        printf("%s %s: status %d: %.600s\n", launcher, arguments, r->status, r->text);
    return all;
}

/* ---- the library's own numbers ---------------------------------------------------------------------- */

static double losses[2 * STEPS], scores[BATCH];

/* The same batch again and again. */
static void train_here(const net *n)
{
    weft_error error = {.rank = -1};
    weft_program *program = NULL;
    weft_layout *layout = NULL;
    CHECK_OK(weft_layout_create("", &layout, &error), error);
    CHECK_OK(weft_compile(alone, layout, WEFT_VALUES(n->loss, n->score, n->update), NULL, &program,
                          &error),
             error);
    CHECK_OK(weft_write(program, n->x, WEFT_F32, x, sizeof x / 2, &error), error);
    CHECK_OK(weft_write(program, n->y, WEFT_F32, y, sizeof y / 2, &error), error);
    for (int i = 0; i < 2 * STEPS; i++) {
        float score[BATCH];
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read_scalar(program, n->loss, &losses[i], &error), error);
        CHECK_OK(weft_read(program, n->score, WEFT_F32, score, sizeof score, &error), error);
        for (int k = 0; k < BATCH && i == 0; k++)
            scores[k] = (double)score[k];
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
}

static double loss_at(const json_t *all, size_t step)
{
    return json_number_value(
        json_object_get(json_array_get(json_object_get(all, "scalars"), step), "loss"));
}

static const json_t *output_called(const json_t *all, const char *name)
{
    size_t i;
    json_t *output;
    json_array_foreach(json_object_get(all, "outputs"), i,
                       output) if (strcmp(json_string_value(json_object_get(output, "name")),
                                          name) == 0) return output;
    return NULL;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 2e-6 * (1 + fabs(b));
}

/* ---- the tests ----------------------------------------------------------------------------------- */

static const char inputs[] = "--input x=x.npy y=y.npy";

static void check_losses(const char *launcher, const char *options, bool is_same)
{
    char line[TEXT], what[TEXT];
    snprintf(line, sizeof line, "train.weft %s --steps %d %s", inputs, STEPS, options);
    json_t *all = run_json(launcher, line);
    for (size_t i = 0; i < STEPS && all; i++) {
        snprintf(what, sizeof what, "%s %s: loss %.17g of step %zu, wanted %.17g", launcher, line,
                 loss_at(all, i), i + 1, losses[i]);
        weft_test_check(is_same ? loss_at(all, i) == losses[i]
                                : is_near(loss_at(all, i), losses[i]),
                        __FILE__, __LINE__, what);
    }
    json_decref(all);
}

static void test_a_training_has_the_losses_of_the_library_on_any_mesh(void)
{
    check_losses("", "--mesh data:1", true);
    check_losses("", "", false); /* on data:2, as it was saved */
    check_losses("", "--mesh model:2 --layout hidden:model", false);
    check_losses("", "--mesh data:2,model:2", false); /* by the file's rule of data */
    check_losses("", "--mesh data:2,model:2 --layout batch:data,hidden:model --zero 1", false);
    if (WEFT_TEST_MPIEXEC[0] != '\0')
        check_losses(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "", false);
}

static void test_the_files_rules_are_kept_on_another_mesh_by_the_axes_that_it_has(void)
{
    const command_result *r = run("train.weft --dry-run --mesh data:2,model:2");
    CHECK_EQ_INT(r->status, 0);
    CHECK(strstr(r->text, "computes everything") == NULL);
    r = run("train.weft --dry-run --mesh model:2");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text,
               "no rule of the file's layout (batch:data) has an axis of the mesh model:2: "
               "each of 2 ranks computes everything; give --layout");
    r = run("train.weft --dry-run --mesh model:2 --layout batch:data");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "mesh model:2 has no axis data");
}

static void test_outputs_go_into_files(void)
{
    weft_error error = {.rank = -1};
    weft_chain *chain = NULL;
    float rows[2 * BATCH];
    CHECK_EQ_INT(run("train.weft --input x=x.npy y=y.npy --output out --mesh data:1")->status, 0);
    if (!CHECK_OK(weft_chain_open(in_folder("out/score.npy"), NULL, &chain, &error), error)) return;
    CHECK_EQ_INT(weft_chain_records(chain), BATCH);
    CHECK_OK(weft_chain_read(chain, 0, BATCH, 0, rows, sizeof rows, &error), error);
    for (int i = 0; i < BATCH; i++)
        CHECK((double)rows[i] == scores[i]);
    weft_chain_close(&chain);
    CHECK(access(in_folder("out/loss.npy"), R_OK) == 0);
    /* of two batches of --data, all rows */
    CHECK_EQ_INT(run("infer.weft --data both.npz --output rows --mesh data:1")->status, 0);
    if (!CHECK_OK(weft_chain_open(in_folder("rows/score.npy"), NULL, &chain, &error), error))
        return;
    CHECK_EQ_INT(weft_chain_records(chain), 2 * BATCH);
    CHECK_OK(weft_chain_read(chain, 0, 2 * BATCH, 0, rows, sizeof rows, &error), error);
    for (int i = 0; i < BATCH; i++)
        CHECK((double)rows[i] == scores[i] && isfinite(rows[BATCH + i]));
    weft_chain_close(&chain);
}

static void test_it_goes_on_from_its_checkpoint(void)
{
    char line[TEXT];
    snprintf(line, sizeof line, "train.weft %s --mesh data:1 --steps %d --save kept", inputs,
             STEPS);
    CHECK_EQ_INT(run(line)->status, 0);
    snprintf(line, sizeof line, "train.weft %s --mesh data:1 --steps %d --checkpoint kept", inputs,
             STEPS);
    json_t *all = run_json("", line);
    for (size_t i = 0; i < STEPS && all; i++)
        CHECK(loss_at(all, i) == losses[STEPS + i]);
    json_decref(all);
    /* what is for inference takes of it what it has, on another mesh */
    all = run_json(
        "", "infer.weft --input x=x.npy --checkpoint kept --mesh model:2 --layout hidden:model");
    const json_t *score = output_called(all, "score");
    CHECK(score && json_array_size(json_object_get(score, "numbers")) == BATCH);
    json_decref(all);
}

static void test_numbers_fill_inputs_and_variables(void)
{
    json_t *all = run_json("", "infer.weft --input x=0 first/bias=1 last=0.25 --mesh data:1");
    const json_t *score = output_called(all, "score");
    for (size_t i = 0; i < BATCH && score; i++)
        CHECK(json_number_value(json_array_get(json_object_get(score, "numbers"), i)) == 2.0);
    json_decref(all);
    /* what a file has in f64 becomes the input's f32 */
    double wide[BATCH * WIDE];
    for (int i = 0; i < BATCH * WIDE; i++)
        wide[i] = (double)x[i];
    write_npy("wide.npy", "<f8", "4, 6", wide, sizeof wide);
    all = run_json("", "infer.weft --input x=wide.npy --mesh data:1");
    score = output_called(all, "score");
    for (size_t i = 0; i < BATCH && score; i++)
        CHECK(json_number_value(json_array_get(json_object_get(score, "numbers"), i)) == scores[i]);
    json_decref(all);
}

static void test_a_plan_is_printed_and_nothing_runs(void)
{
    const command_result *r = run("train.weft --dry-run --mesh data:8");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "data:8");
}

static void test_mistakes_are_one_sentence(void)
{
    static const struct {
        const char *arguments, *words;
    } mistakes[] = {
        {"", "none is named"},
        {"train.weft infer.weft", "several are named"},
        {"nowhere.weft", "nowhere.weft cannot be opened"},
        {"x.npy", "x.npy is no saved program"},
        {"infer.weft",
         "nothing fills the input x, f32[batch:4, feature:6]; give --input x=FILE.npy"},
        {"infer.weft --input x=nowhere.npy", "nowhere.npy"},
        {"infer.weft --input z=1", "--input z: this program keeps no value called z; it keeps x"},
        {"infer.weft --input x=", "nothing stands behind it"},
        {"infer.weft --input x=y.npy",
         "the file has 4 numbers, and the program wants [batch:4, feature:6]"},
        {"infer.weft --input x=infer.weft", "infer.weft"},
        {"infer.weft --data y.npy", "x"},
        {"infer.weft --data few.npy", "x"},
        {"infer.weft --input x=x.npy --checkpoint nowhere", "nowhere"},
        {"infer.weft --input x=x.npy --layout bach:data", "bach"},
        {"infer.weft --input x=x.npy --output /proc/nowhere", "/proc/nowhere"},
        {"cut.weft --input x=x.npy", "was changed or cut off"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const command_result *r = run(mistakes[i].arguments);
        char what[2 * TEXT];
        snprintf(what, sizeof what, "weft run %s: status %d: %.900s", mistakes[i].arguments,
                 r->status, r->text);
        weft_test_check((r->status == 2 || r->status == 74) && command_lines(r->text, "") == 1 &&
                            strstr(r->text, mistakes[i].words) != NULL,
                        __FILE__, __LINE__, what);
    }
}

/* ---- files ------------------------------------------------------------------------------------------ */

/* Two arrays in a zip without compression, as numpy.savez makes it, by Python's zipfile. */
static void write_both(void)
{
    char line[TEXT];
    write_npy("all_x.npy", "<f4", "8, 6", x, sizeof x);
    snprintf(line, sizeof line,
             "cd %s && python3 -c \"import zipfile; z = zipfile.ZipFile('both.npz', 'w'); "
             "z.write('all_x.npy', 'x.npy')\"",
             folder);
    CHECK_EQ_INT(system(line), 0);
}

static void write_files(void)
{
    char line[TEXT];
    net n = build();
    const weft_saving how = {.mesh = "data:2", .layout = "batch:data"};
    for (int i = 0; i < 2 * BATCH * WIDE; i++)
        x[i] = sinf((float)i * 0.7f);
    for (int i = 0; i < 2 * BATCH; i++)
        y[i] = cosf((float)i);
    write_npy("x.npy", "<f4", "4, 6", x, sizeof x / 2);
    write_npy("y.npy", "<f4", "4,", y, sizeof y / 2);
    write_npy("few.npy", "<f4", "1, 6", x, WIDE * sizeof *x);
    write_both();
    save(&n, "train.weft", WEFT_VALUES(n.loss, n.score, n.update), &how);
    save(&n, "infer.weft", WEFT_VALUES(n.score),
         &(weft_saving){.mesh = "data:2", .layout = "batch:data", .is_frozen = true});
    snprintf(line, sizeof line, "cd %s && head -c 400 infer.weft > cut.weft", folder);
    CHECK_EQ_INT(system(line), 0);
    train_here(&n);
    weft_graph_destroy(&n.graph);
}

int main(void)
{
    weft_error error = {.rank = -1};
    char line[TEXT];
    if (mkdtemp(folder) == NULL ||
        !CHECK_OK(weft_mesh_create(&world, "data:1", &alone, &error), error))
        return 1;
    write_files();
    RUN(test_a_training_has_the_losses_of_the_library_on_any_mesh);
    RUN(test_the_files_rules_are_kept_on_another_mesh_by_the_axes_that_it_has);
    RUN(test_outputs_go_into_files);
    RUN(test_it_goes_on_from_its_checkpoint);
    RUN(test_numbers_fill_inputs_and_variables);
    RUN(test_a_plan_is_printed_and_nothing_runs);
    RUN(test_mistakes_are_one_sentence);
    weft_mesh_destroy(&alone);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    if (system(line) != 0) return 1;
    return weft_test_report();
}
