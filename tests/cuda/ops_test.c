/* ops_test: every kernel of the device cuda against the CPU's, on numbers, dtypes, boxes and strides of every kind, and whole
 * programs on meshes; on a driver that does things late and blocks in any order, or on a GPU where there is one. */
#include "kernel.h"
#include "mesh/cuda/parts.h"
#include "mesh/devices.h"
#include "ops/kernel/cuda/plugin.h"
#include "registry.h"
#include "weft/arena.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static weft_device_kind kind;
static const weft_device *device;
static weft_stream *stream, *lanes; /* of the device, of the CPU */

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* "a:3 b:4/2": dims and sizes; what stands behind a / is where the local box begins of a tensor that is one larger. */
static weft_view view_of(weft_dtype dtype, const char *text)
{
    static char names[64][8];
    static int n_names;
    weft_view view = {.dtype = dtype};
    char copy[100], *next = copy, *word;
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strtok_r(next, " ", &next)) != NULL) {
        char *colon = strchr(word, ':'), *slash = strchr(word, '/');
        *colon = '\0';
        char *name = names[n_names++ % 64];
        snprintf(name, 8, "%s", word);
        const int d = view.shape.n_dims++;
        const int64_t size = strtol(colon + 1, NULL, 10),
                      at = slash ? strtol(slash + 1, NULL, 10) : 0;
        view.shape.dims[d] = (weft_dim){name, size + at + (slash != NULL)};
        view.box.begin[d] = at, view.box.end[d] = at + size;
    }
    return view;
}

static size_t bytes_of(const weft_view *view)
{
    return (size_t)weft_view_count(view) * weft_dtype_bytes(view->dtype);
}

/* Small whole numbers: sums of them are exact, so that both devices agree on every bit. A state's are its own. */
static void fill(weft_view *view, int width)
{
    for (int64_t i = 0; i < weft_view_count(view); i++) {
        double x = (double)random_below(17) - (view->dtype == WEFT_U8 ? 0 : 8);
        if (width == 3 && i % 3 != 1) x = 1 + random_below(9);
        if (width == 2 && i % 2 == 1) x = 1 + random_below(9);
        weft_dtype_put(view->dtype, view->data, i, x);
    }
}

static void take_host(weft_view *view)
{
    view->data = calloc(1, bytes_of(view) + 8);
    CHECK(view->data != NULL);
}

static weft_status run_on(weft_device_kind on, const char *op, weft_call *call, weft_arena *arena,
                          weft_error *error)
{
    weft_kernel_choice choice;
    WEFT_TRY(weft_kernel_find(op, on, call, &choice, error));
    void *scratch = NULL;
    if (choice.kernel->scratch != NULL)
        scratch = weft_arena_take(arena, (size_t)choice.kernel->scratch(call) + 64);
    call->scratch = (void *)(((uintptr_t)scratch + 63) / 64 * 64);
    if (choice.kernel->prepare != NULL)
        WEFT_TRY(choice.kernel->prepare(call, arena, &call->prepared, error));
    choice.kernel->launch(call);
    if (choice.kernel->release != NULL) choice.kernel->release(call->prepared);
    return WEFT_OK;
}

/* Sums, extremes, indices and what is moved bit by bit; where there is an exp, a division or a root, nearly. */
static void compare(const char *op, const weft_view *got, const weft_view *expected)
{
    const bool is_exact = strncmp(op, "lse", 3) != 0 && strncmp(op, "moments", 7) != 0;
    const size_t bytes = weft_dtype_bytes(got->dtype);
    for (int64_t i = 0; i < weft_view_count(got); i++) {
        const size_t at = (size_t)i * bytes;
        const double a = weft_dtype_get(got->dtype, got->data, i),
                     b = weft_dtype_get(expected->dtype, expected->data, i);
        const bool is_equal =
            memcmp((char *)got->data + at, (char *)expected->data + at, bytes) == 0;
        const bool is_near = fabs(a - b) <= 1e-5 * fmax(1e-6, fmax(fabs(a), fabs(b)));
        char text[200];
        snprintf(text, sizeof text, "%s: element %lld is %.9g, and on the CPU %.9g", op,
                 (long long)i, a, b);
        if (!weft_test_check(is_equal || (!is_exact && is_near), __FILE__, __LINE__, text)) return;
    }
}

