/* oracle.h: one graph, run on one rank and on a mesh under some placing of its operands, must give
 * one result.
 *
 *     static weft_value build(weft_oracle_build *b) { ... weft_oracle_input(b, WEFT_F64, shape, -1,
 * 1) ... } weft_oracle_sweep(&oracle, &(weft_oracle_case){.name = "add", .build = build}, 200);
 *
 * Inputs are filled from a formula of (input, global index), so they need no mesh. Alone, meshes
 * are made of in-process ranks; under MPI of the whole world. An operand may be made a partial sum:
 * it is then an input with one more dim, "part", split over the mesh and summed in the graph.
 */
#ifndef WEFT_ORACLE_H
#define WEFT_ORACLE_H

#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

enum {
    WEFT_ORACLE_VALUES = 32, /* inputs or outputs of a case                  */
    WEFT_ORACLE_SWEPT = 12,  /* those of a sweep, most                       */
    WEFT_ORACLE_TEXT = 64,   /* bytes of one placement                       */
    WEFT_ORACLE_PLACES = 256 /* placements of one value that are tried, most */
};

/* Where the operands and outputs live: texts as weft_place takes them; NULL: as the layout's rules
 * say. */
typedef struct weft_oracle_placing {
    const char *inputs[WEFT_ORACLE_VALUES], *outputs[WEFT_ORACLE_VALUES];
} weft_oracle_placing;

/* What floats of inputs are besides numbers of their range, as bits; a range without negative numbers has none of these either.
 * Every other element is one of those that are named, of either sign. Sums of a partial operand have none. */
enum {
    WEFT_ORACLE_ZERO = 1,
    WEFT_ORACLE_DENORMAL = 2,
    WEFT_ORACLE_TINY = 4,  /* near the least normal number            */
    WEFT_ORACLE_ROOT = 8,  /* whose square is more than the dtype has */
    WEFT_ORACLE_HUGE = 16, /* near the dtype's largest                */
    WEFT_ORACLE_INFINITE = 32,
    WEFT_ORACLE_EXTREMES = 6
};

/* A graph under construction. Filled by weft_oracle_input and weft_oracle_output. */
typedef struct weft_oracle_build {
    weft_graph *graph;
    const void *argument; /* the case's */
    const weft_oracle_placing *placing;
    int n_inputs, n_outputs;
    weft_value inputs[WEFT_ORACLE_VALUES];   /* what is written            */
    weft_value operands[WEFT_ORACLE_VALUES]; /* what the ops get           */
    weft_value outputs[WEFT_ORACLE_VALUES];
    /* What the op under test gets, in its order: operands, or what was made of them; its further results. */
    int n_arguments, n_others;
    weft_value arguments[WEFT_ORACLE_VALUES], others[3];
    /* built before in the same graph: its inputs serve again */
    const struct weft_oracle_build *first;
    /* What the next operand is, in place of an input of its own; NULL: an input. */
    weft_value (*give)(struct weft_oracle_build *build, weft_dtype dtype, weft_shape shape,
                       double low, double high);
    void *giver;  /* give's own */
    int extremes; /* WEFT_ORACLE_ bits */
    double low[WEFT_ORACLE_VALUES], high[WEFT_ORACLE_VALUES];
} weft_oracle_build;

typedef struct weft_oracle_case {
    const char *name;
    void (*build)(weft_oracle_build *build);
    const void *argument;
    const char *layout; /* of the mesh runs; NULL: no rules */
    double within; /* floats are as near as that, whatever the outputs' dtypes; 0: as these are */
    const weft_compile_options *options; /* of the mesh runs; NULL: none */
    int extremes;                        /* WEFT_ORACLE_ bits */
} weft_oracle_case;

/* Values of all outputs, as doubles. */
typedef struct weft_oracle_result {
    int n_outputs;
    weft_dtype dtype[WEFT_ORACLE_VALUES];
    int64_t count[WEFT_ORACLE_VALUES];
    double *data[WEFT_ORACLE_VALUES]; /* [count] */
} weft_oracle_result;

typedef struct weft_oracle {
    weft_world world;
    weft_mesh *alone; /* one rank                              */
    int n_meshes;
    weft_mesh *meshes[16];
    int64_t n_compared; /* runs compared so far                  */
    int64_t n_sweeps;   /* sweeps made so far: whose turn it is  */
    int64_t n_listed;   /* cases of a list so far, taken or not  */
    bool all;           /* try every combination, however many   */
    bool says;          /* print every combination before its run */
} weft_oracle;

