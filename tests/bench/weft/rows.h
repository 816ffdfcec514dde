/* rows.h: what a row of the benchmark is, as Weft does it. The tables are in ops.c, conv.c, families.c, gpt2.c, recurrent.c, nets.c,
 * resnet.c, sequences.c and ranks.c. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <weft.h>

#include "../protocol.h"

enum { BENCH_FILLED = 1024, BENCH_SIZES = 6, BENCH_VALUES = 6 };

typedef struct bench bench;

/* How rows of a kind are made ready, done, looked at and put away. */
typedef struct bench_kind {
    weft_status (*open)(bench *b, weft_error *error);
    weft_status (*run)(bench *b, int64_t calls, weft_error *error);
    weft_status (*look)(bench *b, int64_t steps, double *numbers, int *n, weft_error *error);
    void (*close)(bench *b);
} bench_kind;

typedef struct bench_row {
    const char *name;
    const bench_kind *kind;
    void (*build)(bench *b);    /* of a graph: its values, into b->values */
    int64_t sizes[BENCH_SIZES]; /* as build reads them */
} bench_row;

extern const bench_row bench_op_rows[], bench_conv_rows[], bench_family_rows[], bench_gpt2_rows[],
    bench_rank_rows[], bench_recurrent_rows[], bench_net_rows[], bench_resnet_rows[],
    bench_sequence_rows[]; /* each ends with a row without a name */

/* The one open row, and what the program was started with. */
struct bench {
    weft_world world;
    const char *mesh_text, *layout_text;
    int zero;
    weft_dtype computes; /* of a training's activations and of what its products read: f32, bf16 */
    weft_precision precision;
    bool is_dry,
        is_random; /* a plan only; values begin as the model says, not as bench_number does */
    weft_error error;

    const bench_row *row;
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    /* The first n_looked are looked at, 0: the first. Others, of which the last may be an update, are made as well where they
     * are valid. */
    weft_value values[BENCH_VALUES];
    int n_looked;
    struct bench_filled {
        weft_value value;
        double offset, scale; /* begins as offset + scale * bench_number */
        int64_t n_indices;    /* of an i32 input: below that */
    } filled[BENCH_FILLED];
    int n_filled;
    struct bench_group *group; /* of ranks.c */
};

/* Programs: a graph compiled, its values filled, run. A loss is read after each step, as a training does. */
extern const bench_kind bench_op, bench_training;
/* weft_all_reduce as such. */
extern const bench_kind bench_all_reduce;

/* For build: inputs and variables, numbered in the order of these calls; that number is the stream of what they begin
 * with. A variable has the deviation, and about the mean, that `initial` has. */
weft_value bench_input(bench *b, weft_shape shape);
weft_value bench_input_of(bench *b, weft_dtype dtype, weft_shape shape); /* f32 or bf16 */
weft_value bench_indices(bench *b, weft_shape shape, int64_t n);
weft_value bench_variable(bench *b, const char *name, weft_shape shape, weft_initial initial);
/* The same of a variable that a layer has made; of a dense layer or a convolution, weight and bias. */
void bench_begins(bench *b, const char *name, double mean, double deviation);
void bench_layer(bench *b, const char *name, double deviation);

#endif
