/* streams: what was put onto them is done when somebody waits, or now and then, in any order that they and events allow. */
#include "parts.h"

#include <unistd.h>

typedef struct CUevent_st {
    uint64_t recorded, done;
} event;

typedef struct command command;
struct command {
    command *next;
    uint64_t order; /* among all */
    void (*run)(command *c);
    bool (*poll)(
        void *argument); /* of other libraries: goes on without waiting; true: it is done */
    void *argument;
    event *event; /* to be done, or to wait for */
    uint64_t number;
    bool waits;
    void *to;
    const void *from; /* `copied`: of the host, as it was */
    size_t bytes;
    int value;
    const emulated_kernel *kernel;
    int64_t blocks;
    int threads;
    size_t room; /* bytes of `copied` */
    char copied[];
};

/* What is put onto a stream while it is captured; and what is made of it to be done again. */
struct CUgraph_st {
    command *first, **last;
};

typedef struct CUstream_st {
    int device;
    bool may_run; /* now */
    command *first, **last;
    struct CUgraph_st *captured; /* NULL: what is put is done */
    struct CUstream_st *next;
} stream;

static stream *streams;
static uint64_t order, newest_done;
static long long n_done, n_overtaken, n_again;
_Thread_local bool emulated_captures;

/* ---- doing ----------------------------------------------------------------------------------- */

static int n_polled(void)
{
    int n = 0;
    for (const stream *s = streams; s != NULL; s = s->next)
        n += s->first != NULL && s->first->poll != NULL;
    return n;
}

/* What waits for other processes goes on a little, and may be done by that. */
static bool may_run(stream *s)
{
    command *c = s->first;
    if (c == NULL || (c->waits && c->event->done < c->number)) return false;
    if (c->poll == NULL) return true;
    emulated_working = s->device;
    if (c->poll(c->argument)) c->poll = NULL;
    emulated_working = -1;
    return c->poll == NULL;
}

static void do_first(stream *s)
{
    command *c = s->first;
    s->first = c->next;
    if (s->first == NULL) s->last = &s->first;
    emulated_working = s->device;
    if (c->run != NULL) c->run(c);
    emulated_working = -1;
    if (c->event != NULL && !c->waits && c->number > c->event->done) c->event->done = c->number;
    n_done++;
    n_overtaken += c->order < newest_done;
    if (c->order > newest_done) newest_done = c->order;
    free(c);
}

/* One command, any that may be next; false: there is none. */
static bool step(void)
{
    int n = 0, n_waiting = 0;
    for (stream *s = streams; s != NULL; s = s->next) {
        s->may_run = may_run(s);
        n += s->may_run;
        n_waiting += s->first != NULL && s->first->poll == NULL;
    }
    if (n == 0 && n_waiting > 0 && n_polled() == 0) emulated_die("the streams wait for each other");
    int which = n > 0 ? (int)emulated_random((uint32_t)n) : -1;
    for (stream *s = streams; s != NULL; s = s->next)
        if (s->may_run && which-- == 0) {
            do_first(s);
            return true;
        }
    return false;
}

/* Until then other threads may put something onto their streams, and other processes too. */
static void step_or_rest(void)
{
    if (step()) return;
    pthread_mutex_unlock(&emulated_lock);
    usleep(20);
    pthread_mutex_lock(&emulated_lock);
}

static bool has_any(void)
{
    for (const stream *s = streams; s != NULL; s = s->next)
        if (s->first != NULL) return true;
    return false;
}

void emulated_drain(void)
{
    while (has_any())
        step_or_rest();
}

/* ---- putting --------------------------------------------------------------------------------- */

static command *make(size_t copied)
{
    command *c = calloc(1, sizeof *c + copied);
    if (c == NULL) emulated_die("no memory for a command");
    c->room = copied;
    return c;
}

/* The driver is never told to use its usual stream, which waits for all others. */
static CUresult put(CUstream s, command *c)
{
    if (s == NULL) emulated_die("the usual stream is used");
    if (s->device != emulated_device())
        emulated_die("a stream is used in the context of another GPU");
    if (s->captured != NULL) {
        *s->captured->last = c;
        s->captured->last = &c->next;
        return CUDA_SUCCESS;
    }
    pthread_mutex_lock(&emulated_lock);
    c->order = ++order;
    *s->last = c;
    s->last = &c->next;
    for (uint32_t n = emulated_random(4) == 0 ? emulated_random(3) : 0; n > 0; n--)
        (void)step();
    pthread_mutex_unlock(&emulated_lock);
    return CUDA_SUCCESS;
}

