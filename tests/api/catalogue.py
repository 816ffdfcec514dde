"""catalogue: every public function, called with every parameter wrong in every way: written from the headers.

    python3 catalogue.py SOURCE_TREE OUTPUT

Writes C for catalogue_test.c: a function for each public one, which makes the call with one parameter replaced, and the
table of them. A parameter of a type that catalogue_test.c has no wrong values of does not compile; a function that is
new is in the catalogue by being in a header.
"""
import importlib.util
import os
import re
import sys

# Not called from here: one ends the world the test runs in, one takes a second (tests/ops/calibrate_test.c calls it), one hands over
# a mesh and a graph besides (tests/ops/search_test.c does).
LEFT_OUT = {"weft_world_close", "weft_calibrate", "weft_search_plan"}

# Parameters that may be NULL, as their headers say. Any other NULL must be refused by whoever returns a status.
MAY_BE_NULL = {
    "weft_mesh_create.text", "weft_mesh_plan.text", "weft_layout_create.text", "weft_layout_check.dims",
    "weft_layout_store.dim", "weft_compile.layout", "weft_compile.options", "weft_compile.values",
    "weft_checkpoints_open.options", "weft_chain_open.options", "weft_chain_dataset.options", "weft_calls_check.comm", "weft_engine_choose.text", "weft_flight_create.comm", "weft_flight_start.scratch", "weft_flight_start_joined.scratch",
    "weft_all_reduce.scratch", "weft_plan_cost.cost", "weft_fail.format", "weft_check_given.function",
    "weft_name_check.what", "weft_path_check.what", "weft_all_to_all_start.send", "weft_all_to_all_start.recv",
    "weft_all_gather_start.recv", "weft_check_given.argument", "weft_check_range.function", "weft_check_range.argument",
    "weft_check_op.n_runs", "weft_predict_print.options", "weft_predict_json.options", "weft_plan_predict.options", "weft_plan_predict_steps.options", "weft_plan_predict_steps.steps", "weft_plan_prices.options", "weft_plan_prices.prices", "weft_advise.context",
    "weft_search_best.context", "weft_search_turns.context", "weft_plan_measure.spread", "weft_mesh_destroy.mesh", "weft_graph_destroy.graph", "weft_program_destroy.program",
}  # fmt: skip

# A number that tells how large the caller's own buffer is cannot be checked: it is not called with more than there is.
BUFFER_SIZES = {
    "weft_choice_print.bytes", "weft_nearest.n_names", "weft_layout_check.n_dims", "weft_combine_into.count", "weft_combine_identity.count",
    "weft_all_reduce.count", "weft_arena_copy.bytes", "weft_shape_make.n_dims", "weft_shape_print.bytes",
    "weft_spec_print.bytes", "weft_links_text.bytes", "weft_layout_spec.bytes", "weft_layout_skipped.room", "weft_trainable.room",
    "weft_plan_traffic.room", "weft_measured_traffic.room", "weft_plan_offsets.room", "weft_stored_steps.room",
    "weft_trace_begin.n_parts", "weft_all_gather_start.send_bytes", "weft_comm_gather.bytes", "weft_broadcast.bytes", "weft_emit.n_in", "weft_emit_element.n_in",
    "weft_chain_lengths.n", "weft_chain_read.bytes", "weft_dtype_get.index", "weft_dtype_put.index",
    "weft_emit_dim.n_in", "weft_size_take.known", "weft_move_create_joined.n_parts", "weft_machine_model_rates.room", "weft_plan_prices.room", "weft_machine_model_differs.room",
}  # fmt: skip

# A format is the caller's own text: one that asks for more than was handed over cannot be checked.
FORMATS = {"weft_fail.format", "weft_arena_text.format", "weft_graph_fail.format"}

