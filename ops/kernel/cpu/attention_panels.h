/* attention_panels.h: what attention and its gradient share where a processor has kernels of ours (gemm.h).
 *
 * A panel is some query rows of one head, as many as WEFT_PANEL_VECTORS vectors have elements. Its scores are kept
 * transposed, S^T [memory, query]. So the softmax works on all query rows of the panel side by side. In every product
 * one operand is stored as a tile reads it, and of the other single elements are read. Memory rows are copied
 * together, as many as a lane's scratch holds, once for all panels; they and their gradients are then close by, in
 * whole tiles, wherever the tensors have them. The unmasked part of a panel is computed by parts: rows of a tile, and
 * the vectors that see any of them.
 */
#ifndef WEFT_ATTENTION_PANELS_H
#define WEFT_ATTENTION_PANELS_H

#include "cpu/attention.h"
#include "cpu/gemm_tile.h"

enum {
    WEFT_PANEL_VECTORS = 4,
    WEFT_PANEL =
        WEFT_PANEL_VECTORS * VECTOR_BYTES / (int)sizeof(float), /* most query rows of one */
    WEFT_PANEL_TILE = 128 /* memory rows that attention enters at a time: they stay in cache */
};

/* The softmax of a panel as it grows: for each query row the running max, and the sum of exp(score - max). */
typedef struct weft_panel_state {
    double max[WEFT_PANEL], sum[WEFT_PANEL];
} weft_panel_state;

/* The same as elements of the scores' type, for the loops below. */
typedef struct weft_panel_rows {
    double max[WEFT_PANEL];  /* with the scores at hand */
    double base[WEFT_PANEL]; /* the max; 0 where nothing is seen yet */
    double over[WEFT_PANEL]; /* in the gradient, 1 / sum */
    double mean[WEFT_PANEL]; /* D */
} weft_panel_rows;

/* Memory rows [first, first + n), and the vectors [from, from + vectors) of query rows that see any of them. */
typedef struct weft_panel_part {
    int64_t first, n;
    int from, vectors;
    bool is_whole; /* each sees all of them */
} weft_panel_part;

/* Loops over a part of scores, of which a row has `width` elements, for an element type. */
typedef struct weft_panel_math {
    /* -inf in rows that are not seen: element i of the part's vectors sees [first[i], end[i]) of its rows. */
    void (*hide)(const weft_panel_part *part, const int32_t *first, const int32_t *end, void *s,
                 int64_t width);
    /* rows->max as the state has it. */
    void (*resume)(const weft_panel_state *state, weft_panel_rows *rows, int vectors);
    /* Scores raise rows->max. */
    void (*raise)(const weft_panel_part *part, weft_panel_rows *rows, const void *s, int64_t width);
    /* The state goes over to rows->max; by[i] is what older sums must be multiplied by, which the state's have been. */
    void (*settle)(weft_panel_state *state, weft_panel_rows *rows, int vectors, double *by);
    /* Scores become exp(score - max), 0 where -inf, and are added to the sums. */
    void (*enter)(const weft_panel_part *part, weft_panel_state *state, const weft_panel_rows *rows,
                  void *s, int64_t width);
    /* rows->base, over and mean of n rows, zeros behind them. */
    void (*keep)(const weft_row_kept *kept, const double *mean, weft_panel_rows *rows, int64_t n);
    /* Scores become P, dp becomes dS = P (dP - D). */
    void (*differentiate)(const weft_panel_part *part, const weft_panel_rows *rows, void *s,
                          void *dp, int64_t width);
} weft_panel_math;
extern const weft_panel_math weft_panel_maths[WEFT_I32]; /* f32, f64 */

/* Memory rows [first, first + n) of one head, of each tensor: K and V, in the gradient dK and dV. They are in scratch,
 * [n, features], or K and V where they lie. */
enum { WEFT_HELD = 4 };
typedef struct weft_held {
    int64_t head, first, n;
    char *rows[WEFT_HELD];
    int64_t step[WEFT_HELD]; /* elements from one row to the next */
} weft_held;

