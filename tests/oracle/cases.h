/* cases.h: what the files of cases share: dims, operands, and how a case is written down.
 *
 *     CASES(relu, CASE(relu_x, OP_FLOAT, 1))                           all cases of weft_op_relu: builder, dtypes, derivatives
 *     CASES(slice, CASE(slice_x, OP_FLOAT | OP_I32, 1, .with = {.dim = "b", .other = "part_of_b", .begin = 2}))
 *
 * The name of the builder begins with the op's. An op of the table without CASES does not link.
 */
#ifndef WEFT_CASES_H
#define WEFT_CASES_H

#include <math.h>

#include "op_cases.h"
#include "weft/ops.h"

#define CASES(op, ...) const op_case cases_of_##op[] = {__VA_ARGS__, {NULL}};
#define CASE(build, dtypes, derivatives, ...)                                                      \
    {                                                                                              \
#build, build, dtypes, derivatives, ##__VA_ARGS__                                          \
    }

#define ALL_DTYPES (OP_FLOAT | OP_INT)

typedef weft_oracle_build build_t;

/* Sizes that no axis divides, some smaller than an axis. */
enum {
    DIM_A,
    DIM_B,
    DIM_C,
    DIM_D,
    DIM_ONE,
    DIM_BATCH,
    DIM_HEADS,
    DIM_SEQ,
    DIM_MEMORY,
    DIM_FEATURE,
    DIM_ROWS,
    DIM_OTHER,
    DIM_MERGED,
    DIM_SIX,
    DIM_OUTER,
    DIM_TEN,
    DIM_PART_OF_B,
    DIM_JOINED,
    DIM_KEY,
    DIM_LONG,
    DIM_LATER,
    CASE_DIMS
};
extern weft_dim case_dims[CASE_DIMS];
#define A       case_dims[DIM_A]         /* a:5 */
#define B       case_dims[DIM_B]         /* b:7 */
#define C       case_dims[DIM_C]         /* c:3 */
#define D       case_dims[DIM_D]         /* d:2 */
#define ONE     case_dims[DIM_ONE]       /* one:1 */
#define BATCH   case_dims[DIM_BATCH]     /* batch:3 */
#define HEADS   case_dims[DIM_HEADS]     /* heads:2 */
#define SEQ     case_dims[DIM_SEQ]       /* seq:5 */
#define MEMORY  case_dims[DIM_MEMORY]    /* memory:7 */
#define FEATURE case_dims[DIM_FEATURE]   /* feature:4 */
#define ROWS    case_dims[DIM_ROWS]      /* rows:9 */
#define OTHER   case_dims[DIM_OTHER]     /* other:7 */
#define MERGED  case_dims[DIM_MERGED]    /* merged:12 */
#define SIX     case_dims[DIM_SIX]       /* six:6 */
#define OUTER   case_dims[DIM_OUTER]     /* outer:4 */
#define TEN     case_dims[DIM_TEN]       /* ten:10 */
#define PART    case_dims[DIM_PART_OF_B] /* part_of_b:4 */
#define JOINED  case_dims[DIM_JOINED]    /* joined:10 */
#define LONG    case_dims[DIM_LONG]      /* long:150: more than one tile, or one block */
#define LATER   case_dims[DIM_LATER]     /* later:170 */
#define KEY     case_dims[DIM_KEY]       /* key:5, the memory rows of SEQ in bias and mask */

/* An operand around 0; one without zeros and negatives; one of indices, some of them out of range. */
weft_value case_in(build_t *b, weft_dtype dtype, weft_shape shape);
weft_value case_positive(build_t *b, weft_dtype dtype, weft_shape shape);
weft_value case_ids(build_t *b, weft_shape shape, int64_t n);
/* case_in with `instead` where it is below `limit`: with infinities, with NaN. */
weft_value case_with(build_t *b, weft_dtype dtype, weft_shape shape, double limit, double instead);
#define in       case_in
#define positive case_positive
#define ids_of   case_ids

#endif
