/* report_json.c: the plan as JSON: what the report says, and every tensor, step and decision besides. */
#include "report_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* Infinite prices have no number in JSON. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* An entry that cannot be made is a failure: no plan lacks one silently. */
static weft_status add(json_t *list, json_t *entry, weft_error *error)
{
    if (entry && json_array_append_new(list, entry) == 0) return WEFT_OK;
    return weft_fail(
        error, WEFT_MEMORY,
        "the plan as JSON: there is no memory for an entry, or the name of a source file "
        "in it is not UTF-8");
}

/* NULL on failure, which whoever packs it then sees. */
static json_t *ids_json(const uint32_t *ids, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        if (add(list, json_integer(ids[i]), NULL) != WEFT_OK) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *slots_json(const int *slots, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        if (add(list, json_integer(slots[i]), NULL) != WEFT_OK) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *home_json(const weft_tensor_line *line)
{
    const weft_planned_tensor *t = &line->t;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "name", t->name, "kind",
                     weft_tensor_kind_name(t->kind), "dtype", weft_dtype_name(t->dtype), "dims",
                     line->dims, "spec", line->wanted, "storage", line->spec, "box", line->box,
                     "bytes", (json_int_t)t->bytes);
}

static json_t *version_json(const weft_tensor_line *line)
{
    const weft_planned_tensor *t = &line->t;
    return json_pack(
        "{s:i, s:i, s:s?, s:s, s:s?, s:s?, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b, "
        "s:i, s:i, s:i}",
        "id", (int)t->id, "value", (int)t->value, "name", t->name, "op", t->op, "builder",
        t->builder, "file", t->file, "line", t->line, "kind", weft_tensor_kind_name(t->kind),
        "dtype", weft_dtype_name(t->dtype), "dims", line->dims, "spec", line->spec, "wanted",
        line->wanted, "storage", line->storage, "box", line->box, "bytes", (json_int_t)t->bytes,
        "output", t->is_output, "shares", (int)t->shares, "first_step", t->first_step, "last_step",
        t->last_step);
}

/* Variables and inputs, and all versions of all values. */
static weft_status tensors_json(const weft_program *program, json_t *homes, json_t *versions,
                                weft_error *error)
{
    for (int id = 1; id <= weft_plan_n_tensors(program); id++) {
        weft_tensor_line line;
        WEFT_TRY(weft_report_tensor(program, (uint32_t)id, &line, error));
        if (line.t.kind != WEFT_TENSOR_TEMPORARY) WEFT_TRY(add(homes, home_json(&line), error));
        WEFT_TRY(add(versions, version_json(&line), error));
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
                json_pack("{s:s, s:s?, s:s?, s:i, s:o, s:o}", "op", link.op, "builder",
                          link.builder, "file", link.file, "line", link.line, "in",
                          slots_json(link.in, link.n_in), "out", slots_json(link.out, link.n_out)),
                error));
    }
    return WEFT_OK;
}

static json_t *move_json(const weft_step_line *line)
{
    const weft_planned_step *s = &line->s;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:i, s:I, s:i, s:f, s:i, s:f, s:b}",
                     "phase", weft_phase_name(s->phase), "place", line->place, "reason", s->reason,
                     "collective", weft_convert_name(s->collective), "axes", line->axes, "box",
                     line->box, "value", line->value, "tensors", s->n_in, "bytes",
                     (json_int_t)s->wire_bytes, "beside", s->n_beside, "beside_flops",
                     s->beside_flops, "step", s->index, "times", s->trips, "ahead", s->is_ahead);
}

/* Takes `links`. */
static json_t *step_json(const weft_step_line *line, json_t *links)
{
    const weft_planned_step *s = &line->s;
    const char *collective = s->kind == WEFT_STEP_CONVERT ? weft_convert_name(s->collective) : NULL;
    return json_pack(
        "{s:s, s:s, s:s, s:s?, s:s?, s:s?, s:i, s:s, s:s, s:o, s:o, s:s?, s:s, s:o, "
        "s:f, s:I, s:I, s:I, s:I, s:i, s:i, s:s, s:o, s:f, s:b}",
        "phase", weft_phase_name(s->phase), "kind", weft_step_kind_name(s->kind), "op", s->op,
        "kernel", s->kernel, "builder", s->builder, "file", s->file, "line", s->line, "why",
        weft_step_reason_name(s->why), "reason", s->reason, "in", ids_json(s->in, s->n_in), "out",
        ids_json(s->out, s->n_out), "collective", collective, "axes", line->axes, "ops", links,
        "flops", s->flops, "bytes", (json_int_t)s->wire_bytes, "in_bytes", (json_int_t)s->in_bytes,
        "out_bytes", (json_int_t)s->out_bytes, "scratch_bytes", (json_int_t)s->scratch_bytes,
        "segments", s->n_segments, "beside", s->n_beside, "queue", line->queue, "waits",
        ids_json(s->waits, s->n_waits), "times", s->trips, "ahead", s->is_ahead);
}

