/* digest_programs.h: one op each, in several versions: version 0, and others that differ from it in one field. */
#ifndef TEST_DIGEST_PROGRAMS_H
#define TEST_DIGEST_PROGRAMS_H

#include "digest_attention.h"
#include "digest_given.h"

#include <string.h>

#include "weft/scan.h"

/* ---- ops: version 0, and others that differ from it ------------------------------------------ */

static weft_value emit_home(const given *p, const weft_op *op, int version)
{
    weft_variable_attributes attributes = {.name = version == 1 ? "b" : "a"};
    attributes.initial = version == 2 ? weft_uniform(0.0, 1.0) : weft_constant_of(1.0);
    attributes.owner = version == 3 ? p->y.id : p->x.id;
    attributes.rows = version == 6 ? "c d e" : NULL;
    attributes.type.dtype = version == 4 ? WEFT_F32 : WEFT_F64;
    attributes.type.shape = version == 5 ? WEFT_DIMS(column, row) : WEFT_DIMS(row, column);
    return weft_emit(p->graph, op, NULL, 0, &attributes, sizeof attributes);
}
static weft_value input(const given *p, int version)
{
    return emit_home(p, &weft_op_input, version);
}
static weft_value variable(const given *p, int version)
{
    return emit_home(p, &weft_op_variable, version);
}

/* Numbers 0 to 3, the stream, the dim, the dtype, the shape, of which elements of a whole. */
static weft_value emit_generator(const given *p, const weft_op *op, int version)
{
    weft_generator_attributes attributes = {.element = {.number = {1, 2, 3, 4}}};
    attributes.element.random = version == 5 ? 8 : 7;
    attributes.element.dim = version == 6 ? "row" : "column";
    if (version >= 1 && version <= 4) attributes.element.number[version - 1] += 0x1p-50;
    if (version == 9) attributes.element.every = 2;
    if (version == 10) attributes.element.from = 1;
    attributes.type.dtype = version == 7 ? WEFT_F32 : WEFT_F64;
    attributes.type.shape = version == 8 ? WEFT_DIMS(column, row) : WEFT_DIMS(row, column);
    return weft_emit(p->graph, op, NULL, 0, &attributes, sizeof attributes);
}
static weft_value constant(const given *p, int version)
{
    return emit_generator(p, &weft_op_constant, version);
}
static weft_value iota(const given *p, int version)
{
    return emit_generator(p, &weft_op_iota, version);
}
static weft_value run_number(const given *p, int version)
{
    return emit_generator(p, &weft_op_run_number, version);
}
static weft_value random_uniform(const given *p, int version)
{
    return emit_generator(p, &weft_op_random_uniform, version);
}
static weft_value random_normal(const given *p, int version)
{
    return emit_generator(p, &weft_op_random_normal, version);
}

