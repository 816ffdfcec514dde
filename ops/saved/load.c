/* load.c: a graph from a file. First its digest: a file that was changed or cut off goes no further. Then line by line, each kind
 * of line by a row of one table.
 */
#include "saved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

enum { MOST_BYTES = 1 << 30, DIGEST_LINE = 24 }; /* "digest 0123456789abcdef\n" */

/* ---- the file ---------------------------------------------------------------------------------- */

static weft_status read_all(FILE *file, const char *path, char **text, size_t *bytes,
                            weft_error *error)
{
    size_t room = 1 << 16;
    *bytes = 0;
    for (*text = NULL;; room *= 2) {
        char *grown = realloc(*text, room + 1);
        if (grown == NULL) return weft_fail_memory(error, room);
        *text = grown;
        *bytes += fread(*text + *bytes, 1, room - *bytes, file);
        if (ferror(file))
            return weft_fail(error, WEFT_IO, "graph_load: %.200s cannot be read: %s", path,
                             strerror(errno));
        if (*bytes < room) break;
        if (room >= MOST_BYTES)
            return weft_fail(error, WEFT_USAGE,
                             "graph_load: %.200s has more than a GiB; it is no "
                             "saved program",
                             path);
    }
    (*text)[*bytes] = 0;
    return WEFT_OK;
}

static weft_status check_digest(const char *path, char *text, size_t bytes, weft_error *error)
{
    char wanted[DIGEST_LINE + 1];
    if (strncmp(text, "weft program ", 13) != 0)
        return weft_fail(error, WEFT_USAGE,
                         "graph_load: %.200s is no saved program; weft_graph_save makes one", path);
    const size_t body = bytes < DIGEST_LINE ? 0 : bytes - DIGEST_LINE;
    snprintf(wanted, sizeof wanted, "digest %016llx\n",
             (unsigned long long)weft_digest(0, text, body));
    if (strlen(text) != bytes || strcmp(text + body, wanted) != 0)
        return weft_fail(
            error, WEFT_USAGE,
            "graph_load: %.200s was changed or cut off since it was saved: its last line "
            "is not the digest of the others; save the program again",
            path);
    text[body] = 0;
    return WEFT_OK;
}

/* ---- lines ------------------------------------------------------------------------------------- */

typedef struct loading {
    weft_saved_text text;
    weft_saved saved;
    int n_values, cap;
    weft_value *values; /* malloc-ed */
} loading;

static bool read_version(loading *l)
{
    int64_t version;
    if (!weft_saved_expect(&l->text, "program") ||
        !weft_saved_whole(&l->text, 1, INT32_MAX, &version))
        return false;
    l->saved.version = (int)version;
    if (version <= WEFT_SAVED_VERSION) return true;
    return weft_saved_fail(&l->text,
                           "the file is of form %lld, and this Weft reads forms up to %d; take a "
                           "newer Weft",
                           (long long)version, WEFT_SAVED_VERSION);
}

static bool read_seed(loading *l)
{
    char *end;
    l->text.at += strspn(l->text.at, " ");
    l->text.graph->seed = strtoull(l->text.at, &end, 10);
    if (end == l->text.at) return weft_saved_fail(&l->text, "the seed is no number");
    l->text.at = end;
    return true;
}

static bool read_random(loading *l)
{
    int64_t number;
    if (!weft_saved_whole(&l->text, 0, UINT32_MAX, &number)) return false;
    l->text.graph->n_random = (uint32_t)number;
    return true;
}

static bool read_mesh(loading *l)
{
    return weft_saved_word(&l->text, &l->saved.mesh);
}
static bool read_layout(loading *l)
{
    return weft_saved_word(&l->text, &l->saved.layout);
}
static bool read_checkpoint(loading *l)
{
    return weft_saved_word(&l->text, &l->saved.checkpoint);
}
static bool read_frozen(loading *l)
{
    l->saved.is_frozen = true;
    return true;
}
static bool read_scan(loading *l)
{
    return weft_saved_scan(&l->text);
}
static bool read_part(loading *l)
{
    return weft_saved_part(&l->text);
}

static bool read_loss_scale(loading *l)
{
    int64_t n[7];
    for (int i = 0; i < 7; i++)
        if (!weft_saved_whole(&l->text, 0, i == 4 ? INT64_MAX : UINT32_MAX, &n[i])) return false;
    l->text.graph->loss_scale = (weft_loss_scaling){.scale = (uint32_t)n[0],
                                                    .good = (uint32_t)n[1],
                                                    .updates = (uint32_t)n[2],
                                                    .step = (uint32_t)n[3],
                                                    .growth = n[4],
                                                    .is_used = n[5] != 0,
                                                    .is_finite = (uint32_t)n[6]};
    return true;
}

