/* groups.c: which variables are updated otherwise than the others: by patterns of their names, the first that matches. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "update.h"
#include "weft/name.h"

static const char *name_of(const weft_update *u, weft_value variable)
{
    const char *name = u->graph->tensors[variable.id].name;
    return name != NULL ? name : "";
}

/* What a text could have been meant for: the names, and their parts up to each point. */
const char *weft_selection_nearest(const weft_update *u, const weft_selection *s, const char *text,
                                   bool *is_near)
{
    enum { most = 512 };
    const char *starts[most];
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const char *name = name_of(u, s->variables[i]);
        for (const char *at = strchr(name, '.'); at != NULL && n < most; at = strchr(at + 1, '.')) {
            const char *start = weft_arena_text(u->graph->arena, "%.*s", (int)(at - name), name);
            if (start != NULL) starts[n++] = start;
        }
        if (n < most) starts[n++] = name;
    }
    const char *near = weft_nearest(text, starts, n);
    *is_near = near != NULL;
    return *is_near ? near : name_of(u, s->variables[0]);
}

static bool has(const weft_optimizer_group *group, const char *name)
{
    return fnmatch(group->pattern, name, 0) == 0;
}

/* ---- what a group may say -------------------------------------------------------------------- */

static void check(const weft_update *u, int i)
{
    const weft_optimizer_group *group = &u->options.groups.groups[i];
    weft_error error = {WEFT_OK, -1, ""};
    if (group->pattern == NULL)
        weft_graph_fail(u->graph, "%s: group %d has no pattern; give one that names match, as *.w",
                        u->name, i);
    else if (!(group->rate_scale >= 0.0 && isfinite(group->rate_scale)))
        weft_graph_fail(u->graph, "%s: group %d, %.100s: the rate is scaled by %g; it is positive",
                        u->name, i, group->pattern, group->rate_scale);
    else if (!isfinite(group->weight_decay))
        weft_graph_fail(u->graph,
                        "%s: group %d, %.100s: weight_decay is %g; it is a number; a negative one "
                        "means none",
                        u->name, i, group->pattern, group->weight_decay);
    else if (group->optimizer != NULL && weft_rule_find(group->optimizer, &error) == NULL)
        weft_graph_fail(u->graph, "%s: group %d, %.100s: %s", u->name, i, group->pattern,
                        error.message);
}

/* Nobody's group: nothing has such a name, or what has is in an earlier one. */
static void refuse(const weft_update *u, const weft_selection *s, int i)
{
    const char *pattern = u->options.groups.groups[i].pattern;
    char plain[WEFT_MAX_PATH + 1];
    size_t n = 0;
    bool is_near;
    for (int k = 0; k < s->n; k++) {
        if (!has(&u->options.groups.groups[i], name_of(u, s->variables[k]))) continue;
        weft_graph_fail(u->graph,
                        "%s: group %d, %.100s, has no variable: %.100s is in group %d already, "
                        "%.100s; the first that matches counts, so put narrow ones in front",
                        u->name, i, pattern, name_of(u, s->variables[k]), s->group[k],
                        u->options.groups.groups[s->group[k]].pattern);
        return;
    }
    for (const char *at = pattern; *at != '\0' && n < WEFT_MAX_PATH; at++)
        if (*at != '*' && *at != '?') plain[n++] = *at;
    plain[n] = '\0';
    const char *near = weft_selection_nearest(u, s, plain, &is_near);
    weft_graph_fail(u->graph, "%s: group %d: no variable's name matches %.100s; %s%.100s%s",
                    u->name, i, pattern, is_near ? "did you mean " : "one of them is ", near,
                    is_near ? "?" : "");
}

/* ---- the choice ------------------------------------------------------------------------------ */

static int group_of(const weft_update *u, const char *name)
{
    const weft_optimizer_groups groups = u->options.groups;
    for (int i = 0; i < groups.n_groups; i++)
        if (has(&groups.groups[i], name)) return i;
    return -1;
}

bool weft_groups_take(const weft_update *u, weft_selection *s)
{
    const weft_optimizer_groups groups = u->options.groups;
    if (groups.n_groups < 0 || (groups.n_groups > 0 && groups.groups == NULL)) {
        weft_graph_fail(u->graph, "%s: groups has %d groups and %s; pass the array and its length",
                        u->name, groups.n_groups, groups.groups == NULL ? "no array" : "an array");
        return false;
    }
    for (int i = 0; i < groups.n_groups && weft_graph_status(u->graph) == WEFT_OK; i++)
        check(u, i);
    if (weft_graph_status(u->graph) != WEFT_OK) return false;
    for (int k = 0; k < s->n; k++)
        s->group[k] = group_of(u, name_of(u, s->variables[k]));
    for (int i = 0; i < groups.n_groups; i++) {
        bool is_used = false;
        for (int k = 0; k < s->n; k++)
            is_used = is_used || s->group[k] == i;
        if (is_used) continue;
        refuse(u, s, i);
        return false;
    }
    return true;
}
