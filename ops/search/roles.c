/* roles: what an axis may split, found from the dims of a program.
 *
 * Dims that no tensor has together never compete for an axis: split over one axis, each cuts tensors of its own. So the largest sets
 * of such dims are roles: of a transformer {batch}, {seq}, {embed}, {hidden, heads, vocab}. They are the cliques of the graph of
 * dims that never meet. One role behind another is a role too, where the first leaves values whole that the second splits:
 * {hidden, heads, vocab} and then {seq} is Megatron's sequence parallelism. Roles that cut next to nothing are left out.
 */
#include "searching.h"

#include <stdlib.h>
#include <string.h>

static const double LEAST_SHARE = 0.05; /* of the flops */
static const double LEAST_GAIN = 0.2; /* of the bytes of forward values: what a second role adds */
enum { MOST_CLIQUES = 64, MOST_SETS = 1 << 18, MOST_CLEAN = 8, MOST_ROLES = 14 };

/* ---- sets ----------------------------------------------------------------------------------------- */

typedef struct cliques {
    const weft_search_dims *dims;
    int n, n_looked;
    uint64_t sets[MOST_CLIQUES];
    uint64_t apart[WEFT_SEARCH_DIMS]; /* of each dim those that it never meets */
} cliques;

static uint64_t worthy_dims(const weft_search_dims *dims)
{
    uint64_t worthy = 0;
    for (int d = 0; d < dims->n; d++) {
        const uint64_t bit = UINT64_C(1) << d;
        if (dims->size[d] > 1 && weft_search_amounts_share(&dims->flops, bit, 0) >= LEAST_SHARE / 5)
            worthy |= bit;
    }
    return worthy;
}

/* Bron and Kerbosch, without a pivot: there are a dozen dims. Of many dims, as of layers that each have a name of their own, there
 * are more sets than anybody can look at. */
static void extend(cliques *c, uint64_t set, uint64_t may, uint64_t done)
{
    if (c->n == MOST_CLIQUES || c->n_looked == MOST_SETS) return;
    c->n_looked++;
    if (may == 0 && done == 0 && c->n < MOST_CLIQUES) c->sets[c->n++] = set;
    while (may != 0) {
        const int d = __builtin_ctzll(may);
        const uint64_t bit = UINT64_C(1) << d;
        extend(c, set | bit, may & c->apart[d], done & c->apart[d]);
        may &= ~bit;
        done |= bit;
    }
}

static void find_cliques(cliques *c)
{
    const uint64_t worthy = worthy_dims(c->dims);
    for (int d = 0; d < c->dims->n; d++)
        c->apart[d] = worthy & ~c->dims->beside[d] & ~(UINT64_C(1) << d);
    if (worthy != 0) extend(c, 0, worthy, 0);
}

/* ---- roles ----------------------------------------------------------------------------------------- */

static void add_dims(const weft_search_dims *dims, weft_search_role *role, uint64_t set)
{
    for (int d = 0; d < dims->n && role->n < WEFT_ROLE_DIMS; d++) {
        const uint64_t bit = UINT64_C(1) << d;
        if (!(set & bit) || role->set & bit) continue;
        role->dims[role->n++] = (uint8_t)d;
        role->set |= bit;
        if (dims->size[d] > role->most) role->most = dims->size[d];
    }
}

/* Whether no tensor has two of its dims: then their order does not matter. */
static bool is_clean(const weft_search_dims *dims, const weft_search_role *role)
{
    for (int d = 0; d < role->n; d++)
        if (dims->beside[role->dims[d]] & role->set) return false;
    return true;
}

static bool is_same_role(const weft_search_dims *dims, const weft_search_role *a,
                         const weft_search_role *b)
{
    if (a->set != b->set) return false;
    return memcmp(a->dims, b->dims, (size_t)a->n) == 0 || is_clean(dims, a);
}

static void add_role(weft_search_roles *roles, const weft_search_dims *dims, weft_search_role role)
{
    role.reach = weft_search_dims_reach(dims, role.set);
    role.share = weft_search_amounts_share(&dims->flops, role.set, 0);
    role.is_pair = !is_clean(dims, &role);
    for (int r = 0; r < roles->n; r++)
        if (is_same_role(dims, &roles->list[r], &role)) return;
    if (role.n > 0 && roles->n < WEFT_SEARCH_ROLES) roles->list[roles->n++] = role;
}

static int by_share(const void *a, const void *b)
{
    const weft_search_role *x = a, *y = b;
    if (x->share != y->share) return x->share > y->share ? -1 : 1;
    return memcmp(x->dims, y->dims, sizeof x->dims);
}

