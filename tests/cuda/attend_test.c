/* attend_test: attention and its gradient by cuDNN against the CPU's, where a program lets products be computed in bf16; and which
 * calls are the plain kernels', and what these make of rows with an offset. On the emulated GPU by an emulated library, which does
 * a graph as it is described.
 */
#include "calls.h"
#include "child.h"

typedef struct attend_case {
    const char *q, *k, *v;
    bool is_causal;
} attend_case;

/* As gpt has it; heads first; v otherwise than k; one head; other rows of memory. */
static const attend_case cases[] = {
    {"b:2 s:5 h:3 d:8", "b:2 s:5 h:3 d:8", "b:2 s:5 h:3 d:8", true},
    {"b:2 h:3 s:5 d:8", "b:2 h:3 s:5 d:8", "b:2 h:3 s:5 d:8", true},
    {"b:2 s:5 h:3 d:16", "b:2 s:5 h:3 d:16", "h:3 b:2 s:5 d:16", false},
    {"s:7 d:8", "s:7 d:8", "s:7 d:8", true},
    {"a:2 b:2 h:3 s:5 d:8", "a:2 b:2 h:3 s:5 d:8", "a:2 b:2 h:3 s:5 d:8", true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static weft_attention_attributes attributes_of(const attend_case *c)
{
    return (weft_attention_attributes){.query = "s",
                                       .memory = "s",
                                       .feature = "d",
                                       .column = "s",
                                       .scale = 0.25,
                                       .causal = c->is_causal};
}

/* What is kept of rows: two numbers, by the dims of q but its features. */
static const char *rows_of(const char *q, char rows[100])
{
    const char *d = strstr(q, "d:"), *behind = strchr(d, ' ');
    snprintf(rows, 100, "d:2 %.*s%s", (int)(d - q), q, behind == NULL ? "" : behind + 1);
    return rows;
}

/* A call of attention whose last operand is dy becomes one of its gradient. */
static void add_gradients(weft_call *call, const attend_case *c)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    const weft_view dy = call->in[--call->n_in];
    call->stream = lanes;
    for (int o = 0; o < 2; o++)
        take_host(&call->out[o]);
    CHECK_OK(run_on_host("attention", call, arena, &error), error);
    weft_arena_destroy(&arena);
    call->in[call->n_in++] = call->out[0], call->in[call->n_in++] = call->out[1];
    call->in[call->n_in++] = dy;
    call->n_out = 0;
    add_out(call, WEFT_F32, c->q), add_out(call, WEFT_F32, c->k), add_out(call, WEFT_F32, c->v);
}

static weft_call call_of(const attend_case *c, const weft_attention_attributes *attributes,
                         bool is_gradient, weft_precision precision)
{
    char rows[100];
    weft_call call = {.attributes = attributes, .precision = precision};
    add_in(&call, WEFT_F32, c->q, 1);
    add_in(&call, WEFT_F32, c->k, 1);
    add_in(&call, WEFT_F32, c->v, 1);
    add_in(&call, WEFT_F32, c->q, 1);
    for (int i = 0; i < call.n_in; i++) /* so that many weights count */
        for (int64_t n = 0; n < weft_view_count(&call.in[i]); n++)
            ((float *)call.in[i].data)[n] /= 8;
    add_out(&call, WEFT_F32, c->q);
    add_out(&call, WEFT_F32, rows_of(c->q, rows));
    if (is_gradient)
        add_gradients(&call, c);
    else
        free(call.in[--call.n_in].data);
    return call;
}

static int check_case(const attend_case *c, bool is_gradient, weft_precision precision)
{
    const weft_attention_attributes attributes = attributes_of(c);
    weft_call call = call_of(c, &attributes, is_gradient, precision);
    return check_call(is_gradient ? "attention_grad" : "attention", &call);
}

static void test_attention_in_bf16_is_the_librarys(void)
{
    for (int c = 0; c < N_CASES; c++)
        for (int is_gradient = 0; is_gradient < 2; is_gradient++)
            CHECK_EQ_INT(check_case(&cases[c], is_gradient, WEFT_PRECISION_BF16), 2);
}

static void test_each_gpu_has_a_handle_and_plans_of_its_own(void)
{
    on_another_gpu(test_attention_in_bf16_is_the_librarys);
    test_attention_in_bf16_is_the_librarys();
}

/* How many kernels take attention of the first case, otherwise said. */
static int count_kernels(const attend_case *c, weft_attention_attributes attributes,
                         weft_precision precision)
{
    const char *of;
    const weft_kernel *kernel;
    int n = 0;
    weft_call call = call_of(c, &attributes, false, precision);
    for (int k = 0; (kernel = weft_kernel_at(k, &of)) != NULL; k++)
        n += strcmp(of, "attention") == 0 && does(kernel, &call);
    for (int i = 0; i < call.n_in; i++)
        free(call.in[i].data);
    return n;
}

static void test_other_attention_is_the_plain_kernels(void)
{
    static const attend_case later = {"b:2 s:5/3 h:3 d:8", "b:2 s:9 h:3 d:8", "b:2 s:9 h:3 d:8",
                                      true};
    static const attend_case apart = {"a:2 s:5 b:2 d:8 h:3", "a:2 s:5 b:2 d:8 h:3",
                                      "a:2 s:5 b:2 d:8 h:3", false};
    weft_attention_attributes window = attributes_of(&cases[0]);
    window.window = 2;
    CHECK_EQ_INT(count_kernels(&cases[0], attributes_of(&cases[0]), WEFT_PRECISION_BF16), 2);
    CHECK_EQ_INT(count_kernels(&cases[0], attributes_of(&cases[0]), WEFT_PRECISION_F32), 1);
    CHECK_EQ_INT(count_kernels(&cases[0], attributes_of(&cases[0]), WEFT_PRECISION_TF32), 1);
    CHECK_EQ_INT(count_kernels(&cases[0], window, WEFT_PRECISION_BF16), 1);
    CHECK_EQ_INT(count_kernels(&later, attributes_of(&later), WEFT_PRECISION_BF16), 1);
    CHECK_EQ_INT(count_kernels(&apart, attributes_of(&apart), WEFT_PRECISION_BF16), 1);
}

/* Rows of which all scores share an offset, beside which log(sum) is less than rounding: their weights are 1/n all the same. Compared by norm, as
 * sums of weights that are rounded are. */
static void test_rows_with_an_offset_keep_their_weights(void)
{
    static const attend_case c = {"b:2 s:6 h:3 d:8", "b:2 m:70 h:3 d:8", "b:2 m:70 h:3 d:8", false};
    const weft_attention_attributes attributes = {
        .query = "s", .memory = "m", .feature = "d", .column = "c", .scale = 0.25, .bias = 3};
    static const float offsets[6] = {0, -1e9f, 0, 1e9f, -1e4f, -1e30f};
    for (int form = 0; form < 2;
         form++) { /* the same bias for all columns: dbias is rounding alone */
        char rows[100];
        weft_attention_attributes of_form = attributes;
        of_form.bias_gradient = form == 0;
        weft_call call = {.attributes = &of_form, .precision = WEFT_PRECISION_TF32};
        add_in(&call, WEFT_F32, c.q, 1), add_in(&call, WEFT_F32, c.k, 1);
        add_in(&call, WEFT_F32, c.v, 1);
        add_in(&call, WEFT_F32, form == 0 ? "s:6 c:70" : "h:3 s:6", 1);
        add_in(&call, WEFT_F32, c.q, 1);
        for (int i = 0; i < call.n_in; i++)
            for (int64_t n = 0; n < weft_view_count(&call.in[i]); n++)
                ((float *)call.in[i].data)[n] /= 8;
        for (int64_t n = 0; n < weft_view_count(&call.in[3]); n++) {
            const float offset = offsets[form == 0 ? n / 70 : n % 6];
            if (offset != 0) ((float *)call.in[3].data)[n] = offset;
        }
        add_out(&call, WEFT_F32, c.q), add_out(&call, WEFT_F32, rows_of(c.q, rows));
        add_gradients(&call, &c);
        if (form == 0) add_out(&call, WEFT_F32, "s:6 c:70");
        CHECK_EQ_INT(check_call("attention_grad", &call), 1);
    }
}

/* Of each block its own with a block of k and v, and its part of a bias; of 15 rows in blocks of 6 the last lacks 3. */
static void test_blocks_of_rows_have_their_part_of_a_bias(void)
{
    static const attend_case c = {"a:3 s:5 h:3 d:8", "e:3 m:6 h:3 d:8", "h:3 e:3 m:6 d:8", false};
    /* the same bias for all columns: dbias is rounding alone */
    static const char *const biases[][2] = {{"h:3 a:3 s:5 f:3 c:6", "h:3 a:3 s:5 c:6"},
                                            {"f:3 c:6 h:3", "a:3 c:6 h:3"},
                                            {"s:5 a:3", NULL},
                                            {"h:3", NULL}};
    for (int form = 0; form < 4; form++) {
        char rows[100];
        const weft_attention_attributes attributes = {.query = "s",
                                                      .memory = "m",
                                                      .feature = "d",
                                                      .column = "c",
                                                      .scale = 0.25,
                                                      .bias = 3,
                                                      .bias_gradient = biases[form][1] != NULL,
                                                      .blocks = "a",
                                                      .memory_blocks = "e",
                                                      .column_blocks = "f",
                                                      .n_blocks = 3,
                                                      .turn = form % 3 - 1,
                                                      .query_step = 1,
                                                      .memory_step = 1,
                                                      .memory_end = 15};
        weft_call call = {.attributes = &attributes, .precision = WEFT_PRECISION_TF32};
        add_in(&call, WEFT_F32, c.q, 1), add_in(&call, WEFT_F32, c.k, 1);
        add_in(&call, WEFT_F32, c.v, 1), add_in(&call, WEFT_F32, biases[form][0], 1);
        add_in(&call, WEFT_F32, c.q, 1);
        add_out(&call, WEFT_F32, c.q), add_out(&call, WEFT_F32, rows_of(c.q, rows));
        add_gradients(&call, &c);
        call.n_out = 1;
        add_out(&call, WEFT_F32, "a:3 m:6 h:3 d:8"), add_out(&call, WEFT_F32, "h:3 a:3 m:6 d:8");
        if (biases[form][1] != NULL) add_out(&call, WEFT_F32, biases[form][1]);
        CHECK_EQ_INT(check_call("attention_grad", &call), 1);
    }
}

/* ---- faults ----------------------------------------------------------------------------------- */

static bool has_library(void)
{
    return count_kernels(&cases[0], attributes_of(&cases[0]), WEFT_PRECISION_BF16) == 2;
}

static int look_with(const void *fault)
{
    if (!open_device() || !has_library() || strncmp(cuda_gpu_here.name, "emulated", 8) != 0)
        return OTHER_GPU;
    setenv("TEST_CUDNN_FAULT", fault, 1);
    test_attention_in_bf16_is_the_librarys();
    return weft_test_report() == 0 ? RIGHT : WRONG;
}

static void test_what_is_described_wrongly_is_found(void)
{
    static const char *const faults[] = {"stride", "scale", "mask"};
    check_faults(look_with, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    RUN(test_what_is_described_wrongly_is_found); /* in processes that open the device themselves */
    if (!open_device()) return weft_test_report();
    RUN(test_rows_with_an_offset_keep_their_weights);
    RUN(test_blocks_of_rows_have_their_part_of_a_bias);
    if (!has_library()) {
        weft_test_skip("cuDNN is not there");
        close_device();
        return weft_test_report();
    }
    RUN(test_attention_in_bf16_is_the_librarys);
    RUN(test_each_gpu_has_a_handle_and_plans_of_its_own);
    RUN(test_other_attention_is_the_plain_kernels);
    close_device();
    return weft_test_report();
}
