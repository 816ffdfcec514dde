/* graph_test: building a graph: types follow from names, the first error stays, and its sentence
 * names the place. */
#include "ops/graph/ir.h"
#include "test.h"
#include "weft/ops.h"

static const weft_dim batch = {"batch", 32}, pixel = {"pixel", 784}, hidden = {"hidden", 64};

static const char *message(const weft_graph *graph)
{
    return weft_graph_error(graph)->message;
}

static bool has_dims(weft_value value, weft_shape expected)
{
    const weft_shape *shape = weft_shape_of(value);
    return weft_shape_same_order(shape, &expected) &&
           weft_count_of(shape) == weft_count_of(&expected);
}

static void test_types_follow_from_names(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value w =
        weft_variable(g, "w", WEFT_F32, WEFT_DIMS(pixel, hidden), weft_normal(0.0, 0.05));
    weft_value b = weft_variable(g, "b", WEFT_F32, WEFT_DIMS(hidden), weft_constant_of(0.0));
    weft_value h = weft_relu(weft_add(b, weft_einsum(WEFT_DIMS(hidden, batch), x, w)));
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    CHECK(has_dims(h, WEFT_DIMS(hidden, batch)));
    CHECK(has_dims(weft_sum(WEFT_DIMS(batch), h), WEFT_DIMS(batch)));
    CHECK(has_dims(weft_transpose(h, WEFT_DIMS(batch, hidden)), WEFT_DIMS(batch, hidden)));
    CHECK_EQ_INT(weft_dtype_of(weft_greater(h, b)), WEFT_I32);
    CHECK_EQ_INT(weft_dtype_of(weft_argmax(h, hidden)), WEFT_I32);
    CHECK_EQ_INT(weft_dim_of(h, "hidden").size, 64);
    CHECK_EQ_INT(weft_dim_of(h, "nothing").size, 0);
    weft_graph_destroy(&g);
    CHECK(g == NULL);
}

static void test_broadcast_takes_the_order_of_most_dims(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value a = weft_input(g, "a", WEFT_F64, WEFT_DIMS(batch));
    weft_value b = weft_input(g, "b", WEFT_F64, WEFT_DIMS(pixel, batch));
    weft_value c = weft_input(g, "c", WEFT_F64, WEFT_DIMS(hidden));
    CHECK(has_dims(weft_mul(a, b), WEFT_DIMS(pixel, batch)));
    CHECK(has_dims(weft_mul(a, c), WEFT_DIMS(batch, hidden)));
    CHECK(has_dims(weft_mul(c, b), WEFT_DIMS(pixel, batch, hidden)));
    weft_graph_destroy(&g);
}

static void test_sizes_that_differ_name_both_and_the_place(void)
{
    const weft_dim wrong = {"pixel", 512};
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(wrong, hidden), weft_normal(0.0, 1.0));
    const int line = __LINE__ + 1;
    weft_value h = weft_einsum(WEFT_DIMS(batch, hidden), x, w);
    char place[128];
    snprintf(place, sizeof place,
             "einsum at graph_test.c:%d: x is [batch:32, pixel:784] and w is "
             "[pixel:512, ",
             line);
    CHECK_EQ_INT(h.id, 0);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
    CHECK_TEXT(message(g), place);
    CHECK_TEXT(message(g), "same name must have the same size. Rename one pixel");
    weft_graph_destroy(&g);
}

static void test_first_error_stays(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    const uint32_t before = g->n_nodes;
    weft_value bad = weft_softmax(x, hidden);
    char first[480];
    snprintf(first, sizeof first, "%s", message(g));
    CHECK_TEXT(first, "softmax at graph_test.c:");
    CHECK_TEXT(first, "x is [batch:32, pixel:784] and has no dim hidden");
    weft_value later = weft_add(weft_relu(bad), weft_einsum(WEFT_DIMS(hidden), bad, x));
    weft_value other = weft_variable(g, "x", WEFT_F32, WEFT_DIMS(batch), weft_constant_of(1.0));
    CHECK_EQ_INT(later.id, 0);
    CHECK_EQ_INT(other.id, 0);
    CHECK(strcmp(first, message(g)) == 0);
    CHECK_EQ_INT(g->n_nodes, before);
    weft_graph_destroy(&g);
}

