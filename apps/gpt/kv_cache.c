/* kv_cache: the keys and values of a text, in variables that live from run to run. The first run fills in those of the whole
 * prompt, each later run those of one token.
 *
 * A row is added where zeros are, so that it is all that is touched (scatter_add, which begins with the variable); but where a
 * scan stacks the layers' caches.
 */
#include "builder.h"

#include <stdio.h>

static const char *const cache_names[GPT_N_CACHES] = {"key", "value"};

/* What attention computes in. */
static weft_dtype kept_dtype(const gpt_shape *shape)
{
    return weft_dtype_computes(dtype_of(shape));
}

/* Of the block under construction; where a scan goes through the layers, of all. */
static weft_value declare_cache(const builder *b, int which)
{
    const gpt_model *m = b->m;
    const weft_shape rows = WEFT_DIMS(m->seq, m->batch, m->heads, m->kv);
    char name[64];
    snprintf(name, sizeof name, GPT_CACHE "block%d.%s", b->layer, cache_names[which]);
    return weft_variable(b->graph, name, kept_dtype(b->shape),
                         b->shape->scans ? led_by(m->layer, &rows) : rows, weft_constant_of(0.0));
}

/* i32 [seq]: rows below the place; up to it. */
static weft_value rows_before(const builder *b)
{
    return weft_less(weft_iota(b->graph, WEFT_I32, b->m->seq), b->m->place);
}
static weft_value rows_through(const builder *b)
{
    return weft_less_equal(weft_iota(b->graph, WEFT_I32, b->m->seq), b->m->place);
}

/* Of a window the first rows, zeros behind. */
static weft_value kept_of_window(const builder *b, weft_value x)
{
    x = weft_cast(x, kept_dtype(b->shape));
    return weft_where(rows_before(b), x,
                      weft_constant(b->graph, weft_dtype_of(x), WEFT_SCALAR, 0.0));
}

/* The row of a step's token joins those that are kept: zeros are where it goes. */
static weft_value kept_of_step(const builder *b, weft_value cache, weft_value row)
{
    row = weft_sum(WEFT_DIMS(b->m->batch, b->m->heads, b->m->kv), row); /* of one token */
    return weft_add(cache,
                    weft_scatter_add(weft_cast(row, kept_dtype(b->shape)), b->m->place, b->m->seq));
}

static void keep(builder *b, weft_value cache, weft_value made)
{
    const weft_value token = weft_assign(cache, made), kept = b->m->kept;
    b->m->kept = kept.id == 0 ? token : weft_group(b->graph, WEFT_VALUES(kept, token));
}

void gpt_caches_open(builder *b, weft_value *all)
{
    for (int i = 0; i < GPT_N_CACHES && b->keeps; i++)
        b->cached[i] = all[i] = declare_cache(b, i);
}

void gpt_caches_close(builder *b, const weft_value *all)
{
    for (int i = 0; i < GPT_N_CACHES && b->keeps; i++)
        keep(b, all[i], b->made[i]);
}

/* A step's query row sees the rows that are kept, its own the last of them. */
static weft_value attend_kept(const builder *b, weft_value q)
{
    const weft_attention_options options = {
        .query = b->m->token, .memory = b->m->seq, .feature = b->m->kv, .mask = rows_through(b)};
    return weft_cast(
        weft_attention_with(weft_cast(q, kept_dtype(b->shape)), b->made[0], b->made[1], &options),
        dtype_of(b->shape));
}

weft_value gpt_attend(builder *b, weft_value q, weft_value k, weft_value v)
{
    const weft_value rows[GPT_N_CACHES] = {k, v};
    for (int i = 0; i < GPT_N_CACHES && b->keeps; i++)
        b->made[i] =
            b->is_step ? kept_of_step(b, b->cached[i], rows[i]) : kept_of_window(b, rows[i]);
    return b->is_step ? attend_kept(b, q)
                      : weft_attention(q, k, v, b->m->seq, b->m->seq, b->m->kv, true);
}
