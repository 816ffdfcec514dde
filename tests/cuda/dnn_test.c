/* dnn_test: every graph that attention and convolutions make for cuDNN becomes a plan: validated, given to an engine,
 * compiled for an H200 that is described and not there. Nothing runs. Graphs without an engine are known, so that the
 * plain kernels do them.
 */
#include <string.h>

#include "test.h"

#if __has_include(<cudnn.h>)
#include "ops/kernel/cuda/attend_graph.h"
#include "ops/kernel/cuda/conv_graph.h"

/* By hand, after NVIDIA's documents; a GPU's own are what cuDNN writes of it. */
static const char h200[] =
    "{\"deviceName\":\"NVIDIA H200\",\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,"
    "\"isTccDriver\":0,\"l2CacheSize\":62914560,\"maxCtasPerSM\":32,\"maxRegistersPerSM\":65536,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"memClockRateKHz\":3201000,"
    "\"multiProcessorCount\":132,\"pciDeviceId\":591728862,\"regsPerBlock\":65536,"
    "\"reservedSharedMemoryPerBlock\":1024,\"smClockRateKHz\":1980000,"
    "\"maxBlockSize\":[1024,1024,64],\"maxGridSize\":[2147483647,65535,65535],"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":150000000000,\"warpSize\":32}";

/* [batch, row, head, feature], as gpt has it, or [batch, head, row, feature]. */
static void lay_out(attend_problem *p, bool rows_before_heads)
{
    for (int t = 0; t < 3; t++) {
        const int64_t rows = t == 0 ? p->n_query : p->n_memory;
        p->stride[t][0] = p->heads * rows * p->n_feature;
        p->stride[t][1] = rows_before_heads ? p->n_feature : rows * p->n_feature;
        p->stride[t][2] = rows_before_heads ? p->heads * p->n_feature : p->n_feature;
    }
}

static dnn_plan plan_of(attend_problem p, attend_kind kind, char why[300])
{
    dnn_graph g = {0};
    p.kind = kind;
    cuda_attend_build(&g, &p);
    const dnn_plan plan = cuda_dnn_plan(&g, h200);
    snprintf(why, 300, "%s", g.why);
    cuda_dnn_forget(&g);
    return plan;
}

static attend_problem problem(int64_t n_query, int64_t n_memory, int64_t n_feature, bool is_causal,
                              bool rows_before_heads)
{
    attend_problem p = {.batch = 4,
                        .heads = 12,
                        .n_query = n_query,
                        .n_memory = n_memory,
                        .n_feature = n_feature,
                        .is_causal = is_causal};
    lay_out(&p, rows_before_heads);
    return p;
}

static void check_kinds(attend_problem p)
{
    for (attend_kind kind = ATTEND_FORWARD; kind < ATTEND_KINDS; kind++) {
        char why[300], text[500];
        const dnn_plan plan = plan_of(p, kind, why);
        snprintf(text, sizeof text, "kind %d, %lld by %lld rows of %lld: %s", (int)kind,
                 (long long)p.n_query, (long long)p.n_memory, (long long)p.n_feature, why);
        weft_test_check(plan.is_there && plan.workspace >= 0 && plan.workspace < 64 << 20, __FILE__,
                        __LINE__, text);
    }
}

static void test_graphs_of_attention_have_plans(void)
{
    check_kinds(problem(1024, 1024, 64, true, true)); /* GPT-2 */
    check_kinds(problem(1024, 1024, 128, true, false));
    check_kinds(problem(1000, 1000, 64, true, true));
    check_kinds(problem(512, 1024, 64, false, true));
}

static void test_what_no_engine_does_has_none(void)
{
    char why[300];
    CHECK(!plan_of(problem(512, 512, 36, true, true), ATTEND_BACKWARD, why).is_there);
}

/* ---- convolutions -------------------------------------------------------------------------------- */

static dnn_shape shape_of(int64_t n, int64_t c, int64_t h, int64_t w, bool is_channel_last)
{
    const dnn_shape rows = {{n, c, h, w}, {c * h * w, h * w, w, 1}},
                    last = {{n, c, h, w}, {c * h * w, 1, w * c, c}};
    return is_channel_last ? last : rows;
}

