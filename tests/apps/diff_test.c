/* diff_test: weft diff of two plans and of two runs. The differences add up to the whole. From B to A it is the other way round. Nothing
 * differs from itself. Each reason is told. Files of other formats, cut ones and folders without a run are told in a sentence.
 */
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "text_folder.h"

enum { LINE = 4096 };

/* The second layout splits heads and hidden where the first one splits the batch. */
#define MODEL "--layers 2 --width 16 --heads 2 --batch 4 --seq 8 --dropout 0 "
#define DATA  "--mesh data:2 --layout batch:data "
#define SPLIT "--mesh model:2 --layout hidden:model,heads:model "

static const command_result *shell(const char *format, const char *a, const char *b)
{
    static command_result result;
    char line[LINE];
    snprintf(line, sizeof line, format, folder, a, folder, b);
    result = command_run_all(line);
    return &result;
}

static void plan_into(const char *name, const char *arguments)
{
    char line[LINE];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt train --dry-run --json " MODEL "%s >%s/%s 2>&1",
             arguments, folder, name);
    CHECK_EQ_INT(command_run_all(line).status, 0);
}

static const command_result *diff(const char *a, const char *b)
{
    return shell("timeout 600 " WEFT_TEST_BIN "/weft diff %s/%s %s/%s 2>&1", a, b);
}

static json_t *diff_json(const char *a, const char *b)
{
    const command_result *r =
        shell("timeout 600 " WEFT_TEST_BIN "/weft diff --json %s/%s %s/%s 2>&1", a, b);
    json_t *json = json_loads(r->text, 0, NULL);
    CHECK_EQ_INT(r->status, 0);
    if (!CHECK(json != NULL)) printf("%s\n", r->text);
    return json;
}

static double number_in(const json_t *json, const char *name)
{
    return json_number_value(json_object_get(json, name));
}

static const json_t *list_of(const json_t *json)
{
    return json_object_get(json, "differences");
}

/* The difference of a call, by the letters that its place begins with, and what it is; NULL: none. */
static const json_t *find(const json_t *json, const char *place, const char *what)
{
    size_t i;
    json_t *one;
    json_array_foreach(list_of(json), i, one)
    {
        const char *is = json_string_value(json_object_get(one, "place"));
        if (strncmp(is, place, strlen(place)) == 0 &&
            strcmp(json_string_value(json_object_get(one, "what")), what) == 0)
            return one;
    }
    return NULL;
}

static const char *why(const json_t *one)
{
    const char *text = json_string_value(json_object_get(one, "why"));
    return text ? text : "";
}

static double sum_of(const json_t *json, const char *name)
{
    double sum = 0;
    size_t i;
    json_t *one;
    json_array_foreach(list_of(json), i, one) sum += number_in(one, name);
    return sum;
}

/* ---- plans -------------------------------------------------------------------------------------------------- */

static void open_plans(void)
{
    plan_into("data.json", DATA "--machine laptop");
    plan_into("split.json", SPLIT "--machine laptop");
    plan_into("wide.json", DATA "--machine laptop --width 32");
    plan_into("parts.json", DATA "--machine laptop --accumulate 2");
    plan_into("bare.json", DATA);
    plan_into("bare_split.json", SPLIT);
}

/* Rank 0 computes, or an exchange makes it later: nothing else. */
static void test_differences_add_up(void)
{
    static const char *const others[] = {"split.json", "wide.json", "parts.json"};
    for (int i = 0; i < 3; i++) {
        json_t *json = diff_json("data.json", others[i]);
        const double a = number_in(json_object_get(json, "a"), "seconds"),
                     b = number_in(json_object_get(json, "b"), "seconds");
        CHECK(a > 0 && b > 0);
        CHECK_CLOSE(number_in(json, "more_seconds"), b - a, 1e-12);
        CHECK_CLOSE(sum_of(json, "more"), b - a, 1e-9);
        CHECK_CLOSE(sum_of(json, "b") - sum_of(json, "a"), sum_of(json, "more"), 1e-12);
        json_decref(json);
    }
}