/* The call, whose operands the host has, on both devices. */
static void check_call(const char *op, weft_call *on_host)
{
    weft_call call = *on_host;
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    for (int o = 0; o < call.n_out; o++)
        take_host(&on_host->out[o]);
    on_host->stream = lanes;
    call.stream = stream;
    for (int i = 0; i < call.n_in; i++) {
        CHECK_OK(device->take(bytes_of(&call.in[i]) + 1, &call.in[i].data, &error), error);
        device->put(stream, call.in[i].data, on_host->in[i].data, bytes_of(&call.in[i]));
    }
    for (int o = 0; o < call.n_out; o++)
        CHECK_OK(device->take(bytes_of(&call.out[o]) + 1, &call.out[o].data, &error), error);
    CHECK_OK(run_on(WEFT_CPU, op, on_host, arena, &error), error);
    CHECK_OK(run_on(kind, op, &call, arena, &error), error);
    for (int o = 0; o < call.n_out; o++) {
        weft_view got = call.out[o];
        take_host(&got);
        device->get(stream, got.data, call.out[o].data, bytes_of(&got));
        compare(op, &got, &on_host->out[o]);
        device->give(call.out[o].data, 0);
        free(got.data), free(on_host->out[o].data);
    }
    CHECK_OK(device->failed(stream, &error), error);
    for (int i = 0; i < call.n_in; i++) {
        device->give(call.in[i].data, 0);
        free(on_host->in[i].data);
    }
    weft_arena_destroy(&arena);
}

static void add_in(weft_call *call, weft_dtype dtype, const char *text, int width)
{
    weft_view *view = &call->in[call->n_in++];
    *view = view_of(dtype, text);
    take_host(view);
    fill(view, width);
}

static void add_out(weft_call *call, weft_dtype dtype, const char *text)
{
    call->out[call->n_out++] = view_of(dtype, text);
}

/* ---- products --------------------------------------------------------------------------------- */

static void check_einsum(weft_dtype dtype, const char *a, const char *b, const char *out)
{
    weft_call call = {0};
    add_in(&call, dtype, a, 1);
    add_in(&call, dtype, b, 1);
    add_out(&call, weft_dtype_computes(dtype), out);
    check_call("einsum", &call);
}

