/* cases_index.c: ops that look elements up, and ops that give them other coordinates. */
#include "cases.h"

/* ---- indexing -------------------------------------------------------------------------------- */

static weft_value gather_x(build_t *b, weft_dtype t)
{
    weft_value table = in(b, t, WEFT_DIMS(ROWS, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_gather(table, ids, ROWS);
}
static weft_value scatter_add_x(build_t *b, weft_dtype t)
{
    weft_value rows = in(b, t, WEFT_DIMS(A, D, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_scatter_add(rows, ids, ROWS);
}
static weft_value pick_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), ids = ids_of(b, WEFT_DIMS(A, D), B.size);
    return weft_pick(x, ids, B);
}
static weft_value gather_inner(build_t *b, weft_dtype t) /* the indexed dim is not the first */
{
    weft_value table = in(b, t, WEFT_DIMS(C, ROWS, D)), ids = ids_of(b, WEFT_DIMS(A), ROWS.size);
    return weft_gather(table, ids, ROWS);
}
static weft_value gather_permuted(build_t *b, weft_dtype t) /* the ids run along the same dim */
{
    weft_value table = in(b, t, WEFT_DIMS(ROWS, C)), ids = ids_of(b, WEFT_DIMS(ROWS), ROWS.size);
    return weft_gather(table, ids, ROWS);
}
static weft_value scatter_add_permuted(build_t *b, weft_dtype t)
{
    weft_value rows = in(b, t, WEFT_DIMS(C, ROWS)), ids = ids_of(b, WEFT_DIMS(ROWS), ROWS.size);
    return weft_scatter_add(rows, ids, ROWS);
}
static weft_value pick_fewer(build_t *b, weft_dtype t) /* ids of some of the rows' dims */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), ids = ids_of(b, WEFT_DIMS(D), B.size);
    return weft_pick(x, ids, B);
}

static weft_value pick_several(build_t *b, weft_dtype t) /* ids have a dim of their own, lack one */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), ids = ids_of(b, WEFT_DIMS(C, A), B.size);
    return weft_pick(x, ids, B);
}
static weft_value pick_full(build_t *b, weft_dtype t) /* and all of the rows' */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), ids = ids_of(b, WEFT_DIMS(C, A), B.size);
    return weft_pick(x, ids, B);
}
static weft_value pick_along(build_t *b, weft_dtype t) /* the rows in another order */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), ids = ids_of(b, WEFT_DIMS(A, B), B.size);
    return weft_pick(x, ids, B);
}

/* Some ids are no matrix's. */
static weft_value pick_product_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, D, C)), w = in(b, t, WEFT_DIMS(ROWS, C, B)),
               ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_pick_product(x, w, ids, ROWS);
}
static weft_value pick_product_own(build_t *b,
                                   weft_dtype t) /* several of each row, in another order */
{
    weft_value x = in(b, t, WEFT_DIMS(C, A, D)), w = in(b, t, WEFT_DIMS(B, C, OUTER)),
               ids = ids_of(b, WEFT_DIMS(ONE, D, SEQ, A), OUTER.size);
    return weft_pick_product(x, w, ids, OUTER);
}
static weft_value unpick_product_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C)), dy = in(b, t, WEFT_DIMS(A, D, B)),
               ids = ids_of(b, WEFT_DIMS(A, D), OUTER.size);
    const weft_value of[] = {x, dy, ids};
    return weft_emit_dim(&weft_op_unpick_product, of, 3, OUTER);
}

static const weft_value no_number = {NULL, 0};

static weft_value require_x(build_t *b, weft_dtype t) /* of a condition that holds */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), ids = ids_of(b, WEFT_DIMS(C, D), B.size);
    const weft_value low = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, -100.0);
    return weft_require(x, weft_all(WEFT_SCALAR, weft_less(low, ids)), no_number, "there is one");
}
static weft_value checked_ids_x(build_t *b, weft_dtype t)
{
    (void)t;
    return weft_checked_ids(weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, B), 0, 9), ROWS);
}

/* ---- shape ----------------------------------------------------------------------------------- */

static weft_value transpose_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_transpose(x, WEFT_DIMS(C, A, B));
}
static weft_value rename_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_rename(x, B, OTHER);
}
static weft_value reshape_merge(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C, D));
    return weft_reshape(x, WEFT_DIMS(A, SIX));
}
static weft_value reshape_split(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(MERGED, A));
    return weft_reshape(x, WEFT_DIMS(OUTER, C, A));
}
static weft_value reshape_both(build_t *b, weft_dtype t) /* [6, 5] to [10, 3]: no dim survives */
{
    weft_value x = in(b, t, WEFT_DIMS(SIX, A));
    return weft_reshape(x, WEFT_DIMS(TEN, C));
}
static weft_value slice_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_slice(x, B, 2, PART);
}
static weft_value concat_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(A, C));
    return weft_concat(x, y, B, C, JOINED);
}
static weft_value slice_same_name(build_t *b, weft_dtype t) /* another b, of another size */
{
    weft_value x = in(b, t, WEFT_DIMS(B, A));
    return weft_slice(x, B, 3, (weft_dim){B.name, 4});
}
static weft_value concat_other_order(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), y = in(b, t, WEFT_DIMS(C, D, A));
    return weft_concat(x, y, B, C, JOINED);
}

CASES(gather, CASE(gather_x, OP_FLOAT, 1, .with = {.dim = "rows"}),
      CASE(gather_inner, OP_FLOAT, 1, .with = {.dim = "rows"}),
      CASE(gather_permuted, OP_FLOAT, 1, .with = {.dim = "rows"}))
CASES(scatter_add, CASE(scatter_add_x, OP_FLOAT, 1, .with = {.dim = "rows"}),
      CASE(scatter_add_permuted, OP_FLOAT, 1, .with = {.dim = "rows"}))
CASES(pick_product, CASE(pick_product_x, OP_FLOAT, 2, .with = {.dim = "rows", .other = "c"}),
      CASE(pick_product_own, OP_FLOAT, 1, .with = {.dim = "outer", .other = "c"}))
CASES(unpick_product, CASE(unpick_product_x, OP_WIDE, 2, .with = {.dim = "outer"}))
CASES(require, CASE(require_x, ALL_DTYPES, 1, .each = true))
CASES(checked_ids, CASE(checked_ids_x, OP_I32, 0))
CASES(pick, CASE(pick_x, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(pick_fewer, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(pick_several, OP_FLOAT | OP_INT, 1, .with = {.dim = "b"}),
      CASE(pick_full, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(pick_along, OP_FLOAT, 1, .with = {.dim = "b"}))

CASES(transpose, CASE(transpose_x, OP_FLOAT | OP_INT, 1, .each = true))
CASES(rename, CASE(rename_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .other = "other"}))
CASES(reshape, CASE(reshape_merge, OP_FLOAT | OP_INT, 1), CASE(reshape_split, OP_FLOAT | OP_INT, 1),
      CASE(reshape_both, OP_FLOAT, 1))
CASES(slice,
      CASE(slice_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .other = "part_of_b", .begin = 2}),
      CASE(slice_same_name, OP_FLOAT, 1, .with = {.dim = "b", .other = "b", .begin = 3}))
CASES(concat,
      CASE(concat_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b", .other = "c", .feature = "joined"}),
      CASE(concat_other_order, OP_FLOAT, 1,
           .with = {.dim = "b", .other = "c", .feature = "joined"}))
