/* drawn_fit.c: what one op has made, as another one asks for it. Which way is drawn: a dim that is too many may be summed, or
 * averaged, or one element of it taken; one of another size sliced or padded; one of another name renamed. */
#include "drawn.h"

#include <string.h>

/* Elements of a value, another number each, from -1 to 1. */
static bool is_free(const drawn_wish *wish)
{
    if (weft_dtype_is_float(wish->dtype)) return wish->low == -1.5 && wish->high == 1.5;
    return wish->low == (wish->dtype == WEFT_U8 ? 0 : -9) && wish->high == 10;
}

static weft_value number(weft_value like, double value)
{
    return weft_constant(like.graph, weft_dtype_of(like), WEFT_SCALAR, value);
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static weft_value float_within(weft_value x, const drawn_wish *wish, drawn_dice *dice,
                               bool is_plain)
{
    const double half = 0.5 * (wish->high - wish->low), middle = wish->low + half;
    const int way = is_plain ? 0 : drawn_roll(dice, 4);
    if (is_free(wish) && way < 2) return x;
    if (is_free(wish) && way == 2) return weft_scale(x, 0.5);
    return weft_shift(weft_scale(weft_tanh(x), 0.98 * half), middle);
}

static weft_value whole_within(weft_value x, const drawn_wish *wish)
{
    if (is_free(wish)) return x;
    const double size = wish->high - wish->low;
    if (size < 1 || size > 1e9 || (wish->dtype == WEFT_U8 && (wish->low < 0 || wish->high > 256)))
        return x;
    return weft_add(weft_mod(x, number(x, size)), number(x, wish->low));
}

static weft_value as_dtype(weft_value x, const drawn_wish *wish, drawn_dice *dice, bool is_plain)
{
    const bool was_float = weft_dtype_is_float(weft_dtype_of(x));
    if (weft_dtype_is_float(wish->dtype))
        return float_within(weft_cast(x, wish->dtype), wish, dice, is_plain);
    if (was_float) x = weft_cast(weft_shift(weft_scale(weft_tanh(x), 4.0), 4.5), WEFT_I32);
    if (wish->dtype == WEFT_U8) x = weft_abs(x);
    return whole_within(weft_cast(x, wish->dtype), wish);
}

/* ---- dims ---------------------------------------------------------------------------------------- */

/* Which of x's dims is to be each of the wish's; -1: none. */
typedef struct match {
    int of[WEFT_MAX_DIMS];
    bool is_used[WEFT_MAX_DIMS];
} match;

static void match_dims(match *m, const weft_shape *have, const weft_shape *want,
                       bool (*fits)(weft_dim, weft_dim))
{
    for (int w = 0; w < want->n_dims; w++)
        for (int h = 0; h < have->n_dims && m->of[w] < 0; h++)
            if (!m->is_used[h] && fits(have->dims[h], want->dims[w]))
                m->is_used[m->of[w] = h] = true;
}

static bool is_same(weft_dim x, weft_dim y)
{
    return x.size == y.size && strcmp(x.name, y.name) == 0;
}
static bool is_named(weft_dim x, weft_dim y)
{
    return strcmp(x.name, y.name) == 0;
}
static bool has_size(weft_dim x, weft_dim y)
{
    return x.size == y.size;
}
static bool is_any(weft_dim x, weft_dim y)
{
    (void)x, (void)y;
    return true;
}

static match matched(const weft_shape *have, const weft_shape *want, drawn_dice *dice,
                     bool is_plain)
{
    match m = {.is_used = {false}};
    for (int w = 0; w < WEFT_MAX_DIMS; w++)
        m.of[w] = -1;
    match_dims(&m, have, want, is_same);
    if (is_plain) return m;
    if (drawn_roll(dice, 2)) match_dims(&m, have, want, is_named);
    if (drawn_roll(dice, 4)) match_dims(&m, have, want, has_size);
    if (drawn_roll(dice, 2)) match_dims(&m, have, want, is_any);
    return m;
}

static weft_value without(weft_value x, weft_dim dim, drawn_dice *dice, bool is_plain)
{
    weft_shape out = {0};
    const weft_shape had = *weft_shape_of(x);
    for (int d = 0; d < had.n_dims; d++)
        if (strcmp(had.dims[d].name, dim.name) != 0) out.dims[out.n_dims++] = had.dims[d];
    const int way = is_plain ? 0 : drawn_roll(dice, 4);
    if (way == 1) return weft_max(out, x);
    if (way == 2) return weft_unstack(x, dim, drawn_roll(dice, (int)dim.size));
    if (way == 3 && weft_dtype_is_float(weft_dtype_of(x))) return weft_mean_over(out, x);
    return weft_sum(out, x);
}

static weft_value resized(weft_value x, weft_dim from, weft_dim to, drawn_dice *dice)
{
    if (from.size > to.size)
        return weft_slice(x, from, drawn_roll(dice, (int)(from.size - to.size + 1)), to);
    const int before = drawn_roll(dice, (int)(to.size - from.size + 1));
    return weft_pad(x, from, before, to, drawn_roll(dice, 2) ? 0.0 : 1.0);
}

/* Under a name in between, since the name that it is to have may be another one's now. */
static weft_value between(weft_value x, weft_dim from, weft_dim to, int w, drawn_dice *dice)
{
    static const char *const names[WEFT_MAX_DIMS] = {"fit0", "fit1", "fit2", "fit3",
                                                     "fit4", "fit5", "fit6", "fit7"};
    const weft_dim fit = {names[w], to.size};
    if (is_same(from, to)) return x;
    return from.size == to.size ? weft_rename(x, from, fit) : resized(x, from, fit, dice);
}

static weft_value named(weft_value x, const weft_shape *want)
{
    char name[8];
    for (int w = 0; w < want->n_dims; w++) {
        snprintf(name, sizeof name, "fit%d", w);
        const weft_dim fit = weft_dim_of(x, name);
        if (fit.size > 0) x = weft_rename(x, fit, want->dims[w]);
    }
    return x;
}

static bool are_equal(const weft_shape *x, const weft_shape *y)
{
    if (x->n_dims != y->n_dims) return false;
    for (int d = 0; d < x->n_dims; d++)
        if (!is_same(x->dims[d], y->dims[d])) return false;
    return true;
}

static weft_value with_dims(weft_value x, const weft_shape *want, drawn_dice *dice, bool is_plain)
{
    const weft_shape had = *weft_shape_of(x);
    const match m = matched(&had, want, dice, is_plain);
    for (int h = 0; h < had.n_dims; h++)
        if (!m.is_used[h]) x = without(x, had.dims[h], dice, is_plain);
    for (int w = 0; w < want->n_dims; w++)
        if (m.of[w] >= 0) x = between(x, had.dims[m.of[w]], want->dims[w], w, dice);
    x = named(x, want);
    const weft_shape now = *weft_shape_of(x);
    return are_equal(&now, want) ? x : weft_broadcast_to(x, *want);
}

/* As many elements: in the order in which they are. Refused where a name would change its size. */
static weft_value as_reshaped(weft_value x, const weft_shape *want)
{
    const weft_shape had = *weft_shape_of(x);
    if (weft_shape_count(&had) != weft_shape_count(want) || are_equal(&had, want)) return x;
    const weft_value y = weft_reshape(x, *want);
    if (y.id != 0) return y;
    weft_graph_clear_error(x.graph);
    return x;
}

weft_value drawn_fit(weft_value x, const drawn_wish *wish, drawn_dice *dice, bool is_plain)
{
    if (!is_plain && drawn_roll(dice, 2)) x = as_reshaped(x, &wish->shape);
    const bool narrows = !weft_dtype_is_float(wish->dtype);
    if (narrows) x = as_dtype(x, wish, dice, is_plain);
    x = with_dims(x, &wish->shape, dice, is_plain);
    return narrows ? whole_within(x, wish) : as_dtype(x, wish, dice, is_plain);
}
