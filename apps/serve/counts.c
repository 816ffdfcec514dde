/* counts: numbers as Prometheus reads them.
 *
 * source  prometheus.io/docs/instrumenting/exposition_formats, "Text-based format"
 */
#include "counts.h"

#include <stdio.h>

void serve_times_add(serve_times *times, double seconds)
{
    double bound = 1e-3;
    int i = 0;
    for (; i < SERVE_BOUNDS && seconds > bound; i++)
        bound *= 2;
    times->counts[i]++;
    times->sum += seconds;
}

static const char *const endings[SERVE_ENDINGS] = {"done", "wrong", "refused",
                                                   "late", "left",  "failed"};

static void head(FILE *file, const char *name, const char *kind, const char *help)
{
    fprintf(file, "# HELP weft_serve_%s %s\n# TYPE weft_serve_%s %s\n", name, help, name, kind);
}

void serve_count(FILE *file, const char *name, const char *kind, const char *help, int64_t n)
{
    head(file, name, kind, help);
    fprintf(file, "weft_serve_%s %lld\n", name, (long long)n);
}

void serve_count_times(FILE *file, const char *name, const char *help, const serve_times *t)
{
    double bound = 1e-3;
    int64_t n = 0;
    head(file, name, "histogram", help);
    for (int i = 0; i < SERVE_BOUNDS; i++, bound *= 2) {
        n += t->counts[i];
        fprintf(file, "weft_serve_%s_bucket{le=\"%g\"} %lld\n", name, bound, (long long)n);
    }
    n += t->counts[SERVE_BOUNDS];
    fprintf(file, "weft_serve_%s_bucket{le=\"+Inf\"} %lld\nweft_serve_%s_sum %.6f\n", name,
            (long long)n, name, t->sum);
    fprintf(file, "weft_serve_%s_count %lld\n", name, (long long)n);
}

void serve_counts_write(FILE *file, const serve_counts *c, int64_t n_waiting)
{
    head(file, "requests_total", "counter", "Requests, by how they ended.");
    for (int i = 0; i < SERVE_ENDINGS; i++)
        fprintf(file, "weft_serve_requests_total{end=\"%s\"} %lld\n", endings[i],
                (long long)c->ended[i]);
    serve_count(file, "waiting", "gauge", "Requests that wait.", n_waiting);
    serve_count(file, "clients", "gauge", "Connections.", c->n_clients);
    serve_count_times(file, "wait_seconds", "From a request to its first step.", &c->waits);
}
