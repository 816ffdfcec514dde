/* walk_test: runs that are walked at once. Each of them is what it is alone, to the bit: whatever the others do, and however many
 * there are. So draws and prices do not depend on how they are put together.
 */
#include "ops/predict/walk.h"
#include "ops/round_machine.h"
#include "ops/run/program.h"

enum { MOST = 11 };

/* Seconds that differ from run to run and from step to step, some of them 0. */
static double seconds_of(const timeline *t, uint32_t s, int c, int run)
{
    const double usual = t->usual[(size_t)t->steps[s].kind * (size_t)t->classes.n + (size_t)c];
    return usual * ((s * 7 + (uint32_t)run * 5) % 11) / 3;
}

/* context: the first of the runs. */
static void tempo(runs *r, uint32_t s, double *seconds)
{
    const int *first = r->context;
    for (int k = 0; k < r->n; k++)
        seconds[k] = seconds_of(r->t, s, k / r->n_runs, *first + k % r->n_runs);
}

/* Of runs first .. first + n - 1 the seconds. */
static void walk_some(const timeline *t, int first, int n, double *seconds)
{
    runs r;
    weft_arena *arena = weft_arena_create();
    CHECK(weft_runs_open(&r, t, n, NULL, arena) == WEFT_OK);
    r.tempo = tempo;
    r.context = &first;
    for (int again = 0; again < 2; again++) { /* a second walk finds nothing of the first */
        weft_walk(&r);
        for (int i = 0; i < n; i++)
            seconds[i] = weft_walk_seconds(&r, i);
    }
    weft_arena_destroy(&arena);
}

static void check_plan(planned *p, const char *level, int n_kinds)
{
    static const weft_predict_options none;
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = plain_machine(level);
    weft_arena *arena = weft_arena_create();
    timeline t = {.plan = p->program->plan, .error = &error};
    double at_once[MOST], alone;
    CHECK_OK(weft_walk_open(&t, model, &none, arena), error);
    CHECK_EQ_INT(t.classes.n, n_kinds);
    walk_some(&t, 0, MOST, at_once);
    for (int i = 0; i < MOST; i++) {
        walk_some(&t, i, 1, &alone);
        CHECK(alone == at_once[i] && alone > 0);
        CHECK(i == 0 || at_once[i] != at_once[0]);
    }
    weft_arena_destroy(&arena);
    weft_machine_model_destroy(&model);
}

/* Products, each of whose sums goes on beside the next ones; 401 rows on two ranks are two kinds. */
static weft_value products(planned *p, int n, int64_t batch)
{
    weft_value made = {0};
    for (int i = 0; i < n; i++) {
        char x[8], y[8];
        snprintf(x, sizeof x, "x%d", i);
        snprintf(y, sizeof y, "y%d", i);
        const weft_value next = weft_sum(WEFT_SCALAR, product(p, x, y, batch, 10 + 3 * i, 6));
        made = i == 0 ? next : weft_add(made, next);
    }
    return made;
}

static void test_runs_with_exchanges_beside_work(void)
{
    static const char *const levels[] = {"0", "0.3", "1",
                                         "0.5, \"late_seconds\": 1e-6, \"crowded_seconds\": 1e-5"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        for (int64_t batch = 400; batch <= 401; batch++) {
            planned p;
            open_planned(&p, "data:2,model:2", "batch:data,out:model");
            plan(&p, WEFT_VALUES(products(&p, 9, batch)));
            check_plan(&p, levels[i], batch == 400 ? 1 : 2);
            close_planned(&p);
        }
}

static void test_runs_with_trips(void)
{
    for (int64_t outer = 1; outer <= 6; outer += 5) {
        planned p;
        open_planned(&p, "data:2", "batch:data");
        const weft_shape out = WEFT_DIMS(((weft_dim){"in", 10}), ((weft_dim){"out", 6}));
        const weft_value x =
            input(&p, "x", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"in", 10})));
        const weft_value y =
            input(&p, "y", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"out", 6})));
        const weft_value zero = weft_constant(p.graph, WEFT_F32, out, 0);
        const weft_value turn = weft_scan_begin(p.graph, outer), held = weft_scan_carry(zero);
        const weft_value trip = weft_scan_begin(p.graph, 40), sum = weft_scan_carry(held);
        weft_scan_next(sum, weft_relu(weft_einsum(out, x, weft_add(y, weft_mean(sum)))));
        weft_scan_end(trip);
        weft_scan_next(held, weft_scan_last(sum));
        weft_scan_end(turn);
        plan(&p, WEFT_VALUES(weft_scan_last(held)));
        check_plan(&p, "0.3", 1);
        close_planned(&p);
    }
}

int main(void)
{
    RUN(test_runs_with_exchanges_beside_work);
    RUN(test_runs_with_trips);
    return weft_test_report();
}
