/* prices_test: what exchanges really cost, by hand: what is waited for, what holds up others, what is hidden; trips; late ranks. And by
 * another way: a link that takes no time.
 */
#include <stdlib.h>

#include "ops/round_machine.h"

enum { ROOM = 8 };

static int price(const planned *p, weft_machine_model *model, const weft_predict_options *options,
                 weft_priced_exchange prices[ROOM])
{
    weft_error error = WEFT_NO_ERROR;
    int n = -1;
    CHECK_OK(weft_plan_prices(p->program, model, options, prices, ROOM, &n, &error), error);
    weft_machine_model_destroy(&model);
    return n;
}

static void test_what_is_waited_for_is_the_price(void)
{
    weft_priced_exchange prices[ROOM];
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    CHECK_EQ_INT(price(&p, plain_machine("0"), NULL, prices), 1);
    CHECK_CLOSE(prices[0].price, 240e-6, 1e-12);
    CHECK_CLOSE(prices[0].seconds, 240e-6, 1e-12);
    CHECK(prices[0].n_steps == 1 && prices[0].times == 1);
    close_planned(&p);
}

/* The exchange of 240 us goes on beside 0.2 s of work. What it takes of the cores is all that it costs. */
static void test_what_is_hidden_costs_the_cores_that_it_takes(void)
{
    static const struct {
        const char *cpu;
        double price;
    } cases[] = {{"0", 0}, {"0.25", 60e-6}, {"1", 240e-6}};
    for (int c = 0; c < 3; c++) {
        weft_priced_exchange prices[ROOM];
        planned p;
        plan_beside(&p);
        CHECK_EQ_INT(price(&p, plain_machine(cases[c].cpu), NULL, prices), 1);
        CHECK_CLOSE(prices[0].price, cases[c].price, 1e-9);
        CHECK_CLOSE(prices[0].seconds, 240e-6, 1e-12);
        close_planned(&p);
    }
}

/* Rank 2 comes later whatever the exchange takes. */
static void test_late_ranks_are_met_all_the_same(void)
{
    const weft_predict_options slow = {.slow_rank = 2, .slow_by = 3};
    weft_priced_exchange prices[ROOM];
    planned p;
    open_planned(&p, "data:4", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 16, 10, 6)));
    CHECK_EQ_INT(price(&p, plain_machine("0"), &slow, prices), 1);
    CHECK_CLOSE(prices[0].price, 360e-6, 1e-12);
    close_planned(&p);
}

/* 1,000 trips, of which few are walked through. */
static void test_trips_count(void)
{
    weft_priced_exchange prices[ROOM];
    planned p;
    open_planned(&p, "data:2", "batch:data");
    const weft_shape made = WEFT_DIMS(((weft_dim){"in", 10}), ((weft_dim){"out", 6}));
    const weft_value x =
        input(&p, "x", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"in", 10})));
    const weft_value y =
        input(&p, "y", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"out", 6})));
    const weft_value zero = weft_constant(p.graph, WEFT_F32, made, 0);
    const weft_value trip = weft_scan_begin(p.graph, 1000), sum = weft_scan_carry(zero);
    weft_scan_next(sum, weft_relu(weft_einsum(made, x, weft_add(y, weft_mean(sum)))));
    weft_scan_end(trip);
    plan(&p, WEFT_VALUES(weft_scan_last(sum)));
    CHECK_EQ_INT(price(&p, plain_machine("0"), NULL, prices), 1);
    CHECK(prices[0].times == 1000);
    CHECK_CLOSE(prices[0].price, 1000 * 240e-6, 1e-8);
    close_planned(&p);
}

