/* catalogue_test: every public function, called with every parameter wrong in every way, each call in a child.
 *
 * The calls are written from the public headers (catalogue.py), so none can be forgotten; here are, for every type, the
 * wrong values and a good one. A call may refuse or go on; it may not end in a signal, loop, or make a sanitizer
 * speak. A status that is not WEFT_OK comes with one sentence; NULL where a pointer has to be is always refused. Values
 * that builders return are compiled and run, so that nothing is taken that breaks later.
 *
 *     test_api_catalogue [FUNCTION]     all, or only that function's calls, each told
 */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WEFT_NO_HERE /* the functions themselves, not the macros that record a place */
#include "weft.h"
#include "weft/arena.h"
#include "weft/extend/check.h"
#include "weft/extend/combine.h"
#include "weft/extend/element.h"
#include "weft/extend/engine.h"
#include "weft/extend/optimizer.h"
#include "weft/extend/plugin.h"
#include "weft/extend/size.h"
#include "weft/research/plan.h"
#include "weft/research/policy.h"

#include "test.h"

/* Children end without giving back what the call left; a size nobody has is refused, not reported. */
WEFT_API const char *__asan_default_options(void); /* seen by the sanitizer's library */
const char *__asan_default_options(void)
{
    return "detect_leaks=0:allocator_may_return_null=1";
}

/* What good arguments are made of. */
typedef struct fixture {
    char folder[64], book[96], run[96], fresh_run[96], records[96], exported[96];
    weft_error error;
    weft_world world;
    weft_mesh *mesh, *spare_mesh, *planned_mesh;
    weft_layout *layout, *spare_layout;
    weft_graph *graph, *spare_graph, *other_graph;
    weft_program *program, *spare_program, *planned_program;
    weft_dim row, column, fresh, two, both_dim, entry, query, memory, feature, both;
    weft_shape rows_only, turned, flat;
    weft_value x, w, gain, ids, flags, table, rows, queries, keys, loss, update, other, slot;
    weft_value one_loss[1], one_weight[1], taken[64];
    weft_values losses, weights;
    weft_comms *comms;
    weft_comm *comm;
    weft_convert_step step;
    weft_move_part part;
    weft_move_memory moved;
    weft_move *move;
    weft_flight *flight, *started;
    weft_comm_exchange *exchange;
    weft_request request;
    weft_checkpoint_state state;
    weft_arena *arena;
    weft_dataset *dataset;
    weft_checkpoints *checkpoints;
    weft_stored *stored;
    weft_postmortem *postmortem;
    weft_site site;
    weft_update working;
    double numbers[24];
    /* room for whatever a call writes */
    _Alignas(64) char buffer[4096];
    weft_box_copy box; /* of nothing */
    void *made;
    /* what came of the call */
    bool gave_status, gave_value;
    weft_status status;
    weft_value value;
} fixture;

typedef struct parameter {
    const char *name;
    int n_wrong;
    int must_refuse, is_buffer_size, is_format;
} parameter;
typedef struct entry {
    const char *name;
    void (*call)(fixture *f, int p, int v);
    int n_parameters;
    const parameter *parameters;
} entry;

/* p is the parameter that is wrong; past them all: every one is, in the first way. */
enum { EVERY_ONE = 1000 };
static bool is_wrong(int p, int i)
{
    return p == i || p == EVERY_ONE;
}

