/* scan_calls_test: what is no scan has its sentence, with the lines; what failed leaves the body as it was. */
#include "wrong_calls.h"

#include "weft/ops.h"
#include "weft/scan.h"

static const weft_dim in = {"in", 3}, hidden = {"hidden", 4};

static void over_what_does_not_divide(weft_graph *g)
{
    weft_scan_begin_over(g, 2, small_batch);
}
static void over_twice(weft_graph *g)
{
    weft_scan_begin_over(g, 5, small_batch);
    weft_scan_begin(g, 2);
    weft_scan_begin_over(g, 2, hidden);
}
static void no_trips(weft_graph *g)
{
    weft_scan_begin(g, 0);
}
static void carry_without_a_scan(weft_graph *g)
{
    weft_scan_carry(small(g));
}
static void read_outside(weft_graph *g)
{
    const weft_value v = small(g), trip = weft_scan_begin(g, 2), y = weft_exp(v);
    weft_scan_end(trip);
    weft_add(y, v);
}
static void no_next(weft_graph *g)
{
    const weft_value v = small(g), trip = weft_scan_begin(g, 2);
    weft_scan_carry(v);
    weft_scan_end(trip);
}
static void other_dims(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_scan_next(weft_scan_carry(v), weft_broadcast_to(v, WEFT_DIMS(small_batch, in)));
}
static void other_dtype(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_scan_next(weft_scan_carry(v), weft_cast(v, WEFT_F64));
}
static void two_nexts(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    const weft_value h = weft_scan_carry(v);
    weft_scan_next(weft_scan_next(h, v), v);
}
static void other_trips(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_scan_each(v, small_batch);
}
static void update_in_it(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_assign(v, weft_exp(v));
}
static void last_too_early(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_scan_last(weft_scan_carry(v));
}
static void stack_of_nothing(weft_graph *g)
{
    weft_scan_stack(small(g), small_batch);
}
static void end_of_another(weft_graph *g)
{
    const weft_value outer = weft_scan_begin(g, 2);
    weft_scan_begin(g, 3);
    weft_scan_end(outer);
}
static void end_of_none(weft_graph *g)
{
    weft_scan_end(small(g));
}

static weft_value one(weft_graph *g)
{
    return weft_constant(g, WEFT_I32, WEFT_SCALAR, 1.0);
}
static void while_without_a_scan(weft_graph *g)
{
    weft_scan_while(one(g));
}
static void while_with_dims(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_scan_while(weft_less(v, v));
}
static void if_of_floats(weft_graph *g)
{
    const weft_value v = small(g);
    weft_scan_begin(g, 2);
    weft_scan_if(weft_sum(WEFT_SCALAR, v));
}
static void two_conditions(weft_graph *g)
{
    const weft_value c = one(g);
    weft_scan_begin(g, 2);
    weft_scan_while(c);
    weft_scan_if(c);
}
static void cond_with_dims(weft_graph *g)
{
    const weft_value v = small(g);
    weft_cond_begin(weft_less(v, v));
}
static void update_in_cond(weft_graph *g)
{
    const weft_value v = small(g);
    weft_cond_begin(one(g));
    weft_assign(v, weft_exp(v));
}
static void else_of_a_scan(weft_graph *g)
{
    weft_cond_else(weft_scan_begin(g, 1));
}
static void cond_of_no_body(weft_graph *g)
{
    const weft_value v = small(g);
    weft_cond(v, v);
}
static void cond_of_other_dims(weft_graph *g)
{
    const weft_value v = small(g), yes = weft_cond_begin(one(g)), a = weft_exp(v);
    const weft_value no = weft_cond_else(yes), b = weft_sum(WEFT_SCALAR, v);
    weft_cond_end(no);
    weft_cond(a, b);
}
static void cond_of_two_conditions(weft_graph *g)
{
    const weft_value v = small(g), yes = weft_cond_begin(one(g)), a = weft_exp(v);
    weft_cond_end(yes);
    const weft_value other = weft_cond_begin(one(g)), b = weft_exp(v);
    weft_cond_end(other);
    weft_cond(a, b);
}

static void test_wrong_calls_have_their_sentence(void)
{
    static const wrong_call wrongs[] = {
        {no_trips, "0 trips; there are from 1 to 1048576"},
        {over_what_does_not_divide, "batch has 5 elements and there are 2 trips"},
        {over_twice, "the body is of a scan over batch already"},
        {carry_without_a_scan, "no scan is open; begin one with weft_scan_begin"},
        {read_outside, "the result of exp at scan_calls_test.c:"},
        {no_next, "has nothing to be in the next trip; say it with weft_scan_next"},
        {other_dims,
         "what is carried is [batch:5] and in the next trip it would be [batch:5, in:3]"},
        {other_dtype, "f32"},
        {two_nexts, "has a next value already"},
        {other_trips, "batch has 5 elements and the scan has 2 trips"},
        {update_in_it, "nothing is updated in a scan"},
        {last_too_early, "the scan has not ended; call weft_scan_end before"},
        {stack_of_nothing, "x is of no scan's body"},
        {end_of_another, "the innermost open scan is that of scan_begin at scan_calls_test.c:"},
        {end_of_none, "no scan is open"},
        {while_without_a_scan, "no scan is open; begin one with weft_scan_begin"},
        {while_with_dims, "the condition is [batch:5], and a trip is made on all ranks or on none"},
        {if_of_floats, "the condition is f32, and conditions are i32"},
        {two_conditions, "the scan has the condition of scan_while at scan_calls_test.c:"},
        {cond_with_dims, "the condition is [batch:5], and a trip is made on all ranks or on none"},
        {update_in_cond, "nothing is updated in a scan"},
        {else_of_a_scan, "no body of a condition begins with the value"},
        {cond_of_no_body, "neither value is of a condition's body that has ended"},
        {cond_of_other_dims, "of the first body comes f32[batch:5] and of the other f32[]"},
        {cond_of_two_conditions, "the values are of bodies of two conditions"},
    };
    check_wrong_calls(wrongs, sizeof wrongs / sizeof *wrongs, "scan_calls_test.c");
}

/* What fails in a body leaves the body as it was before the failed call. */
static void test_a_scan_goes_on_after_an_error(void)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value v = small(g), trip = weft_scan_begin(g, 2), h = weft_scan_carry(v);
    weft_scan_next(h, weft_cast(v, WEFT_F64));
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
    weft_graph_clear_error(g);
    weft_scan_next(h, weft_exp(h));
    weft_scan_end(trip);
    weft_scan_last(h);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    weft_graph_destroy(&g);
}

static void test_a_body_is_not_compiled(void)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value v = small(g), trip = weft_scan_begin(g, 2), y = weft_exp(v);
    check_not_compiled(v, "has not ended; call weft_scan_end");
    weft_scan_end(trip);
    check_not_compiled(y, "is of a scan's body, another in each trip");
    weft_graph_destroy(&g);
}

int main(void)
{
    RUN(test_wrong_calls_have_their_sentence);
    RUN(test_a_scan_goes_on_after_an_error);
    RUN(test_a_body_is_not_compiled);
    return weft_test_report();
}
