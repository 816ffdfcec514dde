/* checkpoint_test: what is saved on one mesh and layout comes back, bit for bit, on every other. */
/* RANKS: 2 3 4 */
#include "checkpoint_places.h"

/* Slots with dims of their own. */
static weft_value by_adafactor(weft_value loss)
{
    return weft_adafactor(loss, &(weft_optimizer_options){.rate = 0.05, .clip = 1.0});
}

/* A rule for each variable, a schedule, and averages of all. */
static weft_value by_groups(weft_value loss)
{
    static const weft_optimizer_group groups[] = {
        {"w1", .optimizer = "muon"}, {"b1", .optimizer = "adadelta"}, {"w2", .optimizer = "lamb"}};
    weft_value rate = weft_schedule_rate(loss.graph, WEFT_F64, "inverse_sqrt",
                                         &(weft_schedule_options){.rate = 0.05, .warmup = 2});
    const weft_optimizer_options options = {.rate_value = rate,
                                            .momentum = 0.5, /* rmsprop: one slot more */
                                            .clip = 0.1,
                                            .clip_by = "adaptive",
                                            .groups = {groups, 3}};
    return weft_average(weft_rmsprop(loss, &options), &(weft_average_options){.decay = 0.7});
}

static const net_options f64 = {.dtype = WEFT_F64}, f32 = {.dtype = WEFT_F32},
                         factored = {.dtype = WEFT_F64, .update = by_adafactor},
                         grouped = {.dtype = WEFT_F64, .update = by_groups};

static void check_restored(const net_options *o, const place *where, const char *directory,
                           const char *expected, int64_t bytes)
{
    char values[NET_BYTES];
    weft_error error = {0};
    weft_checkpoint_state state = {0};
    net n;
    if (CHECK_OK(net_open(where, o, &n, &error), error) &&
        CHECK_OK(net_restore(&n, directory, WEFT_NEWEST, &state, &error), error)) {
        CHECK_EQ_INT(net_read(&n, values), bytes);
        CHECK(memcmp(values, expected, (size_t)bytes) == 0);
        CHECK_EQ_INT(state.step, 3);
        CHECK_EQ_INT(state.sample, 3 * BATCH);
        CHECK(state.seed == UINT64_MAX - 5);
        CHECK_EQ_INT(weft_runs(n.program), 3);
    }
    net_close(&n);
}

/* name: of the folders. Under sanitizers each place is restored from some others only: pairs walk the same code. */
static void restore_everywhere(const net_options *o, const char *name)
{
    const int every = weft_test_stride(4);
    for (int from = 0; from < n_places; from++) {
        char values[NET_BYTES], directory[128];
        weft_error error = {0};
        net n;
        snprintf(directory, sizeof directory, "%s%d", scratch(name), from);
        if (!CHECK_OK(net_open(&places[from], o, &n, &error), error)) return;
        CHECK_OK(net_run(&n, 1, 3, NULL, &error), error);
        const int64_t bytes = net_read(&n, values);
        CHECK_OK(net_save(&n, directory, &error), error);
        net_close(&n);
        for (int next = 1; next <= n_places; next += every)
            check_restored(o, &places[(from + next) % n_places], directory, values, bytes);
    }
}

static void run_to_6(const net_options *o, const place *where, const char *directory,
                     double *losses, char *values)
{
    weft_error error = {0};
    weft_checkpoint_state state = {0};
    net n;
    if (CHECK_OK(net_open(where, o, &n, &error), error)) {
        if (directory) CHECK_OK(net_restore(&n, directory, WEFT_NEWEST, &state, &error), error);
        CHECK_OK(net_run(&n, (int)state.step + 1, 6, losses, &error), error);
        net_read(&n, values);
    }
    net_close(&n);
}

static void resume_everywhere(const net_options *o, const char *name)
{
    for (int from = 0; from < n_places; from++) {
        char through[NET_BYTES], resumed[NET_BYTES], directory[128];
        double losses[6] = {0}, again[6] = {0};
        weft_error error = {0};
        net n;
        snprintf(directory, sizeof directory, "%s%d", scratch(name), from);
        run_to_6(o, &places[from], NULL, losses, through);
        if (!CHECK_OK(net_open(&places[from], o, &n, &error), error)) return;
        CHECK_OK(net_run(&n, 1, 3, NULL, &error), error);
        CHECK_OK(net_save(&n, directory, &error), error);
        net_close(&n);
        run_to_6(o, &places[from], directory, again, resumed);
        CHECK(memcmp(through, resumed, sizeof through) == 0);
        CHECK(memcmp(&losses[3], &again[3], 3 * sizeof *losses) == 0);
        run_to_6(o, &places[(from + 1) % n_places], directory, again, resumed);
        for (int i = 3; i < 6; i++)
            CHECK_CLOSE(losses[i], again[i], 1e-10);
    }
}

static void test_every_place_restores_every_place(void)
{
    restore_everywhere(&f64, "pair");
}

static void test_resume_is_as_if_never_stopped(void)
{
    resume_everywhere(&f64, "resume");
}

static void test_slots_with_dims_of_their_own_come_back_too(void)
{
    restore_everywhere(&factored, "factored_pair");
    resume_everywhere(&factored, "factored_resume");
    char directory[128];
    weft_error error = {0};
    weft_stored *stored = NULL;
    int n_slots = 0;
    snprintf(directory, sizeof directory, "%s0", scratch("factored_resume"));
    if (CHECK_OK(weft_stored_open(directory, &stored, &error), error))
        for (int i = 0; i < weft_stored_n_tensors(stored); i++)
            n_slots += weft_stored_tensor_at(stored, i)->is_slot;
    CHECK_EQ_INT(n_slots, 2 + 1 + 2 + 1); /* rows and columns of w1, of w2; b1 and the gain whole */
    weft_stored_close(&stored);
}

