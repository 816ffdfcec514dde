/* launch: threads of a block as fibers, one after the other in any order, each until it ends or meets the others. */
#include "parts.h"

#include <ucontext.h>

_Thread_local emulated_thread emulated;

enum { MAX_KERNELS = 4096, MAX_THREADS = 1024, STACK = 64 << 10 };
static const emulated_kernel *kernels[MAX_KERNELS];
static int n_kernels;

void emulated_add(const emulated_kernel *kernel)
{
    if (n_kernels == MAX_KERNELS) emulated_die("too many kernels");
    kernels[n_kernels++] = kernel;
}

const emulated_kernel *emulated_find(const char *name)
{
    for (int k = n_kernels - 1; k >= 0; k--)
        if (strcmp(kernels[k]->name, name) == 0) return kernels[k];
    return NULL;
}

/* ---- a block --------------------------------------------------------------------------------- */

typedef enum fiber_state { READY, MEETS, OVER } fiber_state;
typedef struct fiber {
    ucontext_t context;
    fiber_state state;
    char *stack;
} fiber;

static fiber fibers[MAX_THREADS];
static ucontext_t scheduler;
static const emulated_kernel *running; /* under the driver's lock */
static const void *running_work;

static void begin(void)
{
    running->run(running_work);
    fibers[emulated.in_block].state = OVER;
}

void emulated_sync(void)
{
    fiber *f = &fibers[emulated.in_block];
    const emulated_thread self = emulated;
    f->state = MEETS;
    swapcontext(&f->context, &scheduler);
    emulated = self;
}

static void make_fiber(fiber *f)
{
    if (f->stack == NULL) f->stack = malloc(STACK);
    if (f->stack == NULL) emulated_die("no memory for fibers");
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = &scheduler;
    makecontext(&f->context, begin, 0);
    f->state = READY;
}

static int count(int n, fiber_state state)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += fibers[i].state == state;
    return found;
}

/* All that may run until they end or meet, from a random one on, forwards or backwards. */
static void run_ready(int n, int64_t block, int64_t blocks)
{
    const int first = (int)emulated_random((uint32_t)n), step = emulated_random(2) ? 1 : n - 1;
    for (int i = 0, at = first; i < n; i++, at = (at + step) % n) {
        if (fibers[at].state != READY) continue;
        emulated = (emulated_thread){at, n, block, blocks};
        swapcontext(&scheduler, &fibers[at].context);
    }
}

static void run_block(int n, int64_t block, int64_t blocks)
{
    for (int i = 0; i < n; i++)
        make_fiber(&fibers[i]);
    while (count(n, OVER) < n) {
        run_ready(n, block, blocks);
        if (count(n, OVER) == n) return;
        if (count(n, MEETS) < n)
            emulated_die("a part of a block's threads meets, and others have ended");
        for (int i = 0; i < n; i++)
            fibers[i].state = READY;
    }
}

void emulated_launch(const emulated_kernel *kernel, int64_t blocks, int threads, const void *work)
{
    if (threads > MAX_THREADS || threads < 1 || blocks < 1) emulated_die("so many threads");
    running = kernel;
    running_work = work;
    const int64_t first = emulated_random((uint32_t)blocks);
    for (int64_t b = 0; b < blocks; b++)
        run_block(threads, (first + b) % blocks, blocks);
}
