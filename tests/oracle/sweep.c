/* sweep.c: the walk over meshes and placements that the oracle compares with one rank. */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* The options of every value of a case: inputs first, then outputs. options[v] points to counts[v]
 * texts. */
typedef struct sweep {
    weft_oracle *oracle;
    const weft_oracle_case *what;
    weft_mesh *mesh;
    int n_inputs, n_outputs;
    int counts[2 * WEFT_ORACLE_VALUES];
    char (*options[2 * WEFT_ORACLE_VALUES])[WEFT_ORACLE_TEXT];
    weft_oracle_result *references[1 << WEFT_ORACLE_SWEPT]; /* by which inputs are partial */
} sweep;

/* "a:data+model,b:seq" from state[axis] (a dim, n_dims for partial, -1 for replicated); reversed:
 * axes from last to first. */
static void print_placement(const weft_mesh *mesh, const weft_shape *shape, const int *state,
                            bool reversed, char *text)
{
    const int n_axes = weft_mesh_n_axes(mesh);
    size_t at = 0;
    text[0] = '\0';
    for (int d = 0; d <= shape->n_dims; d++) {
        bool first = true;
        for (int i = 0; i < n_axes; i++) {
            const int axis = reversed ? n_axes - 1 - i : i;
            if (state[axis] != d || at >= WEFT_ORACLE_TEXT) continue;
            const char *dim = d < shape->n_dims ? shape->dims[d].name : "part";
            if (first)
                at += (size_t)snprintf(text + at, WEFT_ORACLE_TEXT - at, "%s%s:", at > 0 ? "," : "",
                                       dim);
            at += (size_t)snprintf(text + at, WEFT_ORACLE_TEXT - at, "%s%s", first ? "" : "+",
                                   weft_mesh_axis_name(mesh, axis));
            first = false;
        }
    }
}

int weft_oracle_placements(const weft_mesh *mesh, const weft_shape *shape, bool part,
                           char (*texts)[WEFT_ORACLE_TEXT])
{
    const int n_axes = weft_mesh_n_axes(mesh), n_states = shape->n_dims + 1 + (part ? 1 : 0);
    int n_codes = 1, n = 0;
    for (int a = 0; a < n_axes; a++)
        n_codes *= n_states;
    for (int code = 0; code < n_codes; code++) {
        int state[WEFT_MAX_AXES];
        for (int a = 0, rest = code; a < n_axes; a++, rest /= n_states)
            state[a] = rest % n_states - 1;
        for (int reversed = 0; reversed < 2 && n < WEFT_ORACLE_PLACES; reversed++) {
            print_placement(mesh, shape, state, reversed != 0, texts[n]);
            if (reversed == 0 || strcmp(texts[n], texts[n - 1]) != 0) n++;
        }
    }
    return n;
}

/* Combination number `index` of the options, in mixed radix. Returns which inputs are partial, one
 * bit each. */
static unsigned choose(const sweep *s, int64_t index, weft_oracle_placing *placing)
{
    unsigned partial = 0;
    *placing = (weft_oracle_placing){0};
    for (int v = 0; v < s->n_inputs + s->n_outputs; v++) {
        const char *text = s->options[v][index % s->counts[v]];
        index /= s->counts[v];
        if (v >= s->n_inputs) {
            placing->outputs[v - s->n_inputs] = text;
            continue;
        }
        placing->inputs[v] = text;
        if (strstr(text, "part:") != NULL) partial |= 1u << v;
    }
    return partial;
}

/* One rank's result with the same inputs partial: there, a partial sum is simply a sum. */
static const weft_oracle_result *reference(sweep *s, unsigned partial, weft_error *error)
{
    if (s->references[partial] != NULL) return s->references[partial];
    weft_oracle_placing placing = {0};
    for (int k = 0; k < s->n_inputs; k++)
        if (partial >> k & 1u) placing.inputs[k] = "part:data";
    weft_oracle_result *result = calloc(1, sizeof *result);
    if (result == NULL) return NULL;
    const weft_oracle_case plain = {.name = s->what->name,
                                    .build = s->what->build,
                                    .argument = s->what->argument,
                                    .extremes = s->what->extremes};
    if (weft_oracle_run(s->oracle->alone, &plain, &placing, result, error) != WEFT_OK) {
        free(result);
        return NULL;
    }
    return s->references[partial] = result;
}

static void print_placing(const sweep *s, const weft_oracle_placing *placing, char *text,
                          size_t bytes)
{
    size_t at = 0;
    for (int k = 0; k < s->n_inputs && at < bytes; k++)
        at += (size_t)snprintf(text + at, bytes - at, "%s\"%s\"", k > 0 ? ", " : "in ",
                               placing->inputs[k]);
    for (int k = 0; k < s->n_outputs && at < bytes; k++)
        at += (size_t)snprintf(text + at, bytes - at, "%s\"%s\"", k > 0 ? ", " : " out ",
                               placing->outputs[k]);
}

