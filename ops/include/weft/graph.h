/* graph.h: the logical program: values with named dims. No rank, no layout in sight.
 *
 *     weft_graph *g = weft_graph_create(1234);
 *     weft_dim batch = {"batch", 128}, pixel = {"pixel", 784}, hidden = {"hidden", 64};
 *     weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
 *     weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(pixel, hidden), weft_normal(0.0, 0.05));
 *     weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, hidden), x, w));
 *
 * Builders keep the first error in the graph and turn later calls into no-ops that return the invalid value
 * (id 0), which may be passed on. weft_compile, or weft_graph_error, gives it back. After that the process may go on:
 * with another graph (destroy, create), or with this one (weft_graph_clear_error). All functions are Local.
 */
#ifndef WEFT_GRAPH_H
#define WEFT_GRAPH_H

#ifdef __cplusplus
#include <initializer_list>
#endif

#include "weft/layout.h"

WEFT_BEGIN

typedef struct weft_graph weft_graph; /* opaque */

/* One tensor of a graph: copied freely, lives as long as the graph. id 0 is invalid. */
typedef struct weft_value {
    weft_graph *graph;
    uint32_t id;
} weft_value;

/* seed: of all random numbers of the graph (initial values, dropout). NULL when out of memory. */
WEFT_API weft_graph *weft_graph_create(uint64_t seed);
/* WEFT_USAGE, and *graph stays as it is, while programs of it are there: destroy those first. */
WEFT_API weft_status weft_graph_destroy(weft_graph **graph);
/* The first failure of a builder; status WEFT_OK when there is none. Borrowed. */
WEFT_API const weft_error *weft_graph_error(const weft_graph *graph);
/* weft_graph_clear_error - forget the error and go on. Nothing of the failed builder is left, and every earlier value
 * stays unchanged. Later nodes are as they would have been without the failure, random numbers included.
 *
 * Its macro (weft_at) marks where a builder ends, and so does weft_compile. A program that builds without the macros
 * and never calls weft_at keeps the nodes that a composition had made before it failed. They have no reader, and
 * weft_compile drops them. Errors of weft_compile are not the graph's: they need no clearing.
 */
WEFT_API void weft_graph_clear_error(weft_graph *graph);
/* Of a valid value. Borrowed. */
WEFT_API const weft_shape *weft_shape_of(weft_value value);
WEFT_API weft_dtype weft_dtype_of(weft_value value);
WEFT_API weft_dim weft_dim_of(weft_value value, const char *name); /* {name, 0} when it has none */
/* Whether a value is an update (weft_assign, weft_group, what optimizers return): a token, without numbers to read. Local. */
WEFT_API bool weft_is_update(weft_value value);

/* When in a training step an op works: gradients are backward, optimizers update. */
typedef enum weft_phase { WEFT_FORWARD, WEFT_BACKWARD, WEFT_UPDATE, WEFT_PHASES } weft_phase;
WEFT_API const char *weft_phase_name(weft_phase phase); /* "forward"; "?" for no phase */

/* A shape of too many dims keeps n_dims > WEFT_MAX_DIMS, and the builder that gets it says so. */
WEFT_API weft_shape weft_shape_make(const weft_dim *dims, int n_dims);

/* A list of values for weft_compile and weft_gradients. */
typedef struct weft_values {
    const weft_value *values;
    int n_values;
} weft_values;

/* WEFT_DIMS(batch, pixel): a weft_shape from weft_dim values; WEFT_SCALAR: no dims. WEFT_VALUES(loss, update): a
 * weft_values; it lives as long as the block it stands in, in C++ as long as the call it is handed to. */
#ifdef __cplusplus
#define WEFT_DIMS(...)   weft_dims_of({__VA_ARGS__})
#define WEFT_SCALAR      (weft_shape())
#define WEFT_VALUES(...) weft_values_of({__VA_ARGS__})
static inline weft_shape weft_dims_of(std::initializer_list<weft_dim> dims)
{
    return weft_shape_make(dims.begin(), (int)dims.size());
}
static inline weft_values weft_values_of(std::initializer_list<weft_value> values)
{
    return weft_values{values.begin(), (int)values.size()};
}
#else
#define WEFT_DIMS(...)                                                                             \
    weft_shape_make((const weft_dim[]){__VA_ARGS__},                                               \
                    (int)(sizeof((const weft_dim[]){__VA_ARGS__}) / sizeof(weft_dim)))
#define WEFT_SCALAR ((weft_shape){0})
#define WEFT_VALUES(...)                                                                           \
    ((weft_values){(const weft_value[]){__VA_ARGS__},                                              \
                   (int)(sizeof((const weft_value[]){__VA_ARGS__}) / sizeof(weft_value))})
#endif

