/* diff: `weft diff A B`: what makes a step of one plan or run take longer than one of another. */
#include "diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../app.h"
#include "../../json.h"
#include "compare.h"
#include "weft/number.h"

static const option options[] = {
    {"most", OPTION_COUNT, "10", "N", "Options",
     "so many differences are shown, the largest first"},
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data, with all that differs"},
};
const option_table diff_table = {
    .program = "weft diff",
    .usage = "weft diff A B   two plans (files of --dry-run --json), or two runs (folders of\n"
             "                --run): which steps got dearer or cheaper, and why\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "two plans or runs: what got dearer or cheaper, and why",
};

/* ---- for people --------------------------------------------------------------------------------------------- */

/* "2.2 ms", "3.1e+06 bytes" */
static const char *cost_text(double cost, bool in_seconds, char text[WEFT_TIME_TEXT])
{
    if (in_seconds) return weft_time_text(cost, text);
    snprintf(text, WEFT_TIME_TEXT, "%.4g B", cost);
    return text;
}

/* Nobody knows a part of nothing. */
static void print_part(double more, double of)
{
    if (of > 0) printf(" (%+.1f %%)", 100 * more / of);
}

static void print_total(const diff_side sides[2])
{
    char more[WEFT_TIME_TEXT], text[WEFT_TIME_TEXT];
    const double by = sides[1].seconds - sides[0].seconds;
    for (int s = 0; s < 2; s++)
        if (isnan(sides[s].seconds))
            printf("%s: the time of a step is not known; plan it with --machine\n", sides[s].path);
        else
            printf("%s: %s a step, %s\n", sides[s].path, weft_time_text(sides[s].seconds, text),
                   sides[s].from);
    if (isnan(by)) return;
    if (by == 0)
        printf("both take as long");
    else
        printf("%s takes %s %s", sides[1].path, weft_time_text(fabs(by), more),
               by < 0 ? "less" : "more");
    print_part(by, sides[0].seconds);
    putchar('\n');
}

/* The same line of the program is then other work. */
static void print_apart(const diff_side sides[2], const diff_apart *apart)
{
    for (int s = 0; s < 2; s++)
        if (*sides[s].note) printf("%s: %s\n", sides[s].path, sides[s].note);
    if (apart->unknown)
        printf("the mesh of %s is not known: it has neither run.json nor a trace\n",
               apart->unknown);
    for (int i = 0; i < apart->n; i++)
        printf("%s%s", i == 0 ? "" : i + 1 < apart->n ? ", " : " and ", apart->differ[i]);
    if (apart->n > 0)
        printf(" differ%s: rank 0 does another part of the work, and its steps are matched all the "
               "same\n",
               apart->n == 1 && strcmp(apart->differ[0], "ranks") != 0 ? "s" : "");
}

/* Of options that both have, and of what one alone says. */
static void print_facts(const diff_side sides[2])
{
    const char *name;
    json_t *value;
    json_object_foreach(sides[0].facts, name, value)
    {
        const char *before = json_string_value(value);
        const char *now = json_string_value(json_object_get(sides[1].facts, name));
        if (now && strcmp(before, now) != 0)
            printf("  %-18s %s -> %s\n", name, *before ? before : "none", *now ? now : "none");
    }
}

static void print_pair(const diff_pair *pair, bool in_seconds)
{
    char more[WEFT_TIME_TEXT], before[WEFT_TIME_TEXT], now[WEFT_TIME_TEXT];
    const diff_step *step = &pair->of[pair->n_steps[1] > 0 ? 1 : 0];
    const double by = diff_more(pair);
    printf("  %c%-10s %10s %10s  ", by < 0 ? '-' : '+', cost_text(fabs(by), in_seconds, more),
           cost_text(pair->cost[0], in_seconds, before), cost_text(pair->cost[1], in_seconds, now));
    if (strcmp(step->what, "work") != 0) printf("%s", step->what);
    if (*step->axes) printf(" over %s", step->axes);
    printf("%s%s%s%s: %s\n", strcmp(step->what, "work") != 0 ? ", " : "", step->place,
           *step->phase ? ", " : "", step->phase, pair->why);
}