/* ---- names and hints --------------------------------------------------------------------------------- */

/* "model=hidden+heads+vocab": a role; without a name the axis is called as its first dim. */
static weft_status read_hint(const weft_search_dims *dims, const char *text, size_t letters,
                             weft_search_role *role, weft_error *error)
{
    const char *equals = memchr(text, '=', letters), *end = text + letters;
    *role = (weft_search_role){0};
    if (equals) snprintf(role->axis, sizeof role->axis, "%.*s", (int)(equals - text), text);
    for (const char *at = equals ? equals + 1 : text; at < end;) {
        const char *plus = memchr(at, '+', (size_t)(end - at));
        const size_t n = (size_t)((plus ? plus : end) - at);
        const int d = weft_search_dim_find(dims, at, n);
        if (d >= 0) add_dims(dims, role, UINT64_C(1) << d);
        at += n + (plus != NULL);
    }
    if (equals && weft_name_check("axis", role->axis, error) != WEFT_OK) return error->status;
    return WEFT_OK;
}

/* An axis has the name of the hint that its first dim is in, else the name of that dim. */
static void name_axes(weft_search_roles *roles, const weft_search_dims *dims,
                      const weft_search_role *hints, int n_hints)
{
    for (int r = 0; r < roles->n; r++) {
        weft_search_role *role = &roles->list[r];
        const char *name = dims->names[role->dims[0]];
        for (int h = n_hints; h-- > 0;)
            if (hints[h].axis[0] && hints[h].set >> role->dims[0] & 1) name = hints[h].axis;
        char kept[WEFT_MAX_NAME + 1];
        snprintf(kept, sizeof kept, "%s", name);
        memcpy(role->axis, kept, sizeof kept);
    }
}

/* What a second role adds to a first, for the order in which pairs are taken. */
typedef struct role_pair {
    int first, second;
    double gain;
} role_pair;

static int by_gain(const void *a, const void *b)
{
    const role_pair *x = a, *y = b;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return x->first != y->first ? x->first - y->first : x->second - y->second;
}

/* One behind another: of the values that the first leaves whole, the second splits a good part. */
static void add_pairs(weft_search_roles *roles, const weft_search_dims *dims, int most)
{
    role_pair pairs[WEFT_SEARCH_ROLES * WEFT_SEARCH_ROLES];
    int n = 0;
    for (int a = 0; a < roles->n; a++)
        for (int b = 0; b < roles->n; b++) {
            const weft_search_role *first = &roles->list[a];
            const uint64_t more = roles->list[b].set & ~first->set;
            const double gain = weft_search_amounts_share(&dims->bytes, more, first->set);
            const bool is_either = first->is_pair || roles->list[b].is_pair;
            if (a != b && !is_either && gain >= LEAST_GAIN) pairs[n++] = (role_pair){a, b, gain};
        }
    qsort(pairs, (size_t)n, sizeof *pairs, by_gain);
    for (int i = 0; i < n && roles->n < most; i++) {
        weft_search_role role = roles->list[pairs[i].first];
        add_dims(dims, &role, roles->list[pairs[i].second].set);
        add_role(roles, dims, role);
    }
}

weft_status weft_search_roles_find(const weft_search_dims *dims, const char *hints,
                                   weft_search_roles *roles, weft_error *error)
{
    weft_search_role hinted[WEFT_SEARCH_ROLES];
    int n_hints = 0;
    cliques c = {.dims = dims};
    *roles = (weft_search_roles){0};
    for (const char *at = hints ? hints : ""; *at && n_hints < WEFT_SEARCH_ROLES;) {
        const size_t n = strcspn(at, " ");
        if (n > 0) WEFT_TRY(read_hint(dims, at, n, &hinted[n_hints++], error));
        at += n + strspn(at + n, " ");
    }
    find_cliques(&c);
    for (int i = 0; i < c.n; i++) {
        weft_search_role role = {0};
        add_dims(dims, &role, c.sets[i]);
        if (weft_search_amounts_share(&dims->flops, role.set, 0) >= LEAST_SHARE)
            add_role(roles, dims, role);
    }
    qsort(roles->list, (size_t)roles->n, sizeof *roles->list, by_share);
    if (roles->n > MOST_CLEAN) roles->n = MOST_CLEAN;
    for (int h = 0; h < n_hints; h++)
        add_role(roles, dims, hinted[h]);
    add_pairs(roles, dims, MOST_ROLES);
    name_axes(roles, dims, hinted, n_hints);
    return WEFT_OK;
}
