/* check: the engine under Weft's oracle: ops whose sums and pieces go over it, split in every way, against one rank. */
#include <stdio.h>
#include <weft/extend/check.h>

#include "link.h"

/* c[i, j] = sum over k of a[i, k] b[k, j] */
static weft_value product(weft_graph *graph, const weft_value *in, void *argument)
{
    (void)graph, (void)argument;
    return weft_einsum(WEFT_DIMS({"i", 5}, {"j", 3}), in[0], in[1]);
}
static void product_reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    (void)argument;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 7; k++)
                out->data[3 * i + j] += in[0].data[7 * i + k] * in[1].data[3 * k + j];
}

static const weft_check check = {
    .size = sizeof(weft_check),
    .name = "product",
    .build = product,
    .reference = product_reference,
    .n_in = 2,
    .in = {{.dims = WEFT_CHECK_DIMS({"i", 5}, {"k", 7})},
           {.dims = WEFT_CHECK_DIMS({"k", 7}, {"j", 3})}},
    .has_gradient = true,
};

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    int64_t n_runs;
    if (weft_extend_engine(&link_engine, &error) != WEFT_OK ||
        weft_engine_choose("link:1us,10GB", &error) != WEFT_OK ||
        weft_check_op(&check, &n_runs, &error) != WEFT_OK) {
        fprintf(stderr, "check: %s\n", error.message);
        return 1;
    }
    const link_total total = link_carried();
    printf("product right in %lld runs, over %lld exchanges, %lld bytes\n", (long long)n_runs,
           total.exchanges, total.bytes);
    return total.exchanges == 0;
}
