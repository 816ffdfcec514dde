/* counts: numbers as Prometheus reads them.
 *
 * source  prometheus.io/docs/instrumenting/exposition_formats, "Text-based format"
 */
#include "counts.h"

#include <stdio.h>

void gpt_times_add(gpt_times *times, double seconds)
{
    double bound = 1e-3;
    int i = 0;
    for (; i < GPT_BOUNDS && seconds > bound; i++)
        bound *= 2;
    times->counts[i]++;
    times->sum += seconds;
}

static const char *const endings[GPT_ENDINGS] = {"done", "wrong", "refused",
                                                 "late", "left",  "failed"};

static void head(FILE *file, const char *name, const char *kind, const char *help)
{
    fprintf(file, "# HELP weft_serve_%s %s\n# TYPE weft_serve_%s %s\n", name, help, name, kind);
}

static void number(FILE *file, const char *name, const char *kind, const char *help, int64_t n)
{
    head(file, name, kind, help);
    fprintf(file, "weft_serve_%s %lld\n", name, (long long)n);
}

static void times(FILE *file, const char *name, const char *help, const gpt_times *t)
{
    double bound = 1e-3;
    int64_t n = 0;
    head(file, name, "histogram", help);
    for (int i = 0; i < GPT_BOUNDS; i++, bound *= 2) {
        n += t->counts[i];
        fprintf(file, "weft_serve_%s_bucket{le=\"%g\"} %lld\n", name, bound, (long long)n);
    }
    n += t->counts[GPT_BOUNDS];
    fprintf(file, "weft_serve_%s_bucket{le=\"+Inf\"} %lld\nweft_serve_%s_sum %.6f\n", name,
            (long long)n, name, t->sum);
    fprintf(file, "weft_serve_%s_count %lld\n", name, (long long)n);
}

static void write_all(FILE *file, const gpt_counts *c)
{
    head(file, "requests_total", "counter", "Requests, by how they ended.");
    for (int i = 0; i < GPT_ENDINGS; i++)
        fprintf(file, "weft_serve_requests_total{end=\"%s\"} %lld\n", endings[i],
                (long long)c->ended[i]);
    number(file, "prompt_tokens_total", "counter", "Tokens of prompts and inputs that were read.",
           c->read);
    number(file, "tokens_total", "counter", "Tokens that were written.", c->written);
    number(file, "slots", "gauge", "Texts that can go on at once.", c->n_slots);
    number(file, "slots_busy", "gauge", "Texts that go on.", c->n_busy);
    number(file, "waiting", "gauge", "Requests that wait.", c->n_waiting);
    number(file, "clients", "gauge", "Connections.", c->n_clients);
    times(file, "wait_seconds", "From a request to its first chunk.", &c->waits);
    times(file, "first_token_seconds", "From a request to its first token.", &c->firsts);
    times(file, "gap_seconds", "From a token of a text to its next.", &c->gaps);
    times(file, "tick_seconds", "One step of all texts, and a chunk.", &c->ticks);
}

char *gpt_counts_text(const gpt_counts *counts)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) return NULL;
    write_all(file, counts);
    return fclose(file) == 0 ? text : NULL;
}
