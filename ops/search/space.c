/* space: all choices there are: settings times outlines. */
#include "searching.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OUTLINES = 400000, MOST_PAIRS = 2, FEW_AXES = 3, FEW_CHOICES = 1 << 17 };

/* ---- settings --------------------------------------------------------------------------------------- */

static int values_of(const searching *s, int knob)
{
    return s->varies_knob[knob] ? s->options->knobs[knob].n_values : 1;
}

/* All values of all knobs that vary, the last one quickest. */
static weft_status find_knob_values(searching *s, weft_search_setting **settings, int *n)
{
    int64_t all = 1;
    for (int k = 0; k < s->options->n_knobs && all <= WEFT_SETTINGS; k++)
        all *= values_of(s, k);
    if (all > WEFT_SETTINGS)
        return weft_fail(s->error, WEFT_USAGE,
                         "the knobs have more than %d sets of values; vary fewer of them",
                         WEFT_SETTINGS);
    *n = (int)all;
    *settings = weft_arena_take(s->arena, (size_t)all * sizeof **settings);
    if (!*settings) return weft_fail_memory(s->error, (size_t)all * sizeof **settings);
    for (int i = 0; i < *n; i++) {
        int rest = i;
        (*settings)[i].profile = i;
        for (int k = s->options->n_knobs; k-- > 0; rest /= values_of(s, k))
            (*settings)[i].knob[k] = (uint8_t)(rest % values_of(s, k));
    }
    return WEFT_OK;
}

static weft_status find_settings(searching *s)
{
    weft_search_setting *sets = NULL;
    int n = 0;
    WEFT_TRY(find_knob_values(s, &sets, &n));
    WEFT_TRY(weft_search_profiles_make(s, sets, n));
    s->settings = weft_arena_take(s->arena, 4 * (size_t)n * sizeof *s->settings);
    if (!s->settings) return weft_fail_memory(s->error, (size_t)n * sizeof *s->settings);
    const bool has_stages = s->options->store_dim != NULL;
    for (int i = 0; i < n; i++)
        for (int zero = 0; zero <= 3 && s->profiles[i].is_legal; zero++) {
            if (zero != s->options->zero && (!s->varies_zero || !has_stages)) continue;
            sets[i].zero = zero;
            s->settings[s->n_settings++] = sets[i];
        }
    if (s->n_settings > 0) return WEFT_OK;
    return weft_fail(s->error, WEFT_USAGE, "%s", s->refusal);
}

/* ---- outlines ------------------------------------------------------------------------------------- */

static void find_levels(const searching *s, weft_search_outline *p)
{
    int stride = 1;
    for (int a = p->n; a-- > 0; stride *= p->axes[a].size) {
        p->axes[a].stride = stride;
        p->axes[a].level =
            (uint8_t)weft_level_of(s->options->machine, 0, (p->axes[a].size - 1) * stride);
    }
}

static int by_role(const void *a, const void *b)
{
    const weft_search_axis *x = a, *y = b;
    return x->role - y->role;
}

static bool meet_alike(const searching *s, const weft_search_axis *x, const weft_search_axis *y)
{
    double near_x[WEFT_MAX_LEVELS], near_y[WEFT_MAX_LEVELS];
    weft_search_meeting(s->options->machine, x, near_x);
    weft_search_meeting(s->options->machine, y, near_y);
    for (int l = 0; l < s->options->machine->n_levels; l++)
        if (near_x[l] != near_y[l]) return false;
    return x->level == y->level;
}

/* Two orders of whose axes as many ranks meet at each level are one to the machine. */
static bool is_alike(const searching *s, const weft_search_outline *a, const weft_search_outline *b)
{
    weft_search_outline x = *a, y = *b;
    if (a->n != b->n) return false;
    qsort(x.axes, (size_t)x.n, sizeof *x.axes, by_role);
    qsort(y.axes, (size_t)y.n, sizeof *y.axes, by_role);
    for (int i = 0; i < a->n; i++)
        if (x.axes[i].role != y.axes[i].role || x.axes[i].size != y.axes[i].size ||
            !meet_alike(s, &x.axes[i], &y.axes[i]))
            return false;
    return true;
}

typedef struct finding {
    searching *s;
    weft_search_outline given;         /* what was asked for; n -1: nothing */
    int n_sizes, sizes[WEFT_MAX_AXES]; /* of the mesh's axes, but those of one rank */
    int first;                         /* of those with the same roles and sizes */
    int room;
    int least_axes, n_axes; /* at least, and at most */
    weft_status status;
} finding;

/* Where only the layout varies sizes are as given; where only the mesh does, roles are. */
static bool is_varied_so(const finding *f, const weft_search_outline *p)
{
    const weft_search_outline *given = &f->given;
    if (given->n < 0) return true;
    for (int a = 0; a < p->n && !f->s->varies_mesh; a++)
        if (p->n != f->n_sizes || p->axes[a].size != f->sizes[a]) return false;
    for (int a = 0; a < p->n && !f->s->varies_layout; a++) {
        bool is_there = false;
        for (int b = 0; b < given->n; b++)
            is_there |= given->axes[b].role == p->axes[a].role;
        if (!is_there) return false;
    }
    return true;
}