static void test_einsum(void)
{
    static const weft_dtype dtypes[] = {WEFT_F32,  WEFT_F64, WEFT_I32,
                                        WEFT_BF16, WEFT_F16, WEFT_I64};
    static const char *const cases[][3] = {
        {"m:7 k:33", "k:33 n:9", "m:7 n:9"},
        {"m:7 k:33", "n:9 k:33", "n:9 m:7"},
        {"b:3 m:4 k:5 l:6", "k:5 b:3 l:6 n:2", "b:3 m:4 n:2"},
        {"b:2 s:5 h:3 d:4", "b:2 t:6 h:3 d:4", "b:2 h:3 s:5 t:6"},
        {"m:40 k:8/3", "k:8/3", "m:40"},
        {"k:300", "k:300", ""},
        {"m:3", "n:4", "m:3 n:4"},
        {"m:3 k:0", "k:0 n:4", "m:3 n:4"},
        {"m:0 k:3", "k:3 n:4", "m:0 n:4"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            check_einsum(dtypes[d], cases[c][0], cases[c][1], cases[c][2]);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void check_reduce(const char *op, weft_combine combine, weft_dtype dtype, const char *in,
                         const char *out)
{
    const weft_reduce_attributes attributes = {combine, combine == WEFT_ARGMAX ? "r" : NULL};
    const int width = weft_combine_width(combine);
    char text[100];
    weft_call call = {.attributes = &attributes};
    snprintf(text, sizeof text, "%s", out);
    if (width > 1) snprintf(text, sizeof text, "%s%s~:%d", out, *out ? " " : "", width);
    add_in(&call, dtype, in, 1);
    add_out(&call, dtype, text);
    check_call(op, &call);
}

static void test_reductions(void)
{
    static const struct {
        const char *op;
        weft_combine combine;
        uint32_t dtypes;
    } ops[] = {
        {"sum", WEFT_SUM, WEFT_WIDE_DTYPES},
        {"reduce_max", WEFT_MAX, WEFT_WIDE_DTYPES},
        {"lse_state", WEFT_LSE, WEFT_FLOAT_DTYPES},
        {"argmax_state", WEFT_ARGMAX, WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_I32)},
        {"moments_state", WEFT_MOMENTS, WEFT_FLOAT_DTYPES},
    };
    static const char *const cases[][2] = {
        {"m:5 r:7", "m:5"},
        {"r:700 m:3", "m:3"},
        {"m:4 r:300/2 n:3", "m:4 n:3"},
        {"m:4 r:300/2 n:3", "n:3 m:4"},
        {"r:1000", ""},
        {"m:3 r:1", "m:3"},
        {"m:0 r:4", "m:0"},
    };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
                if (ops[k].dtypes & WEFT_DTYPE_BIT(dtype))
                    check_reduce(ops[k].op, ops[k].combine, (weft_dtype)dtype, cases[c][0],
                                 cases[c][1]);
    check_reduce("sum", WEFT_SUM, WEFT_F32, "m:3 r:4 q:5 n:6", "n:6 m:3");
    check_reduce("sum", WEFT_SUM, WEFT_F64, "m:3 r:0", "m:3");
}

static void check_finish(const char *op, weft_dtype dtype, const char *state, int width,
                         const char *first, const char *second)
{
    const weft_number_attributes attributes = {1e-3};
    weft_call call = {.attributes = &attributes};
    add_in(&call, dtype, state, width);
    add_out(&call, strcmp(op, "argmax_finish") == 0 ? WEFT_I32 : dtype, first);
    if (second != NULL) add_out(&call, dtype, second);
    check_call(op, &call);
}

static void test_finishes(void)
{
    for (int d = 0; d < 2; d++) {
        const weft_dtype dtype = d ? WEFT_F64 : WEFT_F32;
        check_finish("lse_finish", dtype, "m:3 n:50 ~:2", 2, "n:50 m:3", NULL);
        check_finish("argmax_finish", dtype, "m:3 n:5 ~:2", 2, "m:3 n:5", NULL);
        check_finish("moments_finish", dtype, "m:3 n:5 ~:3", 3, "m:3 n:5", "n:5 m:3");
    }
    check_finish("argmax_finish", WEFT_I32, "m:300 ~:2", 2, "m:300", NULL);
}

/* ---- indices ---------------------------------------------------------------------------------- */

/* Some past the table's box, some before. */
static void add_ids(weft_call *call, const char *text, int n)
{
    add_in(call, WEFT_I32, text, 1);
    weft_view *ids = &call->in[call->n_in - 1];
    for (int64_t i = 0; i < weft_view_count(ids); i++)
        ((int32_t *)ids->data)[i] = (int32_t)random_below((uint32_t)n);
}

static void check_indexing(const char *op, weft_dtype dtype, const char *table, const char *ids,
                           const char *rows)
{
    const weft_dim_attributes attributes = {"v", 20};
    weft_call call = {.attributes = &attributes};
    const bool is_scatter = strcmp(op, "scatter_add") == 0;
    add_in(&call, dtype, is_scatter ? rows : table, 1);
    add_ids(&call, ids, 20);
    add_out(&call, dtype, is_scatter ? table : rows);
    check_call(op, &call);
}

static void test_indexing(void)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        check_indexing("gather", (weft_dtype)dtype, "v:20 d:5", "b:3 s:7", "b:3 s:7 d:5");
        check_indexing("gather", (weft_dtype)dtype, "v:8/5 d:5 e:2", "b:30", "b:30 d:5 e:2");
        check_indexing("pick", (weft_dtype)dtype, "b:6 v:9/4 s:2", "b:6 s:2", "b:6 s:2");
        if (!(WEFT_WIDE_DTYPES & WEFT_DTYPE_BIT(dtype))) continue;
        check_indexing("scatter_add", (weft_dtype)dtype, "v:8/5 d:5", "b:3 s:7", "b:3 s:7 d:5");
        check_indexing("scatter_add", (weft_dtype)dtype, "v:20 d:90", "b:40", "b:40 d:90");
        check_indexing("scatter_add", (weft_dtype)dtype, "v:20 d:3", "b:0", "b:0 d:3");
    }
}

