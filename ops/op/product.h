/* product.h: products with matrices that are chosen by ids: pick_product, and the gradient of the matrices. */
#ifndef WEFT_CHOSEN_PRODUCT_H
#define WEFT_CHOSEN_PRODUCT_H

#include "op.h"

/* unpick_product: [dim, in, out]: the sum over rows, whose id is the coordinate along dim, of x [.., in] times dy [.., out]. x's dims
 * but `in` are the first of the ids', dy's but `out` all of them. */
weft_value weft_unpick_product(weft_value x, weft_value dy, weft_value ids, weft_dim dim);

#endif