static void keep(finding *f, weft_search_outline p)
{
    searching *s = f->s;
    find_levels(s, &p);
    if (!is_varied_so(f, &p)) return;
    if (f->given.n >= 0 && is_alike(s, &f->given, &p)) return; /* it is the first */
    for (int i = f->first; i < s->n_outlines; i++)
        if (is_alike(s, &s->outlines[i], &p)) return;
    if (s->n_outlines == f->room) {
        const int room = 2 * f->room;
        weft_search_outline *more = weft_arena_take(s->arena, (size_t)room * sizeof *more);
        if (!more) f->status = weft_fail_memory(s->error, (size_t)room * sizeof *more);
        if (!more) return;
        memcpy(more, s->outlines, (size_t)s->n_outlines * sizeof *more);
        s->outlines = more;
        f->room = room;
    }
    s->has_more_outlines |= s->n_outlines == MOST_OUTLINES;
    if (s->n_outlines < MOST_OUTLINES) s->outlines[s->n_outlines++] = p;
}

static void permute(finding *f, weft_search_outline *p, int at)
{
    if (at == p->n) keep(f, *p);
    for (int i = at; i < p->n; i++) {
        const weft_search_axis axis = p->axes[i];
        p->axes[i] = p->axes[at];
        p->axes[at] = axis;
        permute(f, p, at + 1);
        p->axes[at] = p->axes[i];
        p->axes[i] = axis;
    }
}

/* With three axes of which all are pairs, or four of which one is, there would be more choices than anybody can look at. */
static bool has_many_pairs(const weft_search_roles *roles, const weft_search_outline *p)
{
    int n = 0;
    for (int a = 0; a < p->n; a++)
        n += roles->list[p->axes[a].role].is_pair;
    return n > MOST_PAIRS || (n > 0 && p->n > FEW_AXES);
}

/* Roles in ascending order, each with a divisor of the ranks that are left. */
static void assign(finding *f, weft_search_outline *p, int role, int left)
{
    const weft_search_roles *roles = &f->s->roles;
    if (left == 1) {
        if (p->n < f->least_axes) return;
        if (has_many_pairs(roles, p)) return;
        f->first = f->s->n_outlines;
        permute(f, p, 0);
        return;
    }
    if (role == roles->n || p->n == f->n_axes) return;
    if (has_many_pairs(roles, p)) return;
    for (int size = 2; size <= left && size <= roles->list[role].most; size++) {
        if (left % size != 0) continue;
        p->axes[p->n++] = (weft_search_axis){(uint8_t)role, 0, size};
        assign(f, p, role + 1, left / size);
        p->n--;
    }
    assign(f, p, role + 1, left);
}

/* ---- what is given ---------------------------------------------------------------------------------- */

/* The rules of an axis as a hint: "data=batch", "model=hidden+heads". */
static int hint_of(const weft_layout *layout, const char *axis, char *text, size_t room)
{
    const char *rules = weft_layout_text(layout);
    int used = 0;
    for (const char *at = rules; *at;) {
        const size_t n = strcspn(at, ","), letters = strcspn(at, ":");
        for (const char *word = at + letters + 1; letters < n && word < at + n;) {
            const size_t of = strcspn(word, "+?,");
            if (of == strlen(axis) && memcmp(word, axis, of) == 0 && used < (int)room)
                used += snprintf(text + used, room - (size_t)used, "%s%.*s", used > 0 ? "+" : "",
                                 (int)letters, at);
            word += of + strspn(word + of, "+?");
        }
        at += n + (at[n] == ',');
    }
    return used;
}

static weft_status check_given(const searching *s, const weft_mesh *mesh, const weft_layout *layout)
{
    const char *names[WEFT_SEARCH_DIMS];
    const int ranks = weft_mesh_n_ranks(mesh);
    for (int d = 0; d < s->dims.n; d++)
        names[d] = s->dims.names[d];
    if (ranks != s->options->ranks)
        return weft_fail(s->error, WEFT_USAGE,
                         "mesh %s has %d rank%s, and the search is for %d; give a mesh of as many",
                         weft_mesh_text(mesh), ranks, ranks == 1 ? "" : "s", s->options->ranks);
    return weft_layout_check(layout, mesh, names, s->dims.n, s->error);
}

/* What was given as hints, so that its roles are among those of the space, under its own names. */
static weft_status read_given(searching *s, weft_mesh **mesh, weft_layout **layout, char *hints,
                              size_t room)
{
    size_t used = 0;
    hints[0] = '\0';
    if (!s->options->mesh || !*s->options->mesh) return WEFT_OK;
    WEFT_TRY(weft_mesh_plan(s->options->mesh, mesh, s->error));
    WEFT_TRY(weft_layout_create(s->options->layout, layout, s->error));
    WEFT_TRY(check_given(s, *mesh, *layout));
    for (int a = 0; a < weft_mesh_n_axes(*mesh); a++) {
        char dims[300] = "";
        const char *axis = weft_mesh_axis_name(*mesh, a);
        if (hint_of(*layout, axis, dims, sizeof dims) > 0 && used < room)
            used += (size_t)snprintf(hints + used, room - used, "%s=%s ", axis, dims);
    }
    return WEFT_OK;
}

