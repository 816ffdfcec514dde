/* check.h: an op from outside under the oracle: against a scalar reference, against finite differences, and split over
 * meshes in every way against one rank.
 *
 *     static weft_value build(weft_graph *graph, weft_value *in, void *argument) { return softsign(in[0]); }
 *     static void reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
 *     {
 *         for (int64_t i = 0; i < out->count; i++) out->data[i] = in[0].data[i] / (1 + fabs(in[0].data[i]));
 *     }
 *     static const weft_check check = {sizeof check, "softsign", build, reference, .n_in = 1,
 *                                      .in = {{.dims = WEFT_CHECK_DIMS({"row", 5}, {"column", 3})}}, .has_gradient = true};
 *     WEFT_TRY(weft_check_op(&check, &n_runs, error));
 *
 * Take dims whose sizes no axis of the meshes divides, so that uneven and empty boxes come by themselves. Local: its meshes
 * are of in-process ranks. The controlling thread calls it, with no mesh of its own at work.
 */
#ifndef WEFT_EXTEND_CHECK_H
#define WEFT_EXTEND_CHECK_H

#include "weft/graph.h"

WEFT_BEGIN

enum { WEFT_CHECK_IN = 8 };

/* One operand. Its elements are spread over [low, high), by a formula that is the same everywhere. */
typedef struct weft_check_operand {
    const weft_dim *dims; /* [n_dims], borrowed */
    int n_dims;
    /* whole numbers, also where the others are f64; else it has the dtype that is checked */
    bool is_i32;
    bool never_split; /* placements leave it whole */
    double low, high; /* both 0: [-1, 1), of i32 [0, 4) */
} weft_check_operand;
/* At file scope (in a function it lives as long as its block): .in = {{.dims = WEFT_CHECK_DIMS({"row", 5})}} */
#define WEFT_CHECK_DIMS(...)                                                                       \
    (const weft_dim[]){__VA_ARGS__},                                                               \
        .n_dims = (int)(sizeof((const weft_dim[]){__VA_ARGS__}) / sizeof(weft_dim))

/* A tensor of the reference: numbers as doubles, row-major by the dims as declared (in) or as the op's result has them. */
typedef struct weft_check_tensor {
    const weft_shape *shape;
    int64_t count;
    double *data; /* [count] */
} weft_check_tensor;

typedef struct weft_check {
    size_t size;      /* sizeof(weft_check) */
    const char *name; /* for sentences */
    /* The op's result for these operands: the builder under test. */
    weft_value (*build)(weft_graph *graph, const weft_value *in, void *argument);
    /* The result that it must have: straight from the mathematics, in scalar arithmetic. out->data is zeros. */
    void (*reference)(const weft_check_tensor *in, weft_check_tensor *out, void *argument);
    void *argument; /* handed to both */
    int n_in;
    weft_check_operand in[WEFT_CHECK_IN];
    bool has_gradient; /* that of its float operands is checked, in f64 */
    /* a bit (1u << WEFT_F32) for each that float operands are tried in; 0: f32 and f64 */
    uint32_t dtypes;
    /* of f64, of the largest element; 0: 1e-12. f32 gets 1e-5, or 1e7 times this */
    double tolerance;
    /* Meshes, NULL at the end; NULL: "data:2", "data:3", "data:2,model:2", "data:4" */
    const char *const *meshes;
    int most;  /* placements tried on a mesh; 0: 200. Beyond, as many are drawn */
    int spare; /* 0 */
} weft_check;

/* weft_check_op - one rank against the reference; its gradient against finite differences; then, on each mesh, every
 * placement of operands (split by every axis along every dim, whole, and float ones as partial sums) and of the result,
 * against one rank.
 *
 * n_runs   out, may be NULL: programs that were run and compared
 * returns  WEFT_MISMATCH when a result is not what it must be: the sentence says where, and both numbers; else what kept
 *          the op from being built, compiled or run
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_check_op(const weft_check *check, int64_t *n_runs,
                                                   weft_error *error);

WEFT_END

#endif
