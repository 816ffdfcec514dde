/* gpt_sample_test: text by a trained model, as its user asks for it: the same under every layout, and what is refused. */
#include "text_folder.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { TEXT = 2048 };

#define SMALL "--layers 2 --width 24 --heads 3 --batch 6 --seq 12 --steps 20 --dtype f64 --quiet "

/* As many bytes as asked for, by the model of the run directory, the same under every layout. 50 bytes: the window is full
 * after 12, and moves on. */
static void check_text(const char *launcher, const char *arguments, char *expected)
{
    char line[4 * TEXT];
    snprintf(line, sizeof line, "%s " WEFT_TEST_BIN "/gpt sample --run %s/model --sample 50 %s",
             launcher, folder, arguments);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK(strlen(r.text) >= 50);
    if (expected[0] == '\0') snprintf(expected, 200, "%s", r.text);
    CHECK(strcmp(r.text, expected) == 0);
}

/* At temperature 0 no seed changes anything; `moved`: a file of the run that is away meanwhile. */
static void check_likeliest(const char *moved, char *expected)
{
    char line[TEXT];
    snprintf(line, sizeof line, "cd %s/model && mv %s kept", folder, moved);
    CHECK_EQ_INT(system(line), 0);
    check_text("", "--temperature 0 --seed 1", expected);
    check_text("", "--temperature 0 --seed 2", expected);
    snprintf(line, sizeof line, "cd %s/model && mv kept %s", folder, moved);
    CHECK_EQ_INT(system(line), 0);
}

static void test_sample_is_the_same_everywhere(void)
{
    static const char *const models[] = {"", "--heads 4 --kv-heads 2 --rope --norm rms --tie",
                                         "--scan-layers"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char line[4 * TEXT], text[200] = "";
        snprintf(line, sizeof line,
                 WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/model " SMALL "%s", folder,
                 folder, models[i]);
        CHECK_EQ_INT(command_run_all(line).status, 0);
        check_text("", "", text);
        check_text("", "--mesh data:2 --layout batch:data", text);
        check_text("", "--mesh model:2 --layout heads:model,hidden:model,seq:model", text);
        if (WEFT_TEST_MPIEXEC[0] != '\0')
            check_text(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe",
                       "--mesh model:2 --layout heads:model,hidden:model,vocab:model", text);
        char likeliest[200] = "";
        check_likeliest("log.txt", likeliest);
        CHECK(strcmp(likeliest, text) != 0);
        if (i != 1) check_likeliest("run.json", likeliest); /* tensors say the model's options */
        if (i + 1 == sizeof models / sizeof *models) break;
        snprintf(line, sizeof line, "rm -r %s/model", folder);
        CHECK_EQ_INT(command_run_all(line).status, 0);
    }
}

static void test_sample_refuses_another_model(void)
{
    char line[TEXT];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt sample --run %s/model --width 48", folder);
    const command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_EQ_INT(command_lines(r.text, "gpt: "), 1);
    CHECK_TEXT(r.text, "[vocab:256, embed:24]");
    CHECK_TEXT(r.text, "[vocab:256, embed:48]; what the run has is taken without --width\n");
}

/* As after an import: no run.json. Nobody said an option, so none is to be left away. */
static void test_sample_of_a_checkpoint_alone(void)
{
    char line[TEXT];
    static const char *const form = "--heads 4 --kv-heads 2 --rope --norm rms --tie";
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/alone " SMALL
                           "%s && rm %s/alone/run.json",
             folder, folder, form, folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt sample --sample 9 --run %s/alone", folder);
    command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 0);
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/several " SMALL
                           "--stages 2 && rm %s/several/run.json",
             folder, folder, folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt sample --sample 9 --run %s/several", folder);
    r = command_run(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_TEXT(r.text, "give options of the model as it was trained with");
    CHECK(strstr(r.text, "without") == NULL);
}

static void test_sample_wants_a_trained_model(void)
{
    char line[TEXT];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt sample --run %s/nowhere", folder);
    const command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_EQ_INT(command_lines(r.text, "gpt: "), 1);
    CHECK_TEXT(r.text, "nowhere");
    CHECK_TEXT(r.text, "gpt train");
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "gpt-sample"))) {
        RUN(test_sample_is_the_same_everywhere);
        RUN(test_sample_refuses_another_model);
        RUN(test_sample_of_a_checkpoint_alone);
        RUN(test_sample_wants_a_trained_model);
        text_folder_close();
    }
    return weft_test_report();
}
