/* faults.h: what faulty kernels are told. */
#ifndef EMULATED_FAULTS_H
#define EMULATED_FAULTS_H

#include <stdint.h>

typedef struct fault_work {
    void *x;
    int64_t n;
} fault_work;

#endif
