/* attention_test: attention as a builder: what it refuses, and in which words. */
#include <string.h>

#include "test.h"
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
        {batch, memory, kv, "q and k must share all dims but the rows of q and the rows of k"},
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

int main(void)
{
    RUN(test_dims_that_cannot_be_are_refused);
    return weft_test_report();
}