static void test_it_is_the_other_way_round(void)
{
    json_t *there = diff_json("data.json", "split.json"),
           *back = diff_json("split.json", "data.json");
    CHECK(json_array_size(list_of(there)) > 5);
    CHECK_EQ_INT((long long)json_array_size(list_of(there)),
                 (long long)json_array_size(list_of(back)));
    for (size_t i = 0; i < json_array_size(list_of(there)); i++) {
        const json_t *a = json_array_get(list_of(there), i), *b = json_array_get(list_of(back), i);
        CHECK(json_equal(json_object_get(a, "place"), json_object_get(b, "place")));
        CHECK_CLOSE(number_in(a, "more"), -number_in(b, "more"), 1e-15);
    }
    json_decref(there);
    json_decref(back);
}

static void test_nothing_differs_from_itself(void)
{
    json_t *json = diff_json("split.json", "split.json");
    CHECK_EQ_INT((long long)json_array_size(list_of(json)), 0);
    json_decref(json);
    CHECK_TEXT(diff("split.json", "split.json")->text, "both take as long");
    CHECK_TEXT(diff("split.json", "split.json")->text, "  nothing");
}

/* Those that differ most are the first. */
static void test_the_dearest_come_first(void)
{
    json_t *json = diff_json("data.json", "split.json");
    for (size_t i = 1; i < json_array_size(list_of(json)); i++)
        CHECK(fabs(number_in(json_array_get(list_of(json), i - 1), "more")) >=
              fabs(number_in(json_array_get(list_of(json), i), "more")));
    json_decref(json);
    const command_result *r = diff("data.json", "split.json");
    CHECK_EQ_INT(r->status, 0);
    CHECK_EQ_INT(command_lines(r->text, "  +") + command_lines(r->text, "  -"), 11);
    CHECK_TEXT(r->text, "layout             batch:data -> hidden:model,heads:model");
    CHECK_TEXT(r->text, " others");
    r = shell("timeout 600 " WEFT_TEST_BIN "/weft diff --most 3 %s/%s %s/%s 2>&1", "data.json",
              "split.json");
    CHECK_EQ_INT(command_lines(r->text, "  +") + command_lines(r->text, "  -"), 4);
}

static void test_each_reason_is_told(void)
{
    json_t *split = diff_json("data.json", "split.json"),
           *wide = diff_json("data.json", "wide.json"),
           *parts = diff_json("data.json", "parts.json");
    size_t i;
    json_t *one;
    int appeared = 0, gone = 0, specs = 0, flops = 0, times = 0;
    json_array_foreach(list_of(split), i, one)
    {
        const bool exchanges = *json_string_value(json_object_get(one, "axes")) != '\0';
        appeared += exchanges && strncmp(why(one), "appeared", 8) == 0;
        gone += exchanges && strncmp(why(one), "is gone", 7) == 0;
        specs += strstr(why(one), "spec [") != NULL;
    }
    json_array_foreach(list_of(wide), i, one) flops += strstr(why(one), " flops, was ") != NULL;
    json_array_foreach(list_of(parts), i, one) times += strstr(why(one), " times, was ") != NULL;
    CHECK(appeared > 0 && gone > 0 && specs > 0 && flops > 0 && times > 0);
    CHECK(find(wide, "einsum of transformer at model.c:", "work") != NULL);
    json_decref(split);
    json_decref(wide);
    json_decref(parts);
}

/* Without seconds of both, bytes through links are compared, and all of them. */
static void test_plans_without_seconds(void)
{
    json_t *json = diff_json("bare.json", "bare_split.json");
    CHECK_TEXT(json_string_value(json_object_get(json, "unit")), "bytes");
    CHECK(json_is_null(json_object_get(json, "more_seconds")));
    const double a = atof(json_string_value(json_object_get(
                     json_object_get(json_object_get(json, "a"), "facts"), "bytes exchanged"))),
                 b = atof(json_string_value(json_object_get(
                     json_object_get(json_object_get(json, "b"), "facts"), "bytes exchanged")));
    CHECK(a > 0 && b > 0);
    CHECK_CLOSE(sum_of(json, "more"), b - a, 1e-3 * (a + b));
    json_decref(json);
    CHECK_TEXT(diff("bare.json", "data.json")->text, "plan it with --machine");
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */

static void train(const char *name, const char *arguments)
{
    char line[LINE];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s --steps 6 --quiet " MODEL
                           "%s",
             folder, folder, name, arguments);
    const command_result r = command_run(line);
    if (!CHECK_EQ_INT(r.status, 0)) printf("%s\n", r.text);
}

