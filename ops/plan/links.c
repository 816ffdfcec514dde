/* links: how fast the links over each axis are said to be, as prices.
 *
 * Stated speeds are the same on all ranks and at any time, so they give one plan; measured ones would not. The unit
 * of prices stays: a byte through a link of the usual speed. An exchange over several axes is as fast as the slowest
 * of them.
 */
#include "plan.h"
#include "weft/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double is;
} unit;
static const unit rates[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

/* "50us" up to `end`: the number times its unit; 0: it is none above 0. */
static double read_amount(const char *text, const char *end, const unit *units, size_t n_units)
{
    double number;
    const char *after = text + weft_number_read(text, &number);
    for (size_t u = 0; u < n_units && after > text && after < end; u++)
        if (strlen(units[u].name) == (size_t)(end - after) &&
            strncmp(after, units[u].name, (size_t)(end - after)) == 0)
            return number > 0 && isfinite(number * units[u].is) ? number * units[u].is : 0;
    return 0;
}

/* "125MB+1ms" up to `end`. */
static bool read_speed(const char *text, const char *end, weft_link_price *price)
{
    const char *plus = memchr(text, '+', (size_t)(end - text));
    const double rate = read_amount(text, plus ? plus : end, rates, sizeof rates / sizeof *rates);
    const double latency =
        plus ? read_amount(plus + 1, end, times, sizeof times / sizeof *times) : 0;
    if (rate <= 0 || (plus && latency <= 0)) return false;
    *price =
        (weft_link_price){WEFT_USUAL_LINK / rate, plus ? latency * WEFT_USUAL_LINK : WEFT_LATENCY};
    return isfinite(price->byte) && price->byte > 0 && isfinite(price->latency);
}

static weft_status find_axis(const weft_plan *plan, const char *text, int length, int *axis,
                             weft_error *error)
{
    char name[WEFT_MAX_NAME + 2]; /* one that is too long stays so, and is none */
    const char *names[WEFT_MAX_AXES];
    snprintf(name, sizeof name, "%.*s", length, text);
    *axis = weft_mesh_find_axis(plan->mesh, name);
    if (*axis >= 0) return WEFT_OK;
    const int n = weft_mesh_n_axes(plan->mesh);
    for (int a = 0; a < n; a++)
        names[a] = weft_mesh_axis_name(plan->mesh, a);
    const char *nearest = weft_nearest(name, names, n);
    return weft_fail(error, WEFT_USAGE, "link %.200s: mesh %s has no axis %s%s%s%s",
                     plan->link_text, weft_mesh_text(plan->mesh), name,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static weft_status read_rule(weft_plan *plan, const char *rule, const char *end, weft_error *error)
{
    const char *colon = memchr(rule, ':', (size_t)(end - rule));
    weft_link_price price;
    int axis = -1;
    if (!read_speed(colon ? colon + 1 : rule, end, &price))
        return weft_fail(
            error, WEFT_USAGE,
            "link %.200s: it takes the bytes a second of a rank's link, of all axes or "
            "of some, and perhaps what an exchange takes before the first byte is "
            "there: 1GB, or data:125MB+1ms,model:10GB",
            plan->link_text);
    if (colon) WEFT_TRY(find_axis(plan, rule, (int)(colon - rule), &axis, error));
    for (int a = 0; a < WEFT_MAX_AXES; a++)
        if (axis < 0 || a == axis) plan->links[a] = price;
    return WEFT_OK;
}

weft_status weft_read_links(weft_plan *plan, const char *text, weft_error *error)
{
    for (int a = 0; a < WEFT_MAX_AXES; a++)
        plan->links[a] = (weft_link_price){1, WEFT_LATENCY};
    if (!text || !*text) return WEFT_OK;
    plan->link_text = weft_arena_intern(plan->arena, text);
    if (!plan->link_text) return weft_fail_memory(error, strlen(text));
    for (const char *rule = plan->link_text; rule;) {
        const char *comma = strchr(rule, ',');
        WEFT_TRY(read_rule(plan, rule, comma ? comma : rule + strlen(rule), error));
        rule = comma ? comma + 1 : NULL;
    }
    return WEFT_OK;
}

weft_link_price weft_link_over(const weft_plan *plan, uint32_t axes)
{
    weft_link_price worst = {0, 0};
    for (int a = 0; a < WEFT_MAX_AXES; a++) {
        if (!(axes >> a & 1)) continue;
        worst.byte = fmax(worst.byte, plan->links[a].byte);
        worst.latency = fmax(worst.latency, plan->links[a].latency);
    }
    return worst;
}
