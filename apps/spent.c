/* spent: what the time of a training was spent on beside its steps. See spent.h. */
#include "spent.h"

#include <stdio.h>
#include <string.h>

#include "stop.h"
#include "weft/number.h"
#include "weft/watch.h"

/* Less is not worth a line. In a run of a few seconds a part is what the machine did meanwhile. */
static const double LEAST_PART = 0.02, LEAST_SECONDS = 5;

static const struct {
    const char *what, *helps;
} spendings[APP_SPENDINGS] = {
    [APP_ON_INPUT] = {"waiting for input",
                      "the next batch is read while a step runs, by a thread "
                      "that needs a core: fewer --lanes leave it one, and a "
                      "file that is in memory or on a faster disk is read sooner"},
    [APP_ON_SAVES] = {"waiting for checkpoints",
                      "a larger --save-every or --save-after makes fewer, and a faster disk for "
                      "--run each of them sooner"},
    [APP_ON_LOOKS] =
        {"looking at the text that is held out",
         "a larger --eval-every does so less often, and fewer --eval-steps are sooner done"},
    [APP_ON_CHECKS] = {"comparing what ranks hold", "a larger --check-replicas does so less often"},
    [APP_ON_REST] = {"work between steps", "metrics and progress are written there: a faster disk "
                                           "for --run and --metrics helps, and so does a larger "
                                           "--batch, whose steps are fewer"},
};

void app_spent_begin(app_spent *spent)
{
    *spent = (app_spent){.at = app_seconds()};
}

void app_spent_lap(app_spent *spent, app_spending what)
{
    const double now = app_seconds();
    spent->seconds[what] += now - spent->at;
    spent->at = now;
}

/* Half of the slowest is no other rank's trouble. */
static const double MUCH_LESS = 0.5;

static void tell_ranks(app_spent *spent, const weft_live *live)
{
    const weft_live_rank *r, *most = weft_live_rank_at(live, 0), *least = most;
    char more[WEFT_TIME_TEXT], less[WEFT_TIME_TEXT];
    for (int i = 0; (r = weft_live_rank_at(live, i)) != NULL; i++) {
        if (r->input > most->input) most = r;
        if (r->input < least->input) least = r;
    }
    if (!most || least->input > MUCH_LESS * most->input) return;
    snprintf(spent->input, sizeof spent->input, " (rank %d on %.40s read for %s, rank %d for %s)",
             most->rank, most->host, weft_time_text(most->input, more), least->rank,
             weft_time_text(least->input, less));
}

void app_spent_ranks(app_spent *spent, const char *folder)
{
    weft_live *live = NULL;
    spent->input[0] = '\0';
    if (weft_live_open(folder, &live, NULL) != WEFT_OK) return;
    (void)weft_live_look(live);
    tell_ranks(spent, live);
    weft_live_close(&live);
}

/* The largest of those that are not told yet; steps themselves are no loss. APP_ON_STEPS: there is none. */
static app_spending next_largest(const app_spent *spent, bool told[APP_SPENDINGS], double least)
{
    app_spending found = APP_ON_STEPS;
    double most = least;
    for (int what = APP_ON_STEPS + 1; what < APP_SPENDINGS; what++) {
        if (told[what] || spent->seconds[what] < most) continue;
        most = spent->seconds[what];
        found = (app_spending)what;
    }
    told[found] = true;
    return found;
}

static double all_of(const app_spent *spent)
{
    double all = 0;
    for (int i = 0; i < APP_SPENDINGS; i++)
        all += spent->seconds[i];
    return all;
}

bool app_spent_is_long(const app_spent *spent)
{
    return all_of(spent) >= LEAST_SECONDS;
}

int app_spent_list(const app_spent *spent, app_spent_part *parts)
{
    const double all = all_of(spent);
    bool told[APP_SPENDINGS] = {false};
    app_spending what;
    int n = 0;
    if (!app_spent_is_long(spent)) return 0;
    while ((what = next_largest(spent, told, LEAST_PART * all)) != APP_ON_STEPS)
        parts[n++] = (app_spent_part){.what = spendings[what].what,
                                      .ranks = what == APP_ON_INPUT ? spent->input : "",
                                      .helps = spendings[what].helps,
                                      .seconds = spent->seconds[what],
                                      .share = spent->seconds[what] / all};
    return n;
}

bool app_spent_tell(const app_spent *spent, char *text, size_t room)
{
    app_spent_part parts[APP_SPENDINGS];
    const int n = app_spent_list(spent, parts);
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < n && used < room; i++) {
        char time[WEFT_TIME_TEXT];
        used += (size_t)snprintf(text + used, room - used, "%s%s took %s, %.1f %% of the run%s: %s",
                                 used ? "\n" : "", parts[i].what,
                                 weft_time_text(parts[i].seconds, time), 100 * parts[i].share,
                                 parts[i].ranks, parts[i].helps);
    }
    return used > 0;
}

void app_spent_path(const char *folder, char *path, size_t room)
{
    snprintf(path, room, "%.4000s/advice.json", folder);
}
