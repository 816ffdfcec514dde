/* table: what the steps of programs are, in words. */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"
#include "report.h"

/* "all_reduce w.grad", "gelu and 3 more", "einsum". */
static void name_step(const weft_step_line *line, char *text, size_t bytes)
{
    const weft_planned_step *s = &line->s;
    if (s->kind == WEFT_STEP_CONVERT)
        snprintf(text, bytes, "%s%s%s", weft_convert_name(s->collective), line->value ? " " : "",
                 line->value ? line->value : "");
    else if (s->kind == WEFT_STEP_KERNEL)
        snprintf(text, bytes, "%s", s->op);
    else if (s->kind == WEFT_STEP_LOOP && s->n_links > 1)
        snprintf(text, bytes, "%s and %d more", s->op, s->n_links - 1);
    else if (s->kind == WEFT_STEP_LOOP)
        snprintf(text, bytes, "%s", s->op);
    else
        snprintf(text, bytes, "%s %s", weft_step_kind_name(s->kind), s->op);
}

/* Of what the step makes; of an exchange from where to where. */
static weft_status describe(const weft_program *program, const weft_planned_step *s,
                            weft_texts *texts, weft_ring_step *step, weft_error *error)
{
    weft_tensor_line made, from;
    char spec[500];
    if (s->n_in + s->n_out == 0) return WEFT_OK;
    WEFT_TRY(weft_report_tensor(program, s->n_out ? s->out[0] : s->in[0], &made, error));
    step->dims = weft_texts_add(texts, made.dims);
    snprintf(spec, sizeof spec, "%s", made.spec);
    if (s->kind == WEFT_STEP_CONVERT) {
        WEFT_TRY(weft_report_tensor(program, s->in[0], &from, error));
        snprintf(spec, sizeof spec, "%s -> %s", from.spec, made.spec);
    }
    step->spec = weft_texts_add(texts, spec);
    return WEFT_OK;
}

static weft_status add_step(const weft_program *program, int index, weft_texts *texts,
                            weft_ring_step *step, weft_error *error)
{
    weft_step_line line;
    char name[200];
    WEFT_TRY(weft_report_step(program, index, &line, error));
    name_step(&line, name, sizeof name);
    *step = (weft_ring_step){.name = weft_texts_add(texts, name),
                             .op = weft_texts_add(texts, line.s.op),
                             .place = weft_texts_add(texts, line.place),
                             .reason = weft_texts_add(texts, line.s.reason),
                             .kind = line.s.kind,
                             .axes = weft_report_exchanges(&line.s) ? line.s.axes : 0,
                             .scan = program->plan->steps[index].scan};
    return describe(program, &line.s, texts, step, error);
}

/* In ns. An exchange costs what it makes the run longer. */
static void predict_step(const weft_predicted_step *predicted, weft_ring_step *step)
{
    step->predicted_begin = (int64_t)(1e9 * predicted->begin);
    const double total = step->axes ? predicted->exposed_seconds : predicted->total_seconds;
    step->predicted_end = (int64_t)(1e9 * predicted->end);
    step->predicted_total = (int64_t)(1e9 * total);
}

static weft_status add_program(const weft_trace_part *part, weft_trace_table *table,
                               weft_error *error)
{
    const int n = weft_plan_n_steps(part->program);
    const size_t bytes = ((size_t)table->n_steps + (size_t)n + 1) * sizeof *table->steps;
    weft_ring_step *steps = realloc(table->steps, bytes);
    if (!steps) return weft_fail_memory(error, bytes);
    table->steps = steps;
    table->programs[table->n_programs++] =
        (weft_ring_program){.digest = weft_program_digest(part->program),
                            .name = weft_texts_add(&table->texts, part->name),
                            .n_steps = (uint32_t)n};
    for (int s = 0; s < n; s++) {
        weft_ring_step *step = &steps[table->n_steps++];
        WEFT_TRY(add_step(part->program, s, &table->texts, step, error));
        if (part->predicted) predict_step(&part->predicted[s], step);
    }
    return WEFT_OK;
}

weft_status weft_trace_table_make(const weft_trace_part *parts, int n, weft_trace_table *table,
                                  weft_error *error)
{
    for (int i = 0; i < n; i++)
        WEFT_TRY(add_program(&parts[i], table, error));
    return table->texts.is_short ? weft_fail_memory(error, table->texts.bytes) : WEFT_OK;
}

void weft_trace_table_free(weft_trace_table *table)
{
    weft_texts_free(&table->texts);
    free(table->steps);
    *table = (weft_trace_table){0};
}

void weft_trace_table_bytes(const weft_rank *rank, weft_ring_step *steps)
{
    const uint32_t n_steps = rank->program->plan->n_steps;
    const weft_memory *memory = &rank->layout;
    for (uint32_t s = 0; s < n_steps; s++) {
        steps[s].arena_bytes = 0;
        steps[s].sent_bytes =
            steps[s].axes ? weft_move_wire_bytes(rank->steps[s].exchange.move) : 0;
    }
    for (uint32_t i = 0; i < memory->n_packed; i++) { /* what comes, and what has gone */
        const weft_buffer *buffer = memory->buffers[i];
        if (buffer->first < n_steps) steps[buffer->first].arena_bytes += buffer->bytes;
        if (buffer->last + 1 < n_steps) steps[buffer->last + 1].arena_bytes -= buffer->bytes;
    }
    for (uint32_t s = 1; s < n_steps; s++)
        steps[s].arena_bytes += steps[s - 1].arena_bytes;
}
