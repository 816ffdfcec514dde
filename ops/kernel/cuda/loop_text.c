/* loop_text: a loop becomes the text of one kernel. Ops are blocks of their expressions, values are variables: e7 is slot 7 of an
 * element, r7 of a row.
 *
 * Without rows a thread has elements, one after the other. With rows a block has a row, and goes through it once for
 * each reduction that needs another's result; needed elements are computed again each time. Results are stored in the
 * last pass, so what lies where an operand lies is written after it was read for the last time.
 */
#include "loop_writing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- slots ----------------------------------------------------------------------------------- */

static void set_op_slots(cuda_writing *w, int op, int first)
{
    const weft_loop_op *o = &w->loop->op[op];
    int level = 0;
    for (int i = 0; i < o->n_in; i++)
        if (w->slots[o->in[i]].level > level) level = w->slots[o->in[i]].level;
    for (int k = 0; k < o->n_out; k++)
        w->slots[first + k] = (cuda_slot){.dtype = o->makes,
                                          .maker = op,
                                          .of = k,
                                          .width = 1,
                                          .level = level,
                                          .is_of_rows = o->kind != WEFT_LOOP_ELEMENTS};
    cuda_slot *s = &w->slots[first];
    if (o->kind == WEFT_LOOP_REDUCE) {
        s->dtype = o->dtype;
        s->width = weft_combine_width(o->combine);
        s->level = level + 1;
    }
    for (int k = 0; o->kind == WEFT_LOOP_FINISH && k < o->n_out; k++)
        s[k].dtype = o->combine == WEFT_ARGMAX ? WEFT_I32 : o->dtype;
}

static void set_slots(cuda_writing *w)
{
    int n = 0;
    for (; n < w->loop->n_in; n++)
        w->slots[n] = (cuda_slot){.dtype = w->loop->in[n].dtype,
                                  .maker = -1,
                                  .width = w->loop->in[n].width,
                                  .is_of_rows = w->loop->in[n].width > 1};
    for (int op = 0; op < w->loop->n_ops; op++) {
        set_op_slots(w, op, n);
        n += w->loop->op[op].n_out;
    }
}