# Good arguments, where the type's own is not good enough: by function and parameter, or by parameter and type.
GOOD = {
    "ids weft_value": "f->ids", "labels weft_value": "f->ids", "condition weft_value": "f->flags",
    "gain weft_value": "f->gain", "bias weft_value": "f->gain", "table weft_value": "f->table",
    "rows weft_value": "f->rows", "k weft_value": "f->keys", "v weft_value": "f->keys", "q weft_value": "f->queries",
    "loss weft_value": "f->loss", "of weft_value": "f->loss", "variable weft_value": "f->w",
    "query weft_dim": "f->query", "memory weft_dim": "f->memory", "feature weft_dim": "f->feature",
    "weft_kv_attend.cache": "good_kv_cache(f)", "weft_kv_attend.options": "good_kv_options(f)",
    "weft_rope.positions": "f->ids", "weft_rope.feature": "f->column", "weft_rope_with.positions": "f->ids", "weft_rope_with.feature": "f->column", "weft_alibi.heads": "f->fresh", "weft_assign.value": "f->w", "weft_place_as.value": "f->w", "weft_rename.to": "f->fresh",
    "weft_slice.to": "f->two", "weft_slice_step.to": "f->two", "weft_pad.to": "f->both", "weft_pad_reflect.to": "f->both", "weft_one_hot.dim": "f->fresh", "weft_gather.dim": "f->entry",
    "weft_scatter_add.dim": "f->entry", "weft_transpose.out": "f->turned", "weft_reshape.out": "f->flat",
    "weft_concat.b": "f->x", "weft_concat.a_dim": "f->column", "weft_concat.b_dim": "f->column",
    "weft_concat.out": "f->both", "weft_sum.out": "f->rows_only", "weft_max.out": "f->rows_only",
    "weft_mean_over.out": "f->rows_only", "weft_einsum.out": "f->rows_only", "weft_einsum_n.out": "f->rows_only",
    "weft_slice.begin": "1", "weft_dropout.rate": "0.5", "weft_warmup_cosine.total": "100",
    "weft_warmup_cosine.warmup": "10", "weft_warmup.warmup": "10", "weft_schedule_rate.schedule": '"cosine"', "weft_schedule_check.schedule": '"linear"', "weft_layout_store.dim": '"row"',
    "weft_chain_open.path": "f->book", "weft_chain_text.path": "f->book", "weft_chain_read.n": "1", "weft_chain_lengths.n": "1", "weft_text_open.path": "f->book", "weft_text_open.seq": "4",
    "weft_tokens_open.path": "f->words", "weft_tokens_open.n_words": "8", "weft_tokens_open.seq": "4",
    "weft_stored_open.path": "f->run", "weft_dataset_fact_file.path": "f->book", "weft_dataset_bound.name": '"tokens"', "weft_dataset_highest.name": '"tokens"',
    "weft_stored_steps.directory": "f->run", "weft_stored_best.directory": "f->run", "weft_dataset_take.n": "1", "weft_checkpoints_open.directory": "f->fresh_run",
    "weft_postmortem_open.path": "f->records", "weft_live_open.path": "f->records", "weft_watch_record.folder": "f->records", "weft_trace_begin.folder": "f->records", "weft_trace_begin.n_parts": "1",
    "weft_traced_open.path": "f->ring",
    "weft_graph_save.graph": "f->graph", "weft_graph_save.path": "f->saved_to", "weft_graph_load.path": "f->saved",
    "weft_mesh_create.text": '"data:1"', "weft_mesh_plan.text": '"data:2,model:2"',
    "weft_layout_create.text": '"row:data"', "weft_place.layout_text": '"row:data"',
    "weft_mesh_destroy.mesh": "&f->spare_mesh", "weft_graph_destroy.graph": "&f->spare_graph",
    "weft_layout_destroy.layout": "&f->spare_layout", "weft_program_destroy.program": "&f->spare_program",
    "weft_write.value": "f->x", "weft_write.bytes": "(int64_t)sizeof f->numbers", "weft_write.data": "f->numbers",
    "weft_run_until.signal": "2", "weft_read.value": "f->x", "weft_read.bytes": "(int64_t)sizeof f->numbers", "weft_read_scalar.value": "f->loss", "weft_print.value": "f->x",
    "weft_find.name": '"x"', "weft_find_input.name": '"x"', "weft_graph_find.name": '"x"',
    "weft_optimizer_find.name": '"adam"', "weft_mesh_find_axis.name": '"data"',
    "weft_move_create.step": "&f->step", "weft_move_create_joined.n_parts": "1", "weft_move_sends.step": "&f->step", "weft_convert_bytes.step": "&f->step",
    "weft_checkpoints_restore.step": "WEFT_NEWEST", "weft_all_reduce.combine": "WEFT_SUM",
    "weft_all_reduce.count": "4", "weft_combine_into.count": "4", "weft_combine_identity.count": "4",
    "weft_broadcast.bytes": "16", "weft_all_gather_start.send_bytes": "16", "weft_comm_gather.bytes": "16", "weft_plan_tensor_at.id": "1",
    "weft_stored_export.path": "f->exported", "weft_gradients.with_respect_to": "f->weights",
    "weft_gradients_seeded.with_respect_to": "f->weights", "weft_gradients_seeded.of": "f->losses",
    "weft_gradients_seeded.seeds": "f->losses", "weft_jacobian.with_respect_to": "f->weights", "weft_jacobian.of": "f->loss",
    "weft_jacobian.rows": "WEFT_SCALAR", "weft_hessian_vector.with_respect_to": "f->weights", "weft_hessian_vector.vectors": "f->weights",
    "weft_custom_gradient.in": "f->weights",
    "weft_custom_gradient.out": "f->loss", "weft_dim_of.name": '"row"', "weft_flight_finish.flight": "f->started",
    "weft_uniform.low": "0", "weft_wait.request": "&f->request", "weft_nearest.n_names": "2",
    "weft_emit.in": "f->one_weight", "weft_emit.n_in": "1", "weft_emit_element.in": "f->one_weight",
    "weft_emit_element.n_in": "1", "weft_emit_dim.in": "f->one_weight", "weft_emit_dim.n_in": "1",
    "weft_emit.attributes": "&no_attributes", "weft_emit.bytes": "sizeof no_attributes",
    "weft_extend_op.op": "&fresh_op", "weft_check_op.check": "&fresh_check", "weft_extend_combine.rule": "&fresh_combine", "weft_update_slot.variable": "f->w", "weft_update_at.variable": "f->w",
    "weft_scalar_for.scalar": "f->loss", "weft_extend_optimizer.rule": "&fresh_rule", "weft_extend_engine.engine": "&fresh_engine", "weft_engine_choose.text": '"threads"', "weft_extend_kernel.op": '"einsum"', "weft_size_take.given": "&fresh_op",
    "weft_size_take.known": "sizeof(weft_op)", "weft_size_take.least": "8",
    "weft_machine_model_read.name": '"laptop"', "weft_plan_measure.rounds": "1",
    "weft_initial_of.initializer": '"he_normal"', "weft_initial_of.fan_in": "8", "weft_initial_of.fan_out": "8",
    "weft_layout_check.n_dims": "2", "weft_shape_make.n_dims": "2", "weft_calls_check.comm": "f->comm",
}  # fmt: skip


