/* attention: softmax(scale q.k + bias) v over the memory rows that causal, window and mask let a query row see, one
 * op, never a whole query x memory matrix. Its second result has the maximum of each row's scores and the sum of
 * exp(score - maximum) (for a row that sees nothing: -inf and 0). Two numbers, not their logsumexp: where all scores
 * of a row share an offset, a bias of -1e9 say, that would round the sum away.
 *
 * Factors: the dims shared by name pass; rows of q can be cut while k and v are whole along theirs, and so can dims of heads that
 * q alone has; memory and feature are whole. Where many memory rows are split and few query rows look at them, it becomes
 * simpler ops, which can be cut along the memory. Query and memory may be one name, so the factors are made by hand,
 * and bias and mask call the memory rows by a name of their own, `column`.
 * Gradient: attention_grad, which has the weights again from these, tile by tile.
 * source  Dao et al. 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the online softmax
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "weft/ops.h"

#define FIELD(member) WEFT_FIELD(weft_attention_attributes, member)
static const weft_field fields[] = {
    FIELD(query),         FIELD(memory),        FIELD(feature),     FIELD(scale),
    FIELD(causal),        FIELD(window),        FIELD(column),      FIELD(bias),
    FIELD(mask),          FIELD(bias_gradient), FIELD(blocks),      FIELD(memory_blocks),
    FIELD(column_blocks), FIELD(n_blocks),      FIELD(turn),        FIELD(query_first),
    FIELD(query_step),    FIELD(memory_first),  FIELD(memory_step), FIELD(memory_end)};
const weft_attributes weft_attributes_attention =
    WEFT_ATTRIBUTES(weft_attention_attributes, fields);

bool weft_attention_has_column(const weft_attention_attributes *attributes)
{
    return strcmp(attributes->column, attributes->query) != 0;
}

weft_shape weft_attention_kept(const weft_shape *q, const weft_attention_attributes *attributes)
{
    const weft_shape rows = weft_shape_without(q, attributes->feature);
    weft_shape kept = {.n_dims = 1, .dims = {{attributes->feature, 2}}};
    for (int d = 0; d < rows.n_dims; d++)
        kept.dims[kept.n_dims++] = rows.dims[d];
    return kept;
}

static weft_status fail_shapes(const weft_site *site, const char *rule, weft_error *error)
{
    char text[3][96];
    for (int i = 0; i < 3; i++)
        weft_shape_print(&site->in[i].shape, text[i], sizeof text[i]);
    return weft_fail(error, WEFT_USAGE, "q is %s, k is %s and v is %s; %s", text[0], text[1],
                     text[2], rule);
}

/* The rows of q and k may be one dim; what a row of them is made of cannot be their number. */
static weft_status check_feature(const weft_attention_attributes *attributes, weft_error *error)
{
    const bool is_query = strcmp(attributes->feature, attributes->query) == 0;
    if (!is_query && strcmp(attributes->feature, attributes->memory) != 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s is passed as feature and as %s; the feature dim, over which rows are "
                     "multiplied, is another one than the dims that number the rows. Name the last "
                     "dim of q and k as feature",
                     attributes->feature, is_query ? "query" : "memory");
}

/* Sizes of what both have are equal: weft_check_dims. */
static bool has_dims_of_k(const weft_attention_attributes *attributes, const weft_shape *q,
                          const weft_shape *k)
{
    bool all = true;
    for (int d = 0; d < k->n_dims; d++)
        if (strcmp(k->dims[d].name, attributes->memory) != 0)
            all = all && weft_shape_find(q, k->dims[d].name) >= 0;
    const bool is_one = strcmp(attributes->query, attributes->memory) == 0;
    return all && (is_one || (weft_shape_find(k, attributes->query) < 0 &&
                              weft_shape_find(q, attributes->memory) < 0));
}

static weft_status check_rows(const weft_site *site, weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape, *v = &site->in[2].shape;
    WEFT_TRY(check_feature(attributes, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->query, -1, error));
    WEFT_TRY(weft_check_dim(site, 1, attributes->memory, -1, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->feature, -1, error));
    if (!weft_shape_same_dims(k, v))
        return fail_shapes(site, "k and v must have the same dims", error);
    if (!has_dims_of_k(attributes, q, k))
        return fail_shapes(site,
                           "q must have all dims of k and v but their rows, and k and v not the "
                           "rows of q; heads that only q has share rows of k and v",
                           error);
    return WEFT_OK;
}