/* ---- wrong values, by type ------------------------------------------------------------------- */

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
PLAIN(weft_combine, weft_combine, WEFT_MOMENTS, WEFT_NOT_PARTIAL, WEFT_LSE, BEYOND(weft_combine))
PLAIN(weft_convert_kind, weft_convert_kind, WEFT_SLICE, BEYOND(weft_convert_kind))
PLAIN(weft_phase, weft_phase, WEFT_FORWARD, BEYOND(weft_phase))
PLAIN(weft_way_kind, weft_way_kind, 0, BEYOND(weft_way_kind))
PLAIN(weft_tensor_kind, weft_tensor_kind, 0, BEYOND(weft_tensor_kind))
PLAIN(weft_step_kind, weft_step_kind, 0, BEYOND(weft_step_kind))
PLAIN(weft_step_reason, weft_step_reason, 0, BEYOND(weft_step_reason))
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
PLAIN(weft_gradient_rule, weft_gradient_rule, no_rule, NULL)

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
POINTER(weft_checkpoints, weft_checkpoints_ptr, 0, f->checkpoints)
POINTER(weft_stored, weft_stored_ptr, 0, f->stored)
POINTER(weft_postmortem, weft_postmortem_ptr, 0, f->postmortem)
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
POINTER(weft_comm_exchange, weft_comm_exchange_ptr, 0, f->exchange)
POINTER(weft_combine, weft_combine_ptr, 0, (weft_combine *)(void *)f->buffer)
POINTER(const weft_check, weft_check_ptr, 4, &fresh_check, &poor_check,
        (weft_check *)(void *)filled[0], (weft_check *)(void *)filled[1],
        (weft_check *)(void *)filled[2])
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
MADE(weft_checkpoints)
MADE(weft_stored)
MADE(weft_postmortem)

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
STRUCT(weft_move_memory, weft_move_memory_ptr, &f->moved)
STRUCT(weft_policy, weft_policy_ptr, NULL)
STRUCT(weft_site, weft_site_ptr, &f->site)
STRUCT(weft_factors, weft_factors_ptr, (weft_factors *)(void *)f->buffer)
STRUCT(weft_cost, weft_cost_ptr, NULL)
STRUCT(weft_request, weft_request_ptr, (weft_request *)(void *)f->buffer)
STRUCT(weft_world, weft_world_ptr, &f->world)
STRUCT(weft_link_speed, weft_link_speed_ptr, (weft_link_speed *)(void *)f->buffer)
STRUCT(weft_usage, weft_usage_ptr, (weft_usage *)(void *)f->buffer)
STRUCT(weft_traffic, weft_traffic_ptr, (weft_traffic *)(void *)f->buffer)
STRUCT(weft_skipped, weft_skipped_ptr, (weft_skipped *)(void *)f->buffer)
STRUCT(weft_planned_tensor, weft_planned_tensor_ptr, (weft_planned_tensor *)(void *)f->buffer)
STRUCT(weft_planned_step, weft_planned_step_ptr, (weft_planned_step *)(void *)f->buffer)
STRUCT(weft_planned_queue, weft_planned_queue_ptr, (weft_planned_queue *)(void *)f->buffer)
STRUCT(weft_planned_link, weft_planned_link_ptr, (weft_planned_link *)(void *)f->buffer)
STRUCT(weft_planned_skip, weft_planned_skip_ptr, (weft_planned_skip *)(void *)f->buffer)
STRUCT(weft_planned_draft, weft_planned_draft_ptr, (weft_planned_draft *)(void *)f->buffer)
STRUCT(weft_planned_cost, weft_planned_cost_ptr, (weft_planned_cost *)(void *)f->buffer)

/* ---- dims, shapes, values -------------------------------------------------------------------- */

static const weft_dim wrong_dims[] = {
    {NULL, 6},          {"", 6},        {"row", 0},         {"row", -1},
    {"row", INT64_MAX}, {"nosuch", 6},  {"two words", 6},   {"row'", 4},
    {"~", 2},           {"row", 4},     {"column", 6},      {"column", 7},
    {"\xff", 6},        {long_text, 6}, {"row", INT64_MIN}, {"row", (int64_t)1 << 40},
};
enum { n_wrong_weft_dim = sizeof wrong_dims / sizeof *wrong_dims, n_wrong_weft_dim_ptr = 2 };
static weft_dim wrong_weft_dim(fixture *f, int v)
{
    (void)f;
    return wrong_dims[v];
}
static weft_dim good_weft_dim(fixture *f)
{
    return f->column;
}
static const weft_dim *wrong_weft_dim_ptr(fixture *f, int v)
{
    (void)f;
    return v == 0 ? NULL : wrong_dims;
}
static const weft_dim *good_weft_dim_ptr(fixture *f)
{
    return f->turned.dims;
}

