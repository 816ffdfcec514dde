/* gpt_groups_test: gpt --groups: weights with other options, by patterns of their names; an invalid group is
 * refused. */
#include "text_folder.h"

#include "apps/gpt/groups.h"
#include "test.h"

enum { STEPS = 6, TEXT = 2048 };

#define SMALL "--layers 1 --width 16 --heads 2 --batch 4 --seq 8 --steps 6 --dtype f64 --quiet "

/* ---- a text -------------------------------------------------------------------------------------------- */

static void test_a_text_is_groups_in_its_order(void)
{
    gpt_groups g;
    weft_error error = {0};
    CHECK_OK(gpt_groups_read("*.bias:decay=0;bytes:rate=0.3,optimizer=sgd,decay=0.2", &g, &error),
             error);
    CHECK_EQ_INT(g.n, 2);
    CHECK_TEXT(g.list[0].pattern, "*.bias");
    CHECK(g.list[0].weight_decay < 0 && g.list[0].rate_scale == 0 && g.list[0].optimizer == NULL);
    CHECK_TEXT(g.list[1].pattern, "bytes");
    CHECK(g.list[1].weight_decay == 0.2 && g.list[1].rate_scale == 0.3);
    CHECK_TEXT(g.list[1].optimizer, "sgd");
    CHECK_OK(gpt_groups_read("", &g, &error), error);
    CHECK_EQ_INT(g.n, 0);
}

static void check_refused(const char *text, const char *says)
{
    gpt_groups g;
    weft_error error = {0};
    CHECK_EQ_INT(gpt_groups_read(text, &g, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, says);
}

static void test_what_is_no_group_is_refused(void)
{
    check_refused("*.bias", "\"*.bias\" is no PATTERN:WHAT=VALUE");
    check_refused(":decay=0", "is no PATTERN:WHAT=VALUE");
    check_refused("*.bias:dekay=0", "\"dekay\" is none of rate=X, decay=X, optimizer=NAME; did you "
                                    "mean decay?");
    check_refused("*.bias:decay", "\"decay\" is none of");
    check_refused("bytes:rate=fast", "rate=fast: it is a number");
    check_refused("bytes:decay=-1", "decay=-1: it is a number, 0 or above");
    check_refused("bytes:rate=0", "bytes has rate=0");
}

/* ---- the program --------------------------------------------------------------------------------------- */

static command_result train(const char *name, const char *arguments)
{
    char line[2 * TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " SMALL
                           "--metrics %s/%s.jsonl %s",
             folder, folder, name, folder, name, arguments);
    return command_run(line);
}

static void losses_of(const char *name, const char *arguments, double *losses)
{
    char metrics[TEXT];
    const command_result r = train(name, arguments);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    snprintf(metrics, sizeof metrics, "%s/%s.jsonl", folder, name);
    CHECK_EQ_INT(text_folder_losses(metrics, losses, STEPS), STEPS);
}

/* A group of all that says what holds anyway changes nothing; another rate does, on every mesh alike. */
static void test_groups_change_what_they_say(void)
{
    double plain[STEPS], same[STEPS], slow[STEPS], split[STEPS];
    losses_of("plain", "", plain);
    losses_of("same", "--groups '*:rate=1,optimizer=adamw'", same);
    losses_of("slow", "--groups 'bytes:rate=0.1;block*:rate=0.5,optimizer=lion'", slow);
    losses_of("split",
              "--groups 'bytes:rate=0.1;block*:rate=0.5,optimizer=lion' --mesh data:2 "
              "--layout batch:data --zero 1",
              split);
    for (int i = 0; i < STEPS; i++) {
        CHECK_CLOSE(same[i], plain[i], 1e-12);
        CHECK_CLOSE(split[i], slow[i], 1e-10);
    }
    CHECK(slow[STEPS - 1] != plain[STEPS - 1]);
}

static void test_nobodys_group_is_refused_by_name(void)
{
    const command_result none = train("none", "--groups 'blok*:rate=2'");
    CHECK_EQ_INT(none.status, 2);
    CHECK_TEXT(none.text, "no variable's name matches blok*");
    const command_result other = train("other", "--groups 'bytes:optimizer=adan'");
    CHECK_EQ_INT(other.status, 2);
    CHECK_TEXT(other.text, "did you mean adam?");
}

int main(void)
{
    RUN(test_a_text_is_groups_in_its_order);
    RUN(test_what_is_no_group_is_refused);
    if (!CHECK(text_folder_open("/tmp", "groups"))) return weft_test_report();
    RUN(test_groups_change_what_they_say);
    RUN(test_nobodys_group_is_refused_by_name);
    text_folder_close();
    return weft_test_report();
}