/* One wrong call in a graph of its own, and a part of the sentence it must give. */
typedef weft_value (*wrong_call)(weft_graph *g, weft_value x, weft_value ids);
typedef struct wrong {
    wrong_call call;
    const char *says;
} wrong;

static weft_value unknown_dim(weft_graph *g, weft_value x, weft_value ids)
{
    (void)ids;
    const weft_dim typo = {"hiden", 64};
    weft_value w = weft_input(g, "w", WEFT_F32, WEFT_DIMS(pixel, hidden));
    return weft_einsum(WEFT_DIMS(batch, typo), x, w);
}
static weft_value zero_size(weft_graph *g, weft_value x, weft_value ids)
{
    (void)x, (void)ids;
    const weft_dim none = {"none", 0};
    return weft_input(g, "empty", WEFT_F32, WEFT_DIMS(batch, none));
}
static weft_value huge_size(weft_graph *g, weft_value x, weft_value ids)
{
    (void)x, (void)ids;
    const weft_dim huge = {"huge", ((int64_t)1 << 40) + 1};
    return weft_variable(g, "huge", WEFT_F32, WEFT_DIMS(huge), weft_constant_of(0.0));
}
static weft_value huge_count(weft_graph *g, weft_value x, weft_value ids)
{
    (void)x, (void)ids;
    const weft_dim a = {"a", (int64_t)1 << 30}, b = {"b", (int64_t)1 << 30};
    return weft_constant(g, WEFT_F32, WEFT_DIMS(a, b), 0.0);
}
static weft_value twice(weft_graph *g, weft_value x, weft_value ids)
{
    (void)x, (void)ids;
    return weft_input(g, "twice", WEFT_F32, WEFT_DIMS(batch, pixel, batch));
}
static weft_value nine_dims(weft_graph *g, weft_value x, weft_value ids)
{
    (void)x, (void)ids;
    const weft_dim a = {"a", 1}, b = {"b", 1}, c = {"c", 1}, d = {"d", 1}, e = {"e", 1},
                   f = {"f", 1};
    return weft_input(g, "nine", WEFT_F32, WEFT_DIMS(a, b, c, d, e, f, batch, pixel, hidden));
}
static weft_value same_name(weft_graph *g, weft_value x, weft_value ids)
{
    (void)x, (void)ids;
    return weft_variable(g, "x", WEFT_F32, WEFT_DIMS(batch), weft_constant_of(0.0));
}
static weft_value two_dtypes(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g;
    return weft_add(x, ids);
}
static weft_value i32_exp(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)x;
    return weft_exp(ids);
}
static weft_value float_ids(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_gather(x, x, batch);
}
static weft_value name_taken(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_rename(x, pixel, (weft_dim){"batch", 784});
}
static weft_value wrong_count(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_reshape(x, WEFT_DIMS(batch, hidden));
}
static weft_value past_the_end(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_slice(x, pixel, 780, (weft_dim){"part", 10});
}
static weft_value sizes_do_not_add(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_concat(x, x, pixel, pixel, pixel);
}
static weft_value sum_to_unknown(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_sum(WEFT_DIMS(hidden), x);
}
static weft_value rate_of_one(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_dropout(x, 1.0);
}
static weft_value labels_do_not_fit(weft_graph *g, weft_value x, weft_value ids)
{
    (void)ids;
    weft_value labels = weft_input(g, "labels", WEFT_I32, WEFT_DIMS(hidden));
    return weft_cross_entropy(x, labels, pixel);
}
static weft_value no_variable(weft_graph *g, weft_value x, weft_value ids)
{
    (void)g, (void)ids;
    return weft_assign(x, x);
}