/* column stands for memory in bias and mask, beside query and the shared dims. Query's name: none was given. */
static weft_status check_column(const weft_site *site, weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    char q[160];
    if (!weft_attention_has_column(attributes) ||
        weft_shape_find(&site->in[0].shape, attributes->column) < 0)
        return WEFT_OK;
    weft_shape_print(&site->in[0].shape, q, sizeof q);
    return weft_fail(error, WEFT_USAGE,
                     "%s is passed as column and q is %s; column is what bias and mask call the "
                     "memory rows, beside the dims of q. Rename it there",
                     attributes->column, q);
}

/* bias or mask: any of the dims of the scores. */
static weft_status check_scores(const weft_site *site, int operand, const char *which,
                                weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_shape *shape = &site->in[operand].shape;
    weft_shape scores = weft_shape_without(&site->in[0].shape, attributes->feature);
    const bool has_column = weft_attention_has_column(attributes);
    const weft_dim memory =
        site->in[1].shape.dims[weft_shape_find(&site->in[1].shape, attributes->memory)];
    if (has_column) scores.dims[scores.n_dims++] = (weft_dim){attributes->column, memory.size};
    if (attributes->column_blocks != NULL)
        scores.dims[scores.n_dims++] = (weft_dim){attributes->column_blocks, attributes->n_blocks};
    char found[160], wanted[160];
    weft_shape_print(shape, found, sizeof found);
    weft_shape_print(&scores, wanted, sizeof wanted);
    for (int d = 0; d < shape->n_dims; d++) {
        const int e = weft_shape_find(&scores, shape->dims[d].name);
        if (e >= 0 && !has_column && strcmp(shape->dims[d].name, attributes->query) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "the %s is %s, and %s numbers both the rows of q and those of k; "
                             "weft_rename the one that numbers the rows of k and pass that dim as "
                             "column",
                             which, found, attributes->query);
        if (e < 0 || scores.dims[e].size != shape->dims[d].size)
            return weft_fail(error, WEFT_USAGE,
                             "the %s is %s and the scores are %s%s; it has any of their dims. "
                             "Rename or sum the others",
                             which, found, wanted,
                             has_column ? "" : " by the rows of k, which column can name");
    }
    return WEFT_OK;
}

static weft_status check_numbers(const weft_attention_attributes *attributes, weft_error *error)
{
    if (attributes->window < 0)
        return weft_fail(error, WEFT_USAGE,
                         "the window is %lld rows; it is at least 1, or 0 for none",
                         (long long)attributes->window);
    if (!isfinite(attributes->scale) || attributes->scale == 0)
        return weft_fail(error, WEFT_USAGE,
                         "the scale is %g; it is a finite number, or 0 for 1/sqrt(feature)",
                         attributes->scale);
    return WEFT_OK;
}

weft_site weft_attention_alike(const weft_site *site)
{
    const weft_attention_attributes *attributes = site->attributes;
    weft_site alike = *site;
    for (int i = 1; i < 3 && attributes->blocks != NULL; i++) {
        weft_shape *shape = &alike.in[i].shape;
        const int d = weft_shape_find(shape, attributes->memory_blocks);
        if (d >= 0) shape->dims[d] = (weft_dim){attributes->blocks, attributes->n_blocks};
    }
    return alike;
}

static weft_status check_blocks(const weft_site *site, weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    if (attributes->blocks == NULL) return WEFT_OK;
    WEFT_TRY(weft_check_dim(site, 0, attributes->blocks, attributes->n_blocks, error));
    for (int i = 1; i < 3; i++)
        WEFT_TRY(weft_check_dim(site, i, attributes->memory_blocks, attributes->n_blocks, error));
    const bool is_step = llabs(attributes->query_step) == 1 && llabs(attributes->memory_step) == 1;
    if (is_step && site->in[0].shape.n_dims + (attributes->column_blocks != NULL) < WEFT_MAX_DIMS)
        return WEFT_OK;
    return weft_fail(error, WEFT_INTERNAL,
                     "blocks of rows are one apart, and their scores have at most %d dims",
                     WEFT_MAX_DIMS);
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    WEFT_TRY(check_blocks(site, error));
    weft_site rows = weft_attention_alike(site);
    rows.n_in = 3;
    WEFT_TRY(weft_check_float(&rows, 0, error));
    WEFT_TRY(weft_check_same_dtype(&rows, error));
    WEFT_TRY(weft_check_dims(&rows, error));
    WEFT_TRY(check_rows(&rows, error));
    WEFT_TRY(check_column(site, error));
    WEFT_TRY(check_numbers(attributes, error));
    if (attributes->bias > 0) {
        rows.n_in = attributes->bias + 1;
        WEFT_TRY(weft_check_same_dtype(&rows, error));
        WEFT_TRY(check_scores(site, attributes->bias, "bias", error));
    }
    if (attributes->mask > 0) {
        WEFT_TRY(weft_check_ids(site, attributes->mask, error));
        WEFT_TRY(check_scores(site, attributes->mask, "mask", error));
    }
    site->n_out = 2;
    site->out[0] = site->out[1] = site->in[0];
    site->out[1].shape = weft_attention_kept(&site->in[0].shape, attributes);
    return WEFT_OK;
}