/* Alone, or after a good dim; and with counts that are none. */
enum {
    n_wrong_weft_shape = 2 * n_wrong_weft_dim + 5,
    n_wrong_weft_shape_ptr = 1 + n_wrong_weft_shape
};
static weft_shape wrong_weft_shape(fixture *f, int v)
{
    static const int counts[] = {-1, 9, 1000, INT_MAX, INT_MIN};
    weft_shape shape = {0};
    if (v < n_wrong_weft_dim) {
        shape.n_dims = 1;
        shape.dims[0] = wrong_dims[v];
    } else if (v < 2 * n_wrong_weft_dim) {
        shape.n_dims = 2;
        shape.dims[0] = f->row;
        shape.dims[1] = wrong_dims[v - n_wrong_weft_dim];
    } else {
        shape = f->turned;
        shape.n_dims = counts[v - 2 * n_wrong_weft_dim];
    }
    return shape;
}
static weft_shape good_weft_shape(fixture *f)
{
    return f->turned;
}
static weft_shape *wrong_weft_shape_ptr(fixture *f, int v)
{
    static weft_shape shape;
    if (v == 0) return NULL;
    shape = wrong_weft_shape(f, v - 1);
    return &shape;
}
static weft_shape *good_weft_shape_ptr(fixture *f)
{
    return &f->turned;
}

enum {
    n_wrong_weft_value = 12,
    n_wrong_weft_values = 8,
    n_wrong_weft_value_ptr = 1,
    n_wrong_weft_initial = 6
};
static weft_value wrong_weft_value(fixture *f, int v)
{
    const weft_value list[n_wrong_weft_value] = {{NULL, 0},
                                                 {f->graph, 0},
                                                 {f->graph, 100000},
                                                 {f->graph, UINT32_MAX},
                                                 {NULL, 7},
                                                 f->other,
                                                 f->update,
                                                 f->ids,
                                                 f->loss,
                                                 f->x,
                                                 f->w,
                                                 f->slot};
    return list[v];
}
static weft_value good_weft_value(fixture *f)
{
    return f->x;
}
static weft_value *wrong_weft_value_ptr(fixture *f, int v)
{
    (void)f, (void)v;
    return NULL;
}
static weft_value *good_weft_value_ptr(fixture *f)
{
    return f->taken;
}
static weft_values wrong_weft_values(fixture *f, int v)
{
    static weft_value two[2];
    const weft_value seconds[] = {{NULL, 0}, {f->graph, 100000}, f->other, f->update, f->x};
    const int counts[] = {0, 3, -1};
    two[0] = f->w;
    if (v < 3) return (weft_values){v == 2 ? two : NULL, counts[v]};
    two[1] = seconds[v - 3];
    return (weft_values){two, 2};
}
static weft_values good_weft_values(fixture *f)
{
    return f->losses;
}
static weft_initial wrong_weft_initial(fixture *f, int v)
{
    (void)f;
    weft_initial initial = weft_normal(0, 1);
    if (v == 0) memset(&initial.kind, 0xff, sizeof initial.kind);
    if (v == 1) memset(&initial.kind, 0x07, sizeof initial.kind);
    if (v == 2) initial.b = NAN;
    if (v == 3) initial.a = INFINITY;
    if (v == 4) initial.b = -1;
    return initial;
}
static weft_initial good_weft_initial(fixture *f)
{
    (void)f;
    return weft_constant_of(0.5);
}

/* Structs of options: a good one, NULL for the defaults; the wrong ones are written field by field. */
#define DEFAULTS(T)                                                                                \
    static const T *good_##T##_ptr(fixture *f)                                                     \
    {                                                                                              \
        (void)f;                                                                                   \
        return NULL;                                                                               \
    }
