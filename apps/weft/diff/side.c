/* side: a plan or a run, by what is at its path. */
#include "side.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void diff_fact(diff_side *side, const char *name, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_object_set_new(side->facts, name, json_string(text));
}

static const char *fact_of(const diff_side *side, const char *name)
{
    return json_string_value(json_object_get(side->facts, name));
}

diff_apart diff_apart_of(const diff_side sides[2])
{
    static const char *const names[DIFF_PLACES] = {"mesh", "layout", "ranks"};
    diff_apart apart = {.n = 0};
    for (int i = 0; i < DIFF_PLACES; i++) {
        const char *a = fact_of(&sides[0], names[i]), *b = fact_of(&sides[1], names[i]);
        if (a && b && strcmp(a, b) != 0) apart.differ[apart.n++] = names[i];
    }
    for (int s = 0; s < 2; s++)
        if (!fact_of(&sides[s], "mesh")) apart.unknown = sides[s].path;
    return apart;
}

weft_status diff_side_open(const char *path, diff_side *side, weft_error *error)
{
    struct stat facts;
    const bool is_folder = stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
    *side = (diff_side){.path = path, .seconds = NAN, .facts = json_object()};
    if (!side->facts) return weft_fail_memory(error, sizeof *side);
    const weft_status status =
        is_folder ? diff_run_open(path, side, error) : diff_plan_open(path, side, error);
    if (status != WEFT_OK) diff_side_close(side);
    return status;
}

void diff_side_close(diff_side *side)
{
    if (side->free_owner) side->free_owner(side->owner);
    json_decref(side->facts);
    free(side->steps);
    *side = (diff_side){0};
}