/* Collectives in order, and all steps. */
static weft_status steps_json(const weft_program *program, json_t *moves, json_t *steps,
                              weft_error *error)
{
    for (int i = 0; i < weft_plan_n_steps(program); i++) {
        weft_step_line line;
        WEFT_TRY(weft_report_step(program, i, &line, error));
        if (weft_report_exchanges(&line.s)) WEFT_TRY(add(moves, move_json(&line), error));
        json_t *links = json_array();
        weft_status status = links_json(program, &line.s, links, error);
        if (status != WEFT_OK) {
            json_decref(links);
            return status;
        }
        WEFT_TRY(add(steps, step_json(&line, links), error));
    }
    return WEFT_OK;
}

static weft_status queues_json(const weft_program *program, json_t *list, weft_error *error)
{
    for (int q = 0; q < weft_plan_n_queues(program); q++) {
        weft_planned_queue queue;
        char name[100];
        WEFT_TRY(weft_plan_queue_at(program, q, 0, &queue, error));
        weft_report_queue(program, queue.axes, name, sizeof name);
        WEFT_TRY(
            add(list,
                json_pack("{s:s, s:i, s:f, s:I, s:i, s:I, s:f}", "name", name, "steps",
                          queue.n_steps, "flops", queue.flops, "bytes",
                          (json_int_t)queue.wire_bytes, "beside", queue.n_beside, "beside_bytes",
                          (json_int_t)queue.beside_bytes, "beside_flops", queue.beside_flops),
                error));
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

static json_t *way_json(const weft_way *way)
{
    return json_pack("{s:s, s:s?, s:b, s:o, s:o, s:o, s:o}", "kind", weft_way_kind_name(way->kind),
                     "dim", way->dim, "usual", way->is_usual, "operands",
                     number(way->price.operands), "results", number(way->price.results), "repeated",
                     number(way->price.repeated), "total", number(way->price.total));
}

static json_t *decision_json(const weft_decision *d)
{
    json_t *ways = json_array();
    for (int w = 0; w < d->n_ways; w++)
        if (add(ways, way_json(&d->ways[w]), NULL) != WEFT_OK) {
            json_decref(ways);
            return NULL;
        }
    return json_pack("{s:s, s:s, s:s?, s:s?, s:i, s:s, s:f, s:o, s:i, s:i}", "phase",
                     weft_phase_name(d->phase), "op", d->op, "builder", d->builder, "file", d->file,
                     "line", d->line, "axis", weft_mesh_axis_name(d->mesh, d->axis), "flops",
                     d->flops, "ways", ways, "cheapest", d->cheapest, "picked", d->picked);
}

static weft_status decisions_json(const weft_program *program, json_t *list, weft_error *error)
{
    for (int i = 0; i < weft_plan_n_decisions(program); i++)
        WEFT_TRY(add(list, decision_json(weft_plan_decision_at(program, i)), error));
    return WEFT_OK;
}

static weft_status candidates_json(const weft_program *program, json_t *list, weft_error *error)
{
    for (int i = 0; i < weft_plan_n_candidates(program); i++) {
        weft_planned_candidate d;
        WEFT_TRY(weft_plan_candidate_at(program, i, &d, error));
        WEFT_TRY(add(list,
                     json_pack("{s:s, s:o, s:o, s:o, s:I, s:i, s:b, s:b}", "by", d.name, "exchange",
                               number(d.exchange), "work", number(d.work), "total", number(d.total),
                               "bytes", (json_int_t)d.wire_bytes, "exchanges", d.n_exchanges,
                               "allowed", d.is_allowed, "taken", d.is_taken),
                     error));
    }
    return WEFT_OK;
}

static weft_status forms_json(const weft_program *program, json_t *list, weft_error *error)
{
    for (int i = 0; i < weft_plan_n_variants(program); i++) {
        weft_planned_variant f;
        WEFT_TRY(weft_plan_variant_at(program, i, &f, error));
        WEFT_TRY(
            add(list,
                json_pack("{s:s, s:s, s:s?, s:s?, s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:b}",
                          "phase", weft_phase_name(f.phase), "op", f.op, "builder", f.builder,
                          "file", f.file, "line", f.line, "axes", f.axes, "variant", f.name,
                          "price", number(f.price), "before", number(f.before_bytes), "beside",
                          number(f.beside_bytes), "held", number(f.held_bytes), "exchanges",
                          f.n_exchanges, "taken", f.is_taken),
                error));
    }
    return WEFT_OK;
}

static json_t *usage_json(const weft_usage *usage)
{
    json_t *phases = json_object();
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        if (json_object_set_new(phases, weft_phase_name((weft_phase)phase),
                                json_integer((json_int_t)usage->peak_bytes[phase])) != 0) {
            json_decref(phases);
            return NULL;
        }
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I}", "parameters",
                     (json_int_t)usage->variable_bytes, "slots", (json_int_t)usage->slot_bytes,
                     "inputs", (json_int_t)usage->input_bytes, "temporaries", phases, "arena",
                     (json_int_t)usage->arena_bytes, "peak", (json_int_t)usage->total_bytes, "kept",
                     (json_int_t)usage->kept_bytes, "spared", (json_int_t)usage->spared_bytes);
}

