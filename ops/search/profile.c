/* profile: what a setting asks of one rank that does all: seconds of work by the dims along which it can be cut, and bytes that are
 * kept between runs by their dims.
 *
 * Read off the plan on one rank, since there nothing is exchanged and nothing repeated. Where
 * layers are alike, plans of few layers and of some more are enough: each amount is a + b layers.
 */
#include "flows.h"

#include "regions.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKS = WEFT_SEARCH_WORKS, MOST_HOMES = 128 };

typedef struct sheet {
    int n_works, n_homes;
    bool lacks_tolls; /* of some work */
    weft_search_work works[MOST_WORKS];
    weft_search_home homes[MOST_HOMES];
} sheet;

/* ---- one plan --------------------------------------------------------------------------------------- */

static uint64_t bits_of(weft_search_dims *dims, const weft_plan *plan, uint32_t placed)
{
    return weft_search_dims_of(dims, &plan->graph->tensors[plan->placed[placed].value].type.shape);
}

static bool is_of_storage(const weft_plan *plan, uint32_t placed)
{
    const weft_placed *p = &plan->placed[placed];
    return p->home == WEFT_VARIABLE_HOME || plan->graph->tensors[p->value].place_as != 0;
}

static void add_loops(sheet *to, const weft_search_work *loops, double times)
{
    int at = 0;
    while (at < to->n_works &&
           (to->works[at].is_kernel || to->works[at].dims != loops->dims ||
            to->works[at].is_stored != loops->is_stored || to->works[at].order != loops->order))
        at++;
    if (at == MOST_WORKS) return; /* a floor may leave work out */
    if (at == to->n_works)
        to->works[to->n_works++] = (weft_search_work){
            .dims = loops->dims, .is_stored = loops->is_stored, .order = loops->order};
    to->works[at].times += times * loops->times;
    to->works[at].seconds += times * loops->seconds;
    to->works[at].bytes += times * loops->bytes;
    to->works[at].most = fmax(to->works[at].most, loops->most);
}

static double loop_seconds(const weft_workload *work, const weft_search_rates *rates)
{
    double compute = work->flops / rates->flops[work->dtype];
    for (int a = 0; a < work->n_acts; a++)
        compute += work->acts[a].elements * weft_search_act_seconds(rates, work->acts[a].op);
    return rates->crowd * rates->factor * fmax(compute, work->bytes / rates->bytes);
}

static bool is_same_toll(const weft_search_toll *a, const weft_search_toll *b)
{
    return a->of == b->of && a->kind == b->kind && a->dims == b->dims && a->bytes == b->bytes &&
           a->again == b->again && a->share == b->share && a->often == b->often &&
           a->whole_id == b->whole_id && a->whole_order == b->whole_order && a->term == b->term &&
           a->is_first == b->is_first;
}

static bool is_same_kernel(const weft_search_work *a, const weft_search_work *b)
{
    if (!a->is_kernel || a->kernel.id != b->kernel.id || a->dims != b->dims ||
        a->is_stored != b->is_stored || a->order != b->order || a->n_tolls != b->n_tolls)
        return false;
    for (int t = 0; t < a->n_tolls; t++)
        if (!is_same_toll(&a->tolls[t], &b->tolls[t])) return false;
    return true;
}

/* Layers have the same kernels again and again. */
static void add_kernel(sheet *to, const weft_search_work *kernel, double times)
{
    int at = 0;
    while (at < to->n_works && !is_same_kernel(&to->works[at], kernel))
        at++;
    to->lacks_tolls |= at == MOST_WORKS || kernel->n_tolls < 0;
    if (at == MOST_WORKS) return;
    if (at == to->n_works) {
        to->works[at] = *kernel;
        to->works[at].seconds = to->works[at].times = 0;
        to->n_works++;
    }
    to->works[at].times += times;
    to->works[at].seconds += times * kernel->seconds;
}

/* Whether it is a variable, or one cast: it has no dims but those of some variable. */
static bool is_of_variable(const weft_plan *plan, uint32_t placed)
{
    uint32_t value = plan->placed[placed].value;
    const weft_node *node = weft_node_of(plan->graph, value);
    while (node->op->recodes && node->n_in == 1) {
        value = node->in[0];
        node = weft_node_of(plan->graph, value);
    }
    return node->op == &weft_op_variable;
}

