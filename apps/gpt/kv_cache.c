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

/* Of window `slot` all rows become those of the chunk's window; another slot: none do. */
static void join(builder *b, const char *which)
{
    const weft_dim batch = b->m->batch, one = {"batch", 1};
    const weft_value slots = declare(b, GPT_SLOTS, which, batch),
                     chunk = declare(b, GPT_CHUNK, which, one);
    const weft_shape own = WEFT_DIMS(b->m->seq, b->m->heads, b->m->kv);
    const weft_value rows = weft_sum(of_layers(b, &own), chunk),
                     is_slot = weft_equal(weft_iota(b->graph, WEFT_I32, batch), b->m->place);
    keep(b, slots, weft_where(is_slot, rows, slots));
}

static void clear(builder *b, const char *which)
{
    const weft_value chunk = declare(b, GPT_CHUNK, which, (weft_dim){"batch", 1});
    keep(b, chunk, weft_constant(b->graph, weft_dtype_of(chunk), *weft_shape_of(chunk), 0.0));
}

static void of_all(builder *b, void (*make)(builder *, const char *))
{
    for (b->layer = 0; b->layer < gpt_layers_of(b->shape); b->layer++)
        for (int i = 0; i < N_PARTS; i++)
            make(b, parts[i]);
    b->layer = -1;
}

void gpt_cache_join(builder *b)
{
    of_all(b, join);
}

void gpt_cache_clear(builder *b)
{
    of_all(b, clear);
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
