/* advise_json: all that there is to advise, as data. See advise.h. */
#include "advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "weft/number.h"

enum { COMMAND_BYTES = 8192, REASON_BYTES = 600 };

/* seconds and share: of `of`, a step or the whole run; NAN: not known. choice NULL: no command does it. */
static void add(json_t *list, const app_search *search, const char *of, const char *what,
                double seconds, double share, const weft_choice *choice, const char *reason)
{
    char command[COMMAND_BYTES] = "";
    if (choice) app_search_command(search, choice, command, sizeof command);
    json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s}", "what", what, "of", of,
                                          "gain_seconds", app_json_number(seconds), "gain_share",
                                          app_json_number(share), "command",
                                          choice ? command : NULL, "reason", reason));
}

/* "computing takes 3 ms more": what went up or down, into text. */
static size_t tell_part(const char *what, double now, double then, char *text, size_t room)
{
    char by[WEFT_TIME_TEXT];
    if (now == then) return (size_t)snprintf(text, room, "%s takes as long", what);
    return (size_t)snprintf(text, room, "%s takes %s %s", what,
                            weft_time_text(fabs(then - now), by), then < now ? "less" : "more");
}

static void tell_why(const weft_advice *plans, const weft_advised *one, char reason[REASON_BYTES])
{
    const size_t used =
        tell_part("computing", plans->work_seconds, one->work_seconds, reason, REASON_BYTES);
    const size_t comma = used + (size_t)snprintf(reason + used, REASON_BYTES - used, ", ");
    (void)tell_part("waiting for exchanges", plans->exposed_seconds, one->exposed_seconds,
                    reason + comma, REASON_BYTES - comma);
}

static void add_changes(json_t *list, const app_search *search, const app_advice *a, double from,
                        double to)
{
    const weft_advice *plans = &a->plans;
    for (int i = 0; i < plans->n; i++) {
        char reason[REASON_BYTES];
        const weft_advised *one = &plans->best[i];
        const double share = app_advice_gain(plans->seconds, one->seconds);
        if (share < app_advice_least || share < from || share >= to) continue;
        tell_why(plans, one, reason);
        add(list, search, "step", one->options, plans->seconds - one->seconds, share, &one->choice,
            reason);
    }
}

static void add_slow_rank(json_t *list, const app_advice *a)
{
    char what[120];
    const double share = app_advice_gain(a->seconds, a->even_seconds);
    if (!(a->slow_by > 0) || share < app_advice_least) return;
    snprintf(what, sizeof what, "give the part of rank %d to another host", a->slow_rank);
    char reason[REASON_BYTES];
    snprintf(reason, sizeof reason, "it takes %g times as long as the others", a->slow_by);
    add(list, NULL, "step", what, a->seconds - a->even_seconds, share, NULL, reason);
}

/* What fits, or what needs least, or neither. */
static void add_memory(json_t *list, const app_search *search, const app_advice *a)
{
    char needs[200], reason[REASON_BYTES];
    const weft_advice *plans = &a->plans;
    const weft_advised *best = plans->n > 0 ? &plans->best[0] : &plans->smallest;
    const bool is_there = best->choice.mesh[0] != '\0';
    const double seconds = is_there && a->knows_seconds ? plans->seconds - best->seconds : NAN;
    app_advice_memory(a, needs, sizeof needs);
    if (is_there)
        snprintf(reason, sizeof reason, "%s; with this it needs %.1f GiB%s", needs,
                 (double)best->bytes / 1073741824.0,
                 plans->n > 0 ? ""
                              : ", the least of all that were tried, and too much: take more "
                                "ranks, or a smaller model or batch");
    else
        snprintf(reason, sizeof reason, "%s", needs);
    add(list, search, "step",
        is_there ? best->options : "take more ranks, or a smaller model or batch", seconds,
        isnan(seconds) ? NAN : app_advice_gain(plans->seconds, best->seconds),
        is_there ? &best->choice : NULL, reason);
}

static void add_spent(json_t *list, const app_spent *spent)
{
    app_spent_part parts[APP_SPENDINGS];
    const int n = spent ? app_spent_list(spent, parts) : 0;
    for (int i = 0; i < n; i++)
        add(list, NULL, "run", parts[i].what, parts[i].seconds, parts[i].share, NULL,
            parts[i].helps);
}

json_t *app_advice_json(const app_search *search, const app_advice *a, const app_spent *spent)
{
    json_t *list = json_array();
    const double slow = a->slow_by > 0 ? app_advice_gain(a->seconds, a->even_seconds) : 0;
    if (!list) return NULL;
    if (!a->plans.fits) {
        add_memory(list, search, a);
    } else if (a->knows_seconds) {
        add_changes(list, search, a, slow, INFINITY);
        add_slow_rank(list, a);
        add_changes(list, search, a, -INFINITY, slow);
    }
    add_spent(list, spent);
    return list;
}
