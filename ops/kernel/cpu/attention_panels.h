/* attention_panels.h: what attention and its gradient share where a processor has kernels of ours (gemm.h).
 *
 * A panel is as many query rows as a tile has columns. Its scores are kept turned, S^T [memory, query]: what is done with
 * a row of the softmax is then done with all query rows of the panel side by side, and every product has one operand that
 * lies as a tile reads it and another of which single elements are read, so that nothing is packed but the panel itself.
 */
#ifndef WEFT_ATTENTION_PANELS_H
#define WEFT_ATTENTION_PANELS_H

#include "cpu/attention.h"
#include "cpu/gemm_tile.h"

enum {
    WEFT_PANEL = WEFT_GEMM_COLUMNS, /* most query rows of one */
    WEFT_SPARE = TILE_ROWS, /* rows before and after scores, which a last tile of rows may write */
    WEFT_PANEL_TILE = 128   /* memory rows that attention enters at a time: they stay in cache */
};

/* The softmax of a panel as it grows: for each query row the running max, the sum of exp(score - max), and in the gradient
 * the sum of exp(score - max) * dP. */
typedef struct weft_panel_state {
    double max[WEFT_PANEL], sum[WEFT_PANEL], dot[WEFT_PANEL], by[WEFT_PANEL];
    int32_t first[WEFT_PANEL], end[WEFT_PANEL]; /* the rows of the scores that a query row sees */
} weft_panel_state;

/* Loops over n rows of scores [n, width * vectors], all query rows of a panel at once, for an element type. */
typedef struct weft_panel_math {
    /* -inf in rows [from, to) where the state says that they are not seen. */
    void (*hide)(const weft_panel_state *state, int vectors, void *s, int64_t from, int64_t to);
    /* Scores raise the max; state->by is what older sums must be multiplied by, which the state's have been. */
    void (*raise)(weft_panel_state *state, int vectors, const void *s, int64_t n);
    /* Scores become exp(score - max), 0 where -inf, and are added to the sums. dp may be NULL. */
    void (*enter)(weft_panel_state *state, int vectors, void *s, const void *dp, int64_t n);
    /* Scores become P, or have been entered and become that; dp becomes dS = P (dP - D). */
    void (*differentiate)(weft_panel_state *state, int vectors, void *s, void *dp, int64_t n,
                          bool is_entered);
} weft_panel_math;
extern const weft_panel_math weft_panel_maths[WEFT_I32]; /* f32, f64 */

/* Some query rows of one head, and a lane's scratch. */
typedef struct weft_panel {
    const weft_heads *h;
    const tile_kernels *kernels;
    int vectors, feature_vectors; /* of query rows, of features */
    int64_t width, features;      /* the same in elements */
    int64_t head, begin, n_rows;  /* query rows */
    int64_t seen[2];              /* memory rows that any of them sees */
    int64_t most;                 /* memory rows in scratch at a time */
    char *held;                   /* [most, features] rows of one tensor */
    int64_t held_head, held_first;
    char *turned[2], *straight[2]; /* [feature, width], [query, features] of Q and dO */
    char *sum;                     /* [width, features] O, dQ */
    char *rest;   /* [TILE_ROWS, features] of what is not written as it is computed */
    char *s, *dp; /* [n_scores, width] with spare rows around */
    int64_t n_scores;
    weft_panel_state state;
} weft_panel;

/* Query rows of a panel; by shape alone. */
int64_t weft_panel_rows(const weft_heads *heads);
/* Can panels do it? They know no bias and no mask, and write rows of features that are contiguous. */
bool weft_panels_fit(const weft_heads *heads);
/* Lay a lane's scratch out: of the gradient with dP, dO, Q, and scores of all memory rows that are held; else of a tile. */
void weft_panel_open(weft_panel *p, const weft_heads *heads, char *scratch);
/* Go to query rows [begin, begin + n_rows) of a head. */
void weft_panel_enter(weft_panel *p, int64_t head, int64_t begin, int64_t n_rows);
/* s, of memory rows [first, first + n), becomes -inf where it is not seen. */
void weft_panel_hide(weft_panel *p, char *s, int64_t first, int64_t n);
/* Rows [first, ...) of K or V as [, features], from the most that are held together. */
const char *weft_panel_hold(weft_panel *p, int tensor, int64_t first);
/* to [n, width] = alpha times memory rows [first, first + n) of a tensor times a turned operand. */
void weft_panel_scores(const weft_panel *p, int tensor, int64_t first, int64_t n,
                       const char *turned, double alpha, char *to);
/* sum = or += alpha s^T [width, n] b [n, features] */
void weft_panel_sum(const weft_panel *p, const char *s, const char *b, int64_t n, double alpha,
                    bool add);
/* The head's rows of dK or dV become 0. */
void weft_panel_clear(const weft_panel *p, int tensor);
/* Rows [first, first + n) of dK or dV += alpha s [n, query] b [query, features] */
void weft_panel_add(const weft_panel *p, const char *s, const char *b, int tensor, int64_t first,
                    int64_t n, double alpha);
/* Row i of O or dQ = the sum's times by[i]. */
void weft_panel_store(const weft_panel *p, int tensor, const double *by);

#endif
