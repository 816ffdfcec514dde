/* search_test: the command that a search prints makes the plan whose seconds and bytes the search told; what does not go together gets a
 * sentence. No time is looked at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/command.h"
#include "apps/text_folder.h"
#include "test.h"

#define GPT     WEFT_TEST_BIN "/gpt search --layers 1 --width 32 --heads 2 --seq 16 --batch 8 "
#define SEQ2SEQ WEFT_TEST_BIN "/seq2seq search "

static void check_refused(const char *line, const char *sentence)
{
    const command_result *r = text_folder_run(line);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, sentence);
}

/* The text behind the first `name` behind `from`; "" where there is none. */
static const char *behind(const char *from, const char *name)
{
    const char *at = from ? strstr(from, name) : NULL;
    return at ? at + strlen(name) : "";
}

static double number(const char *from, const char *name)
{
    return strtod(behind(from, name), NULL);
}

/* Of the first best, or of the chosen one. */
static void check_command_of(const char *search, const char *list)
{
    char line[4096];
    const command_result *r = text_folder_run(search);
    CHECK_EQ_INT(r->status, 0);
    const char *best = behind(r->text, list);
    const double seconds = number(best, "\"seconds\":"), bytes = number(best, "\"bytes\":");
    const char *command = behind(best, "\"command\": \"");
    const int letters = (int)strcspn(command, "\"");
    CHECK(letters > 10 && seconds > 0 && bytes > 0);
    /* of the whole and not of its parts: two blanks in front */
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/%.*s --dry-run --json | grep -E '^  .(seconds|peak)'", letters,
             command);
    r = text_folder_run(line);
    CHECK_EQ_INT(r->status, 0);
    CHECK(number(r->text, "\"seconds\":") == seconds);
    CHECK(number(r->text, "\"peak\":") == bytes);
}

static void check_command(const char *search)
{
    check_command_of(search, "\"best\"");
    check_command_of(search, "\"chosen\"");
}

/* Choices within a tie are as quick: then the plainest is what is printed, and data parallel where it is one. On one machine whose ranks
 * share all cores nothing is quicker than it by more. */
static void test_of_a_tie_the_plainest_is_chosen(void)
{
    const command_result *r = text_folder_run(GPT "--json --ranks 2 --machine laptop --plans 24");
    CHECK_EQ_INT(r->status, 0);
    const double tie = number(r->text, "\"tie_seconds\":");
    const char *best = behind(r->text, "\"best\""), *chosen = behind(r->text, "\"chosen\"");
    CHECK(number(best, "\"seconds\":") * 1.03 == tie);
    CHECK(number(chosen, "\"seconds\":") < tie);
    const char *command = behind(chosen, "\"command\": \"");
    CHECK(strstr(command, "--mesh") && strcspn(command, ",") > strcspn(command, "\""));
    char line[2048];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(command, "\""), command);
    r = text_folder_run(GPT "--ranks 2 --machine laptop --plans 24");
    CHECK_TEXT(r->text, line);
}

/* Eight cores: predictions of 32 ranks tell fewer choices apart. */
static void test_a_tie_is_wider_where_ranks_share_cores(void)
{
    const command_result *r = text_folder_run(GPT "--json --ranks 32 --machine laptop --plans 12");
    CHECK_EQ_INT(r->status, 0);
    CHECK(number(behind(r->text, "\"best\""), "\"seconds\":") * 1.12 ==
          number(r->text, "\"tie_seconds\":"));
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

/* The quickest by the clock is chosen, of the one asked for and the tie's plainest. */
static void test_the_plainest_of_a_tie_is_measured_too(void)
{
    char search[512], measured[512];
    snprintf(search, sizeof search,
             WEFT_TEST_BIN "/gpt search --json --ranks 4 --machine laptop --plans 24");
    snprintf(measured, sizeof measured, "%s --measure 1", search);
    const command_result *r = text_folder_run(search);
    CHECK_EQ_INT(r->status, 0);
    CHECK(number(behind(r->text, "\"best\""), "\"seconds\":") <
          number(behind(r->text, "\"chosen\""), "\"seconds\":"));
    r = text_folder_run(measured);
    CHECK_EQ_INT(r->status, 0);
    CHECK_EQ_INT(count(r->text, "\"measured_seconds\": ") -
                     count(r->text, "\"measured_seconds\": null"),
                 2 + 1);
}

static void test_the_command_makes_the_plan_that_was_told(void)
{
    check_command(GPT "--json --ranks 4 --machine laptop --plans 12");
    check_command(GPT "--json --ranks 8 --machine h100x8 --plans 12 --recompute --vary mesh,zero "
                      "--mesh data:4,model:2 --layout batch:data,hidden:model,heads:model");
    check_command(SEQ2SEQ "--json --ranks 2 --machine laptop --plans 4");
    check_command(GPT "--json --ranks 2 --machine h100x8 --plans 12 --vary zero,dtype "
                      "--mesh data:2 --layout batch:data --dtype f16");
}

/* What is asked for alone varies where it is named. */
static void test_dtype_and_halves_vary_where_they_are_named(void)
{
    const command_result *r = text_folder_run(
        GPT "--ranks 2 --machine h100x8 --vary zero,dtype --mesh data:2 --layout batch:data");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, ": 12 choices");
    CHECK_TEXT(r->text, " --dtype bf16");
    CHECK_TEXT(r->text, " --dtype f16");
    r = text_folder_run(GPT "--ranks 2 --machine h100x8 --vary zero --mesh data:2 "
                            "--layout batch:data");
    CHECK_TEXT(r->text, ": 4 choices");
    r = text_folder_run(GPT "--layers 2 --ranks 2 --machine h100x8 --vary halves --mesh pipe:2 "
                            "--layout stage:pipe --stages 2 --micro 2");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, ": 2 choices");
    CHECK_TEXT(r->text, " --halves");
}