DEFAULTS(weft_optimizer_options)
DEFAULTS(weft_compile_options)
DEFAULTS(weft_checkpoint_options)
DEFAULTS(weft_cross_entropy_options)
static const weft_attention_options *good_weft_attention_options_ptr(fixture *f)
{
    static weft_attention_options o;
    o = (weft_attention_options){.query = f->query, .memory = f->memory, .feature = f->feature};
    return &o;
}

/* ---- what comes of a call -------------------------------------------------------------------- */

static void took_weft_device_kind(fixture *f, weft_device_kind device)
{
    (void)f;
    CHECK(weft_devices[device] != NULL);
}

static void took_weft_status(fixture *f, weft_status status)
{
    f->gave_status = true;
    f->status = status;
}
static void took_weft_value(fixture *f, weft_value value)
{
    f->gave_value = true;
    f->value = value;
}
/* Texts are read to their end; numbers can be anything. */
static void took_char_ptr(fixture *f, const char *text)
{
    (void)f;
    if (text != NULL) (void)!write(open("/dev/null", O_WRONLY), text, strlen(text));
}
static void took_text_ptr(fixture *f, char *text)
{
    took_char_ptr(f, text);
    free(text);
}
#define ANY(T, kind)                                                                               \
    static void took_##kind(fixture *f, T result)                                                  \
    {                                                                                              \
        (void)f, (void)result;                                                                     \
    }
ANY(int, int)
ANY(int64_t, int64_t)
ANY(uint64_t, uint64_t)
ANY(uint32_t, uint32_t)
ANY(size_t, size_t)
ANY(double, double)
ANY(bool, bool)
ANY(void *, void_ptr)
ANY(weft_dtype, weft_dtype)
ANY(weft_dim, weft_dim)
ANY(weft_initial, weft_initial)
ANY(const weft_shape *, weft_shape_ptr)
ANY(weft_graph *, weft_graph_ptr)
ANY(weft_mesh *, weft_mesh_ptr)
ANY(const weft_layout *, weft_layout_ptr)
ANY(weft_stream *, weft_stream_ptr)
ANY(weft_comm *, weft_comm_ptr)
ANY(weft_arena *, weft_arena_ptr)
ANY(const weft_machine *, weft_machine_ptr)
ANY(const weft_error *, weft_error_ptr)
ANY(const weft_stored_tensor *, weft_stored_tensor_ptr)
ANY(const weft_optimizer *, weft_optimizer_ptr)
ANY(const weft_rank_report *, weft_rank_report_ptr)
ANY(const weft_decision *, weft_decision_ptr)
ANY(const weft_combine_rule *, weft_combine_rule_ptr)
ANY(weft_factor *, weft_factor_ptr)
/* A shape goes into a builder, as shapes do. */
static void took_weft_shape(fixture *f, weft_shape shape)
{
    took_weft_value(f, weft_constant(f->graph, WEFT_F64, shape, 1.0));
}

#pragma GCC diagnostic ignored "-Wformat-security" /* wrong formats are what it is about */
#include "catalogue_calls.inc"

/* ---- the fixture ----------------------------------------------------------------------------- */

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "catalogue_test: %s: %s\n", #call, f->error.message);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void make_dims(fixture *f)
{
    f->row = (weft_dim){"row", 4};
    f->column = (weft_dim){"column", 6};
    f->fresh = (weft_dim){"fresh", 6};
    f->two = (weft_dim){"two", 2};
    f->both = (weft_dim){"both", 12};
    f->entry = (weft_dim){"entry", 5};
    f->query = (weft_dim){"query", 3};
    f->memory = (weft_dim){"memory", 5};
    f->feature = (weft_dim){"feature", 4};
    f->rows_only = weft_shape_make(&f->row, 1);
    f->turned = weft_shape_make((const weft_dim[]){f->column, f->row}, 2);
    f->flat = weft_shape_make((const weft_dim[]){{"flat", 24}}, 1);
}

#define SHAPE(...)                                                                                 \
    weft_shape_make((const weft_dim[]){__VA_ARGS__},                                               \
                    (int)(sizeof((const weft_dim[]){__VA_ARGS__}) / sizeof(weft_dim)))

