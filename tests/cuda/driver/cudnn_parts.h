/* cudnn_parts.h: what the files of the emulated cuDNN have in common: descriptors as they were described, and a graph that is to be done. */
#ifndef EMULATED_CUDNN_H
#define EMULATED_CUDNN_H

#include <cuda.h>
#include <cudnn.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "mesh/cuda/kernel_source.h"
#include "parts.h"
#include "weft/extend/half.h"

enum { DIMS = 4, MOST_ATTRIBUTES = 8, MOST_TENSORS = 64, MOST_POINTERS = 24, WORKSPACE = 256 };

typedef struct attribute {
    int name;
    int64_t n;
    void *value;
} attribute;
typedef struct descriptor {
    cudnnBackendDescriptorType_t type;
    attribute attributes[MOST_ATTRIBUTES];
    int n_attributes;
} descriptor;

static inline bool has_fault(const char *name)
{
    const char *fault = getenv("TEST_CUDNN_FAULT");
    return fault != NULL && strcmp(fault, name) == 0;
}

static inline const attribute *find(const descriptor *d, int name)
{
    for (int i = 0; i < d->n_attributes; i++)
        if (d->attributes[i].name == name) return &d->attributes[i];
    return NULL;
}

static inline int64_t number_of(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL ? *(const int64_t *)a->value : 0;
}

static inline int enumerator_of(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL ? *(const int *)a->value : 0;
}

static inline bool is_true(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL && *(const bool *)a->value;
}

static inline const descriptor *descriptor_of(const descriptor *d, int name)
{
    const attribute *a = find(d, name);
    return a != NULL ? *(const descriptor *const *)a->value : NULL;
}

typedef struct graph_work {
    const descriptor *graph;
    bool is_rounded; /* f32 in memory, to tf32 */
    int n;
    int64_t id[MOST_POINTERS];
    void *at[MOST_POINTERS];
    float number[MOST_POINTERS]; /* of those that are the host's, as they were */
    void *space;
} graph_work;

#endif
