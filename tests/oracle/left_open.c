/* left_open.c: the list. */
#include "left_open.h"

#include <string.h>

#include "oracle.h"

#define LARGE     (WEFT_ORACLE_ROOT | WEFT_ORACLE_HUGE)
#define UNBOUNDED (LARGE | WEFT_ORACLE_INFINITE)
#define LITTLE    (WEFT_ORACLE_ZERO | WEFT_ORACLE_DENORMAL | WEFT_ORACLE_TINY)

#define SUMS(group)                                                                                \
    {                                                                                              \
#group, LARGE, "a sum or product overflows on the way to a finite one"                     \
    }
#define PRODUCTS(group)                                                                            \
    {                                                                                              \
#group, UNBOUNDED, "the same, and 0 times infinity"                                        \
    }
#define SQUARES(group)                                                                             \
    {                                                                                              \
#group, LARGE, "squares overflow"                                                          \
    }

const left_open left_opens[] = {
    SUMS(sum),
    SUMS(mean),
    SUMS(mean_over),
    SUMS(average_pool),
    SUMS(cumsum),
    SUMS(scatter_add),
    SUMS(unpick),
    SUMS(segment_mean),
    SUMS(smooth_labels),
    SUMS(reduce_prod),
    SUMS(cumprod),
    PRODUCTS(einsum),
    PRODUCTS(einsum_n),
    PRODUCTS(conv),
    PRODUCTS(conv_transpose),
    PRODUCTS(pick_product),
    PRODUCTS(unpick_product),
    PRODUCTS(embedding_bag),
    PRODUCTS(solve),
    PRODUCTS(solve_positive),
    PRODUCTS(triangular_solve),
    PRODUCTS(cholesky),
    PRODUCTS(attention),
    PRODUCTS(attention_grad),
    PRODUCTS(cross_entropy),
    PRODUCTS(soft_cross_entropy),
    PRODUCTS(kl_divergence),
    PRODUCTS(sigmoid_cross_entropy),
    SQUARES(variance),
    SQUARES(normalize),
    SQUARES(normalized),
    SQUARES(layer_norm),
    SQUARES(rms_norm),
    SQUARES(group_norm),
    SQUARES(instance_norm),
    SQUARES(weight_norm),
    SQUARES(cosine),
    SQUARES(z_loss),
    {"ctc_loss", UNBOUNDED, "a likelihood below e^-1e29 counts as 0"},
    {"histogram", LITTLE, "a number is nearer to an edge than rounding"},
    {"random_categorical", WEFT_ORACLE_INFINITE, "several classes are certain"},
};
const int n_left_opens = sizeof left_opens / sizeof left_opens[0];

int left_open_of(const char *group)
{
    for (int i = 0; i < n_left_opens; i++)
        if (strcmp(left_opens[i].group, group) == 0) return left_opens[i].extremes;
    return 0;
}
