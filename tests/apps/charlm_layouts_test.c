/* RANKS: 2 3 4 */
/* charlm_layouts_test: nets of charlm, two layers and dropout: with the batch, the sequence, the hidden numbers, heads or bytes over
 * ranks, the losses of one rank to 1e-10.
 */
#include "apps/charlm/model.h"
#include "net_layouts.h"

static void build(net *n, const void *argument)
{
    const charlm_model m = charlm_build(n->graph, argument);
    n->loss = charlm_loss(n->graph, &m);
    net_input(n, m.tokens, 256);
    net_input(n, weft_graph_find(n->graph, "targets", NULL), 256);
    if (m.goes_on.id != 0) net_input(n, m.goes_on, 2);
    n->beside = m.carried;
}

static const net_layout layouts[] = {
    {"data:2", "batch:data", 0},
    {"data:2", "batch:data", 3},
    {"model:2", "hidden:model,vocab:model", 0},
    {"model:3", "hidden:model,vocab:model", 0},
    {"model:2", "embed:model", 0},
    {"model:3", "seq:model", 0},
    {"data:2,model:2", "batch:data,hidden:model,vocab:model", 1},
};
static const net_layout of_heads[] = {
    {"model:3", "heads:model,hidden:model,vocab:model", 0},
    {"data:2,model:2", "batch:data,heads:model,hidden:model", 3},
};

static weft_oracle oracle;

/* Hardly anything divides: 5 windows of 7 bytes, 9 hidden numbers. */
static void check(const char *kind, bool carries, const net_layout *where, int n)
{
    const charlm_shape shape = {charlm_find(kind), 5, 7, 2, 9, 3, 0.1, WEFT_F64, carries};
    net_check(&oracle, kind, build, &shape, where, n);
}

static void test_every_layout_is_one_rank(void)
{
    static const char *const kinds[] = {"lstm", "gru", "transformer"};
    for (int i = 0; i < 3; i++)
        check(kinds[i], false, layouts, sizeof layouts / sizeof *layouts);
    check("transformer", false, of_heads, sizeof of_heads / sizeof *of_heads);
}

/* Some rows go on from the state of the run before, some begin anew. */
static void test_carried_states_are_those_of_one_rank(void)
{
    check("lstm", true, layouts, sizeof layouts / sizeof *layouts);
    check("gru", true, layouts, sizeof layouts / sizeof *layouts);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "model:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_every_layout_is_one_rank);
        RUN(test_carried_states_are_those_of_one_rank);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
