/* layers_test: what a layer is told wrongly is one sentence that names it, and leaves nothing in the graph; a layer that goes back is
 * one that goes along what is turned round.
 */
#include "weft/layers.h"

#include <math.h>
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static const weft_dim time_ = {"time", 4}, batch = {"batch", 2}, feature = {"feature", 3},
                      hidden = {"hidden", 5};

/* ---- wrong calls --------------------------------------------------------------------------------- */

typedef weft_value layer(weft_value, const weft_recurrent_options *, weft_recurrent_states *);

static void check_refused(layer *build, const weft_recurrent_options *options, const char *sentence)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(time_, batch, feature));
    const weft_value h = weft_input(g, "h", WEFT_F32, WEFT_DIMS(batch, feature));
    weft_recurrent_options asked = options != NULL ? *options : (weft_recurrent_options){0};
    weft_recurrent_states last;
    if (asked.first_h.id != 0) asked.first_h = h;
    CHECK_EQ_INT(build(x, options != NULL ? &asked : NULL, &last).id, 0);
    CHECK_EQ_INT(last.h.id, 0);
    CHECK_EQ_INT(last.c.id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, sentence);
    weft_graph_clear_error(g);
    const weft_recurrent_options right = {
        .name = "net", .over = time_, .feature = feature, .hidden = hidden};
    CHECK(build(x, &right, NULL).id != 0);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    weft_graph_destroy(&g);
}

static void test_what_is_told_wrongly_is_one_sentence(void)
{
    const weft_recurrent_options right = {
        .name = "net", .over = time_, .feature = feature, .hidden = hidden};
    weft_recurrent_options o = right;
    check_refused(weft_lstm, NULL, "lstm: options are NULL; they say name, over, feature and");
    o.name = NULL;
    check_refused(weft_gru, &o, "gru: name and hidden are to be said; hidden is hidden:5");
    o = right, o.hidden = (weft_dim){0};
    check_refused(weft_lstm, &o, "lstm: name and hidden are to be said; hidden is (none):0");
    o = right, o.over = (weft_dim){"tmie", 4};
    check_refused(weft_lstm, &o,
                  "lstm: it goes over tmie:4, but x is [time:4, batch:2, feature:3]");
    o = right, o.over.size = 5;
    check_refused(weft_lstm, &o,
                  "lstm: it goes over time:5, but x is [time:4, batch:2, feature:3]");
    o = right, o.feature = (weft_dim){"letter", 3};
    check_refused(weft_gru, &o, "gru: its feature is letter:3, but x is [time:4");
    o = right, o.hidden = (weft_dim){"batch", 5};
    check_refused(weft_gru, &o, "gru: it makes a dim batch:5, but x is [time:4, batch:2");
    o = right, o.direction = (weft_dim){"ways", 3};
    check_refused(weft_lstm, &o, "lstm: direction is ways:3; it is of size 2, there and back");
    o = right, o.direction = (weft_dim){"ways", 2}, o.is_reversed = true;
    check_refused(weft_lstm, &o,
                  "lstm: direction is ways:2 and is_reversed is set; it is of size 2");
    o = right, o.first_h = (weft_value){NULL, 1};
    check_refused(weft_lstm, &o, "[batch:2, feature:3]");
}

/* ---- experts ------------------------------------------------------------------------------------- */

static void check_experts_refused(const weft_experts_options *options, weft_dtype dtype,
                                  const char *sentence)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value x = weft_input(g, "x", dtype, WEFT_DIMS(batch, time_, feature));
    weft_experts_facts facts;
    CHECK_EQ_INT(weft_experts(x, options, &facts).id, 0);
    CHECK(facts.balance.id == 0 && facts.z.id == 0);
    CHECK(facts.dropped.id == 0 && facts.turned_away.id == 0);
    CHECK_TEXT(weft_graph_error(g)->message, sentence);
    weft_graph_destroy(&g);
}