/* Which dim of each operand or result is `name`; false: one has none. Of k and v and their gradients, only shared dims
 * run through. */
static bool run_through(const weft_type *types, int n, const char *name, bool is_query,
                        int8_t *through)
{
    bool everywhere = true;
    for (int i = 0; i < n; i++) {
        const bool is_memory = n > 2 && (i == 1 || i == 2);
        if (!is_query || !is_memory) through[i] = (int8_t)weft_shape_find(&types[i].shape, name);
        everywhere = everywhere && through[i] >= 0;
    }
    return everywhere;
}

/* Bias and mask that have memory rows alone go with k and v. */
static bool goes_with_memory(const weft_site *site, int operand, weft_factor *factor)
{
    const weft_attention_attributes *a = site->attributes;
    const bool is_scores = operand == a->bias || operand == a->mask;
    if (operand == 1 || operand == 2) return true;
    if (operand == 0 || !is_scores || a->column_blocks == NULL || factor->in[operand] >= 0)
        return false;
    factor->in[operand] = (int8_t)weft_shape_find(&site->in[operand].shape, a->column_blocks);
    return factor->in[operand] >= 0;
}

/* With a block of q goes the one that is `turn` before it of k and v. */
static void show_blocks(const weft_site *site, weft_factors *factors)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_window window = {.lead = attributes->n_blocks,
                                .low = -attributes->turn,
                                .high = -attributes->turn,
                                .stride = 1,
                                .over = 1};
    weft_factor *factor = &factors->factors[factors->n_factors - 1];
    for (int i = 0; i < site->n_in; i++)
        if (goes_with_memory(site, i, factor)) weft_factor_show(site, factors, i, &window);
}

void weft_attention_factors(const weft_site *of, weft_factors *factors)
{
    const weft_attention_attributes *attributes = of->attributes;
    const weft_site alike = weft_attention_alike(of), *site = &alike;
    const weft_shape *q = &site->in[0].shape;
    factors->n_factors = 0;
    for (int d = 0; d < q->n_dims; d++) {
        const char *name = q->dims[d].name;
        if (strcmp(name, attributes->feature) == 0) continue;
        const bool is_query = strcmp(name, attributes->query) == 0;
        weft_factor *factor = weft_factor_new(factors, WEFT_SUM);
        run_through(site->in, site->n_in, name, is_query, factor->in);
        if (run_through(site->out, site->n_out, name, is_query, factor->out))
            factor->combine = WEFT_NOT_PARTIAL;
        if (attributes->blocks != NULL && strcmp(name, attributes->blocks) == 0)
            show_blocks(of, factors);
    }
}

static void gradient(weft_vjp *vjp)
{
    weft_attention_attributes attributes;
    memcpy(&attributes, vjp->site->attributes, sizeof attributes);
    const int n_in = vjp->site->n_in;
    attributes.bias_gradient = attributes.bias > 0 && vjp->wanted[attributes.bias];
    weft_value in[WEFT_MAX_IN];
    for (int i = 0; i < n_in; i++)
        in[i] = vjp->in[i];
    in[n_in] = vjp->out[0], in[n_in + 1] = vjp->out[1], in[n_in + 2] = vjp->dout[0];
    weft_value d = weft_emit(vjp->graph, &weft_op_attention_grad, in, n_in + 3, &attributes,
                             sizeof attributes);
    for (int i = 0; i < 3; i++)
        vjp->din[i] = weft_result(d, i);
    if (attributes.bias_gradient) vjp->din[attributes.bias] = weft_result(d, 3);
}