static void check(const void *at, size_t bytes, const char *what)
{
    if (!emulated_is_alive(at, bytes)) emulated_die(what);
}

static void run_copy(command *c)
{
    check(c->to, c->bytes, "a copy goes to memory that is not taken");
    check(c->from, c->bytes, "a copy comes from memory that is not taken");
    memcpy(emulated_at(c->to), emulated_at(c->from), c->bytes);
}

static CUresult put_copy(CUstream s, void *to, const void *from, size_t bytes, bool is_kept)
{
    command *c = make(is_kept ? bytes : 0);
    if (is_kept) memcpy(c->copied, from, bytes);
    c->run = run_copy;
    c->to = to;
    c->from = is_kept ? c->copied : from;
    c->bytes = bytes;
    return put(s, c);
}

static CUresult synchronize(CUstream s)
{
    pthread_mutex_lock(&emulated_lock);
    while (s->first != NULL)
        step_or_rest();
    pthread_mutex_unlock(&emulated_lock);
    return CUDA_SUCCESS;
}

#define ENTER(name)                                                                                \
    do {                                                                                           \
        const CUresult entered_ = emulated_enter(name);                                            \
        if (entered_ != CUDA_SUCCESS) return entered_;                                             \
    } while (0)

static bool is_known(const void *at)
{
    return emulated_is_handed(at) || emulated_is_pinned(at);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyAsync");
    if (!is_known((void *)(uintptr_t)to) || !is_known((void *)(uintptr_t)from))
        emulated_die("cuMemcpyAsync of memory that the driver does not know");
    return put_copy(s, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, false);
}

/* The host's own memory is read at once, pinned memory later. */
EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyHtoDAsync");
    if (!emulated_is_handed((void *)(uintptr_t)to)) return CUDA_ERROR_INVALID_VALUE;
    return put_copy(s, (void *)(uintptr_t)to, from, bytes, !is_known(from));
}

EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
    ENTER("cuMemcpyDtoHAsync");
    if (!emulated_is_handed((void *)(uintptr_t)from)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = put_copy(s, to, (void *)(uintptr_t)from, bytes, false);
    return is_known(to) ? result : synchronize(s);
}

CUresult emulated_put_polled(CUstream s, bool (*poll)(void *argument), void *argument)
{
    command *c = make(0);
    c->poll = poll;
    c->argument = argument;
    return put(s, c);
}

static void run_set(command *c)
{
    check(c->to, c->bytes, "memory is set that is not taken");
    memset(emulated_at(c->to), c->value, c->bytes);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream s)
{
    ENTER("cuMemsetD8Async");
    command *c = make(0);
    c->run = run_set;
    c->to = (void *)(uintptr_t)to;
    c->value = value;
    c->bytes = bytes;
    return put(s, c);
}

static void run_set_words(command *c)
{
    uint32_t *to = emulated_at(c->to);
    check(c->to, c->bytes, "memory is set that is not taken");
    for (size_t i = 0; i < c->bytes / sizeof *to; i++)
        to[i] = (uint32_t)c->value;
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s)
{
    ENTER("cuMemsetD32Async");
    command *c = make(0);
    c->run = run_set_words;
    c->to = (void *)(uintptr_t)to;
    c->value = (int)value;
    c->bytes = n * sizeof(uint32_t);
    return put(s, c);
}

static void run_kernel(command *c)
{
    emulated_launch(c->kernel, c->blocks, c->threads, c->copied);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                               unsigned threads, unsigned threads_y, unsigned threads_z,
                               unsigned shared, CUstream s, void **arguments, void **extra)
{
    ENTER("cuLaunchKernel");
    (void)shared, (void)extra;
    if (x == 0 || y != 1 || z != 1 || threads == 0 || threads > 1024 || threads_y != 1 ||
        threads_z != 1)
        return CUDA_ERROR_INVALID_VALUE;
    const emulated_kernel *kernel = (const emulated_kernel *)(void *)function;
    command *c = make(kernel->bytes);
    memcpy(c->copied, arguments[0], kernel->bytes);
    c->run = run_kernel;
    c->kernel = kernel;
    c->blocks = x;
    c->threads = (int)threads;
    return put(s, c);
}

/* ---- graphs ------------------------------------------------------------------------------------ */

