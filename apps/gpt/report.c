/* report: progress on stderr, the same in log.txt, every step in metrics.jsonl, the whole set-up in
 * run.json. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

/* ---- the run directory -------------------------------------------------------------------------
 */

static json_t *settings_json(const settings *s)
{
    json_t *all = json_object();
    const option *o;
    for (int i = 0; (o = settings_option(s, i)) != NULL; i++)
        json_object_set_new(all, o->name,
                            json_pack("{s:s, s:s}", "value", settings_text(s, o->name), "origin",
                                      settings_origin(s, o->name)));
    return all;
}

/* What a start that continues this run takes in place of measuring again. */
static json_t *measured_json(const gpt_setup *setup)
{
    if (!setup->link.is_measured) return json_null();
    return json_pack("{s:s, s:s}", "mesh", weft_mesh_text(setup->mesh), "link", setup->link.text);
}

/* What the plan is for. */
static json_t *planned_json(const gpt_setup *setup)
{
    char hash[24];
    if (setup->machine_hash == 0) return json_null();
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)setup->machine_hash);
    return json_pack("{s:s, s:s}", "name", weft_plan_machine(setup->program), "hash", hash);
}

static json_t *run_json(const gpt_setup *setup, const weft_usage *usage)
{
    const weft_machine *machine = weft_machine_info();
    const char *apart = weft_program_apart(setup->program);
    return json_pack(
        "{s:s, s:o, s:s, s:s, s:i, s:i, s:i, s:s?, s:o, s:o, s:o, s:{s:o, s:i, s:o, s:I, s:I}, "
        "s:{s:s, "
        "s:I}, "
        "s:{s:s, s:i, s:s, s:s}}",
        "program", "gpt", "settings", settings_json(setup->settings), "mesh",
        weft_mesh_text(setup->mesh), "layout", weft_layout_text(setup->layout), "zero",
        weft_layout_stage(setup->layout), "ranks", weft_mesh_n_ranks(setup->mesh), "lanes",
        weft_mesh_lanes(setup->mesh), "apart", *apart ? apart : NULL, "measured_link",
        measured_json(setup), "planned_for", planned_json(setup), "parameters",
        app_json_number(gpt_parameters(&setup->shape)), "plan", "flops",
        app_json_number(usage->flops), "steps", usage->n_steps, "arena_bytes",
        json_integer(usage->arena_bytes), "variable_bytes", (json_int_t)usage->variable_bytes,
        "total_bytes", (json_int_t)usage->total_bytes, "data", "path", setup->data_path, "samples",
        (json_int_t)weft_dataset_samples(setup->data), "machine", "processor", machine->processor,
        "cores", machine->n_cores, "blas", machine->blas, "blas_kernel", machine->blas_kernel);
}

/* run.json is replaced whole or not at all. */
static weft_status write_run_json(const gpt_setup *setup, const weft_usage *usage,
                                  const char *folder, weft_error *error)
{
    char path[MAX_PATH], fresh[MAX_PATH];
    snprintf(path, sizeof path, "%.4000s/run.json", folder);
    snprintf(fresh, sizeof fresh, "%.4000s/run.json.new", folder);
    json_t *all = run_json(setup, usage);
    if (!all) return weft_fail_memory(error, 0);
    const bool is_written = json_dump_file(all, fresh, JSON_INDENT(2)) == 0;
    json_decref(all);
    WEFT_TRY(app_json_status(error));
    if (is_written && rename(fresh, path) == 0) return WEFT_OK;
    return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO,
                     "cannot write %s: %s; name another run directory with --run DIR", path,
                     strerror(errno));
}

/* ---- what a person sees ------------------------------------------------------------------------
 */

/* A line, broken between words where it would get too long; a letter is one column. */
static void print_broken(const char *text, FILE *file)
{
    enum { WIDTH = 120 };
    int column = 0;
    while (*text) {
        const size_t blanks = strspn(text, " "), n = strcspn(text + blanks, " \n");
        int word = (int)blanks;
        for (size_t i = blanks; i < blanks + n; i++)
            word += ((unsigned char)text[i] & 0xC0) != 0x80;
        if (column > 0 && column + word > WIDTH) {
            column = fprintf(file, "\n  ") - 1 + word - (int)blanks;
            fwrite(text + blanks, 1, n, file);
        } else {
            column += word;
            fwrite(text, 1, blanks + n, file);
        }
        text += blanks + n;
        if (*text != '\n') continue;
        fputc(*text++, file);
        column = 0;
    }
    fputc('\n', file);
}

/* To the log, and to stderr unless quiet. */
static void say(gpt_report *report, const char *text)
{
    if (report->log) print_broken(text, report->log);
    if (report->is_quiet) return;
    if (report->is_terminal) fputs("\r\033[K", stderr);
    print_broken(text, stderr);
}

