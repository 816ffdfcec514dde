/* rules_text: read "batch:data,hidden:model+pod" into rules, and say where a text that is not one
 * goes wrong. */
#include "rules.h"

#include <string.h>

#include "print.h"

typedef struct reader {
    const char *text, *at;
    weft_arena *arena;
    weft_error *error;
} reader;

static void skip_blanks(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

/* The place for people: columns start at 1. */
static int column(const reader *r)
{
    return (int)(r->at - r->text) + 1;
}

static weft_status fail_grammar(reader *r, const char *expected)
{
    const char *found = *r->at == '\0' ? "the text ends" : r->at;
    return weft_fail(
        r->error, WEFT_USAGE,
        "layout \"%.120s\", column %d: %s expected, but found \"%.20s\"; write rules as "
        "dim:axis or dim:axis+axis, for example batch:data,hidden:model",
        r->text, column(r), expected, found);
}

/* A name, and blanks after it. */
static weft_status read_name(reader *r, const char *what, const char **name)
{
    skip_blanks(r);
    const char *begin = r->at;
    const int length = weft_name_length(begin);
    if (length == 0) return fail_grammar(r, what);
    if (length > WEFT_MAX_NAME)
        return weft_fail(r->error, WEFT_USAGE,
                         "layout \"%.80s...\", column %d: a name has %d letters, and the longest "
                         "allowed has %d; shorten it",
                         r->text, column(r), length, WEFT_MAX_NAME);
    r->at = begin + length;
    *name = weft_arena_text(r->arena, "%.*s", length, begin);
    if (*name == NULL) return weft_fail_memory(r->error, (size_t)length);
    skip_blanks(r);
    return WEFT_OK;
}

/* The "?" behind an axis that a mesh need not have, and blanks after it. */
static bool read_mark(reader *r)
{
    if (*r->at != '?') return false;
    r->at++;
    skip_blanks(r);
    return true;
}

static weft_status read_axis(reader *r, weft_rule *rule)
{
    const char *axis;
    skip_blanks(r);
    const char *begin = r->at;
    WEFT_TRY(read_name(r, "an axis name", &axis));
    for (int i = 0; i < rule->n_axes; i++)
        if (strcmp(rule->axes[i], axis) == 0)
            return weft_fail(
                r->error, WEFT_USAGE,
                "layout \"%.120s\", column %d: the rule for %s names axis %s twice; an axis "
                "splits a dim once",
                r->text, (int)(begin - r->text) + 1, rule->dim, axis);
    if (rule->n_axes == WEFT_MAX_AXES)
        return weft_fail(
            r->error, WEFT_USAGE,
            "layout \"%.120s\", column %d: the rule for %s names %d axes, and a mesh has at "
            "most %d; name fewer",
            r->text, (int)(begin - r->text) + 1, rule->dim, rule->n_axes + 1, WEFT_MAX_AXES);
    rule->optional |= (uint32_t)read_mark(r) << rule->n_axes;
    rule->axes[rule->n_axes++] = axis;
    return WEFT_OK;
}

static weft_status read_rule(reader *r, weft_rule *rule)
{
    WEFT_TRY(read_name(r, "a dim name", &rule->dim));
    if (*r->at != ':') return fail_grammar(r, "\":\" and an axis name");
    do {
        r->at++; /* over the ":" or "+" */
        WEFT_TRY(read_axis(r, rule));
    } while (*r->at == '+');
    return WEFT_OK;
}

static int count_rules(const char *text)
{
    int n = 1;
    for (; *text != '\0'; text++)
        n += *text == ',';
    return n;
}

weft_status weft_rules_parse(weft_layout *layout, const char *text, weft_error *error)
{
    reader r = {.text = text, .at = text, .arena = layout->arena, .error = error};
    skip_blanks(&r);
    if (*r.at == '\0') return WEFT_OK;
    size_t bytes = (size_t)count_rules(text) * sizeof *layout->rules;
    layout->rules = weft_arena_take(layout->arena, bytes);
    if (layout->rules == NULL) return weft_fail_memory(error, bytes);
    for (;;) {
        WEFT_TRY(read_rule(&r, &layout->rules[layout->n_rules]));
        layout->n_rules++;
        if (*r.at == '\0') return WEFT_OK;
        if (*r.at != ',') return fail_grammar(&r, "\",\", \"+\" or the end");
        r.at++;
    }
}

static int print_rules(const weft_layout *layout, char *text, size_t bytes)
{
    weft_print print = weft_print_begin(text, bytes);
    for (int i = 0; i < layout->n_rules; i++) {
        const weft_rule *rule = &layout->rules[i];
        weft_print_more(&print, "%s%s", i > 0 ? "," : "", rule->dim);
        for (int j = 0; j < rule->n_axes; j++)
            weft_print_more(&print, "%s%s%s", j > 0 ? "+" : ":", rule->axes[j],
                            rule->optional >> j & 1 ? "?" : "");
    }
    return print.length;
}

weft_status weft_rules_write(weft_layout *layout, weft_error *error)
{
    size_t bytes = (size_t)print_rules(layout, NULL, 0) + 1;
    char *text = weft_arena_take(layout->arena, bytes);
    if (text == NULL) return weft_fail_memory(error, bytes);
    print_rules(layout, text, bytes);
    layout->text = text;
    return WEFT_OK;
}
