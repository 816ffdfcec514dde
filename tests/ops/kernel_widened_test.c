/* kernel_widened_test: attention and its gradient with some operands and results of bf16, against a call of f32 with the same
 * numbers. Its results, rounded, are those of the other, bit for bit and on any number of lanes.
 */
#include "kernel_attention.h"
#include "cpu/widened.h"
#include "weft/extend/half.h"

/* The same numbers as f32, or bf16, in memory of its own; those of i32 stay. */
static weft_view copy_as(const weft_view *view, weft_dtype dtype)
{
    weft_view copy = *view;
    if (view->dtype == WEFT_I32) dtype = WEFT_I32;
    view_take(&copy, dtype);
    for (int64_t i = 0; i < weft_view_count(view); i++)
        view_set(&copy, i, view_get(view, i));
    return copy;
}

/* `call` is of f32, of numbers that bf16 has, and done. Some of its tensors, a bit each, are of bf16. */
static void check_some(weft_launch kernel, const weft_call *call, uint32_t which_in,
                       uint32_t which_out)
{
    weft_call some = *call;
    for (int i = 0; i < call->n_in; i++)
        some.in[i] = copy_as(&call->in[i], which_in >> i & 1 ? WEFT_BF16 : WEFT_F32);
    for (int o = 0; o < call->n_out; o++) {
        some.out[o].dtype = which_out >> o & 1 ? WEFT_BF16 : WEFT_F32;
        view_take(&some.out[o], some.out[o].dtype);
    }
    const size_t bytes = (size_t)weft_widened_bytes(&some);
    some.scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (some.scratch == NULL) exit(2);
    run_on_lanes(kernel, &some);
    for (int o = 0; o < call->n_out; o++) {
        weft_view expected = copy_as(&call->out[o], some.out[o].dtype);
        CHECK(view_same_bits(&some.out[o], &expected));
        view_free(&expected);
    }
    free(some.scratch);
    call_free(&some);
}

static void make_narrow(weft_view *view)
{
    for (int64_t i = 0; i < weft_view_count(view) && view->dtype == WEFT_F32; i++)
        view_set(view, i, (double)weft_bf16_round((float)view_get(view, i)));
}

static void random_case(void)
{
    const int orders[4] = {random_below(ORDERS), random_below(ORDERS), random_below(ORDERS),
                           random_below(ORDERS)};
    const dims d = {.batch = random_part("batch", 3),
                    .heads = random_part("heads", 3),
                    .query = random_part("query", 80),
                    .memory = random_part("memory", 80),
                    .feature = {"kv", 16, 0, 16},
                    .causal = random_below(2),
                    .bias = random_below(3) == 0,
                    .bias_dims = 12};
    weft_attention_attributes attributes = attributes_of(&d);
    weft_call call = open_call(&d, WEFT_F32, orders);
    call.attributes = &attributes;
    for (int i = 0; i < call.n_in; i++)
        make_narrow(&call.in[i]);
    weft_view dout = call.in[--call.n_in];
    open_results(&call, 0);
    run_on_lanes(weft_attention_cpu, &call);
    check_some(weft_attention_cpu, &call, random_word() & 15, random_word() & 1);
    make_narrow(&call.out[0]);
    call.in[call.n_in++] = dout;
    open_gradient(&call, false);
    run_on_lanes(weft_attention_grad_cpu, &call);
    const uint32_t stays = 1u << (call.n_in - 2); /* maxima and sums */
    check_some(weft_attention_grad_cpu, &call, random_word() & 127 & ~stays, random_word() & 7);
    call_free(&call);
}

static void test_attention_of_any_of_them(void)
{
    for (int i = 0; i < weft_test_cases(60); i++)
        random_case();
}

int main(void)
{
    if (!streams_open()) return weft_test_report();
    RUN(test_attention_of_any_of_them);
    streams_close();
    return weft_test_report();
}
