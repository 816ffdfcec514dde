/* saved.h: the parts of a saved program: attributes field by field, nodes, scans; written to a file and read from its text. */
#ifndef WEFT_OPS_SAVED_H
#define WEFT_OPS_SAVED_H

#include "ir.h"
#include "weft/saved.h"

enum { WEFT_SAVED_VERSION = 1 };

/* Where reading is. Functions that read return false after a failure, whose sentence they leave in `error`. */
typedef struct weft_saved_text {
    const char *at;
    int line;
    weft_graph *graph; /* holds what is read */
    weft_error *error;
} weft_saved_text;

/* ---- letters (fields.c) -------------------------------------------------------------------------- */

/* A sentence that names the line; returns false. */
bool weft_saved_fail(weft_saved_text *t, const char *format, ...) WEFT_FORMAT(2, 3);
/* Whether this text comes next, behind blanks; if so it is passed over. */
bool weft_saved_has(weft_saved_text *t, const char *text);
/* The same of text that has to come. */
bool weft_saved_expect(weft_saved_text *t, const char *text);
/* A whole number from `least` to `most`. */
bool weft_saved_whole(weft_saved_text *t, int64_t least, int64_t most, int64_t *number);
/* A text, bare or in quotes, interned. */
bool weft_saved_word(weft_saved_text *t, const char **word);
void weft_saved_put(const char *text, FILE *file);
void weft_saved_put_shape(const weft_shape *shape, FILE *file);
bool weft_saved_shape(weft_saved_text *t, weft_shape *shape);

/* ---- attributes (fields.c) ----------------------------------------------------------------------- */

/* Whether there are only kinds of fields that a file can hold: not addresses. */
bool weft_saved_can_hold(const weft_attributes *attributes);
/* "{begin=4, scale=0x1.8p-3}": fields that are not zero, by their names. */
void weft_saved_put_attributes(const weft_attributes *attributes, const void *values, FILE *file);
/* Into values [attributes->bytes], which are zero. */
bool weft_saved_attributes(weft_saved_text *t, const weft_attributes *attributes, void *values);

/* ---- what is written (needed.c) ------------------------------------------------------------------ */

/* Numbers in the file by those of the graph; 0: it is not written. `values` is malloc-ed and has all of it. */
typedef struct weft_saved_numbers {
    uint32_t *values, *scans; /* [n_tensors], [n_scans] */
    bool is_frozen;
} weft_saved_numbers;

/* All of the graph; frozen, what the outputs need. */
weft_status weft_saved_number(const weft_graph *graph, const weft_saving *what,
                              weft_saved_numbers *numbers, weft_error *error);

/* What stands for a node in the file: its op and operands, or `same` of the one that stands for it. */
typedef struct weft_saved_op {
    const weft_op *op;
    const uint32_t *in;
    int n_in;
} weft_saved_op;

/* A failure: it cannot be written. (nodes.c) */
weft_status weft_saved_op_of(const weft_graph *graph, const weft_node *node, bool is_frozen,
                             weft_saved_op *op, weft_error *error);

/* ---- lines --------------------------------------------------------------------------------------- */

/* nodes.c. Writing a node says whether it can be. */
weft_status weft_saved_put_node(const weft_graph *graph, uint32_t node,
                                const weft_saved_numbers *numbers, FILE *file, weft_error *error);
bool weft_saved_node(weft_saved_text *t);
/* scans.c: the tables of scans and of parts; how nodes and scans hang together, when all have been read. */
void weft_saved_put_scans(const weft_graph *graph, const weft_saved_numbers *numbers, FILE *file);
bool weft_saved_scan(weft_saved_text *t);
bool weft_saved_part(weft_saved_text *t);
bool weft_saved_check_scans(weft_saved_text *t);

#endif
