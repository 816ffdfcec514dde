/* side_run: the folder of a run: its options in run.json, the times of its steps in metrics.jsonl, and what each step of the plan did,
 * where the run was traced.
 */
#include "side.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../json.h"
#include "../../text.h"
#include "../../tracing.h"
#include "../trace/whole_runs.h"
#include "weft/collectives.h"

enum { MAX_PATH = 4096 };

/* Of what the side borrows from. */
typedef struct sources {
    weft_traced *traced;
    weft_mesh *mesh;   /* of the trace, without ranks: for the names of its axes */
    char (*axes)[100]; /* [1 << WEFT_MAX_AXES], made where one is met */
} sources;

static void free_sources(void *owner)
{
    sources *s = owner;
    weft_traced_close(&s->traced);
    (void)!weft_mesh_destroy(&s->mesh);
    free(s->axes);
    free(s);
}

static bool path_in(const char *folder, const char *name, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%.4000s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* ---- run.json --------------------------------------------------------------------------------------------- */

/* Where it writes and what it says there change nothing. */
static bool is_about_the_run(const char *name)
{
    static const char *const others[] = {"run",    "metrics", "quiet", "every",
                                         "resume", "fresh",   "advice"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0) return false;
    return true;
}

/* Where it really ran: options may leave that open. */
static void add_places(diff_side *side, const json_t *root)
{
    const char *mesh = json_string_value(json_object_get(root, "mesh"));
    const char *layout = json_string_value(json_object_get(root, "layout"));
    const json_t *ranks = json_object_get(root, "ranks");
    if (mesh) diff_fact(side, "mesh", "%s", mesh);
    if (layout) diff_fact(side, "layout", "%s", *layout ? layout : "none");
    if (json_is_integer(ranks))
        diff_fact(side, "ranks", "%lld", (long long)json_integer_value(ranks));
}

static weft_status read_options(const char *folder, diff_side *side, weft_error *error)
{
    char path[MAX_PATH];
    const char *name;
    json_t *root, *one;
    if (!path_in(folder, "run.json", path)) return WEFT_OK;
    WEFT_TRY(app_json_read(path, "run.json", &root, error));
    json_object_foreach(json_object_get(root, "settings"), name, one)
    {
        const char *value = json_string_value(json_object_get(one, "value"));
        if (value && is_about_the_run(name)) diff_fact(side, name, "%s", value);
    }
    add_places(side, root);
    const json_t *plan = json_object_get(root, "plan"), *machine = json_object_get(root, "machine");
    const char *processor = json_string_value(json_object_get(machine, "processor"));
    diff_fact(side, "memory of a rank", "%.1f MiB",
              json_number_value(json_object_get(plan, "total_bytes")) / 1048576.0);
    diff_fact(side, "flops of a rank", "%.4g", json_number_value(json_object_get(plan, "flops")));
    diff_fact(side, "processor", "%s", processor ? processor : "?");
    json_decref(root);
    return WEFT_OK;
}

/* ---- metrics.jsonl ---------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static weft_status line_seconds(const char *path, const char *line, int number, double *seconds,
                                weft_error *error)
{
    json_error_t where;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, &where);
    const json_t *ms = json_object_get(json, "ms");
    *seconds = json_is_number(ms) ? 1e-3 * json_number_value(ms) : NAN;
    const bool is_line = json_is_object(json) && json_object_get(json, "step");
    json_decref(json);
    if (is_line) return WEFT_OK;
    WEFT_TRY(app_json_status(error));
    return weft_fail(
        error, WEFT_USAGE,
        "%.200s:%d: this is no line of metrics, which are JSON with a step and its ms; "
        "remove it",
        path, number);
}

/* A run that was killed may have half a last line. */
static weft_status read_lines(const char *path, app_text *text, double *all, int *n,
                              weft_error *error)
{
    const bool is_whole = text->n > 0 && text->bytes[text->n - 1] == '\n';
    char *at = NULL, *line = app_text_line(text, &at);
    for (int number = 1; line; number++) {
        char *next = app_text_line(text, &at);
        double seconds = NAN;
        if (next || is_whole) WEFT_TRY(line_seconds(path, line, number, &seconds, error));
        if (isfinite(seconds)) all[(*n)++] = seconds;
        line = next;
    }
    return WEFT_OK;
}

/* The first step touches memory that nobody has touched. */
static void take_median(diff_side *side, double *all, int n)
{
    const int left_out = n > 1;
    if (n == 0) return;
    qsort(all + left_out, (size_t)(n - left_out), sizeof *all, ascending);
    side->seconds = all[left_out + (n - left_out) / 2];
    snprintf(side->from, sizeof side->from, "the median of %d step%s", n - left_out,
             n - left_out == 1 ? "" : "s");
}

static weft_status read_metrics(const char *folder, diff_side *side, bool *is_there,
                                weft_error *error)
{
    char path[MAX_PATH];
    app_text text;
    int n = 0;
    *is_there = path_in(folder, "metrics.jsonl", path);
    if (!*is_there) return WEFT_OK;
    WEFT_TRY(app_text_read(path, "metrics", WEFT_FILE_TEXT, &text, error));
    double *all = calloc(text.n + 1, sizeof *all);
    weft_status status = all ? WEFT_OK : weft_fail_memory(error, (text.n + 1) * sizeof *all);
    if (status == WEFT_OK) status = read_lines(path, &text, all, &n, error);
    if (status == WEFT_OK) take_median(side, all, n);
    free(all);
    free(text.bytes);
    return status;
}

/* ---- the trace of rank 0 ------------------------------------------------------------------------------------ */

static const char *axes_name(const sources *s, uint32_t axes)
{
    char *text = s->axes[axes];
    for (int a = 0; !*text && a < weft_mesh_n_axes(s->mesh); a++)
        if (axes >> a & 1)
            snprintf(text + strlen(text), sizeof *s->axes - strlen(text), "%s%s", *text ? "+" : "",
                     weft_mesh_axis_name(s->mesh, a));
    return text;
}

/* The kind of an exchange is the first word of its name, and what it moves the rest. */
static const char *what_of(const weft_traced_step *step)
{
    if (step->kind == WEFT_STEP_COPY) return "copy";
    if (step->kind != WEFT_STEP_CONVERT) return "work";
    for (int kind = 0; kind < WEFT_CONVERTS; kind++) {
        const char *name = weft_convert_name((weft_convert_kind)kind);
        const size_t n = strlen(name);
        if (strncmp(step->name, name, n) == 0 && (step->name[n] == ' ' || step->name[n] == '\0'))
            return name;
    }
    return "exchange";
}

/* Behind the arrow of an exchange. */
static const char *spec_of(const weft_traced_step *step)
{
    const char *arrow = step->spec ? strstr(step->spec, " -> ") : NULL;
    return arrow ? arrow + 4 : step->spec ? step->spec : "";
}

static void add_step(diff_side *side, const sources *s, const weft_traced_step *step)
{
    side->steps[side->n_steps++] = (diff_step){.place = step->place,
                                               .phase = "",
                                               .what = what_of(step),
                                               .axes = axes_name(s, step->axes),
                                               .spec = spec_of(step),
                                               .kernel = "",
                                               .reason = step->reason ? step->reason : ""};
}

/* All steps of runs that are whole. */
static void sum_events(diff_side *side, const weft_traced *traced, whole_runs *runs)
{
    const weft_traced_program *program = &traced->programs[runs->program];
    for (int64_t i = 0; i < traced->n_events; i++) {
        const weft_traced_event *e = &traced->events[i];
        if (!whole_runs_has(runs, e)) continue;
        diff_step *step = &side->steps[e->step];
        step->seconds += 1e-9 * (double)(e->end - e->begin);
        if (e->kind != WEFT_TRACED_STEP) continue;
        step->times += 1;
        step->bytes += (double)program->steps[e->step].sent_bytes;
    }
}

/* Of one run. Fences of scans are no steps. */
static void make_means(diff_side *side, const weft_traced_program *program, int64_t n)
{
    int kept = 0;
    for (int s = 0; s < program->n_steps; s++) {
        const weft_step_kind kind = program->steps[s].kind;
        diff_step step = side->steps[s];
        step.seconds /= (double)n;
        step.times /= (double)n;
        step.bytes /= (double)n;
        if (kind != WEFT_STEP_BEGIN && kind != WEFT_STEP_END && kind != WEFT_STEP_GUARD)
            side->steps[kept++] = step;
    }
    side->n_steps = kept;
}

static weft_status take_steps(diff_side *side, sources *s, weft_error *error)
{
    const weft_traced *traced = s->traced;
    whole_runs runs = {.program = 0};
    for (int i = traced->n_programs - 1; i >= 0; i--)
        if (strcmp(traced->programs[i].name, "train") == 0) runs.program = i;
    const weft_traced_program *program = &traced->programs[runs.program];
    const size_t room = (size_t)program->n_steps + 1;
    WEFT_TRY(weft_mesh_plan(traced->mesh, &s->mesh, error));
    s->axes = calloc((size_t)1 << WEFT_MAX_AXES, sizeof *s->axes);
    side->steps = calloc(room, sizeof *side->steps);
    if (!s->axes || !side->steps) return weft_fail_memory(error, room * sizeof *side->steps);
    for (int i = 0; i < program->n_steps; i++)
        add_step(side, s, &program->steps[i]);
    sum_events(side, traced, &runs);
    side->has_seconds = runs.n > 0;
    if (runs.n == 0) return side->n_steps = 0, WEFT_OK;
    make_means(side, program, runs.n);
    if (!isnan(side->seconds)) return WEFT_OK;
    side->seconds = 1e-9 * runs.ns / (double)runs.n;
    snprintf(side->from, sizeof side->from, "the mean of %lld traced run%s", (long long)runs.n,
             runs.n == 1 ? "" : "s");
    return WEFT_OK;
}

/* An older trace stays in the folder until another one is made. Of other programs than gpt it alone says where they ran. */
static bool is_of_run(diff_side *side, const weft_traced *traced)
{
    const char *mesh = json_string_value(json_object_get(side->facts, "mesh"));
    if (mesh && strcmp(mesh, traced->mesh) != 0) {
        snprintf(side->note, sizeof side->note,
                 "the trace is of mesh %.100s, and the run is on mesh %.100s: its steps are left "
                 "out; train with --trace N..M again",
                 traced->mesh, mesh);
        return false;
    }
    diff_fact(side, "mesh", "%s", traced->mesh);
    diff_fact(side, "ranks", "%d", traced->n_ranks);
    return true;
}

static weft_status read_trace(const char *folder, diff_side *side, bool *is_there,
                              weft_error *error)
{
    char rings[MAX_PATH], path[MAX_PATH];
    app_trace_folder(folder, rings, sizeof rings);
    *is_there = path_in(rings, "rank_00000.ring", path);
    if (!*is_there) return WEFT_OK;
    sources *s = calloc(1, sizeof *s);
    if (!s) return weft_fail_memory(error, sizeof *s);
    side->owner = s;
    side->free_owner = free_sources;
    WEFT_TRY(weft_traced_open(path, &s->traced, error));
    if (!is_of_run(side, s->traced) || s->traced->n_programs == 0) return WEFT_OK;
    return take_steps(side, s, error);
}

/* ---- the whole -------------------------------------------------------------------------------------------- */

weft_status diff_run_open(const char *folder, diff_side *side, weft_error *error)
{
    bool has_metrics = false, is_traced = false;
    side->kind = "run";
    WEFT_TRY(read_options(folder, side, error));
    WEFT_TRY(read_metrics(folder, side, &has_metrics, error));
    WEFT_TRY(read_trace(folder, side, &is_traced, error));
    if (has_metrics || is_traced) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.200s is no run to be compared: it has neither metrics.jsonl nor a trace; "
                     "train with --trace N..M, or name the folder that was given with --run",
                     folder);
}