/* Operands, then results: their dims, and what is special about where they are. */
static void look_at_terms(weft_search_work *work, weft_search_dims *dims, const weft_plan *plan,
                          const weft_step *step)
{
    const int n_in = step->n_in - weft_step_accumulates(plan, step);
    for (int i = 0; i < n_in && work->n_terms < WEFT_SEARCH_TERMS; i++) {
        weft_search_term *term = &work->terms[work->n_terms++];
        *term = (weft_search_term){bits_of(dims, plan, step->in[i]), work->kernel.sizes[i], false,
                                   is_of_variable(plan, step->in[i])};
    }
    for (int o = 0; o < step->n_out && work->n_terms < WEFT_SEARCH_TERMS; o++) {
        weft_search_term *term = &work->terms[work->n_terms++];
        const uint32_t value = plan->placed[step->out[o]].value;
        *term = (weft_search_term){bits_of(dims, plan, step->out[o]),
                                   work->kernel.sizes[step->n_in + o], true,
                                   plan->graph->tensors[value].place_as != 0};
    }
}

static void look_at_step(sheet *to, weft_search_dims *dims, const weft_plan *plan,
                         const weft_step *step, const weft_search_rates *rates,
                         const search_flows *flows)
{
    uint64_t bits = 0;
    bool is_stored = step->phase == WEFT_UPDATE;
    for (int i = 0; i < step->n_in; i++) {
        bits |= bits_of(dims, plan, step->in[i]);
        is_stored |= is_of_storage(plan, step->in[i]);
    }
    for (int o = 0; o < step->n_out; o++) {
        bits |= bits_of(dims, plan, step->out[o]);
        is_stored |= is_of_storage(plan, step->out[o]);
    }
    for (int g = 0; step->kind == WEFT_STEP_LOOP && g < step->n_segments; g++)
        bits |= bits_of(dims, plan, step->space[g]);
    weft_workload work;
    const double times = weft_times_of(plan, step);
    weft_step_workload(plan, step, 0, &work);
    if (work.name == NULL) return;
    search_part parts[WEFT_SEARCH_PARTS];
    weft_flows_order(flows, step, parts);
    for (int p = 0; p < WEFT_SEARCH_PARTS && step->kind != WEFT_STEP_KERNEL; p++) {
        const double part = parts[p].part;
        if (part <= 0) continue;
        const weft_search_work loop = {.dims = bits,
                                       .is_stored = is_stored,
                                       .order = parts[p].order,
                                       .seconds = part * loop_seconds(&work, rates),
                                       .bytes = part * work.bytes,
                                       .most = work.bytes,
                                       .times = part};
        add_loops(to, &loop, times);
    }
    if (step->kind != WEFT_STEP_KERNEL) return;
    int p = 0;
    while (parts[p].part < 1)
        p++;
    weft_search_work kernel = {.is_kernel = true,
                               .dims = bits,
                               .is_stored = is_stored,
                               .order = parts[p].order,
                               .kernel = work,
                               .seconds = weft_search_kernel_best(rates, &work)};
    look_at_terms(&kernel, dims, plan, step);
    weft_flows_tolls(flows, step, dims, &kernel);
    add_kernel(to, &kernel, times);
}

static void add_home(sheet *to, const weft_search_home *home)
{
    int at = 0;
    for (; at < to->n_homes; at++) {
        const weft_search_home *other = &to->homes[at];
        if (other->dims == home->dims && other->is_slot == home->is_slot &&
            other->is_variable == home->is_variable && other->is_placed == home->is_placed)
            break;
    }
    if (at == MOST_HOMES) return;
    if (at < to->n_homes)
        to->homes[at].bytes += home->bytes;
    else
        to->homes[to->n_homes++] = *home;
}

static void look_at_homes(sheet *to, weft_search_dims *dims, const weft_plan *plan)
{
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const weft_placed *placed = &plan->placed[id];
        if (placed->home == WEFT_TEMPORARY) continue;
        weft_search_home home = {.dims = bits_of(dims, plan, id),
                                 .bytes = (double)weft_placed_bytes(plan, id, 0),
                                 .is_variable = placed->home == WEFT_VARIABLE_HOME,
                                 .is_placed =
                                     plan->graph->tensors[placed->value].placement != NULL};
        home.is_slot = home.is_variable && weft_owner_of(plan->graph, placed->value) != 0;
        add_home(to, &home);
    }
}

static uint64_t dims_of(weft_search_dims *dims, const weft_graph *graph,
                        int64_t size[WEFT_SEARCH_DIMS])
{
    uint64_t bits = 0;
    for (uint32_t v = 1; v < graph->n_tensors; v++) {
        const weft_shape *shape = &graph->tensors[v].type.shape;
        for (int d = 0; d < shape->n_dims; d++) {
            const uint64_t bit = weft_search_dim_bit(dims, shape->dims[d].name);
            if (bit == 0) continue;
            const int at = __builtin_ctzll(bit);
            bits |= bit;
            if (shape->dims[d].size > size[at]) size[at] = shape->dims[d].size;
        }
    }
    return bits;
}

