/* loop_text.h: a segment of a loop (loop.h) as the source of one kernel, and the kernel's argument. For loop.c. */
#ifndef WEFT_CUDA_LOOP_TEXT_H
#define WEFT_CUDA_LOOP_TEXT_H

#include "loop.h"

/* The words that the numbers of the run and of a scan's trip stand in; all others stay. */
enum { CUDA_LOOP_RUN = 0, CUDA_LOOP_TRIP = 3, CUDA_LOOP_CELL = 4 };

typedef struct cuda_loop_text {
    char *body;     /* what stands between the braces of the kernel */
    int64_t *words; /* its argument */
    int n_words;
    int64_t n_rows; /* blocks; 0: it has no rows, and */
    int64_t n;      /* so many threads; of a row: its elements */
} cuda_loop_text;

/* cuda_loop_write - what is written depends on the ops, dtypes and kinds of strides alone, numbers are words. Refused: an op without an
 * expression. What is taken is given back by free of both. */
weft_status cuda_loop_write(const weft_loop *loop, const weft_loop_segment *segment,
                            cuda_loop_text *text, weft_error *error);

#endif
