/* mnist_test: the perceptron reaches 94 % on unseen digits, under every layout the same number of
 * steps long; 70 % where there are fewer steps. */
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

static void test_every_layout_learns(void)
{
    const int steps = weft_test_cases(400);
    const double least = steps < 400 ? 70 : 94;
    char folder[] = "/tmp/weft-mnist-XXXXXX", line[1024];
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    for (int i = 0; i < N_MESHES; i++) {
        snprintf(line, sizeof line, WEFT_TEST_BIN "/mnist --data %s --run %s/%d --steps %d %s 2>&1",
                 data, folder, i, steps, meshes[i]);
        const command_result r = command_run_all(line);
        const char *at = strstr(r.text, "test accuracy ");
        weft_test_check(r.status == 0 && at != NULL && atof(at + strlen("test accuracy ")) >= least,
                        __FILE__, __LINE__, r.text);
    }
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
}

int main(void)
{
    if (access(data, R_OK) != 0)
        weft_test_skip("the MNIST files are not there: ../shared/data/mnist-t10k");
    else
        RUN(test_every_layout_learns);
    return weft_test_report();
}