/* ---- a + b layers ----------------------------------------------------------------------------------- */

/* Amounts of few layers, and what each more adds. */
static void add_times(sheet *to, const sheet *from, double times)
{
    for (int w = 0; w < from->n_works; w++) {
        weft_search_work work = from->works[w];
        if (!work.is_kernel) {
            add_loops(to, &work, times);
            continue;
        }
        if (work.times != 0) work.seconds /= work.times;
        add_kernel(to, &work, times * work.times);
    }
    for (int h = 0; h < from->n_homes; h++) {
        weft_search_home home = from->homes[h];
        home.bytes *= times;
        add_home(to, &home);
    }
}

/* Which work it is that may spare a toll. */
static void find_whole(const weft_search_profile *profile, weft_search_toll *toll)
{
    toll->whole = -1;
    for (int w = 0; w < profile->n_works && toll->whole_id != 0; w++) {
        const weft_search_work *work = &profile->works[w];
        if (work->is_kernel && work->kernel.id == toll->whole_id &&
            work->order == toll->whole_order && work->n_ways > 0)
            toll->whole = w;
    }
}

static weft_status keep(searching *s, const sheet *from, weft_search_profile *profile)
{
    profile->n_works = from->n_works;
    profile->n_homes = from->n_homes;
    profile->has_tolls = !from->lacks_tolls;
    for (int w = 0; w < from->n_works; w++) /* else some layer is not like the others */
        if (from->works[w].is_kernel && from->works[w].times < 0) profile->has_tolls = false;
    profile->works =
        weft_arena_copy(s->arena, from->works, (size_t)(from->n_works + 1) * sizeof *from->works);
    profile->homes =
        weft_arena_copy(s->arena, from->homes, (size_t)(from->n_homes + 1) * sizeof *from->homes);
    const bool is_there = profile->works && profile->homes;
    for (int w = 0; w < profile->n_works && is_there; w++)
        for (int i = 0; i < profile->works[w].n_tolls; i++)
            find_whole(profile, &profile->works[w].tolls[i]);
    return is_there ? WEFT_OK : weft_fail_memory(s->error, sizeof *from);
}

/* ---- settings, some at a time ----------------------------------------------------------------------- */

enum { AT_ONCE = 32 };

/* The program of a setting on one rank: of few layers, and of some more where there are. */
typedef struct alone {
    bool is_late;
    weft_choice choice;
    int64_t layers[2];
    weft_mesh *mesh;
    weft_built_graph built[2];
    weft_program *program[2];
    const search_flows *flows[2]; /* of its plans, in `arena` */
    weft_arena *arena;
    weft_error error;
} alone;

typedef struct batch {
    searching *s;
    int first;
    alone all[AT_ONCE];
} batch;

static weft_status plan_one(searching *s, alone *a, int which)
{
    weft_layout *layout = NULL;
    weft_choice choice = a->choice;
    choice.layers = a->layers[which];
    WEFT_TRY(weft_search_call_builder(s, &choice, &a->built[which], &a->error));
    WEFT_TRY(weft_layout_create("", &layout, &a->error));
    const weft_values values = {a->built[which].values, a->built[which].n_values};
    const weft_status status = weft_compile(a->mesh, layout, values, &a->built[which].options,
                                            &a->program[which], &a->error);
    weft_layout_destroy(&layout);
    if (status != WEFT_OK) return status;
    a->flows[which] = weft_flows_find(a->program[which]->plan, a->arena);
    return a->flows[which] ? WEFT_OK : weft_fail_memory(&a->error, sizeof *a->flows[which]);
}

/* When time is over, settings that were not looked at are none: but the first, which is what is done unless asked. */
static const double PROFILING = 0.35;

static void plan_piece(void *context, int piece)
{
    batch *b = context;
    alone *a = &b->all[piece];
    a->is_late = b->first + piece > 0 && weft_search_is_over(b->s, PROFILING);
    if (a->is_late) return;
    a->arena = weft_arena_create();
    if (!a->arena) (void)!weft_fail_memory(&a->error, sizeof *a);
    if (!a->arena || weft_mesh_plan("one:1", &a->mesh, &a->error) != WEFT_OK) return;
    if (plan_one(b->s, a, 0) == WEFT_OK && a->layers[1] > 0) (void)!plan_one(b->s, a, 1);
}

static void look(searching *s, const search_flows *flows, const weft_search_rates *rates,
                 weft_search_profile *profile, sheet *to)
{
    const weft_plan *plan = flows->plan;
    *to = (sheet){0};
    weft_search_dims_look(&s->dims, plan->graph);
    profile->dims = dims_of(&s->dims, plan->graph, profile->size);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        look_at_step(to, &s->dims, plan, &plan->steps[i], rates, flows);
    look_at_homes(to, &s->dims, plan);
}

