/* gemm_tile.h: what gemm.c hands to the inner loops of one element type (gemm_tile.inc). */
#ifndef WEFT_GEMM_TILE_H
#define WEFT_GEMM_TILE_H

#include "cpu/gemm.h"

enum { TILE_ROWS = WEFT_GEMM_ROWS, TILE_VECTORS = 3, VECTOR_BYTES = 64, TURN_ROWS = 16 };
/* What a tile packs is asked for so long before: rows, vectors. */
enum { LINES_AHEAD = 16, TURNS_AHEAD = 2 };

#if defined(__clang__)
#define WEFT_UNROLL(n)    _Pragma("unroll")
#define WEFT_UNROLL_BY(n) /* a loop of as many turns as it happens to have */
#else
#define WEFT_UNROLL_(text) _Pragma(#text)
#define WEFT_UNROLL(n)     WEFT_UNROLL_(GCC unroll n)
#define WEFT_UNROLL_BY(n)  WEFT_UNROLL(n)
#endif
#define TILE_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define TILE_INLINE static inline __attribute__((always_inline))

/* Memory that is packed next: rows of some cache lines each. `share` lines are asked for at a time, while a tile is
 * computed: asked for all at once they would take every buffer that the tile's own loads need. */
typedef struct ahead {
    const char *at;
    int64_t stride, rows; /* bytes; left */
    int lines, line, share;
} ahead;

TILE_INLINE void fetch_ahead(ahead *a)
{
    for (int i = 0; i < a->share && a->rows > 0; i++) {
        __builtin_prefetch(a->at + (ptrdiff_t)a->line * 64, 0, 2);
        if (++a->line < a->lines) continue;
        a->line = 0;
        a->at += a->stride;
        a->rows--;
    }
}

/* How an operand of a tile lies. A tile that is the first to read a panel packs it beside its arithmetic, for those after it. */
typedef enum lies {
    PACKED,
    LEVEL,  /* those of one l are neighbours */
    UPRIGHT /* those along k are: they are turned */
} lies;
enum { WAYS_OF_A = UPRIGHT + 1, WAYS_OF_B = LEVEL + 1 };

typedef struct operand {
    const void *from;
    /* of what is not packed: from one l to the next; UPRIGHT: from one row to the next */
    int64_t stride;
    void *to; /* where it is packed to */
} operand;

/* c [rows, columns] = or += alpha a b, where packed a is [k, rows] and b [k, vectors]. */
typedef struct tile {
    int64_t k; /* steps */
    operand a, b;
    void *c;
    int64_t leading; /* of c, in elements */
    int columns;     /* of c; b has zeros in the rest of its last vector */
    bool add;
    double alpha;
    uint16_t *narrow; /* not NULL: what c would be goes there, as bf16, and c stays as it is */
    int64_t narrow_leading;
    ahead *next; /* [2] */
} tile;

/* c [8, vectors] = or += alpha a b, of operands as they lie, for products too small to be worth packing: element (i, l) of
 * a is a[i * a_row + l * a_step], row l of b begins at b[l * b_step]. Of pairs a_step is 1, and k is of pairs. */
typedef struct loose_tile {
    int64_t k;
    const void *a, *b;
    int64_t a_row, a_step, b_step;
    void *c;
    int64_t leading; /* of c */
    bool add;
    double alpha;
    uint16_t *narrow; /* as in tile */
    int64_t narrow_leading;
} loose_tile;

/* n elements, contiguous. */
typedef void (*tile_convert)(int64_t n, const void *from, void *to);

typedef struct side side;
/* One panel of n elements, whole vectors, by k, where i is contiguous: converted and packed at once. */
typedef void (*tile_pack_wide)(const side *from, int n, int64_t k, void *to);

/* An operand as it lies: element (i, l), l of k, is data[i * step + l * deep]. */
struct side {
    const char *data;
    int64_t step, deep;
    int panel;                /* of so many i; the last may be narrower */
    int pad;                  /* and is filled with zeros to a multiple of this */
    int bytes;                /* of an element */
    tile_convert convert;     /* NULL: packed as it is stored */
    int converted;            /* bytes of an element afterwards */
    tile_pack_wide pack_wide; /* NULL: it is converted, then packed */
};

typedef void (*tile_function)(const tile *t);
typedef void (*loose_function)(const loose_tile *t);
typedef struct tile_kernels {
    int width; /* elements of a vector */
    int each;  /* of k in a step: 2 where products of pairs are summed up by one instruction */
    tile_function compute[TILE_ROWS][TILE_VECTORS];
    /* of TILE_ROWS rows and whole vectors, not both packed */
    tile_function first[WAYS_OF_A][WAYS_OF_B][TILE_VECTORS];
    loose_function loose[TILE_VECTORS];
    /* One panel of n <= panel elements by k, to [steps, width]. */
    void (*pack)(const side *from, int n, int width, int64_t k, void *to);
} tile_kernels;

/* Of what is computed with as it is stored; NULL where weft_gemm_has says no. */
const tile_kernels *weft_gemm_kernels(weft_dtype dtype);
/* The same of products that read a dtype, which this processor has: f32, f64, bf16 or f16. */
const tile_kernels *weft_gemm_kernels_for(weft_dtype reads);
/* What is done to an operand of such products before it is packed, if it is stored as `stored`: as they read it, or f32; NULL:
 * nothing. */
tile_convert weft_gemm_convert(weft_dtype reads, weft_dtype stored);
/* How both are done at once; NULL: they are not. */
tile_pack_wide weft_gemm_pack_wide(weft_dtype reads, weft_dtype stored);

#endif
