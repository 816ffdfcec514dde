/* classes: which ranks a prediction looks at. See classes.h. */
#include "classes.h"

static int rank_along(const weft_plan *plan, int axis, int coordinate)
{
    int coordinates[WEFT_MAX_AXES] = {0};
    coordinates[axis] = coordinate;
    return weft_mesh_rank(plan->mesh, coordinates);
}

/* Whether both hold blocks of one size of every tensor: of tensors that lie alike one is looked at. */
static bool are_alike(const weft_plan *plan, int a, int b)
{
    const weft_likes *likes = &plan->likes;
    for (uint32_t k = 0; k < likes->n_placed; k++)
        if (weft_placed_bytes(plan, likes->placed[k], a) !=
            weft_placed_bytes(plan, likes->placed[k], b))
            return false;
    return true;
}

static void add(weft_classes *classes, int axis, int coordinate)
{
    int *along = classes->along[axis], at = classes->n_along[axis];
    for (int i = 0; i < at; i++)
        if (along[i] == coordinate) return;
    for (; at > 0 && along[at - 1] > coordinate; at--)
        along[at] = along[at - 1];
    along[at] = coordinate;
    classes->n_along[axis]++;
}

void weft_find_classes(const weft_plan *plan, int slow, weft_classes *classes)
{
    int of_slow[WEFT_MAX_AXES] = {0};
    *classes = (weft_classes){.n_axes = weft_mesh_n_axes(plan->mesh), .n = 1};
    if (slow >= 0) weft_mesh_coordinates(plan->mesh, slow, of_slow);
    for (int a = 0; a < classes->n_axes; a++) {
        const int size = weft_mesh_axis_size(plan->mesh, a), tried[] = {size / 2, size - 1};
        add(classes, a, 0);
        for (int i = 0; i < 2; i++)
            if (!are_alike(plan, 0, rank_along(plan, a, tried[i]))) add(classes, a, tried[i]);
        if (slow >= 0) add(classes, a, of_slow[a]);
        classes->n *= classes->n_along[a];
    }
}

int weft_class_rank(const weft_plan *plan, const weft_classes *classes, int c)
{
    int coordinates[WEFT_MAX_AXES] = {0};
    for (int a = classes->n_axes; a-- > 0; c /= classes->n_along[a])
        coordinates[a] = classes->along[a][c % classes->n_along[a]];
    return weft_mesh_rank(plan->mesh, coordinates);
}

int weft_class_first(const weft_classes *classes, int c, uint32_t axes)
{
    int first = 0, stride = 1;
    for (int a = classes->n_axes; a-- > 0; c /= classes->n_along[a]) {
        if (!(axes >> a & 1)) first += c % classes->n_along[a] * stride;
        stride *= classes->n_along[a];
    }
    return first;
}
