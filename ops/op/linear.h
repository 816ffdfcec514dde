/* linear.h: what ops of square matrices share: cholesky, triangular_solve, solve. */
#ifndef WEFT_LINEAR_H
#define WEFT_LINEAR_H

#include "op.h"

/* Of weft_square_attributes. */
extern const weft_attributes weft_attributes_square;
/* Operand 0 is float and has both sides; the sentence of one that is not square is the builder's. */
weft_status weft_check_square(const weft_site *site, weft_error *error);
/* b, operand 1, has the dims of a's batch, in their order, then `row`, then its own; the result the same with `column`. Cut along
 * the batch, and along b's own dims. */
weft_status weft_infer_solve(weft_site *site, weft_error *error);
void weft_factors_solve(const weft_site *site, weft_factors *factors);
/* Of n x n matrices a and columns b in all: a's batch times the columns of one. */
double weft_square_flops(const weft_site *site, double of_matrix, double of_column);

/* The two sides as attributes; false: the graph's error, which begins with `op`. */
bool weft_square_sides(weft_value a, const char *op, weft_dim row, weft_dim column,
                       weft_square_attributes *attributes);
/* a with its batch first and the sides last: [.., row, column]. */
weft_value weft_square_last(weft_value a, const weft_square_attributes *sides);
/* The x of which a x = b, by one op, whose attributes, of so many bytes, begin with these: with b's dims, `column` where it has
 * `row`, and with dims of a's batch that b lacks first. */
weft_value weft_emit_solve(const weft_op *op, weft_value a, weft_value b,
                           const weft_square_attributes *attributes, size_t bytes);

#endif