/* 3 x 3 from 64 to 128 channels, as images have it, every `stride`-th. */
static conv_problem convolution(int64_t stride, bool is_channel_last, weft_precision precision)
{
    const int64_t n = 28, out = (n - 1) / stride + 1;
    return (conv_problem){.is_bf16 = precision == WEFT_PRECISION_BF16,
                          .precision = precision,
                          .shape = {shape_of(32, 64, n, n, is_channel_last),
                                    shape_of(128, 64, 3, 3, is_channel_last),
                                    shape_of(32, 128, out, out, is_channel_last)},
                          .stride = {stride, stride},
                          .dilation = {1, 1},
                          .before = {1, 1},
                          .after = {stride == 1, stride == 1}};
}

static void check_convolution(conv_problem p)
{
    for (p.kind = CONV_FORWARD; p.kind < CONV_KINDS; p.kind++) {
        dnn_graph g = {0};
        char text[500];
        cuda_conv_build(&g, &p);
        const dnn_plan plan = cuda_dnn_plan(&g, h200);
        snprintf(text, sizeof text,
                 "convolution of kind %d, precision %d, stride %d, channels %s: %s", (int)p.kind,
                 (int)p.precision, (int)p.stride[0], p.shape[0].stride[1] == 1 ? "last" : "first",
                 g.why);
        weft_test_check(plan.is_there && plan.workspace >= 0 && plan.workspace < 64 << 20, __FILE__,
                        __LINE__, text);
        cuda_dnn_forget(&g);
    }
}

static void test_graphs_of_convolutions_have_plans(void)
{
    for (int64_t stride = 1; stride <= 2; stride++)
        for (int last = 0; last < 2; last++) {
            check_convolution(convolution(stride, last, WEFT_PRECISION_F32));
            check_convolution(convolution(stride, last, WEFT_PRECISION_TF32));
            check_convolution(convolution(stride, last, WEFT_PRECISION_BF16));
        }
}

/* Channels last, as there are engines for. */
static void test_a_filter_for_each_channel_has_a_plan_in_bf16(void)
{
    conv_problem p = convolution(1, true, WEFT_PRECISION_BF16);
    p.shape[CONV_W] = (dnn_shape){{64, 1, 3, 3}, {9, 9, 3, 1}};
    p.shape[CONV_Y] = p.shape[CONV_X];
    check_convolution(p);
}

static void test_a_graph_that_contradicts_itself_is_refused(void)
{
    dnn_graph g = {0};
    const dnn_shape x = {{1, 1, 4, 8}, {32, 32, 8, 1}}, y = {{1, 1, 16, 4}, {64, 64, 4, 1}},
                    z = {{1, 1, 4, 4}, {16, 16, 4, 1}};
    cuda_dnn_product(&g, cuda_dnn_tensor(&g, 1, CUDNN_DATA_BFLOAT16, &x),
                     cuda_dnn_tensor(&g, 2, CUDNN_DATA_BFLOAT16, &y),
                     cuda_dnn_tensor(&g, 3, CUDNN_DATA_BFLOAT16, &z));
    CHECK(!cuda_dnn_plan(&g, h200).is_there);
    CHECK(g.has_failed);
    CHECK_TEXT(g.why, "CUDNN_STATUS_BAD_PARAM");
    cuda_dnn_forget(&g);
}

int main(void)
{
    if (!cuda_dnn_load()) {
        weft_test_skip("cuDNN cannot be loaded");
        return weft_test_report();
    }
    RUN(test_graphs_of_attention_have_plans);
    RUN(test_graphs_of_convolutions_have_plans);
    RUN(test_a_filter_for_each_channel_has_a_plan_in_bf16);
    RUN(test_what_no_engine_does_has_none);
    RUN(test_a_graph_that_contradicts_itself_is_refused);
    return weft_test_report();
}
#else
int main(void)
{
    weft_test_skip("there was no cudnn.h when this was built");
    return weft_test_report();
}
#endif
