/* kv_cache: the variables of gpt's caches, and what they become. The attention to them is weft_kv_attend. */
#include "builder.h"

#include <stdio.h>

/* Where a scan goes through the layers, of all. */
static weft_shape of_layers(const builder *b, const weft_shape *rows)
{
    return b->shape->scans ? led_by(b->m->layer, rows) : *rows;
}

/* Of the block under construction. So many windows: batch. */
static weft_value declare(const builder *b, const char *cached, const char *which, weft_dim batch)
{
    const gpt_model *m = b->m;
    const weft_shape rows = WEFT_DIMS(m->seq, batch, m->heads, m->kv);
    char name[64];
    snprintf(name, sizeof name, "%sblock%d.%s", cached, b->layer, which);
    return weft_variable(b->graph, name, weft_dtype_computes(dtype_of(b->shape)),
                         of_layers(b, &rows), weft_constant_of(0.0));
}

static void keep(builder *b, weft_value cache, weft_value made)
{
    const weft_value token = weft_assign(cache, made), kept = b->m->kept;
    b->m->kept = kept.id == 0 ? token : weft_group(b->graph, WEFT_VALUES(kept, token));
}

weft_kv_rows gpt_cache_open(builder *b)
{
    if (!b->keeps) return (weft_kv_rows){0};
    b->cache.place = b->m->place;
    b->cache.kept.key = declare(b, b->cached, "key", b->m->batch);
    b->cache.kept.value = declare(b, b->cached, "value", b->m->batch);
    return b->cache.kept;
}

void gpt_cache_close(builder *b, const weft_kv_rows *all)
{
    if (!b->keeps) return;
    keep(b, all->key, b->cache.next.key);
    keep(b, all->value, b->cache.next.value);
}

/* ---- from a window of its own to one of several ----------------------------------------------------- */

static const char *const parts[] = {"key", "value"};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* What one part of a layer's cache becomes. slots: all windows; chunk: the one beside them. The slot at hand is the model's place. */
typedef struct caches {
    weft_dim batch;
    weft_value slots, chunk, place;
    weft_shape rows; /* of one window */
} caches;

/* Added where zeros are, as rows of a step: nothing else is touched. */
static weft_value add_rows(const caches *c, weft_value rows)
{
    return weft_add(c->slots, weft_unpick(*weft_shape_of(c->slots), rows, c->place, c->batch));
}

static void join(builder *b, const caches *c)
{
    keep(b, c->slots, add_rows(c, weft_sum(c->rows, c->chunk)));
}

static void clear(builder *b, const caches *c)
{
    const weft_dtype dtype = weft_dtype_of(c->chunk);
    keep(b, c->chunk, weft_constant(b->graph, dtype, *weft_shape_of(c->chunk), 0.0));
}

/* A number and what takes it away: the sum is zero, if the number is finite. A dim of the id's own has rows picked as a whole. */
static void empty(builder *b, const caches *c)
{
    const weft_value slot = weft_broadcast_to(c->place, WEFT_DIMS(((weft_dim){"slot", 1})));
    const weft_value rows = weft_sum(c->rows, weft_pick(c->slots, slot, c->batch));
    keep(b, c->slots, add_rows(c, weft_neg(rows)));
}

static void wipe(builder *b, const caches *c)
{
    const weft_value zero = weft_constant(b->graph, weft_dtype_of(c->slots), WEFT_SCALAR, 0.0),
                     is_slot = weft_equal(weft_iota(b->graph, WEFT_I32, c->batch), c->place);
    keep(b, c->slots, weft_where(is_slot, zero, c->slots));
}

static void (*const moves[GPT_MOVES])(builder *b, const caches *c) = {
    [GPT_JOIN] = join, [GPT_CLEAR] = clear, [GPT_EMPTY] = empty, [GPT_WIPE] = wipe};

void gpt_cache_move(builder *b, gpt_move move)
{
    const gpt_model *m = b->m;
    const weft_shape rows = WEFT_DIMS(m->seq, m->heads, m->kv);
    caches c = {.batch = m->batch, .place = m->place, .rows = of_layers(b, &rows)};
    for (b->layer = 0; b->layer < gpt_layers_of(b->shape); b->layer++)
        for (int i = 0; i < N_PARTS; i++) {
            c.slots = declare(b, GPT_SLOTS, parts[i], m->batch);
            c.chunk = declare(b, GPT_CHUNK, parts[i], (weft_dim){"batch", 1});
            moves[move](b, &c);
        }
    b->layer = -1;
}

int gpt_cache_list(builder *b, weft_value *variables)
{
    const weft_dim one = {"batch", 1};
    int n = 0;
    for (b->layer = 0; b->layer < gpt_layers_of(b->shape); b->layer++)
        for (int i = 0; i < N_PARTS; i++)
            variables[n++] = declare(b, GPT_CHUNK, parts[i], one);
    b->layer = -1;
    return n;
}