static void make_graph(fixture *f)
{
    weft_graph *g = f->graph = weft_graph_create(7);
    f->other_graph = weft_graph_create(8);
    f->spare_graph = weft_graph_create(9);
    f->x = weft_input(g, "x", WEFT_F64, SHAPE(f->row, f->column));
    f->ids = weft_input(g, "ids", WEFT_I32, SHAPE(f->row));
    f->w = weft_variable(g, "w", WEFT_F64, SHAPE(f->column), weft_constant_of(1));
    f->gain = weft_variable(g, "gain", WEFT_F64, SHAPE(f->column), weft_constant_of(1));
    f->table = weft_variable(g, "table", WEFT_F64, SHAPE(f->entry, f->column), weft_normal(0, 1));
    f->rows = weft_input(g, "rows", WEFT_F64, SHAPE(f->row, f->column));
    f->queries = weft_variable(g, "q", WEFT_F64, SHAPE(f->query, f->feature), weft_normal(0, 1));
    f->keys = weft_variable(g, "k", WEFT_F64, SHAPE(f->memory, f->feature), weft_normal(0, 1));
    f->flags = weft_greater(f->x, f->rows);
    f->loss = weft_mean(weft_square(weft_mul(f->x, f->w)));
    f->slot = weft_slot(f->w, "kept", weft_constant_of(0));
    f->update = weft_assign(f->w, weft_scale(f->w, 0.5));
    f->other = weft_input(f->other_graph, "x", WEFT_F64, SHAPE(f->row, f->column));
    f->one_loss[0] = f->loss;
    f->one_weight[0] = f->w;
    f->site = (weft_site){.op = &kept_op, .n_in = 1, .n_out = 1};
    f->site.in[0] = f->site.out[0] = (weft_type){WEFT_F64, SHAPE(f->row, f->column)};
    f->working = (weft_update){.name = "sgd", .graph = g, .run = f->loss, .rate = f->loss};
    f->losses = (weft_values){f->one_loss, 1};
    f->weights = (weft_values){f->one_weight, 1};
}

static void make_programs(fixture *f)
{
    weft_error *error = &f->error;
    const weft_compile_options explained = {.explain = true};
    weft_mesh_limit_cores(1);
    MUST(weft_world_open(&f->world, error));
    MUST(weft_extend_op(&kept_op, error));
    MUST(weft_mesh_create(&f->world, "data:1", &f->mesh, error));
    MUST(weft_mesh_create(&f->world, "data:1", &f->spare_mesh, error));
    MUST(weft_mesh_plan("data:2,model:2", &f->planned_mesh, error));
    MUST(weft_layout_create("row:data", &f->layout, error));
    MUST(weft_layout_create("row:data", &f->spare_layout, error));
    make_graph(f);
    MUST(weft_compile(f->mesh, f->layout, f->losses, &explained, &f->program, error));
    MUST(weft_compile(f->mesh, f->layout, f->losses, NULL, &f->spare_program, error));
    MUST(weft_compile(f->planned_mesh, f->layout, f->losses, &explained, &f->planned_program,
                      error));
    MUST(weft_write(f->program, f->x, WEFT_F64, f->numbers, sizeof f->numbers, error));
    MUST(weft_run(f->program, error));
}

static void make_exchanges(fixture *f)
{
    weft_error *error = &f->error;
    weft_spec_box(&f->step.from, f->mesh, &f->turned, 0, (weft_box *)(void *)f->buffer);
    f->step.kind = WEFT_ALL_GATHER;
    f->step.axes = 1;
    f->step.from.n_split[0] = 1; /* column is split over data */
    f->part = (weft_move_part){&f->turned, f->step};
    f->moved = (weft_move_memory){f->numbers, f->buffer};
    MUST(weft_comms_create(f->mesh, &f->comms, error));
    MUST(weft_comms_prepare(f->comms, 1, error));
    f->comm = weft_comm_of(f->comms, 0, 1);
    MUST(weft_exchange_take(f->comm, &f->exchange, error));
    MUST(weft_move_create(f->mesh, &f->turned, WEFT_F64, &f->step, 0, &f->move, error));
    MUST(weft_flight_create(f->move, f->comm, &f->flight, error));
    MUST(weft_flight_create(f->move, f->comm, &f->started, error));
    MUST(weft_flight_start(f->started, f->numbers, f->buffer, f->buffer + 1024, error));
}

