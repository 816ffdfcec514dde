/* loops.h: what a step is as a loop (ops/kernel/loop.h), and what two loops are as one. For fuse and its relatives. */
#ifndef WEFT_LOOPS_H
#define WEFT_LOOPS_H

#include "passes.h"

/* weft_as_loop - the step as a loop: itself; an element op, a reduction of rows, the finish of their states; else false.
 *
 * links   [2] what a loop made of a kernel points to: lives as long as `loop` is used */
bool weft_as_loop(const weft_plan *plan, const weft_step *step, weft_fused_op *links,
                  weft_step *loop);

/* weft_can_join - could both be one loop: do they walk over the same elements, or one of them over the rows of the other,
 * and does a lane have room for what they need? `step` reads what `maker` makes. */
bool weft_can_join(const weft_plan *plan, const weft_step *maker, const weft_step *step);

/* weft_join - one loop that does maker's ops, then step's.
 *
 * keeps    [maker->n_out] which of maker's results have to be in memory: they become results of the loop, after step's
 * joined   may be maker or step */
weft_status weft_join(weft_plan *plan, const weft_step *maker, const weft_step *step,
                      const bool *keeps, weft_step *joined, weft_error *error);

/* The first result slot of link k, past the operands; of n_links: how many slots results take. */
int weft_link_slot(const weft_step *loop, int k);
/* The first of its ops that draws random numbers; NULL: none does. All that do draw others in the same trips of scans. */
const weft_node *weft_loop_draws(const weft_plan *plan, const weft_step *loop);
/* The index of `placed` in a list; -1: it is not in it. */
int weft_find_placed(const uint32_t *list, int n, uint32_t placed);

#endif
