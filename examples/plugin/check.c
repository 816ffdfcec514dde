/* check: the plug-in's ops under Weft's oracle: against scalar references, finite differences, and one rank. */
#include <math.h>
#include <stdio.h>
#include <weft/extend/check.h>

#include "plugin.h"

static weft_value softsign(weft_graph *graph, const weft_value *in, void *argument)
{
    (void)graph, (void)argument;
    return plugin_softsign(in[0]);
}
static void softsign_reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    (void)argument;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i] / (1 + fabs(in[0].data[i]));
}

static weft_value product(weft_graph *graph, const weft_value *in, void *argument)
{
    (void)graph, (void)argument;
    return plugin_product(in[0], "b");
}
static void product_reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    (void)argument;
    const weft_dim *dims = in[0].shape->dims; /* a, b, c */
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t a = i / dims[2].size, c = i % dims[2].size;
        out->data[i] = 1;
        for (int64_t b = 0; b < dims[1].size; b++)
            out->data[i] *= in[0].data[(a * dims[1].size + b) * dims[2].size + c];
    }
}

/* Sizes that no axis divides. */
static const weft_check checks[] = {
    {.size = sizeof(weft_check),
     .name = "softsign",
     .build = softsign,
     .reference = softsign_reference,
     .n_in = 1,
     .in = {{.dims = WEFT_CHECK_DIMS({"a", 5}, {"b", 7})}},
     .has_gradient = true},
    {.size = sizeof(weft_check),
     .name = "product",
     .build = product,
     .reference = product_reference,
     .n_in = 1,
     .in = {{.dims = WEFT_CHECK_DIMS({"a", 3}, {"b", 7}, {"c", 2}), .low = 0.5, .high = 1.5}},
     .has_gradient = true},
};

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    if (plugin_register(&error) != WEFT_OK) {
        fprintf(stderr, "plugin: %s\n", error.message);
        return 1;
    }
    for (int i = 0; i < (int)(sizeof checks / sizeof checks[0]); i++) {
        int64_t n_runs;
        if (weft_check_op(&checks[i], &n_runs, &error) != WEFT_OK) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        printf("%-10s right in %lld runs\n", checks[i].name, (long long)n_runs);
    }
    return 0;
}
