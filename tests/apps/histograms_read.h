/* histograms_read.h: whether two event files have the same histograms. */
#ifndef TEST_HISTOGRAMS_READ_H
#define TEST_HISTOGRAMS_READ_H

#include "apps/events_read.h"

static inline const read_event *read_find(const read_file *f, const char *tag, int64_t step)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->events[i].tag, tag) == 0 && f->events[i].step == step) return &f->events[i];
    return NULL;
}

static inline bool read_is_near(double a, double b)
{
    return fabs(a - b) <= 1e-4 * (fabs(a) + fabs(b)) + 1e-6;
}

/* Variables of the first step are equal to the bit, and so are counts; gradients are equal but for rounding, which may carry a number over a
 * limit. */
static inline void check_equal(const read_event *a, const read_event *b)
{
    const bool is_exact = strncmp(a->tag, "variables", 9) == 0 && a->step == 1;
    double moved = 0;
    if (!CHECK(a->is_histogram && b->is_histogram && a->n_parts == b->n_parts)) return;
    CHECK(read_is_near(a->low, b->low) && read_is_near(a->high, b->high) && a->count == b->count);
    CHECK(read_is_near(a->sum, b->sum) && read_is_near(a->squares, b->squares));
    for (int i = 0; i < a->n_parts; i++)
        moved += fabs(a->counts[i] - b->counts[i]);
    weft_test_check(is_exact ? moved == 0 && a->low == b->low && a->high == b->high
                             : moved <= 4 + 0.01 * a->count,
                    __FILE__, __LINE__, a->tag);
}

static inline int check_histograms(const read_file *a, const read_file *b)
{
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        if (!a->events[i].is_histogram) continue;
        const read_event *its = read_find(b, a->events[i].tag, a->events[i].step);
        if (CHECK(its != NULL)) check_equal(&a->events[i], its);
        n++;
    }
    return n;
}

#endif