/* Another machine changes the plan and no number of the run: it goes on, and says so. "": it is the same. */
static void find_other_machine(const gpt_setup *setup, const char *folder, char text[256])
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%.4000s/run.json", folder);
    json_t *before = json_load_file(path, 0, NULL), *now = planned_json(setup);
    const json_t *planned = json_object_get(before, "planned_for");
    const char *was = json_string_value(json_object_get(planned, "name"));
    const char *is = json_string_value(json_object_get(now, "name"));
    *text = '\0';
    if (planned && setup->run.first > 0 && !json_equal(planned, now))
        snprintf(text, 256,
                 "the plan is for machine %.80s from here on; before, it was for %.80s%s",
                 is ? is : "none", was ? was : "none",
                 was && is && strcmp(was, is) == 0 ? ", whose file said something else" : "");
    json_decref(before);
    json_decref(now);
}

/* "2 ranks as threads, 1 core each": of lanes is spoken where somebody chose them. */
static void say_mesh(gpt_report *report)
{
    const gpt_setup *setup = report->setup;
    const int n_ranks = weft_mesh_n_ranks(setup->mesh), n_lanes = weft_mesh_lanes(setup->mesh);
    const bool is_chosen = settings_count(setup->settings, "lanes") > 0;
    char text[1024];
    snprintf(text, sizeof text, "mesh %s: %d rank%s as %s, %d %s%s each · layout %s · zero %d",
             weft_mesh_text(setup->mesh), n_ranks, n_ranks == 1 ? "" : "s",
             weft_mesh_n_local(setup->mesh) == n_ranks ? "threads" : "processes", n_lanes,
             is_chosen ? "lane" : "core", n_lanes == 1 ? "" : "s",
             *weft_layout_text(setup->layout) ? weft_layout_text(setup->layout) : "none",
             weft_layout_stage(setup->layout));
    say(report, text);
    weft_mesh_crowding(setup->mesh, text, sizeof text);
    if (*text) say(report, text);
}

static void say_facts(gpt_report *report, const weft_usage *usage)
{
    const gpt_setup *setup = report->setup;
    const weft_machine *machine = weft_machine_info();
    char text[1024];
    say_mesh(report);
    snprintf(text, sizeof text,
             "%.0f parameters · %lld windows of %s · %.1f MiB a rank · %.2f GFLOP a rank and step",
             gpt_parameters(&setup->shape), (long long)weft_dataset_samples(setup->data),
             setup->data_path, (double)usage->total_bytes / 1048576.0, usage->flops / 1e9);
    say(report, text);
    snprintf(text, sizeof text, "%s, %s %s", machine->processor, machine->blas,
             machine->blas_kernel);
    say(report, text);
    if (*weft_program_apart(setup->program)) {
        snprintf(text, sizeof text,
                 "%s, so each process has its own; limits are kernel.shmmax and kernel.shmall",
                 weft_program_apart(setup->program));
        say(report, text);
    }
    if (setup->link.is_measured) {
        snprintf(text, sizeof text, "measured: --link %.400s", setup->link.text);
        say(report, text);
    }
    if (setup->run.first > 0) {
        snprintf(text, sizeof text, "continues from the checkpoint of step %lld",
                 (long long)setup->run.first);
        say(report, text);
    }
    app_run_saves(&setup->run, text, sizeof text);
    say(report, text);
    if (*setup->run.note) say(report, setup->run.note);
    if (*setup->run.lock.note) say(report, setup->run.lock.note);
    snprintf(text, sizeof text,
             "    step      loss      norm       rate        ms     tok/s     left%s",
             setup->shape.mixture.experts > 1 ? "  balance  dropped" : "");
    say(report, text);
}

/* Of experts: 1 where the load is even; of all tokens in all layers those that no expert took. */
static double balance_of(const gpt_setup *setup, const gpt_step *step)
{
    return step->balance / (double)setup->shape.layers;
}

static double dropped_of(const gpt_setup *setup, const gpt_step *step)
{
    const double tokens = (double)setup->shape.batch * (double)setup->shape.seq;
    return step->dropped / (tokens * (double)setup->shape.layers);
}

static void time_left(double seconds, char text[16])
{
    const long long s = (long long)(seconds + 0.5);
    if (s < 100)
        snprintf(text, 16, "%llds", s);
    else if (s < 6000)
        snprintf(text, 16, "%lldm%02llds", s / 60, s % 60);
    else
        snprintf(text, 16, "%lldh%02lldm", s / 3600 % 10000, s / 60 % 60);
}

