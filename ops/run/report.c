/* report.c: the plan as a person reads it, and as data. Both as rank 0 sees it: no rank holds more.
 */
#include "program.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const home_names[] = {"temporary", "input", "parameter"};

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

static const char *kind_name(const weft_plan *plan, const weft_placed *placed)
{
    if (placed->home != WEFT_VARIABLE_HOME) return home_names[placed->home];
    const weft_variable_attributes *variable = weft_node_of(plan->graph, placed->value)->attributes;
    return variable->owner ? "slot" : "parameter";
}

static void local_shape(const weft_plan *plan, uint32_t placed, weft_shape *shape)
{
    weft_view view;
    weft_placed_view(plan, placed, 0, &view);
    *shape = view.shape;
    for (int d = 0; d < shape->n_dims; d++)
        shape->dims[d].size = weft_view_size(&view, d);
}

/* One variable or input. */
typedef struct home_line {
    const char *name, *kind;
    char dims[200], spec[240], storage[240], box[200];
    int64_t bytes;
} home_line;

static weft_status describe_home(const weft_plan *plan, uint32_t id, home_line *line,
                                 weft_error *error)
{
    const weft_placed *placed = &plan->placed[id];
    const weft_shape *shape = &placed->type.shape;
    weft_spec compute;
    weft_shape local;
    line->name = plan->graph->tensors[placed->value].name;
    line->kind = kind_name(plan, placed);
    line->bytes = weft_placed_bytes(plan, id, 0);
    WEFT_TRY(weft_wanted_spec(plan, placed->value, &compute, error));
    local_shape(plan, id, &local);
    weft_shape_print(shape, line->dims, sizeof line->dims);
    weft_spec_print(&compute, plan->mesh, shape, line->spec, sizeof line->spec);
    weft_spec_print(&placed->spec, plan->mesh, shape, line->storage, sizeof line->storage);
    weft_shape_print(&local, line->box, sizeof line->box);
    return WEFT_OK;
}

/* One collective. */
typedef struct move_line {
    char place[160], axes[100], shape[240];
    const char *value, *reason, *kind;
    int64_t bytes;
} move_line;

static void describe_move(const weft_plan *plan, const weft_step *step, move_line *line)
{
    const weft_placed *from = &plan->placed[step->in[0]];
    bool is_gather = step->convert.kind == WEFT_ALL_GATHER;
    weft_shape shape;
    local_shape(plan, is_gather ? step->out[0] : step->in[0], &shape);
    weft_node_print_place(&plan->graph->nodes[step->node], line->place, sizeof line->place);
    weft_shape_print(&shape, line->shape, sizeof line->shape);
    axes_text(plan->mesh, step->convert.axes, line->axes, sizeof line->axes);
    line->value = plan->graph->tensors[from->value].name;
    line->reason = step->reason ? step->reason : "its consumer needs it so";
    line->kind = weft_convert_name(step->convert.kind);
    line->bytes =
        weft_convert_bytes(plan->mesh, &from->type.shape, from->type.dtype, &step->convert, 0);
}

static bool is_collective(const weft_step *step)
{
    return step->kind == WEFT_STEP_CONVERT && step->convert.axes;
}

/* ---- text ------------------------------------------------------------------------------------ */

static weft_status print_homes(const weft_plan *plan, FILE *file, weft_error *error)
{
    char bytes[32];
    fputs(
        "\nvariables and inputs (name, kind, dims, spec, storage spec, box and bytes of rank 0)\n",
        file);
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        home_line line;
        if (plan->placed[id].home == WEFT_TEMPORARY) continue;
        WEFT_TRY(describe_home(plan, id, &line, error));
        human_bytes((double)line.bytes, bytes, sizeof bytes);
        fprintf(file, "  %-24s %-9s %s  %s", line.name, line.kind, line.dims, line.spec);
        if (strcmp(line.spec, line.storage) != 0) fprintf(file, "  stored %s", line.storage);
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

static void print_usage(const weft_plan *plan, const weft_usage *usage, FILE *file)
{
    fputs("\nmemory of rank 0\n", file);
    print_amount(file, "parameters", usage->variable_bytes);
    print_amount(file, "optimizer slots", usage->slot_bytes);
    print_amount(file, "inputs", usage->input_bytes);
    for (int phase = 0; phase < WEFT_PHASES; phase++) {
        char what[64];
        snprintf(what, sizeof what, "temporaries, %s", weft_phase_name((weft_phase)phase));
        print_amount(file, what, usage->peak_bytes[phase]);
    }
    print_amount(file, "arena for temporaries", usage->arena_bytes);
    print_amount(file, "peak", usage->total_bytes);
    fprintf(file, "\nwork of rank 0: %.4g flops in %d steps\n", usage->flops, usage->n_steps);
    fputs("\ntraffic of rank 0 in one run (axis, collective, count, bytes)\n", file);
    if (!usage->n_traffic) fputs("  none\n", file);
    for (int i = 0; i < usage->n_traffic; i++) {
        char axes[100], bytes[32];
        axes_text(plan->mesh, usage->traffic[i].axes, axes, sizeof axes);
        human_bytes((double)usage->traffic[i].bytes, bytes, sizeof bytes);
        fprintf(file, "  %-16s %-16s %6lld  %12s  (%lld bytes)\n", axes,
                weft_convert_name(usage->traffic[i].kind), (long long)usage->traffic[i].count,
                bytes, (long long)usage->traffic[i].bytes);
    }
}

static void print_moves(const weft_plan *plan, FILE *file)
{
    fputs("\ncollectives, in order\n", file);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        move_line line;
        char bytes[32];
        if (!is_collective(&plan->steps[s])) continue;
        describe_move(plan, &plan->steps[s], &line);
        human_bytes((double)line.bytes, bytes, sizeof bytes);
        fprintf(file, "  %-8s %s", weft_phase_name(plan->steps[s].phase), line.place);
        if (line.value) fprintf(file, " (%s)", line.value);
        fprintf(file, ": %s -> %s of %s, %s over %s\n", line.reason, line.kind, line.shape, bytes,
                line.axes);
    }
}

