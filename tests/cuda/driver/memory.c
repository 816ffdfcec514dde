/* memory: one file in memory, mapped twice: what is handed out nobody may touch, and kernels find it at a constant distance.
 *
 * Fresh memory is full of NaNs, is never handed out again, and ends where a page ends: who goes past is ended by a signal.
 */
#include "parts.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGN = 256, MAX_BLOCKS = 1 << 14 /* at once */ };
#define ROOM ((size_t)1 << 38)                   /* of addresses */
static const size_t PART = ROOM / EMULATED_GPUS; /* each GPU's */
static char *handed, *real;
static size_t used[EMULATED_GPUS], taken[EMULATED_GPUS];
int emulated_working = -1;

typedef struct block {
    char *at;
    size_t bytes;
    bool is_pinned;
} block;
static block blocks[MAX_BLOCKS]; /* that are taken */
static int n_blocks;
long long emulated_taken;

__attribute__((constructor)) static void open_memory(void)
{
    const int file = memfd_create("emulated GPU", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)ROOM) != 0) emulated_die("no memory file");
    handed = mmap(NULL, ROOM, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    real = mmap(NULL, ROOM, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (handed == MAP_FAILED || real == MAP_FAILED) emulated_die("no addresses");
    close(file);
}

bool emulated_is_handed(const void *at)
{
    return (const char *)at >= handed && (const char *)at < handed + ROOM;
}

void *emulated_at(const void *at)
{
    if (!emulated_is_handed(at)) return (void *)(uintptr_t)at;
    const size_t from = (size_t)((const char *)at - handed);
    if (emulated_working >= 0 && from / PART != (size_t)emulated_working)
        emulated_die("a GPU uses memory of another");
    return real + from;
}

static block *block_of(const void *at)
{
    for (int i = n_blocks - 1; i >= 0; i--)
        if ((const char *)at >= blocks[i].at && (const char *)at < blocks[i].at + blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

bool emulated_is_pinned(const void *at)
{
    const block *b = block_of(at);
    return b != NULL && b->is_pinned;
}

bool emulated_is_alive(const void *at, size_t bytes)
{
    const block *b = block_of(at);
    if (!emulated_is_handed(at)) return true;
    return b != NULL && (const char *)at + bytes <= b->at + b->bytes;
}

static size_t total(void)
{
    return (size_t)emulated_number("TEST_CUDA_MEMORY", 4096) << 20;
}

static void add(char *at, size_t bytes, bool is_pinned)
{
    if (n_blocks == MAX_BLOCKS) emulated_die("too many blocks of memory");
    blocks[n_blocks++] = (block){at, bytes, is_pinned};
    emulated_taken++;
}

/* Programs take and give as often as they like. */
static void take_out(block *b)
{
    *b = blocks[--n_blocks];
}

EXPORT CUresult cuMemAlloc(CUdeviceptr *to, size_t bytes)
{
    const CUresult entered = emulated_enter("cuMemAlloc");
    if (entered != CUDA_SUCCESS) return entered;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&emulated_lock);
    const int g = emulated_device();
    const size_t held = (bytes + ALIGN - 1) / ALIGN * ALIGN,
                 pages = (held + PAGE - 1) / PAGE * PAGE, begin = (size_t)g * PART + used[g];
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes <= total() && taken[g] + held <= total() && used[g] + pages + PAGE <= PART &&
        mprotect(real + begin, pages, PROT_READ | PROT_WRITE) == 0) {
        char *at = handed + begin + pages - held;
        memset(emulated_at(at), 0xFF, held);
        add(at, bytes, false);
        used[g] += pages + PAGE;
        taken[g] += held;
        *to = (CUdeviceptr)(uintptr_t)at;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&emulated_lock);
    return result;
}

/* What is still to be done with it is done first, as the driver does it. */
EXPORT CUresult cuMemFree(CUdeviceptr memory)
{
    const CUresult entered = emulated_enter("cuMemFree");
    if (entered != CUDA_SUCCESS) return entered;
    pthread_mutex_lock(&emulated_lock);
    emulated_drain();
    block *b = block_of((void *)(uintptr_t)memory);
    const bool is_right = b != NULL && !b->is_pinned && b->at == (char *)(uintptr_t)memory;
    if (is_right) {
        const size_t held = (b->bytes + ALIGN - 1) / ALIGN * ALIGN;
        char *page = real + (b->at - handed) / PAGE * PAGE;
        const size_t pages = (size_t)((char *)emulated_at(b->at) + held - page);
        taken[(size_t)(b->at - handed) / PART] -= held;
        madvise(page, pages, MADV_REMOVE);
        mprotect(page, pages, PROT_NONE);
        take_out(b);
    }
    pthread_mutex_unlock(&emulated_lock);
    return is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemGetInfo(size_t *free_now, size_t *all)
{
    const CUresult entered = emulated_enter("cuMemGetInfo");
    *all = total();
    if (entered == CUDA_SUCCESS) *free_now = *all - taken[emulated_device()];
    return entered;
}

EXPORT CUresult cuMemHostAlloc(void **to, size_t bytes, unsigned flags)
{
    const CUresult entered = emulated_enter("cuMemHostAlloc");
    if (entered != CUDA_SUCCESS) return entered;
    (void)flags;
    *to = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (*to == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*to, 0xFF, bytes);
    pthread_mutex_lock(&emulated_lock);
    add(*to, bytes, true);
    pthread_mutex_unlock(&emulated_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *memory)
{
    const CUresult entered = emulated_enter("cuMemFreeHost");
    if (entered != CUDA_SUCCESS) return entered;
    pthread_mutex_lock(&emulated_lock);
    emulated_drain();
    block *b = block_of(memory);
    const bool is_right = b != NULL && b->is_pinned && b->at == (char *)memory;
    if (is_right) take_out(b);
    pthread_mutex_unlock(&emulated_lock);
    if (is_right) free(memory);
    return is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