def mangled(kind):
    """The type as a part of a name: "const weft_mesh *" is weft_mesh_ptr."""
    if kind == "char *":  # room for a text, which is not a text
        return "text_ptr"
    kind = re.sub(r"\bconst\b", " ", kind)
    stars = kind.count("*")
    return re.sub(r"\W+", "_", kind.replace("*", " ").strip()) + "_ptr" * stars


def good(function, parameter):
    for key in (f"{function}.{parameter['name']}", f"{parameter['name']} {parameter['type']}"):
        if key in GOOD:
            return GOOD[key]
    return f"good_{mangled(parameter['type'])}(f)"


def write_options(name, fields, out):
    """The wrong values of a struct of options: none at all, all zero, and a good one with one field wrong."""
    kind = f"{name}_ptr"
    counts = "".join(f" + n_wrong_{mangled(field['type'])}" for field in fields)
    out.append(f"enum {{ n_wrong_{kind} = 2{counts} }};")
    out.append(f"static const {name} *wrong_{kind}(fixture *f, int v)\n{{\n    static {name} o;")
    out.append(f"    const {name} *good = good_{kind}(f);\n    o = good != NULL && v != 1 ? *good : ({name}){{0}};")
    out.append("    if (v < 2) return v == 0 ? NULL : &o;\n    v -= 2;")
    for field in fields:
        one = mangled(field["type"])
        out.append(f"    if (v >= 0 && v < n_wrong_{one}) o.{field['name']} = wrong_{one}(f, v);\n    v -= n_wrong_{one};")
    out.append("    return &o;\n}\n")