static void progress(gpt_report *report, const gpt_step *step)
{
    const gpt_setup *setup = report->setup;
    const int64_t every = settings_count(setup->settings, "every");
    const double tokens = (double)setup->shape.batch * (double)setup->shape.seq,
                 now = app_seconds();
    const bool is_line = step->step % every == 0 || step->step == 1 || step->step == setup->until;
    char text[160], left[16];
    if (!is_line && (!report->is_terminal || now - report->shown < 0.1)) return;
    time_left((now - report->begun) / (double)(step->step - setup->run.first) *
                  (double)(setup->until - step->step),
              left);
    snprintf(text, sizeof text, "%8lld  %8.4f  %8.3f  %9.3g  %8.1f  %8.0f  %7s",
             (long long)step->step, step->loss, step->norm, step->rate, 1e3 * step->seconds,
             tokens / step->seconds, left);
    if (setup->shape.mixture.experts > 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), "  %7.3f  %6.2f%%",
                 balance_of(setup, step), 100 * dropped_of(setup, step));
    report->shown = now;
    if (is_line)
        say(report, text);
    else if (!report->is_quiet)
        fprintf(stderr, "\r\033[K%s", text);
}

static void say_held(gpt_report *report, int64_t step, const app_held_numbers *held)
{
    char text[120];
    if (!held->is_there) return;
    snprintf(text, sizeof text, "%8lld  %8.4f  of the text that was held out", (long long)step,
             held->loss);
    say(report, text);
}

/* ---- life --------------------------------------------------------------------------------------
 */

weft_status gpt_report_open(gpt_report *report, const gpt_setup *setup, weft_error *error)
{
    const settings *s = setup->settings;
    const char *folder = settings_text(s, "run");
    char path[MAX_PATH];
    char machine[256];
    weft_usage usage;
    *report = (gpt_report){
        .setup = setup, .is_root = weft_mesh_is_root(setup->mesh), .begun = app_seconds()};
    if (!report->is_root) return WEFT_OK;
    report->is_quiet = settings_flag(s, "quiet");
    report->is_terminal = isatty(STDERR_FILENO);
    WEFT_TRY(weft_plan_usage(setup->program, 0, &usage, error));
    WEFT_TRY(app_make_folder(folder, error));
    find_other_machine(setup, folder, machine);
    WEFT_TRY(write_run_json(setup, &usage, folder, error));
    snprintf(path, sizeof path, "%.4000s/log.txt", folder);
    WEFT_TRY(app_open_file(path, "ae", &report->log, error));
    WEFT_TRY(app_metrics_open(&report->metrics, s, error));
    settings_print(s, report->log);
    if (!report->is_quiet) settings_print(s, stderr);
    snprintf(path, sizeof path,
             "others have their defaults; %.4000s/run.json has all, and where each came from",
             folder);
    say(report, path);
    say_facts(report, &usage);
    if (*machine) say(report, machine);
    return WEFT_OK;
}

void gpt_report_say(gpt_report *report, const char *text)
{
    if (report->is_root) say(report, text);
}

static json_t *line_of(const gpt_setup *setup, const gpt_step *step)
{
    const double tokens = (double)setup->shape.batch * (double)setup->shape.seq;
    json_t *line = app_metrics_line(step->step);
    json_object_set_new(line, "loss", app_json_number(step->loss));
    json_object_set_new(line, "grad_norm", app_json_number(step->norm));
    json_object_set_new(line, "rate", app_json_number(step->rate));
    json_object_set_new(line, "tokens_per_s", app_json_number(tokens / step->seconds));
    json_object_set_new(line, "ms", app_json_number(1e3 * step->seconds));
    if (setup->shape.mixture.experts > 1) {
        json_object_set_new(line, "balance", app_json_number(balance_of(setup, step)));
        json_object_set_new(line, "dropped", app_json_number(dropped_of(setup, step)));
    }
    if (step->held.is_there)
        json_object_set_new(line, "held_out", app_json_number(step->held.loss));
    return line;
}

weft_status gpt_report_step(gpt_report *report, const gpt_step *step, weft_error *error)
{
    if (!report->is_root) return WEFT_OK;
    progress(report, step);
    say_held(report, step->step, &step->held);
    return app_metrics_write(&report->metrics, step->step, line_of(report->setup, step), error);
}

weft_status gpt_report_look(gpt_report *report, int64_t step, const app_held_numbers *held,
                            weft_error *error)
{
    if (!report->is_root || !held->is_there) return WEFT_OK;
    say_held(report, step, held);
    json_t *line = app_metrics_line(step);
    json_object_set_new(line, "held_out", app_json_number(held->loss));
    return app_metrics_write(&report->metrics, step, line, error);
}

weft_status gpt_report_close(gpt_report *report, weft_error *error)
{
    const weft_status metrics = app_metrics_close(&report->metrics, error);
    const weft_status log = app_close_file(&report->log, "log.txt", error);
    return metrics != WEFT_OK ? metrics : log;
}