/* The sum so far is an operand more. */
static void test_scatter_add_goes_on_with_a_sum(void)
{
    const weft_dim_attributes attributes = {"v", 20};
    weft_call call = {.attributes = &attributes, .accumulates = true};
    add_in(&call, WEFT_F32, "b:9 d:5", 1);
    add_ids(&call, "b:9", 20);
    add_in(&call, WEFT_F32, "v:20 d:5", 1);
    add_out(&call, WEFT_F32, "v:20 d:5");
    check_call("scatter_add", &call);
}

/* ---- shapes ----------------------------------------------------------------------------------- */

static void check_shape(const char *op, const char *in, const char *out, weft_slice_attributes cut)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        weft_call call = {.attributes = &cut};
        add_in(&call, (weft_dtype)dtype, in, 1);
        if (strcmp(op, "concat") == 0) add_in(&call, (weft_dtype)dtype, in, 1);
        add_out(&call, (weft_dtype)dtype, out);
        check_call(op, &call);
    }
}

static void test_shapes(void)
{
    const weft_slice_attributes none = {0}, middle = {"n", 2, 5}, second = {"n", 4, 8};
    check_shape("transpose", "a:5 b:7", "b:7 a:5", none);
    check_shape("transpose", "a:2 b:3 c:4 d:5", "d:5 b:3 a:2 c:4", none);
    check_shape("transpose", "a:2 b:3/1 c:40", "b:3/1 a:2 c:40", none);
    check_shape("transpose", "a:0 b:3", "b:3 a:0", none);
    check_shape("copy", "a:5 b:7", "a:5 b:7", none);
    check_shape("reshape", "a:5 b:6", "c:30", none);
    check_shape("rename", "a:5 b:6", "c:5 d:6", none);
    check_shape("slice", "m:3 n:8 k:4", "m:3 n:3 k:4", middle);
    check_shape("slice", "n:8", "n:3", middle);
    check_shape("concat", "m:3 n:4 k:2", "m:3 n:8 k:2", second);
    /* boxes along the dim that is cut */
    check_shape("slice", "m:3 n:4/3 k:2", "m:3 n:2/1 k:2", middle);
    check_shape("concat", "m:3 n:4 k:2", "m:3 n:5/2 k:2", second);
    check_shape("concat", "m:3 n:4 k:2", "m:3 n:3/5 k:2", second);
}

static void check_reindex(const char *in, const char *out, weft_reindex_attributes moved)
{
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        weft_call call = {.attributes = &moved};
        moved.dim = moved.to = "n";
        add_in(&call, (weft_dtype)dtype, in, 1);
        add_out(&call, (weft_dtype)dtype, out);
        check_call("reindex", &call);
    }
}

