/* loop_writing.h (private): a loop while its text is written (loop_text.c), and what texts are made of (loop_words.c). */
#ifndef WEFT_CUDA_LOOP_WRITING_H
#define WEFT_CUDA_LOOP_WRITING_H

#include "loop_text.h"

typedef struct cuda_buffer {
    char *at;
    size_t used, room;
    bool has_failed;
} cuda_buffer;

/* Dims of the segment that are one direction, neighbours joined. Things with strides: operands, then indices of ops. */
typedef struct cuda_walk {
    char letter; /* of its number and digits: r, k */
    int n_dims;
    int64_t size[WEFT_MAX_DIMS], count;
    int dim[WEFT_MAX_DIMS]; /* the innermost of the segment's that it is made of */
} cuda_walk;

typedef struct cuda_slot {
    weft_dtype dtype;
    int maker; /* the op; -1: an operand */
    int of;    /* which of the maker's results */
    int width, level;
    bool is_of_rows; /* a value of the row */
} cuda_slot;

typedef struct cuda_writing {
    const weft_loop *loop;
    const weft_loop_segment *segment;
    cuda_loop_text *text;
    cuda_buffer row, pass; /* statements of the row (or of the kernel), and of the pass at hand */
    cuda_walk rows, elements;
    cuda_slot *slots;
    bool *is_in_row, *is_in_pass; /* what has been written */
    int n_slots, room;
} cuda_writing;

/* ---- loop_words.c ------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) void cuda_say(cuda_buffer *b, const char *format, ...);
/* A number of the call: where it stands among the words. */
int cuda_add_word(cuda_writing *w, int64_t word);
int cuda_add_pointer(cuda_writing *w, const void *pointer);
int cuda_add_number(cuda_writing *w, double number);
/* Dims [begin, end) of the segment. */
cuda_walk cuda_walk_of(const cuda_writing *w, char letter, int begin, int end);
/* k_0, k_1, ... of k; of one dim it is k itself. */
void cuda_put_digits(cuda_writing *w, cuda_buffer *b, const cuda_walk *x);
/* " + k * WORD(5)": where a thing is, along a walk. */
void cuda_put_offset(cuda_writing *w, cuda_buffer *b, const cuda_walk *x, int thing);

#endif