/* One call in a loop of the program is one group, and another call another. No exchange is left out. */
static void test_exchanges_of_one_call_are_one_group(void)
{
    static const char *const x[] = {"x1", "x2", "x3"}, *const y[] = {"y1", "y2", "y3"};
    weft_priced_exchange prices[ROOM];
    weft_value made[4];
    planned p;
    open_planned(&p, "data:2", "batch:data");
    for (int i = 0; i < 3; i++)
        made[i] = weft_relu(product(&p, x[i], y[i], 8, 10, 6));
    made[3] = weft_square(product(&p, "u", "v", 8, 10, 600));
    plan(&p, (weft_values){made, 4});
    const int n = price(&p, plain_machine("0"), NULL, prices);
    double seconds = 0;
    for (int i = 0; i < n && i < ROOM; i++)
        seconds += prices[i].seconds;
    int n_steps = 0;
    for (int i = 0; i < n && i < ROOM; i++) {
        n_steps += prices[i].n_steps;
        CHECK(i == 0 || prices[i - 1].price >= prices[i].price);
    }
    const weft_prediction t = predict(&p, plain_machine("0"), NULL);
    CHECK(n >= 2 && n < n_steps);
    CHECK_CLOSE(seconds, t.exchange_seconds, 1e-12);
    close_planned(&p);
}

/* The links of one axis are infinitely fast: as if the only exchanges over them took no time. */
static void test_prices_are_those_of_a_link_without_time(void)
{
    static const char far[] = ", {\"name\": \"far\", \"ranks\": 0, \"latency_seconds\": %s, "
                              "\"bytes_per_second\": %s, \"cpu\": 0.5}";
    weft_priced_exchange prices[ROOM];
    char slow[200], none[200];
    snprintf(slow, sizeof slow, far, "1e-5", "1e6");
    snprintf(none, sizeof none, far, "0", "1e15");
    planned p;
    open_planned(&p, "data:2,model:2", "batch:data,in:model");
    const weft_dim batch = {"batch", 40}, in = {"in", 12}, out = {"out", 7};
    const weft_value x = input(&p, "x", WEFT_DIMS(batch, in));
    const weft_value w = input(&p, "w", WEFT_DIMS(in, out));
    const weft_value made = weft_relu(weft_einsum(WEFT_DIMS(batch, out), x, w));
    const weft_value back = weft_einsum(WEFT_DIMS(in, out), x, made);
    plan(&p, WEFT_VALUES(back));
    const int n = price(&p, machine("", "2", "0.25", slow, ""), NULL, prices);
    const double with = predict(&p, machine("", "2", "0.25", slow, ""), NULL).seconds;
    const double without = predict(&p, machine("", "2", "0.25", none, ""), NULL).seconds;
    int of_data = 0;
    for (int i = 0; i < n && i < ROOM; i++) {
        weft_planned_step step;
        weft_error error = WEFT_NO_ERROR;
        CHECK_OK(weft_plan_step_at(p.program, prices[i].first, 0, &step, &error), error);
        if (step.axes != 1) continue;
        of_data++;
        CHECK_CLOSE(prices[i].price, with - without, 1e-9);
    }
    CHECK_EQ_INT(of_data, 1);
    CHECK(n >= 2 && with > without);
    close_planned(&p);
}

static void test_room_is_kept(void)
{
    weft_error error = WEFT_NO_ERROR;
    planned p;
    int n = -1;
    plan_beside(&p);
    weft_machine_model *model = plain_machine("0");
    CHECK_OK(weft_plan_prices(p.program, model, NULL, NULL, 0, &n, &error), error);
    CHECK_EQ_INT(n, 1);
    CHECK_EQ_INT(weft_plan_prices(p.program, model, NULL, NULL, 3, &n, &error), WEFT_USAGE);
    weft_machine_model_destroy(&model);
    close_planned(&p);
}

int main(void)
{
    RUN(test_what_is_waited_for_is_the_price);
    RUN(test_what_is_hidden_costs_the_cores_that_it_takes);
    RUN(test_late_ranks_are_met_all_the_same);
    RUN(test_trips_count);
    RUN(test_exchanges_of_one_call_are_one_group);
    RUN(test_prices_are_those_of_a_link_without_time);
    RUN(test_room_is_kept);
    return weft_test_report();
}
