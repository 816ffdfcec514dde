/* spec: one tensor's state per mesh axis (replicated, splitting a dim, partial), asked and printed.
 */
#include "weft/layout.h"

#include <string.h>

#include "print.h"
#include "clamp.h"
#include "weft/extend/combine.h"

int weft_spec_state(const weft_spec *spec, int n_dims, int axis)
{
    if (spec == NULL || axis < 0 || axis >= WEFT_MAX_AXES) return WEFT_REPLICATED;
    if (spec->partial >> axis & 1) return WEFT_PARTIAL;
    for (int d = 0; d < weft_within(n_dims, WEFT_MAX_DIMS); d++)
        for (int i = 0; i < weft_splits_of(spec, d); i++)
            if (spec->split[d][i] == axis) return d;
    return WEFT_REPLICATED;
}

bool weft_spec_is_valid(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape)
{
    if (spec == NULL || mesh == NULL || shape == NULL) return false;
    if (shape->n_dims != weft_dims_of(shape) || !weft_combine_is_known((weft_combine)spec->combine))
        return false;
    uint32_t seen = spec->partial;
    for (int d = 0; d < WEFT_MAX_DIMS; d++) {
        const int n = spec->n_split[d];
        if (n != weft_splits_of(spec, d) || (n > 0 && d >= shape->n_dims)) return false;
        if (spec->window[d].lead != 0 && (n == 0 || !weft_window_is_valid(&spec->window[d])))
            return false;
        for (int i = 0; i < n; i++) {
            const int axis = spec->split[d][i];
            if (axis < 0 || axis >= weft_mesh_n_axes(mesh) || seen >> axis & 1) return false;
            seen |= 1u << axis;
        }
    }
    return seen >> weft_mesh_n_axes(mesh) == 0;
}

bool weft_spec_equal(const weft_spec *a, const weft_spec *b, int n_dims)
{
    if (a == NULL || b == NULL) return a == b;
    if (a->partial != b->partial) return false;
    if (a->partial != 0 && a->combine != b->combine) return false;
    for (int d = 0; d < weft_within(n_dims, WEFT_MAX_DIMS); d++) {
        if (a->n_split[d] != b->n_split[d]) return false;
        if (a->n_split[d] == 0 && a->window[d].lead == 0 && b->window[d].lead == 0) continue;
        if (memcmp(a->split[d], b->split[d], (size_t)weft_splits_of(a, d)) != 0) return false;
        if (!weft_window_equal(&a->window[d], &b->window[d])) return false;
    }
    return true;
}

/* "2i-1", "i", "-i+7" */
static void print_end(weft_print *print, int64_t stride, int64_t offset)
{
    if (stride < 0) weft_print_text(print, "-");
    if (stride != 1 && stride != -1) weft_print_number(print, stride < 0 ? -stride : stride);
    weft_print_text(print, "i");
    if (offset > 0) weft_print_text(print, "+");
    if (offset != 0) weft_print_number(print, offset);
}

/* "{2i-1..2i+1, i<32}", "{(i-1)/2, i<32}": the first and the last element that go with i. */
static void print_window(weft_print *print, const weft_window *window)
{
    const bool is_sum = window->over > 1 && (window->low != 0 || window->high != 0);
    weft_print_text(print, is_sum ? "{(" : "{");
    print_end(print, window->stride, window->low);
    if (window->high != window->low) {
        weft_print_text(print, "..");
        print_end(print, window->stride, window->high);
    }
    if (window->over > 1) {
        weft_print_text(print, is_sum ? ")/" : "/");
        weft_print_number(print, window->over);
    }
    weft_print_text(print, ", i<");
    weft_print_number(print, window->lead);
    weft_print_text(print, "}");
}

static void print_partial(weft_print *print, const weft_spec *spec, const weft_mesh *mesh)
{
    if (spec->partial == 0) return;
    weft_print_more(print, " %s over ", weft_combine_name(spec->combine));
    const char *between = "";
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (!(spec->partial >> a & 1)) continue;
        weft_print_more(print, "%s%s", between, weft_mesh_axis_name(mesh, a));
        between = "+";
    }
}

int weft_spec_print(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape,
                    char *text, size_t bytes)
{
    weft_print print = weft_print_begin(text, text != NULL ? bytes : 0);
    weft_print_text(&print, "[");
    for (int d = 0; d < weft_dims_of(shape); d++) {
        weft_print_dim(&print, shape, d);
        for (int i = 0; spec != NULL && i < weft_splits_of(spec, d); i++) {
            weft_print_text(&print, i > 0 ? "+" : "/");
            weft_print_text(&print, weft_mesh_axis_name(mesh, spec->split[d][i]));
        }
        const weft_window *window = spec != NULL ? weft_window_of(spec, d) : NULL;
        if (window != NULL) print_window(&print, window);
    }
    weft_print_text(&print, "]");
    if (spec != NULL) print_partial(&print, spec, mesh);
    return print.length;
}
