/* diff: `weft ckpt diff`: which tensors of two checkpoints differ, in how many elements, by
 * how much. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt.h"

enum { DIFFERENT = 1 /* exit status */ };

static const weft_stored_tensor *find(const weft_stored *stored, const char *name, int *index)
{
    for (*index = 0; *index < weft_stored_n_tensors(stored); ++*index) {
        const weft_stored_tensor *t = weft_stored_tensor_at(stored, *index);
        if (strcmp(t->name, name) == 0) return t;
    }
    return NULL;
}

static void differ(ckpt_call *c, const char *name, const char *how)
{
    c->code = DIFFERENT;
    json_array_append_new(json_object_get(c->json, "differences"),
                          json_pack("{s:s, s:s}", "name", name, "how", how));
    if (!c->is_json) printf("%-24s %s\n", name, how);
}

static double element(const char *dtype, const void *data, int64_t i)
{
    if (strcmp(dtype, "f64") == 0) return ((const double *)data)[i];
    if (strcmp(dtype, "f32") == 0) return (double)((const float *)data)[i];
    return (double)((const int32_t *)data)[i];
}

/* Two tensors of one dtype and shape. */
static void compare(ckpt_call *c, const weft_stored_tensor *t, const void *a, const void *b)
{
    char how[128];
    int64_t n = 0;
    double largest = 0;
    const int64_t count = weft_shape_count(&t->shape);
    if (memcmp(a, b, (size_t)t->bytes) == 0) return;
    for (int64_t i = 0; i < count; i++) {
        const double x = element(t->dtype, a, i), y = element(t->dtype, b, i);
        n += x != y;
        largest = fmax(largest, fabs(x - y));
    }
    snprintf(how, sizeof how, "%lld of %lld elements, by at most %.3g", (long long)n,
             (long long)count, largest);
    differ(c, t->name, how);
}

static weft_status compare_tensor(ckpt_call *c, const weft_stored *one, int at,
                                  const weft_stored *other, weft_error *error)
{
    char mine[512], yours[512], how[1200];
    int place;
    const weft_stored_tensor *a = weft_stored_tensor_at(one, at), *b = find(other, a->name, &place);
    if (!b) {
        differ(c, a->name, "is only in the first");
        return WEFT_OK;
    }
    weft_shape_print(&a->shape, mine, sizeof mine);
    weft_shape_print(&b->shape, yours, sizeof yours);
    if (strcmp(mine, yours) != 0 || strcmp(a->dtype, b->dtype) != 0) {
        snprintf(how, sizeof how, "%s %s and %s %s", a->dtype, mine, b->dtype, yours);
        differ(c, a->name, how);
        return WEFT_OK;
    }
    void *x = malloc((size_t)a->bytes + 1), *y = malloc((size_t)b->bytes + 1);
    weft_status status = x && y ? WEFT_OK : weft_fail_memory(error, (size_t)a->bytes);
    if (status == WEFT_OK) status = weft_stored_read(one, at, x, error);
    if (status == WEFT_OK) status = weft_stored_read(other, place, y, error);
    if (status == WEFT_OK) compare(c, a, x, y);
    free(x);
    free(y);
    return status;
}

weft_status ckpt_diff(ckpt_call *c, weft_error *error)
{
    int place;
    weft_stored *one = NULL, *other = NULL;
    weft_status status = weft_stored_open(c->paths[0], &one, error);
    if (status == WEFT_OK) status = weft_stored_open(c->paths[1], &other, error);
    c->json = json_pack("{s:[]}", "differences");
    for (int i = 0; status == WEFT_OK && i < weft_stored_n_tensors(one); i++)
        status = compare_tensor(c, one, i, other, error);
    for (int i = 0; status == WEFT_OK && i < weft_stored_n_tensors(other); i++)
        if (!find(one, weft_stored_tensor_at(other, i)->name, &place))
            differ(c, weft_stored_tensor_at(other, i)->name, "is only in the second");
    if (status == WEFT_OK && c->code == 0 && !c->is_json) puts("no difference");
    weft_stored_close(&one);
    weft_stored_close(&other);
    return status;
}