static weft_status traffic_json(const weft_program *program, json_t *list, weft_error *error)
{
    int n;
    weft_traffic *traffic = weft_report_traffic(program, &n);
    weft_status status = traffic ? WEFT_OK : weft_fail_memory(error, sizeof *traffic);
    for (int i = 0; i < n && status == WEFT_OK; i++) {
        char axes[100];
        weft_report_axes(weft_program_mesh(program), traffic[i].axes, axes, sizeof axes);
        status = add(list,
                     json_pack("{s:s, s:s, s:I, s:I}", "axes", axes, "collective",
                               weft_convert_name(traffic[i].kind), "count",
                               (json_int_t)traffic[i].count, "bytes", (json_int_t)traffic[i].bytes),
                     error);
    }
    free(traffic);
    return status;
}

static weft_status head_json(const weft_program *program, json_t *root, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    const weft_layout *layout = weft_plan_layout(program);
    const char *apart = weft_program_apart(program);
    weft_usage usage;
    weft_planned_cost cost;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    WEFT_TRY(weft_plan_cost(program, 0, NULL, &cost, error));
    json_t *head = json_pack(
        "{s:s, s:i, s:s, s:i, s:s?, s:s?, s:s?, s:o, s:f, s:f, s:i, s:{s:o, s:o, s:o}}", "mesh",
        weft_mesh_text(mesh), "ranks", weft_mesh_n_ranks(mesh), "layout", weft_layout_text(layout),
        "zero", weft_layout_stage(layout), "policy", weft_plan_policy(program), "link",
        weft_plan_link(program), "apart", *apart ? apart : NULL, "memory", usage_json(&usage),
        "flops", usage.flops, "again_flops", usage.again_flops, "steps", usage.n_steps, "cost",
        "exchange", number(cost.exchange), "work", number(cost.work), "total", number(cost.total));
    if (!head || json_object_update(root, head) != 0) {
        json_decref(head);
        return weft_fail_memory(error, sizeof usage);
    }
    json_decref(head);
    return WEFT_OK;
}

json_t *weft_report_json(const weft_program *program, weft_error *error)
{
    json_t *root = json_object(), *traffic = json_array(), *skipped = json_array();
    json_t *homes = json_array(), *versions = json_array(), *moves = json_array();
    json_t *steps = json_array(), *decisions = json_array(), *candidates = json_array();
    json_t *queues = json_array(), *variants = json_array();
    weft_status status = head_json(program, root, error);
    if (status == WEFT_OK) status = traffic_json(program, traffic, error);
    if (status == WEFT_OK) status = skipped_json(program, skipped, error);
    if (status == WEFT_OK) status = tensors_json(program, homes, versions, error);
    if (status == WEFT_OK) status = steps_json(program, moves, steps, error);
    if (status == WEFT_OK) status = queues_json(program, queues, error);
    if (status == WEFT_OK) status = candidates_json(program, candidates, error);
    if (status == WEFT_OK) status = forms_json(program, variants, error);
    if (status == WEFT_OK) status = decisions_json(program, decisions, error);
    json_t *lists = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "variants",
                              variants, "queues", queues, "traffic", traffic, "skipped", skipped,
                              "tensors", homes, "collectives", moves, "versions", versions,
                              "step_list", steps, "candidates", candidates, "decisions", decisions);
    if (status == WEFT_OK && (!lists || json_object_update(root, lists) != 0))
        status = weft_fail_memory(error, sizeof *traffic);
    json_decref(lists);
    if (status == WEFT_OK) return root;
    json_decref(root);
    return NULL;
}

weft_status weft_report_json_write(const json_t *root, FILE *file, weft_error *error)
{
    if (json_dumpf(root, file, JSON_INDENT(1)) != 0 || fputc('\n', file) == EOF)
        return weft_report_fail(error);
    return WEFT_OK;
}

weft_status weft_plan_json(const weft_program *program, FILE *file, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(file, error);
    errno = 0;
    weft_error own = WEFT_NO_ERROR;
    json_t *root = weft_report_json(program, &own);
    if (!root) return weft_fail(error, own.status, "%s", own.message);
    const weft_status status = weft_report_json_write(root, file, error);
    json_decref(root);
    return status;
}