/* Of a window w in m rows, the first and last rows see less: w - w(w - 1)/2m on one side. */
double weft_attention_work(const weft_site *site)
{
    const weft_attention_attributes *attributes = site->attributes;
    if (attributes->blocks != NULL) return weft_attention_blocks_work(site);
    const weft_shape *k = &site->in[1].shape;
    const double rows = (double)k->dims[weft_shape_find(k, attributes->memory)].size;
    const double window = attributes->window == 0 ? rows : fmin(rows, (double)attributes->window);
    const double one_side = window - 0.5 * window * window / rows;
    return (attributes->causal ? 1.0 : 2.0) * one_side * weft_count_of(&site->in[0].shape);
}

/* Two products of query x memory x feature. */
static double flops(const weft_site *site)
{
    return 4.0 * weft_attention_work(site);
}

const weft_op weft_op_attention = {
    .name = "attention",
    .attributes = &weft_attributes_attention,
    .infer = infer,
    .factors = weft_attention_factors,
    .gradient = gradient,
    .expand = weft_attention_expand,
    .variants = weft_attention_variants,
    .flops = flops,
};

/* Sizes are asked for as well as names: a wrong one would scale by the wrong root. `of`: the operand that has it. */
static bool take_dim(weft_value q, const char *which, weft_dim dim, weft_value of,
                     const char **name)
{
    weft_dim_attributes taken;
    if (!weft_graph_dim(q.graph, "attention", dim, &taken)) return false;
    const weft_dim found = weft_dim_of(of, taken.dim);
    if (found.size != 0 && found.size != dim.size)
        weft_graph_fail(q.graph,
                        "attention: %s is passed as %s:%lld and the operand has %s:%lld; pass the "
                        "size that it has",
                        which, taken.dim, (long long)dim.size, taken.dim, (long long)found.size);
    *name = taken.dim;
    return weft_graph_status(q.graph) == WEFT_OK;
}

static bool take_dims(weft_value q, weft_value k, const weft_attention_options *options,
                      weft_attention_attributes *attributes)
{
    const weft_dim column = options->column.name == NULL ? options->memory : options->column;
    if (!take_dim(q, "query", options->query, q, &attributes->query) ||
        !take_dim(q, "memory", options->memory, k, &attributes->memory) ||
        !take_dim(q, "feature", options->feature, q, &attributes->feature) ||
        !take_dim(q, "column", column, weft_no_value(q.graph), &attributes->column))
        return false;
    if (column.size == options->memory.size) return true;
    weft_graph_fail(q.graph,
                    "attention: column is passed as %s:%lld and memory as %s:%lld; column is "
                    "another name of memory, of its size",
                    column.name, (long long)column.size, attributes->memory,
                    (long long)options->memory.size);
    return false;
}

/* Not passed; a value that a failed builder returned has a graph. */
static bool is_absent(weft_value value)
{
    return value.graph == NULL && value.id == 0;
}

/* Of 16 bits: in f32, and rounded once. */
static weft_value attend_wide(weft_value q, weft_value k, weft_value v,
                              const weft_attention_options *options)
{
    weft_attention_options wide = *options;
    if (!is_absent(wide.bias)) wide.bias = weft_wide(wide.bias);
    return weft_cast(weft_attention_with(weft_wide(q), weft_wide(k), weft_wide(v), &wide),
                     weft_dtype_of(q));
}

weft_value weft_attention_with(weft_value q, weft_value k, weft_value v,
                               const weft_attention_options *options)
{
    if (options == NULL)
        return weft_graph_fail(q.graph, "attention: options is NULL; pass at least query, memory "
                                        "and feature");
    const weft_dtype dtype = weft_dtype_of(q);
    if (weft_dtype_computes(dtype) != dtype) return attend_wide(q, k, v, options);
    weft_attention_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!take_dims(q, k, options, &attributes)) return weft_no_value(q.graph);
    attributes.scale =
        options->scale == 0 ? 1.0 / sqrt((double)options->feature.size) : options->scale;
    attributes.causal = options->causal;
    attributes.window = options->window;
    weft_value in[5] = {q, k, v};
    int n_in = 3;
    if (!is_absent(options->bias)) in[attributes.bias = n_in++] = options->bias;
    if (!is_absent(options->mask)) in[attributes.mask = n_in++] = options->mask;
    return weft_emit(q.graph, &weft_op_attention, in, n_in, &attributes, sizeof attributes);
}

weft_value weft_attention(weft_value q, weft_value k, weft_value v, weft_dim query, weft_dim memory,
                          weft_dim feature, bool causal)
{
    const weft_attention_options options = {
        .query = query, .memory = memory, .feature = feature, .causal = causal};
    return weft_attention_with(q, k, v, &options);
}