static weft_value cast(const given *p, int version)
{
    return weft_cast(p->x, version == 1 ? WEFT_F32 : WEFT_I32);
}
static weft_value broadcast(const given *p, int version)
{
    return weft_broadcast_to(p->x, version == 1 ? WEFT_DIMS(row, column, part)
                                                : WEFT_DIMS(part, row, column));
}
static weft_value einsum(const given *p, int version)
{
    return weft_einsum(version == 1 ? WEFT_DIMS(row) : WEFT_DIMS(column), p->x, p->y);
}
static weft_value transpose(const given *p, int version)
{
    return weft_transpose(version == 1 ? weft_einsum(WEFT_DIMS(row), p->x, p->y) : p->x,
                          version == 1 ? WEFT_DIMS(row) : WEFT_DIMS(column, row));
}
static weft_value reshape(const given *p, int version)
{
    const weft_dim flat = {"flat", 24}, four = {"four", 4}, six = {"six", 6};
    return weft_reshape(p->x, version == 1 ? WEFT_DIMS(flat) : WEFT_DIMS(six, four));
}
static weft_value rename_(const given *p, int version)
{
    const weft_dim a = {"a", 6}, b = {"b", 6}, c = {"c", 4}, e = {"e", 8};
    if (version == 1) return weft_rename(p->x, row, b);
    if (version == 2) return weft_rename(p->x, column, c);
    if (version == 3) return weft_rename(p->long_, (weft_dim){"row", 8}, e);
    return weft_rename(p->x, row, a);
}
static weft_value slice(const given *p, int version)
{
    if (version == 1) return weft_slice(p->x, row, 4, part);
    if (version == 2) return weft_slice(p->x, row, 0, piece);
    if (version == 3) return weft_slice(p->x, column, 0, part);
    if (version == 4) return weft_slice(p->long_, (weft_dim){"row", 8}, 0, part);
    return weft_slice(p->x, row, 0, part);
}
static weft_value reindex(const given *p, int version)
{
    const weft_dim whole = {version == 2 ? "all" : "whole", version == 3 ? 16 : 12};
    const bool is_long = version == 7;
    return weft_reindex(is_long ? p->long_ : p->x,
                        is_long        ? (weft_dim){"row", 8}
                        : version == 4 ? column
                                       : row,
                        whole, version == 5 ? 3 : 1, version == 1 ? 4 : 0, version == 6 ? 2 : 1);
}
/* Three directions, each changed in the same way; 7: back, 8: another result, 9: one direction less, 10: of bf16. */
static weft_value conv(const given *p, int version)
{
    const char *in[2][3] = {{"i", "j", "k"}, {"i2", "j2", "k2"}};
    const char *taps[2][3] = {{"s", "t", "u"}, {"s2", "t2", "u2"}};
    const char *out[2][3] = {{"l", "m", "n"}, {"l2", "m2", "n2"}};
    weft_spatial s[3];
    weft_shape x = {0}, w = {0}, y = {0};
    for (int d = 0; d < 3; d++) {
        s[d] = (weft_spatial){.in = {in[version == 5][d], 4},
                              .tap = {taps[version == 4][d], 2},
                              .out = {out[version == 6][d], 4},
                              .stride = version == 1 || version == 7 ? 2 : 1,
                              .dilation = version == 2 ? 2 : 1,
                              .before = version == 3 ? 1 : 0};
        x.dims[x.n_dims++] = s[d].in, y.dims[y.n_dims++] = s[d].out;
        if (version != 9 || d < 2) w.dims[w.n_dims++] = s[d].tap;
    }
    if (version == 9) y.dims[2] = s[2].in;
    if (version == 8) y.dims[0] = s[1].out, y.dims[1] = s[0].out;
    const weft_dtype dtype = version == 10 ? WEFT_BF16 : WEFT_F64;
    const weft_value of = weft_constant(p->graph, dtype, version == 7 ? y : x, 1.0),
                     by = weft_constant(p->graph, dtype, w, 1.0);
    return (version == 7 ? (weft_conv_transpose)(x, of, by, (weft_spatials){s, 3})
                         : (weft_conv)(y, of, by, (weft_spatials){s, version == 9 ? 2 : 3}));
}
/* Three windows, each changed in the same way; 9: one less. */
static weft_value emit_pool(const given *p, const weft_op *op, int version)
{
    const char *from[2][3] = {{"i", "j", "k"}, {"i2", "j2", "k2"}};
    const char *to[2][3] = {{"l", "m", "n"}, {"l2", "m2", "n2"}};
    weft_pool_attributes a = {.n_windows = version == 9 ? 2 : 3};
    weft_shape x = {0}, y = {0};
    for (int d = 0; d < 3; d++) {
        a.window[d] = (weft_pool_window){.x = from[version == 1][d],
                                         .y = to[version == 2][d],
                                         .x_size = version == 3 ? 5 : 4,
                                         .y_size = version == 4 ? 3 : 2,
                                         .taps = version == 5 ? 3 : 2,
                                         .stride = version == 6 ? 2 : 1,
                                         .dilation = version == 7 ? 2 : 1,
                                         .offset = version == 8 ? 1 : 0};
        x.dims[x.n_dims++] = (weft_dim){a.window[d].x, a.window[d].x_size};
        y.dims[y.n_dims++] = (weft_dim){a.window[d].y, a.window[d].y_size};
        if (version == 9 && d == 2) y.dims[d] = x.dims[d];
    }
    const weft_shape of = op == &weft_op_unpool ? y : x;
    const weft_value in[] = {weft_constant(p->graph, WEFT_F64, of, 1.0),
                             weft_constant(p->graph, WEFT_I32, y, 1.0)};
    return weft_emit(p->graph, op, in, op == &weft_op_max_pool ? 1 : 2, &a, sizeof a);
}
static weft_value max_pool(const given *p, int version)
{
    return emit_pool(p, &weft_op_max_pool, version);
}
static weft_value unpool(const given *p, int version)
{
    return emit_pool(p, &weft_op_unpool, version);
}
static weft_value pool_pick(const given *p, int version)
{
    return emit_pool(p, &weft_op_pool_pick, version);
}
static weft_value emit_cumulated(const given *p, const weft_op *op, int version)
{
    const weft_dim dim = version == 1 ? column : version == 4 ? (weft_dim){"row", 8} : row;
    weft_cumulate_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.dim = dim.name, attributes.size = dim.size;
    attributes.exclusive = version == 2, attributes.reverse = version == 3;
    attributes.blocks = version == 5 ? 2 : 0;
    return weft_emit(p->graph, op, version == 4 ? &p->long_ : &p->x, 1, &attributes,
                     sizeof attributes);
}
static weft_value cumsum(const given *p, int version)
{
    return emit_cumulated(p, &weft_op_cumsum, version);
}
static weft_value cumprod(const given *p, int version)
{
    return emit_cumulated(p, &weft_op_cumprod, version);
}
static weft_value cummax(const given *p, int version)
{
    return emit_cumulated(p, &weft_op_cummax, version);
}
static weft_value unpick(const given *p, int version)
{
    const weft_dim to = {version == 1 ? "to" : "from", version == 2 ? 9 : 6};
    const weft_value x = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(part, row), 1.0);
    return weft_unpick(version == 3 ? WEFT_DIMS(row, to) : WEFT_DIMS(to, row), x, p->ids, to);
}
static weft_value concat(const given *p, int version)
{
    const weft_dim out = {version == 1 ? "both" : "all", 10}, other = {"other", 4};
    const weft_dim a = version == 2 ? column : part, b = version == 3 ? other : piece;
    const weft_dim all = {out.name, a.size + b.size};
    weft_value left = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(a), 1.0);
    return weft_concat(left, weft_constant(p->graph, WEFT_F64, WEFT_DIMS(b), 1.0), a, b, all);
}