static void test_each_wrong_call_has_its_sentence(void)
{
    static const wrong wrongs[] = {
        {unknown_dim,
         "hiden, which neither x [batch:32, pixel:784] nor w [pixel:784, hidden:64] has; did "
         "you mean hidden?"},
        {zero_size, "dim none has size 0; a size is at least 1"},
        {huge_size, "size 1099511627777; a size is at least 1 and at most 2^40"},
        {huge_count, "the most is 2^50"},
        {twice, "dim batch stands twice"},
        {nine_dims, "a tensor of 9 dims; the most is 8"},
        {same_name, "input at graph_test.c:"},
        {two_dtypes, "x is f32 and ids is i32; operands have one dtype"},
        {i32_exp, "ids is i32, for which exp is not defined"},
        {float_ids, "x is f32, and indices and conditions are i32"},
        {name_taken, "pixel cannot be called batch"},
        {wrong_count,
         "with 25088 elements and the result is to be [batch:32, hidden:64] with 2048"},
        {past_the_end, "[780, 790) is asked of x, whose pixel goes from 0 to 784"},
        {sizes_do_not_add, "the sizes add up"},
        {sum_to_unknown, "sum at graph_test.c:"},
        {rate_of_one, "the rate is 1; it is at least 0 and below 1"},
        {labels_do_not_fit,
         "the labels are [hidden:64], and of [batch:32] they may have all or some"},
        {no_variable, "the first argument is no variable"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        weft_graph *g = weft_graph_create(1);
        weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
        weft_value ids = weft_input(g, "ids", WEFT_I32, WEFT_DIMS(batch, pixel));
        CHECK_EQ_INT(wrongs[i].call(g, x, ids).id, 0);
        CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
        CHECK_TEXT(message(g), wrongs[i].says);
        CHECK_TEXT(message(g), " at graph_test.c:");
        weft_graph_destroy(&g);
    }
}

static void test_values_of_two_graphs_do_not_mix(void)
{
    weft_graph *g = weft_graph_create(1), *h = weft_graph_create(1);
    weft_value a = weft_input(g, "a", WEFT_F32, WEFT_DIMS(batch));
    weft_value b = weft_input(h, "b", WEFT_F32, WEFT_DIMS(batch));
    CHECK_EQ_INT(weft_add(a, b).id, 0);
    CHECK_TEXT(message(g), "another graph");
    CHECK_EQ_INT(weft_graph_error(h)->status, WEFT_OK);
    CHECK_EQ_INT(weft_relu((weft_value){0}).id, 0);
    CHECK_EQ_INT(weft_graph_error(NULL)->status, WEFT_MEMORY);
    weft_graph_destroy(&g);
    weft_graph_destroy(&h);
}

static void test_inner_nodes_stand_where_the_builder_was_called(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    const int line = __LINE__ + 1;
    weft_value y = weft_log_softmax(x, pixel);
    for (uint32_t id = weft_node_of(g, x.id)->out + 1; id <= y.id; id++) {
        CHECK_EQ_INT(weft_node_of(g, id)->origin.line, line);
        CHECK_TEXT(weft_node_of(g, id)->origin.file, "graph_test.c");
    }
    char place[64];
    weft_origin_print(weft_node_of(g, y.id), place, sizeof place);
    CHECK_TEXT(place, "log_softmax at graph_test.c:"); /* its op is sub */
    weft_graph_destroy(&g);
}

static void test_equal_calls_have_equal_attribute_bytes(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    char name[] = "pixel"; /* another pointer to the same name */
    const weft_dim again = {name, 784};
    const weft_value pairs[][2] = {
        {weft_scale(x, 2.0), weft_scale(x, 2.0)},
        {weft_sum(WEFT_DIMS(pixel), x), weft_sum(WEFT_DIMS(again), x)},
        {weft_logsumexp(x, pixel), weft_logsumexp(x, again)},
        {weft_slice(x, pixel, 3, hidden), weft_slice(x, again, 3, hidden)},
        {weft_iota(g, WEFT_I32, pixel), weft_iota(g, WEFT_I32, again)},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const weft_node *a = weft_node_of(g, pairs[i][0].id), *b = weft_node_of(g, pairs[i][1].id);
        CHECK(a->op == b->op && a->attribute_bytes == b->attribute_bytes);
        CHECK(memcmp(a->attributes, b->attributes, a->attribute_bytes) == 0);
    }
    const weft_node *a = weft_node_of(g, weft_dropout(x, 0.5).id);
    const weft_element_attributes *first = a->attributes;
    const weft_element_attributes *second = weft_node_of(g, weft_dropout(x, 0.5).id)->attributes;
    CHECK(first->random != second->random);
    weft_graph_destroy(&g);
}

static void test_slots_and_groups_of_many(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value w =
        weft_variable(g, "w", WEFT_F64, WEFT_DIMS(pixel, hidden), weft_uniform(-1.0, 1.0));
    weft_value slot = weft_slot(w, "m", weft_constant_of(0.0));
    const weft_variable_attributes *attributes = weft_node_of(g, slot.id)->attributes;
    CHECK_TEXT(attributes->name, "w/m");
    CHECK_EQ_INT(attributes->owner, w.id);
    weft_value turned = weft_transpose(w, WEFT_DIMS(hidden, pixel));
    weft_value tokens[20];
    for (int i = 0; i < 20; i++)
        tokens[i] = weft_assign(slot, turned);
    weft_value all = weft_group(g, (weft_values){tokens, 20});
    CHECK(all.id != 0);
    CHECK(weft_node_of(g, all.id)->n_in <= WEFT_MAX_IN);
    weft_place(w, "hidden:model");
    CHECK_TEXT(g->tensors[w.id].placement, "hidden:model");
    weft_place_as(turned, w);
    CHECK_EQ_INT(g->tensors[turned.id].place_as, w.id);
    weft_graph_destroy(&g);
}

static void test_einsum_sums_lone_dims_first(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value y = weft_input(g, "y", WEFT_F32, WEFT_DIMS(batch, hidden));
    weft_value z = weft_einsum(WEFT_DIMS(batch, hidden), x, y);
    const weft_node *node = weft_node_of(g, z.id);
    CHECK(weft_node_of(g, node->in[0])->op == &weft_op_sum);
    weft_value n = weft_einsum_n(WEFT_DIMS(hidden), WEFT_VALUES(x, y, z));
    CHECK(has_dims(n, WEFT_DIMS(hidden)));
    CHECK(has_dims(weft_einsum_n(WEFT_DIMS(pixel), WEFT_VALUES(x)), WEFT_DIMS(pixel)));
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    weft_graph_destroy(&g);
}

/* A matrix of a matrix of a vector is two products of a matrix and a vector; what costs the same goes from the left. */
static void test_einsum_of_many_takes_the_cheapest_order(void)
{
    weft_graph *g = weft_graph_create(1);
    const weft_dim out = {"out", 5}, far = {"far", 6};
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel)),
               w = weft_input(g, "w", WEFT_F32, WEFT_DIMS(pixel, hidden)),
               v = weft_input(g, "v", WEFT_F32, WEFT_DIMS(hidden));
    weft_value n = weft_einsum_n(WEFT_DIMS(batch), WEFT_VALUES(x, w, v));
    CHECK_EQ_INT(weft_node_of(g, n.id)->in[0], x.id);
    CHECK(has_dims((weft_value){g, weft_node_of(g, n.id)->in[1]}, WEFT_DIMS(pixel)));
    weft_value a = weft_input(g, "a", WEFT_F32, WEFT_DIMS(batch)),
               b = weft_input(g, "b", WEFT_F32, WEFT_DIMS(out)),
               c = weft_input(g, "c", WEFT_F32, WEFT_DIMS(far));
    n = weft_einsum_n(WEFT_SCALAR, WEFT_VALUES(a, a, a));
    CHECK_EQ_INT(weft_node_of(g, n.id)->in[1], a.id);
    weft_value all[13] = {a, b, c, a, b, c, a, b, c, a, b, c, a};
    CHECK(
        has_dims(weft_einsum_n(WEFT_DIMS(far, out), (weft_values){all, 12}), WEFT_DIMS(far, out)));
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    CHECK_EQ_INT(weft_einsum_n(WEFT_SCALAR, (weft_values){all, 13}).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "13 operands; the most is 12");
    weft_graph_destroy(&g);
}

static void test_every_op_is_in_the_table_once(void)
{
    CHECK(weft_n_ops <= WEFT_MAX_OPS);
    for (int i = 0; i < weft_n_ops; i++) {
        CHECK(weft_ops[i]->infer != NULL && weft_ops[i]->factors != NULL);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(weft_ops[i]->name, weft_ops[k]->name) != 0);
    }
}

int main(void)
{
    RUN(test_types_follow_from_names);
    RUN(test_broadcast_takes_the_order_of_most_dims);
    RUN(test_sizes_that_differ_name_both_and_the_place);
    RUN(test_first_error_stays);
    RUN(test_each_wrong_call_has_its_sentence);
    RUN(test_values_of_two_graphs_do_not_mix);
    RUN(test_inner_nodes_stand_where_the_builder_was_called);
    RUN(test_equal_calls_have_equal_attribute_bytes);
    RUN(test_slots_and_groups_of_many);
    RUN(test_einsum_sums_lone_dims_first);
    RUN(test_einsum_of_many_takes_the_cheapest_order);
    RUN(test_every_op_is_in_the_table_once);
    return weft_test_report();
}
