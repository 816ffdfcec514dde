/* convolve_test: convolutions by cuDNN against the CPU's: forward, to the data and to the filter, in f32 and where a program lets products
 * be computed otherwise; and which calls are the plain kernel's. On the emulated GPU by an emulated library, which does a graph as it is
 * described, and has an engine on tensor cores that rounds.
 */
#include "calls.h"
#include "child.h"

typedef struct conv_case {
    weft_conv_attributes attributes;
    const char *x, *w, *y;
} conv_case;
#define WINDOW(x, w, y, stride, dilation, offset, over)                                            \
    {                                                                                              \
        x, w, y, stride, dilation, offset, over                                                    \
    }

/* Channels in front and behind, steps, one dim of space, a rank's part; what gradients of the first and third are; and groups of channels. */
static const conv_case cases[] = {
    {{2, {WINDOW("h", "s", "p", 1, 1, -1, 1), WINDOW("w", "t", "q", 1, 1, -1, 1)}},
     "b:2 c:3 h:6 w:5",
     "k:4 c:3 s:3 t:3",
     "b:2 k:4 p:6 q:5"},
    {{2, {WINDOW("h", "s", "p", 1, 1, -1, 1), WINDOW("w", "t", "q", 1, 1, -1, 1)}},
     "b:2 h:6 w:5 c:3",
     "s:3 t:3 c:3 k:4",
     "b:2 p:6 q:5 k:4"},
    {{2, {WINDOW("h", "s", "p", 2, 3, -2, 1), WINDOW("w", "t", "q", 3, 1, 0, 1)}},
     "b:2 c:2 h:11 w:9",
     "c:2 k:3 s:3 t:2",
     "k:3 b:2 p:4 q:3"},
    {{1, {WINDOW("h", "s", "p", 1, 2, -3, 1)}}, "a:2 b:2 h:12", "s:4 k:3", "a:2 b:2 p:12 k:3"},
    {{1, {WINDOW("h", "s", "p", 1, 1, -1, 1)}}, "b:2 c:3 h:5/2", "c:3 s:3 k:2", "b:2 p:3/3 k:2"},
    {{1, {WINDOW("p", "s", "h", 1, -1, 1, 2)}}, "b:2 p:5 k:3", "s:3 c:2 k:3", "b:2 h:10 c:2"},
    {{1, {WINDOW("p", "s", "h", 1, -1, 1, 1)}}, "b:2 p:8 k:3", "s:3 c:2 k:3", "b:2 h:8 c:2"},
    {{1, {WINDOW("h", "p", "s", 1, 2, -1, 1)}}, "b:2 h:10 c:2", "b:2 p:5 k:3", "s:3 c:2 k:3"},
    {{2, {WINDOW("h", "p", "s", 1, 2, 0, 1), WINDOW("w", "q", "t", 2, 1, -1, 1)}},
     "b:2 c:2 h:9 w:8",
     "k:3 b:2 p:4 q:7",
     "k:3 c:2 s:3 t:2"},
    {{1, {WINDOW("h", "s", "p", 1, 1, 0, 1)}}, "b:2 g:3 h:9", "g:3 s:4", "b:2 g:3 p:6"},
    {{1, {WINDOW("h", "s", "p", 1, 1, 0, 1)}},
     "b:2 g:3 c:2 h:9",
     "g:3 k:4 c:2 s:4",
     "b:2 g:3 k:4 p:6"},
    {{1, {WINDOW("p", "s", "h", 1, -1, 0, 2)}}, "b:2 p:4 g:3 k:2", "g:3 k:2 s:3", "b:2 h:9 g:3"},
    {{1, {WINDOW("h", "p", "s", 1, 1, 0, 1)}}, "b:2 h:9 g:3", "b:2 p:7 g:3", "g:3 s:3"},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static weft_call call_of(const conv_case *c, weft_precision precision)
{
    weft_call call = {.attributes = &c->attributes, .precision = precision};
    add_in(&call, WEFT_F32, c->x, 1);
    add_in(&call, WEFT_F32, c->w, 1);
    add_out(&call, WEFT_F32, c->y);
    return call;
}

static void check_cases(weft_precision precision)
{
    for (int c = 0; c < N_CASES; c++) {
        weft_call call = call_of(&cases[c], precision);
        CHECK_EQ_INT(check_call("conv", &call), 2);
    }
}

static void test_convolutions_are_the_librarys(void)
{
    check_cases(WEFT_PRECISION_F32);
    check_cases(WEFT_PRECISION_TF32);
    check_cases(WEFT_PRECISION_BF16);
}

static void test_each_gpu_has_plans_of_its_own(void)
{
    on_another_gpu(test_convolutions_are_the_librarys);
    test_convolutions_are_the_librarys();
}

/* Numbers that tf32 and bf16 do not have, which compare() would see. */
static void test_f32_means_f32(void)
{
    for (int c = 0; c < N_CASES; c++) {
        weft_call call = call_of(&cases[c], WEFT_PRECISION_F32);
        for (int64_t i = 0; i < weft_view_count(&call.in[0]); i++)
            ((float *)call.in[0].data)[i] += 0x1p-12F;
        CHECK_EQ_INT(check_call("conv", &call), 2);
    }
}

static int count_kernels(const conv_case *c)
{
    const char *of;
    const weft_kernel *kernel;
    int n = 0;
    weft_call call = call_of(c, WEFT_PRECISION_F32);
    for (int k = 0; (kernel = weft_kernel_at(k, &of)) != NULL; k++)
        n += strcmp(of, "conv") == 0 && does(kernel, &call);
    for (int i = 0; i < call.n_in; i++)
        free(call.in[i].data);
    return n;
}

/* Groups that are not in front of the channels; three dims of space; none; a batch that is no one walk; a window that begins behind the
 * first element. */
static void test_other_convolutions_are_the_plain_kernels(void)
{
    static const conv_case others[] = {
        {{1, {WINDOW("h", "s", "p", 1, 1, 0, 1)}}, "b:2 c:2 g:3 h:9", "g:3 c:2 s:4", "b:2 g:3 p:6"},
        {{3,
          {WINDOW("h", "s", "p", 1, 1, 0, 1), WINDOW("w", "t", "q", 1, 1, 0, 1),
           WINDOW("d", "u", "r", 1, 1, 0, 1)}},
         "h:4 w:6 d:5",
         "s:3 t:2 u:2",
         "p:2 q:5 r:4"},
        {{0}, "b:3 c:4", "c:4 k:5", "b:3 k:5"},
        {{1, {WINDOW("h", "s", "p", 1, 1, 0, 1)}}, "a:2 h:9 b:2", "s:4", "a:2 b:2 p:6"},
        {{1, {WINDOW("h", "s", "p", 1, 1, 2, 1)}}, "b:2 h:9", "s:4", "b:2 p:4"},
    };
    for (size_t c = 0; c < sizeof others / sizeof *others; c++)
        CHECK_EQ_INT(count_kernels(&others[c]), 1);
}

/* ---- faults ------------------------------------------------------------------------------------ */

static bool has_library(void)
{
    return count_kernels(&cases[0]) == 2;
}

static int look_with(const void *fault)
{
    if (!open_device() || !has_library() || strncmp(cuda_gpu_here.name, "emulated", 8) != 0)
        return OTHER_GPU;
    setenv("TEST_CUDNN_FAULT", fault, 1);
    check_cases(WEFT_PRECISION_F32);
    return weft_test_report() == 0 ? RIGHT : WRONG;
}

static void test_what_is_described_wrongly_is_found(void)
{
    static const char *const faults[] = {"stride", "padding"};
    check_faults(look_with, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    RUN(test_what_is_described_wrongly_is_found); /* in processes that open the device themselves */
    if (!open_device()) return weft_test_report();
    if (!has_library()) {
        weft_test_skip("cuDNN is not there");
        close_device();
        return weft_test_report();
    }
    RUN(test_convolutions_are_the_librarys);
    RUN(test_each_gpu_has_plans_of_its_own);
    RUN(test_f32_means_f32);
    RUN(test_other_convolutions_are_the_plain_kernels);
    close_device();
    return weft_test_report();
}