/* Of the calling thread's stream alone; what else it may call meanwhile driver.c says. */
EXPORT CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode)
{
    ENTER("cuStreamBeginCapture");
    if (s->captured != NULL || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return CUDA_ERROR_INVALID_VALUE;
    s->captured = calloc(1, sizeof *s->captured);
    if (s->captured == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    s->captured->last = &s->captured->first;
    emulated_captures = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *to)
{
    *to = s->captured;
    s->captured = NULL;
    emulated_captures = false;
    const CUresult entered = emulated_enter("cuStreamEndCapture");
    if (entered == CUDA_SUCCESS) return CUDA_SUCCESS;
    (void)cuGraphDestroy(*to);
    *to = NULL;
    return entered;
}

static command *copy_of(const command *c)
{
    command *copy = make(c->room);
    memcpy(copy, c, sizeof *c + c->room);
    copy->next = NULL;
    if (c->from == c->copied) copy->from = copy->copied;
    return copy;
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *to, CUgraph graph, unsigned long long flags)
{
    ENTER("cuGraphInstantiate");
    struct CUgraph_st *exec = calloc(1, sizeof *exec);
    int left = emulated_number("TEST_CUDA_MOST_KEPT", INT32_MAX);
    if (flags != 0 || exec == NULL) return CUDA_ERROR_INVALID_VALUE;
    exec->last = &exec->first;
    for (const command *c = graph->first; c != NULL; c = c->next) {
        if (left-- == 0) emulated_die("a graph of so much gives no sign of life");
        *exec->last = copy_of(c);
        exec->last = &(*exec->last)->next;
    }
    *to = (CUgraphExec)(void *)exec;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream s)
{
    ENTER("cuGraphLaunch");
    const struct CUgraph_st *exec = (const struct CUgraph_st *)(const void *)graph;
    for (const command *c = exec->first; c != NULL; c = c->next)
        (void)put(s, copy_of(c));
    n_again++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    while (graph->first != NULL) {
        command *c = graph->first;
        graph->first = c->next;
        free(c);
    }
    free(graph);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec graph)
{
    ENTER("cuGraphExecDestroy");
    return cuGraphDestroy((CUgraph)(void *)graph);
}

/* ---- streams and events ---------------------------------------------------------------------- */

EXPORT CUresult cuStreamCreate(CUstream *to, unsigned flags)
{
    ENTER("cuStreamCreate");
    stream *s = calloc(1, sizeof *s);
    if (s == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (flags != CU_STREAM_NON_BLOCKING) emulated_die("a stream that waits for the usual one");
    s->last = &s->first;
    s->device = emulated_device();
    pthread_mutex_lock(&emulated_lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&emulated_lock);
    *to = s;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy(CUstream s)
{
    ENTER("cuStreamDestroy");
    (void)synchronize(s);
    pthread_mutex_lock(&emulated_lock);
    stream **at = &streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    pthread_mutex_unlock(&emulated_lock);
    free(s);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream s)
{
    ENTER("cuStreamSynchronize");
    return synchronize(s);
}

EXPORT CUresult cuEventCreate(CUevent *to, unsigned flags)
{
    ENTER("cuEventCreate");
    (void)flags;
    *to = calloc(1, sizeof(event));
    return *to == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* What still waits for it is done first. */
EXPORT CUresult cuEventDestroy(CUevent e)
{
    ENTER("cuEventDestroy");
    pthread_mutex_lock(&emulated_lock);
    emulated_drain();
    pthread_mutex_unlock(&emulated_lock);
    free(e);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent e, CUstream s)
{
    ENTER("cuEventRecord");
    command *c = make(0);
    c->event = e;
    c->number = ++e->recorded;
    return put(s, c);
}

EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    ENTER("cuStreamWaitEvent");
    (void)flags;
    command *c = make(0);
    c->event = e;
    c->number = e->recorded;
    c->waits = true;
    return put(s, c);
}

EXPORT CUresult cuEventQuery(CUevent e)
{
    ENTER("cuEventQuery");
    pthread_mutex_lock(&emulated_lock);
    if (e->done < e->recorded) (void)step();
    const bool is = e->done >= e->recorded;
    pthread_mutex_unlock(&emulated_lock);
    return is ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

__attribute__((destructor)) static void tell(void)
{
    if (getenv("TEST_CUDA_TELL") != NULL)
        fprintf(stderr,
                "emulated GPU: %lld commands, %lld of them overtaken; %lld graphs; memory taken "
                "%lld times\n",
                n_done, n_overtaken, n_again, emulated_taken);
}
