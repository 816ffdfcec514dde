/* launch: threads of a block as fibers, one after the other in any order, each until it ends or meets the others. */
#include "parts.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>

_Thread_local emulated_thread emulated;

enum { MAX_KERNELS = 4096, MAX_THREADS = 1024, STACK = 64 << 10 };
static const emulated_kernel *kernels[MAX_KERNELS];
static atomic_int n_kernels;

void emulated_add(const emulated_kernel *kernel)
{
    const int at = atomic_fetch_add(&n_kernels, 1);
    if (at >= MAX_KERNELS) emulated_die("too many kernels");
    kernels[at] = kernel;
}

const emulated_kernel *emulated_find(const char *name)
{
    for (int k = n_kernels - 1; k >= 0; k--)
        if (kernels[k] != NULL && strcmp(kernels[k]->name, name) == 0) return kernels[k];
    return NULL;
}

/* ---- a block --------------------------------------------------------------------------------- */

typedef enum fiber_state { READY, MEETS, OVER } fiber_state;
typedef struct fiber {
    /* where it goes on; once made a fiber runs one thread after the other, and never ends */
    jmp_buf at;
    fiber_state state;
    bool is_made;
} fiber;

static fiber fibers[MAX_THREADS];
static jmp_buf scheduler;
static const emulated_kernel *running; /* under the driver's lock */
static const void *running_work;
static fiber *made;

/* Back to the scheduler, which goes on with it some time. */
__attribute__((noinline)) static void leave(fiber *f)
{
    if (_setjmp(f->at) == 0) _longjmp(scheduler, 1);
}

static void live(void)
{
    fiber *f = made;
    for (;;) {
        running->run(running_work);
        f->state = OVER;
        leave(f);
    }
}

void emulated_sync(void)
{
    fiber *f = &fibers[emulated.in_block];
    const emulated_thread self = emulated;
    f->state = MEETS;
    leave(f);
    emulated = self;
}

/* On a stack of its own, which stays the thread's. */
static void make_fiber(fiber *f)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp =
        mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    context.uc_stack.ss_size = STACK;
    context.uc_link = NULL;
    if (context.uc_stack.ss_sp == MAP_FAILED) emulated_die("no memory for fibers");
    makecontext(&context, live, 0);
    made = f;
    f->is_made = true;
    setcontext(&context);
}

__attribute__((noinline)) static void enter(fiber *f)
{
    if (_setjmp(scheduler) != 0) return;
    if (f->is_made) _longjmp(f->at, 1);
    make_fiber(f);
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
        enter(&fibers[at]);
    }
}

static void run_block(int n, int64_t block, int64_t blocks)
{
    for (int i = 0; i < n; i++)
        fibers[i].state = READY;
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