static void make_files(fixture *f)
{
    weft_error *error = &f->error;
    const weft_checkpoint_state state = {.step = 1};
    snprintf(f->folder, sizeof f->folder, "/tmp/weft_catalogue_XXXXXX");
    if (mkdtemp(f->folder) == NULL) exit(1);
    snprintf(f->book, sizeof f->book, "%s/book", f->folder);
    snprintf(f->run, sizeof f->run, "%s/run", f->folder);
    snprintf(f->fresh_run, sizeof f->fresh_run, "%s/fresh", f->folder);
    snprintf(f->records, sizeof f->records, "%s/records", f->folder);
    snprintf(f->exported, sizeof f->exported, "%s/exported.h5", f->folder);
    FILE *book = fopen(f->book, "w");
    for (int i = 0; book != NULL && i < 100; i++)
        fputs("a line of text\n", book);
    if (book == NULL || fclose(book) != 0 || mkdir(f->records, 0700) != 0) exit(1);
    MUST(weft_watch_record(f->records, error));
    MUST(weft_postmortem_open(f->records, &f->postmortem, error));
    MUST(weft_text_open(f->book, 4, 1, &f->dataset, error));
    MUST(weft_checkpoints_open(f->run, NULL, &f->checkpoints, error));
    MUST(weft_checkpoints_save(f->checkpoints, f->program, &state, error));
    MUST(weft_checkpoints_wait(f->checkpoints, error));
    MUST(weft_stored_open(f->run, &f->stored, error));
}

static void remove_files(const fixture *f)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    (void)!system(command);
}

/* ---- one call, in a child -------------------------------------------------------------------- */

enum { WELL = 0, NO_SENTENCE = 3, NOT_REFUSED = 4, SECONDS = 20 };

static bool is_sentence(const weft_error *error)
{
    return error->message[0] != '\0' && strchr(error->message, '\n') == NULL;
}

/* Compile what a builder returned, and run it on what the fixture has. */
static void use_value(fixture *f)
{
    weft_error error = {0};
    weft_program *program = NULL;
    const weft_graph *graph = f->value.graph;
    if (graph == NULL) return;
    if (weft_compile(f->mesh, f->layout, (weft_values){&f->value, 1}, NULL, &program, &error) !=
        WEFT_OK) {
        if (!is_sentence(&error)) _exit(NO_SENTENCE);
        return;
    }
    int32_t ids[4] = {0, 1, 2, 3};
    (void)!weft_write(program, f->x, WEFT_F64, f->numbers, sizeof f->numbers, NULL);
    (void)!weft_write(program, f->rows, WEFT_F64, f->numbers, sizeof f->numbers, NULL);
    (void)!weft_write(program, f->ids, WEFT_I32, ids, sizeof ids, NULL);
    (void)!weft_run(program, &error);
    weft_program_destroy(&program);
}

static void call_and_judge(fixture *f, const entry *e, int p, int v, bool must_refuse,
                           bool has_error)
{
    e->call(f, p, v);
    if (f->gave_status && f->status != WEFT_OK && has_error && f->error.status != WEFT_OK &&
        !is_sentence(&f->error))
        _exit(NO_SENTENCE);
    if (f->gave_status && f->status == WEFT_OK && must_refuse) _exit(NOT_REFUSED);
    if (f->gave_status && f->status != WEFT_OK && has_error && f->error.status == WEFT_OK &&
        strstr(e->name, "destroy") == NULL && strcmp(e->name, "weft_fail") != 0)
        _exit(NO_SENTENCE);
    if (f->gave_value) use_value(f);
}

