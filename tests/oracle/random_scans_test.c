/* RANKS: 2 4 */
/* random_scans_test: random programs of scans, conditions and parts in each other, against the same written down and masked, with
 * gradients, on one rank and on a mesh; what fails is made smaller before it is told.
 *
 *     random_scans_test [SEED]    only the program of that seed
 *     random_scans_test --many N  the seeds 1 to N
 */
#include "oracle.h"
#include "seeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "weft/autodiff.h"
#include "weft/scan.h"

enum { MOST = 20, MOST_DEPTH = 3, MOST_TRIPS = 3, N_INPUTS = 3 };
static const weft_dim a = {"a", 5}, b = {"b", 4}, to = {"to", 4};

/* ---- programs -------------------------------------------------------------------------------------- */

typedef enum kind { APPLY, SCAN, WHILE, IF, COND, PART, END } kind;

/* What is done to which of the values so far; of a region, how often at most. */
typedef struct statement {
    kind kind;
    int op, x, y, trips;
} statement;

typedef struct text {
    int n;
    statement list[MOST];
} text;

typedef struct dice {
    uint64_t state;
} dice;

static int roll(dice *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

static void add(text *t, dice *d, kind kind)
{
    t->list[t->n++] =
        (statement){kind, roll(d, 1000), roll(d, 1000), roll(d, 1000), 1 + roll(d, MOST_TRIPS)};
}

static text grow(uint64_t seed)
{
    dice d = {seed * 2 + 1};
    text t = {0};
    int depth = 0;
    for (const int n = 4 + roll(&d, MOST - 4 - MOST_DEPTH); t.n + depth < n;) {
        const int which = roll(&d, 10);
        if (which < 4 && depth < MOST_DEPTH) {
            add(&t, &d, (kind)(SCAN + roll(&d, END - SCAN)));
            depth++;
        } else if (which < 6 && depth > 0) {
            add(&t, &d, END);
            depth--;
        } else {
            add(&t, &d, APPLY);
        }
    }
    for (; depth > 0; depth--)
        add(&t, &d, END);
    return t;
}

static void print(const text *t, char *to_, size_t bytes)
{
    static const char *const names[] = {"op", "scan(", "while(", "if(", "cond(", "part(", ")"};
    size_t at = 0;
    for (int i = 0; i < t->n && at < bytes; i++)
        at += (size_t)snprintf(to_ + at, bytes - at, "%s%s %d %d %d %d", i > 0 ? "; " : "",
                               names[t->list[i].kind], t->list[i].op, t->list[i].x, t->list[i].y,
                               t->list[i].trips);
}

/* ---- as a graph ------------------------------------------------------------------------------------ */

typedef struct scope {
    int n;
    weft_value values[2 * MOST + 8];
} scope;

typedef struct weaver {
    const text *text;
    weft_graph *graph;
    weft_value w; /* [b, to] */
    bool writes;  /* every trip down, masked */
} weaver;

static void push(scope *s, weft_value value)
{
    s->values[s->n++] = value;
}
static weft_value top(const scope *s)
{
    return s->values[s->n - 1];
}

static weft_value total(weft_value x)
{
    return weft_sum(WEFT_SCALAR, x);
}

static weft_value number(const weaver *w, double value)
{
    return weft_constant(w->graph, WEFT_F64, WEFT_SCALAR, value);
}

static weft_value add_up(const weaver *w, weft_value x, weft_value y)
{
    (void)w;
    return weft_tanh(weft_add(x, y));
}
static weft_value multiply(const weaver *w, weft_value x, weft_value y)
{
    (void)w;
    return weft_mul(x, weft_sin(y));
}
static weft_value contract(const weaver *w, weft_value x, weft_value y)
{
    (void)y;
    return weft_rename(weft_einsum(WEFT_DIMS(a, to), x, w->w), to, b);
}
static weft_value add_mean(const weaver *w, weft_value x, weft_value y)
{
    (void)w;
    return weft_add(x, weft_mean_over(WEFT_DIMS(b), y));
}
static weft_value weigh(const weaver *w, weft_value x, weft_value y)
{
    (void)w;
    return weft_mul(weft_softmax(x, b), y);
}
static weft_value subtract_sum(const weaver *w, weft_value x, weft_value y)
{
    (void)w;
    return weft_sub(weft_scale(x, 0.7), weft_sum(WEFT_DIMS(a), weft_scale(y, 0.2)));
}
static weft_value logarithm(const weaver *w, weft_value x, weft_value y)
{
    (void)w;
    return weft_log(weft_shift(weft_square(weft_add(x, y)), 0.2));
}

static weft_value apply(const weaver *w, const statement *one, const scope *s)
{
    static weft_value (*const ops[])(const weaver *, weft_value, weft_value) = {
        add_up, multiply, contract, add_mean, weigh, subtract_sum, logarithm};
    return ops[(size_t)one->op % (sizeof ops / sizeof *ops)](w, s->values[one->x % s->n],
                                                             s->values[one->y % s->n]);
}

/* Of a value with dims, as far as its numbers say: true for about half of all. */
static weft_value is_so(const weaver *w, const statement *one, weft_value x)
{
    return weft_less(number(w, -0.5 + (one->op % 97) / 97.0),
                     weft_sub(weft_mean(weft_square(x)), weft_mean(x)));
}

static int run(const weaver *w, int at, scope *s);

static int part(const weaver *w, int at, scope *s)
{
    const statement *one = &w->text->list[at];
    const weft_value x = s->values[one->x % s->n];
    scope inner = *s;
    push(&inner, w->writes ? x : weft_recompute_begin(x));
    const int end = run(w, at + 1, &inner);
    const weft_value y = weft_tanh(top(&inner));
    push(s, w->writes ? y : weft_recompute_end(y));
    return end;
}

static int cond(const weaver *w, int at, scope *s)
{
    const statement *one = &w->text->list[at];
    const weft_value x = s->values[one->x % s->n], flag = is_so(w, one, x);
    scope inner = *s;
    const weft_value yes = w->writes ? flag : weft_cond_begin(flag);
    const int end = run(w, at + 1, &inner);
    const weft_value y = weft_tanh(top(&inner)), no = w->writes ? yes : weft_cond_else(yes);
    const weft_value z = weft_scale(s->values[one->y % s->n], 0.5);
    if (!w->writes) weft_cond_end(no);
    push(s, w->writes ? weft_where(flag, y, z) : weft_cond(y, z));
    return end;
}

static weft_value weight_of(const weaver *w, weft_dim trips)
{
    return weft_add(weft_scale(weft_cast(weft_iota(w->graph, WEFT_I32, trips), WEFT_F64), 0.3),
                    number(w, 0.4));
}

static int scan(const weaver *w, int at, scope *s)
{
    char name[16];
    const statement *one = &w->text->list[at];
    snprintf(name, sizeof name, "t%d", at);
    const weft_dim dim = {name, one->trips};
    const weft_value weight = weight_of(w, dim);
    const weft_value xs = weft_mul(s->values[one->x % s->n], weight);
    const weft_value trip = weft_scan_begin(w->graph, one->trips);
    const weft_value h = weft_scan_carry(s->values[one->y % s->n]), x = weft_scan_each(xs, dim);
    if (one->kind == WHILE) weft_scan_while(is_so(w, one, h));
    if (one->kind == IF) weft_scan_if(is_so(w, one, weft_add(h, x)));
    scope inner = *s;
    push(&inner, h);
    push(&inner, x);
    const int end = run(w, at + 1, &inner);
    const weft_value next = weft_tanh(weft_add(top(&inner), weft_scale(h, 0.3)));
    weft_scan_next(h, next);
    weft_scan_end(trip);
    push(s, weft_scan_last(h));
    push(s, weft_sum(WEFT_DIMS(a, b), weft_mul(weft_scan_stack(next, dim), weight)));
    return end;
}

static int scan_written(const weaver *w, int at, scope *s)
{
    const statement *one = &w->text->list[at];
    weft_value h = s->values[one->y % s->n], sum = {0}, on = {0};
    int end = at;
    for (int t = 0; t < one->trips; t++) {
        const double weight = 0.3 * t + 0.4;
        const weft_value x = weft_scale(s->values[one->x % s->n], weight);
        const weft_value is = one->kind == WHILE ? is_so(w, one, h)
                              : one->kind == IF  ? is_so(w, one, weft_add(h, x))
                                                : weft_constant(w->graph, WEFT_I32, WEFT_SCALAR, 1);
        on = t == 0 || one->kind == IF ? is : weft_logical_and(on, is);
        scope inner = *s;
        push(&inner, h);
        push(&inner, x);
        end = run(w, at + 1, &inner);
        const weft_value next = weft_tanh(weft_add(top(&inner), weft_scale(h, 0.3)));
        const weft_value part_of_sum = weft_scale(weft_where(on, next, number(w, 0)), weight);
        sum = t == 0 ? part_of_sum : weft_add(sum, part_of_sum);
        h = weft_where(on, next, h);
    }
    push(s, h);
    push(s, sum);
    return end;
}

/* From a statement to the end of the region that it is in, whose place is returned. */
static int run(const weaver *w, int at, scope *s)
{
    for (; at < w->text->n && w->text->list[at].kind != END; at++) {
        const kind kind = w->text->list[at].kind;
        if (kind == APPLY)
            push(s, apply(w, &w->text->list[at], s));
        else if (kind == PART)
            at = part(w, at, s);
        else if (kind == COND)
            at = cond(w, at, s);
        else
            at = (w->writes ? scan_written : scan)(w, at, s);
    }
    return at;
}

/* Pairs: as it is, and written down. */
static void build(weft_oracle_build *g)
{
    weft_value inputs[N_INPUTS] = {weft_oracle_input(g, WEFT_F64, WEFT_DIMS(b, to), -0.6, 0.6)};
    weft_value out[2][1 + N_INPUTS];
    for (int i = 1; i < N_INPUTS; i++)
        inputs[i] = weft_oracle_input(g, WEFT_F64, WEFT_DIMS(a, b), -1.0, 1.0);
    for (int k = 0; k < 2; k++) {
        const weaver w = {g->argument, g->graph, inputs[0], k == 1};
        scope s = {2, {inputs[1], inputs[2]}};
        run(&w, 0, &s);
        out[k][0] = top(&s);
        const weft_value loss =
            weft_add(total(weft_mul(top(&s), inputs[1])), total(weft_square(s.values[s.n / 2])));
        weft_gradients(loss, (weft_values){inputs, N_INPUTS}, &out[k][1], WEFT_ZEROS_ALLOWED);
    }
    for (int i = 0; i < 1 + N_INPUTS; i++) {
        weft_oracle_output(g, out[0][i]);
        weft_oracle_output(g, out[1][i]);
    }
}

/* ---- what fails, made smaller ----------------------------------------------------------------------- */

typedef bool (*failing)(const text *t, void *argument);

/* Where the region that begins there ends; itself of an op. */
static int end_of(const text *t, int at)
{
    int depth = 0;
    do {
        depth += (t->list[at].kind != APPLY && t->list[at].kind != END) - (t->list[at].kind == END);
    } while (depth > 0 && ++at < t->n);
    return at;
}

static void drop(text *t, int from, int n)
{
    memmove(t->list + from, t->list + from + n, (size_t)(t->n - from - n) * sizeof *t->list);
    t->n -= n;
}

/* Without a statement and what is in it; without the region alone; with fewer trips; simpler. */
static bool smaller(const text *t, int at, int way, text *made)
{
    const int end = end_of(t, at);
    const bool is_region = t->list[at].kind != APPLY;
    *made = *t;
    if (t->list[at].kind == END) return false;
    if (way == 0) {
        drop(made, at, end - at + 1);
    } else if (way == 1 && is_region) {
        drop(made, end, 1);
        drop(made, at, 1);
    } else if (way == 2 && is_region && t->list[at].trips > 1) {
        made->list[at].trips--;
    } else if (way == 3 && is_region && t->list[at].kind != SCAN) {
        made->list[at].kind = SCAN;
    } else {
        return false;
    }
    return true;
}

static text shrink(text t, failing fails, void *argument)
{
    for (bool is_less = true; is_less;) {
        is_less = false;
        for (int at = 0; at < t.n; at++)
            for (int way = 0; way < 4 && at < t.n; way++) {
                text made;
                if (!smaller(&t, at, way, &made) || !fails(&made, argument)) continue;
                t = made;
                is_less = true;
            }
    }
    return t;
}

static bool has_condition_in_scan(const text *t, void *argument)
{
    (void)argument;
    for (int i = 0; i < t->n; i++)
        for (int k = i + 1; t->list[i].kind == SCAN && k < end_of(t, i); k++)
            if (t->list[k].kind == WHILE) return true;
    return false;
}

static void test_what_fails_is_made_as_small_as_it_can_be(void)
{
    int n_shrunk = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        const text t = grow(seed);
        if (!has_condition_in_scan(&t, NULL)) continue;
        const text least = shrink(t, has_condition_in_scan, NULL);
        CHECK_EQ_INT(least.n, 4);
        CHECK(least.list[0].kind == SCAN && least.list[1].kind == WHILE);
        CHECK(least.list[0].trips == 1 && least.list[1].trips == 1);
        n_shrunk++;
    }
    CHECK(n_shrunk > 10);
}