static void test_what_experts_are_told_wrongly_is_one_sentence(void)
{
    const weft_experts_options right = {.name = "mixture",
                                        .token = time_,
                                        .feature = feature,
                                        .experts = {"experts", 4},
                                        .hidden = hidden};
    weft_experts_options o = right;
    check_experts_refused(NULL, WEFT_F32, "options are NULL; they say name, token, feat");
    check_experts_refused(&o, WEFT_I32, "layer mixture: x is i32; it is a float. weft_cast it");
    o.name = NULL;
    check_experts_refused(&o, WEFT_F32, "it has no name, which its variables are called by");
    o = right, o.experts.size = 0;
    check_experts_refused(&o, WEFT_F32, "layer mixture: it makes a dim experts:0");
    o = right, o.token.name = "tmie";
    check_experts_refused(
        &o, WEFT_F32, "its tokens are along tmie:4, but x is [batch:2, time:4, feature:3]; did");
    o = right, o.feature.size = 4;
    check_experts_refused(&o, WEFT_F32, "it mixes feature:4, but x is [batch:2, ti");
    o = right, o.hidden.name = "batch";
    check_experts_refused(&o, WEFT_F32, "it makes a dim batch:5, but x is [batch:2, ti");
    o = right, o.experts.name = "route";
    check_experts_refused(&o, WEFT_F32, "experts are called route, as the router's are");
    o = right, o.top_k = 5;
    check_experts_refused(&o, WEFT_F32, "top_k is 5 of 4 experts; take 1 to all of them");
    o = right, o.top_k = -1;
    check_experts_refused(&o, WEFT_F32, "top_k is -1 of 4 experts");
    o = right, o.capacity = -0.5;
    check_experts_refused(&o, WEFT_F32, "capacity is -0.5; it is above 0");
    o = right, o.capacity = (double)NAN;
    check_experts_refused(&o, WEFT_F32, "capacity is");
    o = right, o.is_picked = true;
    check_experts_refused(&o, WEFT_F32, "is_picked is set and is_dropless is not");
    o = right, o.chooser = WEFT_EXPERTS_CHOOSE, o.is_dropless = true;
    check_experts_refused(&o, WEFT_F32, "experts choose and is_dropless is set");
    o = right, o.normalizes = true;
    check_experts_refused(&o, WEFT_F32, "normalizes is set and top_k is 1; gates of a to");
    o.top_k = 2, o.chooser = WEFT_EXPERTS_CHOOSE;
    check_experts_refused(&o, WEFT_F32, "normalizes is set and experts choose");
    o = right, o.activation = "rleu";
    check_experts_refused(&o, WEFT_F32, "did you mean relu?");
    o = right, o.initializer = "he_nromal";
    check_experts_refused(&o, WEFT_F32, "did you mean he_normal?");
    o = right, o.chooser = (weft_chooser)2;
    check_experts_refused(&o, WEFT_F32, "chooser is 2; it is WEFT_TOKENS_CHOOSE or");
}

/* ---- back ---------------------------------------------------------------------------------------- */

static void build_back(weft_oracle_build *b)
{
    static const weft_initial weights = {WEFT_INITIAL_FORMULA, 0.5, 1.3};
    const weft_value x =
        weft_oracle_input(b, WEFT_F64, WEFT_DIMS(time_, batch, feature), -1.0, 1.0);
    weft_recurrent_options o = {.name = "a", .over = time_, .feature = feature, .hidden = hidden};
    weft_recurrent_states back, turned;
    o.weights = o.biases = &weights, o.is_reversed = true;
    const weft_value y = weft_lstm(x, &o, &back);
    o.name = "b", o.is_reversed = false;
    weft_oracle_output(b, y);
    weft_oracle_output(b, weft_flip(weft_lstm(weft_flip(x, time_), &o, &turned), time_));
    weft_oracle_output(b, back.c);
    weft_oracle_output(b, turned.c);
}

static void test_back_is_along_what_is_turned_round(void)
{
    const weft_oracle_case what = {.name = "back", .build = build_back};
    weft_oracle oracle;
    weft_oracle_result r;
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error) &&
        CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) {
        for (int i = 0; i < 4; i += 2)
            CHECK(memcmp(r.data[i], r.data[i + 1], (size_t)r.count[i] * sizeof *r.data[i]) == 0);
        weft_oracle_free(&r);
    }
    weft_oracle_close(&oracle);
}

/* ---- what is trained ------------------------------------------------------------------------------ */

/* Of a loss by batch_norm: its gain and its bias, and neither average. */
static void check_trained(bool is_fixed)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, time_, feature));
    const weft_batch_norm_options options = {
        .name = "norm", .channel = feature, .is_fixed = is_fixed};
    const weft_value loss = weft_mean(weft_square(weft_batch_norm(x, &options, NULL)));
    weft_error error = {0};
    weft_value trained[4], slope;
    if (CHECK_EQ_INT(weft_trainable(loss, trained, 4), 2)) {
        CHECK_EQ_INT(trained[0].id, weft_graph_find(g, "norm/gain", &error).id);
        CHECK_EQ_INT(trained[1].id, weft_graph_find(g, "norm/bias", &error).id);
    }
    const weft_value mean = weft_graph_find(g, "norm/mean", &error);
    CHECK_EQ_INT(weft_gradients(loss, WEFT_VALUES(mean), &slope, 0).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "does not depend, through floats, on norm/mean");
    weft_graph_destroy(&g);
}

static void test_averages_are_state_and_not_trained(void)
{
    check_trained(false);
    check_trained(true);
}

int main(void)
{
    RUN(test_what_is_told_wrongly_is_one_sentence);
    RUN(test_what_experts_are_told_wrongly_is_one_sentence);
    RUN(test_back_is_along_what_is_turned_round);
    RUN(test_averages_are_state_and_not_trained);
    return weft_test_report();
}
