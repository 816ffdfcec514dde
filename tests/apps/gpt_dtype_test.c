/* gpt_dtype_test: gpt in bf16 and f16: where it ends, under which layouts, and what an unknown type is told. */
#include "text_folder.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 120, TEXT = 4096 };

#define SMALL                                                                                      \
    "--layers 2 --width 24 --heads 3 --batch 6 --seq 12 --steps 120 --warmup 10 --rate 3e-3 "      \
    "--dropout 0 --quiet "

/* The losses of all steps of a training with `arguments`; returns how many there are. */
static int train(const char *arguments, double losses[STEPS])
{
    static int n_runs;
    char line[TEXT], path[256];
    snprintf(path, sizeof path, "%s/metrics%d.jsonl", folder, ++n_runs);
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/run%d " SMALL "--metrics %s %s",
             folder, folder, n_runs, path, arguments);
    const command_result r = command_run(line);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    return text_folder_losses(path, losses, STEPS);
}

/* Of the last steps: one batch more or less says little. */
static double end_of(const double losses[STEPS])
{
    enum { LAST = 20 };
    double sum = 0;
    for (int i = STEPS - LAST; i < STEPS; i++)
        sum += losses[i] / LAST;
    return sum;
}

static void test_sixteen_bits_end_where_f32_ends(void)
{
    static const char *const types[] = {"--dtype bf16", "--dtype f16"};
    double full[STEPS] = {0}, half[STEPS] = {0};
    CHECK_EQ_INT(train("--dtype f32", full), STEPS);
    CHECK(end_of(full) < 0.7 * full[0]);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_INT(train(types[i], half), STEPS);
        CHECK_CLOSE(end_of(half), end_of(full), 0.02 * end_of(full));
    }
}

static void test_layouts_agree(void)
{
    static const char *const types[] = {"bf16", "f16"};
    static const char *const layouts[] = {
        "--mesh data:2 --layout batch:data --zero 3",
        "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 1"};
    for (int t = 0; t < 2; t++) {
        double alone[STEPS] = {0}, split[STEPS] = {0};
        char arguments[256];
        snprintf(arguments, sizeof arguments, "--dtype %s", types[t]);
        CHECK_EQ_INT(train(arguments, alone), STEPS);
        for (int i = 0; i < 2; i++) {
            snprintf(arguments, sizeof arguments, "--dtype %s %s", types[t], layouts[i]);
            CHECK_EQ_INT(train(arguments, split), STEPS);
            for (int k = 0; k < STEPS; k++)
                CHECK_CLOSE(split[k], alone[k], 2e-2 * alone[k]);
        }
    }
}

/* Continued in the middle it is the same training, to the bit: the loss scale and the count of updates are saved. */
static void test_it_goes_on_where_it_was(void)
{
    double whole[STEPS] = {0};
    char line[TEXT];
    CHECK_EQ_INT(train("--dtype f16", whole), STEPS);
    for (int until = 50; until <= STEPS; until += STEPS - 50) {
        snprintf(line, sizeof line,
                 WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/parts " SMALL
                               "--dtype f16 --until %d",
                 folder, folder, until);
        const command_result r = command_run(line);
        weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    }
    snprintf(line, sizeof line, "tail -1 %s/parts/metrics.jsonl", folder);
    const command_result last = command_run_all(line);
    const char *at = strstr(last.text, "\"loss\":");
    CHECK(at != NULL && atof(at + strlen("\"loss\":")) == whole[STEPS - 1]);
}

static void test_an_unknown_type_is_told_the_nearest(void)
{
    char line[TEXT];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt train --run %s/none --dtype bf61", folder);
    const command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_TEXT(r.text, "bf16?");
    CHECK_TEXT(r.text, "f32 f64 bf16 f16");
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "dtype"))) {
        RUN(test_sixteen_bits_end_where_f32_ends);
        RUN(test_layouts_agree);
        RUN(test_it_goes_on_where_it_was);
        RUN(test_an_unknown_type_is_told_the_nearest);
        text_folder_close();
    }
    return weft_test_report();
}