static void print_pairs(const diff_side sides[2], const diff_comparison *c, int64_t most)
{
    char text[WEFT_TIME_TEXT];
    double rest = 0;
    int n_rest = 0;
    for (int s = 0; s < 2; s++)
        if (sides[s].n_steps == 0 && !*sides[s].note)
            printf("%s has no trace: train with --trace N..M to compare its steps\n",
                   sides[s].path);
    if (c->n == 0) return;
    printf("\nwhat differs most (by how much, before, now, why)%s\n",
           c->in_seconds ? "" : ", in bytes through links, as seconds are not known of both");
    for (int i = 0; i < c->n; i++) {
        if (diff_more(&c->pairs[i]) == 0) break;
        if (i < most)
            print_pair(&c->pairs[i], c->in_seconds);
        else
            rest += diff_more(&c->pairs[i]), n_rest++;
    }
    if (diff_more(&c->pairs[0]) == 0) puts("  nothing");
    if (n_rest > 0)
        printf("  %c%-10s of %d others\n", rest < 0 ? '-' : '+',
               cost_text(fabs(rest), c->in_seconds, text), n_rest);
}

/* ---- as data ------------------------------------------------------------------------------------------------ */

static json_t *side_json(const diff_side *side)
{
    return json_pack("{s:s, s:s, s:o, s:s, s:s, s:O}", "path", side->path, "kind", side->kind,
                     "seconds", app_json_number(side->seconds), "from", side->from, "note",
                     side->note, "facts", side->facts);
}

static json_t *pair_json(const diff_pair *pair)
{
    const diff_step *step = &pair->of[pair->n_steps[1] > 0 ? 1 : 0];
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:s}", "place", step->place,
                     "phase", step->phase, "what", step->what, "axes", step->axes, "steps_a",
                     pair->n_steps[0], "steps_b", pair->n_steps[1], "a", pair->cost[0], "b",
                     pair->cost[1], "more", diff_more(pair), "why", pair->why);
}

static weft_status print_json(const diff_side sides[2], const diff_apart *apart,
                              const diff_comparison *c, weft_error *error)
{
    json_t *list = json_array(), *places = json_array();
    for (int i = 0; i < apart->n; i++)
        json_array_append_new(places, json_string(apart->differ[i]));
    for (int i = 0; i < c->n && diff_more(&c->pairs[i]) != 0; i++)
        json_array_append_new(list, pair_json(&c->pairs[i]));
    const char *unit = c->n == 0 ? NULL : c->in_seconds ? "seconds" : "bytes";
    json_t *all = json_pack("{s:o, s:o, s:o, s:o, s:s?, s:o}", "a", side_json(&sides[0]), "b",
                            side_json(&sides[1]), "apart", places, "more_seconds",
                            app_json_number(sides[1].seconds - sides[0].seconds), "unit", unit,
                            "differences", list);
    const bool is_written = all && json_dumpf(all, stdout, JSON_INDENT(1)) == 0;
    if (is_written) putchar('\n');
    const bool is_text = all != NULL;
    json_decref(all);
    WEFT_TRY(app_json_status(error));
    if (is_written) return WEFT_OK;
    return is_text
               ? weft_fail(error, WEFT_IO, "cannot write to stdout")
               : weft_fail(error, WEFT_USAGE,
                           "--json: the name of one of the two is not UTF-8; rename it, or leave "
                           "out --json");
}

/* ---- the command line --------------------------------------------------------------------------------------- */

static weft_status show(const diff_side sides[2], const settings *s, weft_error *error)
{
    diff_comparison c;
    const diff_apart apart = diff_apart_of(sides);
    WEFT_TRY(diff_compare(sides, &c, error));
    weft_status status = WEFT_OK;
    if (settings_flag(s, "json")) {
        status = print_json(sides, &apart, &c, error);
    } else {
        print_total(sides);
        print_apart(sides, &apart);
        print_facts(sides);
        print_pairs(sides, &c, settings_count(s, "most"));
    }
    diff_comparison_close(&c);
    WEFT_TRY(status);
    WEFT_TRY(app_json_status(error));
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

static weft_status diff(char *const *paths, const settings *s, weft_error *error)
{
    diff_side sides[2];
    WEFT_TRY(diff_side_open(paths[0], &sides[0], error));
    weft_status status = diff_side_open(paths[1], &sides[1], error);
    if (status == WEFT_OK) {
        status = show(sides, s, error);
        diff_side_close(&sides[1]);
    }
    diff_side_close(&sides[0]);
    return status;
}

int diff_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int n_paths = options_operands(&diff_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK
                      ? settings_read(&diff_table, n - n_paths, arguments + n_paths, &error)
                      : NULL;
    if (s && n_paths == 2)
        (void)!diff(arguments, s, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE,
                  "weft diff takes two: plans of --dry-run --json, or folders of runs; not %d",
                  n_paths);
    settings_destroy(&s);
    return app_leave(diff_table.program, APP_STARTING, &error);
}
