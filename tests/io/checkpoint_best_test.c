/* checkpoint_best_test: besides the newest checkpoints the one of the lowest loss of held-out data stays, whatever the losses are; another
 * directory of losses, damage, and losses of other data do not mislead it. */
/* RANKS: 2 */
#include "checkpoint_places.h"

#include <math.h>

enum { N_SAVES = 12, KEEP = 2 };

static const char held[] = "text: 100 bytes (hash 0123456789abcdef); looked at: 12";

/* What ought to be there: the last KEEP of steps 1 to n, and the first of those with the lowest loss. NaN: not measured. */
static bool is_wanted(const double *losses, int n, int step)
{
    int best = 0;
    for (int i = 1; i <= n; i++)
        if (!isnan(losses[i]) && (best == 0 || losses[i] < losses[best])) best = i;
    return step > n - KEEP || step == best;
}

static void check_there(const char *directory, const double *losses, int n)
{
    int64_t steps[N_SAVES + 1];
    const int n_there = weft_stored_steps(directory, steps, N_SAVES + 1);
    int at = 0;
    for (int step = 1; step <= n; step++) {
        if (!is_wanted(losses, n, step)) continue;
        CHECK(at < n_there && steps[at] == step);
        at++;
    }
    CHECK_EQ_INT(n_there, at);
}

static weft_status save_step(weft_checkpoints *c, net *n, int step, double loss, weft_error *error)
{
    weft_checkpoint_state state = net_state(n);
    state.step = step;
    state.has_loss = !isnan(loss);
    state.loss = state.has_loss ? loss : 0;
    WEFT_TRY(weft_checkpoints_save(c, n->program, &state, error));
    return weft_checkpoints_wait(c, error);
}

/* A few losses only, so that some are equal. */
static double draw_loss(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    const unsigned drawn = *seed >> 16 & 7;
    return drawn == 0 ? NAN : 1 + 0.1 * drawn;
}

static const weft_checkpoint_options wanted = {.keep = KEEP, .keep_best = true, .held_out = held};

/* The directory is opened anew after each save, as by a run that goes on. */
static void save_series(net *n, const char *directory, unsigned seed)
{
    double losses[N_SAVES + 1];
    weft_error error = {0};
    for (int step = 1; step <= N_SAVES; step++) {
        weft_checkpoints *c = NULL;
        losses[step] = draw_loss(&seed);
        if (!CHECK_OK(weft_checkpoints_open(directory, &wanted, &c, &error), error)) return;
        CHECK_OK(save_step(c, n, step, losses[step], &error), error);
        weft_checkpoints_close(&c);
        if (weft_world_is_root()) check_there(directory, losses, step);
    }
}

static void test_the_lowest_stays(void)
{
    char directory[160];
    weft_error error = {0};
    net n;
    if (CHECK_OK(net_open(&places[0], &(net_options){.dtype = WEFT_F64}, &n, &error), error))
        for (unsigned seed = 1; seed <= 3; seed++) {
            snprintf(directory, sizeof directory, "%s%u", scratch("best"), seed);
            save_series(&n, directory, seed);
        }
    net_close(&n);
}

static void check_best(const char *directory, const char *of, int64_t step, double loss)
{
    weft_checkpoint_state best;
    CHECK(weft_stored_best(directory, of, &best) == (step > 0));
    CHECK_EQ_INT(best.step, step);
    CHECK(best.loss == loss);
}

static void check_losses_on_disk(const char *directory)
{
    char path[256];
    weft_stored *stored = NULL;
    weft_checkpoint_state state;
    weft_error error = {0};
    check_best(directory, held, 1, 0.1);
    check_best(directory, NULL, 1, 0.1);
    check_best(directory, "text: another", 0, 0);
    check_best("/nowhere", NULL, 0, 0);
    CHECK(!weft_stored_best(NULL, NULL, &state) && !weft_stored_best(directory, NULL, NULL));
    snprintf(path, sizeof path, "%s/step_00000001", directory);
    if (CHECK_OK(weft_stored_open(path, &stored, &error), error)) {
        weft_stored_state(stored, &state);
        CHECK(state.has_loss && state.loss == 0.1); /* to the bit */
        CHECK(strcmp(weft_stored_held_out(stored), held) == 0);
    }
    weft_stored_close(&stored);
    snprintf(path, sizeof path, "%s/step_00000001/damaged", directory);
    FILE *file = fopen(path, "w");
    if (CHECK(file != NULL)) fclose(file);
    check_best(directory, held, 2, 3.5);
}

static void test_what_is_no_best(void)
{
    char directory[160];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    net n;
    snprintf(directory, sizeof directory, "%s", scratch("none"));
    if (CHECK_OK(net_open(&places[0], &(net_options){.dtype = WEFT_F64}, &n, &error), error) &&
        CHECK_OK(weft_checkpoints_open(directory, &wanted, &c, &error), error)) {
        CHECK_OK(save_step(c, &n, 1, 0.1, &error), error);
        CHECK_OK(save_step(c, &n, 2, 3.5, &error), error);
        CHECK_OK(save_step(c, &n, 3, NAN, &error), error);
        CHECK_EQ_INT(save_step(c, &n, 4, INFINITY, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "the loss inf of step 4 is no number");
        CHECK_EQ_INT(weft_world_agree(&(weft_error){.rank = -1}), WEFT_OK);
        if (weft_world_is_root()) check_losses_on_disk(directory);
    }
    weft_checkpoints_close(&c);
    net_close(&n);
}

static void run_all(void)
{
    RUN(test_the_lowest_stays);
    RUN(test_what_is_no_best);
}

int main(void)
{
    return in_world(run_all);
}
