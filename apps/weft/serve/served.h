/* served.h: `weft serve FILE`: what of a saved program is asked for, and told, by name.
 *
 * Rows: where every output has the dim `batch` first and no row of it depends on another one (apart.h), a request brings as many rows as
 * it has, and others may share its step. Else it brings whole tensors, and has the step for itself.
 */
#ifndef WEFT_APPS_SERVED_H
#define WEFT_APPS_SERVED_H

#include "../../serve/queue.h"
#include "../saved/opened.h"

typedef struct served_tensor {
    weft_value value;
    char name[WEFT_MAX_PATH + 16];
    weft_dtype dtype;
    const weft_shape *shape;
    int64_t bytes;
    bool has_rows;     /* its first dim is `batch`, of facts.rows rows */
    int64_t row_bytes; /* of one row; without rows all of it */
    void *numbers;     /* of the step, in facts.memory */
} served_tensor;

typedef struct served_facts {
    char name[256];         /* as clients call the program */
    served_tensor *inputs;  /* [n_inputs] that requests fill */
    served_tensor *outputs; /* [n_outputs] */
    int n_inputs, n_outputs;
    int64_t rows;          /* of a step; 0: requests bring whole tensors */
    bool is_joined;        /* several requests may share a step */
    bool has_vectors;      /* one input, of ids, and one output of floats: a vector a row */
    unsigned char *memory; /* [in_bytes + out_bytes]: all inputs, then all outputs */
    int64_t in_bytes, out_bytes;

    /* under the queue's lock */
    int64_t n_steps, n_rows;
    serve_times step_times;
} served_facts;

/* served_open - of a compiled program. is_fixed: whether requests do not fill that input. Local. Own it: served_close, also on failure.
 * returns WEFT_USAGE for a program without outputs, or one that trains */
weft_status served_open(served_facts *facts, const opened *o,
                        bool (*is_fixed)(const settings *s, const char *name), weft_error *error);
void served_close(served_facts *facts);
/* served_print - "x, f32[batch:4, feature:6], y, ..": inputs or outputs [n]. Local. */
void served_print(const served_tensor *tensors, int n, char *text, size_t bytes);

/* ---- one request -------------------------------------------------------------------------------- */

/* served_tells - the JSON of an answer: the outputs of n rows from row `first` of the step on. */
typedef struct json_t json_t;
typedef json_t *served_tells(const served_facts *facts, int64_t first, int64_t n);

typedef struct served_request {
    serve_request base;
    served_tells *tells;
    int64_t n_rows; /* that it has; without rows 1 */
    int n_inputs;
    void **inputs; /* [n_inputs] numbers of the dtypes: n_rows x row_bytes */
} served_request;

/* By name, of TensorFlow Serving's form, and of OpenAI's for embeddings. */
extern const serve_kind served_kind, served_vectors_kind;
served_tells served_outputs, served_predictions, served_vectors;
/* served_read - the JSON of a body into a served_request: of `served_kind`. facts: a served_facts */
weft_status served_read(const void *facts, const char *body, size_t n, serve_request *r,
                        weft_error *error);
/* served_take_rows - a JSON list of rows, which is called `name`, into a request. served_drop - what a request holds. Local, as all here. */
weft_status served_take_rows(const served_facts *facts, served_request *r, const char *name,
                             const json_t *list, weft_error *error);
void served_drop(serve_request *r);
/* served_parse - the object of JSON that a body is; own it. */
weft_status served_parse(const char *body, size_t n, const char *example, json_t **all,
                         weft_error *error);
/* served_kind_of - "a list" */
const char *served_kind_of(const json_t *value);
/* served_row - one output's numbers of a row, as lists in lists */
json_t *served_row(const served_tensor *t, int64_t row);
/* served_answer - of a request whose rows begin at row `first` of the step. To be freed; NULL: out of memory.
 * served_refuse - {"error": sentence}; served_status, served_metadata - of the program. served_count - for /metrics. */
char *served_answer(const served_facts *facts, const served_request *r, int64_t first);
char *served_refuse(int status, const char *sentence);
char *served_status(serve_queue *queue, int *status);
char *served_metadata(serve_queue *queue, int *status);
void served_count(FILE *file, const void *facts);

#endif
