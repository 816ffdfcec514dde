/* blas: one thread per BLAS call, and the kernel that this processor deserves.
 *
 * OpenBLAS chooses its kernel by processor model. One that is newer than the library falls back to
 * a kernel for processors of twenty years ago (Prescott: SSE3), 4.4 to 4.7 times slower. The choice
 * is made in the library's constructor, before main; but it can be made again:
 * gotoblas_dynamic_quit and _init read OPENBLAS_CORETYPE anew. All symbols are weak: with another
 * BLAS nothing is done.
 *
 * The library's own threads, which it starts as it is loaded, have nothing to do here, and look for work for 30 ms before
 * they sleep: that is the time a small program needs to start, so they are ended.
 *
 * A call packs its operands into one of the library's buffers, which are made when more calls than
 * before are under way at once, and kept. When the system refuses the memory, the library asks
 * again, for ever. So the buffers are made before anything runs, each after its room was found.
 */
#include "mesh_internal.h"
#include "text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WEAK __attribute__((weak))
extern char *openblas_get_corename(void) WEAK;
extern char *openblas_get_config(void) WEAK;
extern void openblas_set_num_threads(int n) WEAK;
extern void gotoblas_dynamic_quit(void) WEAK;
extern void gotoblas_dynamic_init(void) WEAK;
extern int blas_thread_shutdown_(void) WEAK;
extern void *blas_memory_alloc(int position) WEAK;
extern void blas_memory_free(void *buffer) WEAK;

/* Kernels without AVX2: right only for processors that have none. */
static const char *const old_kernels[] = {
    "Generic", "Katmai", "Coppermine", "Northwood",    "Prescott",      "Banias",    "Atom",
    "Core2",   "Penryn", "Dunnington", "Nehalem",      "Sandybridge",   "Nano",      "Athlon",
    "Opteron", "Bobcat", "Barcelona",  "Opteron_SSE3", "Opteron(SSE3)", "Bulldozer", "Piledriver",
};

static const char variable[] = "OPENBLAS_CORETYPE";
static char kernel_found[32], name[48];
static pthread_once_t started = PTHREAD_ONCE_INIT;

const char *weft_blas_kernel_wanted(const char *found, bool has_avx2, bool has_avx512)
{
    for (size_t i = 0; i < sizeof old_kernels / sizeof old_kernels[0]; i++) {
        if (!weft_text_is_alike(found, old_kernels[i])) continue;
        if (has_avx512) return "SkylakeX";
        return has_avx2 ? "Haswell" : NULL;
    }
    return NULL;
}

const char *weft_blas_kernel(void)
{
    return openblas_get_corename != NULL ? openblas_get_corename() : "";
}

static void choose_again(void)
{
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
}

bool weft_blas_use_kernel(const char *kernel)
{
    if (gotoblas_dynamic_quit == NULL || gotoblas_dynamic_init == NULL) return false;
    const char *value = getenv(variable);
    char *before = value != NULL ? strdup(value) : NULL;
    if (setenv(variable, kernel, 1) == 0) choose_again();
    bool is_done = weft_text_is_alike(weft_blas_kernel(), kernel);
    if (!is_done) {
        if (before != NULL)
            setenv(variable, before, 1);
        else
            unsetenv(variable);
        choose_again();
    }
    free(before);
    return is_done;
}

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." without what follows the version. */
static void read_name(void)
{
    const char *config = openblas_get_config != NULL ? openblas_get_config() : "unknown";
    size_t length = strcspn(config, " ");
    if (config[length] == ' ') length += 1 + strcspn(config + length + 1, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, config);
}

static void start(void)
{
    bool has_avx2 = false, has_avx512 = false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    snprintf(kernel_found, sizeof kernel_found, "%s", weft_blas_kernel());
    read_name();
    if (openblas_set_num_threads != NULL) openblas_set_num_threads(1);
    if (blas_thread_shutdown_ != NULL) blas_thread_shutdown_();
    const char *chosen = getenv(variable);
    if (chosen != NULL && chosen[0] != '\0') return;
    const char *wanted = weft_blas_kernel_wanted(kernel_found, has_avx2, has_avx512);
    if (wanted != NULL) weft_blas_use_kernel(wanted);
}

void weft_blas_start(void)
{
    pthread_once(&started, start);
}

/* OpenBLAS's BUFFER_SIZE where it picks its kernel at run time. Only what is touched takes memory. */
static const size_t BUFFER = (size_t)128 << 20;
enum { MOST_BUFFERS = 128 }; /* a library built for fewer callers at once has fewer */

weft_status weft_blas_reserve(int n_callers, weft_error *error)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static int n_made;
    void *buffers[MOST_BUFFERS];
    int n = 0;
    if (blas_memory_alloc == NULL || blas_memory_free == NULL) return WEFT_OK;
    if (n_callers > MOST_BUFFERS) n_callers = MOST_BUFFERS;
    pthread_mutex_lock(&mutex);
    while (n < n_callers && (n < n_made || weft_has_free_memory(BUFFER)))
        buffers[n++] = blas_memory_alloc(0);
    if (n > n_made) n_made = n;
    for (int i = 0; i < n; i++)
        blas_memory_free(buffers[i]);
    pthread_mutex_unlock(&mutex);
    if (n == n_callers) return WEFT_OK;
    return weft_fail(error, WEFT_MEMORY,
                     "could not reserve %zu bytes for products of matrices, the buffer of lane %d "
                     "of %d; use fewer ranks or lanes, or raise the limit on memory",
                     BUFFER, n + 1, n_callers);
}

const char *weft_blas_kernel_found(void)
{
    return kernel_found;
}

const char *weft_blas_name(void)
{
    return name;
}
