/* drawn.c: a graph drawn, and built. */
#include "drawn.h"

#include <string.h>

#define KEPT "a"
#include "weft/autodiff.h"
#include "weft/scan.h"
#include "policies.h"

/* ---- dice ---------------------------------------------------------------------------------------- */

drawn_dice drawn_dice_of(uint64_t seed, uint64_t which)
{
    return (drawn_dice){mixed(seed, which)};
}

int drawn_roll(drawn_dice *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

/* ---- what there is to draw from ------------------------------------------------------------------- */

static int n_placed(const op_group *group)
{
    int n = 0;
    for (const op_case *c = group->cases; c->name != NULL; c++)
        n += !c->alone;
    return n;
}

bool drawn_has(const op_group *group)
{
    return n_placed(group) > 0;
}

/* Every op as often, then each of its cases. */
static const op_case *draw_case(drawn_dice *d)
{
    const op_group *group = &op_groups[drawn_roll(d, n_op_groups)];
    while (!drawn_has(group))
        group = &op_groups[drawn_roll(d, n_op_groups)];
    int left = drawn_roll(d, n_placed(group));
    for (const op_case *c = group->cases;; c++)
        if (!c->alone && left-- == 0) return c;
}

/* `wanted` where the case has it, else one that it has. */
static weft_dtype draw_dtype(drawn_dice *d, int dtypes, weft_dtype wanted)
{
    if (drawn_roll(d, 8) == 0) wanted = (weft_dtype)drawn_roll(d, WEFT_DTYPES);
    while (!(dtypes >> wanted & 1))
        wanted = (weft_dtype)drawn_roll(d, WEFT_DTYPES);
    return wanted;
}

static drawn_op draw_op(drawn_dice *d, int number, weft_dtype wanted)
{
    drawn_op op = {.what = draw_case(d)};
    op.dtype = draw_dtype(d, op.what->dtypes, wanted);
    for (int k = 0; k < DRAWN_OPERANDS; k++)
        op.from[k] = number == 0 || drawn_roll(d, 4) == 0 ? DRAWN_FRESH : drawn_roll(d, number);
    if (number > 0 && drawn_roll(d, 2)) op.from[0] = number - 1; /* chains */
    op.seed = (uint64_t)drawn_roll(d, 1 << 30);
    op.trips = drawn_roll(d, 8) == 0 ? 1 + drawn_roll(d, 3) : 0;
    op.is_part = drawn_roll(d, 8) == 0;
    op.places = drawn_roll(d, 3) == 0;
    op.has_partial = drawn_roll(d, 4) == 0;
    return op;
}

/* ---- sizes, layouts ------------------------------------------------------------------------------- */

static const int64_t *usual_sizes(void)
{
    static int64_t usual[CASE_DIMS];
    for (int d = 0; usual[CASE_DIMS - 1] == 0 && d < CASE_DIMS; d++)
        usual[d] = case_dims[d].size;
    return usual;
}

static void set_sizes(const int64_t *sizes)
{
    for (int d = 0; d < CASE_DIMS; d++)
        case_dims[d].size = sizes[d];
}

/* As many cases go with them as can: some have dims that are made of others. */
static void draw_sizes(drawn_dice *d, int64_t *sizes)
{
    memcpy(sizes, usual_sizes(), sizeof(int64_t) * CASE_DIMS);
    if (drawn_roll(d, 3) == 0) return;
    for (int k = 0; k < CASE_DIMS; k++)
        if (sizes[k] < 100 && k != DIM_ONE) sizes[k] = 1 + drawn_roll(d, 9);
    sizes[DIM_FEATURE] = 2 * (1 + drawn_roll(d, 4));
    sizes[DIM_SIX] = sizes[DIM_C] * sizes[DIM_D];
    sizes[DIM_MERGED] = sizes[DIM_OUTER] * sizes[DIM_C];
    sizes[DIM_JOINED] = sizes[DIM_B] + sizes[DIM_C];
    sizes[DIM_OTHER] = sizes[DIM_B];
    sizes[DIM_KEY] = sizes[DIM_SEQ];
    sizes[DIM_PART_OF_B] = 1 + sizes[DIM_B] / 2;
}

static void draw_axes(drawn_dice *d, const weft_mesh *mesh, char *text, size_t bytes)
{
    const int n = weft_mesh_n_axes(mesh), first = drawn_roll(d, n);
    const char *axis = weft_mesh_axis_name(mesh, first);
    if (n == 1 || drawn_roll(d, 3))
        snprintf(text, bytes, "%s?", axis);
    else
        snprintf(text, bytes, "%s?+%s?", axis, weft_mesh_axis_name(mesh, (first + 1) % n));
}

void drawn_place(const weft_mesh *mesh, const weft_shape *shape, drawn_dice *dice, bool part,
                 char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (int a = 0; a < weft_mesh_n_axes(mesh) && at < bytes; a++) {
        const int d = drawn_roll(dice, shape->n_dims + 1 + part);
        if (d == shape->n_dims) continue;
        at += (size_t)snprintf(text + at, bytes - at, "%s%s:%s?", at > 0 ? "," : "",
                               d < shape->n_dims ? shape->dims[d].name : "part",
                               weft_mesh_axis_name(mesh, a));
    }
}

drawn drawn_of(uint64_t seed, const weft_oracle *oracle)
{
    static const weft_dtype often[] = {WEFT_F64, WEFT_F64, WEFT_F64,  WEFT_F64, WEFT_F64, WEFT_F64,
                                       WEFT_F32, WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_I32};
    drawn_dice d = drawn_dice_of(seed, 1);
    drawn g = {.seed = seed, .n_ops = 1 + drawn_roll(&d, DRAWN_OPS)};
    const weft_dtype wanted = often[drawn_roll(&d, sizeof often / sizeof often[0])];
    for (int i = 0; i < g.n_ops; i++)
        g.ops[i] = draw_op(&d, i, wanted);
    draw_sizes(&d, g.sizes);
    g.derivatives = drawn_roll(&d, 4) == 0 ? 2 : drawn_roll(&d, 3) > 0;
    g.mesh = oracle->meshes[drawn_roll(&d, oracle->n_meshes)];
    g.n_rules = drawn_roll(&d, DRAWN_RULES + 1);
    for (int r = 0; r < g.n_rules; r++) {
        g.rules[r].dim = drawn_roll(&d, CASE_DIMS);
        draw_axes(&d, g.mesh, g.rules[r].axes, sizeof g.rules[r].axes);
    }
    g.policy = drawn_roll(&d, 5) == 0 ? seed + 1 : 0;
    g.options.synchronous = drawn_roll(&d, 5) == 0;
    g.options.unroll = drawn_roll(&d, 2) ? 1 : 0;
    return g;
}

drawn drawn_of_extremes(uint64_t seed, const weft_oracle *oracle)
{
    drawn g = drawn_of(seed, oracle);
    drawn_dice d = drawn_dice_of(seed, 4);
    g.n_ops = g.n_ops < 2 ? g.n_ops : 1 + drawn_roll(&d, 2);
    g.derivatives = 0;
    g.options.infinities = true;
    g.extremes = 1 << drawn_roll(&d, WEFT_ORACLE_EXTREMES);
    if (drawn_roll(&d, 3) == 0) g.extremes |= 1 << drawn_roll(&d, WEFT_ORACLE_EXTREMES);
    return g;
}

void drawn_layout(const drawn *g, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (int r = 0; r < g->n_rules && at < bytes; r++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s:%s", at > 0 ? "," : "",
                               case_dims[g->rules[r].dim].name, g->rules[r].axes);
}

/* ---- wishes: what a case asks for ----------------------------------------------------------------- */

typedef struct wishes {
    int n;
    drawn_wish list[DRAWN_OPERANDS];
} wishes;

static weft_value take_wish(weft_oracle_build *b, weft_dtype dtype, weft_shape shape, double low,
                            double high)
{
    wishes *w = b->giver;
    char name[16];
    snprintf(name, sizeof name, "in%d", w->n);
    if (w->n < DRAWN_OPERANDS) w->list[w->n] = (drawn_wish){dtype, shape, low, high};
    w->n++;
    return weft_input(b->graph, name, dtype, shape);
}

/* False where the case does not go with the sizes, or wants too much. */
static bool asked(const drawn_op *op, const int64_t *sizes, wishes *w)
{
    weft_oracle_build b = {.graph = weft_graph_create(77), .give = take_wish, .giver = w};
    *w = (wishes){0};
    set_sizes(sizes);
    const weft_value y = op->what->build(&b, op->dtype);
    const bool builds = y.id != 0 && weft_shape_count(weft_shape_of(y)) > 0;
    weft_graph_destroy(&b.graph);
    return builds && w->n <= DRAWN_OPERANDS;
}

/* ---- building -------------------------------------------------------------------------------------- */

typedef struct growing {
    weft_oracle_build *build;
    const drawn *graph;
    int breath, n_blown, n_values;
    bool is_read[DRAWN_OPS];
    weft_value values[DRAWN_OPS];
    weft_oracle_placing placing;
    char texts[WEFT_ORACLE_VALUES][DRAWN_TEXT * 2];
    int n_given;
    weft_value given[DRAWN_OPERANDS];
} growing;

/* Numbers around 1, other ones for each element, dtype and which. */
static weft_value pattern(weft_value like, weft_dtype dtype, int which)
{
    const weft_shape shape = *weft_shape_of(like);
    weft_value sum = weft_constant(like.graph, dtype, WEFT_SCALAR, 1.7 * which + 0.3);
    for (int d = 0; d < shape.n_dims; d++)
        sum =
            weft_add(sum, weft_scale(weft_iota(like.graph, dtype, shape.dims[d]), 1.3 + 0.71 * d));
    return weft_cos(sum);
}

/* As much as rounding does to a value, and somewhat more; every other breath moves zeros, too, and some move all elements alike:
 * what is equal stays so, as where there is no breath. */
static weft_value blown(growing *g, weft_value x)
{
    static const double strength[WEFT_DTYPES] = {
        [WEFT_F32] = 1e-6, [WEFT_F64] = 1e-14, [WEFT_BF16] = 0x1p-7, [WEFT_F16] = 0x1p-10};
    const weft_dtype dtype = weft_dtype_of(x), wide = dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    if (g->breath <= 0 || !weft_dtype_is_float(dtype)) return x;
    const int which = 31 * g->breath + g->n_blown++;
    const weft_value one = weft_constant(x.graph, wide, WEFT_SCALAR, 1.0);
    const weft_value all = g->breath % 4 == 3 ? one : x;
    weft_value by = weft_scale(pattern(all, wide, which), strength[dtype]);
    weft_value y = weft_mul(weft_cast(x, wide), weft_shift(by, 1.0));
    if (g->breath % 2 == 0) y = weft_add(y, by);
    return weft_transpose(weft_cast(y, dtype), *weft_shape_of(x));
}

static weft_value fresh(growing *g, const drawn_op *op, const drawn_wish *wish, drawn_dice *d)
{
    const int k = g->build->n_inputs;
    const bool part =
        op->has_partial && weft_dtype_is_float(wish->dtype) && wish->shape.n_dims < WEFT_MAX_DIMS;
    drawn_place(g->graph->mesh, &wish->shape, d, part, g->texts[k], sizeof g->texts[k]);
    g->placing.inputs[k] = op->places || part ? g->texts[k] : NULL;
    return weft_oracle_input(g->build, wish->dtype, wish->shape, wish->low, wish->high);
}

static weft_value operand(growing *g, const drawn_op *op, const drawn_wish *wish, int k)
{
    drawn_dice d = drawn_dice_of(op->seed, (uint64_t)k);
    int from = op->from[k];
    if (from == DRAWN_FRESH && g->build->n_inputs < WEFT_ORACLE_VALUES - 2)
        return blown(g, fresh(g, op, wish, &d));
    if (from != DRAWN_FRESH) g->is_read[from] = true;
    const weft_value x = from == DRAWN_FRESH ? g->build->operands[0] : g->values[from];
    return blown(g, drawn_fit(x, wish, &d, op->is_plain));
}

static weft_value hand_out(weft_oracle_build *b, weft_dtype dtype, weft_shape shape, double low,
                           double high)
{
    growing *g = b->giver;
    (void)dtype, (void)shape, (void)low, (void)high;
    return g->given[g->n_given++];
}

static weft_value made(growing *g, const drawn_op *op)
{
    g->build->give = hand_out, g->build->giver = g;
    g->build->n_arguments = g->build->n_others = 0, g->n_given = 0;
    const weft_value y = op->what->build(g->build, op->dtype);
    g->build->give = NULL;
    return blown(g, y);
}

/* Its first operand is carried, and what it makes of that is the next. */
static weft_value made_in_scan(growing *g, const drawn_op *op, const drawn_wish *wish)
{
    drawn_dice d = drawn_dice_of(op->seed, 77);
    const weft_value initial = g->given[0];
    const drawn_wish next = {wish->dtype, wish->shape, wish->low, wish->high};
    const weft_value trip = weft_scan_begin(g->build->graph, op->trips);
    const weft_value carried = weft_scan_carry(initial);
    g->given[0] = carried;
    const weft_value y = made(g, op);
    weft_scan_next(carried, drawn_fit(y, &next, &d, op->is_plain));
    weft_scan_end(trip);
    g->build->n_others = 0;
    return drawn_roll(&d, 2) && weft_shape_of(y)->n_dims < WEFT_MAX_DIMS
               ? weft_scan_stack(y, (weft_dim){"trip", op->trips})
               : weft_scan_last(carried);
}

static weft_value made_in_part(growing *g, const drawn_op *op)
{
    const weft_value inside = g->given[0] = weft_recompute_begin(g->given[0]);
    weft_value y = made(g, op);
    if (y.id != 0 && y.id <= inside.id) y = weft_neg(y); /* it has made nothing */
    return weft_recompute_end(y);
}

static weft_value placed(growing *g, const drawn_op *op, weft_value y)
{
    char text[DRAWN_TEXT * 2];
    drawn_dice d = drawn_dice_of(op->seed, 99);
    if (!op->places) return y;
    drawn_place(g->graph->mesh, weft_shape_of(y), &d, false, text, sizeof text);
    return weft_place(y, text);
}

static void grow(growing *g, const drawn_op *op)
{
    wishes w;
    if (!asked(op, g->graph->sizes, &w) && !asked(op, usual_sizes(), &w)) {
        weft_graph_fail(g->build->graph, "%s is made of no sizes", op->what->name);
        return;
    }
    for (int k = 0; k < w.n; k++)
        g->given[k] = operand(g, op, &w.list[k], k);
    const bool has_state = w.n > 0 && weft_dtype_is_float(w.list[0].dtype);
    weft_value y = op->trips > 0 && has_state ? made_in_scan(g, op, &w.list[0])
                   : op->is_part && w.n > 0   ? made_in_part(g, op)
                                              : made(g, op);
    if (y.id != 0) y = placed(g, op, y);
    g->values[g->n_values++] = y;
    for (int o = 0; o < g->build->n_others && g->build->n_outputs < 4; o++)
        weft_oracle_output(g->build, g->build->others[o]);
}

/* ---- outputs ---------------------------------------------------------------------------------------- */

/* Of each value that nobody reads, a mean to which all elements matter differently. */
static weft_value loss_of(growing *g)
{
    weft_value loss = weft_constant(g->build->graph, WEFT_F64, WEFT_SCALAR, 0.0);
    for (int i = 0; i < g->n_values; i++) {
        if (g->is_read[i] || !weft_dtype_is_float(weft_dtype_of(g->values[i]))) continue;
        const weft_value wide = weft_cast(g->values[i], WEFT_F64);
        loss = weft_add(loss, weft_mean(weft_mul(wide, pattern(wide, WEFT_F64, i))));
    }
    return loss;
}

static int float_inputs(const weft_oracle_build *b, weft_value *values)
{
    int n = 0;
    for (int k = 0; k < b->n_inputs; k++)
        if (weft_dtype_is_float(weft_dtype_of(b->operands[k]))) values[n++] = b->operands[k];
    return n;
}

static weft_value squares_of(weft_value loss, const weft_value *gradients, int n)
{
    for (int k = 0; k < n; k++)
        loss = weft_add(loss, weft_mean(weft_square(weft_cast(gradients[k], WEFT_F64))));
    return loss;
}

static void derive(growing *g)
{
    weft_value by[WEFT_ORACLE_VALUES], gradients[WEFT_ORACLE_VALUES], loss = loss_of(g);
    const int n = float_inputs(g->build, by);
    if (n == 0) return;
    for (int order = 0; order < g->graph->derivatives; order++) {
        if (order > 0) loss = squares_of(loss, gradients, n);
        weft_gradients(loss, (weft_values){by, n}, gradients, WEFT_ZEROS_ALLOWED);
    }
    weft_oracle_output(g->build, loss);
    for (int k = 0; k < n && g->build->n_outputs < WEFT_ORACLE_VALUES; k++)
        weft_oracle_output(g->build, gradients[k]);
}

void drawn_build(weft_oracle_build *build)
{
    const drawn_how *how = build->argument;
    growing g = {.build = build, .graph = how->graph, .breath = how->breath};
    build->placing = &g.placing;
    for (int i = 0; i < how->graph->n_ops && weft_graph_error(build->graph)->status == WEFT_OK; i++)
        grow(&g, &how->graph->ops[i]);
    set_sizes(usual_sizes());
    build->placing = NULL;
    if (weft_graph_error(build->graph)->status != WEFT_OK) return;
    for (int i = 0; i < g.n_values; i++)
        if (!g.is_read[i] || how->breath == DRAWN_EVERY ||
            mixed(how->graph->ops[i].seed, 5) % 4 == 0)
            weft_oracle_output(build, g.values[i]);
    if (how->graph->derivatives > 0 && how->breath != DRAWN_EVERY) derive(&g);
}
