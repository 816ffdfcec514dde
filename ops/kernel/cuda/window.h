/* window.h: loops over the elements of a tensor that is made, and over what each is made of, of a tensor that is read through windows:
 * convolutions, and pooling, forwards and back.
 *
 * A loop has a stride in each tensor, and moves windows: one stands at element at / over of its dim of `from`, where that is whole and
 * the dim has it; else there is nothing.
 */
#ifndef WEFT_CUDA_WINDOW_H
#define WEFT_CUDA_WINDOW_H

#include <stdint.h>

enum { WINDOWS = 3, WINDOWED_DIMS = 16 };
/* What a loop moves in; WINDOWED_AT and behind: windows. */
enum {
    WINDOWED_TO,
    WINDOWED_FROM,
    WINDOWED_BY,
    WINDOWED_AT,
    WINDOWED_PLACES = WINDOWED_AT + WINDOWS
};

typedef struct windowed_nest { /* outermost first */
    int n_dims;
    int64_t count[WINDOWED_DIMS], stride[WINDOWED_PLACES][WINDOWED_DIMS];
} windowed_nest;

typedef struct cuda_windowed {
    void *to;
    const void *from, *by; /* by: the filter                                          */
    int32_t *taps;         /* as what is pooled lies: the number of the tap that it is, -1: none */
    int64_t n_outer, n_inner;
    struct {
        int64_t over, size, stride; /* size, stride: of its dim of `from` */
    } window[WINDOWS];
    int64_t first[WINDOWED_PLACES]; /* of element 0 of everything */
    windowed_nest outer, inner;
} cuda_windowed;

#ifdef KERNEL
typedef struct windowed_place {
    int64_t at[WINDOWED_PLACES];
} windowed_place;

DEVICE windowed_place windowed_first(const cuda_windowed *w)
{
    windowed_place p;
    for (int t = 0; t < WINDOWED_PLACES; t++)
        p.at[t] = w->first[t];
    return p;
}

/* `p` moved to element `i` of a nest. */
DEVICE windowed_place windowed_move(const windowed_nest *nest, int64_t i, windowed_place p)
{
    for (int d = nest->n_dims - 1; d >= 0; d--) {
        const int64_t next = i / nest->count[d], k = i - next * nest->count[d];
        for (int t = 0; t < WINDOWED_PLACES; t++)
            p.at[t] += k * nest->stride[t][d];
        i = next;
    }
    return p;
}

/* Whether all windows have something there; where it is in `from`. */
DEVICE int windowed_finds(const cuda_windowed *w, const windowed_place *p, int64_t *from)
{
    *from = p->at[WINDOWED_FROM];
    for (int s = 0; s < WINDOWS; s++) {
        const int64_t over = w->window[s].over, at = p->at[WINDOWED_AT + s];
        const int64_t j = over == 1 ? at : at / over;
        if (j * over != at || j < 0 || j >= w->window[s].size) return 0;
        *from += j * w->window[s].stride;
    }
    return 1;
}
#else
#include "kernel.h"

/* A nest's loop inside the others; joined with the innermost where both are one walk. */
void cuda_windowed_add(windowed_nest *nest, int64_t count, const int64_t stride[WINDOWED_PLACES]);
/* No window moves: each stands at the one element there is. */
cuda_windowed cuda_windowed_empty(void);
#endif

#endif
