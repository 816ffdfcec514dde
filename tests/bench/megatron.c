/* megatron: the step of Megatron's model of 22 billion weights, predicted from the nominal machine a100x8, beside what was published:
 *
 *     megatron [MACHINE]
 *
 * Its attention of 2022 kept scores in memory: a product, softmax with its mask, dropout, a product. Weft's own attention does not. So
 * the model is planned with both. On 8 A100: tensor parallelism 8, a batch of 4 windows of 2,048 tokens.
 * source  Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models": 1.42 s with all blocks
 *         recomputed; 1.10 s with sequence parallelism, and attention alone recomputed
 */
#include <math.h>

#include "bench.h"
#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/research/predict.h"

enum { BATCH = 4, SEQ = 2048, LAYERS = 48, WIDTH = 6144, HEADS = 64, VOCAB = 51200 };
static const double DROPOUT = 0.1;

typedef enum again { NOTHING, ATTENTION, BLOCKS } again;

typedef struct row {
    const char *what;
    bool has_scores, splits_rows;
    again again;
    double published; /* s; 0: not */
} row;

static const row rows[] = {
    {"blocks recomputed", false, false, BLOCKS, 0},
    {"the same, scores in memory", true, false, BLOCKS, 1.42},
    {"rows split, attention recomputed", false, true, ATTENTION, 0},
    {"the same, scores in memory", true, true, ATTENTION, 1.10},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const weft_dim batch = {"batch", BATCH}, seq = {"seq", SEQ}, key = {"key", SEQ},
                      embed = {"embed", WIDTH}, heads = {"heads", HEADS},
                      kv = {"kv", WIDTH / HEADS}, hidden = {"hidden", 4 * WIDTH},
                      vocab = {"vocab", VOCAB};

/* ---- the model ------------------------------------------------------------------------------------------ */

static weft_value by_scores(weft_value q, weft_value k, weft_value v)
{
    const weft_shape square = WEFT_DIMS(batch, heads, seq, key);
    weft_graph *graph = q.graph;
    weft_value scores = weft_einsum(square, q, weft_rename(k, seq, key));
    scores = weft_scale(scores, 1 / sqrt((double)kv.size));
    scores = weft_where(weft_broadcast_to(weft_triangle(graph, seq, key, 0), square), scores,
                        weft_constant(graph, weft_dtype_of(scores), square, -1e4));
    const weft_value shares = weft_dropout(weft_softmax(scores, key), DROPOUT);
    return weft_einsum(WEFT_DIMS(batch, seq, heads, kv), shares, weft_rename(v, seq, key));
}

static weft_value attend(void *context, weft_value q, weft_value k, weft_value v,
                         const weft_attention_options *options)
{
    const row *r = context;
    if (r->again == ATTENTION) q = weft_recompute_begin(q);
    const weft_value made =
        r->has_scores ? by_scores(q, k, v) : weft_attention_with(q, k, v, options);
    return r->again == ATTENTION ? weft_recompute_end(made) : made;
}

static weft_value block(const row *r, int layer, weft_value x)
{
    char name[24];
    snprintf(name, sizeof name, "block%d", layer);
    const weft_transformer_options options = {
        .name = name,
        .embed = embed,
        .heads = heads,
        .hidden = hidden,
        .self = {.query = seq, .memory = seq, .feature = kv, .causal = true},
        .initializer = "normal",
        .dropout = DROPOUT,
        .attend = attend,
        .attend_context = (void *)r};
    return weft_transformer(x, &options);
}

static weft_value loss_of(const row *r, weft_graph *graph)
{
    const weft_value tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(batch, seq)),
                     targets = weft_input(graph, "targets", WEFT_I32, WEFT_DIMS(batch, seq));
    weft_value x = weft_embedding(
        tokens,
        &(weft_embedding_options){
            .name = "tokens", .entry = vocab, .embed = embed, .over = seq, .dtype = WEFT_F32});
    x = weft_dropout(weft_cast(x, WEFT_BF16), DROPOUT);
    for (int i = 0; i < LAYERS; i++)
        x = r->again == BLOCKS ? weft_recompute_end(block(r, i, weft_recompute_begin(x)))
                               : block(r, i, x);
    x = weft_norm(x, &(weft_norm_options){.name = "norm", .feature = embed});
    x = weft_dense(x, &(weft_dense_options){.name = "head",
                                            .in = WEFT_DIMS(embed),
                                            .out = WEFT_DIMS(vocab),
                                            .initializer = "normal",
                                            .lacks_bias = true});
    return weft_mean(weft_cross_entropy(x, targets, vocab));
}

/* ---- its time --------------------------------------------------------------------------------------------- */

static weft_status say(const row *r, const weft_program *program, const weft_machine_model *model,
                       weft_error *error)
{
    weft_prediction p;
    WEFT_TRY(weft_plan_predict(program, model, NULL, &p, error));
    printf("%-34s %8.0f %8.0f %8.0f %8.0f", r->what, 1e3 * p.seconds, 1e3 * p.work_seconds,
           1e3 * p.exchange_seconds, 1e3 * p.exposed_seconds);
    if (r->published > 0) printf(" %9.0f %9.3f", 1e3 * r->published, p.seconds / r->published);
    printf("\n");
    return WEFT_OK;
}

static weft_status predict(const row *r, const weft_machine_model *model, weft_error *error)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    const char *rules = r->splits_rows ? "hidden:model,heads:model,vocab:model,seq:model"
                                       : "hidden:model,heads:model,vocab:model";
    WEFT_TRY(weft_mesh_plan("model:8", &mesh, error));
    weft_status status = weft_layout_create(rules, &layout, error);
    weft_graph *graph = weft_graph_create(1);
    const weft_value loss = loss_of(r, graph),
                     update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1});
    const weft_compile_options options = {.machine = model};
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, update), &options, &program, error);
    if (status == WEFT_OK) status = say(r, program, model, error);
    (void)!weft_program_destroy(&program);
    (void)!weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    (void)!weft_mesh_destroy(&mesh);
    return status;
}

int main(int n, char **arguments)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    weft_status status = weft_machine_model_read(n > 1 ? arguments[1] : "a100x8", &model, &error);
    printf("%-34s %8s %8s %8s %8s %9s %9s\n", "milliseconds", "step", "work", "exchange", "exposed",
           "published", "predicted /");
    for (int r = 0; r < ROWS && status == WEFT_OK; r++)
        status = predict(&rows[r], model, &error);
    weft_machine_model_destroy(&model);
    return bench_end("megatron", status, &error);
}
