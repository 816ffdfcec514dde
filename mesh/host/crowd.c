/* crowd: what is wasteful in where the lanes of a host run: several processes on one core, cores that nobody may
 * use, more threads than cores. It is told where all can still be changed: when a program starts, and by weft
 * doctor.
 */
#include "host.h"
#include "text.h"

#include <stdio.h>

static const char *s(int n)
{
    return n == 1 ? "" : "s";
}

/* Threads without a core of their own, while other cores have none. */
static bool are_on_one_core(const weft_crowd *c)
{
    return c->share.n_sharing > 1 && c->share.cores < c->n_ranks * c->n_lanes &&
           c->share.n_used < c->share.host_cores;
}

/* As mpirun binds processes where nobody says else: to a core each. */
static bool is_half_idle(const weft_crowd *c)
{
    return c->is_launched && c->share.n_used > 0 && 2 * c->share.n_used <= c->share.host_cores;
}

static bool has_more_threads_than_cores(const weft_crowd *c)
{
    return c->n_ranks * c->n_lanes > c->share.cores + 1e-6;
}

static void say_one_core(const weft_crowd *c, char *text, size_t room)
{
    const int idle = c->share.host_cores - c->share.n_used;
    snprintf(
        text, room,
        "%d processes are bound to one core, while %d of this host's %d cores ha%s none; mpirun "
        "--bind-to none, or srun --cpu-bind=none, spreads them",
        c->share.n_sharing, idle, c->share.host_cores, idle == 1 ? "s" : "ve");
}

static void say_idle(const weft_crowd *c, char *text, size_t room)
{
    snprintf(
        text, room,
        "the job's %d process%s here may use %d of the host's %d cores, and the others stay idle; "
        "mpirun --bind-to none, or srun --cpus-per-task=%d, gives it all",
        c->n_processes, c->n_processes == 1 ? "" : "es", c->share.n_used, c->share.host_cores,
        c->share.host_cores / c->n_processes);
}

static void say_threads(const weft_crowd *c, char *text, size_t room)
{
    const int ranks = c->n_processes * c->n_ranks;
    weft_text_format(
        text, room,
        "%lld threads (%d rank%s of %d lane%s) share %.3g core%s, and wait for each other; fewer "
        "%s are faster",
        (long long)ranks * c->n_lanes, ranks, s(ranks), c->n_lanes, s(c->n_lanes),
        c->n_processes * c->share.cores, c->n_processes * c->share.cores == 1 ? "" : "s",
        c->n_lanes > 1 ? "lanes" : "ranks");
}

static const struct {
    bool (*is_so)(const weft_crowd *);
    void (*say)(const weft_crowd *, char *text, size_t room);
} wastes[] = {
    {are_on_one_core, say_one_core},
    {is_half_idle, say_idle},
    {has_more_threads_than_cores, say_threads},
};

void weft_crowd_text(const weft_crowd *crowd, char *text, size_t room)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof wastes / sizeof *wastes && text[0] == '\0'; i++)
        if (wastes[i].is_so(crowd)) wastes[i].say(crowd, text, room);
}
