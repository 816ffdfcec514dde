/* loop_words: the text of a kernel under construction, the numbers that it is called with, and where along its dims a thing lies. */
#include "loop_writing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text and words -------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void cuda_say(cuda_buffer *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (b->used + (size_t)n + 1 > b->room) {
        const size_t room = 2 * (b->used + (size_t)n) + 4096;
        char *at = realloc(b->at, room);
        if (at == NULL) {
            b->has_failed = true;
            return;
        }
        b->at = at, b->room = room;
    }
    va_start(arguments, format);
    vsnprintf(b->at + b->used, b->room - b->used, format, arguments);
    va_end(arguments);
    b->used += (size_t)n;
}

/* Returns where it stands. */
int cuda_add_word(cuda_writing *w, int64_t word)
{
    cuda_loop_text *t = w->text;
    if (t->n_words == w->room) {
        const int room = 2 * w->room + 64;
        int64_t *words = realloc(t->words, (size_t)room * sizeof *words);
        if (words == NULL) {
            w->row.has_failed = true;
            return 0;
        }
        t->words = words, w->room = room;
    }
    t->words[t->n_words] = word;
    return t->n_words++;
}

int cuda_add_pointer(cuda_writing *w, const void *pointer)
{
    return cuda_add_word(w, (int64_t)(uintptr_t)pointer);
}

int cuda_add_number(cuda_writing *w, double number)
{
    int64_t word;
    memcpy(&word, &number, sizeof word);
    return cuda_add_word(w, word);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static int64_t stride_of(const cuda_writing *w, int thing, int d)
{
    const int n_in = w->loop->n_in;
    return thing < n_in ? w->segment->in[thing].stride[d]
                        : w->segment->index[thing - n_in].stride[d];
}

static bool joins(const cuda_writing *w, const cuda_walk *x, int d)
{
    for (int thing = 0; thing < w->loop->n_in + w->loop->n_ops; thing++)
        if (stride_of(w, thing, x->dim[x->n_dims - 1]) !=
            stride_of(w, thing, d) * w->segment->size[d])
            return false;
    return true;
}

cuda_walk cuda_walk_of(const cuda_writing *w, char letter, int begin, int end)
{
    cuda_walk x = {.letter = letter, .count = 1};
    for (int d = begin; d < end; d++) {
        const int64_t size = w->segment->size[d];
        x.count *= size;
        if (size == 1) continue;
        const int at = x.n_dims > 0 && joins(w, &x, d) ? x.n_dims - 1 : x.n_dims++;
        x.size[at] = (at < x.n_dims && x.size[at] > 0 ? x.size[at] : 1) * size;
        x.dim[at] = d;
    }
    return x;
}

/* k_0, k_1, ... of k; of one dim it is k itself. */
void cuda_put_digits(cuda_writing *w, cuda_buffer *b, const cuda_walk *x)
{
    const char c = x->letter;
    if (x->n_dims < 2) return;
    cuda_say(b, "        int64_t %c_ = %c;\n", c, c);
    for (int d = x->n_dims - 1; d > 0; d--) {
        const int size = cuda_add_word(w, x->size[d]);
        cuda_say(b, "        const int64_t %c_%d = %c_ %% WORD(%d);\n        %c_ /= WORD(%d);\n", c,
                 d, c, size, c, size);
        cuda_say(b, "        (void)%c_%d;\n", c, d); /* nothing may go along it */
    }
    cuda_say(b, "        const int64_t %c_0 = %c_;\n        (void)%c_0;\n", c, c, c);
}

/* The step between neighbours where it is one all along the walk; -1: it is not. */
static int64_t even_step(const cuda_writing *w, const cuda_walk *x, int thing)
{
    const int64_t step = x->n_dims > 0 ? stride_of(w, thing, x->dim[x->n_dims - 1]) : 0;
    int64_t next = step;
    for (int d = x->n_dims - 1; d >= 0; d--) {
        if (stride_of(w, thing, x->dim[d]) != next) return -1;
        next *= x->size[d];
    }
    return step;
}

/* " + k * WORD(5)": where a thing is, along a walk. */
void cuda_put_offset(cuda_writing *w, cuda_buffer *b, const cuda_walk *x, int thing)
{
    const int64_t step = even_step(w, x, thing);
    if (step == 1) cuda_say(b, " + %c", x->letter);
    if (step > 1) cuda_say(b, " + %c * WORD(%d)", x->letter, cuda_add_word(w, step));
    for (int d = 0; step < 0 && d < x->n_dims; d++) {
        const int64_t stride = stride_of(w, thing, x->dim[d]);
        if (stride != 0) cuda_say(b, " + %c_%d * WORD(%d)", x->letter, d, cuda_add_word(w, stride));
    }
}
