/* choice: a mesh, a layout, a stage and values of knobs, as a command line has them. */
#include "weft/research/search.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct line {
    char *text;
    size_t bytes;
    int used;
} line;

static void put(line *l, const char *format, ...)
{
    va_list arguments;
    const size_t at = (size_t)l->used < l->bytes ? (size_t)l->used : l->bytes;
    va_start(arguments, format);
    const int n = vsnprintf(l->text ? l->text + at : NULL, l->bytes - at, format, arguments);
    va_end(arguments);
    if (n > 0) l->used += n;
}

static void put_knob(line *l, const weft_knob *knob, int64_t value)
{
    const char *between = l->used > 0 ? " " : "";
    if (knob->n_values > 0 && value == knob->values[0]) return;
    if (knob->words)
        put(l, "%s--%s %s", between, knob->name, knob->words[value]);
    else if (knob->is_flag)
        put(l, "%s--%s%s", between, value ? "" : "no-", knob->name);
    else
        put(l, "%s--%s %lld", between, knob->name, (long long)value);
}

int weft_choice_print(const weft_choice *choice, char *text, size_t bytes)
{
    line l = {text, text ? bytes : 0, 0};
    if (l.bytes > 0) text[0] = '\0';
    if (!choice) return 0;
    if (choice->mesh[0]) put(&l, "--mesh %s", choice->mesh);
    if (choice->layout[0]) put(&l, "%s--layout %s", l.used > 0 ? " " : "", choice->layout);
    if (choice->zero > 0) put(&l, "%s--zero %d", l.used > 0 ? " " : "", choice->zero);
    for (int k = 0; k < choice->n_knobs && choice->knobs; k++)
        put_knob(&l, &choice->knobs[k], choice->values[k]);
    return l.used;
}

int64_t weft_choice_value(const weft_choice *choice, const char *knob, int64_t otherwise)
{
    for (int k = 0; choice && knob && k < choice->n_knobs && choice->knobs; k++)
        if (strcmp(choice->knobs[k].name, knob) == 0) return choice->values[k];
    return otherwise;
}