/* weft_oracle_open - the world, and of `mesh_texts` [n] the meshes that fit it: all when alone,
 * else those of the world's size. Collective over the job. */
WEFT_MUST_CHECK weft_status weft_oracle_open(weft_oracle *oracle, const char *const *mesh_texts,
                                             int n, weft_error *error);
void weft_oracle_close(weft_oracle *oracle);

/* An operand with elements in [low, high); integers when dtype is WEFT_I32. */
weft_value weft_oracle_input(weft_oracle_build *build, weft_dtype dtype, weft_shape shape,
                             double low, double high);
void weft_oracle_output(weft_oracle_build *build, weft_value value);
/* Whether it is the sentence about an op that the test's device is known to have no kernel for: then there is nothing to
 * compare. */
bool weft_oracle_refuses(const weft_error *error);
/* Whether the device cuda lacks a kernel for the op, or has none for all of its calls. */
bool weft_oracle_lacks_on_cuda(const char *op);
/* The last argument is not the operand itself but `value`, made of it. Returns value. */
weft_value weft_oracle_made(weft_oracle_build *build, weft_value value);
/* One more result of the op under test. */
void weft_oracle_other(weft_oracle_build *build, weft_value value);
/* Element i of input k, in [0, 1), a multiple of 2^-20: exact in f32. */
double weft_oracle_unit(int k, int64_t i);
/* The same in the input's range: what weft_oracle_fill writes. */
double weft_oracle_element(const weft_oracle_build *build, int k, int64_t i);

/* Compile and run a case once; collective over the mesh. On success the caller frees the result. */
WEFT_MUST_CHECK weft_status weft_oracle_run(weft_mesh *mesh, const weft_oracle_case *what,
                                            const weft_oracle_placing *placing,
                                            weft_oracle_result *result, weft_error *error);
void weft_oracle_free(weft_oracle_result *result);
/* The inputs of a built graph into a program; also data [count] doubles into one of them. */
WEFT_MUST_CHECK weft_status weft_oracle_fill(const weft_oracle_build *build, weft_program *program,
                                             weft_error *error);
WEFT_MUST_CHECK weft_status weft_oracle_write(weft_program *program, weft_value value,
                                              const double *data, weft_error *error);
/* The whole of a value as doubles [count], to be freed; collective over the mesh. */
WEFT_MUST_CHECK weft_status weft_oracle_read(weft_program *program, weft_value value, double **data,
                                             weft_error *error);

/* How near results of each dtype on two meshes are: by the largest of them. */
extern const double weft_oracle_tolerance[WEFT_DTYPES];

/* weft_oracle_same - are all outputs equal: f64 within 1e-11, f32 within 1e-5 (weft_oracle_tolerance), all floats within `within`
 * of the largest element, i32 exactly. text [bytes] says what differs. */
bool weft_oracle_same(const weft_oracle_result *a, const weft_oracle_result *b, double within,
                      char *text, size_t bytes);
/* weft_oracle_check - what the case gives on one rank, without its layout and options, it gives on the mesh with them and, NULL for
 * none, with placings of its values: a check, whose words begin with the case's name. */
bool weft_oracle_check(const weft_oracle *oracle, weft_mesh *mesh, const weft_oracle_case *what,
                       const weft_oracle_placing *placing);

/* weft_oracle_placements - all ways for a tensor to live on a mesh: every axis on every dim or on
 * none, two axes on one dim in both orders, and, when `part`, partial over axes. Returns how many
 * (at most WEFT_ORACLE_PLACES). */
int weft_oracle_placements(const weft_mesh *mesh, const weft_shape *shape, bool part,
                           char (*texts)[WEFT_ORACLE_TEXT]);

/* weft_oracle_takes - whether the next case of a long list is run: each alone, and each where TEST_CASES takes all; else with
 * processes one in three, since threads run each of them on the same meshes. Jobs of 2, 3 and 4 take different ones. */
bool weft_oracle_takes(weft_oracle *oracle);

/* weft_oracle_turn - of `each` combinations a mesh, how many this mesh sees. Where `each` is less than one, some meshes see
 * one, others none, and others do when n_sweeps is another; all meshes together see at least one. */
int weft_oracle_turn(const weft_oracle *oracle, double each, int mesh);

/* weft_oracle_sweep - compare a case with one rank on every mesh under every combination of
 * placements of operands and outputs; when a mesh has more than `most` combinations, under `most`
 * drawn ones, of which TEST_CASES takes a share (test.h). Makes one CHECK a mesh that is seen. */
void weft_oracle_sweep(weft_oracle *oracle, const weft_oracle_case *what, int most);

#endif
