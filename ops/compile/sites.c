/* sites: ops that are alike are decided once. See sites.h. */
#include "sites.h"

#include <stddef.h>
#include <string.h>

#include "type_hash.h"

enum {
    BUCKETS = 1 << 10,
    /* Of an operand its states, where it goes when finished, and what else it is; of a result that and its shares; the site */
    MOST_WORDS = 3 * WEFT_MAX_IN + (1 + WEFT_MAX_AXES) * WEFT_MAX_OUT + 1
};

typedef struct known_site {
    struct known_site *next;
    uint64_t hash;
    uint32_t node; /* the first */
    weft_alike alike;
} known_site;

typedef struct known_choice {
    struct known_choice *next;
    uint64_t hash;
    size_t n_words;
    const uint64_t *key; /* [n_words] */
    weft_choice choice;
    weft_decided decided;
} known_choice;

struct weft_sites {
    weft_plan *plan;
    weft_arena *arena;
    const weft_alike **of_node; /* [n_nodes] NULL: nobody has asked */
    known_site *sites[BUCKETS];
    known_choice *choices[BUCKETS];
};

/* ---- sites --------------------------------------------------------------------------------------- */

static uint64_t hash_node(const weft_graph *graph, const weft_node *node)
{
    uint64_t hash = weft_mix((uintptr_t)node->op, (uint64_t)node->n_in << 8 | node->n_out);
    hash = weft_mix_bytes(hash, node->attributes, node->attribute_bytes);
    for (int i = 0; i < node->n_in; i++)
        hash = weft_mix_type(hash, &graph->tensors[node->in[i]].type);
    for (uint32_t o = 0; o < node->n_out; o++)
        hash = weft_mix_type(hash, &graph->tensors[node->out + o].type);
    return hash;
}

static bool same_site(const weft_graph *graph, const weft_node *a, const weft_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->attribute_bytes != b->attribute_bytes ||
        (a->attribute_bytes > 0 && memcmp(a->attributes, b->attributes, a->attribute_bytes) != 0))
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (!weft_same_type(&graph->tensors[a->in[i]].type, &graph->tensors[b->in[i]].type))
            return false;
    for (uint32_t o = 0; o < a->n_out; o++)
        if (!weft_same_type(&graph->tensors[a->out + o].type, &graph->tensors[b->out + o].type))
            return false;
    return true;
}

static known_site *add_site(weft_sites *s, uint32_t id, uint64_t hash)
{
    const weft_node *node = &s->plan->graph->nodes[id];
    weft_site *site = weft_arena_take(s->arena, sizeof *site);
    known_site *known = weft_arena_take(s->arena, sizeof *known);
    weft_factors factors;
    if (!site || !known) return NULL;
    weft_site_of(s->plan->graph, node, site);
    node->op->factors(site, &factors);
    /* windows are the last, and most are never written */
    const size_t n = (size_t)factors.n_factors;
    const size_t bytes = offsetof(weft_factors, window) + n * sizeof factors.window[0];
    *known = (known_site){s->sites[hash % BUCKETS], hash, id, {site, NULL}};
    known->alike.factors = weft_arena_copy(s->arena, &factors, bytes);
    if (!known->alike.factors) return NULL;
    s->sites[hash % BUCKETS] = known;
    return known;
}

const weft_alike *weft_alike_of(weft_sites *s, uint32_t id)
{
    const weft_graph *graph = s->plan->graph;
    if (s->of_node[id]) return s->of_node[id];
    const uint64_t hash = hash_node(graph, &graph->nodes[id]);
    known_site *known = s->sites[hash % BUCKETS];
    while (known && (known->hash != hash ||
                     !same_site(graph, &graph->nodes[known->node], &graph->nodes[id])))
        known = known->next;
    if (!known) known = add_site(s, id, hash);
    if (!known) return NULL;
    return s->of_node[id] = &known->alike;
}

/* ---- choices ------------------------------------------------------------------------------------- */

