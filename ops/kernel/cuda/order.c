/* order: rows put in order on the device cuda: tiles by blocks, then runs merged in pairs until there is one. */
#include "order.h"

#include "images.h"
#include "kernels.h"

#include "mesh/cuda/kernel_sizes.h"
#include "weft/arena.h"

static cuda_kernel tiles[WEFT_DTYPES] = {[WEFT_F32] = {"order_f32", NULL},
                                         [WEFT_F64] = {"order_f64", NULL},
                                         [WEFT_I32] = {"order_i32", NULL},
                                         [WEFT_I64] = {"order_i64", NULL}};
static cuda_kernel merges[] = {{"order_merge_32", NULL}, {"order_merge_64", NULL}};

static int64_t runs_of(int64_t n, int64_t run)
{
    return (n + run - 1) / run;
}

static int64_t scratch(const weft_call *call)
{
    const weft_order_attributes *a = call->attributes;
    const int64_t key = (int64_t)weft_dtype_bytes(call->in[0].dtype), place = sizeof(int32_t);
    return a->size <= ORDER_TILE ? 0 : 2 * weft_view_count(&call->in[0]) * (key + place);
}

static weft_status prepare(const weft_call *call, weft_arena *arena, void **prepared,
                           weft_error *error)
{
    const weft_order_attributes *a = call->attributes;
    const weft_view *in = &call->in[0];
    cuda_ordering *o = *prepared = weft_arena_take(arena, sizeof *o);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    *o = (cuda_ordering){.x = in->data,
                         .to = call->out[0].data,
                         .n = a->size,
                         .count = a->count,
                         .inner = cuda_stride_of(in, a->dim),
                         .n_rows = weft_view_count(in) / a->size,
                         .n_runs = runs_of(a->size, ORDER_TILE),
                         .descending = a->descending};
    if (o->n_runs == 1) return WEFT_OK;
    const int64_t count = o->n_rows * o->n, bytes = (int64_t)weft_dtype_bytes(in->dtype);
    for (int i = 0; i < 2; i++) {
        o->keys[i] = (char *)call->scratch + i * count * bytes;
        o->places[i] = (int32_t *)(void *)((char *)call->scratch + 2 * count * bytes) + i * count;
    }
    return WEFT_OK;
}

static void order_tiles(const weft_call *call, const cuda_ordering *o)
{
    enum { MOST_BLOCKS = 1 << 16 };
    const int64_t n = o->n_rows * o->n_runs;
    int n_threads = 32;
    while (n_threads < KERNEL_THREADS && 2 * n_threads < o->n)
        n_threads *= 2;
    cuda_launch_blocks(call->stream, WEFT_COMPUTE, &tiles[call->in[0].dtype],
                       n < MOST_BLOCKS ? n : MOST_BLOCKS, n_threads, o);
}

/* Run after run is twice as long. */
static void launch(const weft_call *call)
{
    cuda_ordering o = *(const cuda_ordering *)call->prepared;
    const cuda_kernel *merge = &merges[weft_dtype_bytes(call->in[0].dtype) == 8];
    order_tiles(call, &o);
    for (o.run = ORDER_TILE; o.run < o.n; o.run *= 2, o.from = 1 - o.from) {
        o.n_runs = runs_of(o.n, o.run);
        o.kept = o.count < o.run ? o.count : o.run;
        o.is_last = o.n_runs <= 2;
        cuda_launch(call->stream, WEFT_COMPUTE, merge, o.n_rows * o.n_runs * o.kept, &o);
    }
}

weft_status cuda_ordering_open(weft_device_kind device, weft_error *error)
{
    cuda_kernel *all[WEFT_DTYPES + 2];
    int n = cuda_list_kernels(tiles, WEFT_DTYPES, all);
    n += cuda_list_kernels(merges, 2, all + n);
    WEFT_TRY(cuda_load_image(cuda_image_order, all, n, error));
    return cuda_add_kernel(
        "order",
        (weft_kernel){
            .dtypes = WEFT_WIDE_DTYPES, .scratch = scratch, .prepare = prepare, .launch = launch},
        device, error);
}