/* Whether the call ended well; if not, one line about it, and what the child wrote. */
static bool try_call(fixture *f, const entry *e, int p, int v, bool says)
{
    const parameter *wrong = p == EVERY_ONE || p < 0 ? NULL : &e->parameters[p];
    bool has_error = false;
    for (int i = 0; i < e->n_parameters; i++)
        has_error = has_error || (strcmp(e->parameters[i].name, "error") == 0 && !is_wrong(p, i));
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (!says) (void)!freopen("/dev/null", "w", stdout);
        alarm(SECONDS);
        call_and_judge(f, e, p, v, wrong != NULL && v == 0 && wrong->must_refuse, has_error);
        if (says && f->error.status != WEFT_OK)
            fprintf(stderr, "%s, %s, way %d: %s\n", e->name, wrong ? wrong->name : "-", v,
                    f->error.message);
        _exit(WELL);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return CHECK(!"fork");
    if (WIFEXITED(status) && WEXITSTATUS(status) == WELL) return true;
    const char *what = WIFSIGNALED(status)                  ? strsignal(WTERMSIG(status))
                       : WEXITSTATUS(status) == NO_SENTENCE ? "refused without a sentence"
                       : WEXITSTATUS(status) == NOT_REFUSED ? "NULL was not refused"
                                                            : "a sanitizer's report";
    fprintf(stderr, "%s: parameter %s, wrong in way %d: %s\n", e->name,
            wrong != NULL    ? wrong->name
            : p == EVERY_ONE ? "all of them"
                             : "none",
            v, what);
    return false;
}

/* A size of the caller's own buffer may be smaller than it is, not larger; nor may a
 * format say nothing, or ask for what is not there. */
static bool cannot_be_checked(const parameter *wrong, int v)
{
    if (wrong->is_format) {
        const char *text = wrongs_char_ptr[v];
        return text != NULL && (text[0] == '\0' || strchr(text, '%') != NULL);
    }
    if (!wrong->is_buffer_size) return false;
    const int n = wrong->n_wrong;
    if (n == n_wrong_int) return wrongs_int[v] > 2;
    if (n == n_wrong_int64_t) return wrongs_int64_t[v] > 16;
    return true;
}

static int n_tried, n_well;

static void try_entry(fixture *f, const entry *e, bool says)
{
    n_well += try_call(f, e, -1, 0, says);
    n_well += try_call(f, e, EVERY_ONE, 0, says);
    n_tried += 2;
    for (int p = 0; p < e->n_parameters; p++) {
        for (int v = 0; v < e->parameters[p].n_wrong; v++) {
            if (cannot_be_checked(&e->parameters[p], v)) continue;
            n_well += try_call(f, e, p, v, says);
            n_tried++;
        }
    }
}

int main(int argc, char **argv)
{
    const char *names[N(catalogue)];
    int n_entries = 0;
    memset(long_text, 'n', sizeof long_text - 1);
    memset(filled[1], 0xff, sizeof filled[1]);
    memset(filled[2], 0x07, sizeof filled[2]);
    make_dims(&the);
    make_programs(&the);
    make_exchanges(&the);
    make_files(&the);
    for (int i = 0; i < N(catalogue); i++) {
        names[i] = catalogue[i].name;
        if (argc > 1 && strcmp(argv[1], names[i]) != 0) continue;
        try_entry(&the, &catalogue[i], argc > 1);
        n_entries++;
    }
    remove_files(&the);
    if (n_entries == 0) {
        const char *near = weft_nearest(argv[1], names, N(catalogue));
        fprintf(stderr, "there is no public function %s%s%s\n", argv[1],
                near != NULL ? "; did you mean " : "", near != NULL ? near : "");
        return 2;
    }
    printf("%d functions, %d calls: %d ended well\n", n_entries, n_tried, n_well);
    CHECK_EQ_INT(n_well, n_tried);
    return weft_test_report();
}
