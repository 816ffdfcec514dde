/* links_test: weft info --links prints what --link takes; gpt --link measured writes it into run.json, and a start that continues
 * the run takes it from there; what is no speed gets a sentence.
 */
#include <stdio.h>
#include <string.h>

#include "apps/command.h"
#include "apps/text_folder.h"
#include "test.h"

#define TWO_RANKS WEFT_TEST_MPIEXEC " --oversubscribe -n 2 "
#define INFO      WEFT_TEST_BIN "/weft info --links --mesh data:2,one:1"
#define GPT                                                                                        \
    WEFT_TEST_BIN "/gpt train --layers 1 --width 16 --heads 2 --seq 8 --batch 4 --quiet --steps 4"

static void test_info_prints_what_link_takes(void)
{
    char link[128] = "", line[1024];
    const command_result *r = text_folder_run(INFO);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "over data: ");
    CHECK_TEXT(r->text, "within a host");
    CHECK(strstr(r->text, "over one: ") == NULL);
    const char *at = strstr(r->text, "--link ");
    if (!CHECK(at != NULL && sscanf(at, "--link %127s", link) == 1)) return;
    CHECK(strncmp(link, "data:", 5) == 0 && strchr(link, '+') != NULL);
    snprintf(line, sizeof line, GPT " --mesh data:2 --layout batch:data --dry-run --link %s", link);
    r = text_folder_run(line);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, link);
    CHECK_TEXT(text_folder_run(INFO " --json")->text, "\"link\": \"data:");
    CHECK_TEXT(text_folder_run(WEFT_TEST_BIN "/weft info --links --mesh data:1")->text,
               "no axis has two");
}

static void check_run(const char *ranks)
{
    char line[1024], first[256];
    snprintf(line, sizeof line,
             "rm -rf r; %s" GPT
             " --mesh data:2 --layout batch:data --run r --link measured --until 2 && "
             "grep -A2 measured_link r/run.json",
             ranks);
    const command_result *r = text_folder_run(line);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "data:");
    snprintf(first, sizeof first, "%s", r->text);
    snprintf(line, sizeof line,
             "%s" GPT " --mesh data:2 --layout batch:data --run r --link measured && "
             "grep -A2 measured_link r/run.json",
             ranks);
    r = text_folder_run(line);
    CHECK_EQ_INT(r->status, 0);
    CHECK(strcmp(r->text, first) == 0);
}

static void test_a_run_measures_once(void)
{
    check_run("");
    if (WEFT_TEST_MPIEXEC[0] != '\0') check_run(TWO_RANKS);
}

static void test_what_is_no_speed(void)
{
    const command_result *r = text_folder_run(GPT " --dry-run --link measurd");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "did you mean measured?");
    r = text_folder_run(GPT " --mesh data:2 --dry-run --link measured");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "a plan has none");
}

int main(void)
{
    if (CHECK(text_folder_open("/dev/shm", "links") || text_folder_open("/tmp", "links"))) {
        RUN(test_info_prints_what_link_takes);
        RUN(test_a_run_measures_once);
        RUN(test_what_is_no_speed);
        text_folder_close();
    }
    return weft_test_report();
}
