/* catalogue_values.h: wrong and good values of every type that is not a tensor's: numbers, texts, functions, pointers. */
#ifndef TEST_CATALOGUE_VALUES_H
#define TEST_CATALOGUE_VALUES_H

#define N(list) (int)(sizeof(list) / sizeof *(list))

/* Plain values: a list of wrong ones, and a good one. */
#define PLAIN(T, kind, good, ...)                                                                  \
    static T const wrongs_##kind[] = {__VA_ARGS__};                                                \
    enum { n_wrong_##kind = sizeof wrongs_##kind / sizeof wrongs_##kind[0] };                      \
    static T wrong_##kind(fixture *f, int v)                                                       \
    {                                                                                              \
        (void)f;                                                                                   \
        return wrongs_##kind[v];                                                                   \
    }                                                                                              \
    __attribute__((unused)) static T good_##kind(fixture *f)                                       \
    {                                                                                              \
        (void)f;                                                                                   \
        return (T)(good);                                                                          \
    }

static char long_text[6001];

PLAIN(int, int, 0, -1, 1, INT_MAX, INT_MIN, 7, 1 << 20)
PLAIN(int64_t, int64_t, 1, 0, -1, INT64_MAX, INT64_MIN, 1 << 20, INT64_MAX / 2 + 1)
PLAIN(uint64_t, uint64_t, 1, 0, UINT64_MAX)
PLAIN(uint32_t, uint32_t, 1, 0, 2, UINT32_MAX, 1u << 31, 64)
PLAIN(size_t, size_t, sizeof f->buffer, 0, 1, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 50)
PLAIN(double, double, 1.5, 0.0, -1.0, NAN, INFINITY, -INFINITY, 1e308, 4e-320)
PLAIN(bool, bool, true, false, true)
#define BEYOND(T) (T) - 1, (T)99, (T)INT_MAX
PLAIN(weft_status, weft_status, WEFT_USAGE, WEFT_OK, BEYOND(weft_status))
PLAIN(weft_dtype, weft_dtype, WEFT_F64, WEFT_I32, WEFT_F32, BEYOND(weft_dtype))
PLAIN(weft_precision, weft_precision, WEFT_PRECISION_TF32, WEFT_PRECISION_F32,
      BEYOND(weft_precision))
PLAIN(weft_combine, weft_combine, WEFT_MOMENTS, WEFT_NOT_PARTIAL, WEFT_LSE, BEYOND(weft_combine))
PLAIN(weft_convert_kind, weft_convert_kind, WEFT_SLICE, BEYOND(weft_convert_kind))
PLAIN(weft_file_use, weft_file_use, WEFT_FILE_TEXT, WEFT_FILE_IDX, BEYOND(weft_file_use))
PLAIN(weft_phase, weft_phase, WEFT_FORWARD, BEYOND(weft_phase))
PLAIN(weft_chooser, weft_chooser, WEFT_TOKENS_CHOOSE, BEYOND(weft_chooser))
PLAIN(weft_way_kind, weft_way_kind, 0, BEYOND(weft_way_kind))
PLAIN(weft_tensor_kind, weft_tensor_kind, 0, BEYOND(weft_tensor_kind))
PLAIN(weft_step_kind, weft_step_kind, 0, BEYOND(weft_step_kind))
PLAIN(weft_step_reason, weft_step_reason, 0, BEYOND(weft_step_reason))
PLAIN(weft_time_source, weft_time_source, 0, BEYOND(weft_time_source))
PLAIN(const char *, char_ptr, "name", NULL, "", "two words", long_text, "%s%n%d", "\xff\xfe",
      "a:b,", "data:0", "../..", "/nowhere/at/all", "x")

static void no_piece(void *argument, int64_t begin, int64_t end, int lane)
{
    (void)argument, (void)begin, (void)end, (void)lane;
}
static void no_body(void *argument, int rank)
{
    (void)argument, (void)rank;
}
static void no_pause(void *argument)
{
    (void)argument;
}
static void no_rule(void *argument, weft_values in, weft_value out, weft_value dout,
                    weft_value *din)
{
    (void)argument, (void)in, (void)out, (void)dout, (void)din;
}
PLAIN(weft_piece, weft_piece, no_piece, NULL)
PLAIN(weft_rank_body, weft_rank_body, no_body, NULL)
PLAIN(weft_meanwhile, weft_meanwhile, no_pause, NULL)
static weft_status no_sample(const void *argument, int field, int64_t sample, void *row,
                             weft_error *error)
{
    (void)argument, (void)field, (void)sample, (void)row;
    return weft_fail(error, WEFT_IO, "there are no samples");
}
PLAIN(weft_sample_read, weft_sample_read, no_sample, NULL)
static weft_status no_map(const void *argument, int64_t i, const void *const *in, void *const *out,
                          weft_philox_key key, weft_error *error)
{
    (void)argument, (void)i, (void)in, (void)out, (void)key;
    return weft_fail(error, WEFT_USAGE, "this map makes nothing");
}
PLAIN(weft_map_function, weft_map_function, no_map, NULL)
static weft_status keep_all(const void *argument, int64_t i, const void *const *in,
                            const int64_t *counts, bool *stays, weft_error *error)
{
    (void)argument, (void)i, (void)in, (void)counts, (void)error;
    *stays = true;
    return WEFT_OK;
}
PLAIN(weft_filter_function, weft_filter_function, keep_all, NULL)
static weft_status encode_none(const void *argument, const unsigned char *text, int64_t bytes,
                               int32_t *tokens, int64_t *n, weft_error *error)
{
    (void)argument, (void)text, (void)bytes, (void)tokens, (void)error;
    *n = 0;
    return WEFT_OK;
}
PLAIN(weft_encode_function, weft_encode_function, encode_none, NULL)
PLAIN(weft_gradient_rule, weft_gradient_rule, no_rule, NULL)
static weft_status small_program(void *context, const weft_choice *choice, weft_built_graph *built,
                                 weft_error *error)
{
    const weft_dim row = {"row", 8}, column = {"column", 4};
    (void)context, (void)choice;
    built->graph = weft_graph_create(1);
    if (!built->graph) return weft_fail_memory(error, 1);
    built->n_values = 1;
    built->values[0] = weft_mean(weft_einsum(
        WEFT_DIMS(row), weft_input(built->graph, "x", WEFT_F32, WEFT_DIMS(row, column)),
        weft_variable(built->graph, "w", WEFT_F32, WEFT_DIMS(column), weft_constant_of(1))));
    return WEFT_OK;
}
static void no_progress(void *context, int64_t planned, int64_t of, double seconds)
{
    (void)context, (void)planned, (void)of, (void)seconds;
}
PLAIN(weft_search_builder, weft_search_builder, small_program, NULL)
PLAIN(weft_search_progress, weft_search_progress, no_progress, NULL)

/* An op that the fixture registers, one that nobody has, one that says too little; kernels in the same way. */
WEFT_ELEMENT_1(x * 2)
static const weft_op kept_op = {.size = sizeof(weft_op),
                                .name = "kept",
                                .infer = weft_infer_same,
                                .factors = weft_factors_pass,
                                .element = &element},
                     fresh_op = {.size = sizeof(weft_op),
                                 .name = "fresh",
                                 .infer = weft_infer_same,
                                 .factors = weft_factors_pass,
                                 .element = &element},
                     poor_op = {.size = sizeof(weft_op), .name = "poor"};
static const weft_element_attributes no_attributes;
static void no_launch(const weft_call *call)
{
    (void)call;
}
static const weft_kernel fresh_kernel = {.size = sizeof(weft_kernel),
                                         .name = "fresh",
                                         .dtypes = WEFT_ANY_DTYPE,
                                         .priority = 9,
                                         .launch = no_launch};
static const weft_kernel poor_kernel = {.size = sizeof(weft_kernel), .name = "poor", .dtypes = 77};

static int no_update(const weft_update *u, weft_value variable, weft_value gradient,
                     weft_value *tokens)
{
    (void)u, (void)gradient;
    tokens[0] = weft_assign(variable, weft_scale(variable, 0.5));
    return 1;
}
static int no_tokens(const weft_update *u, weft_value variable, weft_value gradient,
                     weft_value *tokens)
{
    (void)u, (void)variable, (void)gradient, (void)tokens;
    return 0;
}
static const weft_optimizer_rule fresh_rule = {
    sizeof fresh_rule, "fresh", no_update, weft_sgd, {.rate = 1}};
static const weft_optimizer_rule poor_rule = {
    sizeof poor_rule, "poor", no_tokens, NULL, {.rate = 1}};

static void no_combination(void *out, const void *a, const void *b, int64_t n_states)
{
    (void)b;
    memmove(out, a, (size_t)n_states * sizeof(double));
}
static void no_identity(void *into, int64_t n_states)
{
    memset(into, 0, (size_t)n_states * sizeof(double));
}
static const weft_combine_rule fresh_combine = {
    sizeof fresh_combine,      "fresh", 1, false, {[WEFT_F64] = no_combination},
    {[WEFT_F64] = no_identity}};
static const weft_combine_rule poor_combine = {
    sizeof poor_combine, "poor", 65, true, {NULL}, {NULL}};

static weft_status no_start(weft_comm_exchange *exchange, weft_error *error)
{
    (void)exchange, (void)error;
    return WEFT_OK;
}
static bool no_poll(weft_comm_exchange *exchange)
{
    (void)exchange;
    return true;
}
static const weft_engine fresh_engine = {
    .size = sizeof fresh_engine, .name = "fresh", .below = "", .start = no_start, .poll = no_poll};
static const weft_engine poor_engine = {
    .size = sizeof poor_engine, .name = "poor", .below = "nosuch", .start = no_start};

static weft_status bind_nothing(const weft_loop *loop, weft_loop_part part, weft_stream *stream,
                                weft_arena *arena, void **bound, weft_error *error)
{
    (void)loop, (void)part, (void)stream, (void)arena, (void)error;
    *bound = NULL;
    return WEFT_OK;
}
static void run_nothing(void *bound, uint64_t run, int64_t trip)
{
    (void)bound, (void)run, (void)trip;
}
static const weft_loop_driver fresh_loops = {sizeof fresh_loops, WEFT_CPU, bind_nothing,
                                             run_nothing}; /* the CPU has one: refused */
static const weft_loop_driver poor_loops = {sizeof poor_loops, (weft_device_kind)99, NULL, NULL};

static weft_value build_check(weft_graph *graph, const weft_value *in, void *argument)
{
    (void)graph, (void)argument;
    return weft_scale(in[0], 2);
}
static void double_all(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    (void)argument;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = 2 * in[0].data[i];
}
static const char *const no_meshes[] = {NULL};
static const weft_check fresh_check = {.size = sizeof(weft_check),
                                       .name = "fresh",
                                       .build = build_check,
                                       .reference = double_all,
                                       .n_in = 1,
                                       .in = {{.dims = WEFT_CHECK_DIMS({"row", 2})}},
                                       .meshes = no_meshes},
                        poor_check = {.size = sizeof(weft_check),
                                      .name = "poor",
                                      .build = build_check,
                                      .reference = double_all,
                                      .n_in = 1,
                                      .in = {{.n_dims = 3}}};

/* Pointers: NULL first; then the n others, objects of the type that are there before any call. */
#define POINTER(T, kind, n, good, ...)                                                             \
    enum { n_wrong_##kind = 1 + (n) };                                                             \
    static T *wrong_##kind(fixture *f, int v)                                                      \
    {                                                                                              \
        T *const list[n_wrong_##kind] = {NULL, ##__VA_ARGS__};                                     \
        (void)f;                                                                                   \
        return list[v];                                                                            \
    }                                                                                              \
    __attribute__((unused)) static T *good_##kind(fixture *f)                                      \
    {                                                                                              \
        (void)f;                                                                                   \
        return good;                                                                               \
    }

static fixture the;

POINTER(weft_error, weft_error_ptr, 0, &f->error)
POINTER(void, void_ptr, 0, f->buffer)
POINTER(char, text_ptr, 0, f->buffer)
POINTER(int, int_ptr, 0, (int *)(void *)f->buffer)
POINTER(int8_t, int8_t_ptr, 0, (int8_t *)f->buffer)
POINTER(int64_t, int64_t_ptr, 0, (int64_t *)(void *)f->buffer)
POINTER(void *, void_ptr_ptr, 0, (void **)(void *)f->buffer)
POINTER(double, double_ptr, 0, (double *)(void *)f->buffer)
POINTER(bool, bool_ptr, 0, (bool *)(void *)f->buffer)
POINTER(FILE, FILE_ptr, 0, stdout)
POINTER(weft_mesh, weft_mesh_ptr, 1, f->mesh, the.planned_mesh)
POINTER(weft_layout, weft_layout_ptr, 0, f->layout)
POINTER(weft_graph, weft_graph_ptr, 1, f->graph, the.other_graph)
POINTER(weft_program, weft_program_ptr, 2, f->program, the.planned_program, the.spare_program)
POINTER(weft_stream, weft_stream_ptr, 0, weft_mesh_stream(f->mesh, 0))
POINTER(weft_comms, weft_comms_ptr, 0, f->comms)
POINTER(weft_comm, weft_comm_ptr, 0, f->comm)
POINTER(weft_move, weft_move_ptr, 0, f->move)
POINTER(weft_flight, weft_flight_ptr, 1, f->flight, the.started)
POINTER(weft_arena, weft_arena_ptr, 0, f->arena)
POINTER(weft_dataset, weft_dataset_ptr, 0, f->dataset)
POINTER(weft_chain, weft_chain_ptr, 0, f->chain)
POINTER(weft_checkpoints, weft_checkpoints_ptr, 0, f->checkpoints)
POINTER(weft_stored, weft_stored_ptr, 0, f->stored)
POINTER(weft_postmortem, weft_postmortem_ptr, 0, f->postmortem)
POINTER(weft_live, weft_live_ptr, 0, f->live)
POINTER(weft_machine_model, weft_machine_model_ptr, 0, f->machine)
POINTER(weft_trace, weft_trace_ptr, 0, f->trace)
static char filled[3][8192];
POINTER(const weft_op, weft_op_ptr, 5, &kept_op, &fresh_op, &poor_op, (weft_op *)(void *)filled[0],
        (weft_op *)(void *)filled[1], (weft_op *)(void *)filled[2])
POINTER(const weft_kernel, weft_kernel_ptr, 4, &fresh_kernel, &poor_kernel,
        (weft_kernel *)(void *)filled[0], (weft_kernel *)(void *)filled[1],
        (weft_kernel *)(void *)filled[2])
POINTER(const weft_optimizer_rule, weft_optimizer_rule_ptr, 4, &fresh_rule, &poor_rule,
        (weft_optimizer_rule *)(void *)filled[0], (weft_optimizer_rule *)(void *)filled[1],
        (weft_optimizer_rule *)(void *)filled[2])
POINTER(const weft_update, weft_update_ptr, 1, &f->working, (weft_update *)(void *)filled[0])
POINTER(const weft_combine_rule, weft_combine_rule_ptr, 4, &fresh_combine, &poor_combine,
        (weft_combine_rule *)(void *)filled[0], (weft_combine_rule *)(void *)filled[1],
        (weft_combine_rule *)(void *)filled[2])
POINTER(const weft_engine, weft_engine_ptr, 4, &fresh_engine, &poor_engine,
        (weft_engine *)(void *)filled[0], (weft_engine *)(void *)filled[1],
        (weft_engine *)(void *)filled[2])
POINTER(const weft_loop_driver, weft_loop_driver_ptr, 4, &fresh_loops, &poor_loops,
        (weft_loop_driver *)(void *)filled[0], (weft_loop_driver *)(void *)filled[1],
        (weft_loop_driver *)(void *)filled[2])
POINTER(weft_comm_exchange, weft_comm_exchange_ptr, 0, f->exchange)
POINTER(weft_combine, weft_combine_ptr, 0, (weft_combine *)(void *)f->buffer)
POINTER(const weft_check, weft_check_ptr, 4, &fresh_check, &poor_check,
        (weft_check *)(void *)filled[0], (weft_check *)(void *)filled[1],
        (weft_check *)(void *)filled[2])
static const weft_sample_field good_fields[WEFT_MAX_FIELDS] = {{"a", {"wide", 3}, WEFT_F32},
                                                               {"b", {NULL, 0}, WEFT_I32},
                                                               {"c", {"wide", 3}, WEFT_F64},
                                                               {"d", {"thin", 1}, WEFT_U8}};
static const weft_sample_field poor_fields[3][WEFT_MAX_FIELDS] = {
    {{"two words", {NULL, 0}, WEFT_F32}},
    {{"a", {"wide", -1}, WEFT_F32}},
    {{"a", {"'", 4}, WEFT_DTYPES}}};
POINTER(const weft_sample_field, weft_sample_field_ptr, 4, good_fields, poor_fields[0],
        poor_fields[1], poor_fields[2], (weft_sample_field *)(void *)filled[0])
#define MADE(T) POINTER(T *, T##_ptr_ptr, 0, (T **)&f->made)
MADE(weft_mesh)
MADE(weft_layout)
MADE(weft_graph)
MADE(weft_program)
MADE(weft_comms)
MADE(weft_comm_exchange)
MADE(weft_move)
MADE(weft_flight)
MADE(weft_arena)
MADE(weft_dataset)
MADE(weft_chain)
MADE(weft_checkpoints)
MADE(weft_stored)
MADE(weft_postmortem)
MADE(weft_live)
MADE(weft_machine_model)
MADE(weft_trace)
MADE(weft_traced)
POINTER(const weft_saved *, weft_saved_ptr_ptr, 0, (const weft_saved **)&f->made_too)

static const char *const two_names[] = {"row", "column"}, *const no_names[] = {NULL, ""};
#undef MADE
enum { n_wrong_char_ptr_ptr = 2 };
static const char *const *wrong_char_ptr_ptr(fixture *f, int v)
{
    (void)f;
    return v == 0 ? NULL : no_names;
}
static const char *const *good_char_ptr_ptr(fixture *f)
{
    (void)f;
    return two_names;
}

/* Structs that anybody may fill: zero, and every byte 0xff or 0x07, if there is no pointer in them. */
#define STRUCT(T, kind, good) POINTER(T, kind, 1, good, (T *)(void *)filled[0])
#define NUMBERS(T, kind, good)                                                                     \
    POINTER(T, kind, 3, good, (T *)(void *)filled[0], (T *)(void *)filled[1],                      \
            (T *)(void *)filled[2])
NUMBERS(weft_spec, weft_spec_ptr, &f->step.from)
NUMBERS(weft_window, weft_window_ptr, &f->step.from.window[0])
NUMBERS(weft_box, weft_box_ptr, (weft_box *)(void *)f->buffer)
STRUCT(weft_box_copy, weft_box_copy_ptr, &f->box)
NUMBERS(weft_convert_step, weft_convert_step_ptr, (weft_convert_step *)(void *)f->buffer)
NUMBERS(weft_checkpoint_state, weft_checkpoint_state_ptr, &f->state)
STRUCT(weft_move_part, weft_move_part_ptr, &f->part)
STRUCT(weft_move_boxes, weft_move_boxes_ptr, &f->boxes)
STRUCT(weft_move_memory, weft_move_memory_ptr, &f->moved)
STRUCT(weft_policy, weft_policy_ptr, NULL)
STRUCT(weft_saving, weft_saving_ptr, &f->saving)
STRUCT(weft_site, weft_site_ptr, &f->site)
STRUCT(weft_factors, weft_factors_ptr, (weft_factors *)(void *)f->buffer)
STRUCT(weft_cost, weft_cost_ptr, NULL)
STRUCT(weft_request, weft_request_ptr, (weft_request *)(void *)f->buffer)
STRUCT(weft_recurrent_states, weft_recurrent_states_ptr, (weft_recurrent_states *)(void *)f->buffer)
STRUCT(weft_experts_facts, weft_experts_facts_ptr, (weft_experts_facts *)(void *)f->buffer)
STRUCT(weft_world, weft_world_ptr, &f->world)
STRUCT(weft_link_speed, weft_link_speed_ptr, (weft_link_speed *)(void *)f->buffer)
STRUCT(weft_trace_part, weft_trace_part_ptr, &f->trace_part)
STRUCT(weft_traced, weft_traced_ptr, (weft_traced *)(void *)f->buffer)
STRUCT(weft_usage, weft_usage_ptr, (weft_usage *)(void *)f->buffer)
STRUCT(weft_traffic, weft_traffic_ptr, (weft_traffic *)(void *)f->buffer)
STRUCT(weft_skipped, weft_skipped_ptr, (weft_skipped *)(void *)f->buffer)
STRUCT(weft_planned_tensor, weft_planned_tensor_ptr, (weft_planned_tensor *)(void *)f->buffer)
STRUCT(weft_planned_step, weft_planned_step_ptr, (weft_planned_step *)(void *)f->buffer)
STRUCT(weft_planned_queue, weft_planned_queue_ptr, (weft_planned_queue *)(void *)f->buffer)
STRUCT(weft_planned_link, weft_planned_link_ptr, (weft_planned_link *)(void *)f->buffer)
STRUCT(weft_device, weft_device_ptr, (weft_device *)(uintptr_t)weft_devices[WEFT_CPU])
STRUCT(weft_device_kind, weft_device_kind_ptr, (weft_device_kind *)(void *)f->buffer)
STRUCT(weft_planned_skip, weft_planned_skip_ptr, (weft_planned_skip *)(void *)f->buffer)
STRUCT(weft_planned_variant, weft_planned_variant_ptr, (weft_planned_variant *)(void *)f->buffer)
STRUCT(weft_planned_candidate, weft_planned_candidate_ptr,
       (weft_planned_candidate *)(void *)f->buffer)
STRUCT(weft_planned_cost, weft_planned_cost_ptr, (weft_planned_cost *)(void *)f->buffer)
STRUCT(weft_prediction, weft_prediction_ptr, (weft_prediction *)(void *)f->buffer)
STRUCT(weft_predicted_step, weft_predicted_step_ptr, f->predicted)
STRUCT(weft_priced_exchange, weft_priced_exchange_ptr, (weft_priced_exchange *)(void *)f->buffer)
STRUCT(weft_advice, weft_advice_ptr, &f->advice)
STRUCT(weft_machine_rate, weft_machine_rate_ptr, (weft_machine_rate *)(void *)f->buffer)
STRUCT(weft_planned_pricing, weft_planned_pricing_ptr, (weft_planned_pricing *)(void *)f->buffer)
static weft_choice good_choice = {.mesh = "data:2", .layout = "row:data"};
#define ONE_KNOB                                                                                   \
    {                                                                                              \
        .name = "knob", .n_values = 1, .values = { 1 }                                             \
    }
static weft_knob good_knobs[WEFT_MAX_KNOBS] = {ONE_KNOB, ONE_KNOB, ONE_KNOB, ONE_KNOB,
                                               ONE_KNOB, ONE_KNOB, ONE_KNOB, ONE_KNOB,
                                               ONE_KNOB, ONE_KNOB, ONE_KNOB, ONE_KNOB};
static weft_found made_found;
static weft_turn made_turns[WEFT_MAX_TURNS];
STRUCT(weft_choice, weft_choice_ptr, &good_choice)
STRUCT(weft_knob, weft_knob_ptr, good_knobs)
POINTER(weft_found, weft_found_ptr, 0, &made_found)
POINTER(weft_turn, weft_turn_ptr, 0, made_turns)

#endif
