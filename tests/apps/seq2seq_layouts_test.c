/* RANKS: 2 3 4 */
/* seq2seq_layouts_test: nets of seq2seq, two layers and dropout: with the batch, hidden numbers, heads, letters or what is read over
 * ranks, the losses of one rank to 1e-10. And the words: of each stream its own, half of them to be turned round and half to be put in
 * order.
 */
#include "apps/seq2seq/model.h"
#include "apps/seq2seq/words.h"
#include "net_layouts.h"

static void build(net *n, const void *argument)
{
    const seq2seq_model m = seq2seq_build(n->graph, argument);
    n->loss = seq2seq_loss(n->graph, &m);
    net_input(n, m.read, 7);
    net_input(n, m.written, 7);
    net_input(n, weft_graph_find(n->graph, "wanted", NULL), 7);
}

static const net_layout layouts[] = {
    {"data:2", "batch:data", 0},
    {"data:2", "batch:data", 3},
    {"model:2", "hidden:model,heads:model,vocab:model", 0},
    {"model:3", "hidden:model,heads:model,vocab:model", 0},
    {"model:2", "embed:model", 0},
    {"model:3", "source:model", 0},
    {"model:2", "target:model", 0},
    {"data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 1},
};

static weft_oracle oracle;

/* Hardly anything divides: 5 words of 4 letters, 9 hidden numbers, 7 letters. */
static void test_every_layout_is_one_rank(void)
{
    static const char *const kinds[] = {"lstm", "transformer"};
    for (int i = 0; i < 2; i++) {
        const seq2seq_shape shape = {seq2seq_find(kinds[i]), 5, 5, 4, 7, 2, 9, 3, 0.1, WEFT_F64};
        net_check(&oracle, kinds[i], build, &shape, layouts, sizeof layouts / sizeof *layouts);
    }
}

/* ---- words --------------------------------------------------------------------------------------- */

static bool is_wanted(const int32_t *read, const int32_t *wanted)
{
    int counts[5] = {0};
    bool is_turned = true, is_sorted = true;
    for (int i = 0; i < 6; i++) {
        is_turned = is_turned && wanted[i] == read[6 - i];
        is_sorted = is_sorted && (i == 0 || wanted[i - 1] <= wanted[i]);
        counts[wanted[i]]++, counts[read[1 + i]]--;
    }
    for (int i = 0; i < 5; i++)
        is_sorted = is_sorted && counts[i] == 0;
    return read[0] == 5 ? is_turned : read[0] == 6 && is_sorted;
}

static void test_words_are_turned_round_or_put_in_order(void)
{
    const words w = {5, 6, 3, 1}, other = {5, 6, 3, 2};
    int n_turned = 0, n_same = 0;
    bool is_right = true;
    for (int i = 0; i < 1000; i++) {
        int32_t read[7], wanted[6], begun[6], others[7];
        words_read(&w, i, read);
        words_wanted(&w, i, wanted);
        words_begun(&w, wanted, begun);
        words_read(&other, i, others);
        is_right = is_right && is_wanted(read, wanted) && begun[0] == 5 &&
                   memcmp(begun + 1, wanted, 5 * sizeof *begun) == 0;
        n_turned += read[0] == 5;
        n_same += memcmp(read, others, sizeof read) == 0;
    }
    CHECK(is_right);
    CHECK(n_turned > 430 && n_turned < 570);
    CHECK(n_same < 5);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "model:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_every_layout_is_one_rank);
        RUN(test_words_are_turned_round_or_put_in_order);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
