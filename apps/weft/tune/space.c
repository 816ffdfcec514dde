/* space: what a search varies. */
#include "space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/number.h"

/* ---- reading ----------------------------------------------------------------------------------- */

static weft_status copy(char to[SPACE_TEXT], const char *from, size_t n, weft_error *error)
{
    if (n == 0 || n >= SPACE_TEXT)
        return weft_fail(error, WEFT_USAGE,
                         "--vary %.40s: there are names and values of 1 to %d letters, as in "
                         "rate=1e-4..1e-1:log,batch=32|64",
                         from, SPACE_TEXT - 1);
    memcpy(to, from, n);
    to[n] = '\0';
    return WEFT_OK;
}

static weft_status read_list(const char *text, size_t n, space_axis *axis, weft_error *error)
{
    for (size_t at = 0; at <= n;) {
        const char *bar = memchr(text + at, '|', n - at);
        const size_t length = bar ? (size_t)(bar - text) - at : n - at;
        if (axis->n == SPACE_VALUES)
            return weft_fail(error, WEFT_USAGE, "--vary %s: there are more than %d values",
                             axis->name, SPACE_VALUES);
        WEFT_TRY(copy(axis->values[axis->n++], text + at, length, error));
        at += length + 1;
    }
    return WEFT_OK;
}

static bool is_whole(const char *text)
{
    return text[strspn(text, "0123456789")] == '\0';
}

static weft_status read_range(const char *text, size_t n, const char *dots, space_axis *axis,
                              weft_error *error)
{
    char low[SPACE_TEXT], high[SPACE_TEXT];
    const char *colon = memchr(text, ':', n);
    const char *end = colon ? colon : text + n;
    const size_t rest = (size_t)(text + n - end);
    if (dots == text || dots + 2 >= end)
        return weft_fail(error, WEFT_USAGE, "--vary %s=%.*s: a range has two ends, as 1e-4..1e-1",
                         axis->name, (int)n, text);
    WEFT_TRY(copy(low, text, (size_t)(dots - text), error));
    WEFT_TRY(copy(high, dots + 2, (size_t)(end - dots - 2), error));
    axis->is_log = rest == 4 && memcmp(end, ":log", 4) == 0;
    axis->is_whole = is_whole(low) && is_whole(high);
    if (rest > 0 && !axis->is_log)
        return weft_fail(error, WEFT_USAGE, "--vary %s=%.*s: behind a range can be :log alone",
                         axis->name, (int)n, text);
    if (weft_number_read(low, &axis->low) != (int)strlen(low) ||
        weft_number_read(high, &axis->high) != (int)strlen(high) || !isfinite(axis->low) ||
        !isfinite(axis->high) || !(axis->low < axis->high))
        return weft_fail(
            error, WEFT_USAGE,
            "--vary %s=%.*s: a range goes from a number to a larger one, as 1e-4..1e-1", axis->name,
            (int)n, text);
    if (axis->is_log && axis->low <= 0)
        return weft_fail(error, WEFT_USAGE, "--vary %s=%.*s: :log wants numbers above 0",
                         axis->name, (int)n, text);
    return WEFT_OK;
}

static const char *find_dots(const char *text, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (text[i] == '.' && text[i + 1] == '.') return text + i;
    return NULL;
}

static weft_status read_axis(const char *text, size_t n, space *s, weft_error *error)
{
    const char *equals = memchr(text, '=', n), *dots;
    if (!equals)
        return weft_fail(error, WEFT_USAGE,
                         "--vary %.*s: name an option and its values, as rate=1e-4..1e-1:log or "
                         "batch=32|64",
                         (int)(n < 100 ? n : 100), text);
    if (s->n == SPACE_AXES)
        return weft_fail(error, WEFT_USAGE, "--vary: there are more than %d options", SPACE_AXES);
    space_axis *axis = &s->axes[s->n++];
    *axis = (space_axis){.n = 0};
    WEFT_TRY(copy(axis->name, text, (size_t)(equals - text), error));
    for (int i = 0; i + 1 < s->n; i++)
        if (strcmp(s->axes[i].name, axis->name) == 0)
            return weft_fail(error, WEFT_USAGE, "--vary has %s twice; name all its values at once",
                             axis->name);
    const char *values = equals + 1;
    const size_t room = n - (size_t)(values - text);
    dots = find_dots(values, room);
    return dots ? read_range(values, room, dots, axis, error)
                : read_list(values, room, axis, error);
}

weft_status space_read(const char *text, space *s, weft_error *error)
{
    *s = (space){.n = 0};
    for (size_t n;; text += n + 1) {
        n = strcspn(text, ",");
        WEFT_TRY(read_axis(text, n, s, error));
        if (text[n] == '\0') return WEFT_OK;
    }
}

