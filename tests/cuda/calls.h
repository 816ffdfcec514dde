/* calls.h: a kernel's call on numbers of a test's own, on the CPU and by every kernel of the device cuda that takes it. */
#ifndef TEST_CUDA_CALLS_H
#define TEST_CUDA_CALLS_H

#include "kernel.h"
#include "mesh/cuda/parts.h"
#include "mesh/devices.h"
#include "ops/kernel/cuda/plugin.h"
#include "registry.h"
#include "weft/arena.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static weft_device_kind kind;
static const weft_device *device;
static weft_stream *stream, *lanes; /* of the device, of the CPU */

static inline uint32_t random_below(uint32_t n)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* "a:3 b:4/2": dims and sizes; what stands behind a / is where the local box begins of a tensor that is one larger. */
static inline weft_view view_of(weft_dtype dtype, const char *text)
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

static inline size_t bytes_of(const weft_view *view)
{
    return (size_t)weft_view_count(view) * weft_dtype_bytes(view->dtype);
}

/* Small whole numbers: sums of them are exact, so that both devices agree on every bit. A state's are its own. */
static inline void fill(weft_view *view, int width)
{
    for (int64_t i = 0; i < weft_view_count(view); i++) {
        double x = (double)random_below(17) - (view->dtype == WEFT_U8 ? 0 : 8);
        if (width == 3 && i % 3 != 1) x = 1 + random_below(9);
        if (width == 2 && i % 2 == 1) x = 1 + random_below(9);
        weft_dtype_put(view->dtype, view->data, i, x);
    }
}

static inline void take_host(weft_view *view)
{
    view->data = calloc(1, bytes_of(view) + 8);
    CHECK(view->data != NULL);
}

static inline weft_status run_kernel(const weft_kernel *kernel, weft_call *call, weft_arena *arena,
                                     weft_error *error)
{
    void *scratch = NULL;
    if (kernel->scratch != NULL) {
        const size_t bytes = (size_t)kernel->scratch(call);
        if (weft_devices[kernel->device]->is_open)
            scratch = weft_arena_take(arena, bytes + 64);
        else if (bytes > 0) /* of the device's memory; the test's end gives it back */
            WEFT_TRY(weft_devices[kernel->device]->take(stream, bytes, &scratch, error));
    }
    call->scratch = (void *)(((uintptr_t)scratch + 63) / 64 * 64);
    if (kernel->prepare != NULL) WEFT_TRY(kernel->prepare(call, arena, &call->prepared, error));
    kernel->launch(call);
    if (kernel->release != NULL) kernel->release(call->prepared);
    return WEFT_OK;
}

/* What the CPU makes of it; a sum so far that its kernel does not begin with is added behind. */
static inline weft_status run_on_host(const char *op, weft_call *call, weft_arena *arena,
                                      weft_error *error)
{
    weft_kernel_choice choice;
    weft_error none = {0};
    weft_call alone = *call;
    const bool adds =
        call->accumulates && weft_kernel_find(op, WEFT_CPU, call, &choice, &none) != WEFT_OK;
    if (adds) alone.accumulates = false, alone.n_in--;
    WEFT_TRY(weft_kernel_find(op, WEFT_CPU, &alone, &choice, error));
    WEFT_TRY(run_kernel(choice.kernel, &alone, arena, error));
    const weft_view *out = &call->out[0], *begin = &call->in[call->n_in - 1];
    for (int64_t i = 0; i < weft_view_count(out) && adds; i++)
        weft_dtype_put(out->dtype, out->data, i,
                       weft_dtype_get(out->dtype, out->data, i) +
                           weft_dtype_get(begin->dtype, begin->data, i));
    return WEFT_OK;
}

/* Sums, extremes, indices and what is moved bit by bit; where there is an exp, a division or a root, nearly. */
static inline void compare(const char *op, const char *kernel, const weft_view *got,
                           const weft_view *expected)
{
    const bool is_solved = strcmp(op, "cholesky") == 0 || strstr(op, "solve") != NULL;
    const bool is_exact =
        strncmp(op, "lse", 3) != 0 && strncmp(op, "moments", 7) != 0 && !is_solved;
    const double least =
        is_solved ? 1 : 1e-6; /* what is subtracted may be larger than what is left */
    const size_t bytes = weft_dtype_bytes(got->dtype);
    for (int64_t i = 0; i < weft_view_count(got); i++) {
        const size_t at = (size_t)i * bytes;
        const double a = weft_dtype_get(got->dtype, got->data, i),
                     b = weft_dtype_get(expected->dtype, expected->data, i);
        const bool is_equal =
            memcmp((char *)got->data + at, (char *)expected->data + at, bytes) == 0;
        const bool is_near = fabs(a - b) <= 1e-5 * fmax(least, fmax(fabs(a), fabs(b)));
        char text[200];
        snprintf(text, sizeof text, "%s by %s: element %lld is %.9g, and on the CPU %.9g", op,
                 kernel, (long long)i, a, b);
        if (!weft_test_check(is_equal || (!is_exact && is_near), __FILE__, __LINE__, text)) return;
    }
}

/* By norm, to what numbers of bf16 give. */
static inline void compare_norms(const char *op, const weft_view *got, const weft_view *expected)
{
    double all = 0, off = 0;
    char text[100];
    for (int64_t i = 0; i < weft_view_count(got); i++) {
        const double a = weft_dtype_get(got->dtype, got->data, i),
                     b = weft_dtype_get(expected->dtype, expected->data, i);
        all += b * b, off += (a - b) * (a - b);
    }
    snprintf(text, sizeof text, "%s: off by %.3g of its norm", op, sqrt(off / all));
    weft_test_check(sqrt(off) <= 2e-2 * sqrt(all), __FILE__, __LINE__, text);
}

