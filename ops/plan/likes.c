/* likes: tensors that lie alike, and steps that do the same to such tensors. See likes.h. */
#include "likes.h"

#include <stdlib.h>
#include <string.h>

#include "type_hash.h"

/* ---- the first of each kind ---------------------------------------------------------------------- */

/* Open addressing: kind + 1; 0 is free. Kinds are numbered as they come. */
typedef struct kinds {
    uint32_t *slots, mask;
    uint64_t *hashes; /* [n] */
    uint32_t *first;  /* [n] */
    uint32_t n;
} kinds;

static weft_status open_kinds(kinds *k, uint32_t most, weft_arena *arena, weft_error *error)
{
    uint32_t n_slots = 16;
    while (n_slots < 2 * most)
        n_slots *= 2;
    *k = (kinds){.mask = n_slots - 1};
    k->slots = weft_arena_take(arena, n_slots * sizeof *k->slots);
    k->hashes = weft_arena_take(arena, (most + 1) * sizeof *k->hashes);
    k->first = weft_arena_take(arena, (most + 1) * sizeof *k->first);
    return k->slots && k->hashes && k->first ? WEFT_OK
                                             : weft_fail_memory(error, n_slots * sizeof *k->slots);
}

typedef bool (*is_same)(const weft_plan *plan, uint32_t a, uint32_t b);

static uint32_t kind_of(kinds *k, const weft_plan *plan, uint32_t id, uint64_t hash, is_same same)
{
    uint32_t at = (uint32_t)hash & k->mask;
    for (; k->slots[at] != 0; at = (at + 1) & k->mask) {
        const uint32_t kind = k->slots[at] - 1;
        if (k->hashes[kind] == hash && same(plan, k->first[kind], id)) return kind;
    }
    k->hashes[k->n] = hash;
    k->first[k->n] = id;
    k->slots[at] = ++k->n;
    return k->n - 1;
}

static uint32_t *keep(const kinds *k, weft_arena *arena)
{
    return weft_arena_copy(arena, k->first, k->n * sizeof *k->first);
}

/* ---- tensors ------------------------------------------------------------------------------------- */

/* The node by which it is a view, by itself or by what it is another word for; 0: none. */
static uint32_t through_of(const weft_plan *plan, const weft_placed *p)
{
    while (p->shares != 0 && p->through == 0)
        p = &plan->placed[p->shares];
    return p->through;
}

static uint64_t hash_placed(const weft_plan *plan, const weft_placed *p)
{
    const uint32_t through = through_of(plan, p);
    uint64_t hash = weft_mix_type(p->spec.partial, &p->type);
    if (through != 0) hash = weft_mix(hash, through);
    for (int d = 0; d < p->type.shape.n_dims; d++)
        for (int i = 0; i < p->spec.n_split[d]; i++)
            hash = weft_mix(hash, (uint64_t)d << 8 | (uint64_t)p->spec.split[d][i]);
    return hash;
}

static bool same_placed(const weft_plan *plan, uint32_t a, uint32_t b)
{
    const weft_placed *p = &plan->placed[a], *q = &plan->placed[b];
    return through_of(plan, p) == through_of(plan, q) && weft_same_type(&p->type, &q->type) &&
           weft_spec_equal(&p->spec, &q->spec, p->type.shape.n_dims);
}

/* ---- steps --------------------------------------------------------------------------------------- */

static uint64_t hash_list(uint64_t hash, const weft_likes *likes, const uint32_t *list, int n)
{
    hash = weft_mix(hash, (uint64_t)n);
    for (int i = 0; i < n; i++)
        hash = weft_mix(hash, likes->of_placed[list[i]]);
    return hash;
}

static bool same_list(const weft_likes *likes, const uint32_t *a, const uint32_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (likes->of_placed[a[i]] != likes->of_placed[b[i]]) return false;
    return true;
}

static uint64_t hash_node(uint64_t hash, const weft_graph *graph, uint32_t id)
{
    const weft_node *node = &graph->nodes[id];
    hash = weft_mix(hash, (uintptr_t)node->op ^ (uint64_t)node->n_in);
    return weft_mix_bytes(hash, node->attributes, node->attribute_bytes);
}

/* Of an op and its attributes; of a loop's link the types of the results too, since a loop need not have them as tensors. */
static bool same_node(const weft_graph *graph, uint32_t a, uint32_t b, bool is_link)
{
    const weft_node *x = &graph->nodes[a], *y = &graph->nodes[b];
    if (a == b) return true;
    if (x->op != y->op || x->n_in != y->n_in || x->n_out != y->n_out ||
        x->attribute_bytes != y->attribute_bytes ||
        (x->attribute_bytes > 0 && memcmp(x->attributes, y->attributes, x->attribute_bytes) != 0))
        return false;
    for (uint32_t o = 0; is_link && o < x->n_out; o++)
        if (!weft_same_type(&graph->tensors[x->out + o].type, &graph->tensors[y->out + o].type))
            return false;
    return true;
}

static bool same_link(const weft_graph *graph, const weft_fused_op *a, const weft_fused_op *b)
{
    return a->kind == b->kind && a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0 &&
           memcmp(a->out, b->out, (size_t)a->n_out * sizeof *a->out) == 0 &&
           same_node(graph, a->node, b->node, true);
}