/* True when the mesh agrees with one rank; else `text` says what was found. */
static bool compare(sweep *s, int64_t index, char *text, size_t bytes)
{
    weft_oracle_placing placing;
    weft_error error = {0};
    weft_oracle_result result = {0};
    char found[600], places[400];
    const unsigned partial = choose(s, index, &placing);
    const weft_oracle_result *expected = reference(s, partial, &error);
    bool same = false;
    print_placing(s, &placing, places, sizeof places);
    if (s->oracle->says)
        fprintf(stderr, "%s on %s, %s\n", s->what->name, weft_mesh_text(s->mesh), places);
    if (expected != NULL && weft_oracle_run(s->mesh, s->what, &placing, &result, &error) == WEFT_OK)
        same = weft_oracle_same(expected, &result, s->what->within, found, sizeof found);
    else
        snprintf(found, sizeof found, "%s", error.message);
    same = same || weft_oracle_refuses(&error);
    weft_oracle_free(&result);
    s->oracle->n_compared++;
    if (same) return true;
    snprintf(text, bytes, "%s on %s, layout \"%s\", %s: %s", s->what->name, weft_mesh_text(s->mesh),
             s->what->layout != NULL ? s->what->layout : "", places, found);
    return false;
}

/* The options of all values on this mesh; returns the number of combinations, 0 when the graph does
 * not build. */
static int64_t list_options(sweep *s)
{
    weft_oracle_build build = {.graph = weft_graph_create(77), .argument = s->what->argument};
    int64_t total = 1;
    s->what->build(&build);
    const weft_error *error = weft_graph_error(build.graph);
    if (!weft_test_check(error->status == WEFT_OK, __FILE__, __LINE__, error->message)) total = 0;
    s->n_inputs = build.n_inputs, s->n_outputs = build.n_outputs;
    if (!CHECK(s->n_inputs <= WEFT_ORACLE_SWEPT && s->n_outputs <= WEFT_ORACLE_SWEPT)) total = 0;
    for (int v = 0; v < s->n_inputs + s->n_outputs && total > 0; v++) {
        const bool is_input = v < s->n_inputs;
        const weft_value value = is_input ? build.operands[v] : build.outputs[v - s->n_inputs];
        const bool part =
            is_input && weft_dtype_is_float(weft_dtype_of(value)) && s->what->extremes == 0;
        s->options[v] = malloc(sizeof *s->options[v] * WEFT_ORACLE_PLACES);
        if (!CHECK(s->options[v] != NULL)) total = 0;
        if (total == 0) break;
        s->counts[v] = weft_oracle_placements(s->mesh, weft_shape_of(value), part, s->options[v]);
        total *= s->counts[v];
        if (total > (int64_t)1 << 40) total = (int64_t)1 << 40; /* drawn from, not walked */
    }
    weft_graph_destroy(&build.graph);
    return total;
}

static void sweep_mesh(sweep *s, int most)
{
    char text[1200] = "";
    const int64_t total = list_options(s);
    const bool whole = s->oracle->all || total <= most;
    const int64_t n = whole ? total : most;
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < n && n_wrong < 3; i++) {
        const double drawn = weft_oracle_unit(99, i) + weft_oracle_unit(98, i) / 1048576.0;
        const int64_t index = whole ? i : (int64_t)(drawn * (double)total) % total;
        if (!compare(s, index, text, sizeof text) && n_wrong++ < 3)
            fprintf(stderr, "  combination %lld: %s\n", (long long)index, text);
    }
    weft_test_check(n > 0 && n_wrong == 0, __FILE__, __LINE__,
                    text[0] != '\0' ? text : s->what->name);
    for (int v = 0; v < 2 * WEFT_ORACLE_VALUES; v++) {
        free(s->options[v]);
        s->options[v] = NULL;
    }
}

bool weft_oracle_takes(weft_oracle *oracle)
{
    const int n_processes = oracle->world.n_processes;
    const int64_t n = oracle->n_listed++;
    return n_processes == 1 || oracle->all || weft_test_share() >= 1 || (n + n_processes) % 3 == 0;
}

int weft_oracle_turn(const weft_oracle *oracle, double each, int mesh)
{
    const double least = 1.000001 / oracle->n_meshes, step = each > least ? each : least;
    const double first = oracle->n_sweeps * 0.6180339887;
    return (int)(floor(first + (mesh + 1) * step) - floor(first + mesh * step));
}

void weft_oracle_sweep(weft_oracle *oracle, const weft_oracle_case *what, int most)
{
    static sweep s; /* large; one sweep at a time */
    s = (sweep){.oracle = oracle, .what = what};
    int64_t n_seen = 0;
    for (int i = 0; i < oracle->n_meshes; i++) {
        s.mesh = oracle->meshes[i];
        const int n = weft_oracle_turn(oracle, most * weft_test_share(), i);
        if (n > 0 || oracle->all) sweep_mesh(&s, n);
        n_seen += n;
    }
    weft_test_check(n_seen > 0 || oracle->n_meshes == 0 || oracle->all, __FILE__, __LINE__,
                    what->name);
    oracle->n_sweeps++;
    for (int i = 0; i < 1 << WEFT_ORACLE_SWEPT; i++) {
        if (s.references[i] == NULL) continue;
        weft_oracle_free(s.references[i]);
        free(s.references[i]);
    }
}
