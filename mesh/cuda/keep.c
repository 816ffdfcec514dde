/* keep: what is put onto the queue of kernels, kept as a graph of the driver's and done again as one thing.
 *
 * Nothing of it may depend on the run but the run's number, which kernels find in a cell of the GPU's memory. WEFT_CUDA_GRAPHS=0 keeps
 * nothing, so that each kernel is a call of its own, as a debugger wants it.
 */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

struct weft_kept {
    CUgraphExec graph;
};

static bool is_wanted(void)
{
    const char *said = getenv("WEFT_CUDA_GRAPHS");
    return said == NULL || strcmp(said, "0") != 0;
}

const void *cuda_keep_cell(weft_stream *stream)
{
    const cuda_stream *s = cuda_stream_of(stream);
    return s->keep.is_on ? (const void *)(uintptr_t)s->keep.cell : NULL;
}

static weft_status make_cell(cuda_stream *s, weft_error *error)
{
    return s->keep.cell != 0
               ? WEFT_OK
               : cuda_check(cuda.cuMemAlloc(&s->keep.cell, sizeof(uint32_t)), "cuMemAlloc", error);
}

bool cuda_keep_begin(weft_stream *stream, weft_error *why)
{
    cuda_stream *s = cuda_stream_of(stream);
    if (!is_wanted()) return weft_fail(why, WEFT_USAGE, "WEFT_CUDA_GRAPHS is 0") == WEFT_OK;
    cuda_queue *q = cuda_queue_for(stream, WEFT_COMPUTE);
    if (q == NULL || make_cell(s, why) != WEFT_OK) return false;
    pthread_mutex_lock(&s->keep.lock);
    s->keep.error = (weft_error){WEFT_OK, -1, ""};
    s->keep.is_on =
        cuda_check(cuda.cuStreamBeginCapture(q->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   "cuStreamBeginCapture", why) == WEFT_OK;
    if (!s->keep.is_on) pthread_mutex_unlock(&s->keep.lock);
    return s->keep.is_on;
}

/* The graph is the driver's to end, whatever went wrong in between. */
static weft_status end(cuda_stream *s, CUgraph *graph, weft_error *why)
{
    const CUresult result = cuda.cuStreamEndCapture(s->queues[WEFT_COMPUTE].stream, graph);
    const weft_error first = s->keep.error;
    if (first.status != WEFT_OK) return weft_fail(why, first.status, "%s", first.message);
    WEFT_TRY(cuda_check(result, "cuStreamEndCapture", why));
    return *graph != NULL ? WEFT_OK : weft_fail(why, WEFT_INTERNAL, "nothing was put");
}

weft_kept *cuda_keep_end(weft_stream *stream, weft_error *why)
{
    cuda_stream *s = cuda_stream_of(stream);
    CUgraph graph = NULL;
    weft_kept *kept = calloc(1, sizeof *kept);
    weft_status status = end(s, &graph, why);
    s->keep.is_on = false;
    pthread_mutex_unlock(&s->keep.lock);
    if (status == WEFT_OK && kept == NULL) status = weft_fail_memory(why, sizeof *kept);
    if (status == WEFT_OK)
        status =
            cuda_check(cuda.cuGraphInstantiate(&kept->graph, graph, 0), "cuGraphInstantiate", why);
    if (graph != NULL) (void)cuda.cuGraphDestroy(graph);
    if (status == WEFT_OK) return kept;
    free(kept);
    return NULL;
}

/* An event behind each, as it may take as long as many calls. */
void cuda_keep_run(weft_stream *stream, weft_kept *kept, uint32_t run)
{
    cuda_stream *s = cuda_stream_of(stream);
    cuda_queue *q = cuda_queue_for(stream, WEFT_COMPUTE);
    if (q == NULL) return;
    cuda_put(stream, q, cuda.cuMemsetD32Async(s->keep.cell, run, 1, q->stream), "cuMemsetD32Async");
    cuda_put(stream, q, cuda.cuGraphLaunch(kept->graph, q->stream), "cuGraphLaunch");
    cuda_mark(stream, q);
}

void cuda_keep_drop(weft_stream *stream, weft_kept **kept)
{
    if (*kept == NULL) return;
    (void)cuda_enter_gpu(cuda_stream_of(stream)->gpu);
    (void)cuda.cuGraphExecDestroy((*kept)->graph);
    free(*kept);
    *kept = NULL;
}
