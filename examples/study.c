/* study: 50 layouts of a small GPT on 16 ranks, ranked by what they will cost. Nothing runs: the plan is read as data.
 *
 *     study [MESH]                     study data:4,model:4
 *
 * For each layout the program is compiled for a mesh that has no ranks (weft_mesh_plan), and asked for its cost and its
 * memory. Of the best, the largest exchanges are printed, and why each is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include <weft/research/plan.h>

enum { LAYOUTS = 50, LAYERS = 2, LARGEST = 6 };

typedef struct candidate {
    char layout[96];
    int zero; /* stage of storage sharding */
    weft_planned_cost cost;
    double megabytes; /* of rank 0, the fullest */
} candidate;

static const weft_dim batch = {"batch", 64}, seq = {"seq", 128}, embed = {"embed", 256},
                      heads = {"heads", 8}, key = {"key", 32}, hidden = {"hidden", 1024},
                      vocab = {"vocab", 8192};

/* ---- the model ------------------------------------------------------------------------------- */

static weft_value weight(weft_graph *g, const char *name, int layer, weft_shape shape)
{
    char text[32];
    snprintf(text, sizeof text, "%s%d", name, layer);
    return weft_variable(g, text, WEFT_F32, shape, weft_normal(0.0, 0.02));
}

static weft_value norm(weft_value x, const char *name, int layer)
{
    weft_value gain = weft_shift(weight(x.graph, name, layer, WEFT_DIMS(embed)), 1.0);
    return weft_layer_norm(x, gain, weft_constant(x.graph, WEFT_F32, WEFT_DIMS(embed), 0.0), embed);
}

static weft_value block(weft_value x, int layer)
{
    weft_graph *g = x.graph;
    weft_shape row = WEFT_DIMS(batch, seq, heads, key), project = WEFT_DIMS(embed, heads, key);
    weft_shape whole = WEFT_DIMS(batch, seq, embed);
    weft_value h = norm(x, "norm_a", layer);
    weft_value q = weft_einsum(row, h, weight(g, "q", layer, project));
    weft_value k = weft_einsum(row, h, weight(g, "k", layer, project));
    weft_value v = weft_einsum(row, h, weight(g, "v", layer, project));
    h = weft_attention(q, k, v, seq, seq, key, true);
    x = weft_add(x, weft_einsum(whole, h, weight(g, "out", layer, WEFT_DIMS(heads, key, embed))));
    h = weft_einsum(WEFT_DIMS(batch, seq, hidden), norm(x, "norm_b", layer),
                    weight(g, "up", layer, WEFT_DIMS(embed, hidden)));
    return weft_add(
        x, weft_einsum(whole, weft_gelu(h), weight(g, "down", layer, WEFT_DIMS(hidden, embed))));
}

static weft_value gpt(weft_graph *g)
{
    weft_value tokens = weft_input(g, "tokens", WEFT_I32, WEFT_DIMS(batch, seq));
    weft_value targets = weft_input(g, "targets", WEFT_I32, WEFT_DIMS(batch, seq));
    weft_value x = weft_gather(weight(g, "letters", 0, WEFT_DIMS(vocab, embed)), tokens, vocab);
    x = weft_add(x, weight(g, "places", 0, WEFT_DIMS(seq, embed)));
    for (int layer = 0; layer < LAYERS; layer++)
        x = block(x, layer);
    weft_value logits = weft_einsum(WEFT_DIMS(batch, seq, vocab), norm(x, "norm", LAYERS),
                                    weight(g, "spell", 0, WEFT_DIMS(embed, vocab)));
    return weft_mean(weft_cross_entropy(logits, targets, vocab));
}

/* ---- the candidates -------------------------------------------------------------------------- */

/* One entry of each column, in all 48 ways; the sequence alone; and nothing split at all. */
static void list(candidate *all)
{
    static const char *const rows[] = {"batch:data", "batch:data+model"};
    static const char *const blocks[] = {"", ",hidden:model,heads:model"};
    static const char *const words[] = {"", ",vocab:model"};
    static const char *const rest[] = {"", ",seq:model", ",embed:model"};
    memset(all, 0, LAYOUTS * sizeof *all);
    for (int i = 0; i < LAYOUTS - 2; i++) {
        snprintf(all[i].layout, sizeof all[i].layout, "%s%s%s%s", rows[i % 2], blocks[i / 2 % 2],
                 words[i / 4 % 2], rest[i / 8 % 3]);
        all[i].zero = i / 24 == 0 ? 0 : 3;
    }
    strcpy(all[LAYOUTS - 2].layout, "seq:data+model");
}