weft_status weft_plan_print(const weft_program *program, FILE *file, weft_error *error)
{
    const weft_plan *plan = program->plan;
    weft_usage usage;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    fprintf(file, "mesh    %s (%d rank%s)\nlayout  %s\n", weft_mesh_text(plan->mesh),
            weft_mesh_n_ranks(plan->mesh), weft_mesh_n_ranks(plan->mesh) == 1 ? "" : "s",
            weft_layout_text(plan->layout));
    if (weft_layout_stage(plan->layout))
        fprintf(file, "zero    stage %d over the axes of %s\n", weft_layout_stage(plan->layout),
                weft_layout_store_dim(plan->layout));
    if (plan->skipped[0]) fprintf(file, "\nrules skipped\n%s", plan->skipped);
    WEFT_TRY(print_homes(plan, file, error));
    print_usage(plan, &usage, file);
    print_moves(plan, file);
    return ferror(file) ? weft_fail(error, WEFT_IO, "the plan could not be written") : WEFT_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static weft_status homes_json(const weft_plan *plan, json_t *list, weft_error *error)
{
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        home_line line;
        if (plan->placed[id].home == WEFT_TEMPORARY) continue;
        WEFT_TRY(describe_home(plan, id, &line, error));
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "name",
                                              line.name, "kind", line.kind, "dtype",
                                              weft_dtype_name(plan->placed[id].type.dtype), "dims",
                                              line.dims, "spec", line.spec, "storage", line.storage,
                                              "box", line.box, "bytes", (json_int_t)line.bytes));
    }
    return WEFT_OK;
}

static json_t *usage_json(const weft_usage *usage)
{
    json_t *phases = json_object();
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        json_object_set_new(phases, weft_phase_name((weft_phase)phase),
                            json_integer((json_int_t)usage->peak_bytes[phase]));
    return json_pack("{s:I, s:I, s:I, s:o, s:I, s:I}", "parameters",
                     (json_int_t)usage->variable_bytes, "slots", (json_int_t)usage->slot_bytes,
                     "inputs", (json_int_t)usage->input_bytes, "temporaries", phases, "arena",
                     (json_int_t)usage->arena_bytes, "peak", (json_int_t)usage->total_bytes);
}

static json_t *traffic_json(const weft_plan *plan, const weft_usage *usage)
{
    json_t *list = json_array();
    for (int i = 0; i < usage->n_traffic; i++) {
        char axes[100];
        axes_text(plan->mesh, usage->traffic[i].axes, axes, sizeof axes);
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I}", "axes", axes, "collective",
                                              weft_convert_name(usage->traffic[i].kind), "count",
                                              (json_int_t)usage->traffic[i].count, "bytes",
                                              (json_int_t)usage->traffic[i].bytes));
    }
    return list;
}

static json_t *moves_json(const weft_plan *plan)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        move_line line;
        if (!is_collective(&plan->steps[s])) continue;
        describe_move(plan, &plan->steps[s], &line);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:I}", "phase",
                            weft_phase_name(plan->steps[s].phase), "place", line.place, "reason",
                            line.reason, "collective", line.kind, "axes", line.axes, "box",
                            line.shape, "value", line.value, "bytes", (json_int_t)line.bytes));
    }
    return list;
}

weft_status weft_plan_json(const weft_program *program, FILE *file, weft_error *error)
{
    const weft_plan *plan = program->plan;
    weft_usage usage;
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    json_t *homes = json_array();
    weft_status status = homes_json(plan, homes, error);
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:i, s:s, s:o, s:o, s:f, s:i, s:o, s:o}", "mesh",
                  weft_mesh_text(plan->mesh), "ranks", weft_mesh_n_ranks(plan->mesh), "layout",
                  weft_layout_text(plan->layout), "zero", weft_layout_stage(plan->layout),
                  "skipped", plan->skipped, "tensors", homes, "memory", usage_json(&usage), "flops",
                  usage.flops, "steps", usage.n_steps, "traffic", traffic_json(plan, &usage),
                  "collectives", moves_json(plan));
    if (status == WEFT_OK && !root) status = weft_fail_memory(error, sizeof usage);
    if (status == WEFT_OK && json_dumpf(root, file, JSON_INDENT(1)) != 0)
        status = weft_fail(error, WEFT_IO, "the plan could not be written");
    if (status == WEFT_OK) fputc('\n', file);
    json_decref(root);
    return status;
}
