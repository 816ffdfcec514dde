/* loop_text: a loop becomes the text of one kernel. Ops are blocks of their expressions, values are variables: e7 is slot 7 of an
 * element, r7 of a row.
 *
 * Without rows a thread has elements, one after the other. With rows a block has a row, and goes through it once for
 * each reduction that needs another's result; needed elements are computed again each time. Results are stored in the
 * last pass, so what lies where an operand lies is written after it was read for the last time.
 */
#include "loop_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    char *at;
    size_t used, room;
    bool has_failed;
} buffer;

/* Dims of the segment that are one direction, neighbours joined. Things with strides: operands, then indices of ops. */
typedef struct walk {
    char letter; /* of its number and digits: r, k */
    int n_dims;
    int64_t size[WEFT_MAX_DIMS], count;
    int dim[WEFT_MAX_DIMS]; /* the innermost of the segment's that it is made of */
} walk;

typedef struct slot {
    weft_dtype dtype;
    int maker; /* the op; -1: an operand */
    int of;    /* which of the maker's results */
    int width, level;
    bool is_of_rows; /* a value of the row */
} slot;

typedef struct writing {
    const weft_loop *loop;
    const weft_loop_segment *segment;
    cuda_loop_text *text;
    buffer row, pass; /* statements of the row (or of the kernel), and of the pass at hand */
    walk rows, elements;
    slot *slots;
    bool *is_in_row, *is_in_pass; /* what has been written */
    int n_slots, room;
} writing;

static const char *const types[WEFT_DTYPES] = {
    [WEFT_F32] = "float",     [WEFT_F64] = "double",   [WEFT_I32] = "int32_t",
    [WEFT_BF16] = "uint16_t", [WEFT_F16] = "uint16_t", [WEFT_I64] = "int64_t",
    [WEFT_U8] = "uint8_t"};
/* By combine: of a reduction, and of the results of a finish. */
static const struct {
    const char *kind, *finish[2];
} rules[] = {[WEFT_SUM] = {"sum", {0}},
             [WEFT_MAX] = {"max", {0}},
             [WEFT_MIN] = {"min", {0}},
             [WEFT_LSE] = {"lse", {"maximum", "log_sum"}},
             [WEFT_ARGMAX] = {"argmax", {"argmax"}},
             [WEFT_MOMENTS] = {"moments", {"mean", "scale"}}};
enum { N_RULES = sizeof rules / sizeof *rules };

/* ---- text and words -------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(buffer *b, const char *format, ...)
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
static int add_word(writing *w, int64_t word)
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

static int add_pointer(writing *w, const void *pointer)
{
    return add_word(w, (int64_t)(uintptr_t)pointer);
}

static int add_number(writing *w, double number)
{
    int64_t word;
    memcpy(&word, &number, sizeof word);
    return add_word(w, word);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static int64_t stride_of(const writing *w, int thing, int d)
{
    const int n_in = w->loop->n_in;
    return thing < n_in ? w->segment->in[thing].stride[d]
                        : w->segment->index[thing - n_in].stride[d];
}

static bool joins(const writing *w, const walk *x, int d)
{
    for (int thing = 0; thing < w->loop->n_in + w->loop->n_ops; thing++)
        if (stride_of(w, thing, x->dim[x->n_dims - 1]) !=
            stride_of(w, thing, d) * w->segment->size[d])
            return false;
    return true;
}

static walk walk_of(const writing *w, char letter, int begin, int end)
{
    walk x = {.letter = letter, .count = 1};
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
static void put_digits(writing *w, buffer *b, const walk *x)
{
    const char c = x->letter;
    if (x->n_dims < 2) return;
    put(b, "        int64_t %c_ = %c;\n", c, c);
    for (int d = x->n_dims - 1; d > 0; d--) {
        const int size = add_word(w, x->size[d]);
        put(b, "        const int64_t %c_%d = %c_ %% WORD(%d);\n        %c_ /= WORD(%d);\n", c, d,
            c, size, c, size);
        put(b, "        (void)%c_%d;\n", c, d); /* nothing may go along it */
    }
    put(b, "        const int64_t %c_0 = %c_;\n        (void)%c_0;\n", c, c, c);
}

