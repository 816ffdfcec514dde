/* report.c: the plan as a person reads it. */
#include "report.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void human_bytes(double bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(text, room, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_head(const weft_program *program, FILE *file)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    const weft_layout *layout = weft_plan_layout(program);
    fprintf(file, "mesh    %s (%d rank%s)\nlayout  %s\n", weft_mesh_text(mesh),
            weft_mesh_n_ranks(mesh), weft_mesh_n_ranks(mesh) == 1 ? "" : "s",
            weft_layout_text(layout));
    if (weft_layout_stage(layout))
        fprintf(file, "zero    stage %d over the axes of %s\n", weft_layout_stage(layout),
                weft_layout_store_dim(layout));
    if (weft_plan_link(program)) fprintf(file, "link    %s\n", weft_plan_link(program));
    if (weft_plan_policy(program)) fprintf(file, "policy  %s\n", weft_plan_policy(program));
    if (*weft_program_apart(program))
        fprintf(file, "apart   each process has its own memory: %s\n", weft_program_apart(program));
}

/* A line for each value that rules were skipped for, at most so many. */
static weft_status print_skipped(const weft_program *program, int most, FILE *file,
                                 weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    uint32_t last = 0;
    int n = weft_plan_n_skipped(program);
    if (n) fputs("\nrules skipped\n", file);
    for (int i = 0; i < n; i++) {
        weft_planned_skip skip;
        char shape[200];
        WEFT_TRY(weft_plan_skipped_at(program, i, &skip, error));
        if (skip.value != last && most-- == 0) {
            fprintf(file, "\nand %d more", n - i);
            break;
        }
        weft_shape_print(skip.shape, shape, sizeof shape);
        if (skip.value != last)
            fprintf(file, "%s%s %s: ", last ? "\n" : "", skip.name, shape);
        else
            fputs("; ", file);
        fprintf(file, "%s: %s is taken by %s", skip.dim, weft_mesh_axis_name(mesh, skip.axis),
                skip.taken_by);
        last = skip.value;
    }
    if (n) fputs("\n", file);
    return WEFT_OK;
}

static weft_status print_homes(const weft_program *program, FILE *file, weft_error *error)
{
    fputs(
        "\nvariables and inputs (name, kind, dims, spec, storage spec, box and bytes of rank 0)\n",
        file);
    for (int id = 1; id <= weft_plan_n_tensors(program); id++) {
        weft_tensor_line line;
        char bytes[32];
        WEFT_TRY(weft_report_tensor(program, (uint32_t)id, &line, error));
        if (line.t.kind == WEFT_TENSOR_TEMPORARY) continue;
        human_bytes((double)line.t.bytes, bytes, sizeof bytes);
        fprintf(file, "  %-24s %-9s %s  %s", line.t.name, weft_tensor_kind_name(line.t.kind),
                line.dims, line.wanted);
        if (strcmp(line.wanted, line.spec) != 0) fprintf(file, "  stored %s", line.spec);
        fprintf(file, "  box %s  %s\n", line.box, bytes);
    }
    return WEFT_OK;
}

static void print_amount(FILE *file, const char *what, int64_t bytes)
{
    char text[32];
    human_bytes((double)bytes, text, sizeof text);
    fprintf(file, "  %-28s %12s  (%lld bytes)\n", what, text, (long long)bytes);
}

/* What parts that are computed again spare, and what they cost. */
static void print_again(const weft_usage *usage, FILE *file)
{
    const int64_t without = usage->kept_bytes + usage->spared_bytes;
    fprintf(file,
            "computed again: %.4g of these flops, %.1f %% more than without; kept for the backward "
            "pass:\n",
            usage->again_flops, 100 * usage->again_flops / (usage->flops - usage->again_flops));
    print_amount(file, "with it", usage->kept_bytes);
    print_amount(file, "without", without);
}

static weft_status print_usage(const weft_program *program, FILE *file, weft_error *error)
{
    weft_usage usage;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    fputs("\nmemory of rank 0\n", file);
    print_amount(file, "parameters", usage.variable_bytes);
    print_amount(file, "optimizer slots", usage.slot_bytes);
    print_amount(file, "inputs", usage.input_bytes);
    for (int phase = 0; phase < WEFT_PHASES; phase++) {
        char what[64];
        snprintf(what, sizeof what, "temporaries, %s", weft_phase_name((weft_phase)phase));
        print_amount(file, what, usage.peak_bytes[phase]);
    }
    print_amount(file, "arena for temporaries", usage.arena_bytes);
    print_amount(file, "peak", usage.total_bytes);
    fprintf(file, "\nwork of rank 0: %.4g flops in %d steps\n", usage.flops, usage.n_steps);
    if (usage.again_flops > 0) print_again(&usage, file);
    return WEFT_OK;
}

