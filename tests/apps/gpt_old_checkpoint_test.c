/* gpt_old_checkpoint_test: gpt goes on from a checkpoint as its first versions wrote them: every tensor under the name and with the
 * dims that are written down here, a manifest that says neither program nor library, and no run.json beside it.
 *
 * The numbers are those of a run that is stopped half-way; its losses go on to the bit as those of the run that was not.
 */
#include "losses.h"
#include "text_folder.h"

#include <jansson.h>

#include "io/checkpoint/manifest.h"
#include "test.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"

enum { STEPS = 6, HALF = 3, PATH = 1024 };

#define SMALL                                                                                      \
    "--layers 1 --width 8 --heads 2 --batch 4 --seq 6 --dtype f64 --dropout 0.2 --quiet --steps "  \
    "6 "

typedef struct tensor {
    const char *name;
    weft_dim dims[3];
} tensor;

static const tensor old[] = {
    {"bytes", {{"vocab", 256}, {"embed", 8}}},
    {"places", {{"seq", 6}, {"embed", 8}}},
    {"block0.norm1.gain", {{"embed", 8}}},
    {"block0.norm1.bias", {{"embed", 8}}},
    {"block0.query", {{"embed", 8}, {"heads", 2}, {"kv", 4}}},
    {"block0.key", {{"embed", 8}, {"heads", 2}, {"kv", 4}}},
    {"block0.value", {{"embed", 8}, {"heads", 2}, {"kv", 4}}},
    {"block0.project", {{"heads", 2}, {"kv", 4}, {"embed", 8}}},
    {"block0.norm2.gain", {{"embed", 8}}},
    {"block0.norm2.bias", {{"embed", 8}}},
    {"block0.up", {{"embed", 8}, {"hidden", 32}}},
    {"block0.up.bias", {{"hidden", 32}}},
    {"block0.down", {{"hidden", 32}, {"embed", 8}}},
    {"block0.down.bias", {{"embed", 8}}},
    {"norm.gain", {{"embed", 8}}},
    {"norm.bias", {{"embed", 8}}},
    {"head", {{"embed", 8}, {"vocab", 256}}},
};
enum { N_OLD = sizeof old / sizeof *old };

static void train(const char *run, const char *more)
{
    char line[2 * PATH];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " SMALL "%s", folder, folder,
             run, more);
    const command_result r = command_run_all(line);
    if (!CHECK_EQ_INT(r.status, 0)) fputs(r.text, stderr);
}

/* ---- a checkpoint of old -------------------------------------------------------------------------- */

static weft_shape shape_of(const tensor *t)
{
    weft_shape shape = {0};
    while (shape.n_dims < 3 && t->dims[shape.n_dims].name != NULL)
        shape.dims[shape.n_dims] = t->dims[shape.n_dims], shape.n_dims++;
    return shape;
}

/* Weights, and AdamW's two slots of each, and nothing else that could be stored. */
static int make_variables(weft_graph *graph, weft_value values[3 * N_OLD])
{
    int n = 0;
    for (int i = 0; i < N_OLD; i++) {
        const weft_value w = values[n++] =
            weft_variable(graph, old[i].name, WEFT_F64, shape_of(&old[i]), weft_constant_of(0));
        values[n++] = weft_slot(w, "m", weft_constant_of(0));
        values[n++] = weft_slot(w, "v", weft_constant_of(0));
    }
    return n;
}

static const weft_stored_tensor *find(const weft_stored *stored, const char *name, int *index)
{
    for (*index = 0; *index < weft_stored_n_tensors(stored); ++*index)
        if (strcmp(weft_stored_tensor_at(stored, *index)->name, name) == 0)
            return weft_stored_tensor_at(stored, *index);
    return NULL;
}

static void copy_numbers(const weft_stored *stored, weft_program *program, const weft_value *values,
                         int n)
{
    static double buffer[256 * 32];
    weft_error error = {0};
    int index;
    CHECK_EQ_INT(weft_stored_n_tensors(stored), n);
    for (int i = 0; i < n; i++) {
        const weft_stored_tensor *t = find(stored, weft_name_of(values[i]), &index);
        if (!CHECK(t != NULL && t->bytes <= (int64_t)sizeof buffer)) continue;
        CHECK_OK(weft_stored_read(stored, index, buffer, &error), error);
        CHECK_OK(weft_write(program, values[i], WEFT_F64, buffer, t->bytes, &error), error);
    }
}

