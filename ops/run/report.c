/* report.c: the plan as a person reads it, and as JSON, both written from weft/research/plan.h alone.
 * As rank 0 sees it: no rank holds more.
 */
#include "weft/research/plan.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
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

/* "data" or "data+model" */
static void axes_text(const weft_mesh *mesh, uint32_t axes, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (!(axes >> a & 1) || used >= room) continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "+" : "",
                                 weft_mesh_axis_name(mesh, a));
    }
}

/* "einsum at mlp.c:41" */
static void place_text(const char *op, const char *file, int line, char *text, size_t room)
{
    if (file)
        snprintf(text, room, "%s at %s:%d", op, file, line);
    else
        snprintf(text, room, "%s", op);
}

static void box_text(const weft_planned_tensor *tensor, char *text, size_t room)
{
    weft_shape local = *tensor->shape;
    for (int d = 0; d < local.n_dims; d++)
        local.dims[d].size = tensor->box.end[d] - tensor->box.begin[d];
    weft_shape_print(&local, text, room);
}

/* One tensor in one place. */
typedef struct tensor_line {
    weft_planned_tensor t;
    char dims[200], spec[240], wanted[240], storage[240], box[200];
} tensor_line;

static weft_status describe_tensor(const weft_program *program, uint32_t id, tensor_line *line,
                                   weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    WEFT_TRY(weft_plan_tensor_at(program, id, 0, &line->t, error));
    const weft_planned_tensor *t = &line->t;
    weft_shape_print(t->shape, line->dims, sizeof line->dims);
    weft_spec_print(&t->spec, mesh, t->shape, line->spec, sizeof line->spec);
    weft_spec_print(&t->wanted, mesh, t->shape, line->wanted, sizeof line->wanted);
    weft_spec_print(&t->storage, mesh, t->shape, line->storage, sizeof line->storage);
    box_text(t, line->box, sizeof line->box);
    return WEFT_OK;
}

/* One step; of a collective the box it is about besides. */
typedef struct step_line {
    weft_planned_step s;
    char place[160], axes[100], box[240];
    const char *value; /* the name of what a collective moves; NULL: none */
} step_line;

static bool is_collective(const weft_planned_step *step)
{
    return step->kind == WEFT_STEP_CONVERT && step->axes;
}

static weft_status describe_step(const weft_program *program, int index, step_line *line,
                                 weft_error *error)
{
    *line = (step_line){0};
    WEFT_TRY(weft_plan_step_at(program, index, 0, &line->s, error));
    const weft_planned_step *s = &line->s;
    place_text(s->op, s->file, s->line, line->place, sizeof line->place);
    if (!is_collective(s)) return WEFT_OK;
    weft_planned_tensor moved;
    uint32_t id = s->collective == WEFT_ALL_GATHER ? s->out[0] : s->in[0];
    WEFT_TRY(weft_plan_tensor_at(program, id, 0, &moved, error));
    box_text(&moved, line->box, sizeof line->box);
    axes_text(weft_program_mesh(program), s->axes, line->axes, sizeof line->axes);
    line->value = moved.name;
    return WEFT_OK;
}

/* The traffic of rank 0, to be freed; NULL when out of memory. */
static weft_traffic *traffic_of(const weft_program *program, int *n)
{
    *n = weft_plan_traffic(program, 0, NULL, 0);
    weft_traffic *traffic = calloc((size_t)*n + 1, sizeof *traffic);
    if (traffic) weft_plan_traffic(program, 0, traffic, *n);
    return traffic;
}

/* ---- text ------------------------------------------------------------------------------------ */

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
    if (weft_plan_policy(program)) fprintf(file, "policy  %s\n", weft_plan_policy(program));
}

