/* drawn.h: graphs drawn from the table of cases: whatever op, and whatever composition, has a case that is placed is
 * drawn, of sizes, dtypes, meshes and layouts that are drawn, too. The result of one op is fitted to the operand of
 * another.
 *
 *     drawn graph = drawn_of(seed, &oracle);
 *     if (drawn_check(&oracle, &graph, text, sizeof text) == DRAWN_DIFFERS) graph = drawn_shrunk(...);
 *
 * A drawn graph is plain data, so that parts of it can be left out: an op's draws are of its own seed alone.
 */
#ifndef WEFT_TESTS_ORACLE_DRAWN_H
#define WEFT_TESTS_ORACLE_DRAWN_H

#include "cases.h"

enum {
    DRAWN_OPS = 8,
    DRAWN_OPERANDS = 8,
    DRAWN_RULES = 4,
    DRAWN_TEXT = 64,
    DRAWN_FRESH = -1 /* an input of its own */
};

typedef struct drawn_op {
    const op_case *what;
    weft_dtype dtype;
    int from[DRAWN_OPERANDS]; /* of each operand: an op before this one, or DRAWN_FRESH */
    uint64_t seed;    /* of how operands are fitted, and of where they and the result live */
    int trips;        /* of the scan in which it stands; 0: of none */
    bool is_part;     /* computed again on the way back  */
    bool places;      /* its inputs and its result say where they live */
    bool has_partial; /* its float inputs may be partial sums          */
    bool is_plain;    /* operands are fitted in the plainest way       */
} drawn_op;

typedef struct drawn_rule {
    int dim; /* of case_dims */
    char axes[DRAWN_TEXT];
} drawn_rule;

typedef struct drawn {
    uint64_t seed;
    int n_ops;
    drawn_op ops[DRAWN_OPS];
    int64_t sizes[CASE_DIMS]; /* an op that does not take them has those of its case */
    int derivatives;          /* 0: values alone; 1: gradients; 2: gradients of those as well */
    weft_mesh *mesh;
    int n_rules;
    drawn_rule rules[DRAWN_RULES];
    uint64_t policy; /* 0: none but the usual */
    int extremes;    /* WEFT_ORACLE_ bits of its inputs */
    weft_compile_options options;
} drawn;

typedef enum drawn_verdict {
    DRAWN_SAME,
    DRAWN_DIFFERS, /* from one rank, by more than rounding does, or it was refused there alone */
    /* no more than a breath on every op does on one rank; or ops were handed what is no number; or it is left open (left_open.h) */
    DRAWN_UNSTABLE,
    DRAWN_UNBUILT /* refused on one rank */
} drawn_verdict;

drawn drawn_of(uint64_t seed, const weft_oracle *oracle);
/* One or two ops, of inputs some of which are at the edges of their dtype; values alone. */
drawn drawn_of_extremes(uint64_t seed, const weft_oracle *oracle);
/* Whether cases of the group are drawn, and how many groups have such. */
bool drawn_has(const op_group *group);

/* What is built, and with how strong a breath on every op's operands and result, relative to them; the argument of a
 * weft_oracle_case of drawn_build. */
enum { DRAWN_EVERY = -1 };
typedef struct drawn_how {
    const drawn *graph;
    int breath; /* 0: none; else which; DRAWN_EVERY: none, and every op's value is an output */
} drawn_how;
void drawn_build(weft_oracle_build *build);

/* Compared with one rank; text [bytes] says what differs. Collective over the job. */
drawn_verdict drawn_check(const weft_oracle *oracle, const drawn *graph, char *text, size_t bytes);

/* drawn_shrunk - the smallest graph that is still wrong, by leaving out, one after the other, what can be. */
typedef bool (*drawn_wrong)(void *context, const drawn *graph);
drawn drawn_shrunk(const weft_oracle *oracle, const drawn *graph, drawn_wrong is_wrong,
                   void *context);
/* As text, like C: op by op, then what the builders made of it. */
void drawn_print(const drawn *graph, FILE *file);
void drawn_layout(const drawn *graph, char *text, size_t bytes);

/* ---- of its own parts ------------------------------------------------------------------------------ */

typedef struct drawn_dice {
    uint64_t state;
} drawn_dice;
drawn_dice drawn_dice_of(uint64_t seed, uint64_t which);
int drawn_roll(drawn_dice *dice, int n); /* 0 .. n - 1 */

/* Numbers an operand is asked to be. */
typedef struct drawn_wish {
    weft_dtype dtype;
    weft_shape shape;
    double low, high;
} drawn_wish;

/* x as the wish says: dims summed, sliced, padded, renamed, reshaped, broadcast; cast; brought into the range. */
weft_value drawn_fit(weft_value x, const drawn_wish *wish, drawn_dice *dice, bool is_plain);

/* "a:data?,c:model?+seq?": some of the mesh's axes on some dims of the shape. part: perhaps one on the dim "part". */
void drawn_place(const weft_mesh *mesh, const weft_shape *shape, drawn_dice *dice, bool part,
                 char *text, size_t bytes);

#endif
