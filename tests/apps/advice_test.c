/* advice_test: the programs' line of advice, on machines that are written here: what a command is told, the same command with it
 * is predicted to take; a slow rank is told; a healthy one is told nothing.
 */
#include "ops/planted_machine.h"

#include <jansson.h>

#include "text_folder.h"
#include "weft/mesh.h"

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
}

/* ---- as data ------------------------------------------------------------------------------------ */

static json_t *plan_json(const char *command, const char *machine)
{
    char line[LINE];
    snprintf(line, sizeof line, "%s/%s --dry-run --json --machine %s/%s.json >%s/plan.json",
             WEFT_TEST_BIN, command, folder, machine, folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    snprintf(line, sizeof line, "%s/plan.json", folder);
    json_t *json = json_load_file(line, 0, NULL);
    CHECK(json != NULL);
    return json;
}

static double seconds_of(const json_t *plan)
{
    return json_number_value(json_object_get(json_object_get(plan, "prediction"), "seconds"));
}

/* Each command is typed again, and takes what its entry says: to the last digits. The first is the one of the line. */
static void test_each_command_takes_what_its_entry_says(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += 2) {
        json_t *json = plan_json(cases[i].command, cases[i].machine), *entry;
        const json_t *list = json_object_get(json, "advice");
        size_t k;
        double before = 1;
        CHECK(json_array_size(list) >= 1);
        json_array_foreach(list, k, entry)
        {
            const char *command = json_string_value(json_object_get(entry, "command"));
            const double gain = json_number_value(json_object_get(entry, "gain_seconds")),
                         share = json_number_value(json_object_get(entry, "gain_share"));
            char again[LINE];
            if (!CHECK(command != NULL)) continue;
            snprintf(again, sizeof again, "%s --advice never", command);
            json_t *then = plan_json(again, cases[i].machine);
            CHECK_CLOSE(seconds_of(then), seconds_of(json) - gain, 1e-9 * seconds_of(json));
            CHECK_CLOSE(share, gain / seconds_of(json), 1e-9);
            CHECK(share >= 0.02 && share <= before);
            before = share;
            json_decref(then);
        }
        const char *what = json_string_value(json_object_get(json_array_get(list, 0), "what"));
        CHECK_TEXT(plan(cases[i].command, cases[i].machine, "")->text, what ? what : "(none)");
        json_decref(json);
    }
    json_t *json = plan_json(GPT " --recompute --advice never", "even");
    CHECK(json_object_get(json, "advice") == NULL);
    json_decref(json);
    json = plan_json(GPT, "even");
    CHECK_EQ_INT((long long)json_array_size(json_object_get(json, "advice")), 0);
    CHECK(json_is_array(json_object_get(json, "advice")));
    json_decref(json);
}

/* Two ranks that need seven tenths of this host's memory each: one of them fits, and both do not. The machine's file says that a host
 * has two. */
static void test_the_ranks_of_a_host_share_its_memory(void)
{
    static const char *const wide = GPT " --mesh data:2 --layout batch:data --batch 64";
    char command[LINE];
    json_t *json = plan_json(wide, "even");
    const double peak = json_number_value(json_object_get(json_object_get(json, "memory"), "peak"));
    const long long half = (long long)(0.7 * (double)weft_machine_memory() / peak * 32);
    json_decref(json);
    snprintf(command, sizeof command, GPT " --mesh data:1 --batch %lld", half);
    CHECK(strstr(plan(command, "even", "")->text, "advice: a rank needs") == NULL);
    snprintf(command, sizeof command, GPT " --mesh data:2 --layout batch:data --batch %lld",
             2 * half);
    CHECK_TEXT(plan(command, "even", "")->text, "\nadvice: the 2 ranks of a host need ");
    json = plan_json(command, "even");
    const char *reason = json_string_value(
        json_object_get(json_array_get(json_object_get(json, "advice"), 0), "reason"));
    CHECK_TEXT(reason ? reason : "(none)", "the 2 ranks of a host need ");
    json_decref(json);
}

