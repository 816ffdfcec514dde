/* check.h (private): one run of what is checked, and the ways to place it. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H

#include "weft/collectives.h"
#include "weft/extend/check.h"
#include "weft/name.h"
#include "weft/program.h"

enum { WEFT_CHECK_PLACES = 128, WEFT_CHECK_TEXT = 96 };

/* Where operands and the result live: texts as weft_place takes them; NULL: as it comes. is_part: an operand is the sum of
 * two parts, over a dim "part" that its text may split. */
typedef struct weft_check_placing {
    const char *in[WEFT_CHECK_IN], *out;
    bool is_part[WEFT_CHECK_IN];
} weft_check_placing;

/* One run: what was computed, to be freed. gradient [n_in]: d(sum of weights times the result) / d(operand); NULL where
 * there is none. */
typedef struct weft_check_result {
    weft_shape shape;
    weft_dtype dtype;
    int64_t count;
    double *data;
    double *gradient[WEFT_CHECK_IN];
    char names[WEFT_MAX_DIMS]
              [WEFT_MAX_NAME + 1]; /* of the shape's dims: this struct stays where it is */
} weft_check_result;

/* Numbers in [0, 1), multiples of 2^-20, so exact in f32: element i of operand k; the weights of the result's elements are
 * those of operand WEFT_CHECK_IN. */
double weft_check_unit(int k, int64_t i);
double weft_check_element(const weft_check *check, int k, int64_t i);
weft_shape weft_check_shape(const weft_check *check, int k);

/* weft_check_run - compile and run it once. moved: NULL, or the operand and element that is another by `by`. */
typedef struct weft_check_change {
    int operand;
    int64_t element;
    double by;
} weft_check_change;
weft_status weft_check_run(weft_mesh *mesh, const weft_check *check, weft_dtype dtype,
                           const weft_check_placing *placing, const weft_check_change *moved,
                           bool has_gradient, weft_check_result *result, weft_error *error);
void weft_check_free(weft_check_result *result);

/* All ways for a tensor to live on a mesh, at most WEFT_CHECK_PLACES; with_part: also split along "part". Returns how many. */
int weft_check_places(const weft_mesh *mesh, const weft_shape *shape, bool with_part,
                      char (*texts)[WEFT_CHECK_TEXT]);

#endif
