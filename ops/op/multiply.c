/* multiply.c: products along a dim as a tree of multiplications.
 *
 * Nothing is divided and nothing depends on the value of an element. So a gradient through it is the product of the
 * others where elements are 0, however many are, and where the product of all is beyond the range of a float. The
 * same holds for every further gradient. One that divides the product by the element, and knows of zeros, has the
 * right value there and is the wrong function. Neighbours are multiplied, so halves of a split dim are made where
 * they lie. source  Blelloch 1990, "Prefix sums and their applications", of the tree
 */
#include "multiply.h"

#include "weft/ops.h"

/* Along dim, of an even size: the first of each two, or the second. */
static weft_value half(weft_value x, weft_dim dim, int which)
{
    return weft_slice_step(x, dim, which, 2, (weft_dim){dim.name, dim.size / 2});
}

/* The same elements where they were, and zeros between. */
static weft_value spread(weft_value x, weft_dim dim, int which)
{
    return weft_reindex(x, (weft_dim){dim.name, dim.size / 2}, dim, 1, -which, 2);
}

static weft_value with_even_size(weft_value x, weft_dim dim, weft_dim *even)
{
    *even = (weft_dim){dim.name, dim.size + dim.size % 2};
    return even->size == dim.size ? x : weft_pad(x, dim, 0, *even, 1.0);
}

weft_value weft_multiplied(weft_value x, weft_dim dim)
{
    while (x.id != 0 && dim.size > 1) {
        weft_dim even;
        x = with_even_size(x, dim, &even);
        x = weft_mul(half(x, even, 0), half(x, even, 1));
        dim.size = even.size / 2;
    }
    return weft_unstack(x, dim, 0);
}

weft_value weft_multiplied_before(weft_value x, weft_dim dim, bool reverse)
{
    if (x.id == 0) return x;
    if (dim.size == 1) return weft_constant(x.graph, weft_dtype_of(x), *weft_shape_of(x), 1.0);
    weft_dim even;
    const int first = reverse ? 1 : 0;
    x = with_even_size(x, dim, &even);
    const weft_value one = half(x, even, first), both = weft_mul(one, half(x, even, 1 - first));
    const weft_value before =
        weft_multiplied_before(both, (weft_dim){dim.name, even.size / 2}, reverse);
    const weft_value y =
        weft_add(spread(before, even, first), spread(weft_mul(before, one), even, 1 - first));
    return even.size == dim.size ? y : weft_slice(y, even, 0, dim);
}