/* The combine, its dim, the result's dims. */
static weft_value emit_reduced(const given *p, const weft_op *op, weft_shape out, weft_shape other,
                               weft_combine combine, int version)
{
    weft_reduced_attributes attributes = {.out = version == 3 ? other : out};
    attributes.reduce.combine = version == 1 ? WEFT_MIN : combine;
    attributes.reduce.dim = version == 2 ? "row" : "column";
    return weft_emit(p->graph, op, &p->x, 1, &attributes, sizeof attributes);
}
static weft_value sum(const given *p, int version)
{
    return emit_reduced(p, &weft_op_sum, WEFT_DIMS(row), WEFT_SCALAR, WEFT_SUM, version);
}
static weft_value reduce_max(const given *p, int version)
{
    return emit_reduced(p, &weft_op_reduce_max, WEFT_DIMS(row), WEFT_SCALAR, WEFT_MAX, version);
}
static weft_value reduce_prod(const given *p, int version)
{
    return emit_reduced(p, &weft_op_reduce_prod, WEFT_DIMS(row), WEFT_SCALAR, WEFT_PROD, version);
}
static weft_value lse_state(const given *p, int version)
{
    return emit_reduced(p, &weft_op_lse_state, WEFT_DIMS(row, state), WEFT_DIMS(column, state),
                        WEFT_LSE, version);
}
static weft_value argmax_state(const given *p, int version)
{
    return emit_reduced(p, &weft_op_argmax_state, WEFT_DIMS(row, state), WEFT_DIMS(column, state),
                        WEFT_ARGMAX, version);
}
static weft_value moments_state(const given *p, int version)
{
    const weft_dim three = {"~", 3};
    return emit_reduced(p, &weft_op_moments_state, WEFT_DIMS(row, three), WEFT_DIMS(column, three),
                        WEFT_MOMENTS, version);
}
static weft_value moments_finish(const given *p, int version)
{
    weft_value moments = moments_state(p, 0);
    const weft_number_attributes epsilon = {version == 1 ? 1e-5 : 1e-6};
    return weft_emit(p->graph, &weft_op_moments_finish, &moments, 1, &epsilon, sizeof epsilon);
}

