/* RANKS: 2 */
/* layer_source_test: layers take their variables from where a program says; a block with experts, positions and attention of its
 * own is what these are by themselves. */
#include "oracle.h"
#include "weft/layers.h"

#include <string.h>

#include "test.h"

static const weft_dim batch = {"batch", 3}, row = {"row", 5}, embed = {"embed", 6},
                      two = {"two", 2};

/* What was asked for, and what is given for it. */
typedef struct asked {
    char names[400];
    bool leads;   /* with a dim of its own in front */
    int n_wrong;  /* the variable of this number is wrong: of other dims, */
    bool is_none; /* or none */
} asked;

static weft_value give(void *context, weft_graph *graph, const char *name, weft_dtype dtype,
                       weft_shape shape, weft_initial initial)
{
    asked *a = context;
    char own[80];
    snprintf(a->names + strlen(a->names), sizeof a->names - strlen(a->names), "%s ", name);
    snprintf(own, sizeof own, "own.%s", name);
    for (char *at = own; *at; at++)
        if (*at == '/') *at = '.';
    if (a->n_wrong == 1) shape.dims[0].size++;
    if (a->n_wrong-- == 1 && a->is_none) return (weft_value){graph, 0};
    if (a->leads && shape.n_dims < WEFT_MAX_DIMS) {
        memmove(shape.dims + 1, shape.dims, sizeof shape.dims[0] * (size_t)shape.n_dims++);
        shape.dims[0] = two;
    }
    return (weft_variable)(graph, own, dtype, shape, initial);
}

static weft_transformer_options block(const weft_layer_source *source)
{
    return (weft_transformer_options){
        .name = "b",
        .embed = embed,
        .heads = {"heads", 2},
        .hidden = {"hidden", 4},
        .self = {.query = row, .memory = row, .feature = {"kv", 2}, .causal = true},
        .lacks_attention_bias = true,
        .source = source};
}

static weft_value x_of(weft_graph *graph, bool leads)
{
    return weft_input(graph, "x", WEFT_F64,
                      leads ? WEFT_DIMS(batch, two, row, embed) : WEFT_DIMS(batch, row, embed));
}

static void test_a_source_is_asked_in_order_by_whole_names(void)
{
    asked a = {""};
    const weft_layer_source source = {give, &a};
    const weft_transformer_options o = block(&source);
    weft_graph *graph = weft_graph_create(1);
    weft_error error = {0};
    CHECK(weft_transformer(x_of(graph, false), &o).id != 0);
    CHECK_TEXT(a.names, "b/self_norm/gain b/self_norm/bias b/self/query/weight b/self/key/weight "
                        "b/self/value/weight b/self/out/weight b/up_norm/gain b/up_norm/bias "
                        "b/up/weight b/up/bias b/down/weight b/down/bias ");
    CHECK(weft_graph_find(graph, "own.b.up.weight", &error).id != 0);
    CHECK(weft_graph_find(graph, "b/up/weight", &error).id == 0);
    weft_graph_destroy(&graph);
}

/* Each element of a dim of x that the layer does not know has weights of its own. */
static void test_variables_may_have_other_dims_of_x(void)
{
    asked a = {.leads = true};
    const weft_layer_source source = {give, &a};
    const weft_transformer_options o = block(&source);
    weft_graph *graph = weft_graph_create(1);
    const weft_value y = weft_transformer(x_of(graph, true), &o);
    CHECK(y.id != 0 && weft_dim_of(y, "two").size == 2);
    weft_graph_destroy(&graph);
}

/* A dim that nobody has would be summed away, or come out of a sum. */
static weft_value give_too_much(void *context, weft_graph *graph, const char *name,
                                weft_dtype dtype, weft_shape shape, weft_initial initial)
{
    (void)context;
    shape.dims[shape.n_dims++] = (weft_dim){"extra", 3};
    return (weft_variable)(graph, name, dtype, shape, initial);
}

static void check_refused(asked a, weft_layer_variable_of function, const char *says)
{
    const weft_layer_source source = {function, &a};
    const weft_transformer_options o = block(&source);
    weft_graph *graph = weft_graph_create(1);
    CHECK(weft_transformer(x_of(graph, false), &o).id == 0);
    CHECK_TEXT(weft_graph_error(graph)->message, says);
    weft_graph_destroy(&graph);
}

static void test_what_a_source_gives_wrongly_is_refused(void)
{
    check_refused((asked){.n_wrong = 3}, give,
                  "b/self/query/weight is f64[embed:7, heads:2, kv:2]");
    check_refused((asked){.n_wrong = 3, .is_none = true}, give,
                  "the layer's source gives no b/self/query/weight");
    check_refused((asked){""}, NULL, "its source has no function that gives a variable");
    check_refused((asked){""}, give_too_much, "with extra:3, which neither that nor x has");
}

