/* neighbours: choices that differ from another one in one thing: by the mesh, by a rule of the layout, by the stage, by a knob. */
#include "neighbours.h"

#include <stdio.h>
#include <string.h>

typedef struct finder {
    const weft_search_options *options;
    const weft_choice *from;
    search_form form; /* of `from` */
    const char *const *dims;
    int n_dims;
    search_neighbours *found;
} finder;

static bool are_equal(const weft_choice *a, const weft_choice *b)
{
    return strcmp(a->mesh, b->mesh) == 0 && strcmp(a->layout, b->layout) == 0 &&
           a->zero == b->zero &&
           memcmp(a->values, b->values, (size_t)a->n_knobs * sizeof *a->values) == 0;
}

static void add(finder *f, const weft_choice *choice)
{
    search_neighbours *found = f->found;
    if (found->n == WEFT_NEIGHBOURS || are_equal(choice, f->from)) return;
    for (int i = 0; i < found->n; i++)
        if (are_equal(choice, &found->list[i])) return;
    found->list[found->n++] = *choice;
}

static void add_form(finder *f, const search_form *form)
{
    weft_choice choice = *f->from;
    if (weft_form_write(form, &choice)) add(f, &choice);
}

/* ---- the mesh ----------------------------------------------------------------------------------------------- */

static void swap_axes(finder *f)
{
    for (int a = 0; a < f->form.n_axes; a++)
        for (int b = a + 1; b < f->form.n_axes; b++) {
            search_form form = f->form;
            memcpy(form.axis[a], f->form.axis[b], sizeof form.axis[a]);
            memcpy(form.axis[b], f->form.axis[a], sizeof form.axis[b]);
            form.size[a] = f->form.size[b];
            form.size[b] = f->form.size[a];
            add_form(f, &form);
        }
}

static void move_factor(finder *f, int from, int to, int64_t factor)
{
    search_form form = f->form;
    form.size[from] /= factor;
    form.size[to] *= factor;
    if (form.size[from] == 1) weft_form_drop_axis(&form, from);
    add_form(f, &form);
}

static void move_factors(finder *f)
{
    for (int a = 0; a < f->form.n_axes; a++) {
        int64_t left = f->form.size[a];
        for (int64_t p = 2; p <= left; p++) {
            if (left % p != 0) continue; /* what divides first is a prime */
            for (int b = 0; b < f->form.n_axes; b++)
                if (b != a) move_factor(f, a, b, p);
            while (left % p == 0)
                left /= p;
        }
    }
}

/* ---- rules -------------------------------------------------------------------------------------------------- */

static void drop_rules(finder *f)
{
    for (int r = 0; r < f->form.n_rules; r++) {
        search_form form = f->form;
        weft_form_drop_rule(&form, r);
        add_form(f, &form);
    }
}

/* The dim is split over the axis besides, innermost; or over it alone. */
static bool give(search_form *form, const char *dim, const char *axis, bool alone)
{
    const int r = weft_form_find(form, dim);
    if (r < 0) return weft_form_add_rule(form, dim, axis);
    search_form_rule *rule = &form->rules[r];
    if (weft_form_splits(rule, axis) || (!alone && rule->n_axes == WEFT_MAX_AXES)) return false;
    if (alone) rule->n_axes = 0;
    snprintf(rule->axes[rule->n_axes++], sizeof *rule->axes, "%s", axis);
    return true;
}

static void give_dim(finder *f, const char *dim, const char *axis)
{
    for (int alone = 0; alone < 2; alone++) {
        search_form form = f->form;
        if (give(&form, dim, axis, alone == 1)) add_form(f, &form);
    }
    search_form form = f->form;
    weft_form_free_axis(&form, axis);
    if (give(&form, dim, axis, false)) add_form(f, &form);
}