static weft_status plan(candidate *c, weft_mesh *mesh, weft_values values, weft_program **program,
                        weft_error *error)
{
    weft_layout *layout = NULL;
    weft_usage usage;
    weft_status status = weft_layout_create(c->layout, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, c->zero, "batch", error);
    if (status == WEFT_OK) status = weft_compile(mesh, layout, values, NULL, program, error);
    weft_layout_destroy(&layout);
    WEFT_TRY(status);
    WEFT_TRY(weft_plan_cost(*program, 0, NULL, &c->cost, error));
    WEFT_TRY(weft_plan_usage(*program, 0, &usage, error));
    c->megabytes = (double)usage.total_bytes * 1e-6;
    return WEFT_OK;
}

static int by_cost(const void *a, const void *b)
{
    const double x = ((const candidate *)a)->cost.total, y = ((const candidate *)b)->cost.total;
    return x < y ? -1 : x > y;
}

/* ---- what the best one exchanges, and why ---------------------------------------------------- */

static weft_status explain(const weft_program *program, weft_error *error)
{
    weft_planned_step largest[LARGEST + 1];
    int n = 0;
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        WEFT_TRY(weft_plan_step_at(program, s, 0, &step, error));
        if (step.kind != WEFT_STEP_CONVERT || step.wire_bytes == 0) continue;
        int at = n < LARGEST ? n++ : LARGEST;
        for (; at > 0 && largest[at - 1].wire_bytes < step.wire_bytes; at--)
            largest[at] = largest[at - 1];
        largest[at] = step;
    }
    for (int i = 0; i < n; i++)
        printf("%8.2f MB  %s:%d  %-14s  %s\n", (double)largest[i].wire_bytes * 1e-6,
               largest[i].file, largest[i].line, weft_convert_name(largest[i].collective),
               largest[i].reason);
    return WEFT_OK;
}

static weft_status study(const char *text, weft_mesh **mesh, weft_graph **graph, weft_error *error)
{
    static candidate all[LAYOUTS];
    weft_program *program = NULL;
    WEFT_TRY(weft_mesh_plan(text, mesh, error));
    *graph = weft_graph_create(1);
    weft_value loss = gpt(*graph), update = weft_adam(loss, NULL);
    list(all);
    for (int i = 0; i < LAYOUTS; i++) {
        weft_status status = plan(&all[i], *mesh, WEFT_VALUES(loss, update), &program, error);
        (void)weft_program_destroy(&program);
        WEFT_TRY(status);
    }
    qsort(all, LAYOUTS, sizeof *all, by_cost);
    printf("rank  cost, MB  exchange      work  memory, MB  layout\n");
    for (int i = 0; i < LAYOUTS; i++) {
        const candidate *c = &all[i];
        printf("%4d  %8.2f  %8.2f  %8.2f  %10.1f  %s%s\n", i + 1, c->cost.total * 1e-6,
               c->cost.exchange * 1e-6, c->cost.work * 1e-6, c->megabytes,
               *c->layout ? c->layout : "(nothing)", c->zero ? " zero 3" : "");
    }
    printf("\nthe largest exchanges of the best:\n");
    weft_status status = plan(&all[0], *mesh, WEFT_VALUES(loss, update), &program, error);
    if (status == WEFT_OK) status = explain(program, error);
    (void)weft_program_destroy(&program);
    return status;
}

int main(int n, char **arguments)
{
    weft_mesh *mesh = NULL;
    weft_graph *graph = NULL;
    weft_error error = WEFT_NO_ERROR;
    if (study(n > 1 ? arguments[1] : "data:4,model:4", &mesh, &graph, &error) != WEFT_OK)
        fprintf(stderr, "study: %s\n", error.message);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    return error.status == WEFT_OK ? 0 : 2;
}