/* Steps `begin` to the end of its scan: how many, their flops in all trips, and how many trips there are. */
static weft_status add_body(const weft_program *program, int begin, int *n_steps, double *flops,
                            double *trips, weft_error *error)
{
    weft_planned_step s;
    *n_steps = 0, *flops = 0;
    for (int i = begin + 1, open = 1; i < weft_plan_n_steps(program); i++) {
        WEFT_TRY(weft_plan_step_at(program, i, 0, &s, error));
        open += (s.kind == WEFT_STEP_BEGIN) - (s.kind == WEFT_STEP_END);
        *trips = s.trips;
        if (open == 0) break;
        *flops += s.trips * s.flops;
        ++*n_steps;
    }
    return WEFT_OK;
}

/* Bodies that are compiled once: how much of the work is theirs. */
static weft_status print_scans(const weft_program *program, FILE *file, weft_error *error)
{
    weft_usage usage;
    bool is_first = true;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_step_line line;
        double flops, trips = 0;
        int n_steps;
        WEFT_TRY(weft_report_step(program, s, &line, error));
        if (line.s.kind != WEFT_STEP_BEGIN) continue;
        WEFT_TRY(add_body(program, s, &n_steps, &flops, &trips, error));
        if (is_first) fputs("\nscans of rank 0, whose bodies are compiled once\n", file);
        fprintf(file, "  %-8s %s: %.0f trips of %d steps, %.4g flops, %.1f %% of its work\n",
                weft_phase_name(line.s.phase), line.place, trips, n_steps, flops,
                usage.flops > 0 ? 100 * flops / usage.flops : 0);
        is_first = false;
    }
    return WEFT_OK;
}

static weft_status print_traffic(const weft_program *program, FILE *file, weft_error *error)
{
    int n;
    weft_traffic *traffic = weft_report_traffic(program, &n);
    if (!traffic) return weft_fail_memory(error, sizeof *traffic);
    fputs("\ntraffic of rank 0 in one run (axis, collective, count, bytes)\n", file);
    if (!n) fputs("  none\n", file);
    for (int i = 0; i < n; i++) {
        char axes[100], bytes[32];
        weft_report_axes(weft_program_mesh(program), traffic[i].axes, axes, sizeof axes);
        human_bytes((double)traffic[i].bytes, bytes, sizeof bytes);
        fprintf(file, "  %-16s %-16s %6lld  %12s  (%lld bytes)\n", axes,
                weft_convert_name(traffic[i].kind), (long long)traffic[i].count, bytes,
                (long long)traffic[i].bytes);
    }
    free(traffic);
    return WEFT_OK;
}

/* Where a queue is busy while the rank computes: what overlap can hide. */
static weft_status print_queues(const weft_program *program, FILE *file, weft_error *error)
{
    fputs("\nqueues of rank 0, and what goes on while it computes\n", file);
    for (int q = 0; q < weft_plan_n_queues(program); q++) {
        weft_planned_queue queue;
        char name[100], bytes[32], beside[32];
        WEFT_TRY(weft_plan_queue_at(program, q, 0, &queue, error));
        weft_report_queue(program, queue.axes, name, sizeof name);
        human_bytes((double)queue.wire_bytes, bytes, sizeof bytes);
        human_bytes((double)queue.beside_bytes, beside, sizeof beside);
        fprintf(file, "  %-16s %6d step%s, ", name, queue.n_steps, queue.n_steps == 1 ? "" : "s");
        if (!queue.axes)
            fprintf(file, "%.4g flops\n", queue.flops);
        else
            fprintf(file, "%s; %d of them, %s, beside %.4g flops\n", bytes, queue.n_beside, beside,
                    queue.beside_flops);
    }
    return WEFT_OK;
}

/* The first step from `step` on, by ones up or down, that computes; op NULL: none of these up to `last` does. */
static weft_status find_computing(const weft_program *program, int step, int last, int by,
                                  weft_step_line *found, weft_error *error)
{
    for (int t = step; t != last + by; t += by) {
        WEFT_TRY(weft_report_step(program, t, found, error));
        if (found->s.queue == 0) return WEFT_OK;
    }
    *found = (weft_step_line){0};
    return WEFT_OK;
}