/* A line for each value that rules were skipped for. */
static weft_status print_skipped(const weft_program *program, FILE *file, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    uint32_t last = 0;
    int n = weft_plan_n_skipped(program);
    if (n) fputs("\nrules skipped\n", file);
    for (int i = 0; i < n; i++) {
        weft_planned_skip skip;
        char shape[200];
        WEFT_TRY(weft_plan_skipped_at(program, i, &skip, error));
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
        tensor_line line;
        char bytes[32];
        WEFT_TRY(describe_tensor(program, (uint32_t)id, &line, error));
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
    return WEFT_OK;
}

static weft_status print_traffic(const weft_program *program, FILE *file, weft_error *error)
{
    int n;
    weft_traffic *traffic = traffic_of(program, &n);
    if (!traffic) return weft_fail_memory(error, sizeof *traffic);
    fputs("\ntraffic of rank 0 in one run (axis, collective, count, bytes)\n", file);
    if (!n) fputs("  none\n", file);
    for (int i = 0; i < n; i++) {
        char axes[100], bytes[32];
        axes_text(weft_program_mesh(program), traffic[i].axes, axes, sizeof axes);
        human_bytes((double)traffic[i].bytes, bytes, sizeof bytes);
        fprintf(file, "  %-16s %-16s %6lld  %12s  (%lld bytes)\n", axes,
                weft_convert_name(traffic[i].kind), (long long)traffic[i].count, bytes,
                (long long)traffic[i].bytes);
    }
    free(traffic);
    return WEFT_OK;
}

static weft_status print_moves(const weft_program *program, FILE *file, weft_error *error)
{
    fputs("\ncollectives, in order\n", file);
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        step_line line;
        char bytes[32];
        WEFT_TRY(describe_step(program, s, &line, error));
        if (!is_collective(&line.s)) continue;
        human_bytes((double)line.s.wire_bytes, bytes, sizeof bytes);
        fprintf(file, "  %-8s %s", weft_phase_name(line.s.phase), line.place);
        if (line.value) fprintf(file, " (%s)", line.value);
        fprintf(file, ": %s -> %s of %s, %s over %s\n", line.s.reason,
                weft_convert_name(line.s.collective), line.box, bytes, line.axes);
    }
    return WEFT_OK;
}

static const char *way_text(const weft_way *way)
{
    return way->kind == WEFT_WAY_CUT ? way->dim : weft_way_kind_name(way->kind);
}

