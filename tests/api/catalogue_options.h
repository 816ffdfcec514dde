/* catalogue_options.h: wrong and good structs of options. */
#ifndef TEST_CATALOGUE_OPTIONS_H
#define TEST_CATALOGUE_OPTIONS_H

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

#endif
