/* form: a mesh and a layout taken apart, and put together. See form.h. */
#include "form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text up to one of `stops`, without blanks around it; false: it is longer than there is room. */
static bool take(const char **at, const char *stops, char *word, size_t room)
{
    *at += strspn(*at, " ");
    size_t n = strcspn(*at, stops);
    const char *begin = *at;
    *at += n;
    while (n > 0 && begin[n - 1] == ' ')
        n--;
    if (n == 0 || n >= room) return false;
    memcpy(word, begin, n);
    word[n] = '\0';
    return true;
}

static bool read_mesh(const char *at, search_form *form)
{
    while (*at) {
        const int a = form->n_axes;
        if (a == WEFT_MAX_AXES || !take(&at, ":", form->axis[a], sizeof form->axis[a]) ||
            *at != ':')
            return false;
        char *end;
        form->size[a] = strtoll(at + 1, &end, 10);
        at = end + strspn(end, " ");
        if (form->size[a] < 1 || (*at != '\0' && *at != ',')) return false;
        form->n_axes++;
        if (*at == ',') at++;
    }
    return true;
}

static bool read_axes(const char **at, search_form_rule *rule)
{
    do {
        ++*at; /* behind the colon or the plus */
        if (rule->n_axes == WEFT_MAX_AXES) return false;
        char *axis = rule->axes[rule->n_axes++];
        if (!take(at, "+,", axis, sizeof *rule->axes)) return false;
    } while (**at == '+');
    return true;
}

static bool read_layout(const char *at, search_form *form)
{
    while (*at) {
        search_form_rule *rule = &form->rules[form->n_rules];
        if (form->n_rules == WEFT_FORM_RULES) return false;
        if (!take(&at, ":,", rule->dim, sizeof rule->dim) || *at != ':') return false;
        if (!read_axes(&at, rule)) return false;
        form->n_rules++;
        if (*at == ',') at++;
    }
    return true;
}

bool weft_form_read(const char *mesh, const char *layout, search_form *form)
{
    *form = (search_form){0};
    return read_mesh(mesh, form) && read_layout(layout, form);
}

static bool put(char *text, size_t room, const char *between, const char *word)
{
    const size_t used = strlen(text);
    const int n = snprintf(text + used, room - used, "%s%s", used > 0 ? between : "", word);
    return n >= 0 && used + (size_t)n < room;
}

static bool write_rule(const search_form_rule *rule, char *text, size_t room)
{
    bool is_whole = put(text, room, ",", rule->dim);
    for (int a = 0; a < rule->n_axes; a++)
        is_whole = put(text, room, a == 0 ? ":" : "+", rule->axes[a]) && is_whole;
    return is_whole;
}

bool weft_form_write(const search_form *form, weft_choice *choice)
{
    bool is_whole = true;
    choice->mesh[0] = choice->layout[0] = '\0';
    for (int a = 0; a < form->n_axes; a++) {
        char axis[WEFT_MAX_NAME + 24];
        snprintf(axis, sizeof axis, "%s:%lld", form->axis[a], (long long)form->size[a]);
        is_whole = put(choice->mesh, sizeof choice->mesh, ",", axis) && is_whole;
    }
    for (int r = 0; r < form->n_rules; r++)
        is_whole = write_rule(&form->rules[r], choice->layout, sizeof choice->layout) && is_whole;
    return is_whole;
}

/* "data?" is data. */
static bool is_axis(const char *word, const char *axis)
{
    const size_t n = strcspn(word, "?");
    return strlen(axis) == n && strncmp(word, axis, n) == 0;
}

bool weft_form_splits(const search_form_rule *rule, const char *axis)
{
    for (int a = 0; a < rule->n_axes; a++)
        if (is_axis(rule->axes[a], axis)) return true;
    return false;
}

int weft_form_find(const search_form *form, const char *dim)
{
    for (int r = 0; r < form->n_rules; r++)
        if (strcmp(form->rules[r].dim, dim) == 0) return r;
    return -1;
}

void weft_form_drop_rule(search_form *form, int rule)
{
    form->n_rules--;
    memmove(&form->rules[rule], &form->rules[rule + 1],
            (size_t)(form->n_rules - rule) * sizeof *form->rules);
}

void weft_form_free_axis(search_form *form, const char *axis)
{
    for (int r = form->n_rules - 1; r >= 0; r--) {
        search_form_rule *rule = &form->rules[r];
        int kept = 0;
        for (int a = 0; a < rule->n_axes; a++)
            if (!is_axis(rule->axes[a], axis) && kept++ != a)
                memcpy(rule->axes[kept - 1], rule->axes[a], sizeof *rule->axes);
        rule->n_axes = kept;
        if (kept == 0) weft_form_drop_rule(form, r);
    }
}

void weft_form_drop_axis(search_form *form, int axis)
{
    char name[WEFT_MAX_NAME + 1];
    memcpy(name, form->axis[axis], sizeof name);
    weft_form_free_axis(form, name);
    form->n_axes--;
    const size_t behind = (size_t)(form->n_axes - axis);
    memmove(form->axis[axis], form->axis[axis + 1], behind * sizeof *form->axis);
    memmove(&form->size[axis], &form->size[axis + 1], behind * sizeof *form->size);
}

bool weft_form_add_rule(search_form *form, const char *dim, const char *axis)
{
    if (form->n_rules == WEFT_FORM_RULES) return false;
    search_form_rule *rule = &form->rules[form->n_rules++];
    *rule = (search_form_rule){.n_axes = 1};
    snprintf(rule->dim, sizeof rule->dim, "%s", dim);
    snprintf(rule->axes[0], sizeof rule->axes[0], "%s", axis);
    return true;
}
