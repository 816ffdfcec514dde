/* layer.h: what layers have in common: variables by name, how they begin, and what is told wrongly. */
#ifndef WEFT_OPS_LAYER_H
#define WEFT_OPS_LAYER_H

#include "weft/layers.h"

/* A layer under construction. */
typedef struct weft_layer {
    const char *kind; /* "dense": what sentences begin with */
    const char *name; /* of its variables */
    weft_graph *graph;
    weft_dtype dtype;                /* of x: what it computes in */
    const weft_layer_source *source; /* of its variables; NULL: they are its own */
    weft_shape x;                    /* what it reads: variables of a source may have dims of it */
} weft_layer;

/* Of one variable: which it is, and how it begins. */
typedef struct weft_layer_weight {
    const char *name; /* "weight" of "<layer>/weight" */
    weft_shape shape;
    double fan_in, fan_out; /* products in a sum, and sums that a number of the operand goes into */
    const char *initializer;     /* NULL: glorot_uniform */
    const weft_initial *exactly; /* in its place; NULL: none */
    double scale;                /* times how it begins; 0: 1 */
} weft_layer_weight;

/* weft_layer_begin - of x, which is a float; false: the graph's error. */
bool weft_layer_begin(weft_layer *layer, const char *kind, const char *name,
                      const weft_layer_source *source, weft_value x);
/* weft_layer_variable - the variable "<layer>/name", which another layer of that name may have made: then of the same dims. It is of
 * the dtype that x is computed with. */
weft_value weft_layer_variable(const weft_layer *layer, const char *name, weft_shape shape,
                               weft_initial initial);
/* weft_layer_weight_of - the same, begun as the weight says, in the dtype of x. */
weft_value weft_layer_weight_of(const weft_layer *layer, const weft_layer_weight *weight);
/* weft_layer_biased - y and "<layer>/bias", of zeros or as `initial` says. */
weft_value weft_layer_biased(const weft_layer *layer, weft_value y, weft_shape shape,
                             const weft_initial *initial);
/* weft_layer_activated - by the name of an activation; NULL: as it is. */
weft_value weft_layer_activated(const weft_layer *layer, weft_value y, const char *activation);

/* weft_layer_has - x has a dim, of its size; `what` says of which kind the dim is: "it sums over". False: the graph's error. */
bool weft_layer_has(const weft_layer *layer, const char *what, weft_value x, weft_dim dim);
/* The same of another operand, which the sentence calls `of`. */
bool weft_layer_has_of(const weft_layer *layer, const char *what, const char *of, weft_value x,
                       weft_dim dim);
/* weft_layer_adds - x, without the dims `gone`, gets dims in place of them: it has none of their names. The result's dims;
 * n_dims 0: the graph's error. */
weft_shape weft_layer_instead(const weft_layer *layer, weft_value x, const weft_shape *gone,
                              const weft_shape *added);
/* Elements of a shape, 1 for none. */
double weft_layer_fan(const weft_shape *shape);

#endif