static void test_groups_and_averages_come_back_by_name(void)
{
    static const char *const slots[] = {"w1/momentum",
                                        "w1/average",
                                        "b1/v",
                                        "b1/steps",
                                        "b1/average",
                                        "w2/m",
                                        "w2/v",
                                        "w2/average",
                                        "odd/name.1:0-x/v",
                                        "odd/name.1:0-x/momentum",
                                        "odd/name.1:0-x/average"};
    enum { n_slots = sizeof slots / sizeof slots[0] };
    restore_everywhere(&grouped, "grouped_pair");
    resume_everywhere(&grouped, "grouped_resume");
    char directory[128];
    weft_error error = {0};
    weft_stored *stored = NULL;
    int n_found = 0, n_all = 0;
    snprintf(directory, sizeof directory, "%s0", scratch("grouped_resume"));
    if (CHECK_OK(weft_stored_open(directory, &stored, &error), error))
        for (int i = 0; i < weft_stored_n_tensors(stored); i++) {
            const weft_stored_tensor *t = weft_stored_tensor_at(stored, i);
            n_all += t->is_slot;
            for (int k = 0; k < n_slots; k++)
                n_found += t->is_slot && strcmp(t->name, slots[k]) == 0;
        }
    CHECK_EQ_INT(n_found, n_slots);
    CHECK_EQ_INT(n_all, n_slots);
    weft_stored_close(&stored);
}

static void test_dtypes_convert(void)
{
    char first[NET_BYTES], second[NET_BYTES];
    char directory[2][128];
    weft_error error = {0};
    weft_checkpoint_state state;
    net n;
    snprintf(directory[0], 128, "%s", scratch("narrow"));
    snprintf(directory[1], 128, "%s", scratch("wide"));
    if (CHECK_OK(net_open(&places[0], &f32, &n, &error), error)) {
        CHECK_OK(net_run(&n, 1, 2, NULL, &error), error);
        net_read(&n, first);
        CHECK_OK(net_save(&n, directory[0], &error), error);
    }
    net_close(&n);
    if (CHECK_OK(net_open(&places[n_places - 1], &f64, &n, &error), error)) {
        CHECK_OK(net_restore(&n, directory[0], 2, &state, &error), error);
        CHECK_OK(net_save(&n, directory[1], &error), error);
    }
    net_close(&n);
    if (CHECK_OK(net_open(&places[0], &f32, &n, &error), error)) {
        CHECK_OK(net_restore(&n, directory[1], 2, &state, &error), error);
        net_read(&n, second);
        CHECK(memcmp(first, second, sizeof first) == 0);
    }
    net_close(&n);
}

static void check_does_not_fit(const net_options *options, const char *directory,
                               const char *const words[3])
{
    char before[NET_BYTES], after[NET_BYTES];
    weft_error error = {0};
    weft_checkpoint_state state = {.step = 9};
    net n;
    if (CHECK_OK(net_open(&places[0], options, &n, &error), error)) {
        net_read(&n, before);
        CHECK_EQ_INT(net_restore(&n, directory, WEFT_NEWEST, &state, &error), WEFT_USAGE);
        for (int i = 0; i < 3; i++)
            CHECK_TEXT(error.message, words[i]);
        net_read(&n, after);
        CHECK(memcmp(before, after, sizeof before) == 0);
        CHECK_EQ_INT(state.step, 0);
    }
    net_close(&n);
}

static void test_what_does_not_fit_says_so(void)
{
    char directory[128];
    weft_error error = {0};
    weft_checkpoint_state state;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("fit"));
    if (!CHECK_OK(net_open(&places[0], &f64, &n, &error), error)) return;
    CHECK_OK(net_run(&n, 1, 1, NULL, &error), error);
    CHECK_OK(net_save(&n, directory, &error), error);
    CHECK_EQ_INT(net_restore(&n, directory, 7, &state, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "no checkpoint of step 7");
    net_close(&n);
    check_does_not_fit(&(net_options){.dtype = WEFT_F64, .hidden = 4}, directory,
                       (const char *[]){"[pixel:7, hidden:5]", "[pixel:7, hidden:4]", "w1"});
    check_does_not_fit(&(net_options){.dtype = WEFT_F64, .w1 = "w1x"}, directory,
                       (const char *[]){"no tensor w1x", "nearest", "is w1"});
    /* A program without slots takes what it needs. */
    error = (weft_error){0};
    if (CHECK_OK(
            net_open(&places[0], &(net_options){.dtype = WEFT_F64, .is_bare = true}, &n, &error),
            error))
        CHECK_OK(net_restore(&n, directory, WEFT_NEWEST, &state, &error), error);
    net_close(&n);
}

static void test_an_empty_directory_is_a_fresh_start(void)
{
    weft_error error = {0};
    weft_checkpoint_state state = {.step = 9, .sample = 9, .seed = 9};
    net n;
    if (CHECK_OK(net_open(&places[0], &f64, &n, &error), error)) {
        CHECK_OK(net_restore(&n, scratch("empty"), WEFT_NEWEST, &state, &error), error);
        CHECK(state.step == 0 && state.sample == 0 && state.seed == 0);
    }
    net_close(&n);
}

static void run_all(void)
{
    RUN(test_every_place_restores_every_place);
    RUN(test_resume_is_as_if_never_stopped);
    RUN(test_slots_with_dims_of_their_own_come_back_too);
    RUN(test_groups_and_averages_come_back_by_name);
    RUN(test_dtypes_convert);
    RUN(test_what_does_not_fit_says_so);
    RUN(test_an_empty_directory_is_a_fresh_start);
}

int main(void)
{
    return in_world(run_all);
}
