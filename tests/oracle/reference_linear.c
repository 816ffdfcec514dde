/* reference_linear.c: factors of square matrices, and equations: in long double, one matrix and one column at a time. */
#include "reference.h"

#include <math.h>

enum { MOST = 16 };

static reference_point entry(const reference_call *call, const reference_point *p, int64_t i,
                             int64_t j)
{
    const reference_point row = point_set(p, call->with.dim, i);
    return point_set(&row, call->with.other, j);
}

/* with.dim: row; with.other: column. */
void reference_cholesky(const reference_call *call)
{
    const int64_t n = tensor_size(&call->out[0], call->with.dim);
    REFERENCE_EACH(p, &call->out[0])
    {
        long double l[MOST][MOST] = {{0}};
        bool is_positive = true;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                const reference_point at = entry(call, &p, i, j);
                long double sum = element_get(&call->in[0], &at);
                for (int64_t k = 0; k < j; k++)
                    sum -= l[i][k] * l[j][k];
                if (i == j && !(sum > 0)) is_positive = false;
                l[i][j] = i == j ? sqrtl(sum) : sum / l[j][j];
            }
        const int64_t i = point_at(&p, call->with.dim), j = point_at(&p, call->with.other);
        element_put(&call->out[0], &p, is_positive || j > i ? l[i][j] : (long double)NAN);
    }
}

/* The rows and the right-hand side of one equation; of a triangle the rest is 0. */
typedef struct equation {
    int64_t n;
    long double a[MOST][MOST + 1];
} equation;

static equation equation_of(const reference_call *call, const reference_point *p, int triangle)
{
    equation e = {.n = tensor_size(&call->out[0], call->with.other)};
    for (int64_t i = 0; i < e.n; i++) {
        for (int64_t j = 0; j < e.n; j++) {
            const reference_point at = entry(call, p, i, j);
            e.a[i][j] = (j - i) * triangle < 0 ? 0 : element_get(&call->in[0], &at);
        }
        const reference_point of_b = point_set(p, call->with.dim, i);
        e.a[i][e.n] = element_get(&call->in[1], &of_b);
    }
    return e;
}

static bool eliminate(equation *e)
{
    for (int64_t c = 0; c < e->n; c++) {
        int64_t top = c;
        for (int64_t i = c; i < e->n; i++)
            if (fabsl(e->a[i][c]) > fabsl(e->a[top][c])) top = i;
        if (e->a[top][c] == 0) return false;
        for (int64_t j = 0; j <= e->n; j++) {
            const long double kept = e->a[c][j];
            e->a[c][j] = e->a[top][j], e->a[top][j] = kept;
        }
        for (int64_t i = 0; i < e->n; i++) {
            if (i == c) continue;
            const long double by = e->a[i][c] / e->a[c][c];
            for (int64_t j = c; j <= e->n; j++)
                e->a[i][j] -= by * e->a[c][j];
        }
    }
    return true;
}

/* triangle: 1 the upper, -1 the lower, 0 all of the matrix. */
static void solve(const reference_call *call, int triangle)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = point_at(&p, call->with.other);
        equation e = equation_of(call, &p, triangle);
        const bool is_solved = eliminate(&e);
        element_put(&call->out[0], &p, is_solved ? e.a[i][e.n] / e.a[i][i] : (long double)NAN);
    }
}
void reference_triangular_solve(const reference_call *call)
{
    solve(call, call->with.causal ? 1 : -1);
}
void reference_solve(const reference_call *call)
{
    solve(call, 0);
}
void reference_solve_positive(const reference_call *call)
{
    solve(call, 0);
}