static uint64_t word_of(const weft_axis_states states)
{
    uint64_t word;
    memcpy(&word, states, sizeof word);
    return word;
}

/* All that weft_choose looks at beside the site. */
static size_t write_key(const weft_choice_in *in, const weft_alike *alike, uint64_t *key)
{
    const int n_axes = weft_mesh_n_axes(in->plan->mesh);
    uint64_t *at = key;
    *at++ = (uintptr_t)alike;
    for (int i = 0; i < in->site->n_in; i++) {
        const weft_holding *h = &in->in[i];
        *at++ = word_of(h->now);
        *at++ = word_of(h->finished);
        *at++ = (uint64_t)(uint32_t)h->readers << 32 | (uint64_t)h->combine << 16 |
                (uint64_t)h->is_free << 8 | h->is_generated;
    }
    for (int o = 0; o < in->site->n_out; o++) {
        *at++ = word_of(in->out[o].finished);
        memcpy(at, in->out[o].share, (size_t)n_axes * sizeof *at);
        at += n_axes;
    }
    return (size_t)(at - key);
}

static uint64_t hash_words(const uint64_t *key, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++)
        hash = weft_mix(hash, key[i]);
    return hash;
}

static bool same_words(const uint64_t *a, const uint64_t *b, size_t n)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i == n;
}

static known_choice *find_choice(const weft_sites *s, const uint64_t *key, size_t n, uint64_t hash)
{
    known_choice *known = s->choices[hash % BUCKETS];
    while (known && (known->hash != hash || known->n_words != n || !same_words(known->key, key, n)))
        known = known->next;
    return known;
}

weft_status weft_decide(weft_sites *s, weft_choice_in *in, weft_decided **decided,
                        weft_error *error)
{
    uint64_t key[MOST_WORDS];
    const weft_alike *alike = weft_alike_of(s, in->node);
    if (!alike) return weft_fail_memory(error, sizeof(weft_site));
    in->site = alike->site;
    in->factors = alike->factors;
    const size_t n = write_key(in, alike, key);
    const uint64_t hash = hash_words(key, n);
    const bool is_shown = weft_is_shown(in);
    known_choice *known = is_shown ? NULL : find_choice(s, key, n, hash);
    if (!known) {
        known = weft_arena_take(s->arena, sizeof *known);
        if (!known) return weft_fail_memory(error, sizeof *known);
        WEFT_TRY(weft_choose(in, &known->choice, error));
        known->decided.choice = &known->choice;
        known->hash = hash;
        known->n_words = n;
        known->key = weft_arena_copy(s->arena, key, n * sizeof *key);
        if (!known->key) return weft_fail_memory(error, n * sizeof *key);
        known->next = s->choices[hash % BUCKETS];
        if (!is_shown) s->choices[hash % BUCKETS] = known;
    }
    *decided = &known->decided;
    return WEFT_OK;
}

/* ---- all ----------------------------------------------------------------------------------------- */

weft_status weft_sites_create(weft_plan *plan, weft_sites **sites, weft_error *error)
{
    weft_arena *arena = weft_arena_create();
    weft_sites *s = *sites = arena ? weft_arena_take(arena, sizeof *s) : NULL;
    const size_t bytes = plan->graph->n_nodes * sizeof *s->of_node;
    if (s) {
        *s = (weft_sites){.plan = plan, .arena = arena};
        s->of_node = weft_arena_take(arena, bytes);
    }
    if (s && s->of_node) return WEFT_OK;
    weft_arena_destroy(&arena);
    *sites = NULL;
    return weft_fail_memory(error, bytes);
}

void weft_sites_destroy(weft_sites **sites)
{
    weft_arena *arena = *sites ? (*sites)->arena : NULL; /* it lies there itself */
    weft_arena_destroy(&arena);
    *sites = NULL;
}

weft_arena *weft_sites_arena(weft_sites *sites)
{
    return sites->arena;
}
