/* catalogue_tensors.h: wrong and good dims, shapes, values and what describes them; and what comes of a call. */
#ifndef TEST_CATALOGUE_TENSORS_H
#define TEST_CATALOGUE_TENSORS_H

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
enum { n_wrong_weft_spatials = 10 };
static weft_spatials wrong_weft_spatials(fixture *f, int v)
{
    static weft_spatial one;
    one = (weft_spatial){f->column, f->column, f->column, 1, 1, 0};
    if (v == 0) one.stride = -1;
    if (v == 1) one.stride = INT64_MAX;
    if (v == 2) one.dilation = INT64_MIN;
    if (v == 3) one.before = INT64_MIN;
    if (v == 4) one.before = INT64_MAX;
    if (v == 5) one.tap = (weft_dim){NULL, 3};
    if (v == 6) one.out.size = 0;
    if (v == 7) one.in = (weft_dim){"nosuch", 4};
    return (weft_spatials){v == 8 ? NULL : &one, v == 9 ? -1 : 1};
}
static weft_spatials good_weft_spatials(fixture *f)
{
    static weft_spatial one;
    one = (weft_spatial){f->column, f->column, f->column, 1, 1, 0};
    return (weft_spatials){&one, 1};
}
static void took_weft_spatial(fixture *f, weft_spatial spatial)
{
    (void)f, (void)spatial;
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
enum { n_wrong_weft_initial_ptr = 1 + n_wrong_weft_initial };
static weft_initial *wrong_weft_initial_ptr(fixture *f, int v)
{
    static weft_initial initial;
    if (v > 0) initial = wrong_weft_initial(f, v - 1);
    return v > 0 ? &initial : NULL;
}
static weft_initial *good_weft_initial_ptr(fixture *f)
{
    static weft_initial initial;
    initial = good_weft_initial(f);
    return &initial;
}

enum { n_wrong_weft_experts_weights_ptr = 3 * n_wrong_weft_value };
static const weft_experts_weights *wrong_weft_experts_weights_ptr(fixture *f, int v)
{
    static weft_experts_weights weights;
    weft_value *const all[] = {&weights.router, &weights.up, &weights.down};
    weights = (weft_experts_weights){f->w, f->w, f->w};
    *all[v / n_wrong_weft_value] = wrong_weft_value(f, v % n_wrong_weft_value);
    return &weights;
}

/* Structs of options: a good one, NULL for the defaults; the wrong ones are written field by field. */
#define DEFAULTS(T)                                                                                \
    static const T *good_##T##_ptr(fixture *f)                                                     \
    {                                                                                              \
        (void)f;                                                                                   \
        return NULL;                                                                               \
    }
DEFAULTS(weft_optimizer_options)
DEFAULTS(weft_average_options)
DEFAULTS(weft_compile_options)
DEFAULTS(weft_checkpoint_options)
DEFAULTS(weft_cross_entropy_options)
DEFAULTS(weft_rope_options)
static const weft_attention_options *good_weft_attention_options_ptr(fixture *f)
{
    static weft_attention_options o;
    o = (weft_attention_options){.query = f->query, .memory = f->memory, .feature = f->feature};
    return &o;
}
/* Of weft_kv_attend: the memory's rows as a window. */
static weft_kv_cache *good_kv_cache(fixture *f)
{
    static weft_kv_cache cache;
    const weft_value place = weft_constant(f->graph, WEFT_I32, WEFT_SCALAR, 1.0);
    cache = (weft_kv_cache){.kept = {f->keys, f->keys}, .place = place};
    return &cache;
}
static const weft_attention_options *good_kv_options(fixture *f)
{
    static weft_attention_options o;
    o = *good_weft_attention_options_ptr(f), o.causal = true;
    return &o;
}
static const weft_ctc_options *good_weft_ctc_options_ptr(fixture *f)
{
    static weft_ctc_options o;
    o = (weft_ctc_options){.time = f->row, .classes = f->column, .label = f->row};
    return &o;
}
/* As a field of another struct: none, and with dims that are none. */
enum { n_wrong_weft_attention_options = 2 + n_wrong_weft_dim };
static weft_attention_options wrong_weft_attention_options(fixture *f, int v)
{
    weft_attention_options o = *good_weft_attention_options_ptr(f);
    if (v == 0) return (weft_attention_options){0};
    if (v == 1) o.scale = NAN;
    if (v > 1) o.query = o.feature = wrong_dims[v - 2];
    return o;
}
enum { n_wrong_weft_rope_options = 2 };
static weft_rope_options wrong_weft_rope_options(fixture *f, int v)
{
    (void)f;
    return v == 0 ? (weft_rope_options){.base = NAN}
                  : (weft_rope_options){.factor = -1, .low = 2, .high = 1, .rows = 3};
}
/* As fields of layers' options: functions that give nothing, and none. */
static weft_value no_variable(void *context, weft_graph *graph, const char *name, weft_dtype dtype,
                              weft_shape shape, weft_initial initial)
{
    (void)context, (void)name, (void)dtype, (void)shape, (void)initial;
    return (weft_value){graph, 0};
}
static weft_value no_attention(void *context, weft_value q, weft_value k, weft_value v,
                               const weft_attention_options *options)
{
    (void)context, (void)k, (void)v, (void)options;
    return (weft_value){q.graph, 0};
}
enum { n_wrong_weft_layer_source_ptr = 3 };
static const weft_layer_source *wrong_weft_layer_source_ptr(fixture *f, int v)
{
    static const weft_layer_source sources[] = {{NULL, NULL}, {no_variable, NULL}};
    (void)f;
    return v == 0 ? NULL : &sources[v - 1];
}
enum { n_wrong_weft_attend = 2 };
static weft_attend wrong_weft_attend(fixture *f, int v)
{
    (void)f;
    return v == 0 ? NULL : no_attention;
}
enum { n_wrong_weft_optimizer_groups = 7 };
static weft_optimizer_groups wrong_weft_optimizer_groups(fixture *f, int v)
{
    static weft_optimizer_group one;
    (void)f;
    one = (weft_optimizer_group){.pattern = v == 0 ? NULL : v == 1 ? "[" : "*"};
    if (v == 2) one.rate_scale = NAN;
    if (v == 3) one.weight_decay = INFINITY;
    if (v == 4) one.optimizer = "nosuch";
    return (weft_optimizer_groups){v == 5 ? NULL : &one, v == 6 ? -1 : 1};
}
enum { n_wrong_weft_rate_pieces = 5 };
static weft_rate_pieces wrong_weft_rate_pieces(fixture *f, int v)
{
    static weft_rate_piece two[2];
    (void)f;
    two[0] = (weft_rate_piece){3, v == 2 ? NAN : 0.5};
    two[1] = (weft_rate_piece){v == 3 ? INT64_MIN : 9, 0.1};
    return (weft_rate_pieces){v == 0 ? NULL : two, v == 1 ? -1 : v == 4 ? 0 : 2};
}
static const weft_schedule_options *good_weft_schedule_options_ptr(fixture *f)
{
    static const weft_schedule_options o = {.rate = 0.1, .warmup = 5, .total = 20, .period = 3};
    (void)f;
    return &o;
}
static const weft_recurrent_options *good_weft_recurrent_options_ptr(fixture *f)
{
    static weft_recurrent_options o;
    o = (weft_recurrent_options){
        .name = "net", .over = f->row, .feature = f->column, .hidden = {"state", 3}};
    return &o;
}

static const weft_batch_norm_options *good_weft_batch_norm_options_ptr(fixture *f)
{
    static weft_batch_norm_options o;
    o = (weft_batch_norm_options){.name = "norm", .channel = f->column};
    return &o;
}

static const weft_samples_options *good_weft_samples_options_ptr(fixture *f)
{
    static weft_samples_options o;
    (void)f;
    o = (weft_samples_options){good_fields, 2, 10, no_sample, NULL, false, 0};
    return &o;
}
static const weft_open_options *good_weft_open_options_ptr(fixture *f)
{
    static weft_open_options o;
    (void)f;
    return &o;
}
static const weft_text_options *good_weft_text_options_ptr(fixture *f)
{
    static weft_text_options o;
    (void)f;
    o = (weft_text_options){.seq = 4};
    return &o;
}
static const weft_filter_options *good_weft_filter_options_ptr(fixture *f)
{
    static weft_filter_options o;
    (void)f;
    o = (weft_filter_options){.name = "all", .function = keep_all};
    return &o;
}
static const weft_windows_options *good_weft_windows_options_ptr(fixture *f)
{
    static weft_windows_options o;
    (void)f;
    o = (weft_windows_options){.seq = 4};
    return &o;
}
static const weft_bucket_options *good_weft_bucket_options_ptr(fixture *f)
{
    static weft_bucket_options o;
    (void)f;
    o = (weft_bucket_options){.values = 1 << 12};
    return &o;
}
static const weft_encode_options *good_weft_encode_options_ptr(fixture *f)
{
    static weft_encode_options o;
    (void)f;
    o = (weft_encode_options){.name = "none", .function = encode_none};
    return &o;
}
static const weft_snapshot_options *good_weft_snapshot_options_ptr(fixture *f)
{
    static weft_snapshot_options o;
    (void)f;
    o = (weft_snapshot_options){.folder = "/dev/null/none"};
    return &o;
}
static const weft_split_options *good_weft_split_options_ptr(fixture *f)
{
    static weft_split_options o;
    (void)f;
    return &o;
}
static const weft_pack_options *good_weft_pack_options_ptr(fixture *f)
{
    static weft_pack_options o;
    (void)f;
    o = (weft_pack_options){.seq = 4};
    return &o;
}
static const weft_feed_options *good_weft_feed_options_ptr(fixture *f)
{
    static weft_feed_options o;
    (void)f;
    return &o;
}
static const weft_map_options *good_weft_map_options_ptr(fixture *f)
{
    static weft_map_options o;
    (void)f;
    o = (weft_map_options){"none", good_fields, 2, no_map, NULL, false, 0};
    return &o;
}
static const weft_search_options *good_weft_search_options_ptr(fixture *f)
{
    static weft_search_options o;
    o = (weft_search_options){
        .ranks = 2, .machine = f->machine, .n_knobs = 1, .knobs = good_knobs, .most = 2};
    return &o;
}
static const weft_predict_options *good_weft_predict_options_ptr(fixture *f)
{
    static const weft_predict_options o = {.slow_by = 1.5, .host_ranks = 2};
    (void)f;
    return &o;
}
static const weft_dense_options *good_weft_dense_options_ptr(fixture *f)
{
    static weft_dense_options o;
    o = (weft_dense_options){
        .name = "dense", .in = WEFT_DIMS(f->column), .out = WEFT_DIMS(f->fresh)};
    return &o;
}
static const weft_convolution_options *good_weft_convolution_options_ptr(fixture *f)
{
    static weft_convolution_options o;
    o = (weft_convolution_options){
        .name = "filter", .spatial = good_weft_spatials(f), .features = {"made", 3}};
    return &o;
}
static const weft_norm_options *good_weft_norm_options_ptr(fixture *f)
{
    static weft_norm_options o;
    o = (weft_norm_options){.name = "layer_norm", .feature = f->column};
    return &o;
}
static const weft_embedding_options *good_weft_embedding_options_ptr(fixture *f)
{
    static weft_embedding_options o;
    o = (weft_embedding_options){.name = "table", .entry = f->entry, .embed = {"made", 3}};
    return &o;
}
static const weft_multi_head_options *good_weft_multi_head_options_ptr(fixture *f)
{
    static weft_multi_head_options o;
    o = (weft_multi_head_options){
        .name = "heads",
        .embed = f->column,
        .heads = {"head", 2},
        .attention = {.query = f->row, .memory = f->row, .feature = {"key", 3}}};
    return &o;
}
static const weft_transformer_options *good_weft_transformer_options_ptr(fixture *f)
{
    static weft_transformer_options o;
    o = (weft_transformer_options){
        .name = "block",
        .embed = f->column,
        .heads = {"head", 2},
        .hidden = {"wide", 3},
        .self = {.query = f->row, .memory = f->row, .feature = {"key", 3}}};
    return &o;
}
static const weft_experts_options *good_weft_experts_options_ptr(fixture *f)
{
    static weft_experts_options o;
    o = (weft_experts_options){.name = "mixture",
                               .token = f->row,
                               .feature = f->column,
                               .experts = {"experts", 2},
                               .hidden = {"state", 3}};
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
ANY(weft_precision, weft_precision)
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
ANY(const weft_live_rank *, weft_live_rank_ptr)
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

#endif