static void print_decisions(const weft_program *program, FILE *file)
{
    if (!weft_plan_n_decisions(program)) return;
    fputs("\nways compared (axis, the one taken, all usual ones with their prices in bytes)\n",
          file);
    for (int i = 0; i < weft_plan_n_decisions(program); i++) {
        const weft_decision *decision = weft_plan_decision_at(program, i);
        char place[160];
        place_text(decision->op, decision->file, decision->line, place, sizeof place);
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

/* A stream in memory is refused memory where a file is refused room. */
static weft_status fail_write(weft_error *error)
{
    const int reason = errno;
    return weft_fail(error, reason == ENOMEM ? WEFT_MEMORY : WEFT_IO,
                     "the plan could not be written%s%s", reason ? ": " : "",
                     reason ? strerror(reason) : "");
}

weft_status weft_plan_print(const weft_program *program, FILE *file, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(file, error);
    errno = 0;
    print_head(program, file);
    WEFT_TRY(print_skipped(program, file, error));
    WEFT_TRY(print_homes(program, file, error));
    WEFT_TRY(print_usage(program, file, error));
    WEFT_TRY(print_traffic(program, file, error));
    WEFT_TRY(print_moves(program, file, error));
    print_decisions(program, file);
    return ferror(file) ? fail_write(error) : WEFT_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Jansson's setters take NULL for a value that could not be made, and return -1: nothing is left
 * out. */
static weft_status add(json_t *list, json_t *item, weft_error *error)
{
    return json_array_append_new(list, item) == 0 ? WEFT_OK : weft_fail_memory(error, sizeof item);
}

static weft_status set(json_t *object, const char *name, json_t *item, weft_error *error)
{
    return json_object_set_new(object, name, item) == 0 ? WEFT_OK
                                                        : weft_fail_memory(error, sizeof item);
}

/* The same where NULL says it. */
static json_t *finished(json_t *json, int n_failed)
{
    if (n_failed == 0) return json;
    json_decref(json);
    return NULL;
}

/* Infinite prices have no number in JSON. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *ids_json(const uint32_t *ids, int n)
{
    json_t *list = json_array();
    int failed = 0;
    for (int i = 0; i < n; i++)
        failed += json_array_append_new(list, json_integer(ids[i]));
    return finished(list, failed);
}

/* Variables and inputs, and all versions of all values. */
static weft_status tensors_json(const weft_program *program, json_t *homes, json_t *versions,
                                weft_error *error)
{
    for (int id = 1; id <= weft_plan_n_tensors(program); id++) {
        tensor_line line;
        WEFT_TRY(describe_tensor(program, (uint32_t)id, &line, error));
        const weft_planned_tensor *t = &line.t;
        const char *kind = weft_tensor_kind_name(t->kind), *dtype = weft_dtype_name(t->dtype);
        if (t->kind != WEFT_TENSOR_TEMPORARY)
            WEFT_TRY(
                add(homes,
                    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "name", t->name, "kind",
                              kind, "dtype", dtype, "dims", line.dims, "spec", line.wanted,
                              "storage", line.spec, "box", line.box, "bytes", (json_int_t)t->bytes),
                    error));
        WEFT_TRY(add(
            versions,
            json_pack("{s:i, s:i, s:s?, s:s, s:s?, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, "
                      "s:b, s:i, s:i, s:i}",
                      "id", id, "value", (int)t->value, "name", t->name, "op", t->op, "file",
                      t->file, "line", t->line, "kind", kind, "dtype", dtype, "dims", line.dims,
                      "spec", line.spec, "wanted", line.wanted, "storage", line.storage, "box",
                      line.box, "bytes", (json_int_t)t->bytes, "output", t->is_output, "shares",
                      (int)t->shares, "first_step", t->first_step, "last_step", t->last_step),
            error));
    }
    return WEFT_OK;
}

static weft_status links_json(const weft_program *program, const weft_planned_step *step,
                              json_t *list, weft_error *error)
{
    for (int k = 0; k < step->n_links; k++) {
        weft_planned_link link;
        WEFT_TRY(weft_plan_link_at(program, step->index, k, &link, error));
        WEFT_TRY(
            add(list,
                json_pack("{s:s, s:s?, s:i}", "op", link.op, "file", link.file, "line", link.line),
                error));
    }
    return WEFT_OK;
}

/* Collectives in order, and all steps. */
static weft_status steps_json(const weft_program *program, json_t *moves, json_t *steps,
                              weft_error *error)
{
    for (int i = 0; i < weft_plan_n_steps(program); i++) {
        step_line line;
        WEFT_TRY(describe_step(program, i, &line, error));
        const weft_planned_step *s = &line.s;
        const char *phase = weft_phase_name(s->phase), *kind = weft_step_kind_name(s->kind);
        const char *collective =
            s->kind == WEFT_STEP_CONVERT ? weft_convert_name(s->collective) : NULL;
        if (is_collective(s))
            WEFT_TRY(add(moves,
                         json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:I}", "phase", phase,
                                   "place", line.place, "reason", s->reason, "collective",
                                   collective, "axes", line.axes, "box", line.box, "value",
                                   line.value, "bytes", (json_int_t)s->wire_bytes),
                         error));
        json_t *links = json_array();
        weft_status status = links_json(program, s, links, error);
        const weft_status added = add(
            steps,
            json_pack("{s:s, s:s, s:s, s:s?, s:i, s:s, s:s, s:o, s:o, s:s?, s:s, s:o, s:f, s:I, "
                      "s:I, s:I, s:I}",
                      "phase", phase, "kind", kind, "op", s->op, "file", s->file, "line", s->line,
                      "why", weft_step_reason_name(s->why), "reason", s->reason, "in",
                      ids_json(s->in, s->n_in), "out", ids_json(s->out, s->n_out), "collective",
                      collective, "axes", line.axes, "ops", links, "flops", s->flops, "bytes",
                      (json_int_t)s->wire_bytes, "in_bytes", (json_int_t)s->in_bytes, "out_bytes",
                      (json_int_t)s->out_bytes, "scratch_bytes", (json_int_t)s->scratch_bytes),
            error);
        WEFT_TRY(status);
        WEFT_TRY(added);
    }
    return WEFT_OK;
}

static weft_status skipped_json(const weft_program *program, json_t *list, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    for (int i = 0; i < weft_plan_n_skipped(program); i++) {
        weft_planned_skip skip;
        char dims[200];
        WEFT_TRY(weft_plan_skipped_at(program, i, &skip, error));
        weft_shape_print(skip.shape, dims, sizeof dims);
        WEFT_TRY(add(list,
                     json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", skip.name, "dims", dims, "dim",
                               skip.dim, "axis", weft_mesh_axis_name(mesh, skip.axis), "taken_by",
                               skip.taken_by),
                     error));
    }
    return WEFT_OK;
}

static json_t *ways_json(const weft_decision *decision)
{
    json_t *list = json_array();
    for (int w = 0; w < decision->n_ways; w++) {
        const weft_way *way = &decision->ways[w];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s?, s:b, s:o, s:o, s:o, s:o}", "kind", weft_way_kind_name(way->kind),
                      "dim", way->dim, "usual", way->is_usual, "operands",
                      number(way->price.operands), "results", number(way->price.results),
                      "repeated", number(way->price.repeated), "total", number(way->price.total)));
    }
    return list;
}

