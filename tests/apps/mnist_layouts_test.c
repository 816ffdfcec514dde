/* RANKS: 2 3 4 */
/* mnist_layouts_test: both nets of mnist, dropout and all: with the batch, the rows or columns of images, the channels or the hidden
 * numbers over ranks, the losses of one rank to 1e-10.
 */
#include "apps/mnist/model.h"
#include "net_layouts.h"

static void build(net *n, const void *argument)
{
    const mnist_model m = mnist_build(n->graph, argument);
    n->loss = m.loss;
    net_input(n, m.image, 0);
    net_input(n, m.label, 10);
}

/* Hardly anything divides: 7 images, 5 channels, 9 hidden numbers. */
static const mnist_shape cnn = {true, 7, 5, 9, 0.1, WEFT_F64, 10},
                         mlp = {false, 7, 5, 9, 0.1, WEFT_F64, 10};
static const net_layout of_cnn[] = {
    {"data:2", "batch:data", 0},
    {"data:2", "batch:data", 3},
    {"space:2", "row:space", 0},
    {"space:2", "row:space,pixel:space", 0},
    {"space:3", "row:space", 0},
    {"space:3", "column:space", 0},
    {"model:2", "channel:model,feature:model,hidden:model", 0},
    {"model:3", "channel:model,feature:model", 0},
    {"model:2", "digit:model,hidden:model", 0},
    {"data:2,space:2", "batch:data,row:space", 0},
    {"data:2,space:2", "row:data,column:space", 0},
    {"data:2,model:2", "batch:data,channel:model,feature:model,hidden:model", 1},
};
static const net_layout of_mlp[] = {
    {"data:2", "batch:data", 3},
    {"model:3", "hidden:model", 0},
    {"model:3", "pixel:model,digit:model", 0},
    {"data:2,model:2", "batch:data,hidden:model", 0},
};

static weft_oracle oracle;

static void test_every_layout_of_the_convolutional_net_is_one_rank(void)
{
    net_check(&oracle, "cnn", build, &cnn, of_cnn, sizeof of_cnn / sizeof *of_cnn);
}

static void test_every_layout_of_the_perceptron_is_one_rank(void)
{
    net_check(&oracle, "mlp", build, &mlp, of_mlp, sizeof of_mlp / sizeof *of_mlp);
}

int main(void)
{
    static const char *const meshes[] = {"data:2",  "space:2",        "space:3",       "model:2",
                                         "model:3", "data:2,space:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 7, &error), error)) {
        RUN(test_every_layout_of_the_convolutional_net_is_one_rank);
        RUN(test_every_layout_of_the_perceptron_is_one_rank);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
