/* scan.h: a part of a program that is built once and done many times: a *scan*. Each time is a *trip*.
 *
 *     weft_value trip = weft_scan_begin(g, time.size);
 *     weft_value h = weft_scan_carry(h0), x = weft_scan_each(xs, time);
 *     weft_value next = weft_tanh(weft_add(weft_einsum(WEFT_DIMS(batch, hidden), x, w), weft_einsum(..., h, u)));
 *     weft_scan_next(h, next);
 *     weft_scan_end(trip);
 *     weft_value hs = weft_scan_stack(next, time), last = weft_scan_last(h);
 *
 * The nodes that builders make between begin and end are the *body*. It may read all earlier values, and is read from
 * outside through weft_scan_last and weft_scan_stack alone. Scans may stand in scans. Inputs and variables belong to
 * no body, and nothing is assigned in one. Random ops give other numbers in every trip.
 *
 * weft_gradients goes through scans: by a scan that makes the trips backwards and reads their residuals, stacked. So
 * values of a body that it reads have at most 7 dims (WEFT_MAX_DIMS less one). All Local; errors are the graph's, as
 * those of every builder.
 */
#ifndef WEFT_SCAN_H
#define WEFT_SCAN_H

#include "weft/graph.h"

WEFT_BEGIN

/* weft_scan_begin - a body begins, of `trips` (1 to 2^20) trips; returns the number of the trip, from 0: an i32 scalar. */
WEFT_API weft_value weft_scan_begin(weft_graph *graph, int64_t trips);
/* weft_scan_begin_over - a scan over a dim: trip t goes over the elements t, t + trips, ... of `whole`, whose size
 * `trips` divides. In the body a dim of that name has size / trips elements. Values that have it get the random
 * numbers of the whole, in all trips together. So a batch gives the same result at once or part by part.
 *
 *     weft_dim rows = {"batch", batch.size / 8}, part = {"part", 8};
 *     weft_value xs = weft_reshape(x, WEFT_DIMS(rows, part, pixel));    [batch:64, pixel] to [batch:8, part:8, pixel]
 *     weft_value trip = weft_scan_begin_over(g, 8, batch), mine = weft_scan_each(xs, part);
 *
 * It stands in no other scan over a dim. */
WEFT_API weft_value weft_scan_begin_over(weft_graph *graph, int64_t trips, weft_dim whole);
/* weft_scan_end - of the innermost scan that is open, which `trip` is of. Returns trip. */
WEFT_API weft_value weft_scan_end(weft_value trip);

/* weft_scan_carry - a value that goes from trip to trip: in the first one `initial`, in each other what weft_scan_next gave
 * it in the one before. Of the innermost open scan. */
WEFT_API weft_value weft_scan_carry(weft_value initial);
/* weft_scan_next - the value of a carried value in the next trip: once for each, in the body that it belongs to, with
 * its dims (in any order) and its dtype. Returns carry. */
WEFT_API weft_value weft_scan_next(weft_value carry, weft_value next);
/* weft_scan_each - x without `dim`: trip t sees element t; dim's size is the number of trips. */
WEFT_API weft_value weft_scan_each(weft_value x, weft_dim dim);

/* weft_scan_while - the scan ends before the first trip in which `condition`, an i32 scalar, is 0: `trips` are the most.
 *
 *     weft_value trip = weft_scan_begin(g, 1000), x = weft_scan_carry(x0);
 *     weft_value r = weft_sub(b, product(a, x));
 *     weft_scan_while(weft_less(tiny, weft_sum(WEFT_SCALAR, weft_square(r))));
 *     weft_scan_next(x, weft_add(x, r));
 *     weft_scan_end(trip);
 *
 * Nodes before it in the body are computed in each trip that begins, as the condition has to be; nodes after it, in
 * trips that are completed. In others carried values stay unchanged, and stacked ones are 0. Gradients are those of
 * the completed trips, and the backward pass goes through these alone. Once in a body, and in place of weft_scan_if.
 * Every rank has the whole condition and goes the same way; the run waits for the device there, each trip. Such a
 * body is compiled once, however few its trips. A plan's bytes and flops count all trips. Returns condition. */
WEFT_API weft_value weft_scan_while(weft_value condition);
/* weft_scan_if - the same of this trip alone: where condition is 0 it is left out, and the next one begins. */
WEFT_API weft_value weft_scan_if(weft_value condition);

/* weft_scan_last - after the end: a carried value as the last trip left it. */
WEFT_API weft_value weft_scan_last(weft_value carry);
/* weft_scan_stack - after the end: a value of the body, of at most 7 dims, in all trips, along a new first dim. That
 * dim's size is the number of trips. Of a carried value: what each trip began with. */
WEFT_API weft_value weft_scan_stack(weft_value x, weft_dim dim);

/* weft_cond - one of two bodies is done, the first where `condition`, an i32 scalar, is not 0, the second where it is:
 *
 *     weft_value yes = weft_cond_begin(is_large), a = weft_log(x);
 *     weft_value no = weft_cond_else(yes), b = weft_scale(x, 0.5);
 *     weft_cond_end(no);
 *     weft_value y = weft_cond(a, b);
 *
 * Both are scans of one trip at most (weft_scan_if): what holds of bodies holds of them. Gradients go through the one
 * that was done. weft_cond gives a value of the first body where that was done, else one of the second, of the same
 * dims, at most 7, and dtype. It is called after the end, once for each result. One of both may be a value from
 * outside. */
WEFT_API weft_value weft_cond_begin(weft_value condition);
/* weft_cond_else - the first body ends and the second begins. Returns what weft_cond_end takes. */
WEFT_API weft_value weft_cond_else(weft_value begun);
/* weft_cond_end - of the body that `begun` begins: of weft_cond_begin too, where there is no second. Returns begun. */
WEFT_API weft_value weft_cond_end(weft_value begun);
WEFT_API weft_value weft_cond(weft_value a, weft_value b);

WEFT_END

#ifndef WEFT_NO_HERE
#include "weft/scan_here.h"
#endif

#endif
