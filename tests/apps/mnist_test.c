/* mnist_test: the perceptron reaches 94 % on unseen digits, under every layout the same number of
 * steps long, the convolutional net 97.5 %, with batch, rows and channels over ranks with the losses of one; less where there are
 * fewer steps. */
#include "command.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static const char data[] = WEFT_TEST_DATA "/../../shared/data/mnist-t10k";

static const char *const meshes[] = {
    "",
    "--mesh data:2 --layout batch:data --zero 3",
    "--mesh model:2 --layout hidden:model",
    "--mesh data:2,model:2 --layout batch:data,hidden:model",
    "--mesh model:3 --layout pixel:model,digit:model",
};
enum { N_MESHES = sizeof meshes / sizeof meshes[0] };

/* What mnist prints, of a run of its own in `folder`; text of r lives until the next. */
static const command_result *learn(const char *folder, const char *name, int steps,
                                   const char *options)
{
    static command_result r;
    char line[1024];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/mnist --data %s --run %s/%s --steps %d %s 2>&1",
             data, folder, name, steps, options);
    r = command_run_all(line);
    return &r;
}

static void check_accuracy(const command_result *r, double least)
{
    const char *at = strstr(r->text, "test accuracy ");
    weft_test_check(r->status == 0 && at != NULL && atof(at + strlen("test accuracy ")) >= least,
                    __FILE__, __LINE__, r->text);
}

static void test_every_layout_learns(void)
{
    const int steps = weft_test_cases(400);
    const double least = steps < 400 ? 70 : 94;
    char folder[] = "/tmp/weft-mnist-XXXXXX", line[1024];
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    for (int i = 0; i < N_MESHES; i++) {
        snprintf(line, sizeof line, "%d", i);
        check_accuracy(learn(folder, line, steps, meshes[i]), least);
    }
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
}

/* --model cnn: few steps print the same loss under every split; 400 learn. */
static void test_the_convolutional_net_learns(void)
{
    static const char *const splits[] = {
        "--mesh data:2 --layout batch:data", "--mesh space:2 --layout row:space",
        "--mesh model:2 --layout channel:model,feature:model,hidden:model"};
    char folder[] = "/tmp/weft-mnist-XXXXXX", line[1024], name[20], one[200] = "";
    const int steps = weft_test_cases(400);
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    const char *few = "--model cnn --dtype f64 --batch 20 --channels 4 --hidden 16";
    snprintf(one, sizeof one, "%.*s", (int)sizeof one - 1, learn(folder, "one", 5, few)->text);
    CHECK_TEXT(one, "step     5   loss ");
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "%s %s", few, splits[i]);
        snprintf(name, sizeof name, "split%d", i);
        CHECK_TEXT(learn(folder, name, 5, line)->text, one);
    }
    check_accuracy(learn(folder, "all", steps, "--model cnn --channels 8 --hidden 128"),
                   steps < 400 ? 80 : 97.5);
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
}

/* Digits of a pen of ours: the same bytes each time, and learned; they are named where no files are. */
static void test_drawn_digits_are_learned(void)
{
    char folder[] = "/tmp/weft-mnist-XXXXXX", line[1024];
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    snprintf(
        line, sizeof line,
        "cd %s && " WEFT_TEST_BIN "/mnist draw a && " WEFT_TEST_BIN "/mnist draw deep/er && "
        "diff -r a deep/er && wc -c <a/t10k-images-idx3-ubyte && wc -c <a/t10k-labels-idx1-ubyte",
        folder);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "\n7840016\n10008\n");
    snprintf(line, sizeof line, WEFT_TEST_BIN "/mnist --data %s/a --run %s/run --steps 100 2>&1",
             folder, folder);
    const command_result learned = command_run_all(line);
    check_accuracy(&learned, 90);
    snprintf(line, sizeof line, WEFT_TEST_BIN "/mnist --data %s/none --run %s/none", folder,
             folder);
    const command_result none = command_run(line);
    CHECK_EQ_INT(none.status, 2);
    CHECK_TEXT(none.text, "mnist draw DIR");
    snprintf(line, sizeof line, WEFT_TEST_BIN "/mnist draw");
    const command_result nowhere = command_run(line);
    CHECK_EQ_INT(nowhere.status, 2);
    CHECK_TEXT(nowhere.text, "draw wants one folder");
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
}

int main(void)
{
    RUN(test_drawn_digits_are_learned);
    if (access(data, R_OK) != 0)
        weft_test_skip("the MNIST files are not there: ../shared/data/mnist-t10k");
    else {
        RUN(test_every_layout_learns);
        RUN(test_the_convolutional_net_learns);
    }
    return weft_test_report();
}