/* ---- the comparison ---------------------------------------------------------------------------------- */

static weft_oracle oracle;

/* On which mesh, and by which rules. */
typedef struct where {
    weft_mesh *mesh;
    const char *layout;
    char found[700];
} where;

static bool are_pairs(const weft_oracle_result *r, char *found, size_t bytes)
{
    for (int i = 0; i + 1 < r->n_outputs; i += 2) {
        double largest = 1.0, apart = 0.0;
        for (int64_t k = 0; k < r->count[i]; k++) {
            const double off = fabs(r->data[i][k] - r->data[i + 1][k]);
            largest = fmax(largest, fabs(r->data[i + 1][k]));
            if (!(off <= apart)) apart = off; /* keeps a NaN */
        }
        if (apart <= 1e-11 * largest) continue;
        snprintf(found, bytes, "output %d is %g of %g from what is written down", i / 2, apart,
                 largest);
        return false;
    }
    return true;
}

static bool fails(const text *t, void *argument)
{
    where *here = argument;
    const weft_compile_options once = {.unroll = 1};
    const weft_oracle_case plain = {.build = build, .argument = t, .options = &once};
    const weft_oracle_case placed = {
        .build = build, .argument = t, .options = t->n % 2 ? &once : NULL, .layout = here->layout};
    weft_oracle_result alone = {0}, result = {0};
    weft_error error = {0};
    bool same = weft_oracle_run(oracle.alone, &plain, NULL, &alone, &error) == WEFT_OK &&
                are_pairs(&alone, here->found, sizeof here->found) &&
                weft_oracle_run(here->mesh, &placed, NULL, &result, &error) == WEFT_OK;
    same = same && weft_oracle_same(&alone, &result, 1e-10, here->found, sizeof here->found);
    if (error.status != WEFT_OK) snprintf(here->found, sizeof here->found, "%s", error.message);
    weft_oracle_free(&alone);
    weft_oracle_free(&result);
    return !same;
}

