/* reference_index.c: ops that look elements up, and ops that give them other coordinates. */
#include "reference.h"

/* ---- indices ---------------------------------------------------------------------------------- */

static bool is_in(const reference_tensor *x, const char *dim, int64_t at)
{
    return at >= 0 && at < tensor_size(x, dim);
}

/* with.dim is the indexed dim of the table. */
void reference_gather(const reference_call *call)
{
    const reference_tensor *table = &call->in[0];
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t id = (int64_t)element_get(&call->in[1], &p);
        const reference_point from = point_set(&p, call->with.dim, id);
        if (is_in(table, call->with.dim, id))
            element_put(&call->out[0], &p, element_get(table, &from));
    }
}

void reference_pick(const reference_call *call)
{
    reference_gather(call); /* the ids have the rows' dims */
}

void reference_scatter_add(const reference_call *call)
{
    REFERENCE_EACH(p, &call->in[0])
    {
        const int64_t id = (int64_t)element_get(&call->in[1], &p);
        const reference_point to = point_set(&p, call->with.dim, id);
        if (is_in(&call->out[0], call->with.dim, id))
            element_add(&call->out[0], &to, element_get(&call->in[0], &p));
    }
}

/* ---- coordinates ------------------------------------------------------------------------------ */

void reference_rename(const reference_call *call)
{
    REFERENCE_EACH(p, &call->in[0])
    {
        const reference_point to = point_named(&p, call->with.dim, call->with.other);
        element_put(&call->out[0], &to, element_get(&call->in[0], &p));
    }
}

/* Element number i stays element number i, counted along the last dim first. */
void reference_reshape(const reference_call *call)
{
    for (int64_t i = 0; i < weft_shape_count(&call->in[0].shape); i++)
        call->out[0].data[i] = call->in[0].data[i];
}

/* with.dim of x, from with.begin on, is with.other of the result. */
void reference_slice(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t at = call->with.begin + point_at(&p, call->with.other);
        const reference_point rest = point_without(&p, call->with.other);
        const reference_point from = point_set(&rest, call->with.dim, at);
        element_put(&call->out[0], &p, element_get(&call->in[0], &from));
    }
}

/* with.dim of operand i stands from `begin` on in with.feature of the result. */
static void lay(const reference_call *call, int i, const char *dim, int64_t begin)
{
    REFERENCE_EACH(p, &call->in[i])
    {
        const int64_t at = begin + point_at(&p, dim);
        const reference_point rest = point_without(&p, dim);
        const reference_point to = point_set(&rest, call->with.feature, at);
        element_put(&call->out[0], &to, element_get(&call->in[i], &p));
    }
}

void reference_concat(const reference_call *call)
{
    lay(call, 0, call->with.dim, 0);
    lay(call, 1, call->with.other, tensor_size(&call->in[0], call->with.dim));
}

/* ---- products of chosen matrices -------------------------------------------------------------------- */

void reference_pick_product(const reference_call *call)
{
    const reference_tensor *x = &call->in[0], *w = &call->in[1];
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t id = (int64_t)element_get(&call->in[2], &p);
        for (int64_t k = 0; k < tensor_size(x, call->with.other); k++) {
            const reference_point in = point_set(&p, call->with.other, k),
                                  of = point_set(&in, call->with.dim, id);
            if (id >= 0 && id < tensor_size(w, call->with.dim))
                element_add(&call->out[0], &p, element_get(x, &in) * element_get(w, &of));
        }
    }
}
void reference_unpick_product(const reference_call *call)
{
    const reference_tensor *x = &call->in[0], *dy = &call->in[1];
    REFERENCE_EACH(p, x, dy)
    {
        const int64_t id = (int64_t)element_get(&call->in[2], &p);
        const reference_point to = point_set(&p, call->with.dim, id);
        if (id >= 0 && id < tensor_size(&call->out[0], call->with.dim))
            element_add(&call->out[0], &to, element_get(x, &p) * element_get(dy, &p));
    }
}

/* ---- conditions that hold --------------------------------------------------------------------------- */

void reference_require(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(&call->out[0], &p, element_get(&call->in[0], &p));
}
void reference_checked_ids(const reference_call *call)
{
    reference_require(call);
}