/* few + (layers - few) / (more - few) x (more - few), as amounts */
static weft_status read_one(searching *s, const alone *a, const weft_search_rates *rates,
                            sheet sheets[2], weft_search_profile *profile)
{
    profile->is_legal = true;
    look(s, a->flows[0], rates, profile, &sheets[0]);
    if (a->layers[1] == 0) return keep(s, &sheets[0], profile);
    look(s, a->flows[1], rates, profile, &sheets[1]);
    sheets[1].lacks_tolls |= sheets[0].lacks_tolls;
    const double left =
        (double)(s->options->layers - a->layers[0]) / (double)(a->layers[1] - a->layers[0]);
    add_times(&sheets[1], &sheets[1], left - 1);
    add_times(&sheets[1], &sheets[0], 1 - left);
    return keep(s, &sheets[1], profile);
}

static void drop(alone *a)
{
    weft_arena_destroy(&a->arena);
    for (int i = 0; i < 2; i++) {
        (void)weft_program_destroy(&a->program[i]);
        if (a->built[i].graph) (void)weft_graph_destroy(&a->built[i].graph);
    }
    (void)weft_mesh_destroy(&a->mesh);
}

/* The builder's own sentence says why a setting is none; all else ends the search. */
static weft_status take(searching *s, const alone *a, const weft_search_rates *rates,
                        sheet sheets[2], weft_search_profile *profile)
{
    s->has_more_outlines |= a->is_late; /* nothing is known of its choices */
    if (a->is_late) return WEFT_OK;
    if (a->error.status == WEFT_OK) return read_one(s, a, rates, sheets, profile);
    if (a->error.status != WEFT_USAGE)
        return weft_fail(s->error, a->error.status, "%s", a->error.message);
    if (s->n_refused++ == 0) snprintf(s->refusal, sizeof s->refusal, "%s", a->error.message);
    return WEFT_OK;
}

/* The first that is legal, and has the same values of what varies only where it is named: that needs no axis of its own. */
static int first_like(const searching *s, const weft_search_setting *settings, int i)
{
    for (int first = 0; first < i; first++) {
        bool is_like = s->profiles[first].is_legal;
        for (int k = 0; k < s->options->n_knobs; k++)
            if (s->options->knobs[k].is_asked)
                is_like = is_like && settings[first].knob[k] == settings[i].knob[k];
        if (is_like) return first;
    }
    return i;
}

/* What other settings add to the dims of the first; and which have the same ones. */
static void compare(searching *s, const weft_search_setting *settings)
{
    for (int i = 0; i < s->n_profiles; i++) {
        weft_search_profile *p = &s->profiles[i];
        p->more = p->dims & ~s->profiles[first_like(s, settings, i)].dims;
        while (p->like < i &&
               (!s->profiles[p->like].is_legal || s->profiles[p->like].dims != p->dims ||
                memcmp(s->profiles[p->like].size, p->size, sizeof p->size) != 0))
            p->like++;
    }
}

static void begin_one(searching *s, alone *a, const weft_search_setting *setting)
{
    static const weft_search_outline nowhere;
    (void)weft_search_choice_of(s, &nowhere, setting, &a->choice);
    a->layers[0] = weft_search_few_layers(s->options, &a->choice);
    a->layers[1] = a->layers[0] + a->layers[0] / 2;
}

weft_status weft_search_profiles_make(searching *s, const weft_search_setting *settings, int n)
{
    sheet *sheets = weft_arena_take(s->arena, 2 * sizeof *sheets);
    batch *b = weft_arena_take(s->arena, sizeof *b);
    weft_status status = WEFT_OK;
    s->profiles = weft_arena_take(s->arena, (size_t)n * sizeof *s->profiles);
    if (!sheets || !b || !s->profiles) return weft_fail_memory(s->error, sizeof *b);
    weft_search_rates_find(s->options->machine, weft_search_host_ranks(s->options), &s->rates);
    WEFT_TRY(weft_search_links_find(s));
    s->n_profiles = n;
    for (int first = 0; first < n && status == WEFT_OK; first += AT_ONCE) {
        const int some = n - first < AT_ONCE ? n - first : AT_ONCE;
        *b = (batch){.s = s, .first = first};
        for (int i = 0; i < some; i++)
            begin_one(s, &b->all[i], &settings[first + i]);
        weft_search_crew_do(s->threads, some, plan_piece, b);
        for (int i = 0; i < some && status == WEFT_OK; i++)
            status = take(s, &b->all[i], &s->rates, sheets, &s->profiles[first + i]);
        for (int i = 0; i < some; i++)
            drop(&b->all[i]);
    }
    compare(s, settings);
    return status;
}
