/* bind_loop.h: a step that is a loop: what it does, apart from where. For bind_loop.c. */
#ifndef WEFT_BIND_LOOP_H
#define WEFT_BIND_LOOP_H

#include "program.h"

/* At most so many ops are the links of a step. */
int weft_bind_count_ops(const weft_plan *plan, const weft_step *step);

/* weft_bind_ops - fill in loop->in, op, out and n_ops.
 *
 * op_of  [n_links] which op a link has become; -1: none, it leaves numbers as they are
 * arena  for what is needed meanwhile */
weft_status weft_bind_ops(const weft_plan *plan, const weft_step *step, weft_loop *loop, int *op_of,
                          weft_arena *arena, weft_error *error);

#endif