static void test_runs_are_compared_by_their_traces(void)
{
    train("one", DATA "--trace 4..6");
    train("two", SPLIT "--trace 4..6");
    train("untraced", DATA);
    json_t *json = diff_json("one", "two");
    CHECK_TEXT(json_string_value(json_object_get(json, "unit")), "seconds");
    CHECK_TEXT(json_string_value(json_object_get(json_object_get(json, "a"), "from")),
               "the median of 5 steps");
    CHECK(number_in(json_object_get(json, "a"), "seconds") > 0);
    const json_t *gone = find(json, "einsum", "all_reduce");
    CHECK(gone != NULL);
    json_decref(json);
    CHECK_TEXT(diff("one", "two")->text, "mesh               data:2 -> model:2");
    CHECK_TEXT(diff("one", "untraced")->text, "untraced has no trace: train with --trace N..M");
    json = diff_json("one", "untraced");
    CHECK(json_is_null(json_object_get(json, "unit")));
    json_decref(json);
}

/* What was predicted beside what was measured, of one program: steps are the same ones. */
static void test_a_plan_beside_its_run(void)
{
    size_t i;
    json_t *one, *json = diff_json("data.json", "one");
    int both = 0, alone = 0;
    json_array_foreach(list_of(json), i, one)
    {
        const bool has_a = number_in(one, "steps_a") > 0, has_b = number_in(one, "steps_b") > 0;
        both += has_a && has_b;
        alone += has_a != has_b;
    }
    CHECK(both > 10 && alone == 0);
    json_decref(json);
}

/* The names in "apart", each with a blank. */
static const char *apart(const char *a, const char *b)
{
    static char text[100];
    size_t i;
    json_t *one, *json = diff_json(a, b);
    *text = '\0';
    json_array_foreach(json_object_get(json, "apart"), i, one)
    {
        strcat(text, json_string_value(one));
        strcat(text, " ");
    }
    json_decref(json);
    return text;
}

/* Of plans; of runs whose options leave it open; of a trace that is of an older run. */
static void test_other_meshes_are_told_before_steps(void)
{
    char line[LINE];
    plan_into("four.json", "--mesh data:4 --layout batch:data --machine laptop");
    plan_into("whole.json", "--mesh data:2 --machine laptop");
    train("open", ""); /* data:1, which no option says */
    CHECK_TEXT(apart("data.json", "split.json"), "mesh layout ");
    CHECK_TEXT(apart("data.json", "four.json"), "mesh ranks ");
    CHECK_TEXT(apart("data.json", "whole.json"), "layout ");
    CHECK_TEXT(apart("open", "one"), "mesh layout ranks ");
    CHECK_TEXT(apart("data.json", "two"), "mesh layout ");
    CHECK(*apart("data.json", "data.json") == '\0' && *apart("one", "untraced") == '\0');
    CHECK(strstr(diff("one", "untraced")->text, "differ: ") == NULL);
    const command_result *r = diff("data.json", "split.json");
    const char *told = strstr(r->text, "mesh and layout differ: rank 0 does another part"),
               *steps = strstr(r->text, "what differs most");
    CHECK(told && steps && told < steps);
    CHECK_TEXT(diff("data.json", "whole.json")->text, "layout differs: rank 0 does");
    snprintf(line, sizeof line, "cd %s && rm -rf mixed && cp -r two mixed && cp one/run.json mixed",
             folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    r = diff("one", "mixed");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "mixed: the trace is of mesh model:2, and the run is on mesh data:2: its");
    CHECK(strstr(r->text, "what differs most") == NULL);
    snprintf(line, sizeof line, "cd %s && rm -rf bare && mkdir bare && cp one/metrics.jsonl bare",
             folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    CHECK_TEXT(diff("one", "bare")->text, "bare is not known: it has neither run.json nor a trace");
}

static void append(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "a");
    if (!CHECK(file != NULL)) return;
    fputs(text, file);
    fclose(file);
}

