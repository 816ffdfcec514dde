/* check_places: every way in which a tensor can live on a mesh: each axis splits a dim, or none; where several split one dim,
 * in both orders. */
#include "check.h"

#include <stdio.h>
#include <string.h>

/* "row:data+model,column:pipe" from state[axis], a dim or -1. */
static void print_place(const weft_mesh *mesh, const weft_shape *shape, const int *state,
                        bool is_reversed, char *text)
{
    const int n_axes = weft_mesh_n_axes(mesh);
    size_t at = 0;
    text[0] = '\0';
    for (int d = 0; d < shape->n_dims; d++) {
        bool is_first = true;
        for (int i = 0; i < n_axes; i++) {
            const int axis = is_reversed ? n_axes - 1 - i : i;
            if (state[axis] != d || at >= WEFT_CHECK_TEXT) continue;
            at +=
                (size_t)snprintf(text + at, WEFT_CHECK_TEXT - at, "%s%s%s%s",
                                 is_first && at > 0 ? "," : "", is_first ? shape->dims[d].name : "",
                                 is_first ? ":" : "+", weft_mesh_axis_name(mesh, axis));
            is_first = false;
        }
    }
}

int weft_check_places(const weft_mesh *mesh, const weft_shape *given, bool with_part,
                      char (*texts)[WEFT_CHECK_TEXT])
{
    weft_shape shape = *given;
    const int n_axes = weft_mesh_n_axes(mesh);
    int n_codes = 1, n = 0;
    if (with_part && shape.n_dims < WEFT_MAX_DIMS)
        shape.dims[shape.n_dims++] = (weft_dim){"part", 2};
    for (int a = 0; a < n_axes; a++)
        n_codes *= shape.n_dims + 1;
    for (int code = 0; code < n_codes; code++) {
        int state[WEFT_MAX_AXES];
        for (int a = 0, rest = code; a < n_axes; a++, rest /= shape.n_dims + 1)
            state[a] = rest % (shape.n_dims + 1) - 1;
        for (int is_reversed = 0; is_reversed < 2 && n < WEFT_CHECK_PLACES; is_reversed++) {
            print_place(mesh, &shape, state, is_reversed != 0, texts[n]);
            if (!is_reversed || strcmp(texts[n], texts[n - 1]) != 0) n++;
        }
    }
    return n;
}
