/* frozen_test: a program that is saved frozen has what its outputs need and nothing else: no gradients, no updates, no inputs of theirs;
 * and does what it did. Programs drawn at random are saved frozen by some of their outputs.
 *
 *     frozen_test [SEED | --many N]
 */
#include "deed.h"
#include "drawn.h"
#include "seeds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/optim.h"
#include "weft/saved.h"
#include "weft/scan.h"

static weft_oracle oracle;
static seed_range seeds;
static char path[] = "/tmp/weft-frozen-XXXXXX";
static int n_saved, n_smaller;

/* ---- what is needed ------------------------------------------------------------------------------ */

/* Whether each node is an output, or the operand or the home of something. */
static bool has_no_idle_node(const weft_graph *graph, weft_values outputs)
{
    bool *used = calloc(graph->n_tensors + 1, sizeof *used);
    bool is_good = true;
    for (int i = 0; i < outputs.n_values; i++)
        used[outputs.values[i].id] = true;
    for (uint32_t s = 1; s < graph->n_scans; s++)
        used[graph->scans[s].trip] = true;
    for (uint32_t n = 1; n < graph->n_nodes; n++) {
        const weft_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_in; i++)
            used[node->in[i]] = true;
        if (node->op == &weft_op_scan_guard || node->op == &weft_op_scan_next)
            used[node->out] = true;
        if (node->op == &weft_op_variable)
            used[((const weft_variable_attributes *)node->attributes)->owner] = true;
    }
    for (uint32_t n = 1; n < graph->n_nodes && is_good; n++) {
        is_good = false;
        for (uint32_t i = 0; i < graph->nodes[n].n_out; i++)
            is_good = is_good || used[graph->nodes[n].out + i];
    }
    free(used);
    return is_good;
}

static bool has_fixed(const weft_graph *graph)
{
    for (uint32_t id = 1; id < graph->n_tensors; id++)
        if (graph->tensors[id].frozen != 0) return true;
    return false;
}

/* ---- drawn --------------------------------------------------------------------------------------- */

/* The inputs of the program that was built, in the one that was loaded, as far as they are there. */
static weft_oracle_build in_loaded(const weft_oracle_build *build, weft_graph *graph)
{
    weft_oracle_build loaded = *build;
    loaded.graph = graph;
    for (int k = 0; k < loaded.n_inputs; k++) {
        weft_error error = {0};
        loaded.inputs[k] = weft_graph_find(graph, weft_name_of(build->inputs[k]), &error);
    }
    return loaded;
}

static void check_seed(uint64_t seed, const weft_oracle_build *build, weft_mesh *mesh)
{
    char what[600];
    deed here, there = {0};
    weft_error error = {0};
    weft_graph *graph = NULL;
    const weft_saved *saved = NULL;
    const weft_values some = {build->outputs, (build->n_outputs + 1) / 2};
    if (do_it(build, some, mesh, "", &here, &error) != WEFT_OK) return; /* nothing to save */
    const weft_saving saving = {.outputs = some, .is_frozen = true};
    if (!CHECK_OK(weft_graph_save(build->graph, path, &saving, &error), error)) return;
    weft_status status = weft_graph_load(path, &graph, &saved, &error);
    if (CHECK_OK(status, error)) {
        const weft_oracle_build loaded = in_loaded(build, graph);
        status = do_it(&loaded, saved->outputs, mesh, "", &there, &error);
        const bool is_same = has_fixed(build->graph) || here.bits == there.bits;
        snprintf(what, sizeof what, "seed %llu: %u of %u nodes, bits %llx and %llx; %.300s",
                 (unsigned long long)seed, graph->n_nodes, build->graph->n_nodes, here.bits,
                 there.bits, error.message);
        weft_test_check(status == WEFT_OK && is_same && has_no_idle_node(graph, saved->outputs),
                        __FILE__, __LINE__, what);
        n_saved++;
        n_smaller += graph->n_nodes < build->graph->n_nodes;
    }
    weft_graph_destroy(&graph);
}

static void test_a_part_of_a_program_does_what_it_did(void)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        const drawn graph = drawn_of(seed, &oracle);
        const drawn_how how = {.graph = &graph};
        weft_oracle_build build = {.graph = weft_graph_create(77), .argument = &how};
        drawn_build(&build);
        if (weft_graph_error(build.graph)->status == WEFT_OK && build.n_outputs > 0)
            check_seed(seed, &build, seed % 2 == 0 ? oracle.alone : graph.mesh);
        weft_graph_destroy(&build.graph);
    }
    CHECK(n_saved > 0 && (n_smaller > 0 || seeds.first == seeds.last));
    printf("%d programs saved, %d of them with fewer nodes\n", n_saved, n_smaller);
}

/* ---- by hand ------------------------------------------------------------------------------------- */

/* A net that trains: a scan, of which gradients are taken, a part that is computed again, labels, an optimizer. */
static weft_value trained(weft_graph *graph)
{
    const weft_dim batch = {"batch", 8}, pixel = {"pixel", 4}, digit = {"digit", 3};
    const weft_dense_options last = {
        .name = "last", .in = WEFT_DIMS(pixel), .out = WEFT_DIMS(digit)};
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    const weft_value labels = weft_input(graph, "labels", WEFT_I32, WEFT_DIMS(batch));
    const weft_value w =
        weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(pixel), weft_normal(0.0, 0.1));
    const weft_value trip = weft_scan_begin(graph, 3), h = weft_scan_carry(x);
    weft_scan_next(h, weft_tanh(weft_mul(h, w)));
    weft_scan_end(trip);
    const weft_value logits = weft_name(weft_dense(weft_scan_last(h), &last), "logits");
    const weft_value loss = weft_mean(weft_cross_entropy(logits, labels, digit));
    weft_adam(loss, &(weft_optimizer_options){.rate = 0.01});
    return logits;
}

static void test_labels_gradients_and_slots_are_left_out(void)
{
    weft_graph *graph = weft_graph_create(1), *frozen = NULL;
    const weft_saved *saved = NULL;
    weft_error error = {0};
    const weft_value logits = trained(graph);
    const weft_saving what = {.outputs = {&logits, 1}, .is_frozen = true};
    CHECK_OK(weft_graph_save(graph, path, &what, &error), error);
    if (CHECK_OK(weft_graph_load(path, &frozen, &saved, &error), error)) {
        CHECK(saved->inputs.n_values == 1);
        CHECK(strcmp(weft_name_of(saved->inputs.values[0]), "x") == 0);
        CHECK(frozen->n_scans == 2 && graph->n_scans == 3);
        CHECK(has_no_idle_node(frozen, saved->outputs) &&
              !has_no_idle_node(graph, (weft_values){&logits, 1}));
        int n_variables = 0;
        for (uint32_t n = 1; n < frozen->n_nodes; n++)
            n_variables += frozen->nodes[n].op == &weft_op_variable;
        CHECK(n_variables == 3); /* w, last/weight, last/bias */
    }
    weft_graph_destroy(&frozen);
    weft_graph_destroy(&graph);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:2,model:2", "model:3,data:2"};
    weft_error error = {0};
    if (!seeds_of(argc, argv, (uint64_t)weft_test_cases(300), &seeds)) return 2;
    if (!CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) return 1;
    const int file = mkstemp(path);
    if (file < 0 || close(file) != 0) return 1;
    RUN(test_labels_gradients_and_slots_are_left_out);
    RUN(test_a_part_of_a_program_does_what_it_did);
    (void)unlink(path);
    weft_oracle_close(&oracle);
    return weft_test_report();
}
