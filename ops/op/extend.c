/* extend.c: ops and kernels from outside, checked before anything of Weft's reads them. */
#include <string.h>

#include "outside.h"
#include "registry.h"
#include "weft/extend/size.h"
#include "weft/name.h"

WEFT_SIZE_IS_WHOLE(weft_op, variants);
WEFT_SIZE_IS_WHOLE(weft_element, text);
WEFT_SIZE_IS_WHOLE(weft_kernel, spare);
WEFT_SIZE_IS_WHOLE(weft_loop_driver, least_piece);
/* Kernels of before end with it: whatever they have in their padding says nothing. */
_Static_assert(offsetof(weft_kernel, prepares_alike) % sizeof(size_t) == 0, "in old padding");

/* ---- ops ------------------------------------------------------------------------------------- */

static const weft_op *op_called(const char *name)
{
    const weft_op *op;
    for (int i = 0; i < weft_n_ops; i++)
        if (strcmp(weft_ops[i]->name, name) == 0) return weft_ops[i];
    for (int i = 0; (op = weft_op_outside_at(i)) != NULL; i++)
        if (strcmp(op->name, name) == 0) return op;
    return NULL;
}

static weft_status check_fields(const weft_op *op, weft_error *error)
{
    const weft_attributes *attributes = op->attributes;
    if (attributes == NULL) return WEFT_OK;
    if (attributes->bytes == 0 || attributes->n_fields < 1 || attributes->fields == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "op %s: its attributes describe nothing; leave them NULL when it has none",
                         op->name);
    for (int f = 0; f < attributes->n_fields; f++) {
        const weft_field *field = &attributes->fields[f];
        if (field->name == NULL || field->kind == NULL || field->kind->print == NULL ||
            field->kind->bytes > attributes->bytes ||
            field->offset > attributes->bytes - field->kind->bytes)
            return weft_fail(
                error, WEFT_USAGE,
                "op %s: field %d of its attributes has no name or kind, or does not lie "
                "in their %zu bytes; describe it with WEFT_FIELD",
                op->name, f, attributes->bytes);
    }
    return WEFT_OK;
}

static weft_status check_op(const weft_op *op, weft_error *error)
{
    WEFT_TRY(weft_name_check("op", op->name, error));
    if (op->infer == NULL || op->factors == NULL)
        return weft_fail(error, WEFT_USAGE, "op %s: %s is NULL; every op says it", op->name,
                         op->infer == NULL ? "infer" : "factors");
    if (op->expands && op->expand == NULL)
        return weft_fail(error, WEFT_USAGE, "op %s expands, but expand is NULL", op->name);
    if (op->expands && op->element != NULL)
        return weft_fail(error, WEFT_USAGE,
                         "op %s expands and has an element table; one of them does its work",
                         op->name);
    if (op->element != NULL && op->element->size < offsetof(weft_element, relay))
        return weft_fail(error, WEFT_USAGE,
                         "op %s: the size of its element table is %zu; begin it with "
                         ".size = sizeof(weft_element)",
                         op->name, op->element->size);
    if (op->makes_token || op->takes_tokens || op->is_outside || op->reads_bodies || op->carries_on)
        return weft_fail(error, WEFT_USAGE,
                         "op %s makes or takes tokens, which only weft_assign and weft_group do",
                         op->name);
    if (op_called(op->name) != NULL)
        return weft_fail(error, WEFT_USAGE, "there is an op %s already; give this one another name",
                         op->name);
    return check_fields(op, error);
}

weft_status weft_extend_op(const weft_op *op, weft_error *error)
{
    weft_op taken;
    WEFT_GIVEN(op, error);
    WEFT_TRY(weft_size_take(op, &taken, offsetof(weft_op, linear), sizeof taken, "weft_extend_op",
                            error));
    WEFT_TRY(check_op(&taken, error));
    return weft_op_outside_add(op, &taken, error);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static weft_status fail_unknown(const char *op, weft_error *error)
{
    const char *names[WEFT_MAX_OPS + WEFT_MAX_OUTSIDE_OPS];
    int n = 0;
    const weft_op *at;
    for (; n < weft_n_ops; n++)
        names[n] = weft_ops[n]->name;
    for (int i = 0; (at = weft_op_outside_at(i)) != NULL; i++)
        names[n++] = at->name;
    const char *near = weft_nearest(op, names, n);
    return weft_fail(error, WEFT_USAGE, "weft_extend_kernel: there is no op %.64s%s%s%s", op,
                     near == NULL ? "; weft_extend_op it first" : "; did you mean ",
                     near == NULL ? "" : near, near == NULL ? "" : "?");
}

weft_status weft_extend_kernel(const char *op, const weft_kernel *kernel, weft_error *error)
{
    weft_kernel taken = {0};
    WEFT_GIVEN(op, error);
    WEFT_GIVEN(kernel, error);
    WEFT_TRY(weft_size_take(kernel, &taken, offsetof(weft_kernel, release),
                            offsetof(weft_kernel, spare), "weft_extend_kernel", error));
    const weft_op *of = op_called(op);
    if (of == NULL) return fail_unknown(op, error);
    if (of->element != NULL || of->expands)
        return weft_fail(error, WEFT_USAGE, "weft_extend_kernel: op %s has no kernels: %s",
                         of->name,
                         of->expands ? "the compiler puts simpler ops in its place"
                                     : "it is done element by element, and joined with its "
                                       "neighbours");
    return weft_kernel_add(of->name, &taken, error);
}

weft_status weft_extend_loops(const weft_loop_driver *driver, weft_error *error)
{
    weft_loop_driver taken;
    WEFT_GIVEN(driver, error);
    WEFT_TRY(weft_size_take(driver, &taken, offsetof(weft_loop_driver, again), sizeof taken,
                            "weft_extend_loops", error));
    return weft_loop_driver_add(&taken, error);
}
