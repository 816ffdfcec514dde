/* loop: loops of element ops on the device cuda: each segment one kernel, compiled when it is bound. */
#include "compile.h"
#include "kernels.h"
#include "loop_text.h"

#include <stdlib.h>

#include "mesh/cuda/kernel_sizes.h"
#include "weft/extend/op.h"

typedef struct one {
    const cuda_kernel *kernel;
    int64_t *words; /* the kernel's argument */
    int64_t n_rows, n;
    int n_threads; /* of a row's block */
} one;

typedef struct bound_loop {
    weft_stream *stream;
    int n;
    one each[];
} bound_loop;

/* As many as the row has elements, a power of two: so the row's length decides in which order it is added up. */
static int threads_of(int64_t n)
{
    int threads = 32;
    while (threads < KERNEL_THREADS && threads < n)
        threads *= 2;
    return threads;
}

static weft_status bind_segment(const weft_loop *loop, const weft_loop_segment *segment,
                                weft_arena *arena, bound_loop *b, weft_error *error)
{
    cuda_loop_text text;
    one *o = &b->each[b->n];
    WEFT_TRY(cuda_loop_write(loop, segment, &text, error));
    const size_t bytes = (size_t)text.n_words * sizeof *o->words;
    weft_status status = WEFT_OK;
    o->n = text.n, o->n_rows = text.n_rows, o->n_threads = threads_of(text.n);
    o->words = weft_arena_copy(arena, text.words, bytes);
    if (o->words == NULL) status = weft_fail_memory(error, bytes);
    const bool is_empty = segment->n_row_dims > 0 ? text.n_rows == 0 : text.n == 0;
    if (status == WEFT_OK && !is_empty)
        status = cuda_compile_loop(text.body, text.n_words, &o->kernel, error);
    b->n += status == WEFT_OK && !is_empty;
    free(text.body), free(text.words);
    return status;
}

/* All of a loop's elements are the first part's. */
static weft_status bind(const weft_loop *loop, weft_loop_part part, weft_stream *stream,
                        weft_arena *arena, void **bound, weft_error *error)
{
    const size_t bytes = sizeof(bound_loop) + (size_t)loop->n_segments * sizeof(one);
    bound_loop *b = *bound = weft_arena_take(arena, bytes);
    if (b == NULL) return weft_fail_memory(error, bytes);
    b->stream = stream;
    for (int s = 0; part.index == 0 && s < loop->n_segments; s++)
        WEFT_TRY(bind_segment(loop, &loop->segment[s], arena, b, error));
    return WEFT_OK;
}

static void run(void *bound, uint64_t number, int64_t trip)
{
    enum { MOST_BLOCKS = 1 << 16 };
    bound_loop *b = bound;
    const void *cell = cuda_keep_cell(b->stream);
    if (cell != NULL) number &= ~(uint64_t)UINT32_MAX; /* the run's own is in the cell */
    for (int k = 0; k < b->n; k++) {
        one *o = &b->each[k];
        o->words[CUDA_LOOP_RUN] = (int64_t)number;
        o->words[CUDA_LOOP_TRIP] = trip;
        o->words[CUDA_LOOP_CELL] = (int64_t)(uintptr_t)cell;
        if (o->n_rows > 0)
            cuda_launch_blocks(b->stream, WEFT_COMPUTE, o->kernel,
                               o->n_rows < MOST_BLOCKS ? o->n_rows : MOST_BLOCKS, o->n_threads,
                               o->words);
        else
            cuda_launch(b->stream, WEFT_COMPUTE, o->kernel, o->n, o->words);
    }
}

weft_status cuda_loops_open(weft_device_kind device, weft_error *error)
{
    const weft_loop_driver driver = {
        .size = sizeof driver, .device = device, .bind = bind, .run = run};
    return weft_extend_loops(&driver, error);
}
