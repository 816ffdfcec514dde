/* kernels.h: the CPU's kernels, with their contracts: what those of another device keep to as well. */
#ifndef WEFT_CPU_KERNELS_H
#define WEFT_CPU_KERNELS_H

#include "kernel.h"

/* Dims are matched by name. "Masked" = an index that the local box does not hold contributes nothing, so the local result
 * is this rank's summand. */

/* out = sum over the dims that out lacks of in[0] * in[1]. Float dtypes by BLAS, i32 plainly. Nothing to add
 * (an empty contraction) gives zeros. Dims of one name have equal boxes in all operands. It accumulates: then the sum so far is
 * in[2], as out is, and what there is to add is added to that. */
void weft_einsum_cpu(const weft_call *call);
/* The same by six nested loops; the oracle of the fast one. */
void weft_einsum_plain(const weft_call *call);

/* out = sum over the dims that out lacks of in[0], read through windows, times in[1] (weft_conv_attributes). A product of which
 * x's box has not its element is zero: boxes have all that is needed, or it is outside of x. */
void weft_conv_cpu(const weft_call *call);

/* out[0] the largest of in[0] in each window (weft_pool_attributes), out[1] (i32) the tap; ties: the first; a NaN is the largest.
 * Dims by place. Of nothing: -inf or the least integer, and -1. */
void weft_max_pool_cpu(const weft_call *call);
/* out = in[0] put where the taps in[1] say, added up; in[0] and in[1] have one box. */
void weft_unpool_cpu(const weft_call *call);
/* out = in[0] at the taps in[1], 0 where there is none. */
void weft_pool_pick_cpu(const weft_call *call);

/* out = in[0] added up, multiplied up, or its largest so far, along one dim, which is whole (weft_cumulate_attributes). */
void weft_cumsum_cpu(const weft_call *call);
void weft_cumprod_cpu(const weft_call *call);
void weft_cummax_cpu(const weft_call *call);

/* out = in[0] reduced over the dims that out lacks. For LSE, ARGMAX, MOMENTS out has a last dim "~" of
 * weft_combine_width numbers. No elements: the combine's identity (0, -inf, +inf, 1; int: INT32_MIN, MAX). Ties of ARGMAX: lowest
 * index. Same code serves rows, columns and anything between; the two pure cases are fast. */
void weft_reduce_cpu(const weft_call *call);
/* The same of SUM, MAX and PROD of whole numbers, exactly. */
void weft_reduce_whole_cpu(const weft_call *call);
/* in: state [..., ~]; out[0] the value. lse: max + log(sum). argmax: index as i32. */
void weft_lse_finish_cpu(const weft_call *call);
void weft_argmax_finish_cpu(const weft_call *call);
/* in: state [..., ~]; out[0] mean, out[1] 1/sqrt(M2/count + number). */
void weft_moments_finish_cpu(const weft_call *call);

/* out[..., rest] = in[0] table [dim, rest...] at in[1] ids (i32) [...]; masked. out dims: ids', then the rest. */
void weft_gather_cpu(const weft_call *call);
/* out [dim, rest...] = sum of rows in[0] [..., rest] whose id in[1] [...] is the row; owner-rows only;
 * deterministic for any number of lanes. It accumulates: then the sum so far is in[2], and rows are added to it one by one. */
void weft_scatter_add_cpu(const weft_call *call);
/* The same of the largest row: -inf, or the least integer, where there is none. A NaN is the largest. */
void weft_scatter_max_cpu(const weft_call *call);
/* out[...] = in[0][..., dim] at in[1] ids[...]; masked. The indexed dim may stand anywhere; ids may have dims that in[0] has
 * not. */
void weft_pick_cpu(const weft_call *call);
/* out[..., dim] = sum of in[0][...] whose id in[1] [...] is the coordinate along dim, over the dims that out lacks; as
 * scatter_add. */
void weft_unpick_cpu(const weft_call *call);

/* out [ids.., out] = sum over in of in[0] [rows.., in] times in[1] [dim, in, out], in any order but that dim is first, of that matrix
 * whose number in[2] [rows.., own..] (i32) says; one that is not in the local box gives zeros. */
void weft_pick_product_cpu(const weft_call *call);
/* out [dim, in, out] = the sum over ids of in[0] [rows.., in] times in[1] [ids.., out]; matrices of the local box alone. */
void weft_unpick_product_cpu(const weft_call *call);

/* out[..., to] = the indices (i32) of the elements of in[0] along dim, which is whole, in the order of the elements; dims by place
 * (weft_order_attributes). A NaN is above all numbers, -0 equals 0, and of equal elements the lower index comes first, ascending
 * and descending. */
void weft_order_cpu(const weft_call *call);

/* Square matrices [.., row, column], the last two dims of in[0], both whole (weft_square_attributes). cholesky: out the lower
 * triangle whose product with itself transposed is in[0], zeros above it; NaN where there is none. The others: in[0] times out
 * [.., column, rest] is in[1] [.., row, rest]; of triangular_solve one triangle of in[0] is read; of solve, NaN where a pivot
 * is 0. */
void weft_cholesky_cpu(const weft_call *call);
void weft_triangular_solve_cpu(const weft_call *call);
void weft_solve_cpu(const weft_call *call);

/* out = softmax(scale q.k + bias, over the memory rows that are seen) v. in: q [.., query, .., feature],
 * k [.., memory, .., feature], v [.., memory, .., feature], then bias and mask as the attributes say, of any of the
 * dims of q but feature, and of column; the other dims are matched by name; memory and feature are whole. query and
 * memory may have one name (its box in q may then be a part of the whole). A row is not seen for causal or window (by
 * global row numbers), where mask is 0, and where the score is -inf. Online softmax over tiles: never a whole
 * query x memory matrix, and tiles that nobody sees cost nothing. A row that sees nothing gives 0. */
void weft_attention_cpu(const weft_call *call);
/* in: attention's, and dout last; out: dq (q's box), dk, dv (k's box: the summand of the local query rows), and when
 * asked for dbias (bias's box: the summand of what is local). */
void weft_attention_grad_cpu(const weft_call *call);

/* out = in[0] with dims in another order; any dims, any dtype. */
void weft_transpose_cpu(const weft_call *call);
/* out = in[0] bit by bit, same count (reshape, rename). */
void weft_copy_cpu(const weft_call *call);
/* out = in[0]; where in[1], one i32, is 0, the call fails with the attributes' sentence, in which {} is in[2], one number. */
void weft_require_cpu(const weft_call *call);
/* out = the part [begin, end) of in[0] along dim (whole in both). */
void weft_slice_cpu(const weft_call *call);
/* out = in[0] at other coordinates along one dim, and zeros (weft_reindex_attributes); dims by place. in[0]'s box has all that
 * out's needs of it. */
void weft_reindex_cpu(const weft_call *call);
/* out = in[0] and in[1] one after the other along dim (whole). Of slice's attributes only dim counts: as in out. */
void weft_concat_cpu(const weft_call *call);

#endif
