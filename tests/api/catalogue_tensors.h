/* catalogue_tensors.h: wrong and good dims, shapes, values and what describes them. */
#ifndef TEST_CATALOGUE_TENSORS_H
#define TEST_CATALOGUE_TENSORS_H

/* ---- dims, shapes, values -------------------------------------------------------------------- */

static const weft_dim wrong_dims[] = {
    {NULL, 6},          {"", 6},        {"row", 0},         {"row", -1},
    {"row", INT64_MAX}, {"nosuch", 6},  {"two words", 6},   {"row'", 4},
    {"~", 2},           {"row", 4},     {"column", 6},      {"column", 7},
    {"\xff", 6},        {long_text, 6}, {"row", INT64_MIN}, {"row", (int64_t)1 << 40},
};
enum { n_wrong_weft_dim = sizeof wrong_dims / sizeof *wrong_dims, n_wrong_weft_dim_ptr = 2 };
static weft_dim wrong_weft_dim(fixture *f, int v)
{
    (void)f;
    return wrong_dims[v];
}
static weft_dim good_weft_dim(fixture *f)
{
    return f->column;
}
static const weft_dim *wrong_weft_dim_ptr(fixture *f, int v)
{
    (void)f;
    return v == 0 ? NULL : wrong_dims;
}
static const weft_dim *good_weft_dim_ptr(fixture *f)
{
    return f->turned.dims;
}

/* Alone, or after a good dim; and with counts that are none. */
enum {
    n_wrong_weft_shape = 2 * n_wrong_weft_dim + 5,
    n_wrong_weft_shape_ptr = 1 + n_wrong_weft_shape
};
static weft_shape wrong_weft_shape(fixture *f, int v)
{
    static const int counts[] = {-1, 9, 1000, INT_MAX, INT_MIN};
    weft_shape shape = {0};
    if (v < n_wrong_weft_dim) {
        shape.n_dims = 1;
        shape.dims[0] = wrong_dims[v];
    } else if (v < 2 * n_wrong_weft_dim) {
        shape.n_dims = 2;
        shape.dims[0] = f->row;
        shape.dims[1] = wrong_dims[v - n_wrong_weft_dim];
    } else {
        shape = f->turned;
        shape.n_dims = counts[v - 2 * n_wrong_weft_dim];
    }
    return shape;
}
static weft_shape good_weft_shape(fixture *f)
{
    return f->turned;
}
static weft_shape *wrong_weft_shape_ptr(fixture *f, int v)
{
    static weft_shape shape;
    if (v == 0) return NULL;
    shape = wrong_weft_shape(f, v - 1);
    return &shape;
}
static weft_shape *good_weft_shape_ptr(fixture *f)
{
    return &f->turned;
}

enum {
    n_wrong_weft_value = 12,
    n_wrong_weft_values = 8,
    n_wrong_weft_value_ptr = 1,
    n_wrong_weft_initial = 6
};
static weft_value wrong_weft_value(fixture *f, int v)
{
    const weft_value list[n_wrong_weft_value] = {{NULL, 0},
                                                 {f->graph, 0},
                                                 {f->graph, 100000},
                                                 {f->graph, UINT32_MAX},
                                                 {NULL, 7},
                                                 f->other,
                                                 f->update,
                                                 f->ids,
                                                 f->loss,
                                                 f->x,
                                                 f->w,
                                                 f->slot};
    return list[v];
}
static weft_value good_weft_value(fixture *f)
{
    return f->x;
}
static weft_value *wrong_weft_value_ptr(fixture *f, int v)
{
    (void)f, (void)v;
    return NULL;
}
static weft_value *good_weft_value_ptr(fixture *f)
{
    return f->taken;
}
static weft_values wrong_weft_values(fixture *f, int v)
{
    static weft_value two[2];
    const weft_value seconds[] = {{NULL, 0}, {f->graph, 100000}, f->other, f->update, f->x};
    const int counts[] = {0, 3, -1};
    two[0] = f->w;
    if (v < 3) return (weft_values){v == 2 ? two : NULL, counts[v]};
    two[1] = seconds[v - 3];
    return (weft_values){two, 2};
}
static weft_values good_weft_values(fixture *f)
{
    return f->losses;
}
enum { n_wrong_weft_spatials = 10 };
static weft_spatials wrong_weft_spatials(fixture *f, int v)
{
    static weft_spatial one;
    one = (weft_spatial){f->column, f->column, f->column, 1, 1, 0};
    if (v == 0) one.stride = -1;
    if (v == 1) one.stride = INT64_MAX;
    if (v == 2) one.dilation = INT64_MIN;
    if (v == 3) one.before = INT64_MIN;
    if (v == 4) one.before = INT64_MAX;
    if (v == 5) one.tap = (weft_dim){NULL, 3};
    if (v == 6) one.out.size = 0;
    if (v == 7) one.in = (weft_dim){"nosuch", 4};
    return (weft_spatials){v == 8 ? NULL : &one, v == 9 ? -1 : 1};
}
static weft_spatials good_weft_spatials(fixture *f)
{
    static weft_spatial one;
    one = (weft_spatial){f->column, f->column, f->column, 1, 1, 0};
    return (weft_spatials){&one, 1};
}
static void took_weft_spatial(fixture *f, weft_spatial spatial)
{
    (void)f, (void)spatial;
}
static weft_initial wrong_weft_initial(fixture *f, int v)
{
    (void)f;
    weft_initial initial = weft_normal(0, 1);
    if (v == 0) memset(&initial.kind, 0xff, sizeof initial.kind);
    if (v == 1) memset(&initial.kind, 0x07, sizeof initial.kind);
    if (v == 2) initial.b = NAN;
    if (v == 3) initial.a = INFINITY;
    if (v == 4) initial.b = -1;
    return initial;
}
static weft_initial good_weft_initial(fixture *f)
{
    (void)f;
    return weft_constant_of(0.5);
}
enum { n_wrong_weft_initial_ptr = 1 + n_wrong_weft_initial };
static weft_initial *wrong_weft_initial_ptr(fixture *f, int v)
{
    static weft_initial initial;
    if (v > 0) initial = wrong_weft_initial(f, v - 1);
    return v > 0 ? &initial : NULL;
}
static weft_initial *good_weft_initial_ptr(fixture *f)
{
    static weft_initial initial;
    initial = good_weft_initial(f);
    return &initial;
}

enum { n_wrong_weft_experts_weights_ptr = 3 * n_wrong_weft_value };
static const weft_experts_weights *wrong_weft_experts_weights_ptr(fixture *f, int v)
{
    static weft_experts_weights weights;
    weft_value *const all[] = {&weights.router, &weights.up, &weights.down};
    weights = (weft_experts_weights){f->w, f->w, f->w};
    *all[v / n_wrong_weft_value] = wrong_weft_value(f, v % n_wrong_weft_value);
    return &weights;
}

#endif