/* ---- at the end of a run -------------------------------------------------------------------------- */

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

#define TRAIN                                                                                      \
    "gpt train --data text.txt --layers 1 --width 64 --heads 4 --seq 32 --dropout 0 --batch 16 "   \
    "--steps 2 --mesh data:2 --machine even.json "

/* What the line says, whatever its breaks; "" where there is none. */
static const char *line_of(const command_result *r)
{
    static char line[LINE];
    const char *at = strstr(r->text, "advice: ");
    const char *end = at ? strstr(at, " % less") : NULL;
    snprintf(line, sizeof line, "%.*s", end ? (int)(end - at) : 0, at ? at : "");
    return line;
}

/* On threads and on processes: the line of the plan, once, and in advice.json. */
static void check_run(const char *launcher, const char *planned)
{
    char line[LINE];
    snprintf(line, sizeof line,
             "rm -rf run; %s " WEFT_TEST_BIN "/" TRAIN "--advice always --run run", launcher);
    const command_result *r = text_folder_run(line);
    if (!CHECK_EQ_INT(r->status, 0)) printf("%s\n", r->text);
    CHECK_EQ_INT(count(r->text, "advice: "), 1);
    CHECK(strcmp(line_of(r), planned) == 0);
    snprintf(line, sizeof line, "%s/run/advice.json", folder);
    json_t *json = json_load_file(line, 0, NULL);
    const char *what = json_string_value(
        json_object_get(json_array_get(json_object_get(json, "advice"), 0), "what"));
    CHECK_EQ_INT(json_integer_value(json_object_get(json, "step")), 2);
    CHECK_TEXT(planned, what ? what : "(none)");
    json_decref(json);
}

static void test_the_end_of_a_run_says_it_once(void)
{
    char planned[LINE], line[LINE];
    const command_result *r = text_folder_run(WEFT_TEST_BIN "/" TRAIN "--dry-run");
    snprintf(planned, sizeof planned, "%s", line_of(r));
    CHECK_TEXT(planned, "advice: with ");
    check_run("", planned);
    if (WEFT_TEST_MPIEXEC[0] != '\0') {
        check_run(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", planned);
        r = text_folder_run(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe " WEFT_TEST_BIN "/" TRAIN
                                              "--dry-run");
        CHECK_EQ_INT(count(r->text, "advice: "), 1);
        CHECK(strcmp(line_of(r), planned) == 0);
    }
    /* a run that is refused takes nothing away; one that has begun, what an older one left, however it ends */
    snprintf(line, sizeof line, "%s/run/advice.json", folder);
    r = text_folder_run(WEFT_TEST_BIN "/" TRAIN "--run run --advice always --seq 16");
    CHECK(r->status == 2 && access(line, F_OK) == 0);
    (void)text_folder_run(WEFT_TEST_BIN
                          "/" TRAIN "--run run --advice always --steps 1000000 & "
                          "until grep -q '\"step\":9,' run/metrics.jsonl; do sleep 0.1; done; "
                          "kill -9 $!; wait");
    CHECK(access(line, F_OK) != 0);
    r = text_folder_run(WEFT_TEST_BIN "/" TRAIN "--run run --advice never --steps 12");
    CHECK(r->status == 0 && count(r->text, "advice: ") == 0);
    CHECK(access(line, F_OK) != 0);
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "advice"))) return weft_test_report();
    write_machines();
    RUN(test_the_command_with_it_takes_what_is_told);
    RUN(test_a_slow_rank_is_told);
    RUN(test_a_healthy_plan_is_told_nothing);
    RUN(test_each_command_takes_what_its_entry_says);
    RUN(test_the_ranks_of_a_host_share_its_memory);
    RUN(test_the_end_of_a_run_says_it_once);
    text_folder_close();
    return weft_test_report();
}
