/* reduce: reductions of rows to values and states on the device cuda, and states finished. */
#include "images.h"
#include "kernels.h"

#include "collectives/combine_states.h"
#include "mesh/cuda/kernel_sizes.h"
#include "weft/arena.h"

/* By kind and dtype; without a name: there is none. */
static cuda_kernel reductions[COMBINE_KINDS][COMBINE_DTYPES] = {
#define REDUCE(kind, suffix, T, S, identity, expression)                                           \
    [COMBINE_##kind][COMBINE_##suffix] = {"reduce_" #kind "_" #suffix, NULL},
#define REDUCE_STATES(kind, suffix, T, width)                                                      \
    [COMBINE_##kind][COMBINE_##suffix] = {"reduce_" #kind "_" #suffix, NULL},
#include "reduce_list.inc"
#undef REDUCE
#undef REDUCE_STATES
};
static cuda_kernel finishes[COMBINE_KINDS][COMBINE_DTYPES] = {
    [COMBINE_lse] =
        {[COMBINE_f32] = {"finish_of_lse_f32", NULL}, [COMBINE_f64] = {"finish_of_lse_f64", NULL}},
    [COMBINE_argmax] = {[COMBINE_f32] = {"finish_of_argmax_f32", NULL},
                        [COMBINE_f64] = {"finish_of_argmax_f64", NULL},
                        [COMBINE_i32] = {"finish_of_argmax_i32", NULL}},
    [COMBINE_moments] = {[COMBINE_f32] = {"finish_of_moments_f32", NULL},
                         [COMBINE_f64] = {"finish_of_moments_f64", NULL}},
};

static int list(cuda_kernel of[][COMBINE_DTYPES], cuda_kernel **all, int n)
{
    for (int kind = 0; kind < COMBINE_KINDS; kind++)
        for (int dtype = 0; dtype < COMBINE_DTYPES; dtype++)
            if (of[kind][dtype].name != NULL) all[n++] = &of[kind][dtype];
    return n;
}

/* ---- reductions ------------------------------------------------------------------------------ */

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const weft_reduce_attributes *attributes = call->attributes;
    const weft_view *in = &call->in[0], *out = &call->out[0];
    const int width = weft_combine_width(attributes->combine);
    const int n_kept = out->shape.n_dims - (width > 1); /* a state is the last dim */
    cuda_reduction *r = *prepared = weft_arena_take(arena, sizeof *r);
    if (r == NULL) return weft_fail_memory(error, sizeof *r);
    *r = (cuda_reduction){.out = out->data, .in = in->data, .n_inner = 1};
    r->n_out = weft_view_count(out) / width;
    for (int d = 0; d < n_kept; d++) {
        const char *name = out->shape.dims[d].name;
        cuda_nest_add(&r->outer, weft_view_size(out, d), cuda_stride_of(out, name) / width,
                      cuda_stride_of(in, name), 0);
    }
    for (int d = 0; d < in->shape.n_dims; d++) {
        const char *name = in->shape.dims[d].name;
        if (weft_shape_find(&out->shape, name) >= 0) continue;
        const bool is_index =
            attributes->combine == WEFT_ARGMAX && d == weft_shape_find(&in->shape, attributes->dim);
        cuda_nest_add(&r->inner, weft_view_size(in, d), 0, cuda_stride_of(in, name), is_index);
        r->n_inner *= weft_view_size(in, d);
        if (is_index) r->first_index = in->box.begin[d];
    }
    return WEFT_OK;
}

static bool takes(const weft_call *call)
{
    const weft_reduce_attributes *attributes = call->attributes;
    return (int)attributes->combine < COMBINE_KINDS &&
           reductions[attributes->combine][call->in[0].dtype].name != NULL;
}

/* A block a row; short rows have small ones, of a power of two. */
static void launch(const weft_call *call)
{
    enum { MOST_BLOCKS = 1 << 16 };
    const weft_reduce_attributes *attributes = call->attributes;
    const cuda_reduction *r = call->prepared;
    int n_threads = 32;
    while (n_threads < KERNEL_THREADS && n_threads < r->n_inner)
        n_threads *= 2;
    cuda_launch_blocks(call->stream, WEFT_COMPUTE,
                       &reductions[attributes->combine][call->in[0].dtype],
                       r->n_out < MOST_BLOCKS ? r->n_out : MOST_BLOCKS, n_threads, r);
}

/* ---- finishes -------------------------------------------------------------------------------- */

static weft_status prepare_finish(const weft_call *call, weft_arena *arena, void **prepared,
                                  weft_error *error)
{
    const weft_view *state = &call->in[0], *y = &call->out[0], *z = &call->out[call->n_out - 1];
    const int64_t width = weft_view_size(state, state->shape.n_dims - 1);
    cuda_finishing *f = *prepared = weft_arena_take(arena, sizeof *f);
    if (f == NULL) return weft_fail_memory(error, sizeof *f);
    *f = (cuda_finishing){.state = state->data, .n = weft_view_count(y)};
    f->out[0] = y->data;
    f->out[1] = call->n_out > 1 ? z->data : NULL;
    for (int d = 0; d < y->shape.n_dims; d++) {
        const char *name = y->shape.dims[d].name;
        cuda_nest_add(&f->nest, weft_view_size(y, d), cuda_stride_of(state, name) / width,
                      cuda_stride_of(y, name), cuda_stride_of(z, name));
    }
    return WEFT_OK;
}

static weft_status prepare_moments(const weft_call *call, weft_arena *arena, void **prepared,
                                   weft_error *error)
{
    const weft_number_attributes *attributes = call->attributes;
    WEFT_TRY(prepare_finish(call, arena, prepared, error));
    ((cuda_finishing *)*prepared)->number = attributes->number;
    return WEFT_OK;
}

static void launch_finish(const weft_call *call, int kind)
{
    const cuda_finishing *f = call->prepared;
    cuda_launch(call->stream, WEFT_COMPUTE, &finishes[kind][call->in[0].dtype], f->n, f);
}

static void launch_lse(const weft_call *call)
{
    launch_finish(call, COMBINE_lse);
}
static void launch_argmax(const weft_call *call)
{
    launch_finish(call, COMBINE_argmax);
}
static void launch_moments(const weft_call *call)
{
    launch_finish(call, COMBINE_moments);
}

weft_status cuda_reductions_open(weft_device_kind device, weft_error *error)
{
    static const char *const ops[] = {"sum",       "reduce_max",   "reduce_prod",
                                      "lse_state", "argmax_state", "moments_state"};
    const weft_kernel reduces = {
        .dtypes = WEFT_WIDE_DTYPES, .takes = takes, .prepare = prepare, .launch = launch};
    const weft_kernel lse = {
        .dtypes = WEFT_FLOAT_DTYPES, .prepare = prepare_finish, .launch = launch_lse};
    const weft_kernel argmax = {.dtypes = WEFT_FLOAT_DTYPES | WEFT_DTYPE_BIT(WEFT_I32),
                                .prepare = prepare_finish,
                                .launch = launch_argmax};
    const weft_kernel moments = {
        .dtypes = WEFT_FLOAT_DTYPES, .prepare = prepare_moments, .launch = launch_moments};
    cuda_kernel *all[2 * COMBINE_KINDS * COMBINE_DTYPES];
    const int n = list(finishes, all, list(reductions, all, 0));
    WEFT_TRY(cuda_load_image(cuda_image_reduce, all, n, error));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        WEFT_TRY(cuda_add_kernel(ops[i], reduces, device, error));
    WEFT_TRY(cuda_add_kernel("lse_finish", lse, device, error));
    WEFT_TRY(cuda_add_kernel("argmax_finish", argmax, device, error));
    return cuda_add_kernel("moments_finish", moments, device, error);
}