/* The role that has just these dims, in this order, or in any where that is the same. */
static int role_of(const searching *s, const char *hint)
{
    uint64_t set = 0;
    int first = -1, best = -1;
    for (const char *at = hint; *at;) {
        const size_t n = strcspn(at, "+");
        const int d = weft_search_dim_find(&s->dims, at, n);
        if (d >= 0) set |= UINT64_C(1) << d;
        if (d >= 0 && first < 0) first = d;
        at += n + (at[n] == '+');
    }
    for (int r = s->roles.n; r-- > 0;)
        if (s->roles.list[r].set == set && (best < 0 || s->roles.list[r].dims[0] == first))
            best = r;
    return best;
}

/* Axes of one rank, and those that nothing is split over, are left out. */
static void place_given(const searching *s, const weft_mesh *mesh, const weft_layout *layout,
                        weft_search_outline *given)
{
    *given = (weft_search_outline){.n = mesh ? 0 : -1};
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        char dims[300] = "";
        (void)hint_of(layout, weft_mesh_axis_name(mesh, a), dims, sizeof dims);
        const int role = role_of(s, dims), size = weft_mesh_axis_size(mesh, a);
        if (size > 1 && role >= 0)
            given->axes[given->n++] = (weft_search_axis){(uint8_t)role, 0, size};
    }
    find_levels(s, given);
}

static int ranks_of(const weft_search_outline *p)
{
    int ranks = 1;
    for (int a = 0; a < p->n; a++)
        ranks *= p->axes[a].size;
    return ranks;
}

static void find_storage(searching *s)
{
    const char *dim = s->options->store_dim;
    const int d = dim ? weft_search_dim_find(&s->dims, dim, strlen(dim)) : -1;
    for (int r = 0; r < s->roles.n && d >= 0; r++)
        s->roles.list[r].splits_storage = s->roles.list[r].set >> d & 1;
}

static weft_status begin_outlines(finding *f)
{
    searching *s = f->s;
    char hints[2048];
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_status status = read_given(s, &mesh, &layout, hints, sizeof hints);
    const size_t used = strlen(hints);
    if (s->options->hints) snprintf(hints + used, sizeof hints - used, "%s", s->options->hints);
    if (status == WEFT_OK) status = weft_search_roles_find(&s->dims, hints, &s->roles, s->error);
    if (status == WEFT_OK) find_storage(s);
    if (status == WEFT_OK) place_given(s, mesh, layout, &f->given);
    for (int a = 0; status == WEFT_OK && a < weft_mesh_n_axes(mesh); a++)
        if (weft_mesh_axis_size(mesh, a) > 1) f->sizes[f->n_sizes++] = weft_mesh_axis_size(mesh, a);
    weft_layout_destroy(&layout);
    (void)weft_mesh_destroy(&mesh);
    return status;
}

static weft_status find_outlines(searching *s)
{
    finding f = {.s = s, .room = 1024, .n_axes = FEW_AXES};
    weft_search_outline p = {0};
    WEFT_TRY(begin_outlines(&f));
    s->outlines = weft_arena_take(s->arena, (size_t)f.room * sizeof *s->outlines);
    if (!s->outlines) return weft_fail_memory(s->error, sizeof *s->outlines);
    if (f.given.n >= 0 && ranks_of(&f.given) == s->options->ranks) /* else an axis splits nothing */
        s->outlines[s->n_outlines++] = f.given;
    if (s->varies_mesh || s->varies_layout) assign(&f, &p, 0, s->options->ranks);
    f.least_axes = f.n_axes + 1;
    f.n_axes = WEFT_SEARCH_AXES;
    if ((s->varies_mesh || s->varies_layout) && (double)s->n_outlines * s->n_settings < FEW_CHOICES)
        assign(&f, &p, 0, s->options->ranks);
    if (f.status != WEFT_OK || s->n_outlines > 0) return f.status;
    if (!s->varies_mesh || !s->varies_layout)
        return weft_fail(s->error, WEFT_USAGE,
                         "mesh %s and layout \"%s\": with what is not varied an axis would split "
                         "nothing; give each axis a rule, or vary mesh and layout",
                         s->options->mesh ? s->options->mesh : "",
                         s->options->layout ? s->options->layout : "");
    return weft_fail(
        s->error, WEFT_USAGE,
        "%d ranks: no mesh of at most %d axes gives each of them something to do: dims "
        "are shorter than the axes that would split them; take fewer ranks, or ranks "
        "with more divisors",
        s->options->ranks, WEFT_SEARCH_AXES);
}

weft_status weft_search_space_find(searching *s)
{
    WEFT_TRY(find_settings(s));
    return find_outlines(s);
}