static void test_places_that_number_nothing_are_refused(void)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_dim entry = {"entry", 9}, rows = {"rows", 4}, embed = {"embed", 7},
                   other = {"other", 5};
    const weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(rows));
    CHECK(weft_embedding(ids,
                         &(weft_embedding_options){
                             .name = "e", .entry = entry, .embed = embed, .positions = ids})
              .id == 0);
    CHECK_TEXT(weft_graph_error(graph)->message, "no dim that they number");
    weft_graph_destroy(&graph);
    graph = weft_graph_create(1);
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(rows, embed)),
                     memory = weft_input(graph, "memory", WEFT_F32, WEFT_DIMS(other, embed)),
                     places = weft_input(graph, "places", WEFT_I32, WEFT_DIMS(rows));
    const weft_multi_head_options o = {
        .name = "m",
        .embed = embed,
        .heads = {"heads", 2},
        .is_rotary = true,
        .memory = memory,
        .attention = {.query = rows, .memory = other, .feature = {"kv", 2}},
        .positions = places};
    CHECK(weft_multi_head(x, &o).id == 0);
    CHECK_TEXT(weft_graph_error(graph)->message, "positions are x's");
    weft_graph_destroy(&graph);
}

/* ---- parts of a block ---------------------------------------------------------------------------------- */

static weft_value attend_twice(void *context, weft_value q, weft_value k, weft_value v,
                               const weft_attention_options *options)
{
    ++*(int *)context;
    return weft_scale(weft_attention_with(q, k, v, options), 2.0);
}

static weft_multi_head_options heads(const char *name)
{
    return (weft_multi_head_options){
        .name = name,
        .embed = embed,
        .heads = {"heads", 2},
        .is_rotary = true,
        .attention = {.query = row, .memory = row, .feature = {"kv", 2}, .causal = true},
        .lacks_bias = true};
}

/* By a function of one's own, which doubles: twice the result. Rows that all stand one further: the same, as only distances
 * count. */
static void build_attended(weft_oracle_build *b)
{
    int n = 0;
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, row, embed), -1, 1);
    weft_multi_head_options o = heads("m");
    const weft_value plain = weft_multi_head(x, &o);
    o.attend = attend_twice, o.attend_context = &n;
    const weft_value twice = weft_multi_head(x, &o);
    o.positions = weft_add(weft_iota(b->graph, WEFT_I32, row),
                           weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 1));
    const weft_value further = weft_multi_head(x, &o);
    weft_oracle_output(b, weft_sub(twice, weft_scale(plain, 2.0)));
    weft_oracle_output(b, weft_sub(further, twice));
    weft_oracle_output(b, twice);
    CHECK_EQ_INT(n, 2);
}

/* A block with experts: x and what weft_experts makes of its norm. */
static void build_with_experts(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, row, embed), -1, 1);
    const weft_experts_options e = {
        .token = row, .experts = {"experts", 3}, .hidden = {"hidden", 4}, .capacity = 1.5};
    weft_transformer_options o = block(NULL);
    weft_experts_facts facts;
    o.experts = &e, o.facts = &facts;
    const weft_value y = weft_transformer(x, &o);
    weft_experts_options own = e;
    own.name = "b/experts", own.feature = embed;
    weft_multi_head_options self = heads("b/self");
    self.is_rotary = false;
    const weft_value attended = weft_add(
        x, weft_multi_head(
               weft_norm(x, &(weft_norm_options){.name = "b/self_norm", .feature = embed}), &self));
    const weft_value mixed = weft_experts(
        weft_norm(attended, &(weft_norm_options){.name = "b/up_norm", .feature = embed}), &own,
        NULL);
    weft_oracle_output(b, weft_sub(y, weft_add(attended, mixed)));
    weft_oracle_output(b, facts.balance);
    weft_oracle_output(b, y);
}

static weft_oracle oracle;

static bool is_zero(const weft_oracle_result *result, int k)
{
    bool is = result->count[k] > 0;
    for (int64_t i = 0; i < result->count[k]; i++)
        is &= result->data[k][i] > -1e-12 && result->data[k][i] < 1e-12;
    return is;
}

static void check_zeros(void (*build)(weft_oracle_build *), int n_zeros)
{
    const weft_oracle_case what = {.name = "block", .build = build};
    weft_oracle_result result = {0};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &result, &error), error))
        for (int k = 0; k < n_zeros; k++)
            CHECK(is_zero(&result, k));
    weft_oracle_free(&result);
    weft_oracle_sweep(&oracle, &what, 10);
}

static void test_attention_and_positions_of_its_own(void)
{
    check_zeros(build_attended, 2);
}

static void test_a_block_with_experts_is_their_layer(void)
{
    check_zeros(build_with_experts, 1);
}

int main(void)
{
    static const char *const meshes[] = {"data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 1, &error), error)) {
        RUN(test_a_source_is_asked_in_order_by_whole_names);
        RUN(test_variables_may_have_other_dims_of_x);
        RUN(test_what_a_source_gives_wrongly_is_refused);
        RUN(test_places_that_number_nothing_are_refused);
        RUN(test_attention_and_positions_of_its_own);
        RUN(test_a_block_with_experts_is_their_layer);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
