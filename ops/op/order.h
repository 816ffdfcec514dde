/* order.h: what order, and what takes elements in that order, share. */
#ifndef WEFT_ORDER_H
#define WEFT_ORDER_H

#include "op.h"

extern const weft_attributes weft_attributes_order;
/* What comes after everything: of equal elements the padding has the higher indices. */
double weft_order_last(weft_dtype dtype, bool descending);
/* The last of i64, ascending, is no double: then what is padded is ordered as its opposite, the largest first. */
bool weft_order_is_turned(weft_dtype dtype, bool descending);

/* order_blocks.c: into how many blocks a dim is cut, and whether `count` of a dim of `size` are so few that blocks of it are ordered by themselves. */
enum { WEFT_ORDER_BLOCKS = 48 };
bool weft_order_is_few(const weft_shape *shape, int64_t size, int64_t count);
/* Which elements are wanted: the largest first or the least; and of equal ones the last first, or the first. The largest with the
 * last first are what sort puts at its end. */
typedef struct weft_order_choice {
    bool descending, is_last_first;
} weft_order_choice;
/* Indices as weft_order has them, by the choice: of x as it is, or by blocks of a wide x, of a few. */
weft_value weft_ordered_by(weft_value x, weft_dim dim, weft_dim to, weft_order_choice by);
weft_value weft_order_by_blocks(weft_value x, weft_dim dim, weft_dim to, weft_order_choice by);
/* A new dim of that size, beside another. */
weft_dim weft_order_dim(weft_graph *graph, weft_dim like, int64_t size);

/* order_columns.c: into how many columns a dim of so many elements is cut, which ranks share; 0: it is too short. */
int64_t weft_order_columns(int64_t size);
/* Whether operand x [.., dim, ..] lies split along the dim over so many ranks that to order it by columns sends less than to gather
 * it, and no other dim can take the axes. */
bool weft_order_goes_by_columns(const weft_site *site, int x, const weft_spec *in,
                                const weft_mesh *mesh);
/* The first of x in order, and their indices (i32): [.., to, ..]. Of all whose attributes are equal the same values. */
typedef struct weft_ordered {
    weft_value x, ids;
} weft_ordered;
weft_ordered weft_order_by_columns(weft_value x, const weft_order_attributes *attributes);

#endif