static json_t *decisions_json(const weft_program *program)
{
    json_t *list = json_array();
    int failed = 0;
    for (int i = 0; i < weft_plan_n_decisions(program); i++) {
        const weft_decision *d = weft_plan_decision_at(program, i);
        failed += json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s?, s:i, s:s, s:f, s:o, s:i, s:i}", "phase",
                      weft_phase_name(d->phase), "op", d->op, "file", d->file, "line", d->line,
                      "axis", weft_mesh_axis_name(d->mesh, d->axis), "flops", d->flops, "ways",
                      ways_json(d), "cheapest", d->cheapest, "picked", d->picked));
    }
    return finished(list, failed);
}

static json_t *usage_json(const weft_usage *usage)
{
    json_t *phases = json_object();
    int failed = 0;
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        failed += json_object_set_new(phases, weft_phase_name((weft_phase)phase),
                                      json_integer((json_int_t)usage->peak_bytes[phase]));
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:I}", "parameters",
                     (json_int_t)usage->variable_bytes, "slots", (json_int_t)usage->slot_bytes,
                     "inputs", (json_int_t)usage->input_bytes, "temporaries",
                     finished(phases, failed), "arena", (json_int_t)usage->arena_bytes, "peak",
                     (json_int_t)usage->total_bytes);
}

static json_t *traffic_json(const weft_program *program)
{
    int n;
    weft_traffic *traffic = traffic_of(program, &n);
    if (!traffic) return NULL;
    json_t *list = json_array();
    int failed = 0;
    for (int i = 0; i < n; i++) {
        char axes[100];
        axes_text(weft_program_mesh(program), traffic[i].axes, axes, sizeof axes);
        failed += json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:I}", "axes", axes, "collective",
                            weft_convert_name(traffic[i].kind), "count",
                            (json_int_t)traffic[i].count, "bytes", (json_int_t)traffic[i].bytes));
    }
    free(traffic);
    return finished(list, failed);
}

static weft_status head_json(const weft_program *program, json_t *root, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    const weft_layout *layout = weft_plan_layout(program);
    weft_usage usage;
    weft_planned_cost cost;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    WEFT_TRY(weft_plan_cost(program, 0, NULL, &cost, error));
    json_t *head =
        json_pack("{s:s, s:i, s:s, s:i, s:s?, s:o, s:f, s:i, s:o, s:{s:o, s:o, s:o}}", "mesh",
                  weft_mesh_text(mesh), "ranks", weft_mesh_n_ranks(mesh), "layout",
                  weft_layout_text(layout), "zero", weft_layout_stage(layout), "policy",
                  weft_plan_policy(program), "memory", usage_json(&usage), "flops", usage.flops,
                  "steps", usage.n_steps, "traffic", traffic_json(program), "cost", "exchange",
                  number(cost.exchange), "work", number(cost.work), "total", number(cost.total));
    if (!head || json_object_update(root, head) != 0) {
        json_decref(head);
        return weft_fail_memory(error, sizeof usage);
    }
    json_decref(head);
    return WEFT_OK;
}

static weft_status write_json(json_t *root, FILE *file, weft_error *error)
{
    if (json_dumpf(root, file, JSON_INDENT(1)) != 0 || fputc('\n', file) == EOF)
        return fail_write(error);
    return WEFT_OK;
}

weft_status weft_plan_json(const weft_program *program, FILE *file, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(file, error);
    errno = 0;
    json_t *root = json_object(), *skipped = json_array(), *homes = json_array();
    json_t *versions = json_array(), *moves = json_array(), *steps = json_array();
    weft_status status = head_json(program, root, error);
    if (status == WEFT_OK) status = skipped_json(program, skipped, error);
    if (status == WEFT_OK) status = tensors_json(program, homes, versions, error);
    if (status == WEFT_OK) status = steps_json(program, moves, steps, error);
    const struct {
        const char *name;
        json_t *list;
    } lists[] = {{"skipped", skipped},   {"tensors", homes},
                 {"collectives", moves}, {"versions", versions},
                 {"step_list", steps},   {"decisions", decisions_json(program)}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const weft_status is_set = set(root, lists[i].name, lists[i].list, error);
        if (status == WEFT_OK) status = is_set;
    }
    if (status == WEFT_OK) status = write_json(root, file, error);
    json_decref(root);
    return status;
}
