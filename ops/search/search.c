/* search: what is asked of a search is looked at, then its space is found, then the quickest choices in it. */
#include "searching.h"

#include <string.h>

static weft_status vary(searching *s, const char *word, size_t letters)
{
    const weft_search_options *o = s->options;
    const char *names[3 + WEFT_MAX_KNOBS] = {"mesh", "layout", "zero"};
    bool *flags[3 + WEFT_MAX_KNOBS] = {&s->varies_mesh, &s->varies_layout, &s->varies_zero};
    char name[WEFT_MAX_NAME + 1];
    for (int k = 0; k < o->n_knobs; k++) {
        names[3 + k] = o->knobs[k].name;
        flags[3 + k] = &s->varies_knob[k];
    }
    snprintf(name, sizeof name, "%.*s", (int)letters, word);
    for (int i = 0; i < 3 + o->n_knobs; i++)
        if (strcmp(name, names[i]) == 0) {
            *flags[i] = true;
            return WEFT_OK;
        }
    const char *near = weft_nearest(name, names, 3 + o->n_knobs);
    return weft_fail(s->error, WEFT_USAGE,
                     "vary \"%s\": there is nothing of that name to vary; %s%s%s", name,
                     near ? "did you mean " : "there are mesh, layout, zero", near ? near : "",
                     near ? "?" : " and the program's knobs");
}

static weft_status read_vary(searching *s)
{
    const char *text = s->options->vary ? s->options->vary : "";
    if (!*text) {
        s->varies_mesh = s->varies_layout = s->varies_zero = true;
        for (int k = 0; k < s->options->n_knobs; k++)
            s->varies_knob[k] = !s->options->knobs[k].is_asked;
    }
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ", ");
        if (n > 0) WEFT_TRY(vary(s, at, n));
        at += n + strspn(at + n, ", ");
    }
    const bool is_given = s->options->mesh && *s->options->mesh;
    if (is_given || (s->varies_mesh && s->varies_layout)) return WEFT_OK;
    return weft_fail(s->error, WEFT_USAGE,
                     "vary \"%s\" without %s: give a mesh and a layout to keep, or vary both", text,
                     s->varies_mesh ? "layout" : "mesh");
}

static weft_status check(const weft_search_options *o, weft_error *error)
{
    WEFT_GIVEN(o->machine, error);
    WEFT_GIVEN_RANGE(o->ranks, 1, WEFT_MAX_RANKS, error);
    WEFT_GIVEN_RANGE(o->host_ranks, 0, WEFT_MAX_RANKS, error);
    WEFT_GIVEN_RANGE(o->memory, 0, INT64_MAX, error);
    WEFT_GIVEN_RANGE(o->zero, 0, 3, error);
    WEFT_GIVEN_RANGE(o->n_knobs, 0, WEFT_MAX_KNOBS, error);
    WEFT_GIVEN_RANGE(o->width, 0, 1000, error);
    WEFT_GIVEN_RANGE(o->most, 0, 1 << 30, error);
    WEFT_GIVEN_RANGE(o->threads, 0, 1024, error);
    WEFT_GIVEN_RANGE(o->layers, 0, 1 << 20, error);
    if (o->n_knobs > 0) WEFT_GIVEN(o->knobs, error);
    for (int k = 0; k < o->n_knobs; k++) {
        WEFT_GIVEN(o->knobs[k].name, error);
        WEFT_GIVEN_RANGE(o->knobs[k].n_values, 1, WEFT_MAX_KNOB_VALUES, error);
    }
    if (o->seconds >= 0 && o->seconds < 1e9) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "weft_search_best: seconds is %g; it is the time the search may take, and 0 is "
        "any time",
        o->seconds);
}

weft_status weft_search_best(weft_search_builder build, void *context,
                             const weft_search_options *options, weft_found *found,
                             weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    WEFT_GIVEN(build, error);
    WEFT_GIVEN(options, error);
    WEFT_GIVEN(found, error);
    *found = (weft_found){0};
    WEFT_TRY(check(options, error));
    searching s = {.build = build,
                   .context = context,
                   .options = options,
                   .error = &own,
                   .building = PTHREAD_MUTEX_INITIALIZER};
    s.begun = weft_sync_seconds();
    s.threads = weft_search_threads(options);
    s.arena = weft_arena_create();
    if (!s.arena) return weft_fail_memory(error, sizeof s);
    weft_status status = read_vary(&s);
    if (status == WEFT_OK) status = weft_search_space_find(&s);
    if (status == WEFT_OK) status = weft_search_hunt(&s, found);
    weft_arena_destroy(&s.arena);
    return status == WEFT_OK ? status : weft_fail(error, status, "%s", own.message);
}