/* Some query rows of one head, and a lane's scratch. */
typedef struct weft_panel {
    const weft_heads *h;
    const tile_kernels *kernels;
    int vectors, feature_vectors; /* of query rows, of features */
    int64_t width, features;      /* the same in elements */
    int64_t head, begin, n_rows;  /* query rows */
    int64_t seen[2];              /* memory rows that any of them sees */
    int64_t whole[2];             /* whole tiles of them that all of them see */
    int64_t most;                 /* memory rows that are held at a time, a multiple of a tile's */
    weft_held held;
    char *room[WEFT_HELD];         /* [most, features] */
    char *turned[2], *straight[2]; /* [feature, width], [query, features] of Q and dO */
    char *own_sum, *sum;           /* [width, features] O, dQ: in scratch, or dQ where it lies */
    int64_t sum_step;              /* elements from one row of it to the next */
    bool expects;                  /* of long panels: what is short is near by */
    ahead *next;                   /* [WEFT_PANEL_AHEAD] */
    char *s, *dp;                  /* [n, width], of a tile, and of memory rows held */
    weft_panel_state state;
    weft_panel_rows rows;
} weft_panel;

/* Tensors of which rows are asked for while a panel is computed. */
enum { WEFT_PANEL_AHEAD = 5 };

/* Query rows of a panel; by shape alone. */
int64_t weft_panel_rows_of(const weft_heads *heads);
/* Can panels do it? They know no bias and no mask. */
bool weft_panels_fit(const weft_heads *heads);
/* Lay a lane's scratch out. next [WEFT_PANEL_AHEAD] */
void weft_panel_open(weft_panel *p, const weft_heads *heads, char *scratch, ahead *next);
/* Hold memory rows [first, end) of a head: they are held already, or those that there is room for from `first` on are. */
void weft_panel_hold(weft_panel *p, int64_t head, int64_t first, int64_t end);
/* Beside the products of a long panel, what it stores is asked for, and what the one that begins at row `begin` of `head`
 * loads. */
void weft_panel_expect(weft_panel *p, int64_t head, int64_t begin);
/* The gradients of what is held become 0. */
void weft_panel_clear(const weft_panel *p);
/* They are stored, or added to those of query rows before. */
void weft_panel_release(const weft_panel *p, bool add);
/* Go to query rows [begin, begin + n_rows) of a head. */
void weft_panel_enter(weft_panel *p, int64_t head, int64_t begin, int64_t n_rows);
/* Bring their operands; the softmax has seen nothing, or in the gradient everything. */
void weft_panel_load(weft_panel *p);
/* dQ is summed up where it lies, if it lies well; false: it does not. */
bool weft_panel_sum_in_place(weft_panel *p);
/* The part of [first, end) that begins at `first`, a multiple of TILE_ROWS, all rows of which are alike. */
weft_panel_part weft_panel_part_at(const weft_panel *p, int64_t first, int64_t end);
/* s, of a part that is not whole, becomes -inf where it is not seen. */
void weft_panel_hide(const weft_panel *p, const weft_panel_part *part, char *s);
/* to [n, width] = alpha times rows of K (0) or V (1) that are held times a turned operand. */
void weft_panel_scores(const weft_panel *p, const weft_panel_part *part, int held, double alpha,
                       char *to);
/* sum = or += alpha s^T [width, n] times rows [first, end) held of K or V; s begins at row `first`. */
void weft_panel_sum(const weft_panel *p, const char *s, int held, int64_t first, int64_t end,
                    double alpha, bool is_begun);
/* Held rows of dK (2) or dV (3) += alpha s [n, query] times straight [query, features]; s begins with the part. */
void weft_panel_add(const weft_panel *p, const weft_panel_part *part, const char *s, int straight,
                    int held, double alpha);
/* Row i of O or dQ = the sum's times by[i], or that is added to it. */
void weft_panel_store(const weft_panel *p, int tensor, const double *by, bool add);

#endif