static weft_value norm_stats(const given *p, int version)
{
    if (version == 1) return weft_norm_stats(p->x, row, 1e-6);
    return weft_norm_stats(p->x, column, version == 2 ? 1e-5 : 1e-6);
}
static weft_value normalized(const given *p, int version)
{
    return weft_normalize(p->x, WEFT_DIMS(version == 1 ? row : column), 1e-5);
}
static weft_value logsumexp(const given *p, int version)
{
    return weft_logsumexp(p->x, version == 1 ? row : column);
}
static weft_value argmax(const given *p, int version)
{
    return weft_argmax(p->x, version == 1 ? row : column);
}
static weft_value gather(const given *p, int version)
{
    return weft_gather(p->x, p->ids, version == 1 ? row : column);
}
static weft_value scatter_add(const given *p, int version)
{
    weft_value rows = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(part), 1.0);
    return weft_scatter_add(rows, p->ids, version == 1 ? row : column);
}
static weft_value scatter_max(const given *p, int version)
{
    weft_value rows = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(part), 1.0);
    return weft_scatter_max(rows, p->ids, version == 1 ? row : column);
}
static weft_value order(const given *p, int version)
{
    const weft_dim to = {version == 1 ? "to" : "few", version == 2 ? 3 : 2};
    if (version == 3) return weft_order(p->x, column, to, false);
    if (version == 4) return weft_order(p->long_, (weft_dim){"row", 8}, to, false);
    return weft_order(p->x, row, to, version == 5);
}
/* Version 1: the sides turned; 2: other ones, of another size; 3: the upper triangle. */
static weft_value emit_square(const given *p, const weft_op *op, int version)
{
    const weft_dim turned = {"turned", version == 2 ? 4 : 6}, side = version == 2 ? column : row;
    const weft_value a = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(side, turned), 2.0),
                     b = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(side), 1.0);
    const bool is_triangle = op == &weft_op_triangular_solve;
    const weft_triangle_attributes attributes = {{.row = version == 1 ? "turned" : side.name,
                                                  .column = version == 1 ? side.name : "turned",
                                                  .size = side.size},
                                                 .is_upper = version == 3};
    const weft_value in[] = {a, version == 1 ? weft_rename(b, side, turned) : b};
    const int n_in = op == &weft_op_cholesky ? 1 : 2;
    return weft_emit(p->graph, op, in, n_in, &attributes,
                     is_triangle ? sizeof attributes : sizeof attributes.square);
}
static weft_value cholesky(const given *p, int version)
{
    return emit_square(p, &weft_op_cholesky, version);
}
static weft_value triangular_solve(const given *p, int version)
{
    return emit_square(p, &weft_op_triangular_solve, version);
}
static weft_value solve(const given *p, int version)
{
    return emit_square(p, &weft_op_solve, version);
}
static weft_value in_order(const given *p, int version)
{
    const weft_value ids = order(p, version), x = version == 4 ? p->long_ : p->x;
    weft_order_attributes attributes =
        *(const weft_order_attributes *)weft_node_of(p->graph, ids.id)->attributes;
    const weft_value in[] = {weft_cast(ids, WEFT_F64), x};
    return weft_emit(p->graph, &weft_op_in_order, in, 2, &attributes, sizeof attributes);
}
static weft_value require(const given *p, int version)
{
    const weft_value one = weft_constant(p->graph, WEFT_I32, WEFT_SCALAR, 1.0);
    return weft_require(p->x, one, (weft_value){NULL, 0}, version == 1 ? "b" : "a");
}
/* Version 1: of other matrices; 2: of fewer. */
static weft_value pick_product(const given *p, int version)
{
    const weft_dim which = {version == 1 ? "other" : "which", version == 2 ? 2 : 3},
                   out = {"out", 5};
    const weft_value w = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(which, column, out), 1.0),
                     ids = weft_constant(p->graph, WEFT_I32, WEFT_DIMS(row), 1.0);
    return weft_pick_product(p->x, w, ids, which);
}
static weft_value unpick_product(const given *p, int version)
{
    const weft_dim which = {version == 1 ? "other" : "which", version == 2 ? 2 : 3},
                   out = {"out", 4};
    const weft_value ids = weft_constant(p->graph, WEFT_I32, WEFT_DIMS(row), 1.0);
    const weft_value in[] = {p->x, weft_rename(p->y, column, out), ids};
    return weft_emit_dim(&weft_op_unpick_product, in, 3, which);
}
static weft_value pick(const given *p, int version)
{
    weft_value id = weft_constant(p->graph, WEFT_I32, WEFT_SCALAR, 1.0);
    return weft_pick(p->x, id, version == 1 ? row : column);
}