static void check_seed(uint64_t seed)
{
    static const char *const layouts[] = {"a:data?", "b:data?,to:model?", "a:data?,b:model?",
                                          "to:data?"};
    dice d = {seed ^ 0x5bd1e995u};
    char program[1600], says[2600];
    where here = {.mesh = oracle.meshes[roll(&d, oracle.n_meshes)], .layout = layouts[roll(&d, 4)]};
    const text t = grow(seed);
    if (!fails(&t, &here)) {
        weft_test_check(true, __FILE__, __LINE__, "");
        return;
    }
    const text least = shrink(t, fails, &here);
    (void)fails(&least, &here);
    print(&least, program, sizeof program);
    snprintf(says, sizeof says, "seed %llu on %s, layout \"%s\": %s: %s", (unsigned long long)seed,
             weft_mesh_text(here.mesh), here.layout, here.found, program);
    weft_test_check(false, __FILE__, __LINE__, says);
}

static seed_range seeds;

static void test_random_regions_are_what_is_written_down(void)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        check_seed(seed);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:4", "model:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        const int quick = weft_test_cases(oracle.world.n_processes > 1 ? 40 : 400);
        if (!seeds_of(argc, argv, (uint64_t)quick, &seeds)) return 2;
        RUN(test_what_fails_is_made_as_small_as_it_can_be);
        RUN(test_random_regions_are_what_is_written_down);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