def write_function(function, out):
    name, parameters = function["name"], function["parameters"]
    out.append(f"static void call_{name}(fixture *f, int p, int v)\n{{")
    out.append("    (void)f, (void)p, (void)v;")
    for i, parameter in enumerate(parameters):
        kind = mangled(parameter["type"])
        between = "" if parameter["type"].endswith("*") else " "
        out.append(
            f"    {parameter['type']}{between}a{i} = is_wrong(p, {i}) ? wrong_{kind}(f, v) : {good(name, parameter)};"
        )
    call = f"({name})({', '.join(f'a{i}' for i in range(len(parameters)))})"
    out.append(f"    took_{mangled(function['returns'])}(f, {call});\n}}\n" if function["returns"] != "void" else f"    {call};\n}}\n")


def write_table(functions, out):
    for function in functions:
        name, parameters = function["name"], function["parameters"]
        rows = []
        for parameter in parameters:
            whole = f"{name}.{parameter['name']}"
            is_pointer = parameter["type"].endswith("*") and parameter["type"] != "weft_error *"
            must_refuse = is_pointer and function["returns"] == "weft_status" and whole not in MAY_BE_NULL
            rows.append(
                f'{{"{parameter["name"]}", n_wrong_{mangled(parameter["type"])}, {int(must_refuse)}, '
                f"{int(whole in BUFFER_SIZES)}, {int(whole in FORMATS)}}}"
            )
        out.append(f"static const parameter of_{name}[] = {{{', '.join(rows) or '{0}'}}};")
    out.append("static const entry catalogue[] = {")
    for function in functions:
        out.append(f'    {{"{function["name"]}", call_{function["name"]}, {len(function["parameters"])}, of_{function["name"]}}},')
    out.append("};")


def main(source, output):
    spec = importlib.util.spec_from_file_location("headers", os.path.join(source, "python/weft/_headers.py"))
    headers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(headers)
    model = headers.read(headers.find(source))
    functions = [f for f in model["functions"] if f["name"] not in LEFT_OUT]
    named = {f"{f['name']}.{p['name']}" for f in functions for p in f["parameters"]}
    for key in sorted(MAY_BE_NULL | BUFFER_SIZES | FORMATS | {k for k in GOOD if "." in k}):
        if key not in named:
            sys.exit(f"catalogue.py: {key} is no parameter of a public function any more")
    out = ["/* Written by tests/api/catalogue.py. */"]
    taken = {mangled(p["type"]) for f in functions for p in f["parameters"]}
    for name, struct in sorted(model["structs"].items()):
        if name.endswith("_options") and f"{name}_ptr" in taken:
            write_options(name, struct["fields"], out)
    for function in functions:
        write_function(function, out)
    write_table(functions, out)
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


main(*sys.argv[1:])
