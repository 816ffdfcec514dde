/* losses.h: the losses of a run by step, as its metrics have them. */
#ifndef WEFT_TESTS_LOSSES_H
#define WEFT_TESTS_LOSSES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the run directory `run`, steps 1 to n_steps into losses [n_steps + 1]; a step that was run again as it was the last
 * time. Returns how many steps there are, -1 when a step was run twice with different losses. The last line may be cut off. */
static inline int losses_read(const char *run, int n_steps, double *losses)
{
    char path[2048], line[2048];
    bool is_same = true;
    int n = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    bool *is_there = calloc((size_t)n_steps + 1, sizeof *is_there);
    FILE *file = is_there != NULL ? fopen(path, "r") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *step_at = strstr(line, "\"step\":"), *at = strstr(line, "\"loss\":");
        const int step = step_at != NULL ? atoi(step_at + strlen("\"step\":")) : 0;
        if (step < 1 || step > n_steps || at == NULL || strchr(line, '}') == NULL) continue;
        const double loss = atof(at + strlen("\"loss\":"));
        is_same = is_same && (!is_there[step] || loss == losses[step]);
        n += !is_there[step];
        is_there[step] = true;
        losses[step] = loss;
    }
    if (file != NULL) fclose(file);
    free(is_there);
    return is_same ? n : -1;
}

#endif
