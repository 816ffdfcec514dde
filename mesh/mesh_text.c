/* mesh_text: read "data:2,model:4" into axes, and say where a text that is not one goes wrong. */
#include "mesh_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *text, *at;
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
    return weft_fail(r->error, WEFT_USAGE,
                     "mesh \"%.80s\", column %d: %s expected, but found \"%.20s\"; write axes as "
                     "name:size, for example data:2,model:4",
                     r->text, column(r), expected, found);
}

static weft_status read_name(reader *r, weft_mesh *mesh, weft_mesh_axis *axis)
{
    const char *begin = r->at;
    const int length = weft_name_length(begin);
    if (length == 0) return fail_grammar(r, "an axis name");
    if (length > WEFT_MAX_NAME)
        return weft_fail(
            r->error, WEFT_USAGE,
            "mesh \"%.80s...\", column %d: an axis name has %d letters, and the longest "
            "allowed has %d; shorten it",
            r->text, column(r), length, WEFT_MAX_NAME);
    axis->name = weft_arena_text(mesh->arena, "%.*s", length, begin);
    if (axis->name == NULL) return weft_fail_memory(r->error, (size_t)length);
    if (weft_mesh_find_axis(mesh, axis->name) >= 0)
        return weft_fail(
            r->error, WEFT_USAGE,
            "mesh \"%.80s\", column %d: axis %s is there twice; give every axis its own name",
            r->text, column(r), axis->name);
    r->at = begin + length;
    return WEFT_OK;
}

static weft_status read_size(reader *r, weft_mesh_axis *axis)
{
    const char *begin = r->at;
    if (!isdigit((unsigned char)*begin)) return fail_grammar(r, "a size");
    int64_t size = 0;
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (size <= WEFT_MAX_RANKS) size = size * 10 + (*r->at - '0'); /* else: too large already */
    int length = (int)(r->at - begin);
    if (size < 1 || size > WEFT_MAX_RANKS) {
        r->at = begin;
        return weft_fail(
            r->error, WEFT_USAGE,
            "mesh \"%.80s\", column %d: axis %s has size %.*s, and sizes go from 1 to %d; "
            "give it the number of ranks along it",
            r->text, column(r), axis->name, length < 30 ? length : 30, begin, WEFT_MAX_RANKS);
    }
    axis->size = (int)size;
    return WEFT_OK;
}

static weft_status read_axis(reader *r, weft_mesh *mesh)
{
    if (mesh->n_axes == WEFT_MAX_AXES)
        return weft_fail(
            r->error, WEFT_USAGE,
            "mesh \"%.80s\", column %d: this would be axis number %d, and a mesh has at "
            "most %d; join two of them",
            r->text, column(r), WEFT_MAX_AXES + 1, WEFT_MAX_AXES);
    weft_mesh_axis *axis = &mesh->axes[mesh->n_axes];
    WEFT_TRY(read_name(r, mesh, axis));
    skip_blanks(r);
    if (*r->at != ':') return fail_grammar(r, "\":\" and a size");
    r->at++;
    skip_blanks(r);
    WEFT_TRY(read_size(r, axis));
    skip_blanks(r);
    if ((int64_t)mesh->n_ranks * axis->size > WEFT_MAX_RANKS)
        return weft_fail(
            r->error, WEFT_USAGE,
            "mesh \"%.80s\" has %lld ranks or more, and the most is %d; make an axis smaller",
            r->text, (long long)mesh->n_ranks * axis->size, WEFT_MAX_RANKS);
    mesh->n_ranks *= axis->size;
    mesh->n_axes++;
    return WEFT_OK;
}

/* "data:2,model:4", without blanks, in the arena. */
static weft_status write_text(weft_mesh *mesh, weft_error *error)
{
    char text[WEFT_MAX_AXES * (WEFT_MAX_NAME + 12)] = "";
    for (int a = 0, at = 0; a < mesh->n_axes; a++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s:%d", a > 0 ? "," : "",
                       mesh->axes[a].name, mesh->axes[a].size);
    mesh->text = weft_arena_text(mesh->arena, "%s", text);
    return mesh->text == NULL ? weft_fail_memory(error, strlen(text)) : WEFT_OK;
}

weft_status weft_mesh_parse(weft_mesh *mesh, const char *text, weft_error *error)
{
    reader r = {.text = text, .at = text, .error = error};
    mesh->n_axes = 0;
    mesh->n_ranks = 1;
    for (;;) {
        skip_blanks(&r);
        WEFT_TRY(read_axis(&r, mesh));
        if (*r.at == '\0') break;
        if (*r.at != ',') return fail_grammar(&r, "\",\" or the end");
        r.at++;
    }
    for (int a = mesh->n_axes - 1, stride = 1; a >= 0; a--) {
        mesh->axes[a].stride = stride;
        stride *= mesh->axes[a].size;
    }
    return write_text(mesh, error);
}