/* ---- points ------------------------------------------------------------------------------------ */

static double at_share(const space_axis *axis, double share)
{
    if (axis->is_log) return exp(log(axis->low) + share * (log(axis->high) - log(axis->low)));
    return axis->low + share * (axis->high - axis->low);
}

static void print_value(const space_axis *axis, double share, char value[SPACE_TEXT])
{
    const double x = at_share(axis, share);
    if (axis->is_whole)
        snprintf(value, SPACE_TEXT, "%.0f", round(x));
    else
        snprintf(value, SPACE_TEXT, "%.4g", x);
}

/* Of a list each value has an equal part of the share. */
static int value_of(const space_axis *axis, double share)
{
    const int i = (int)(share * axis->n);
    return i < axis->n ? i : axis->n - 1;
}

void space_value(const space_axis *axis, double share, char value[SPACE_TEXT])
{
    if (axis->n > 0)
        snprintf(value, SPACE_TEXT, "%s", axis->values[value_of(axis, share)]);
    else
        print_value(axis, share, value);
}

/* SplitMix64. */
double space_draw(uint64_t seed, uint64_t which)
{
    uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15u + which * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* 1/g^(a+1) of an axis, g the root of g^(axes + 1) = g + 1, by Newton's steps. */
static double step_of(const space *s, int a)
{
    double g = 1.5;
    for (int i = 0; i < 30; i++)
        g -= (pow(g, s->n + 1) - g - 1) / ((s->n + 1) * pow(g, s->n) - 1);
    return pow(g, -(a + 1));
}

/* A point on one axis. */
typedef struct spot {
    int trial;
    uint64_t slice; /* its values of all lists */
    double share;   /* the sequence's */
    double key;     /* where it is among its slice */
} spot;

static int by_share(const spot *x, const spot *y)
{
    if (x->share != y->share) return x->share < y->share ? -1 : 1;
    return x->trial - y->trial;
}

static int in_slice(const void *a, const void *b)
{
    const spot *x = a, *y = b;
    if (x->slice != y->slice) return x->slice < y->slice ? -1 : 1;
    return by_share(x, y);
}

static int by_key(const void *a, const void *b)
{
    const spot *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return by_share(x, y);
}

/* First the points of each slice are moved to equal distances, then those of all. */
static void spread(spot *spots, int n)
{
    qsort(spots, (size_t)n, sizeof *spots, in_slice);
    for (int begin = 0, end; begin < n; begin = end) {
        for (end = begin; end < n && spots[end].slice == spots[begin].slice;)
            end++;
        for (int i = begin; i < end; i++)
            spots[i].key = (i - begin + 0.5) / (end - begin);
    }
    qsort(spots, (size_t)n, sizeof *spots, by_key);
}

/* On one axis. A slice is told by what shares say on axes that are done. */
static void place_on_axis(const space *s, uint64_t seed, int n, int a, const uint64_t *slices,
                          spot *spots, double *shares)
{
    const double begin = space_draw(seed, (uint64_t)a), step = step_of(s, a);
    const double within = space_draw(seed, (uint64_t)(a + SPACE_AXES));
    for (int t = 0; t < n; t++) {
        const double at = begin + step * (t + 1);
        spots[t] = (spot){.trial = t, .slice = slices[t], .share = at - floor(at)};
    }
    spread(spots, n);
    for (int i = 0; i < n; i++)
        shares[(size_t)spots[i].trial * (size_t)s->n + (size_t)a] = (i + within) / n;
}

bool space_is_sliced(const space *s)
{
    int n_lists = 0;
    for (int a = 0; a < s->n; a++)
        n_lists += s->axes[a].n > 0;
    return n_lists > 0 && n_lists < s->n;
}

weft_status space_at_random(const space *s, uint64_t seed, int n, double *shares, weft_error *error)
{
    spot *spots = calloc((size_t)n, sizeof *spots);
    uint64_t *none = calloc((size_t)n, sizeof *none), *slices = calloc((size_t)n, sizeof *slices);
    const bool is_there = spots && none && slices;
    for (int a = 0; is_there && a < s->n; a++) {
        const space_axis *axis = &s->axes[a];
        if (axis->n == 0) continue;
        place_on_axis(s, seed, n, a, none, spots, shares);
        for (int t = 0; t < n; t++)
            slices[t] = slices[t] * SPACE_VALUES +
                        (uint64_t)value_of(axis, shares[(size_t)t * (size_t)s->n + (size_t)a]);
    }
    for (int a = 0; is_there && a < s->n; a++)
        if (s->axes[a].n == 0) place_on_axis(s, seed, n, a, slices, spots, shares);
    free(spots);
    free(none);
    free(slices);
    return is_there ? WEFT_OK : weft_fail_memory(error, (size_t)n * sizeof(spot));
}

static int points_of(const space_axis *axis, int points)
{
    if (axis->n > 0) return axis->n;
    const double whole = axis->high - axis->low + 1;
    return axis->is_whole && whole < points ? (int)whole : points;
}

int64_t space_trials(const space *s, int points)
{
    int64_t n = 1;
    for (int a = 0; a < s->n; a++) {
        n *= points_of(&s->axes[a], points);
        if (n > INT32_MAX) return INT32_MAX;
    }
    return n;
}

void space_on_grid(const space *s, int points, int trial, int a, char value[SPACE_TEXT])
{
    for (int i = s->n - 1; i > a; i--)
        trial /= points_of(&s->axes[i], points);
    const space_axis *axis = &s->axes[a];
    const int n = points_of(axis, points), at = trial % n;
    if (axis->n > 0)
        snprintf(value, SPACE_TEXT, "%s", axis->values[at]);
    else
        print_value(axis, n > 1 ? (double)at / (n - 1) : 0.5, value);
}

double space_place(const space_axis *axis, const char *value)
{
    double x;
    for (int i = 0; i < axis->n; i++)
        if (strcmp(axis->values[i], value) == 0)
            return axis->n > 1 ? (double)i / (axis->n - 1) : 0.5;
    if (axis->n > 0 || weft_number_read(value, &x) <= 0) return 0.5;
    return axis->is_log ? (log(x) - log(axis->low)) / (log(axis->high) - log(axis->low))
                        : (x - axis->low) / (axis->high - axis->low);
}

/* ---- near ones --------------------------------------------------------------------------------- */

static void near_in_list(const space_axis *axis, const char *value, double draw,
                         char near[SPACE_TEXT])
{
    int at = 0;
    while (at + 1 < axis->n && strcmp(axis->values[at], value) != 0)
        at++;
    const int to = at + (draw >= 0.75) - (draw < 0.25);
    snprintf(near, SPACE_TEXT, "%s", axis->values[to < 0 ? 0 : to < axis->n ? to : axis->n - 1]);
}

/* By how much is drawn too: else two that go on from one become the same. A whole number moves by one at least. */
static double moved(const space_axis *axis, double x, double draw)
{
    const double by = 2 * draw - 1;
    const double to = axis->is_log ? x * pow(1.5, by) : x + 0.1 * by * (axis->high - axis->low);
    if (!axis->is_whole) return to;
    return by >= 0 ? fmax(round(to), x + 1) : fmin(round(to), x - 1);
}

void space_near(const space_axis *axis, const char *value, double draw, char near[SPACE_TEXT])
{
    double x;
    if (axis->n > 0 || weft_number_read(value, &x) <= 0) {
        if (axis->n > 0)
            near_in_list(axis, value, draw, near);
        else
            snprintf(near, SPACE_TEXT, "%s", value);
        return;
    }
    const double to = fmin(fmax(moved(axis, x, draw), axis->low), axis->high);
    snprintf(near, SPACE_TEXT, axis->is_whole ? "%.0f" : "%.4g", to);
}

void space_between(const space_axis *axis, const char *x, const char *y, char between[SPACE_TEXT])
{
    double p, q;
    snprintf(between, SPACE_TEXT, "%s", x);
    if (axis->n > 0 || strcmp(x, y) == 0 || weft_number_read(x, &p) <= 0 ||
        weft_number_read(y, &q) <= 0)
        return;
    const double half = axis->is_log ? sqrt(p * q) : (p + q) / 2;
    snprintf(between, SPACE_TEXT, axis->is_whole ? "%.0f" : "%.4g", half);
}

void space_step(const space_axis *axis, const char *value, bool is_up, char to[SPACE_TEXT])
{
    double x;
    snprintf(to, SPACE_TEXT, "%s", value);
    if (axis->n > 0 || weft_number_read(value, &x) <= 0) return;
    const double by = 0.1 * (axis->high - axis->low);
    double y = axis->is_log ? x * (is_up ? 2 : 0.5) : x + (is_up ? by : -by);
    if (axis->is_whole) y = is_up ? fmax(round(y), x + 1) : fmin(round(y), x - 1);
    y = fmin(fmax(y, axis->low), axis->high);
    snprintf(to, SPACE_TEXT, axis->is_whole ? "%.0f" : "%.4g", y);
}
