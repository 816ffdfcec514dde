/* digest_given.h: what the programs of digest_programs.h are made of. */
#ifndef TEST_DIGEST_GIVEN_H
#define TEST_DIGEST_GIVEN_H

#include "ops/graph/ir.h"

#include "weft/ops.h"

static const weft_dim row = {"row", 6}, column = {"column", 4}, part = {"part", 2},
                      piece = {"piece", 2}, state = {"~", 2};

/* What programs are made of. */
typedef struct given {
    weft_graph *graph;
    weft_value x;     /* f64 [row, column]    */
    weft_value y;     /* f64 [row, column]    */
    weft_value long_; /* f64 [row:8, column] */
    weft_value ids;   /* i32 [part] */
} given;

static given give(uint64_t seed)
{
    const weft_dim long_row = {"row", 8};
    weft_graph *g = weft_graph_create(seed);
    return (given){.graph = g,
                   .x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row, column), weft_normal(0, 1)),
                   .y = weft_variable(g, "y", WEFT_F64, WEFT_DIMS(row, column), weft_normal(0, 1)),
                   .long_ = weft_input(g, "long", WEFT_F64, WEFT_DIMS(long_row, column)),
                   .ids = weft_input(g, "ids", WEFT_I32, WEFT_DIMS(part))};
}

#endif