static bool read_output(loading *l)
{
    int64_t id;
    if (!weft_saved_expect(&l->text, "%") ||
        !weft_saved_whole(&l->text, 1, (int64_t)l->text.graph->n_tensors - 1, &id))
        return false;
    if (l->n_values == l->cap) {
        const int cap = 2 * l->cap + 16;
        weft_value *grown = realloc(l->values, (size_t)cap * sizeof *grown);
        if (grown == NULL) return weft_saved_fail(&l->text, "no memory for outputs");
        l->values = grown;
        l->cap = cap;
    }
    l->values[l->n_values++] = (weft_value){l->text.graph, (uint32_t)id};
    return true;
}

static const struct {
    const char *word;
    bool (*read)(loading *l);
} lines[] = {{"seed", read_seed},
             {"random", read_random},
             {"mesh", read_mesh},
             {"layout", read_layout},
             {"checkpoint", read_checkpoint},
             {"frozen", read_frozen},
             {"loss_scale", read_loss_scale},
             {"scan", read_scan},
             {"part", read_part},
             {"output", read_output}};
enum { N_LINES = sizeof lines / sizeof lines[0] };

static bool read_line(loading *l)
{
    if (*l->text.at == '%') return weft_saved_node(&l->text);
    if (l->text.line == 1) return weft_saved_expect(&l->text, "weft") && read_version(l);
    for (int i = 0; i < N_LINES; i++)
        if (weft_saved_has(&l->text, lines[i].word)) return lines[i].read(l);
    return weft_saved_fail(&l->text, "\"%.30s\" is no line of a saved program", l->text.at);
}

static bool read_lines(loading *l)
{
    for (l->text.line = 1; *l->text.at != 0; l->text.line++) {
        if (!read_line(l)) return false;
        if (!weft_saved_expect(&l->text, "\n")) return false;
    }
    return true;
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* What names values by number from before they are there. */
static bool check_ids(loading *l)
{
    const weft_graph *graph = l->text.graph;
    const weft_loss_scaling *s = &graph->loss_scale;
    const uint32_t n = graph->n_tensors;
    bool fits = s->scale < n && s->good < n && s->updates < n && s->step < n && s->is_finite < n;
    for (uint32_t id = 1; fits && id < n; id++)
        fits = graph->tensors[id].place_as < n;
    if (!fits) return weft_saved_fail(&l->text, "it names a value that it does not have");
    return l->n_values > 0 || weft_saved_fail(&l->text, "no output is named");
}

/* The graph's inputs, in its own memory; values NULL: there is none for them. */
static weft_values find_inputs(weft_graph *graph)
{
    weft_values inputs = {NULL, 0};
    weft_value *values = weft_arena_take(graph->arena, (size_t)graph->n_nodes * sizeof *values);
    for (uint32_t n = 1; values != NULL && n < graph->n_nodes; n++)
        if (graph->nodes[n].op == &weft_op_input)
            values[inputs.n_values++] = (weft_value){graph, graph->nodes[n].out};
    inputs.values = values;
    return inputs;
}

static bool finish(loading *l, const weft_saved **saved)
{
    weft_graph *graph = l->text.graph;
    if (!weft_saved_check_scans(&l->text) || !check_ids(l)) return false;
    weft_value *values =
        weft_arena_copy(graph->arena, l->values, (size_t)l->n_values * sizeof *values);
    l->saved.outputs = (weft_values){values, l->n_values};
    l->saved.inputs = find_inputs(graph);
    weft_saved *kept = weft_arena_copy(graph->arena, &l->saved, sizeof *kept);
    if (values == NULL || kept == NULL || kept->inputs.values == NULL)
        return weft_saved_fail(&l->text, "no memory for outputs");
    graph->phase = WEFT_FORWARD;
    graph->built = weft_graph_here(graph);
    *saved = kept;
    return true;
}

static weft_status load(const char *path, char *text, size_t bytes, weft_graph **graph,
                        const weft_saved **saved, weft_error *error)
{
    WEFT_TRY(check_digest(path, text, bytes, error));
    *graph = weft_graph_create(0);
    if (*graph == NULL) return weft_fail_memory(error, sizeof **graph);
    weft_error own = {WEFT_OK, -1, ""};
    loading l = {.text = {.at = text, .graph = *graph, .error = &own}};
    const bool is_loaded = read_lines(&l) && finish(&l, saved);
    free(l.values);
    if (is_loaded) return WEFT_OK;
    (void)!weft_graph_destroy(graph);
    return weft_fail(error, own.status, "graph_load: %.160s, %s", path, own.message);
}

weft_status weft_graph_load(const char *path, weft_graph **graph, const weft_saved **saved,
                            weft_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    WEFT_GIVEN(path, error);
    WEFT_GIVEN(graph, error);
    WEFT_GIVEN(saved, error);
    *graph = NULL;
    *saved = NULL;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return weft_fail(error, WEFT_IO, "graph_load: %.200s cannot be opened: %s", path,
                         strerror(errno));
    weft_status status = read_all(file, path, &text, &bytes, error);
    (void)fclose(file);
    if (status == WEFT_OK) status = load(path, text, bytes, graph, saved, error);
    free(text);
    return status;
}
