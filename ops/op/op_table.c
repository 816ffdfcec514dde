/* op_table.c: the table of all ops, made from the list. */
#include "op.h"

#define WEFT_OP(name) &weft_op_##name,
const weft_op *const weft_ops[] = {
#include "op_list.inc"
};
#undef WEFT_OP

const int weft_n_ops = (int)(sizeof weft_ops / sizeof weft_ops[0]);
