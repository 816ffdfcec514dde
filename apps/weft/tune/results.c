/* results: what a search came to. */
#include "results.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../json.h"
#include "../../whole_file.h"

/* ---- a table ----------------------------------------------------------------------------------- */

static void print_head(const search *s)
{
    printf("\ntrial ");
    for (int a = 0; a < s->launch.space->n; a++)
        printf(" %12s", s->launch.space->axes[a].name);
    printf(" %9s %14s\n", "step", s->by);
}

/* What a trial came to that by: a member of a population may have taken another's settings since. */
static char (*values_of(const search *s, int t))[SPACE_TEXT]
{
    trial *of = &s->trials[t];
    const outcome *o = search_last(s, t);
    return of->rounds && o ? of->rounds[o - of->outcomes].values : of->values;
}

static void print_climb(const trial *t)
{
    if (t->is_climbed && t->toward >= 0)
        printf("   halfway from %d to %d", t->from, t->toward);
    else if (t->is_climbed)
        printf("   a step from %d", t->from);
    putchar('\n');
}

static void print_trial(const search *s, int t)
{
    const outcome *o = search_last(s, t);
    printf("%5d ", t);
    for (int a = 0; a < s->launch.space->n; a++)
        printf(" %12s", values_of(s, t)[a]);
    if (!o)
        printf(" %9s %14s", "-", "not begun");
    else if (isnan(o->result))
        printf(" %9lld %14s", (long long)o->steps, "failed");
    else
        printf(" %9lld %14.6g", (long long)o->steps, o->result);
    print_climb(&s->trials[t]);
}

/* What the weights of the best have learned by, round by round: its ancestors' settings, then its own. */
static void print_ancestors(const search *s, int round, int t)
{
    const trial_round *r = &s->trials[t].rounds[round];
    if (round > 0) print_ancestors(s, round - 1, r->from >= 0 ? r->from : t);
    printf("  to step %6lld, trial %d:", (long long)search_until(s, round), t);
    for (int a = 0; a < s->launch.space->n; a++)
        printf(" --%s=%s", s->launch.space->axes[a].name, r->values[a]);
    putchar('\n');
}

static void print_best(const search *s, int best)
{
    int n_failed = 0, n_done = 0;
    for (int t = 0; t < s->n; t++) {
        const outcome *o = search_last(s, t);
        n_done += o != NULL;
        n_failed += o && isnan(o->result);
    }
    printf("\n%d of %d trials, %d failed, %lld steps trained\n", n_done, s->n, n_failed,
           (long long)s->trained);
    if (best < 0) return;
    printf("best:");
    for (int i = 0; i < s->launch.n; i++)
        printf(" %s", s->launch.command[i]);
    for (int a = 0; a < s->launch.space->n; a++)
        printf(" --%s=%s", s->launch.space->axes[a].name, values_of(s, best)[a]);
    char path[4200];
    trial_folder(s->launch.folder, &s->trials[best], path, sizeof path);
    printf("\nits run is in %s\n", path);
    const outcome *o = search_last(s, best);
    if (!s->is_population) return;
    puts("what it has learned by:");
    print_ancestors(s, (int)(o - s->trials[best].outcomes), best);
}

static int *order_of(const search *s, weft_error *error)
{
    int *order = calloc((size_t)s->n + 1, sizeof *order);
    if (order)
        search_order(s, order);
    else
        weft_fail_memory(error, (size_t)s->n * sizeof *order);
    return order;
}

