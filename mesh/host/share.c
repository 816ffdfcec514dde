/* share: which part of its host is a process's.
 *
 * Processes share evenly a core that the masks of several have; a core that one process alone is bound to is its own.
 * So unbound processes get the host's cores divided by their number, bound ones the cores of their binding, and those
 * bound to a socket in threes a third of it. The remainder stays idle: ranks meet at every exchange, and a rank with
 * one lane more would only wait for the others.
 */
#include "host.h"

#include <math.h>
#include <string.h>

/* To the nearest whole number of cores. Lanes that are more than the quota pays for are stopped together for the
 * rest of each period (0.1 s), fewer leave time unused. One process, two cores: with time for 1.5 cores two lanes
 * take 155 ms a step of gpt and one 225 ms, for 1.25 both about 215 to 235, for 1.1 two take 245 and one 210. */
int weft_quota_cores(double quota)
{
    if (!(quota > 0) || quota > WEFT_CORE_BITS) return 0;
    return quota < 1 ? 1 : (int)(quota + 0.5);
}

weft_told weft_told_of(const weft_cores *cores, double quota, uint64_t group)
{
    weft_told told = {.is_known = cores->is_known && cores->n_cores > 0,
                      .n_cores = cores->n_cores > 1 ? cores->n_cores : 1,
                      .quota = weft_quota_cores(quota),
                      .group = group};
    told.host_cores = cores->host_cores > told.n_cores ? cores->host_cores : told.n_cores;
    memcpy(told.bits, cores->bits, sizeof told.bits);
    return told;
}

static bool has(const weft_told *told, int core)
{
    return told->bits[core / 64] >> core % 64 & 1;
}

/* Processes of one control group share its quota, whatever they are bound to. */
static double within_quota(const weft_told *told, int n, const weft_told *own, double cores)
{
    int n_same = 0;
    if (own->quota == 0) return cores;
    for (int i = 0; i < n; i++)
        n_same += told[i].quota > 0 && told[i].group == own->group;
    const double part = (double)own->quota / (n_same > 1 ? n_same : 1);
    return part < cores ? part : cores;
}

weft_share weft_share_told(const weft_told *told, int n, int self)
{
    weft_share share = {.host_cores = told[self].host_cores};
    for (int i = 0; i < n; i++)
        if (!told[i].is_known) return (weft_share){0};
    for (int core = 0; core < WEFT_CORE_BITS; core++) {
        int n_on = 0;
        for (int i = 0; i < n; i++)
            n_on += has(&told[i], core);
        share.n_used += n_on > 0;
        if (!has(&told[self], core)) continue;
        share.cores += 1.0 / n_on;
        if (n_on > share.n_sharing) share.n_sharing = n_on;
    }
    if (share.host_cores < share.n_used) share.host_cores = share.n_used;
    share.cores = within_quota(told, n, &told[self], share.cores);
    return share;
}

/* A process that the launcher bound has its share already; of a part that others have too (a socket), the even share
 * of the host is the smaller number. A quota is taken to be everybody's. */
weft_share weft_share_guessed(const weft_told *own, int n)
{
    const int processes = n > 1 ? n : 1;
    const double even = (double)own->host_cores / processes, part = (double)own->quota / processes;
    weft_share share = {.cores = own->n_cores, .host_cores = own->host_cores};
    if (even < share.cores) share.cores = even;
    if (own->quota > 0 && part < share.cores) share.cores = part;
    return share;
}

int weft_share_lanes(double cores, int n_ranks)
{
    const double lanes = floor(cores / (n_ranks > 1 ? n_ranks : 1) + 1e-6); /* 3 thirds are one */
    return lanes > 1 ? (int)lanes : 1;
}
