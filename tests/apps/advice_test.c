/* advice_test: the programs' line of advice, on machines that are written here: what a command is told, the same command with it
 * is predicted to take; a slow rank is told; a healthy one is told nothing.
 */
#include "ops/planted_machine.h"

#include "text_folder.h"

enum { LINE = 4096 };

static const struct {
    const char *name;
    const machine_facts *facts;
} machines[] = {
    {"even", &even}, {"far", &far_is_slow}, {"slow", &slow_links}, {"steps", &dear_steps}};

static void write_machines(void)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        char text[2000], path[1024];
        planted_text(machines[i].facts, text, sizeof text);
        snprintf(path, sizeof path, "%s/%s.json", folder, machines[i].name);
        FILE *file = fopen(path, "w");
        if (!CHECK(file != NULL)) return;
        fputs(text, file);
        fclose(file);
    }
}

static const command_result *plan(const char *command, const char *machine, const char *more)
{
    static command_result r;
    char line[LINE];
    snprintf(line, sizeof line, "%s/%s --dry-run --machine %s/%s.json %s 2>&1", WEFT_TEST_BIN,
             command, folder, machine, more);
    r = command_run_all(line);
    if (!CHECK_EQ_INT(r.status, 0)) printf("%s\n%s\n", line, r.text);
    return &r;
}

/* A time as it is told, in seconds; and what it is told as. */
static double seconds_in(const char *text)
{
    char unit[8] = "";
    double number = 0;
    sscanf(text, "%lf %7[a-z]", &number, unit);
    return number * (strcmp(unit, "us") == 0 ? 1e-6 : strcmp(unit, "ms") == 0 ? 1e-3 : 1);
}

static double predicted(const command_result *r)
{
    const char *at = strstr(r->text, "time on planted (paper): ");
    return at ? seconds_in(at + strlen("time on planted (paper): ")) : 0;
}

#define GPT "gpt train --layers 1 --width 64 --heads 4 --seq 32 --dropout 0 --batch 16"
#define SEQ "seq2seq --batch 32"

static const struct {
    const char *command, *machine, *has; /* has: what the options that are told have among them */
} cases[] = {
    {GPT " --recompute --mesh data:2 --layout batch:data", "even", "--no-recompute"},
    {GPT " --accumulate 8", "steps", "--accumulate 4"},
    {GPT " --mesh data:2 --layout batch:data --zero 3", "slow", "--"},
    {GPT " --mesh model:2,data:2 --layout batch:data,hidden:model,heads:model,vocab:model", "far",
     "--"},
    {GPT " --mesh data:2", "even", "batch:data"},
    {SEQ " --mesh data:2", "even", "batch:data"},
};

/* Times are told with three digits. */
static void test_the_command_with_it_takes_what_is_told(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char options[LINE] = "";
        const command_result *r = plan(cases[i].command, cases[i].machine, "");
        const double now = predicted(r);
        const char *with = strstr(r->text, "\nadvice: with "),
                   *takes = with ? strstr(with, " a step takes ") : NULL;
        if (!CHECK(takes != NULL)) {
            printf("%s\n", cases[i].command);
            continue;
        }
        with += strlen("\nadvice: with ");
        snprintf(options, sizeof options, "%.*s", (int)(takes - with), with);
        const double then = seconds_in(takes + strlen(" a step takes "));
        const char *place = strstr(takes, "in place of ");
        CHECK_TEXT(options, cases[i].has);
        CHECK(place && now > 0);
        if (place) CHECK_CLOSE(seconds_in(place + strlen("in place of ")), now, 6e-3 * now);
        CHECK(then < 0.985 * now);
        CHECK_CLOSE(predicted(plan(cases[i].command, cases[i].machine, options)), then,
                    6e-3 * then);
    }
}

static void test_a_slow_rank_is_told(void)
{
    const command_result *r =
        plan(GPT " --mesh data:2 --layout batch:data", "even", "--slow 1:1.5");
    CHECK_TEXT(r->text, "\nadvice: rank 1 takes 1.5 times as long as the others");
    CHECK_TEXT(r->text, "give its part to another host");
}

/* One rank, on a machine whose steps cost nothing of their own, has no better neighbour. */
static void test_a_healthy_plan_is_told_nothing(void)
{
    CHECK(strstr(plan(GPT, "even", "")->text, "advice") == NULL);
    CHECK(strstr(plan(SEQ, "even", "")->text, "advice") == NULL);
    CHECK(strstr(plan(GPT, "even", "--json")->text, "advice") == NULL);
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "advice"))) return weft_test_report();
    write_machines();
    RUN(test_the_command_with_it_takes_what_is_told);
    RUN(test_a_slow_rank_is_told);
    RUN(test_a_healthy_plan_is_told_nothing);
    text_folder_close();
    return weft_test_report();
}