weft_status results_table(const search *s, int most, weft_error *error)
{
    int *order = order_of(s, error);
    if (!order) return error->status;
    const outcome *first = search_last(s, order[0]);
    print_head(s);
    for (int i = 0; i < s->n && i < most; i++)
        print_trial(s, order[i]);
    if (most < s->n) printf("  and %d more\n", s->n - most);
    print_best(s, first && !isnan(first->result) ? order[0] : -1);
    free(order);
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

/* ---- data -------------------------------------------------------------------------------------- */

static json_t *values_json(const search *s, char values[][SPACE_TEXT])
{
    json_t *all = json_object();
    for (int a = 0; a < s->launch.space->n; a++)
        json_object_set_new(all, s->launch.space->axes[a].name, json_string(values[a]));
    return all;
}

/* What it came to, rung by rung, or round by round. */
static json_t *rounds_json(const search *s, trial *t)
{
    json_t *list = json_array();
    for (int k = 0; k < s->n_rungs; k++) {
        const outcome *o = &t->outcomes[k];
        const int from = t->rounds ? t->rounds[k].from : -1;
        if (!o->is_done) continue;
        json_array_append_new(list,
                              json_pack("{s:I, s:o, s:i, s:f, s:o, s:o}", "step",
                                        (json_int_t)o->steps, "result", app_json_number(o->result),
                                        "status", o->status, "seconds", o->seconds, "settings",
                                        values_json(s, t->rounds ? t->rounds[k].values : t->values),
                                        "from", from < 0 ? json_null() : json_integer(from)));
    }
    return list;
}

static json_t *trial_json(const search *s, int t)
{
    char path[4200];
    const outcome *o = search_last(s, t);
    const outcome none = {.result = NAN};
    double seconds = 0;
    if (!o) o = &none;
    trial_folder(s->launch.folder, &s->trials[t], path, sizeof path);
    json_t *run = json_string(path);
    if (!run) run = json_string("?"); /* a name that is not UTF-8 */
    for (int k = 0; k < s->n_rungs; k++)
        seconds += s->trials[t].outcomes[k].seconds;
    return json_pack("{s:i, s:o, s:I, s:o, s:i, s:f, s:o, s:o}", "trial", t, "settings",
                     values_json(s, values_of(s, t)), "step", (json_int_t)o->steps, "result",
                     app_json_number(o->result), "status", o->status, "seconds", seconds, "rounds",
                     rounds_json(s, &s->trials[t]), "run", run);
}

weft_status results_json(const search *s, weft_error *error)
{
    int *order = order_of(s, error);
    json_t *trials = json_array();
    if (!order) return error->status;
    for (int i = 0; i < s->n; i++)
        json_array_append_new(trials, trial_json(s, order[i]));
    free(order);
    json_t *all =
        json_pack("{s:s, s:b, s:b, s:I, s:o}", "by", s->by, "highest", s->is_highest, "stopped",
                  s->is_stopped, "steps_trained", (json_int_t)s->trained, "trials", trials);
    if (!all) return weft_fail_memory(error, 0);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return fflush(stdout) == 0 ? WEFT_OK : weft_fail(error, WEFT_IO, "cannot write to stdout");
}

/* ---- a picture --------------------------------------------------------------------------------- */

enum { PANEL = 220, HIGH = 200, LEFT = 60, TOP = 36 };

/* What results go from and to; of positive ones over two decades by their logarithms. */
typedef struct scale {
    double low, high;
    bool is_log;
} scale;

static scale scale_of(const search *s)
{
    scale c = {INFINITY, -INFINITY, false};
    for (int t = 0; t < s->n; t++) {
        const outcome *o = search_last(s, t);
        if (!o || isnan(o->result)) continue;
        c.low = fmin(c.low, o->result);
        c.high = fmax(c.high, o->result);
    }
    c.is_log = c.low > 0 && c.high > 100 * c.low;
    return c;
}

static double place_on(const scale *c, double x)
{
    if (!(c->high > c->low)) return 0.5;
    return c->is_log ? log(x / c->low) / log(c->high / c->low) : (x - c->low) / (c->high - c->low);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    fputs("</text>\n", out);
}

/* The ends of an option's values, below its panel. */
static void put_ends(FILE *out, const space_axis *axis, double x)
{
    char low[SPACE_TEXT], high[SPACE_TEXT];
    snprintf(low, sizeof low, "%.4g", axis->low);
    snprintf(high, sizeof high, "%.4g", axis->high);
    put_text(out, x, TOP + HIGH + 16, "start", axis->n > 0 ? axis->values[0] : low);
    put_text(out, x + PANEL - 40, TOP + HIGH + 16, "end",
             axis->n > 0 ? axis->values[axis->n - 1] : high);
    put_text(out, x + (PANEL - 40) / 2.0, TOP + HIGH + 32, "middle", axis->name);
}

/* The further a trial was trained, the darker it is. */
static void put_dots(FILE *out, const search *s, const scale *c, int a, double x)
{
    int64_t most = 1;
    for (int t = 0; t < s->n; t++)
        if (search_last(s, t) && search_last(s, t)->steps > most) most = search_last(s, t)->steps;
    for (int t = 0; t < s->n; t++) {
        const outcome *o = search_last(s, t);
        if (!o || isnan(o->result)) continue;
        const double share = space_place(&s->launch.space->axes[a], values_of(s, t)[a]);
        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#1f5fa8\" fill-opacity=\"%.2f\">"
                "<title>trial %d: %.6g at step %lld</title></circle>\n",
                x + share * (PANEL - 40), TOP + HIGH - place_on(c, o->result) * HIGH,
                0.2 + 0.8 * (double)o->steps / (double)most, t, o->result, (long long)o->steps);
    }
}

static void put_panel(FILE *out, const search *s, const scale *c, int a)
{
    const double x = LEFT + a * PANEL;
    fprintf(
        out,
        "<rect x=\"%.1f\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
        x - 8, TOP - 8, PANEL - 24, HIGH + 16);
    put_ends(out, &s->launch.space->axes[a], x);
    put_dots(out, s, c, a, x);
}

weft_status results_picture(const search *s, const char *path, weft_error *error)
{
    app_whole_file file;
    char text[64];
    const scale c = scale_of(s);
    WEFT_TRY(app_whole_open(&file, path, error));
    FILE *out = file.stream;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            LEFT + s->launch.space->n * PANEL, TOP + HIGH + 48);
    if (isfinite(c.low)) {
        snprintf(text, sizeof text, "%.4g", c.high);
        put_text(out, LEFT - 12, TOP + 4, "end", text);
        snprintf(text, sizeof text, "%.4g", c.low);
        put_text(out, LEFT - 12, TOP + HIGH + 4, "end", text);
    }
    put_text(out, LEFT - 8, TOP - 16, "start", s->by);
    for (int a = 0; a < s->launch.space->n; a++)
        put_panel(out, s, &c, a);
    fputs("</svg>\n", out);
    return app_whole_close(&file, true, error);
}