static void save(weft_program *program, const weft_checkpoint_state *state, const char *directory)
{
    weft_error error = {0};
    weft_checkpoints *checkpoints = NULL;
    const weft_checkpoint_options options = {.is_synchronous = true};
    weft_set_runs(program, state->step);
    if (CHECK_OK(weft_checkpoints_open(directory, &options, &checkpoints, &error), error))
        CHECK_OK(weft_checkpoints_save(checkpoints, program, state, &error), error);
    weft_checkpoints_close(&checkpoints);
}

/* As the first manifests were. */
static void forget_who_wrote_it(const char *directory)
{
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/step_%08d/manifest.json", directory, HALF);
    json_t *root = json_load_file(path, 0, NULL);
    if (!CHECK(root != NULL)) return;
    CHECK_EQ_INT(json_object_del(root, "program"), 0);
    CHECK_EQ_INT(json_object_del(root, "library"), 0);
    CHECK(weft_manifest_seal(root));
    CHECK_EQ_INT(json_dump_file(root, path, JSON_INDENT(1) | JSON_SORT_KEYS), 0);
    json_decref(root);
}

/* The numbers of the run `from`, as `to` would have had them of old. */
static void write_old(weft_mesh *mesh, const char *from, const char *to)
{
    char source[PATH], directory[PATH];
    weft_value values[3 * N_OLD];
    weft_error error = {0};
    weft_checkpoint_state state;
    weft_stored *stored = NULL;
    weft_program *program = NULL;
    weft_layout *layout = NULL;
    weft_graph *graph = weft_graph_create(1);
    const int n = make_variables(graph, values);
    snprintf(source, sizeof source, "%s/%s/ckpt", folder, from);
    snprintf(directory, sizeof directory, "%s/%s/ckpt", folder, to);
    if (CHECK_OK(weft_stored_open(source, &stored, &error), error) &&
        CHECK_OK(weft_layout_create("", &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, (weft_values){values, n}, NULL, &program, &error),
                 error)) {
        weft_stored_state(stored, &state);
        CHECK_EQ_INT(state.step, HALF);
        copy_numbers(stored, program, values, n);
        save(program, &state, directory);
        forget_who_wrote_it(directory);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_stored_close(&stored);
    weft_graph_destroy(&graph);
}

/* ---- going on ------------------------------------------------------------------------------------- */

static int losses_of(const char *run, double losses[STEPS + 1])
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, run);
    return losses_read(path, STEPS, losses);
}

static void check_goes_on(const char *run, const char *more, double relative)
{
    double whole[STEPS + 1] = {0}, continued[STEPS + 1] = {0};
    train(run, more);
    CHECK_EQ_INT(losses_of("whole", whole), STEPS);
    CHECK_EQ_INT(losses_of(run, continued), STEPS - HALF);
    for (int i = HALF + 1; i <= STEPS; i++)
        CHECK_CLOSE(continued[i], whole[i], relative);
}

static void test_an_old_checkpoint_goes_on(void)
{
    weft_error error = {0};
    weft_world world;
    weft_mesh *mesh = NULL;
    train("whole", "");
    train("half", "--until 3");
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return;
    if (CHECK_OK(weft_mesh_create(&world, "data:1", &mesh, &error), error)) {
        write_old(mesh, "half", "old");
        write_old(mesh, "half", "split");
    }
    weft_mesh_destroy(&mesh);
    weft_world_close();
    check_goes_on("old", "", 0);
    check_goes_on("split",
                  "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model",
                  1e-10);
}

/* A text is written by it too, though nothing says which model it is but the options. */
static void test_an_old_checkpoint_writes_text(void)
{
    char line[2 * PATH];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN
             "/gpt sample --run %s/old --resume 3 --layers 1 --width 8 --heads 2 --seq "
             "6 --dtype f64 --sample 20",
             folder);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK(strlen(r.text) >= 20);
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "old_checkpoint"))) {
        RUN(test_an_old_checkpoint_goes_on);
        RUN(test_an_old_checkpoint_writes_text);
        text_folder_close();
    }
    return weft_test_report();
}
