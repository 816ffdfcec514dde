/* factors_test: in which directions each kind of op can be cut. */
#include "ops/graph/ir.h"
#include "test.h"
#include "weft/ops.h"

static void factors_of(weft_value value, weft_site *site, weft_factors *factors)
{
    weft_site_of(value.graph, weft_node_of(value.graph, value.id), site);
    site->op->factors(site, factors);
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

static const weft_dim a = {"a", 4}, b = {"b", 6}, c = {"c", 5};

static void test_einsum_reduces_what_the_result_lacks(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(a, b));
    weft_value y = weft_input(g, "y", WEFT_F64, WEFT_DIMS(b, c));
    weft_site site;
    weft_factors factors;
    factors_of(weft_einsum(WEFT_DIMS(c, a), x, y), &site, &factors);
    CHECK_EQ_INT(factors.n_factors, 3);
    const weft_factor *over_a = through(&site, &factors, 0, "a"),
                      *over_b = through(&site, &factors, 0, "b");
    CHECK_EQ_INT(over_a->in[1], -1);
    CHECK_EQ_INT(over_a->out[0], 1);
    CHECK_EQ_INT(over_b->in[1], 0);
    CHECK_EQ_INT(over_b->out[0], -1);
    CHECK_EQ_INT(over_b->combine, WEFT_SUM);
    CHECK_CLOSE(site.op->flops(&site), 2.0 * 4 * 6 * 5, 0.0);
    weft_graph_destroy(&g);
}

static void test_reshape_cuts_the_outermost_of_a_group_evenly(void)
{
    const weft_dim one = {"one", 1}, ab = {"ab", 24}, d = {"d", 10}, e = {"e", 1}, m = {"m", 2},
                   n = {"n", 5};
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(one, a, b, c, d));
    weft_site site;
    weft_factors factors;
    factors_of(weft_reshape(x, WEFT_DIMS(ab, c, e, m, n)), &site, &factors);
    CHECK_EQ_INT(factors.n_factors, 3);
    CHECK(through(&site, &factors, 0, "one") == NULL);
    CHECK(through(&site, &factors, 0, "b") == NULL);
    const weft_factor *merged = through(&site, &factors, 0, "a"),
                      *same = through(&site, &factors, 0, "c");
    const weft_factor *split = through(&site, &factors, 0, "d");
    CHECK(merged->even && merged->out[0] == 0);
    CHECK(!same->even && same->out[0] == 1);
    CHECK(split->even && split->out[0] == 3);
    weft_graph_destroy(&g);
}

static void test_attention_of_a_dim_with_itself(void)
{
    const weft_dim heads = {"heads", 3}, seq = {"seq", 8}, kv = {"kv", 4};
    weft_graph *g = weft_graph_create(1);
    weft_value q = weft_input(g, "q", WEFT_F64, WEFT_DIMS(heads, seq, kv));
    weft_value y = weft_attention(q, q, q, seq, seq, kv, true);
    weft_site site;
    weft_factors factors;
    factors_of(y, &site, &factors);
    CHECK_EQ_INT(factors.n_factors, 2);
    CHECK(through(&site, &factors, 1, "seq") == NULL);
    CHECK(through(&site, &factors, 0, "kv") == NULL);
    const weft_factor *rows = through(&site, &factors, 0, "seq");
    CHECK_EQ_INT(rows->out[0], 1);
    CHECK_EQ_INT(rows->in[2], -1);
    CHECK_EQ_INT(through(&site, &factors, 2, "heads")->in[0], 0);
    weft_graph_destroy(&g);
}

static void test_gather_from_a_split_table_is_partial(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value table = weft_input(g, "table", WEFT_F64, WEFT_DIMS(c, a));
    weft_value ids = weft_input(g, "ids", WEFT_I32, WEFT_DIMS(b));
    weft_site site;
    weft_factors factors;
    factors_of(weft_gather(table, ids, a), &site, &factors); /* turned, so that a comes first */
    CHECK_EQ_INT(factors.n_factors, 3);
    CHECK_EQ_INT(through(&site, &factors, 0, "a")->combine, WEFT_SUM);
    CHECK_EQ_INT(through(&site, &factors, 0, "c")->out[0], 1);
    CHECK_EQ_INT(through(&site, &factors, 1, "b")->out[0], 0);
    factors_of(weft_scatter_add(weft_input(g, "rows", WEFT_F64, WEFT_DIMS(c, b)), ids, a), &site,
               &factors);
    CHECK_EQ_INT(factors.n_factors, 3);
    CHECK_EQ_INT(through(&site, &factors, 0, "b")->combine, WEFT_SUM);
    CHECK_EQ_INT(through(&site, &factors, 0, "b")->in[1], 0);
    CHECK_EQ_INT(through(&site, &factors, 0, "c")->out[0], 1);
    weft_graph_destroy(&g);
}

static void test_a_state_is_whole_along_its_numbers(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(a, b));
    weft_value state = weft_emit_state(&weft_op_lse_state, WEFT_LSE, "b", x);
    weft_site site;
    weft_factors factors;
    factors_of(state, &site, &factors);
    CHECK_EQ_INT(site.out[0].shape.dims[1].size, 2);
    CHECK_EQ_INT(factors.n_factors, 2);
    CHECK_EQ_INT(through(&site, &factors, 0, "b")->combine, WEFT_LSE);
    factors_of(weft_emit(g, &weft_op_lse_finish, &state, 1, NULL, 0), &site, &factors);
    CHECK_EQ_INT(factors.n_factors, 1);
    weft_graph_destroy(&g);
}

int main(void)
{
    RUN(test_einsum_reduces_what_the_result_lacks);
    RUN(test_reshape_cuts_the_outermost_of_a_group_evenly);
    RUN(test_attention_of_a_dim_with_itself);
    RUN(test_gather_from_a_split_table_is_partial);
    RUN(test_a_state_is_whole_along_its_numbers);
    return weft_test_report();
}