/* How a variable begins: a pure function of (seed, variable's name, element index). */
typedef enum weft_initial_kind {
    WEFT_INITIAL_CONSTANT,
    WEFT_INITIAL_NORMAL,
    WEFT_INITIAL_UNIFORM,
    WEFT_INITIAL_FORMULA
} weft_initial_kind;
typedef struct weft_initial {
    weft_initial_kind kind;
    double a, b; /* constant: a; normal: mean a, deviation b; uniform: [a, b);
                    formula: a * cos(b * index), index row-major: for tests against other programs */
} weft_initial;
WEFT_API weft_initial weft_constant_of(double value);
WEFT_API weft_initial weft_normal(double mean, double deviation);
WEFT_API weft_initial weft_uniform(double low, double high);
WEFT_API weft_initial weft_formula(double scale, double frequency);

/* weft_input - a tensor that the host fills before each run (weft_write, weft_dataset_next). */
WEFT_API weft_value weft_input(weft_graph *graph, const char *name, weft_dtype dtype,
                               weft_shape shape);
/* weft_variable - a tensor that keeps its value from run to run. Names are unique in a graph. */
WEFT_API weft_value weft_variable(weft_graph *graph, const char *name, weft_dtype dtype,
                                  weft_shape shape, weft_initial initial);
/* weft_variable_of_rows - several variables as one, each an element of its first dim: it begins with the numbers that variables
 * of those names, without that dim, would have, and optimizers update each for itself (what decays, norms of its own).
 *
 * rows  their names, in order, with a space between: "block0.up block1.up" for [stage:2, embed, hidden] */
WEFT_API weft_value weft_variable_of_rows(weft_graph *graph, const char *name, weft_dtype dtype,
                                          weft_shape shape, weft_initial initial, const char *rows);
/* weft_slot - a variable that belongs to another one (optimizer state): same dims, stored sharded when the layout
 * says so (weft_layout_store). Named "<variable>/<name>". */
WEFT_API weft_value weft_slot(weft_value variable, const char *name, weft_initial initial);
/* weft_slot_of - the same with dims of its own ("row statistics"): it lives where the rules, or the placement of its
 * variable, put those dims, stored over the axes that shard storage. dtype: the variable's. */
WEFT_API weft_value weft_slot_of(weft_value variable, const char *name, weft_shape shape,
                                 weft_initial initial);
/* weft_assign - at the end of a run, variable = value; all reads of the run see the old value.
 * returns a token: an update to hand to weft_compile or weft_group. Shapes and dtype must be equal (any order of dims). */
WEFT_API weft_value weft_assign(weft_value variable, weft_value value);
/* weft_group - one token for several values or tokens. */
WEFT_API weft_value weft_group(weft_graph *graph, weft_values values);

/* weft_place - live as `layout_text` says ("batch:data+model", "" for replicated), whatever the layout's rules say. Returns value,
 * as the next two do.
 * An axis marked "?" ("batch:data?") holds only where the mesh has it: so the program runs on a mesh without it. */
WEFT_API weft_value weft_place(weft_value value, const char *layout_text);
/* weft_place_as - live where the storage of `variable` lives (gradients on their way to an update). */
WEFT_API weft_value weft_place_as(weft_value value, weft_value variable);
/* weft_name - a name for reports, for weft_graph_find and for weft_find. */
WEFT_API weft_value weft_name(weft_value value, const char *name);
/* weft_graph_find - the input, variable, slot or otherwise named value called `name`.
 *
 * returns the invalid value, and WEFT_USAGE with the nearest name, when there is none; and when two have the name
 */
WEFT_API weft_value weft_graph_find(weft_graph *graph, const char *name, weft_error *error);

/* weft_at - `value` comes from this call of the program: nodes that have no origin yet get this one, and so does a
 * sentence: "layer_norm at mlp.c:41: ...". Returns `value`.
 *
 * builder  as in "relu", without weft_
 */
#define WEFT_HERE __FILE__, __LINE__
WEFT_API weft_value weft_at(const char *builder, const char *file, int line, weft_value value);
/* weft_built - the same of one of Weft's builders, which always gives a value of its own: where it has nothing to do and hands
 * back what it got (a cast to the same dtype), this is that value's weft_same. Builders that are there to hand back what
 * they get (weft_place, weft_name, weft_scan_end, ...) say so in their comments, and do.
 *
 * Every builder (what returns a weft_value) of graph.h, ops.h, autodiff.h and optim.h is a macro around the function
 * of its name, which says this; the macros are in <name>_here.h, made from the prototypes. A program that calls
 * builders through pointers, or from another language, calls it itself.
 */
WEFT_API weft_value weft_built(const char *builder, const char *file, int line, weft_value value);

WEFT_END

#ifndef WEFT_NO_HERE /* Weft's own sources: a builder's inner calls stand where the outer one does */
#include "weft/graph_here.h"
#endif

#endif
