/* faults: kernels that are wrong, for the test that says what the emulation finds (tests/cuda/emulation_test.c). */
#include "faults.h"

#include "kernel_source.h"

KERNEL(fault_none, fault_work)
{
    SHARED int32_t met[KERNEL_THREADS];
    int32_t *x = (int32_t *)GLOBAL(work.x);
    met[IN_BLOCK] = IN_BLOCK;
    SYNC();
    x[THREAD] = met[BLOCK_THREADS - 1 - IN_BLOCK];
}

KERNEL(fault_no_sync, fault_work)
{
    SHARED int32_t met[KERNEL_THREADS];
    int32_t *x = (int32_t *)GLOBAL(work.x);
    met[IN_BLOCK] = IN_BLOCK + 1000;
    x[THREAD] = met[BLOCK_THREADS - 1 - IN_BLOCK] - 1000;
}

KERNEL(fault_some_meet, fault_work)
{
    (void)work;
    if (IN_BLOCK < 3) SYNC();
}

KERNEL(fault_not_global, fault_work)
{
    ((int32_t *)work.x)[THREAD] = 1;
}

KERNEL(fault_past_the_end, fault_work)
{
    int32_t *x = (int32_t *)GLOBAL(work.x);
    x[THREAD + work.n] = 1;
}
