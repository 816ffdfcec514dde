/* reference.c: points and elements by name. */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most names that are compared differ in their first letter or are one text: a sanitizer makes each call of strcmp dear. */
static bool is_same_name(const char *a, const char *b)
{
    return a == b || (a[0] == b[0] && strcmp(a, b) == 0);
}

static int find(const reference_point *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (is_same_name(p->name[i], name)) return i;
    return -1;
}

/* Of the coordinates those that are there. */
static void copy_point(reference_point *q, const reference_point *p)
{
    q->n = p->n, q->n_fixed = p->n_fixed, q->done = p->done;
    for (int i = 0; i < p->n; i++)
        q->name[i] = p->name[i], q->size[i] = p->size[i], q->at[i] = p->at[i];
}

static int find_or_die(const reference_point *p, const char *name)
{
    const int i = find(p, name);
    if (i >= 0) return i;
    fprintf(stderr, "reference: a point has no coordinate along %s\n", name);
    abort();
}

reference_point point_first(const reference_point *row, const reference_tensor *const *tensors)
{
    reference_point p = *row;
    p.n_fixed = p.n;
    p.done = false;
    for (; *tensors != NULL; tensors++)
        for (int d = 0; d < (*tensors)->shape.n_dims; d++) {
            const weft_dim *dim = &(*tensors)->shape.dims[d];
            if (find(&p, dim->name) >= 0) continue;
            p.name[p.n] = dim->name, p.size[p.n] = dim->size, p.at[p.n++] = 0;
        }
    return p;
}

void point_next(reference_point *p)
{
    int i = p->n - 1;
    while (i >= p->n_fixed && ++p->at[i] == p->size[i])
        p->at[i--] = 0;
    p->done = i < p->n_fixed;
}

int64_t point_at(const reference_point *p, const char *name)
{
    return p->at[find_or_die(p, name)];
}

reference_point point_set(const reference_point *p, const char *name, int64_t at)
{
    reference_point q;
    copy_point(&q, p);
    int i = find(p, name);
    if (i < 0) i = q.n++;
    q.name[i] = name, q.at[i] = at;
    return q;
}

reference_point point_without(const reference_point *p, const char *name)
{
    reference_point q;
    copy_point(&q, p);
    const int i = find_or_die(p, name);
    q.n--;
    q.name[i] = q.name[q.n], q.size[i] = q.size[q.n], q.at[i] = q.at[q.n];
    return q;
}

reference_point point_named(const reference_point *p, const char *from, const char *to)
{
    const int64_t at = point_at(p, from);
    const reference_point rest = point_without(p, from);
    return point_set(&rest, to, at);
}

int64_t element_index(const reference_tensor *x, const reference_point *p)
{
    int64_t index = 0;
    for (int d = 0; d < x->shape.n_dims; d++) {
        const int64_t size = x->shape.dims[d].size, at = point_at(p, x->shape.dims[d].name);
        if (at < 0 || at >= size) {
            fprintf(stderr, "reference: %s has no element %lld\n", x->shape.dims[d].name,
                    (long long)at);
            abort();
        }
        index = index * size + at;
    }
    return index;
}

int64_t tensor_size(const reference_tensor *x, const char *name)
{
    for (int d = 0; d < x->shape.n_dims; d++)
        if (is_same_name(x->shape.dims[d].name, name)) return x->shape.dims[d].size;
    return 0;
}

long double element_get(const reference_tensor *x, const reference_point *p)
{
    return (long double)x->data[element_index(x, p)];
}

void element_put(const reference_tensor *x, const reference_point *p, long double value)
{
    double *to = &x->data[element_index(x, p)];
    if (x->dtype == WEFT_I32) value = (int32_t)(uint32_t)(int64_t)value;
    if (x->dtype == WEFT_I64) value = (int64_t)value;
    if (x->dtype == WEFT_U8) value = (uint8_t)(int64_t)value;
    *to = (double)value;
}

void element_add(const reference_tensor *x, const reference_point *p, long double value)
{
    element_put(x, p, element_get(x, p) + value);
}
