/* parts.h: what the files of the emulated driver have in common. It is a libcuda.so.1 with the functions that Weft calls, for
 * machines without a GPU: their contracts are NVIDIA's, their doing is late, and in any order that streams and events allow.
 *
 * Several GPUs are one computer with several memories: what is put onto a stream of one and uses another's memory is a fault.
 *
 * The environment: TEST_CUDA_DEVICES: how many GPUs there are (1). TEST_CUDA_MEMORY: MiB of each (4096). TEST_CUDA_FAIL:
 * "cuLaunchKernel:3": the third call of it fails. TEST_CUDA_MOST_KEPT: how much may be in one graph. TEST_CUDA_APART, TEST_CUDA_MIXED: driver.c. TEST_CUDA_TELL: at the end a line on stderr.
 */
#ifndef EMULATED_PARTS_H
#define EMULATED_PARTS_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulate.h"

#define EXPORT __attribute__((visibility("default")))

enum { EMULATED_GPUS = 8 };

/* One lock over all that the driver knows. */
extern EXPORT pthread_mutex_t emulated_lock;
EXPORT uint32_t emulated_random(uint32_t below);
EXPORT void emulated_die(const char *why);

/* ---- memory.c ---- */
bool emulated_is_handed(const void *at);
bool emulated_is_pinned(const void *at);
/* All of it was taken and not given back; pinned memory and the host's always were. */
bool emulated_is_alive(const void *at, size_t bytes);

/* The GPU that works now, under the lock; -1: none. Whose memory another's is, is a fault. */
extern int emulated_working;

/* How often memory was taken. */
extern long long emulated_taken;

/* ---- launch.c ---- */
const emulated_kernel *emulated_find(const char *name);
void emulated_launch(const emulated_kernel *kernel, int64_t blocks, int threads, const void *work);

/* ---- streams.c ---- */
/* What the calling thread puts onto a stream is captured. */
extern _Thread_local bool emulated_captures;
/* For libraries that have kernels of their own: poll goes on as far as it can without waiting, whenever the stream comes to it; true:
 * it is done. Under the lock. */
EXPORT CUresult emulated_put_polled(CUstream s, bool (*poll)(void *argument), void *argument);

/* ---- driver.c ---- */
EXPORT int emulated_number(const char *variable, int otherwise);
/* What is to fail now, and whether the calling thread has a context; of which GPU. */
CUresult emulated_enter(const char *call);
/* Ends the program where the calling thread captures. */
EXPORT void emulated_refuse_capture(const char *call);
EXPORT int emulated_device(void);
/* All streams are empty. */
void emulated_drain(void);

#endif