static void test_half_a_last_line_is_no_line(void)
{
    append("untraced/metrics.jsonl", "{\"step\":7,\"lo");
    CHECK_EQ_INT(diff("one", "untraced")->status, 0);
    append("untraced/metrics.jsonl", "x\n");
    const command_result *r = diff("one", "untraced");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "metrics.jsonl:7: this is no line of metrics");
}

/* ---- what cannot be compared ------------------------------------------------------------------------------------ */

static void write_file(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    append(name, text);
}

static void test_other_files_are_told(void)
{
    static const struct {
        const char *text, *sentence;
    } files[] = {
        {"{\"weft_machine\": 1}", "it is a machine's file; weft machine diff compares two"},
        {"{\"settings\": {}}", "it is the run.json of a run; name the folder"},
        {"{\"verdict\": \"\"}", "it is what weft postmortem has found"},
        {"{}", "is JSON and no plan: it has no step_list; gpt train --dry-run --json writes one"},
        {"[1, 2]", "is JSON and no plan"},
        {"{\"step_list\": 3}", "is JSON and no plan"},
        {"{\"step_list\": [{}]}", "is no plan of this Weft: "},
        {"{\"step_list\": [{}], \"mesh\": \"a:1\", \"ranks\": 1, \"layout\": \"\", \"zero\": 0, "
         "\"flops\": 1, "
         "\"memory\": {\"peak\": 1}}",
         "step_list[0] is not as this Weft writes it"},
        {"{\"step_list\": [], \"mesh\": \"a:1\", \"ranks\": 1, \"layout\": \"\", \"zero\": 0, "
         "\"flops\": 1, "
         "\"memory\": {\"peak\": 1}, \"prediction\": {\"steps\": [1]}}",
         "it has 0 steps and predicts 1"},
        {"step 1 loss 2", "this is no JSON"},
        {"", "other.json is no JSON: it is empty"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file("other.json", files[i].text);
        const command_result *r = diff("data.json", "other.json");
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, files[i].sentence);
    }
    CHECK_TEXT(diff("data.json", "nowhere.json")->text, "nowhere.json: No such file");
    char path[1024];
    snprintf(path, sizeof path, "%s/empty", folder);
    mkdir(path, 0777);
    CHECK_TEXT(diff("one", "empty")->text,
               "empty is no run to be compared: it has neither metrics.jsonl nor a trace");
    CHECK_TEXT(shell(WEFT_TEST_BIN "/weft diff %s/%s 2>&1 # %s %s", "one", "")->text,
               "weft diff takes two: plans of --dry-run --json, or folders of runs; not 1");
}

/* Cut anywhere it is no JSON, and never anything worse. */
static void test_a_cut_plan_is_refused(void)
{
    char line[LINE], cut[40];
    for (int i = 1; i < 12; i++) {
        snprintf(line, sizeof line,
                 "f=%s/data.json; head -c $(($(wc -c <$f) * %d / 12)) $f >%s/cut.json", folder, i,
                 folder);
        CHECK_EQ_INT(command_run_all(line).status, 0);
        snprintf(cut, sizeof cut, "cut.json");
        const command_result *r = diff("data.json", cut);
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, "this is no JSON");
    }
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "diff"))) return weft_test_report();
    open_plans();
    RUN(test_differences_add_up);
    RUN(test_it_is_the_other_way_round);
    RUN(test_nothing_differs_from_itself);
    RUN(test_the_dearest_come_first);
    RUN(test_each_reason_is_told);
    RUN(test_plans_without_seconds);
    RUN(test_runs_are_compared_by_their_traces);
    RUN(test_a_plan_beside_its_run);
    RUN(test_other_meshes_are_told_before_steps);
    RUN(test_half_a_last_line_is_no_line);
    RUN(test_other_files_are_told);
    RUN(test_a_cut_plan_is_refused);
    text_folder_close();
    return weft_test_report();
}