/* However soon it has to end, data parallel is looked at. */
static void test_time_that_is_over_is_told(void)
{
    const command_result *r = text_folder_run(GPT "--ranks 4 --machine laptop --within 0.000001s");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "planned ");
    CHECK_TEXT(r->text, "were not listed in time");
    CHECK_TEXT(r->text, "--mesh data:4 --layout batch:data\n");
    r = text_folder_run(GPT "--layers 24 --ranks 4 --machine laptop --within 0.000001s");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "time was over");
}

static void test_the_text_has_all_parts(void)
{
    const command_result *r =
        text_folder_run(GPT "--ranks 2 --machine laptop --plans 12 --measure 2");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "2 ranks on laptop: ");
    CHECK_TEXT(r->text, "planned ");
    CHECK_TEXT(r->text, "measured");
    CHECK_TEXT(r->text, "why, beside the second");
    CHECK_TEXT(r->text, "\ngpt train --layers 1 --width 32 --heads 2 --seq 16 --batch 8 "
                        "--machine laptop --mesh ");
}

static void test_a_search_finds_the_same_again(void)
{
    static char first[1 << 16];
    const char *line = GPT "--ranks 4 --machine h100x8 --plans 20";
    snprintf(first, sizeof first, "%s", text_folder_run(line)->text);
    CHECK(strcmp(text_folder_run(line)->text, first) == 0);
}

static void test_bad_input_is_told(void)
{
    check_refused(GPT "--machine laptop", "give --ranks");
    check_refused(GPT "--ranks 4", "search wants a machine");
    check_refused(GPT "--ranks 4 --machine laptob", "laptop");
    check_refused(GPT "--ranks 4 --machine laptop --vary recompte", "did you mean recompute?");
    check_refused(GPT "--ranks 4 --machine laptop --memory 80XB", "as 80GB");
    check_refused(GPT "--ranks 4 --machine laptop --memory 1kB", "no choice fits into --memory");
    check_refused(GPT "--ranks 263 --machine laptop", "263 ranks: no mesh");
    check_refused(GPT "--ranks 4 --machine laptop --dry-run", "leave --dry-run away");
    check_refused(GPT "--ranks 4 --machine laptop --within 1", "within");
    check_refused(WEFT_TEST_BIN "/gpt train --ranks 4", "--ranks is about a search");
    check_refused(WEFT_TEST_BIN "/seq2seq --vary mesh", "--vary is about a search");
    check_refused(WEFT_TEST_BIN "/gpt serch", "did you mean search?");
}

static void test_one_rank_and_prime_ranks(void)
{
    CHECK_EQ_INT(text_folder_run(GPT "--ranks 1 --machine laptop")->status, 0);
    const command_result *r = text_folder_run(GPT "--ranks 7 --machine laptop --plans 6");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, ":7");
}

int main(void)
{
    if (CHECK(text_folder_open("/dev/shm", "search") || text_folder_open("/tmp", "search"))) {
        RUN(test_the_command_makes_the_plan_that_was_told);
        RUN(test_of_a_tie_the_plainest_is_chosen);
        RUN(test_a_tie_is_wider_where_ranks_share_cores);
        RUN(test_the_plainest_of_a_tie_is_measured_too);
        RUN(test_the_text_has_all_parts);
        RUN(test_a_search_finds_the_same_again);
        RUN(test_dtype_and_halves_vary_where_they_are_named);
        RUN(test_time_that_is_over_is_told);
        RUN(test_bad_input_is_told);
        RUN(test_one_rank_and_prime_ranks);
        text_folder_close();
    }
    return weft_test_report();
}
