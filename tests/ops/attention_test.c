/* attention_test: attention as a builder: what it refuses, and in which words, and how it can be cut. */
#include <math.h>
#include <string.h>

#include "ops/graph/ir.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

static const weft_dim batch = {"batch", 2}, seq = {"seq", 4}, memory = {"memory", 6},
                      kv = {"kv", 3};

typedef struct wrong {
    weft_dim query, memory, feature;
    const char *says;
} wrong;

static void test_dims_that_cannot_be_are_refused(void)
{
    const wrong wrongs[] = {
        {seq, seq, seq, "seq is passed as feature and as query"},
        {seq, memory, seq, "seq is passed as feature and as query"},
        {seq, memory, memory, "memory is passed as feature and as memory"},
        {seq, memory, {"kw", 3}, "has no dim kw; did you mean kv?"},
        {seq, memory, {"kv", 4}, "feature is passed as kv:4 and the operand has kv:3"},
        {{"seq", 5}, memory, kv, "query is passed as seq:5 and the operand has seq:4"},
        {seq, {"memory", 5}, kv, "memory is passed as memory:5 and the operand has memory:6"},
        {batch, memory, kv,
         "q must have all dims of k and v but their rows, and k and v not the rows"},
        {{NULL, 4}, memory, kv, "has no name"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const wrong *w = &wrongs[i];
        weft_graph *g = weft_graph_create(1);
        weft_value q = weft_input(g, "q", WEFT_F32, WEFT_DIMS(batch, seq, kv));
        weft_value k = weft_input(g, "k", WEFT_F32, WEFT_DIMS(batch, memory, kv));
        CHECK_EQ_INT(weft_attention(q, k, k, w->query, w->memory, w->feature, false).id, 0);
        CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
        CHECK_TEXT(weft_graph_error(g)->message, w->says);
        CHECK_TEXT(weft_graph_error(g)->message, "attention at attention_test.c:");
        weft_graph_destroy(&g);
    }
}

static const weft_dim key = {"key", 4};

typedef struct wrong_options {
    weft_attention_options options; /* without bias and mask */
    weft_dim bias[3], mask[3];      /* {0}: no more */
    weft_dtype bias_dtype, mask_dtype;
    const char *says;
} wrong_options;

static weft_value some_input(weft_graph *g, const char *name, weft_dtype dtype,
                             const weft_dim dims[3])
{
    int n = 0;
    while (n < 3 && dims[n].name != NULL)
        n++;
    return n == 0 ? (weft_value){0} : weft_input(g, name, dtype, weft_shape_make(dims, n));
}

/* q, k and v [batch, seq, kv]. */
static weft_value self_attention(weft_graph *g, const wrong_options *w)
{
    weft_attention_options options = w->options;
    weft_value q = weft_input(g, "q", WEFT_F32, WEFT_DIMS(batch, seq, kv));
    options.query = options.memory = seq, options.feature = kv;
    options.bias = some_input(g, "bias", w->bias_dtype, w->bias);
    options.mask = some_input(g, "mask", w->mask_dtype, w->mask);
    return weft_attention_with(q, q, q, &options);
}

static void test_options_that_cannot_be_are_refused(void)
{
    const weft_dim long_key = {"key", 5}, long_batch = {"batch", 3}, layer = {"layer", 2};
    const wrong_options wrongs[] = {
        {.options.window = -1, .says = "the window is -1 rows; it is at least 1, or 0 for none"},
        {.options.scale = NAN, .says = "the scale is nan"},
        {.options.scale = INFINITY, .says = "the scale is inf"},
        {.options.column = long_key, .says = "column is passed as key:5 and memory as seq:4"},
        {.options.column = {"key", 0}, .says = "size 0"},
        {.options.column = kv, .says = "column is passed as kv:3 and memory as seq:4"},
        {.options.column = {"batch", 4}, .says = "batch is passed as column and q is [batch:2"},
        {.mask = {batch, seq},
         .mask_dtype = WEFT_I32,
         .says = "the mask is [batch:2, seq:4], and seq numbers both the rows of q and those of k; "
                 "weft_rename"},
        {.bias = {seq}, .says = "the bias is [seq:4], and seq numbers both"},
        {.mask = {batch, key},
         .mask_dtype = WEFT_I32,
         .says = "the scores are [batch:2, seq:4] by the rows of k, which column can name"},
        {.options.column = key,
         .bias = {batch, key, kv},
         .says = "the bias is [batch:2, key:4, kv:3] and the scores are [batch:2, seq:4, key:4]"},
        {.options.column = key, .bias = {layer}, .says = "the bias is [layer:2] and the scores"},
        {.options.column = key, .bias = {long_batch}, .says = "the bias is [batch:3] and"},
        {.options.column = key, .mask = {long_key}, .mask_dtype = WEFT_I32, .says = "[key:5] and"},
        {.bias = {batch}, .bias_dtype = WEFT_F64, .says = "bias is f64; operands have one dtype"},
        {.bias = {batch}, .bias_dtype = WEFT_I32, .says = "bias is i32; operands have one dtype"},
        {.mask = {batch},
         .mask_dtype = WEFT_F32,
         .says = "mask is f32, and indices and conditions"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        weft_graph *g = weft_graph_create(1);
        CHECK_EQ_INT(self_attention(g, &wrongs[i]).id, 0);
        CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        weft_graph_destroy(&g);
    }
    weft_graph *g = weft_graph_create(1);
    weft_value q = weft_input(g, "q", WEFT_F32, WEFT_DIMS(batch, seq, kv));
    CHECK_EQ_INT(weft_attention_with(q, q, q, NULL).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "attention_with at attention_test.c:");
    CHECK_TEXT(weft_graph_error(g)->message, "options is NULL");
    weft_graph_destroy(&g);
    const weft_attention_options none = {0};
    CHECK_EQ_INT(weft_attention_with((weft_value){0}, (weft_value){0}, (weft_value){0}, &none).id,
                 0);
    CHECK_EQ_INT(weft_attention_with((weft_value){0}, (weft_value){0}, (weft_value){0}, NULL).id,
                 0);
}

static void test_any_subset_of_dims_of_the_scores_is_taken(void)
{
    const weft_dim all[3] = {batch, seq, key};
    for (int which = 0; which < 8; which++) {
        wrong_options w = {.options.column = key, .mask_dtype = WEFT_I32};
        int n = 0;
        for (int d = 0; d < 3; d++)
            if (which >> d & 1) w.bias[n] = w.mask[n] = all[d], n++;
        weft_graph *g = weft_graph_create(1);
        CHECK(self_attention(g, &w).id != 0);
        CHECK_TEXT(weft_graph_error(g)->message, "");
        weft_graph_destroy(&g);
    }
}

/* The factor through operand `in`'s dim `name`; NULL: it cannot be cut there. */
static const weft_factor *through(const weft_site *site, const weft_factors *factors, int in,
                                  const char *name)
{
    const int d = weft_shape_find(&site->in[in].shape, name);
    for (int f = 0; f < factors->n_factors; f++)
        if (d >= 0 && factors->factors[f].in[in] == d) return &factors->factors[f];
    return NULL;
}

static void test_bias_and_mask_are_cut_with_the_rows_of_q(void)
{
    weft_graph *g = weft_graph_create(1);
    const weft_dim heads = {"heads", 2};
    weft_value q = weft_input(g, "q", WEFT_F32, WEFT_DIMS(batch, heads, seq, kv));
    weft_value bias = weft_input(g, "bias", WEFT_F32, WEFT_DIMS(key, heads, seq));
    weft_value mask = weft_input(g, "mask", WEFT_I32, WEFT_DIMS(batch, key));
    weft_value y = weft_attention_with(
        q, q, q,
        &(weft_attention_options){
            .query = seq, .memory = seq, .feature = kv, .column = key, .bias = bias, .mask = mask});
    weft_value loss = weft_sum(WEFT_SCALAR, y), dbias;
    weft_gradients(loss, WEFT_VALUES(bias), &dbias, 0);
    weft_site site;
    weft_factors factors;
    weft_site_of(g, weft_node_of(g, y.id), &site);
    site.op->factors(&site, &factors);
    CHECK_EQ_INT(factors.n_factors, 3);
    CHECK(through(&site, &factors, 3, "key") == NULL && through(&site, &factors, 4, "key") == NULL);
    CHECK(through(&site, &factors, 1, "seq") == NULL);
    CHECK(through(&site, &factors, 3, "seq") == through(&site, &factors, 0, "seq"));
    CHECK(through(&site, &factors, 3, "heads") == through(&site, &factors, 2, "heads"));
    CHECK(through(&site, &factors, 4, "batch") == through(&site, &factors, 1, "batch"));
    CHECK_EQ_INT(through(&site, &factors, 0, "batch")->in[3], -1);

    weft_site_of(g, weft_node_of(g, dbias.id), &site);
    CHECK_TEXT(site.op->name, "attention_grad");
    site.op->factors(&site, &factors);
    const weft_factor *rows = through(&site, &factors, 0, "seq"),
                      *batches = through(&site, &factors, 0, "batch");
    CHECK_EQ_INT(rows->out[3], 2);
    CHECK_EQ_INT(rows->out[1], -1);
    CHECK_EQ_INT(rows->combine, WEFT_SUM);
    CHECK_EQ_INT(batches->out[3], -1);
    CHECK_EQ_INT(batches->out[1], 0);
    CHECK_EQ_INT(batches->combine, WEFT_SUM);
    CHECK_EQ_INT(through(&site, &factors, 0, "heads")->combine, WEFT_NOT_PARTIAL);
    weft_graph_destroy(&g);
}

/* ---- where rows stand ------------------------------------------------------------------------- */

static void test_positions_that_cannot_be_are_refused(void)
{
    const weft_dim odd = {"kv", 3}, even = {"row", 4}, other = {"other", 4};
    const struct {
        weft_dim feature, of_positions;
        weft_dtype dtype;
        double base;
        const char *says;
    } wrongs[] = {
        {odd, seq, WEFT_I32, 0, "kv has 3 elements; they are turned in pairs"},
        {{"kv", 4}, seq, WEFT_I32, 0, "feature is passed as kv:4 and x is [batch:2, seq:4, kv:3"},
        {{"nosuch", 4}, seq, WEFT_I32, 0, "feature is passed as nosuch:4"},
        {even, other, WEFT_I32, 0,
         "positions are [other:4] and x is [batch:2, seq:4, kv:3, row:4]"},
        {even, even, WEFT_I32, 0, "any of x's dims but row, which is turned"},
        {even, seq, WEFT_F32, 0, "positions are f32; weft_cast them to i32"},
        {even, seq, WEFT_I32, -1, "the base is -1"},
        {even, seq, WEFT_I32, NAN, "the base is nan"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        weft_graph *g = weft_graph_create(1);
        weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, seq, odd, even));
        weft_value at = weft_input(g, "at", wrongs[i].dtype, WEFT_DIMS(wrongs[i].of_positions));
        CHECK_EQ_INT(weft_rope(x, at, wrongs[i].feature, wrongs[i].base).id, 0);
        CHECK_TEXT(weft_graph_error(g)->message, "rope at attention_test.c:");
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        weft_graph_destroy(&g);
    }
    weft_graph *g = weft_graph_create(1);
    CHECK_EQ_INT(weft_alibi(g, WEFT_F32, batch, seq, seq).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "query and memory are both seq");
    weft_graph_destroy(&g);
    g = weft_graph_create(1);
    CHECK_EQ_INT(weft_alibi(g, WEFT_F32, seq, seq, memory).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "heads and query are both seq");
    weft_graph_destroy(&g);
    g = weft_graph_create(1);
    CHECK_EQ_INT(weft_alibi(g, WEFT_I32, batch, seq, memory).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "only floats are possible here");
    weft_graph_destroy(&g);
}

int main(void)
{
    RUN(test_dims_that_cannot_be_are_refused);
    RUN(test_options_that_cannot_be_are_refused);
    RUN(test_any_subset_of_dims_of_the_scores_is_taken);
    RUN(test_bias_and_mask_are_cut_with_the_rows_of_q);
    RUN(test_positions_that_cannot_be_are_refused);
    return weft_test_report();
}