/* " (einsum at mlp.c:41 to add at mlp.c:43)": the first and the last that compute. */
static weft_status print_beside(const weft_program *program, const weft_planned_step *s, FILE *file,
                                weft_error *error)
{
    weft_step_line first, last;
    const int begin = s->index + 1, end = s->index + s->n_beside;
    fprintf(file, ", beside %d step%s of %.3g flops", s->n_beside, s->n_beside > 1 ? "s" : "",
            s->beside_flops);
    WEFT_TRY(find_computing(program, begin, end, 1, &first, error));
    WEFT_TRY(find_computing(program, end, begin, -1, &last, error));
    if (!first.s.op) return WEFT_OK;
    fprintf(file, " (%s", first.place);
    if (strcmp(first.place, last.place) != 0) fprintf(file, " to %s", last.place);
    fputs(")", file);
    return WEFT_OK;
}

static weft_status print_moves(const weft_program *program, FILE *file, weft_error *error)
{
    fputs("\ncollectives, in order\n", file);
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_step_line line;
        char bytes[32];
        WEFT_TRY(weft_report_step(program, s, &line, error));
        if (!weft_report_exchanges(&line.s)) continue;
        human_bytes((double)line.s.wire_bytes, bytes, sizeof bytes);
        fprintf(file, "  %-8s %s", weft_phase_name(line.s.phase), line.place);
        if (line.value) fprintf(file, " (%s)", line.value);
        fprintf(file, ": %s -> %s of %s", line.s.reason, weft_convert_name(line.s.collective),
                line.box);
        if (line.n_more) fprintf(file, " and %d more", line.n_more);
        fprintf(file, ", %s over %s", bytes, line.axes);
        if (line.s.trips > 1) fprintf(file, ", %.0f times", line.s.trips);
        if (line.s.is_ahead) fputs(", for the trip after", file);
        if (line.s.n_beside) WEFT_TRY(print_beside(program, &line.s, file, error));
        fputs("\n", file);
    }
    return WEFT_OK;
}

/* A line for each kernel step that several kernels could have done. */
static weft_status print_kernels(const weft_program *program, FILE *file, weft_error *error)
{
    bool is_first = true;
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_step_line line;
        WEFT_TRY(weft_report_step(program, s, &line, error));
        if (line.s.n_kernels < 2) continue;
        if (is_first) fputs("\nkernels of rank 0, where several could\n", file);
        fprintf(file, "  %-8s %s: %s, of %d\n", weft_phase_name(line.s.phase), line.place,
                line.s.kernel, line.s.n_kernels);
        is_first = false;
    }
    return WEFT_OK;
}

/* Every step, with its queue and what it waits for. */
static weft_status print_steps(const weft_program *program, FILE *file, weft_error *error)
{
    fputs("\nsteps, in order (queue, what, steps of other queues that it waits for)\n", file);
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_step_line line;
        WEFT_TRY(weft_report_step(program, s, &line, error));
        fprintf(file, "  %5d %-12s %-7s %s", s, line.queue, weft_step_kind_name(line.s.kind),
                line.place);
        for (int w = 0; w < line.s.n_waits; w++)
            fprintf(file, "%s %u", w ? "," : "  after", line.s.waits[w]);
        if (line.s.trips > 1) fprintf(file, "  %.0f times", line.s.trips);
        if (line.s.is_ahead) fputs(", for the trip after", file);
        fputs("\n", file);
    }
    return WEFT_OK;
}

/* Of each op the variants that it could be written in, with what they cost; the one taken is marked. */
static weft_status print_variants(const weft_program *program, FILE *file, weft_error *error)
{
    if (!weft_plan_n_variants(program)) return WEFT_OK;
    fputs("\nforms compared (price in bytes; exchanged beforehand + beside work; held of others)\n",
          file);
    for (int i = 0; i < weft_plan_n_variants(program); i++) {
        weft_planned_variant f;
        char place[160], bytes[3][32];
        WEFT_TRY(weft_plan_variant_at(program, i, &f, error));
        weft_report_place(f.op, f.builder, f.file, f.line, place, sizeof place);
        human_bytes(f.before_bytes, bytes[0], sizeof bytes[0]);
        human_bytes(f.beside_bytes, bytes[1], sizeof bytes[1]);
        human_bytes(f.held_bytes, bytes[2], sizeof bytes[2]);
        fprintf(file, "  %-8s %s over %s: %s %.0f; %s + %s, %d exchanges; %s%s\n",
                weft_phase_name(f.phase), place, f.axes, f.name, f.price, bytes[0], bytes[1],
                f.n_exchanges, bytes[2], f.is_taken ? ": taken" : "");
    }
    return WEFT_OK;
}

static const char *way_text(const weft_way *way)
{
    return way->kind == WEFT_WAY_CUT ? way->dim : weft_way_kind_name(way->kind);
}