/* What is done by a node's op, and not by links or a conversion. */
static bool has_op(const weft_step *step)
{
    return step->kind != WEFT_STEP_LOOP && step->kind != WEFT_STEP_CONVERT;
}

static uint64_t hash_step(const weft_plan *plan, const weft_step *step)
{
    uint64_t hash = weft_mix(step->kind, (uint64_t)step->n_links << 32 | step->convert.axes);
    hash = hash_list(hash, &plan->likes, step->in, step->n_in);
    hash = hash_list(hash, &plan->likes, step->out, step->n_out);
    if (has_op(step)) hash = hash_node(hash, plan->graph, step->node);
    for (int k = 0; k < step->n_links; k++)
        hash = hash_node(hash, plan->graph, step->links[k].node);
    return hash;
}

static bool same_step(const weft_plan *plan, uint32_t a, uint32_t b)
{
    const weft_step *x = &plan->steps[a], *y = &plan->steps[b];
    const weft_likes *likes = &plan->likes;
    if (x->kind != y->kind || x->n_in != y->n_in || x->n_out != y->n_out ||
        x->n_links != y->n_links || x->n_segments != y->n_segments || x->row_dims != y->row_dims ||
        x->convert.kind != y->convert.kind || x->convert.axes != y->convert.axes ||
        !same_list(likes, x->in, y->in, x->n_in) || !same_list(likes, x->out, y->out, x->n_out) ||
        !same_list(likes, x->space, y->space, x->n_segments) ||
        (has_op(x) && !same_node(plan->graph, x->node, y->node, false)))
        return false;
    for (int k = 0; k < x->n_links; k++)
        if (!same_link(plan->graph, &x->links[k], &y->links[k])) return false;
    return true;
}

/* ---- all of them --------------------------------------------------------------------------------- */

static weft_status number_placed(weft_plan *plan, weft_arena *own, weft_error *error)
{
    weft_likes *likes = &plan->likes;
    kinds k;
    WEFT_TRY(open_kinds(&k, plan->n_placed, own, error));
    for (uint32_t id = 1; id < plan->n_placed; id++)
        likes->of_placed[id] =
            kind_of(&k, plan, id, hash_placed(plan, &plan->placed[id]), same_placed);
    likes->n_placed = k.n;
    likes->placed = keep(&k, plan->arena);
    return likes->placed ? WEFT_OK : weft_fail_memory(error, k.n * sizeof *k.first);
}

static weft_status number_steps(weft_plan *plan, weft_arena *own, weft_error *error)
{
    weft_likes *likes = &plan->likes;
    kinds k;
    WEFT_TRY(open_kinds(&k, plan->n_steps, own, error));
    for (uint32_t s = 0; s < plan->n_steps; s++)
        likes->of_step[s] = kind_of(&k, plan, s, hash_step(plan, &plan->steps[s]), same_step);
    likes->n_steps = k.n;
    likes->steps = keep(&k, plan->arena);
    likes->n_of_step = weft_arena_take(plan->arena, k.n * sizeof *likes->n_of_step);
    if (!likes->steps || !likes->n_of_step) return weft_fail_memory(error, k.n * sizeof *k.first);
    for (uint32_t s = 0; s < plan->n_steps; s++)
        likes->n_of_step[likes->of_step[s]]++;
    return WEFT_OK;
}

weft_status weft_find_likes(weft_plan *plan, weft_error *error)
{
    const size_t n_placed = plan->n_placed + 1, n_steps = plan->n_steps + 1;
    weft_likes *likes = &plan->likes;
    weft_arena *own = weft_arena_create();
    likes->of_placed = weft_arena_take(plan->arena, n_placed * sizeof *likes->of_placed);
    likes->of_step = weft_arena_take(plan->arena, n_steps * sizeof *likes->of_step);
    weft_status status = own && likes->of_placed && likes->of_step
                             ? number_placed(plan, own, error)
                             : weft_fail_memory(error, n_placed * sizeof *likes->of_placed);
    if (status == WEFT_OK) status = number_steps(plan, own, error);
    weft_arena_destroy(&own);
    return status;
}

/* ---- one rank's sizes ---------------------------------------------------------------------------- */

weft_status weft_sizes_of(const weft_plan *plan, int rank, weft_arena *arena,
                          weft_known_moves *moves, weft_sizes *sizes, weft_error *error)
{
    const weft_likes *likes = &plan->likes;
    const size_t bytes = (likes->n_placed + likes->n_steps + 1) * sizeof *sizes->bytes;
    sizes->bytes = weft_arena_take(arena, bytes);
    if (!sizes->bytes) return weft_fail_memory(error, bytes);
    sizes->scratch = sizes->bytes + likes->n_placed;
    for (uint32_t k = 0; k < likes->n_placed; k++)
        sizes->bytes[k] = weft_placed_bytes(plan, likes->placed[k], rank);
    for (uint32_t k = 0; k < likes->n_steps; k++)
        WEFT_TRY(weft_keep_scratch(moves, plan, &plan->steps[likes->steps[k]], &sizes->scratch[k],
                                   error));
    return WEFT_OK;
}

bool weft_same_sizes(const weft_plan *plan, const weft_sizes *a, const weft_sizes *b)
{
    const size_t n = plan->likes.n_placed + plan->likes.n_steps;
    return a->bytes && b->bytes && memcmp(a->bytes, b->bytes, n * sizeof *a->bytes) == 0;
}