/* ---- scans ------------------------------------------------------------------------------------- */

/* One in another. Version 1: carried and seen by the outer one; 2: counted backwards; 3, 4: along another dim, another size;
 * 5: of a trip that is not made the next one is. */
static weft_value scanned(const given *p, int version)
{
    enum { OUTER = 1, INNER };
    const bool is_back = version == 2;
    const weft_dim dim = version == 3 ? column : (weft_dim){"row", version == 4 ? 8 : 6};
    const weft_dim first = {version == 3 ? "first" : "second", dim.size}, then = {"then", dim.size};
    const weft_value outer = weft_scan_begin(p->graph, dim.size);
    weft_value carry = version == 1 ? weft_scan_carry(p->y) : p->y;
    const weft_value inner = weft_scan_begin(p->graph, dim.size);
    if (version != 1) carry = weft_scan_carry(p->y);
    const uint32_t scan = version == 1 ? OUTER : INNER;
    const weft_value seen = weft_scan_each_of(version == 4 ? p->long_ : p->x, scan, dim, is_back);
    const weft_value trip = weft_scan_trip_of(p->graph, scan, is_back);
    const weft_value made = weft_add(seen, weft_cast(trip, WEFT_F64));
    if (version != 1) weft_scan_guard(trip, version != 5);
    if (version != 1) weft_scan_next(carry, weft_neg(carry));
    weft_scan_end(inner);
    if (version == 1) weft_scan_guard(outer, true);
    if (version == 1) weft_scan_next(carry, weft_neg(carry));
    const weft_value in_outer = weft_scan_stack_of(made, INNER, first, is_back);
    const weft_value left = version == 1 ? carry : weft_scan_last(carry);
    weft_scan_end(outer);
    const weft_value all = weft_scan_stack_of(in_outer, OUTER, then, false);
    const weft_value end =
        version == 1 ? weft_scan_last(left) : weft_scan_stack_of(left, OUTER, then, false);
    return weft_add(weft_sum(WEFT_SCALAR, all), weft_sum(WEFT_SCALAR, end));
}

/* ---- element ops that have what all have ----------------------------------------------------- */

/* An element op applied to as many operands as it takes. */
static weft_value emit_element(const given *p, const weft_op *op, int version)
{
    weft_element_attributes attributes = {.number = {0.5, 2, 3, 4}, .random = 7, .dim = "row"};
    if (version >= 1 && version <= 4) attributes.number[version - 1] += 0x1p-50;
    if (version == 5) attributes.random = 8;
    if (version == 6) attributes.dim = "column";
    if (version == 7) attributes.every = 2;
    if (version == 8) attributes.from = 1;
    const weft_value in[] = {weft_greater(p->x, p->y), p->x,
                             p->y}; /* of where: a condition first */
    const bool is_unary = op->infer == weft_infer_same;
    const bool is_binary = op->infer == weft_infer_broadcast || op->infer == weft_infer_compare;
    const int skipped = is_unary || is_binary ? 1 : 0, n_in = is_unary ? 1 : is_binary ? 2 : 3;
    return weft_emit(p->graph, op, in + skipped, n_in, &attributes, sizeof attributes);
}

#endif
