/* curves_part: metrics.jsonl as curves: whatever numbers its lines have, over the steps.
 *
 * There may be millions of lines, so they go into buckets of as many steps each as it takes: two become one when there are too
 * many. A bucket has the mean, the least and the most of its lines.
 */
#include "parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES = 12, NAME_BYTES = 40 };

typedef struct bucket {
    double first, last; /* steps */
    int n[SERIES];
    double sum[SERIES], low[SERIES], high[SERIES];
} bucket;

typedef struct curves {
    char names[SERIES][NAME_BYTES];
    int n_names;
    bucket *buckets; /* [room] */
    size_t n, room;
    long per;     /* lines that a bucket takes */
    long in_last; /* that the last one has */
    long n_lines, n_wrong, n_back, n_infinite, n_more;
} curves;

/* ---- buckets ----------------------------------------------------------------------------------- */

static void join(bucket *to, const bucket *from)
{
    to->last = from->last;
    for (int i = 0; i < SERIES; i++) {
        if (from->n[i] == 0) continue;
        to->low[i] = to->n[i] == 0 ? from->low[i] : fmin(to->low[i], from->low[i]);
        to->high[i] = to->n[i] == 0 ? from->high[i] : fmax(to->high[i], from->high[i]);
        to->sum[i] += from->sum[i];
        to->n[i] += from->n[i];
    }
}

static void halve(curves *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i += 2) {
        bucket one = c->buckets[i];
        if (i + 1 < c->n) join(&one, &c->buckets[i + 1]);
        c->buckets[n++] = one;
    }
    c->n = n;
    c->per *= 2;
    c->in_last = c->per; /* the next line begins a bucket */
}

/* A run that goes on from an older checkpoint does steps again: what it says last counts. */
static void go_back(curves *c, double step)
{
    if (c->n == 0 || step > c->buckets[c->n - 1].last) return;
    c->n_back++;
    while (c->n > 0 && c->buckets[c->n - 1].first >= step)
        c->n--;
    c->in_last = c->per;
}

/* A number that is known at the end has a line of its own, of the step that was the last. */
static void add_to_last(bucket *last, const bucket *one)
{
    for (int i = 0; i < SERIES; i++)
        if (last->first == last->last && one->n[i] > 0) last->n[i] = 0, last->sum[i] = 0;
    join(last, one);
}

static void add(curves *c, const bucket *one)
{
    if (c->n > 0 && one->first == c->buckets[c->n - 1].last) {
        add_to_last(&c->buckets[c->n - 1], one);
        return;
    }
    go_back(c, one->first);
    if (c->n > 0 && c->in_last < c->per) {
        join(&c->buckets[c->n - 1], one);
        c->in_last++;
        return;
    }
    if (c->n == c->room) halve(c);
    c->buckets[c->n++] = *one;
    c->in_last = 1;
}

/* ---- lines ------------------------------------------------------------------------------------- */

/* -1: there is no room for another name. */
static int series_of(curves *c, const char *name)
{
    for (int i = 0; i < c->n_names; i++)
        if (strcmp(c->names[i], name) == 0) return i;
    if (c->n_names == SERIES || strlen(name) >= NAME_BYTES) return -1;
    strcpy(c->names[c->n_names], name);
    return c->n_names++;
}

static void add_number(curves *c, bucket *one, const char *name, const json_t *value)
{
    const int i = json_is_number(value) || json_is_null(value) ? series_of(c, name) : -1;
    if (i < 0) {
        c->n_more++;
        return;
    }
    if (json_is_null(value)) {
        c->n_infinite++;
        return;
    }
    one->n[i] = 1;
    one->sum[i] = one->low[i] = one->high[i] = json_number_value(value);
}

