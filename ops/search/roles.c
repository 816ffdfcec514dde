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

static const double LEAST_SHARE = 0.05; /* of the flops, or of the bytes that a second role adds */
enum { MOST_CLIQUES = 64, MOST_CLEAN = 12 };

/* ---- sets ----------------------------------------------------------------------------------------- */

typedef struct cliques {
    const weft_search_dims *dims;
    int n;
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

/* Bron and Kerbosch, without a pivot: there are a dozen dims. */
static void extend(cliques *c, uint64_t set, uint64_t may, uint64_t done)
{
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

static bool is_same_role(const weft_search_role *a, const weft_search_role *b)
{
    return a->n == b->n && memcmp(a->dims, b->dims, (size_t)a->n) == 0;
}

static void add_role(weft_search_roles *roles, const weft_search_dims *dims, weft_search_role role)
{
    role.reach = weft_search_dims_reach(dims, role.set);
    role.share = weft_search_amounts_share(&dims->flops, role.set, 0);
    for (int r = 0; r < roles->n; r++)
        if (is_same_role(&roles->list[r], &role)) return;
    if (role.n > 0 && roles->n < WEFT_SEARCH_ROLES) roles->list[roles->n++] = role;
}

static int by_share(const void *a, const void *b)
{
    const weft_search_role *x = a, *y = b;
    if (x->share != y->share) return x->share > y->share ? -1 : 1;
    return memcmp(x->dims, y->dims, sizeof x->dims);
}

/* One behind another: the values that the first leaves whole and the second splits. */
static void add_pairs(weft_search_roles *roles, const weft_search_dims *dims)
{
    const int n = roles->n;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            weft_search_role role = roles->list[a];
            const uint64_t more = roles->list[b].set & ~role.set;
            if (a == b || weft_search_amounts_share(&dims->bytes, more, role.set) < LEAST_SHARE)
                continue;
            add_dims(dims, &role, more);
            add_role(roles, dims, role);
        }
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

static bool is_taken(const weft_search_roles *roles, int n, const char *name)
{
    for (int r = 0; r < n; r++)
        if (strcmp(roles->list[r].axis, name) == 0) return true;
    return false;
}

/* An axis has the name of the hint that begins with its first dims, else of its first dim; no two have one name. */
static void name_axes(weft_search_roles *roles, const weft_search_dims *dims,
                      const weft_search_role *hints, int n_hints)
{
    for (int r = 0; r < roles->n; r++) {
        weft_search_role *role = &roles->list[r];
        const char *name = dims->names[role->dims[0]];
        char tried[WEFT_MAX_NAME + 1];
        for (int h = 0; h < n_hints; h++)
            if (hints[h].axis[0] && hints[h].n > 0 && hints[h].set >> role->dims[0] & 1) {
                name = hints[h].axis;
                break;
            }
        snprintf(tried, sizeof tried, "%s", name);
        for (int i = 2; is_taken(roles, r, tried); i++)
            snprintf(tried, sizeof tried, "%.55s%d", name, i);
        memcpy(role->axis, tried, sizeof tried);
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
    add_pairs(roles, dims);
    name_axes(roles, dims, hinted, n_hints);
    return WEFT_OK;
}