/* Is it a variable of the row, for who reads it of an element, or of a row? */
static bool is_row_variable(const cuda_writing *w, int k, bool of_row)
{
    return of_row || w->slots[k].is_of_rows;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void need(cuda_writing *w, int k, bool of_row);

static void put_operand(cuda_writing *w, int k, bool of_row)
{
    cuda_buffer *b = of_row ? &w->row : &w->pass;
    const cuda_slot *s = &w->slots[k];
    const int pointer = cuda_add_pointer(w, w->segment->in[k].data);
    if (s->width > 1)
        cuda_say(b,
                 "        numbers_%s r%d;\n        for (int n = 0; n < %d; n++) r%d.number[n] = ",
                 weft_dtype_name(s->dtype), k, s->width, k);
    else
        cuda_say(b, "        const %s %c%d = ", types[s->dtype], of_row ? 'r' : 'e', k);
    cuda_say(b, "POINTER(const %s, %d)[%s", types[s->dtype], pointer, s->width > 1 ? "n" : "0");
    cuda_put_offset(w, b, &w->rows, k);
    if (!of_row) cuda_put_offset(w, b, &w->elements, k);
    cuda_say(b, "];\n");
}

static void put_index(cuda_writing *w, cuda_buffer *b, int op, bool of_row)
{
    const int thing = w->loop->n_in + op;
    const weft_loop_index *index = &w->segment->index[op];
    cuda_say(b, "            const int64_t index = WORD(%d)", cuda_add_word(w, index->begin));
    if (index->trip != 0)
        cuda_say(b, " + WORD(%d) * WORD(%d)", CUDA_LOOP_TRIP, cuda_add_word(w, index->trip));
    cuda_put_offset(w, b, &w->rows, thing);
    if (!of_row) cuda_put_offset(w, b, &w->elements, thing);
    cuda_say(b, ";\n");
}

/* What the expression sees, as it is called there: of three operands the first is a condition. */
static void put_names(cuda_writing *w, cuda_buffer *b, const weft_loop_op *o, bool of_row)
{
    const bool has_condition = o->n_in == 3;
    for (int i = 0; i < o->n_in; i++) {
        const char name = has_condition ? "cxy"[i] : "xy"[i];
        const char *type = has_condition && i == 0 ? "int32_t" : types[o->reads];
        cuda_say(b, "            const %s %c = %c%d;\n", type, name,
                 is_row_variable(w, o->in[i], of_row) ? 'r' : 'e', o->in[i]);
    }
}

static void put_numbers(cuda_writing *w, cuda_buffer *b, const weft_loop_op *o)
{
    const char *type = o->n_in > 0 ? types[o->reads] : "double";
    for (int n = 0; n < 2; n++)
        if (strstr(o->text, n ? "n1" : "n0") != NULL)
            cuda_say(b, "            const %s n%d = (%s)NUMBER(%d);\n", type, n, type,
                     cuda_add_number(w, o->env.number[n]));
    if (strstr(o->text, "env") == NULL) return;
    const int n0 = cuda_add_number(w, o->env.number[0]), n1 = cuda_add_number(w, o->env.number[1]);
    const int seed = cuda_add_word(w, (int64_t)o->env.seed),
              random = cuda_add_word(w, o->env.random);
    cuda_say(b,
             "            const weft_block_env env_ = env_of(run_of(WORD(%d), WORD(%d)), "
             "(uint64_t)WORD(%d), "
             "(uint32_t)WORD(%d), NUMBER(%d), NUMBER(%d)), *env = &env_;\n",
             CUDA_LOOP_RUN, CUDA_LOOP_CELL, seed, random, n0, n1);
}

static void put_block(cuda_writing *w, int k, bool of_row)
{
    cuda_buffer *b = of_row ? &w->row : &w->pass;
    const weft_loop_op *o = &w->loop->op[w->slots[k].maker];
    for (int i = 0; i < o->n_in; i++)
        need(w, o->in[i], is_row_variable(w, o->in[i], of_row));
    const char c = of_row ? 'r' : 'e';
    cuda_say(b, "        %s %c%d;\n        { /* %s */\n", types[o->makes], c, k, o->name);
    put_names(w, b, o, of_row);
    put_numbers(w, b, o);
    if (strstr(o->text, "index") != NULL) put_index(w, b, w->slots[k].maker, of_row);
    cuda_say(b, "            %c%d = (%s)(%s);\n        }\n", c, k, types[o->makes], o->text);
}

static void put_finish(cuda_writing *w, int k)
{
    const cuda_slot *s = &w->slots[k];
    const weft_loop_op *o = &w->loop->op[s->maker];
    need(w, o->in[0], true);
    cuda_say(&w->row, "        const %s r%d = finish_%s_%s(r%d.number, NUMBER(%d));\n",
             types[s->dtype], k, rules[o->combine].finish[s->of], weft_dtype_name(o->dtype),
             o->in[0], cuda_add_number(w, o->env.number[0]));
}

/* The variable of a slot is there: of a row as soon as its pass is over (put_pass has those of reductions). */
static void need(cuda_writing *w, int k, bool of_row)
{
    const cuda_slot *s = &w->slots[k];
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

static bool is_element_result(const cuda_writing *w, int o)
{
    return !w->slots[w->loop->out[o]].is_of_rows;
}

static void put_element_results(cuda_writing *w)
{
    for (int o = 0; o < w->loop->n_out; o++)
        if (is_element_result(w, o)) need(w, w->loop->out[o], false);
    for (int o = 0; o < w->loop->n_out; o++) {
        const int k = w->loop->out[o];
        if (!is_element_result(w, o)) continue;
        cuda_say(&w->pass, "        POINTER(%s, %d)[", types[w->slots[k].dtype],
                 cuda_add_pointer(w, w->segment->out[o]));
        if (w->segment->n_row_dims > 0) cuda_say(&w->pass, "r * WORD(1) + ");
        cuda_say(&w->pass, "k] = e%d;\n", k);
    }
}

static void row_kind(const cuda_writing *w, int k, char kind[40])
{
    const weft_loop_op *o = &w->loop->op[w->slots[k].maker];
    snprintf(kind, 40, "%s_%s", rules[o->combine].kind, weft_dtype_name(o->dtype));
}

static bool is_reduced_in(const cuda_writing *w, int k, int pass)
{
    const cuda_slot *s = &w->slots[k];
    return s->maker >= 0 && w->loop->op[s->maker].kind == WEFT_LOOP_REDUCE && s->level == pass + 1;
}

static void put_reductions(cuda_writing *w, int pass)
{
    char kind[40];
    for (int k = w->loop->n_in; k < w->n_slots; k++) {
        if (!is_reduced_in(w, k, pass)) continue;
        const int op = w->slots[k].maker, in = w->loop->op[op].in[0];
        const bool of_row = is_row_variable(w, in, false);
        need(w, in, of_row);
        row_kind(w, k, kind);
        cuda_say(&w->row, "        row_%s a%d = row_begin_%s();\n", kind, k, kind);
        cuda_say(&w->pass, "        a%d = row_enter_%s(a%d, %c%d, WORD(%d) + k);\n", k, kind, k,
                 of_row ? 'r' : 'e', in, cuda_add_word(w, w->segment->index[op].begin));
    }
}

static void put_meetings(cuda_writing *w, int pass)
{
    char kind[40];
    for (int k = w->loop->n_in; k < w->n_slots; k++) {
        if (!is_reduced_in(w, k, pass)) continue;
        row_kind(w, k, kind);
        if (w->slots[k].width > 1)
            cuda_say(&w->row, "        const numbers_%s r%d = row_meet_%s(a%d);\n",
                     weft_dtype_name(w->slots[k].dtype), k, kind, k);
        else
            cuda_say(&w->row, "        const %s r%d = row_meet_%s(a%d).number[0];\n",
                     types[w->slots[k].dtype], k, kind, k);
        w->is_in_row[k] = true;
    }
}

static void put_pass(cuda_writing *w, int pass, bool is_last)
{
    w->pass.used = 0;
    memset(w->is_in_pass, 0, (size_t)w->n_slots * sizeof *w->is_in_pass);
    cuda_put_digits(w, &w->pass, &w->elements);
    put_reductions(w, pass);
    if (is_last) put_element_results(w);
    cuda_say(&w->row,
             "        for (int64_t k = IN_BLOCK; k < WORD(1); k += BLOCK_THREADS) {\n%s        }\n",
             w->pass.at ? w->pass.at : "");
    put_meetings(w, pass);
}

static int count_passes(const cuda_writing *w)
{
    int n = 0;
    for (int k = 0; k < w->n_slots; k++) {
        const cuda_slot *s = &w->slots[k];
        const bool reduces = s->maker >= 0 && w->loop->op[s->maker].kind == WEFT_LOOP_REDUCE;
        if (reduces && s->level > n) n = s->level;
    }
    for (int o = 0; o < w->loop->n_out; o++)
        if (is_element_result(w, o) && w->slots[w->loop->out[o]].level + 1 > n)
            n = w->slots[w->loop->out[o]].level + 1;
    return n;
}

static void put_row_results(cuda_writing *w)
{
    for (int o = 0; o < w->loop->n_out; o++)
        if (!is_element_result(w, o)) need(w, w->loop->out[o], true);
    cuda_say(&w->row, "        SYNC();\n        if (IN_BLOCK == 0) {\n");
    for (int o = 0; o < w->loop->n_out; o++) {
        const int k = w->loop->out[o], width = w->slots[k].width;
        if (is_element_result(w, o)) continue;
        const int pointer = cuda_add_pointer(w, w->segment->out[o]);
        const char *type = types[w->slots[k].dtype];
        if (width > 1)
            cuda_say(&w->row,
                     "            for (int n = 0; n < %d; n++) POINTER(%s, %d)[r * %d + n] = "
                     "r%d.number[n];\n",
                     width, type, pointer, width, k);
        else
            cuda_say(&w->row, "            POINTER(%s, %d)[r] = r%d;\n", type, pointer, k);
    }
    cuda_say(&w->row, "        }\n        SYNC();\n");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void write_rows(cuda_writing *w)
{
    const int n_passes = count_passes(w);
    cuda_say(&w->row, "    for (int64_t r = BLOCK; r < WORD(2); r += BLOCKS) {\n");
    cuda_put_digits(w, &w->row, &w->rows);
    for (int pass = 0; pass < n_passes; pass++)
        put_pass(w, pass, pass == n_passes - 1);
    put_row_results(w);
    cuda_say(&w->row, "    }\n");
}

static void write_elements(cuda_writing *w)
{
    cuda_put_digits(w, &w->pass, &w->elements);
    put_element_results(w);
    cuda_say(&w->row, "    for (int64_t k = THREAD; k < WORD(1); k += THREADS) {\n%s    }\n",
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

static weft_status write(cuda_writing *w, weft_error *error)
{
    const weft_loop_segment *s = w->segment;
    const int n_outer = s->n_row_dims > 0 ? s->n_dims - s->n_row_dims : 0;
    w->rows = cuda_walk_of(w, 'r', 0, n_outer);
    w->elements = cuda_walk_of(w, 'k', n_outer, s->n_dims);
    w->text->n = w->elements.count;
    w->text->n_rows = s->n_row_dims > 0 ? w->rows.count : 0;
    cuda_add_word(w, 0); /* CUDA_LOOP_RUN */
    cuda_add_word(w, w->elements.count);
    cuda_add_word(w, w->rows.count);
    cuda_add_word(w, 0); /* CUDA_LOOP_TRIP */
    cuda_add_word(w, 0); /* CUDA_LOOP_CELL */
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
    cuda_writing w = {.loop = loop, .segment = segment, .text = text, .n_slots = loop->n_in};
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
