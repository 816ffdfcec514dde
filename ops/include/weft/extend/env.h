/* env.h: what the expression of an element op sees as `env`, on every device. */
#ifndef WEFT_EXTEND_ENV_H
#define WEFT_EXTEND_ENV_H

#include <stdint.h>

/* Facts that a block function may need beside its operands. */
typedef struct weft_block_env {
    double number[4]; /* the op's numbers                                            */
    uint64_t seed;    /* of the graph: Philox key                                    */
    uint32_t random;  /* the op's Philox stream                                      */
    /* of the run, from 1; in the upper half what tells the trips of scans apart, for weft_random_key */
    uint64_t step;
    int64_t index, stride; /* element i of the block has index + i * stride (see weft_index) */
} weft_block_env;

#endif