static void test_reindex(void)
{
    const weft_reindex_attributes behind = {.offset = -2, .stride = 1, .over = 1};
    const weft_reindex_attributes steps = {.offset = 1, .stride = 2, .over = 1};
    const weft_reindex_attributes between = {.offset = -1, .stride = 1, .over = 3};
    const weft_reindex_attributes drifts = {.offset = -1, .stride = 2, .over = 3};
    check_reindex("m:3 n:3 k:4", "m:3 n:8 k:4", behind);
    check_reindex("m:3 n:3 k:2", "m:3 n:4/3 k:2", behind);
    check_reindex("m:3 n:2/1 k:2", "m:3 n:2/5 k:2", behind);
    check_reindex("n:8", "n:3", steps);
    check_reindex("m:3 n:5/3 k:2", "m:3 n:2/1 k:2", steps);
    check_reindex("m:2 n:4 k:3", "m:2 n:20 k:3", between);
    check_reindex("m:2 n:9", "m:2 n:9/2", drifts);
}

/* ---- programs --------------------------------------------------------------------------------- */

enum { M = 6, K = 10, L = 8 };
static const weft_dim row = {"row", M}, inner = {"inner", K}, column = {"column", L};

/* The transposed product of an input and a variable of random numbers. */
static void run_program(weft_device_kind on, const char *mesh_text, const char *layout_text,
                        float out[L * M])
{
    const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    float x_numbers[M * K];
    for (int i = 0; i < M * K; i++)
        x_numbers[i] = (float)(i % 7) - 3;
    weft_mesh_use_device(on);
    CHECK_OK(weft_mesh_create(&alone, mesh_text, &mesh, &error), error);
    weft_mesh_use_device(WEFT_CPU);
    CHECK_OK(weft_layout_create(layout_text, &layout, &error), error);
    weft_graph *g = weft_graph_create(3);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row, inner));
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(inner, column), weft_uniform(-1, 1));
    weft_value y =
        weft_transpose(weft_einsum(WEFT_DIMS(row, column), x, w), WEFT_DIMS(column, row));
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
    CHECK_OK(weft_write(program, x, WEFT_F32, x_numbers, sizeof x_numbers, &error), error);
    for (int run = 0; run < 3; run++)
        CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, y, WEFT_F32, out, L * M * sizeof(float), &error), error);
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* Split rows, a contracted dim that is summed over ranks, and both. */
static void test_a_program_has_the_same_numbers_on_every_mesh(void)
{
    static const char *const cases[][2] = {{"data:1", ""},
                                           {"data:2", "row:data"},
                                           {"data:3", "inner:data"},
                                           {"data:2,model:2", "row:data,inner:model"},
                                           {"data:2,model:2", "column:data,inner:model"}};
    float expected[L * M], got[L * M];
    run_program(WEFT_CPU, "data:1", "", expected);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        run_program(kind, cases[c][0], cases[c][1], got);
        for (int i = 0; i < L * M; i++)
            CHECK_CLOSE(got[i], expected[i], 1e-5);
    }
}

int main(void)
{
    weft_error error = {0};
    if (cuda_open_all(&error) != WEFT_OK) {
        weft_test_skip(error.message);
        return weft_test_report();
    }
    kind = (weft_device_kind)weft_device_named("cuda");
    device = weft_devices[kind];
    if (device->stream_create(1, &stream, &error) != WEFT_OK ||
        weft_devices[WEFT_CPU]->stream_create(1, &lanes, &error) != WEFT_OK)
        puts(error.message), exit(1);
    RUN(test_einsum);
    RUN(test_reductions);
    RUN(test_finishes);
    RUN(test_indexing);
    RUN(test_scatter_add_goes_on_with_a_sum);
    RUN(test_shapes);
    RUN(test_reindex);
    RUN(test_a_program_has_the_same_numbers_on_every_mesh);
    device->stream_destroy(&stream);
    weft_devices[WEFT_CPU]->stream_destroy(&lanes);
    return weft_test_report();
}