/* All that an axis splits makes room for a role: "model=hidden+heads+vocab". */
static void give_role(finder *f, const char *role, size_t letters, const char *axis)
{
    search_form form = f->form;
    bool is_given = true;
    const char *name = memchr(role, '=', letters);
    if (name) letters -= (size_t)(name + 1 - role), role = name + 1;
    weft_form_free_axis(&form, axis);
    for (size_t at = 0; at < letters;) {
        char dim[WEFT_MAX_NAME + 1];
        const size_t n = strcspn(role + at, "+ ");
        snprintf(dim, sizeof dim, "%.*s", (int)n, role + at);
        is_given = give(&form, dim, axis, false) && is_given;
        at += n + 1;
    }
    if (is_given) add_form(f, &form);
}

static void give_axes(finder *f)
{
    for (int a = 0; a < f->form.n_axes; a++) {
        const char *axis = f->form.axis[a], *role = f->options->hints;
        for (int d = 0; d < f->n_dims; d++)
            give_dim(f, f->dims[d], axis);
        while (role && *role) {
            const size_t n = strcspn(role, " ");
            if (n > 0) give_role(f, role, n, axis);
            role += n + strspn(role + n, " ");
        }
    }
}

/* ---- stage and knobs ------------------------------------------------------------------------------------------ */

static void change_stage(finder *f)
{
    for (int by = -1; by <= 1; by += 2) {
        weft_choice choice = *f->from;
        choice.zero += by;
        if (f->options->store_dim && choice.zero >= 0 && choice.zero <= 3) add(f, &choice);
    }
}

/* The next value above, or below; the same: there is none. */
static int64_t next_value(const weft_knob *knob, int64_t value, bool above)
{
    int64_t next = value;
    for (int v = 0; v < knob->n_values; v++) {
        const int64_t other = knob->values[v];
        const bool is_there = above ? other > value : other < value;
        const bool is_nearer = above ? other < next : other > next;
        if (is_there && (next == value || is_nearer)) next = other;
    }
    return next;
}

static void turn_knobs(finder *f)
{
    for (int k = 0; k < f->from->n_knobs; k++)
        for (int above = 0; above < 2; above++) {
            weft_choice choice = *f->from;
            if (f->from->knobs[k].is_asked) continue; /* nobody asked */
            choice.values[k] = next_value(&f->from->knobs[k], choice.values[k], above == 1);
            add(f, &choice);
        }
}

void weft_neighbours_find(const weft_search_options *options, const weft_choice *from,
                          const char *const *dims, int n_dims, search_neighbours *neighbours)
{
    finder f = {
        .options = options, .from = from, .dims = dims, .n_dims = n_dims, .found = neighbours};
    neighbours->n = 0;
    change_stage(&f);
    turn_knobs(&f);
    if (!weft_form_read(from->mesh, from->layout, &f.form)) return;
    swap_axes(&f);
    move_factors(&f);
    drop_rules(&f);
    give_axes(&f);
}

/* ---- as options ----------------------------------------------------------------------------------------------- */

static void put(char *text, size_t room, const char *option, const char *value)
{
    const size_t used = strlen(text);
    snprintf(text + used, room - used, "%s--%s%s%s", used > 0 ? " " : "", option, *value ? " " : "",
             value);
}

static void put_knob(const weft_knob *knob, int64_t value, char *text, size_t room)
{
    char number[24] = "", name[WEFT_MAX_NAME + 8];
    snprintf(name, sizeof name, "%s%s", knob->is_flag && value == 0 ? "no-" : "", knob->name);
    if (knob->words) snprintf(number, sizeof number, "%s", knob->words[value]);
    if (!knob->is_flag && !knob->words) snprintf(number, sizeof number, "%lld", (long long)value);
    put(text, room, name, number);
}

void weft_neighbours_tell(const weft_choice *from, const weft_choice *to, char *text, size_t room)
{
    char stage[12];
    text[0] = '\0';
    if (strcmp(from->mesh, to->mesh) != 0) put(text, room, "mesh", to->mesh);
    if (strcmp(from->layout, to->layout) != 0)
        put(text, room, "layout", to->layout[0] ? to->layout : "\"\"");
    snprintf(stage, sizeof stage, "%d", to->zero);
    if (from->zero != to->zero) put(text, room, "zero", stage);
    for (int k = 0; k < to->n_knobs; k++)
        if (from->values[k] != to->values[k]) put_knob(&to->knobs[k], to->values[k], text, room);
}
