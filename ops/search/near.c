/* near: which choices are one step from another. */
#include "searching.h"

#include <string.h>

static int64_t size_of_role(const weft_search_outline *p, int role)
{
    for (int a = 0; a < p->n; a++)
        if (p->axes[a].role == role) return p->axes[a].size;
    return 1;
}

static bool is_prime(int64_t n)
{
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return n > 1;
}

/* A prime factor is moved from one role to another, or all of a role's ranks get another role. */
static bool is_moved(int64_t x, int64_t y)
{
    const int64_t more = x > y ? x : y, less = x > y ? y : x;
    return less == 1 || (more % less == 0 && is_prime(more / less));
}

/* How many roles have another size; -1: one of them by more than a step. */
static int n_moved(const weft_search_outline *a, const weft_search_outline *b)
{
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        const int64_t x = a->axes[i].size, y = size_of_role(b, a->axes[i].role);
        if (x == y) continue;
        n++;
        if (!is_moved(x, y)) return -1;
    }
    for (int i = 0; i < b->n; i++) {
        if (size_of_role(a, b->axes[i].role) != 1) continue;
        n++;
    }
    return n;
}

static int n_other_knobs(const weft_search_setting *x, const weft_search_setting *y)
{
    int n = x->zero != y->zero;
    for (int k = 0; k < WEFT_MAX_KNOBS; k++)
        n += x->knob[k] != y->knob[k];
    return n;
}

bool weft_search_are_near(const weft_search_outline *a, const weft_search_setting *x,
                          const weft_search_outline *b, const weft_search_setting *y)
{
    const int settings = x == y ? 0 : n_other_knobs(x, y);
    if (settings > 1) return false;
    const int moved = a == b ? 0 : n_moved(a, b);
    if (a == b) return settings == 1;
    return settings == 0 && (moved == 0 || moved == 2);
}
