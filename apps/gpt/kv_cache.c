/* kv_cache: the variables of gpt's caches, and what they become. The attention to them is weft_kv_attend. */
#include "builder.h"

#include <stdio.h>

/* Of the block under construction; where a scan goes through the layers, of all. */
static weft_value declare(const builder *b, const char *which)
{
    const gpt_model *m = b->m;
    const weft_shape rows = WEFT_DIMS(m->seq, m->batch, m->heads, m->kv);
    char name[64];
    snprintf(name, sizeof name, GPT_CACHE "block%d.%s", b->layer, which);
    return weft_variable(b->graph, name, weft_dtype_computes(dtype_of(b->shape)),
                         b->shape->scans ? led_by(m->layer, &rows) : rows, weft_constant_of(0.0));
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
    b->cache.kept.key = declare(b, "key");
    b->cache.kept.value = declare(b, "value");
    return b->cache.kept;
}

void gpt_cache_close(builder *b, const weft_kv_rows *all)
{
    if (!b->keeps) return;
    keep(b, all->key, b->cache.next.key);
    keep(b, all->value, b->cache.next.value);
}