static inline bool does(const weft_kernel *kernel, const weft_call *call)
{
    weft_call shapes = *call;
    for (int i = 0; i < WEFT_MAX_IN; i++)
        shapes.in[i].data = NULL;
    return kernel->device == kind && kernel->dtypes & WEFT_DTYPE_BIT(weft_call_dtype(call)) &&
           (kernel->accumulates || !call->accumulates) &&
           (kernel->takes == NULL || kernel->takes(&shapes));
}

/* Of rows attention keeps a maximum and a sum above it, or any other pair of the same logsumexp: that and 1. */
static inline void finish_kept(const char *op, int o, const weft_view *kept)
{
    if (strcmp(op, "attention") != 0 || o != 1) return;
    const int64_t n = weft_view_count(kept) / 2;
    float *x = kept->data;
    for (int64_t i = 0; i < n; i++)
        x[i] += logf(x[n + i]), x[n + i] = 1;
}

static inline void check_kernel(const char *op, const weft_kernel *kernel, const weft_call *on_host,
                                weft_arena *arena)
{
    weft_call call = *on_host;
    weft_error error = {0};
    call.stream = stream;
    for (int i = 0; i < call.n_in; i++) {
        CHECK_OK(device->take(stream, bytes_of(&call.in[i]) + 1, &call.in[i].data, &error), error);
        device->put(stream, call.in[i].data, on_host->in[i].data, bytes_of(&call.in[i]));
    }
    for (int o = 0; o < call.n_out; o++)
        CHECK_OK(device->take(stream, bytes_of(&call.out[o]) + 1, &call.out[o].data, &error),
                 error);
    CHECK_OK(run_kernel(kernel, &call, arena, &error), error);
    for (int o = 0; o < call.n_out; o++) {
        weft_view got = call.out[o];
        take_host(&got);
        device->get(stream, got.data, call.out[o].data, bytes_of(&got));
        finish_kept(op, o, &got), finish_kept(op, o, &on_host->out[o]);
        if (call.precision == WEFT_PRECISION_F32)
            compare(op, kernel->name, &got, &on_host->out[o]);
        else
            compare_norms(op, &got, &on_host->out[o]);
        device->give(stream, call.out[o].data, 0);
        free(got.data);
    }
    CHECK_OK(device->failed(stream, &error), error);
    for (int i = 0; i < call.n_in; i++)
        device->give(stream, call.in[i].data, 0);
    if (call.scratch != NULL) device->give(stream, call.scratch, 0);
}

/* The call, whose operands the host has, on the CPU and by each of the device's kernels that takes it; how many there are. */
static inline int check_call(const char *op, weft_call *on_host)
{
    const char *of;
    const weft_kernel *kernel;
    int n = 0;
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    for (int o = 0; o < on_host->n_out; o++)
        take_host(&on_host->out[o]);
    on_host->stream = lanes;
    CHECK_OK(run_on_host(op, on_host, arena, &error), error);
    for (int k = 0; (kernel = weft_kernel_at(k, &of)) != NULL; k++)
        if (strcmp(of, op) == 0 && does(kernel, on_host)) {
            check_kernel(op, kernel, on_host, arena);
            n++;
        }
    weft_test_check(n > 0, __FILE__, __LINE__, op);
    for (int o = 0; o < on_host->n_out; o++)
        free(on_host->out[o].data);
    for (int i = 0; i < on_host->n_in; i++)
        free(on_host->in[i].data);
    weft_arena_destroy(&arena);
    return n;
}

static inline void add_in(weft_call *call, weft_dtype dtype, const char *text, int width)
{
    weft_view *view = &call->in[call->n_in++];
    *view = view_of(dtype, text);
    take_host(view);
    fill(view, width);
}

static inline void add_out(weft_call *call, weft_dtype dtype, const char *text)
{
    call->out[call->n_out++] = view_of(dtype, text);
}

/* The device and its streams; false, and a line that says why: there is none. */
static inline bool open_device(void)
{
    static weft_error error; /* the test's last line reads it */
    error = (weft_error){0};
    setenv("TEST_CUDA_DEVICES", "2", 0); /* of the emulated driver */
    setenv("WEFT_SHARE_GPU", "1", 0);
    if (cuda_open_all(&error) != WEFT_OK) {
        weft_test_skip(error.message);
        return false;
    }
    kind = (weft_device_kind)weft_device_named("cuda");
    device = weft_devices[kind];
    if (device->stream_create(1, &stream, &error) != WEFT_OK ||
        device->seat(stream, 0, &error) != WEFT_OK ||
        weft_devices[WEFT_CPU]->stream_create(1, &lanes, &error) != WEFT_OK)
        puts(error.message), exit(1);
    return true;
}

/* The same on the second of the process's GPUs. */
static inline void on_another_gpu(void (*look)(void))
{
    weft_stream *usual = stream;
    weft_error error = {0};
    CHECK_OK(device->stream_create(1, &stream, &error), error);
    CHECK_OK(device->seat(stream, 1, &error), error);
    look();
    device->stream_destroy(&stream);
    stream = usual;
}

static inline void close_device(void)
{
    device->stream_destroy(&stream);
    weft_devices[WEFT_CPU]->stream_destroy(&lanes);
}

#endif
