/* advise_text: what there is to advise, in a line. See advise.h. */
#include "advise.h"

#include <stdio.h>
#include <string.h>

#include "weft/number.h"

#define GIB 1073741824.0

const double app_advice_least = 0.02;

double app_advice_gain(double now, double then)
{
    return now > 0 ? 1 - then / now : 0;
}

static void tell_slow_rank(const app_advice *a, char *text, size_t room)
{
    char now[WEFT_TIME_TEXT], then[WEFT_TIME_TEXT];
    snprintf(text, room,
             "advice: rank %d takes %g times as long as the others; were it as fast, a step would "
             "take %s in place of %s, %.1f %% less: give its part to another host",
             a->slow_rank, a->slow_by, weft_time_text(a->even_seconds, then),
             weft_time_text(a->seconds, now), 100 * app_advice_gain(a->seconds, a->even_seconds));
}

static void tell_change(const weft_advice *plans, char *text, size_t room)
{
    char now[WEFT_TIME_TEXT], then[WEFT_TIME_TEXT];
    const weft_advised *best = &plans->best[0];
    snprintf(
        text, room,
        "advice: with %s a step takes %s in place of %s, %.1f %% less; the rest of the command "
        "stays as it is",
        best->options, weft_time_text(best->seconds, then), weft_time_text(plans->seconds, now),
        100 * app_advice_gain(plans->seconds, best->seconds));
}

void app_advice_memory(const app_advice *a, char *text, size_t room)
{
    if (a->host_ranks > 1)
        snprintf(text, room,
                 "the %d ranks of a host need %.1f GiB and it has %.1f GiB, and a rank needs %.1f "
                 "GiB",
                 a->host_ranks, (double)a->host_bytes / GIB, (double)a->host_memory / GIB,
                 (double)a->plans.bytes / GIB);
    else
        snprintf(text, room, "a rank needs %.1f GiB and has %.1f GiB", (double)a->plans.bytes / GIB,
                 (double)a->host_memory / GIB);
}

static void tell_memory(const app_advice *a, char *text, size_t room)
{
    char then[WEFT_TIME_TEXT], needs[200];
    const weft_advice *plans = &a->plans;
    const weft_advised *best = plans->n > 0 ? &plans->best[0] : &plans->smallest;
    app_advice_memory(a, needs, sizeof needs);
    int used = snprintf(text, room, "advice: %s", needs);
    if (used < 0 || (size_t)used >= room) return;
    text += used;
    room -= (size_t)used;
    if (plans->n > 0)
        snprintf(text, room, "; with %s it needs %.1f GiB%s%s", best->options,
                 (double)best->bytes / GIB, a->knows_seconds ? ", and a step takes " : "",
                 a->knows_seconds ? weft_time_text(best->seconds, then) : "");
    else if (best->choice.mesh[0])
        snprintf(
            text, room,
            "; none of %d other plans fits; with %s it needs least, %.1f GiB: take more ranks, "
            "or a smaller model or batch",
            plans->n_neighbours, best->options, (double)best->bytes / GIB);
    else
        snprintf(text, room, "; take more ranks, or a smaller model or batch");
}

void app_advice_others(const app_advice *a, char *text, size_t room)
{
    const weft_advice *plans = &a->plans;
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < plans->n && plans->fits && a->knows_seconds && used < room; i++) {
        char then[WEFT_TIME_TEXT];
        const weft_advised *one = &plans->best[i];
        used += (size_t)snprintf(text + used, room - used, "\n  %9s %5.1f %% less  %s",
                                 weft_time_text(one->seconds, then),
                                 100 * app_advice_gain(plans->seconds, one->seconds), one->options);
    }
}

bool app_advice_text(const app_advice *a, char *text, size_t room)
{
    const weft_advice *plans = &a->plans;
    const double even = a->slow_by > 0 ? app_advice_gain(a->seconds, a->even_seconds) : 0;
    const double best = plans->n > 0 ? app_advice_gain(plans->seconds, plans->best[0].seconds) : 0;
    if (!plans->fits)
        tell_memory(a, text, room);
    else if (!a->knows_seconds)
        return false;
    else if (even >= app_advice_least && even >= best)
        tell_slow_rank(a, text, room);
    else if (best >= app_advice_least)
        tell_change(plans, text, room);
    else
        return false;
    return true;
}
