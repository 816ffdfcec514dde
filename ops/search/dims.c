/* dims: what the ops of a graph say of its dims: which occur together, which one factor runs through, what can be cut along each. */
#include "searching.h"

#include "ir.h"

#include <string.h>

int weft_search_dim_find(const weft_search_dims *dims, const char *name, size_t letters)
{
    for (int d = 0; d < dims->n; d++)
        if (strlen(dims->names[d]) == letters && memcmp(dims->names[d], name, letters) == 0)
            return d;
    return -1;
}

/* A name that no layout can write: of a state (weft_state_dim). */
static bool is_plain(const char *name)
{
    return weft_name_length(name) == (int)strlen(name);
}

/* All dims of all values are asked for, so most are found, and by their first letters. */
uint64_t weft_search_dim_bit(weft_search_dims *dims, const char *name)
{
    for (int d = 0; d < dims->n; d++)
        if (dims->names[d][0] == name[0] && strcmp(dims->names[d], name) == 0)
            return UINT64_C(1) << d;
    if (dims->n == WEFT_SEARCH_DIMS || !is_plain(name)) return 0;
    snprintf(dims->names[dims->n], sizeof dims->names[0], "%s", name);
    dims->linked[dims->n] = UINT64_C(1) << dims->n;
    return UINT64_C(1) << dims->n++;
}

uint64_t weft_search_dims_of(weft_search_dims *dims, const weft_shape *shape)
{
    uint64_t bits = 0;
    for (int d = 0; d < shape->n_dims; d++) {
        const uint64_t bit = weft_search_dim_bit(dims, shape->dims[d].name);
        if (bit == 0) continue;
        int64_t *size = &dims->size[__builtin_ctzll(bit)];
        if (shape->dims[d].size > *size) *size = shape->dims[d].size;
        bits |= bit;
    }
    return bits;
}

static uint64_t bits_of_factor(weft_search_dims *dims, const weft_site *site,
                               const weft_factor *factor)
{
    uint64_t bits = 0;
    for (int i = 0; i < site->n_in; i++)
        if (factor->in[i] >= 0)
            bits |= weft_search_dim_bit(dims, site->in[i].shape.dims[factor->in[i]].name);
    for (int o = 0; o < site->n_out; o++)
        if (factor->out[o] >= 0)
            bits |= weft_search_dim_bit(dims, site->out[o].shape.dims[factor->out[o]].name);
    return bits;
}

static void link_all(weft_search_dims *dims, uint64_t bits)
{
    for (int d = 0; d < dims->n; d++)
        if (bits >> d & 1) dims->linked[d] |= bits;
}

void weft_search_amounts_add(weft_search_amounts *amounts, uint64_t dims, double amount)
{
    int at = 0;
    while (at < amounts->n && amounts->dims[at] != dims)
        at++;
    if (at == WEFT_SEARCH_AMOUNTS) at--;
    if (at == amounts->n) amounts->dims[amounts->n++] = dims;
    amounts->amount[at] += amount;
}

double weft_search_amounts_share(const weft_search_amounts *amounts, uint64_t some, uint64_t others)
{
    double share = 0, all = 0;
    for (int i = 0; i < amounts->n; i++) {
        all += amounts->amount[i];
        if (amounts->dims[i] & some && !(amounts->dims[i] & others)) share += amounts->amount[i];
    }
    return all > 0 ? share / all : 0;
}

static void look_at_work(weft_search_dims *dims, const weft_graph *graph, const weft_node *node)
{
    weft_site site;
    weft_factors factors = {0};
    uint64_t cut = 0;
    weft_site_of(graph, node, &site);
    if (!node->op->factors) return;
    node->op->factors(&site, &factors);
    for (int f = 0; f < factors.n_factors; f++) {
        const uint64_t bits = bits_of_factor(dims, &site, &factors.factors[f]);
        link_all(dims, bits);
        cut |= bits;
    }
    if (node->phase != WEFT_FORWARD || !node->op->flops) return;
    weft_search_amounts_add(&dims->flops, cut, node->op->flops(&site));
}

static void look_at_values(weft_search_dims *dims, const weft_graph *graph, const weft_node *node)
{
    for (int o = 0; o < node->n_out; o++) {
        const weft_type *type = &graph->tensors[node->out + (uint32_t)o].type;
        const uint64_t bits = weft_search_dims_of(dims, &type->shape);
        for (int d = 0; d < dims->n; d++)
            if (bits >> d & 1) dims->beside[d] |= bits & ~(UINT64_C(1) << d);
        if (node->phase != WEFT_FORWARD || node->n_in == 0) continue;
        const double bytes = weft_count_of(&type->shape) * (double)weft_dtype_bytes(type->dtype);
        weft_search_amounts_add(&dims->bytes, bits, bytes);
    }
}

void weft_search_dims_look(weft_search_dims *dims, const weft_graph *graph)
{
    for (uint32_t n = 1; n < graph->n_nodes; n++) {
        look_at_values(dims, graph, &graph->nodes[n]);
        if (graph->nodes[n].n_in > 0 && !graph->nodes[n].op->makes_token)
            look_at_work(dims, graph, &graph->nodes[n]);
    }
}

uint64_t weft_search_dims_reach(const weft_search_dims *dims, uint64_t from)
{
    uint64_t reach = from, before = 0;
    while (reach != before) {
        before = reach;
        for (int d = 0; d < dims->n; d++)
            if (before >> d & 1) reach |= dims->linked[d];
    }
    return reach;
}
