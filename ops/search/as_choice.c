/* as_choice: an outline and a setting put into words: mesh, layout, and values of knobs. */
#include "searching.h"

#include <string.h>

bool weft_search_go_together(const searching *s, const weft_search_outline *outline,
                             const weft_search_setting *setting)
{
    const weft_search_profile *profile = &s->profiles[setting->profile];
    bool is_split = false, has_more = profile->more == 0;
    for (int a = 0; a < outline->n; a++) {
        const weft_search_role *role = &s->roles.list[outline->axes[a].role];
        int64_t most = 0;
        if (role->set & ~profile->dims) return false;
        for (int d = 0; d < role->n; d++)
            if (profile->size[role->dims[d]] > most) most = profile->size[role->dims[d]];
        if (outline->axes[a].size > most) return false;
        is_split |= role->splits_storage;
        has_more |= (role->set & profile->more) != 0;
    }
    return has_more && (setting->zero == 0 || is_split);
}

/* The second axis of a name has a number behind it. */
static void name_axis(const searching *s, const weft_search_outline *outline, int axis,
                      char text[WEFT_MAX_NAME + 1])
{
    const char *name = s->roles.list[outline->axes[axis].role].axis;
    int same = 1;
    for (int a = 0; a < axis; a++)
        same += strcmp(s->roles.list[outline->axes[a].role].axis, name) == 0;
    if (same == 1)
        snprintf(text, WEFT_MAX_NAME + 1, "%s", name);
    else
        snprintf(text, WEFT_MAX_NAME + 1, "%.55s%d", name, same);
}

bool weft_search_choice_of(const searching *s, const weft_search_outline *outline,
                           const weft_search_setting *setting, weft_choice *choice)
{
    size_t mesh = 0, layout = 0;
    *choice = (weft_choice){
        .zero = setting->zero, .n_knobs = s->options->n_knobs, .knobs = s->options->knobs};
    for (int k = 0; k < choice->n_knobs; k++)
        choice->values[k] = s->options->knobs[k].values[setting->knob[k]];
    for (int a = 0; a < outline->n && mesh < sizeof choice->mesh; a++) {
        const weft_search_role *role = &s->roles.list[outline->axes[a].role];
        char axis[WEFT_MAX_NAME + 1];
        name_axis(s, outline, a, axis);
        mesh += (size_t)snprintf(choice->mesh + mesh, sizeof choice->mesh - mesh, "%s%s:%d",
                                 a > 0 ? "," : "", axis, outline->axes[a].size);
        for (int d = 0; d < role->n && layout < sizeof choice->layout; d++)
            layout +=
                (size_t)snprintf(choice->layout + layout, sizeof choice->layout - layout, "%s%s:%s",
                                 layout > 0 ? "," : "", s->dims.names[role->dims[d]], axis);
    }
    return mesh < sizeof choice->mesh && layout < sizeof choice->layout;
}

int64_t weft_search_few_layers(const weft_search_options *options, const weft_choice *choice)
{
    const char *knob = options->layers_knob;
    const int64_t unit = knob ? weft_choice_value(choice, knob, 1) : 1;
    const int64_t each = unit > 0 ? unit : 1, few = 2 * each, more = few + few / 2;
    /* A value that does not divide them is refused as a whole: few layers that it divides would hide that. */
    return options->layers % each == 0 && options->layers >= 2 * more ? few : 0;
}

bool weft_search_is_data_parallel(const searching *s, const weft_search_outline *outline)
{
    const weft_search_role *role = &s->roles.list[outline->axes[0].role];
    return outline->n == 1 && role->n == 1 && role->splits_storage;
}

int weft_search_effort(const searching *s, const weft_search_outline *outline,
                       const weft_search_setting *setting)
{
    int n = setting->zero > 0;
    for (int a = 0; a < outline->n; a++)
        if (outline->axes[a].size > 1) n += 1 + s->roles.list[outline->axes[a].role].n;
    for (int k = 0; k < WEFT_MAX_KNOBS; k++)
        n += setting->knob[k] != 0;
    return 2 * n - (outline->n == 0 || weft_search_is_data_parallel(s, outline));
}