static void add_line(curves *c, const char *line, size_t bytes)
{
    json_t *object = json_loadb(line, bytes, 0, NULL), *value;
    const json_t *step = json_object_get(object, "step");
    const char *name;
    c->n_lines++;
    if (!json_is_number(step)) {
        c->n_wrong++;
        json_decref(object);
        return;
    }
    bucket one = {.first = json_number_value(step), .last = json_number_value(step)};
    json_object_foreach(object, name, value)
    {
        if (strcmp(name, "step") != 0) add_number(c, &one, name, value);
    }
    add(c, &one);
    json_decref(object);
}

/* The last line may be under way: a job writes it. */
static weft_status read_lines(curves *c, const char *path, weft_error *error)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    if (!file) return weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
    errno = 0;
    for (ssize_t n; (n = getline(&line, &room, file)) > 0;)
        if (line[n - 1] == '\n') add_line(c, line, (size_t)n);
    const int failed = ferror(file), number = errno;
    free(line);
    fclose(file);
    WEFT_TRY(app_json_status(error));
    if (!failed) return WEFT_OK;
    return weft_fail(error, number == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot read %.300s: %s",
                     path, strerror(number));
}

/* ---- the data ---------------------------------------------------------------------------------- */

static json_t *numbers_of(const curves *c, int series, const char *which)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const bucket *b = &c->buckets[i];
        const double number = *which == 'm'   ? b->sum[series] / b->n[series]
                              : *which == 'l' ? b->low[series]
                                              : b->high[series];
        json_array_append_new(list, b->n[series] > 0 ? app_json_number(number) : json_null());
    }
    return list;
}

static json_t *series_json(const curves *c, int i)
{
    json_t *series = json_pack("{s:s, s:o}", "name", c->names[i], "mean", numbers_of(c, i, "mean"));
    if (c->per == 1) return series;
    json_object_set_new(series, "low", numbers_of(c, i, "low"));
    json_object_set_new(series, "high", numbers_of(c, i, "high"));
    return series;
}

static json_t *curves_json(const curves *c)
{
    json_t *first = json_array(), *last = json_array(), *series = json_array();
    for (size_t i = 0; i < c->n; i++) {
        json_array_append_new(first, app_json_number(c->buckets[i].first));
        json_array_append_new(last, app_json_number(c->buckets[i].last));
    }
    for (int i = 0; i < c->n_names; i++)
        json_array_append_new(series, series_json(c, i));
    return json_pack("{s:I, s:I, s:o, s:o, s:o}", "lines", (json_int_t)(c->n_lines - c->n_wrong),
                     "per", (json_int_t)c->per, "first", first, "last", last, "series", series);
}

static void add_notes(report_data *data, const curves *c)
{
    if (c->per > 1) report_note(data, "each point of a curve is of up to %ld steps", c->per);
    if (c->n_wrong > 0)
        report_note(data, "%ld lines of metrics.jsonl are no JSON with a step: left out",
                    c->n_wrong);
    if (c->n_back > 0)
        report_note(data,
                    "the run went back to an older checkpoint, %ld time%s: of steps that it did "
                    "again the last counts",
                    c->n_back, c->n_back == 1 ? "" : "s");
    if (c->n_infinite > 0)
        report_note(data, "%ld numbers of metrics.jsonl are not finite: gaps in the curves",
                    c->n_infinite);
    if (c->n_more > 0)
        report_note(data, "%ld values of metrics.jsonl are no numbers, or of more than %d names",
                    c->n_more, SERIES);
}

weft_status report_curves_part(report_data *data, weft_error *error)
{
    curves c = {.per = 1, .in_last = 1, .room = data->limits.points};
    if (*data->found->metrics == '\0') return WEFT_OK;
    c.buckets = calloc(c.room + 1, sizeof *c.buckets);
    if (!c.buckets) return weft_fail_memory(error, c.room * sizeof *c.buckets);
    const weft_status status = read_lines(&c, data->found->metrics, error);
    if (status == WEFT_OK && c.n > 0) {
        json_object_set_new(data->root, "curves", curves_json(&c));
        add_notes(data, &c);
    }
    free(c.buckets);
    return status;
}
