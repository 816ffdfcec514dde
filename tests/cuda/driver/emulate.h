/* emulate.h: kernels (mesh/cuda/kernel_source.h) compiled for the host, and run as a GPU may run them.
 *
 * Blocks come in any order, and so do the threads of a block. A kernel that nobody but emulated_launch calls is known
 * by its name. The GPU's memory is found through GLOBAL alone: a kernel without it is ended by a signal.
 */
#ifndef EMULATE_H
#define EMULATE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct emulated_thread {
    int in_block, block_threads;
    int64_t block, blocks;
} emulated_thread;
/* Modules that are loaded later find these. */
#define EMULATED __attribute__((visibility("default")))
extern EMULATED _Thread_local emulated_thread emulated;

/* Where it can be touched. */
EMULATED void *emulated_at(const void *handed);
/* All threads of the block meet; a block some of whose threads do not come is a fault. */
EMULATED void emulated_sync(void);

typedef struct emulated_kernel {
    const char *name;
    size_t bytes; /* of its argument */
    void (*run)(const void *work);
} emulated_kernel;
EMULATED void emulated_add(const emulated_kernel *kernel);

#define DEVICE          static inline
#define GLOBAL(pointer) emulated_at(pointer)
#define KERNEL(name, type)                                                                         \
    static void name(const type work);                                                             \
    static void name##_run(const void *work)                                                       \
    {                                                                                              \
        name(*(const type *)work);                                                                 \
    }                                                                                              \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        static const emulated_kernel kernel = {#name, sizeof(type), name##_run};                   \
        emulated_add(&kernel);                                                                     \
    }                                                                                              \
    static void name(const type work)
#define KERNEL_OF(name, type, threads) KERNEL(name, type)
#define SHARED                         static
#define SYNC()                         emulated_sync()
#define IN_BLOCK                       (emulated.in_block)
#define BLOCK_THREADS                  (emulated.block_threads)
#define BLOCK                          (emulated.block)
#define BLOCKS                         (emulated.blocks)

#endif
