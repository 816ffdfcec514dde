/* policies.h: placement policies that are sensible, greedy and silly, chosen by a seed. Define KEPT before: the dim that
 * one of them keeps split.
 */
#ifndef WEFT_TEST_POLICIES_H
#define WEFT_TEST_POLICIES_H

#include <stdio.h>
#include <string.h>

#include "weft/research/policy.h"

static inline uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9E3779B97F4A7C15u + b;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static int64_t n_asked, n_other; /* decisions; those that are not the default's */

/* ---- the policies ---------------------------------------------------------------------------- */

/* Keep one dim split, whatever it costs: the first of all graphs. */
static inline int keep_one(void *context, const weft_decision *decision)
{
    (void)context;
    for (int w = 0; w < decision->n_ways; w++)
        if (decision->ways[w].dim && strcmp(decision->ways[w].dim, KEPT) == 0) return w;
    return WEFT_DEFAULT_WAY;
}

/* The fewest bytes, however much work is done twice. */
static inline int by_bytes(void *context, const weft_decision *decision)
{
    int best = 0;
    (void)context;
    for (int w = 1; w < decision->n_ways; w++) {
        const weft_price *a = &decision->ways[w].price, *b = &decision->ways[best].price;
        if (a->operands + a->results < b->operands + b->results) best = w;
    }
    return best;
}

/* Never anything on more than one rank but all of it. */
static inline int whole(void *context, const weft_decision *decision)
{
    (void)context;
    for (int w = 0; w < decision->n_ways; w++)
        if (decision->ways[w].kind == WEFT_WAY_WHOLE) return w;
    return WEFT_DEFAULT_WAY;
}

static inline int most_expensive(void *context, const weft_decision *decision)
{
    int worst = 0;
    (void)context;
    for (int w = 1; w < decision->n_ways; w++)
        if (decision->ways[w].price.total > decision->ways[worst].price.total) worst = w;
    return worst;
}

/* Any way, by a hash of the seed, the op and the axis: also ways that nothing asks for. */
static inline int any_way(void *context, const weft_decision *decision)
{
    const uint64_t hash = mixed(*(uint64_t *)context, decision->node);
    return (int)(mixed(hash, (uint64_t)decision->axis) % (uint64_t)decision->n_ways);
}

/* Every third value anywhere: an axis on any dim, on a dim that another axis has, on none. */
static inline const char *anywhere(void *context, const weft_wanting *value)
{
    static char text[200]; /* copied by who asks */
    uint64_t hash = *(uint64_t *)context;
    size_t at = 0;
    for (const char *c = value->op; *c; c++)
        hash = mixed(hash, (uint64_t)*c);
    hash = mixed(hash, (uint64_t)value->shape->n_dims + 8 * (uint64_t)value->phase);
    if (hash % 3) return NULL;
    text[0] = '\0';
    for (int a = 0; a < weft_mesh_n_axes(value->mesh) && value->shape->n_dims > 0; a++) {
        const char *dim = value->shape->dims[mixed(hash, (uint64_t)a) % value->shape->n_dims].name;
        if (dim[strcspn(dim, "~'")] != '\0' || mixed(hash, (uint64_t)a + 9) % 4 == 0) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%s", at ? "," : "", dim,
                               weft_mesh_axis_name(value->mesh, a));
    }
    return text;
}

static const struct {
    const char *name;
    int (*pick)(void *context, const weft_decision *decision);
    const char *(*wants)(void *context, const weft_wanting *value);
} kinds[] = {
    {"keep one dim", keep_one, NULL},
    {"by bytes", by_bytes, NULL},
    {"whole", whole, NULL},
    {"most expensive", most_expensive, NULL},
    {"any way", any_way, NULL},
    {"anywhere", NULL, anywhere},
    {"any way, anywhere", any_way, anywhere},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static inline int ask(void *context, const weft_decision *decision)
{
    const int k = (int)(*(uint64_t *)context % N_KINDS);
    const int picked = kinds[k].pick(context, decision);
    n_asked++;
    n_other += picked != WEFT_DEFAULT_WAY && picked != decision->cheapest;
    return picked;
}

static inline weft_policy policy_of(uint64_t *seed)
{
    const int k = (int)(*seed % N_KINDS);
    return (weft_policy){.name = kinds[k].name,
                         .pick = kinds[k].pick ? ask : NULL,
                         .wants = kinds[k].wants,
                         .context = seed};
}

#endif
