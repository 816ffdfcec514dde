/* product: the sum over some dims of the product of two tensors: a thread for each element of the result, which it adds up in
 * one order. What is stored in 16 bits is added up in f32, as on the host. */
#include "mesh/cuda/kernel_source.h"

#include "nest.h"
#include "weft/extend/half.h"

#define PRODUCT(name, T, R, S, read)                                                               \
    KERNEL(name, cuda_product)                                                                     \
    {                                                                                              \
        R *out = (R *)GLOBAL(work.out);                                                            \
        const T *a = (const T *)GLOBAL(work.a), *b = (const T *)GLOBAL(work.b);                    \
        const R *begin = work.begin != NULL ? (const R *)GLOBAL(work.begin) : NULL;                \
        const int last = work.inner.n_dims - 1;                                                    \
        const int64_t run = last >= 0 ? work.inner.count[last] : 1;                                \
        const int64_t a_step = last >= 0 ? work.inner.stride[1][last] : 0;                         \
        const int64_t b_step = last >= 0 ? work.inner.stride[2][last] : 0;                         \
        for (int64_t i = THREAD; i < work.n_out; i += THREADS) {                                   \
            const offsets at = offsets_of(&work.outer, i);                                         \
            S sum = 0;                                                                             \
            for (int64_t k = 0; k < work.n_inner; k += run) {                                      \
                const offsets in = offsets_of(&work.inner, k);                                     \
                const T *x = a + at.at[1] + in.at[1], *y = b + at.at[2] + in.at[2];                \
                for (int64_t l = 0; l < run; l++)                                                  \
                    sum += (S)read(x[l * a_step]) * (S)read(y[l * b_step]);                        \
            }                                                                                      \
            out[at.at[0]] = (R)(begin != NULL ? (S)begin[at.at[0]] + sum : sum);                   \
        }                                                                                          \
    }
#define AS_IT_IS(x) (x)
PRODUCT(product_f32, float, float, float, AS_IT_IS)
PRODUCT(product_f64, double, double, double, AS_IT_IS)
PRODUCT(product_i32, int32_t, int32_t, uint32_t, AS_IT_IS)
PRODUCT(product_bf16, uint16_t, float, float, weft_f32_of_bf16)
PRODUCT(product_f16, uint16_t, float, float, weft_f32_of_f16)
PRODUCT(product_i64, int64_t, int64_t, uint64_t, AS_IT_IS)