/* The step between neighbours where it is one all along the walk; -1: it is not. */
static int64_t even_step(const writing *w, const walk *x, int thing)
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
static void put_offset(writing *w, buffer *b, const walk *x, int thing)
{
    const int64_t step = even_step(w, x, thing);
    if (step == 1) put(b, " + %c", x->letter);
    if (step > 1) put(b, " + %c * WORD(%d)", x->letter, add_word(w, step));
    for (int d = 0; step < 0 && d < x->n_dims; d++) {
        const int64_t stride = stride_of(w, thing, x->dim[d]);
        if (stride != 0) put(b, " + %c_%d * WORD(%d)", x->letter, d, add_word(w, stride));
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void set_op_slots(writing *w, int op, int first)
{
    const weft_loop_op *o = &w->loop->op[op];
    int level = 0;
    for (int i = 0; i < o->n_in; i++)
        if (w->slots[o->in[i]].level > level) level = w->slots[o->in[i]].level;
    for (int k = 0; k < o->n_out; k++)
        w->slots[first + k] = (slot){.dtype = o->makes,
                                     .maker = op,
                                     .of = k,
                                     .width = 1,
                                     .level = level,
                                     .is_of_rows = o->kind != WEFT_LOOP_ELEMENTS};
    slot *s = &w->slots[first];
    if (o->kind == WEFT_LOOP_REDUCE) {
        s->dtype = o->dtype;
        s->width = weft_combine_width(o->combine);
        s->level = level + 1;
    }
    for (int k = 0; o->kind == WEFT_LOOP_FINISH && k < o->n_out; k++)
        s[k].dtype = o->combine == WEFT_ARGMAX ? WEFT_I32 : o->dtype;
}

static void set_slots(writing *w)
{
    int n = 0;
    for (; n < w->loop->n_in; n++)
        w->slots[n] = (slot){.dtype = w->loop->in[n].dtype,
                             .maker = -1,
                             .width = w->loop->in[n].width,
                             .is_of_rows = w->loop->in[n].width > 1};
    for (int op = 0; op < w->loop->n_ops; op++) {
        set_op_slots(w, op, n);
        n += w->loop->op[op].n_out;
    }
}

/* Is it a variable of the row, for who reads it of an element, or of a row? */
static bool is_row_variable(const writing *w, int k, bool of_row)
{
    return of_row || w->slots[k].is_of_rows;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void need(writing *w, int k, bool of_row);

static void put_operand(writing *w, int k, bool of_row)
{
    buffer *b = of_row ? &w->row : &w->pass;
    const slot *s = &w->slots[k];
    const int pointer = add_pointer(w, w->segment->in[k].data);
    if (s->width > 1)
        put(b, "        numbers_%s r%d;\n        for (int n = 0; n < %d; n++) r%d.number[n] = ",
            weft_dtype_name(s->dtype), k, s->width, k);
    else
        put(b, "        const %s %c%d = ", types[s->dtype], of_row ? 'r' : 'e', k);
    put(b, "POINTER(const %s, %d)[%s", types[s->dtype], pointer, s->width > 1 ? "n" : "0");
    put_offset(w, b, &w->rows, k);
    if (!of_row) put_offset(w, b, &w->elements, k);
    put(b, "];\n");
}

static void put_index(writing *w, buffer *b, int op, bool of_row)
{
    const int thing = w->loop->n_in + op;
    const weft_loop_index *index = &w->segment->index[op];
    put(b, "            const int64_t index = WORD(%d)", add_word(w, index->begin));
    if (index->trip != 0)
        put(b, " + WORD(%d) * WORD(%d)", CUDA_LOOP_TRIP, add_word(w, index->trip));
    put_offset(w, b, &w->rows, thing);
    if (!of_row) put_offset(w, b, &w->elements, thing);
    put(b, ";\n");
}

/* What the expression sees, as it is called there: of three operands the first is a condition. */
static void put_names(writing *w, buffer *b, const weft_loop_op *o, bool of_row)
{
    const bool has_condition = o->n_in == 3;
    for (int i = 0; i < o->n_in; i++) {
        const char name = has_condition ? "cxy"[i] : "xy"[i];
        const char *type = has_condition && i == 0 ? "int32_t" : types[o->reads];
        put(b, "            const %s %c = %c%d;\n", type, name,
            is_row_variable(w, o->in[i], of_row) ? 'r' : 'e', o->in[i]);
    }
}

static void put_numbers(writing *w, buffer *b, const weft_loop_op *o)
{
    const char *type = o->n_in > 0 ? types[o->reads] : "double";
    for (int n = 0; n < 2; n++)
        if (strstr(o->text, n ? "n1" : "n0") != NULL)
            put(b, "            const %s n%d = (%s)NUMBER(%d);\n", type, n, type,
                add_number(w, o->env.number[n]));
    if (strstr(o->text, "env") == NULL) return;
    const int n0 = add_number(w, o->env.number[0]), n1 = add_number(w, o->env.number[1]);
    const int seed = add_word(w, (int64_t)o->env.seed), random = add_word(w, o->env.random);
    put(b,
        "            const weft_block_env env_ = env_of(run_of(WORD(%d), WORD(%d)), "
        "(uint64_t)WORD(%d), "
        "(uint32_t)WORD(%d), NUMBER(%d), NUMBER(%d)), *env = &env_;\n",
        CUDA_LOOP_RUN, CUDA_LOOP_CELL, seed, random, n0, n1);
}

static void put_block(writing *w, int k, bool of_row)
{
    buffer *b = of_row ? &w->row : &w->pass;
    const weft_loop_op *o = &w->loop->op[w->slots[k].maker];
    for (int i = 0; i < o->n_in; i++)
        need(w, o->in[i], is_row_variable(w, o->in[i], of_row));
    const char c = of_row ? 'r' : 'e';
    put(b, "        %s %c%d;\n        { /* %s */\n", types[o->makes], c, k, o->name);
    put_names(w, b, o, of_row);
    put_numbers(w, b, o);
    if (strstr(o->text, "index") != NULL) put_index(w, b, w->slots[k].maker, of_row);
    put(b, "            %c%d = (%s)(%s);\n        }\n", c, k, types[o->makes], o->text);
}

static void put_finish(writing *w, int k)
{
    const slot *s = &w->slots[k];
    const weft_loop_op *o = &w->loop->op[s->maker];
    need(w, o->in[0], true);
    put(&w->row, "        const %s r%d = finish_%s_%s(r%d.number, NUMBER(%d));\n", types[s->dtype],
        k, rules[o->combine].finish[s->of], weft_dtype_name(o->dtype), o->in[0],
        add_number(w, o->env.number[0]));
}

/* The variable of a slot is there: of a row as soon as its pass is over (put_pass has those of reductions). */
static void need(writing *w, int k, bool of_row)
{
    const slot *s = &w->slots[k];
    bool *is_there = of_row ? &w->is_in_row[k] : &w->is_in_pass[k];
    if (*is_there) return;
    *is_there = true;
    if (s->maker < 0)
        put_operand(w, k, of_row);
    else if (w->loop->op[s->maker].kind == WEFT_LOOP_FINISH)
        put_finish(w, k);
    else
        put_block(w, k, of_row);
}

/* ---- passes ---------------------------------------------------------------------------------- */

static bool is_element_result(const writing *w, int o)
{
    return !w->slots[w->loop->out[o]].is_of_rows;
}

static void put_element_results(writing *w)
{
    for (int o = 0; o < w->loop->n_out; o++)
        if (is_element_result(w, o)) need(w, w->loop->out[o], false);
    for (int o = 0; o < w->loop->n_out; o++) {
        const int k = w->loop->out[o];
        if (!is_element_result(w, o)) continue;
        put(&w->pass, "        POINTER(%s, %d)[", types[w->slots[k].dtype],
            add_pointer(w, w->segment->out[o]));
        if (w->segment->n_row_dims > 0) put(&w->pass, "r * WORD(1) + ");
        put(&w->pass, "k] = e%d;\n", k);
    }
}

static void row_kind(const writing *w, int k, char kind[40])
{
    const weft_loop_op *o = &w->loop->op[w->slots[k].maker];
    snprintf(kind, 40, "%s_%s", rules[o->combine].kind, weft_dtype_name(o->dtype));
}

static bool is_reduced_in(const writing *w, int k, int pass)
{
    const slot *s = &w->slots[k];
    return s->maker >= 0 && w->loop->op[s->maker].kind == WEFT_LOOP_REDUCE && s->level == pass + 1;
}

static void put_reductions(writing *w, int pass)
{
    char kind[40];
    for (int k = w->loop->n_in; k < w->n_slots; k++) {
        if (!is_reduced_in(w, k, pass)) continue;
        const int op = w->slots[k].maker, in = w->loop->op[op].in[0];
        const bool of_row = is_row_variable(w, in, false);
        need(w, in, of_row);
        row_kind(w, k, kind);
        put(&w->row, "        row_%s a%d = row_begin_%s();\n", kind, k, kind);
        put(&w->pass, "        a%d = row_enter_%s(a%d, %c%d, WORD(%d) + k);\n", k, kind, k,
            of_row ? 'r' : 'e', in, add_word(w, w->segment->index[op].begin));
    }
}

static void put_meetings(writing *w, int pass)
{
    char kind[40];
    for (int k = w->loop->n_in; k < w->n_slots; k++) {
        if (!is_reduced_in(w, k, pass)) continue;
        row_kind(w, k, kind);
        if (w->slots[k].width > 1)
            put(&w->row, "        const numbers_%s r%d = row_meet_%s(a%d);\n",
                weft_dtype_name(w->slots[k].dtype), k, kind, k);
        else
            put(&w->row, "        const %s r%d = row_meet_%s(a%d).number[0];\n",
                types[w->slots[k].dtype], k, kind, k);
        w->is_in_row[k] = true;
    }
}

static void put_pass(writing *w, int pass, bool is_last)
{
    w->pass.used = 0;
    memset(w->is_in_pass, 0, (size_t)w->n_slots * sizeof *w->is_in_pass);
    put_digits(w, &w->pass, &w->elements);
    put_reductions(w, pass);
    if (is_last) put_element_results(w);
    put(&w->row,
        "        for (int64_t k = IN_BLOCK; k < WORD(1); k += BLOCK_THREADS) {\n%s        }\n",
        w->pass.at ? w->pass.at : "");
    put_meetings(w, pass);
}

static int count_passes(const writing *w)
{
    int n = 0;
    for (int k = 0; k < w->n_slots; k++) {
        const slot *s = &w->slots[k];
        const bool reduces = s->maker >= 0 && w->loop->op[s->maker].kind == WEFT_LOOP_REDUCE;
        if (reduces && s->level > n) n = s->level;
    }
    for (int o = 0; o < w->loop->n_out; o++)
        if (is_element_result(w, o) && w->slots[w->loop->out[o]].level + 1 > n)
            n = w->slots[w->loop->out[o]].level + 1;
    return n;
}

static void put_row_results(writing *w)
{
    for (int o = 0; o < w->loop->n_out; o++)
        if (!is_element_result(w, o)) need(w, w->loop->out[o], true);
    put(&w->row, "        SYNC();\n        if (IN_BLOCK == 0) {\n");
    for (int o = 0; o < w->loop->n_out; o++) {
        const int k = w->loop->out[o], width = w->slots[k].width;
        if (is_element_result(w, o)) continue;
        const int pointer = add_pointer(w, w->segment->out[o]);
        const char *type = types[w->slots[k].dtype];
        if (width > 1)
            put(&w->row,
                "            for (int n = 0; n < %d; n++) POINTER(%s, %d)[r * %d + n] = "
                "r%d.number[n];\n",
                width, type, pointer, width, k);
        else
            put(&w->row, "            POINTER(%s, %d)[r] = r%d;\n", type, pointer, k);
    }
    put(&w->row, "        }\n        SYNC();\n");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void write_rows(writing *w)
{
    const int n_passes = count_passes(w);
    put(&w->row, "    for (int64_t r = BLOCK; r < WORD(2); r += BLOCKS) {\n");
    put_digits(w, &w->row, &w->rows);
    for (int pass = 0; pass < n_passes; pass++)
        put_pass(w, pass, pass == n_passes - 1);
    put_row_results(w);
    put(&w->row, "    }\n");
}

static void write_elements(writing *w)
{
    put_digits(w, &w->pass, &w->elements);
    put_element_results(w);
    put(&w->row, "    for (int64_t k = THREAD; k < WORD(1); k += THREADS) {\n%s    }\n",
        w->pass.at ? w->pass.at : "");
}

static weft_status check(const weft_loop *loop, weft_error *error)
{
    for (int k = 0; k < loop->n_ops; k++) {
        const weft_loop_op *o = &loop->op[k];
        const bool has_block = o->kind == WEFT_LOOP_ELEMENTS || o->kind == WEFT_LOOP_ROWS;
        if (has_block && o->text == NULL)
            return weft_fail(
                error, WEFT_USAGE,
                "%s cannot be computed on the device cuda: its block functions are the "
                "CPU's, and its table has no text that they are made of; make it by "
                "WEFT_ELEMENT_1 and the like, or say it in .text",
                o->name ? o->name : "an op");
        if (!has_block && ((int)o->combine >= N_RULES || rules[o->combine].kind == NULL))
            return weft_fail(
                error, WEFT_USAGE,
                "%s cannot be computed on the device cuda: its combine is from outside",
                o->name ? o->name : "a reduction");
    }
    return WEFT_OK;
}

static weft_status write(writing *w, weft_error *error)
{
    const weft_loop_segment *s = w->segment;
    const int n_outer = s->n_row_dims > 0 ? s->n_dims - s->n_row_dims : 0;
    w->rows = walk_of(w, 'r', 0, n_outer);
    w->elements = walk_of(w, 'k', n_outer, s->n_dims);
    w->text->n = w->elements.count;
    w->text->n_rows = s->n_row_dims > 0 ? w->rows.count : 0;
    add_word(w, 0); /* CUDA_LOOP_RUN */
    add_word(w, w->elements.count);
    add_word(w, w->rows.count);
    add_word(w, 0); /* CUDA_LOOP_TRIP */
    add_word(w, 0); /* CUDA_LOOP_CELL */
    set_slots(w);
    (s->n_row_dims > 0 ? write_rows : write_elements)(w);
    if (w->row.has_failed || w->pass.has_failed || w->text->words == NULL)
        return weft_fail_memory(error, w->row.room);
    w->text->body = w->row.at;
    w->row.at = NULL;
    return WEFT_OK;
}

weft_status cuda_loop_write(const weft_loop *loop, const weft_loop_segment *segment,
                            cuda_loop_text *text, weft_error *error)
{
    writing w = {.loop = loop, .segment = segment, .text = text, .n_slots = loop->n_in};
    *text = (cuda_loop_text){0};
    WEFT_TRY(check(loop, error));
    for (int k = 0; k < loop->n_ops; k++)
        w.n_slots += loop->op[k].n_out;
    const size_t n = (size_t)w.n_slots + 1;
    w.slots = calloc(n, sizeof *w.slots);
    w.is_in_row = calloc(n, sizeof *w.is_in_row);
    w.is_in_pass = calloc(n, sizeof *w.is_in_pass);
    weft_status status = WEFT_OK;
    if (w.slots == NULL || w.is_in_row == NULL || w.is_in_pass == NULL)
        status = weft_fail_memory(error, n * sizeof *w.slots);
    if (status == WEFT_OK) status = write(&w, error);
    if (status != WEFT_OK) {
        free(text->words);
        *text = (cuda_loop_text){0};
    }
    free(w.row.at), free(w.pass.at);
    free(w.slots), free(w.is_in_row), free(w.is_in_pass);
    return status;
}