static weft_status print_candidates(const weft_program *program, FILE *file, weft_error *error)
{
    if (!weft_plan_n_candidates(program)) return WEFT_OK;
    fputs("\ndrafts compared (prices in bytes: of exchanges, of work)\n", file);
    for (int i = 0; i < weft_plan_n_candidates(program); i++) {
        weft_planned_candidate candidate;
        WEFT_TRY(weft_plan_candidate_at(program, i, &candidate, error));
        fprintf(file, "  by %s: %.0f + %.0f, %d exchanges%s\n", candidate.name, candidate.exchange,
                candidate.work, candidate.n_exchanges,
                candidate.is_taken     ? ": taken"
                : candidate.is_allowed ? ""
                                       : ": more bytes than by names");
    }
    return WEFT_OK;
}

static void print_decisions(const weft_program *program, FILE *file)
{
    fputs("\nways compared (axis, the one taken, all usual ones with their prices in bytes)\n",
          file);
    for (int i = 0; i < weft_plan_n_decisions(program); i++) {
        const weft_decision *decision = weft_plan_decision_at(program, i);
        char place[160];
        weft_report_place(decision->op, decision->builder, decision->file, decision->line, place,
                          sizeof place);
        fprintf(file, "  %-8s %s, %s: %s of", weft_phase_name(decision->phase), place,
                weft_mesh_axis_name(decision->mesh, decision->axis),
                way_text(&decision->ways[decision->picked]));
        for (int w = 0; w < decision->n_ways; w++)
            if (decision->ways[w].is_usual)
                fprintf(file, " %s %.0f", way_text(&decision->ways[w]),
                        decision->ways[w].price.total);
        fputc('\n', file);
    }
}

static weft_status print_plan(const weft_program *program, FILE *file, weft_error *error)
{
    print_head(program, file);
    WEFT_TRY(print_skipped(program, INT_MAX, file, error));
    WEFT_TRY(print_homes(program, file, error));
    WEFT_TRY(print_usage(program, file, error));
    WEFT_TRY(print_scans(program, file, error));
    WEFT_TRY(print_traffic(program, file, error));
    if (weft_plan_n_queues(program) > 1) WEFT_TRY(print_queues(program, file, error));
    WEFT_TRY(print_moves(program, file, error));
    WEFT_TRY(print_kernels(program, file, error));
    WEFT_TRY(print_variants(program, file, error));
    if (weft_plan_n_decisions(program)) {
        WEFT_TRY(print_candidates(program, file, error));
        print_decisions(program, file);
        WEFT_TRY(print_steps(program, file, error));
    }
    return ferror(file) ? weft_report_fail(error) : WEFT_OK;
}

/* What grows with layers is counted. */
static weft_status print_counts(const weft_program *program, FILE *file, weft_error *error)
{
    weft_planned_tensor tensor;
    int n_homes = 0, n_moves = 0;
    for (int id = 1; id <= weft_plan_n_tensors(program); id++) {
        WEFT_TRY(weft_plan_tensor_at(program, (uint32_t)id, 0, &tensor, error));
        n_homes += tensor.kind != WEFT_TENSOR_TEMPORARY;
    }
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        WEFT_TRY(weft_plan_step_at(program, s, 0, &step, error));
        n_moves += weft_report_exchanges(&step);
    }
    fprintf(file, "\n%d variables and inputs, %d exchange%s\n", n_homes, n_moves,
            n_moves == 1 ? "" : "s");
    return WEFT_OK;
}

static weft_status print_summary(const weft_program *program, FILE *file, weft_error *error)
{
    enum { SKIPPED = 2 /* lines of rules */ };
    print_head(program, file);
    WEFT_TRY(print_skipped(program, SKIPPED, file, error));
    WEFT_TRY(print_usage(program, file, error));
    WEFT_TRY(print_scans(program, file, error));
    WEFT_TRY(print_traffic(program, file, error));
    if (weft_plan_n_queues(program) > 1) WEFT_TRY(print_queues(program, file, error));
    WEFT_TRY(print_counts(program, file, error));
    return ferror(file) ? weft_report_fail(error) : WEFT_OK;
}

static weft_status print_plainly(weft_status (*print)(const weft_program *, FILE *, weft_error *),
                                 const weft_program *program, FILE *file, weft_error *error)
{
    errno = 0;
    const locale_t before = weft_text_plain();
    const weft_status status = print(program, file, error);
    weft_text_end(before);
    return status;
}

weft_status weft_plan_print(const weft_program *program, FILE *file, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(file, error);
    return print_plainly(print_plan, program, file, error);
}

weft_status weft_plan_summary(const weft_program *program, FILE *file, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(file, error);
    return print_plainly(print_summary, program, file, error);
}
