/* measure: how fast the links over the axes of a mesh are.
 *
 * Every rank gathers from all of its group at once, as training does, and all groups over an axis do so at the same
 * time. The latency is what eight bytes take; the rate is that of the bytes that one rank sends, in gathers that grow
 * until they take long enough for the clock. Several are timed as one, since a single one seems short to whoever came
 * last: what it waits for is there already. Of a few such the fastest counts, as others may be using the links or the
 * cores, and of all ranks the slowest, since an exchange waits for it. Each rank computes the result from the same
 * numbers, so all have the same.
 */
#include "reduce.h"
#include "text.h"
#include "wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRIES = 2,
    LATENCY_ROUNDS = 30,
    RATE_ROUNDS = 3,
    FIRST_BYTES = 1 << 16,
    MOST_BYTES = 1 << 22, /* of a rank           */
    ROOM_BYTES = 1 << 26  /* for what it gathers */
};
static const double LONG_ENOUGH_S = 0.02;

/* One local rank's part. */
typedef struct measurer {
    weft_comm *comm;
    char *send, *recv;     /* [bytes_of(n)] and that of all */
    uint64_t *hosts;       /* [n] */
    double *times;         /* [n] */
    weft_link_speed speed; /* as this rank sees it */
    weft_error error;
} measurer;

typedef struct measuring {
    weft_comms *comms;
    weft_mesh *mesh;
    uint32_t axes; /* the one that is measured now */
    int n;         /* ranks of a group */
    measurer *ranks;
} measuring;

static uint64_t own_host(void)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return weft_digest(0, name, strlen(name));
}

/* ---- one rank ---------------------------------------------------------------------------------- */

/* Seconds of a gather, in the fastest of a few tries of `rounds` each, by whoever of the group had to wait longest. */
static weft_status time_gathers(measurer *m, int64_t bytes, int rounds, double *seconds)
{
    double best = INFINITY;
    for (int k = 0; k < TRIES; k++) {
        const double begin = weft_seconds();
        for (int i = 0; i < rounds; i++)
            WEFT_TRY(weft_comm_gather(m->comm, m->send, bytes, m->recv, &m->error));
        best = fmin(best, (weft_seconds() - begin) / rounds);
    }
    WEFT_TRY(weft_comm_gather(m->comm, &best, sizeof best, m->times, &m->error));
    *seconds = 0;
    for (int r = 0; r < m->comm->n_ranks; r++)
        *seconds = fmax(*seconds, m->times[r]);
    return WEFT_OK;
}

static int64_t most_bytes(int n)
{
    const int64_t fits = ROOM_BYTES / n;
    return fits < FIRST_BYTES ? FIRST_BYTES : fits < MOST_BYTES ? fits : MOST_BYTES;
}

static weft_status measure(measurer *m, weft_link_speed *speed)
{
    const uint64_t host = own_host();
    const int n = m->comm->n_ranks;
    double seconds = 0;
    int64_t bytes = FIRST_BYTES;
    WEFT_TRY(weft_comm_gather(m->comm, &host, sizeof host, m->hosts, &m->error));
    for (int r = 0; r < n; r++)
        speed->is_between_hosts |= m->hosts[r] != host;
    WEFT_TRY(time_gathers(m, (int64_t)sizeof host, LATENCY_ROUNDS, &speed->latency_s));
    for (;; bytes *= 2) {
        WEFT_TRY(time_gathers(m, bytes, RATE_ROUNDS, &seconds));
        if (seconds >= LONG_ENOUGH_S || 2 * bytes > most_bytes(n)) break;
    }
    seconds = fmax(seconds - speed->latency_s, seconds / 8);
    speed->bytes_per_s = (double)bytes * (n - 1) / fmax(seconds, 1e-9);
    return WEFT_OK;
}

static void measure_rank(void *argument, int rank)
{
    measuring *all = argument;
    measurer *m = &all->ranks[rank - weft_mesh_first_local(all->mesh)];
    (void)!measure(m, &m->speed);
}

/* ---- all ranks --------------------------------------------------------------------------------- */

static void take_worse(weft_link_speed *speed, const weft_link_speed *other)
{
    if (speed->bytes_per_s == 0 || other->bytes_per_s < speed->bytes_per_s)
        speed->bytes_per_s = other->bytes_per_s;
    speed->latency_s = fmax(speed->latency_s, other->latency_s);
    speed->is_between_hosts |= other->is_between_hosts;
}

/* The worst of this process's ranks, then of all processes: one rank of each gathers over the whole mesh. */
static void share_rank(void *argument, int rank)
{
    measuring *all = argument;
    const int at = rank - weft_mesh_first_local(all->mesh);
    measurer *m = &all->ranks[at];
    const weft_link_speed own = m->speed;
    weft_link_speed *others = (weft_link_speed *)(void *)m->recv;
    if (weft_comm_gather(m->comm, &own, sizeof own, others, &m->error) != WEFT_OK) return;
    for (int r = 0; r < m->comm->n_ranks; r++)
        take_worse(&m->speed, &others[r]);
}

static void give_back(measuring *all)
{
    for (int at = 0; all->ranks && at < weft_mesh_n_local(all->mesh); at++) {
        free(all->ranks[at].send);
        free(all->ranks[at].hosts);
    }
    free(all->ranks);
    all->ranks = NULL;
}

/* Of the group over `axes`, for each local rank; `share` of one gather. */
static weft_status take(measuring *all, int64_t share, weft_error *error)
{
    const int n_local = weft_mesh_n_local(all->mesh), n = all->n;
    all->ranks = calloc((size_t)n_local, sizeof *all->ranks);
    bool is_there = all->ranks != NULL;
    for (int at = 0; is_there && at < n_local; at++) {
        measurer *m = &all->ranks[at];
        m->comm = weft_comm_of(all->comms, weft_mesh_first_local(all->mesh) + at, all->axes);
        m->error = (weft_error){.rank = -1};
        m->send = calloc((size_t)n + 1, (size_t)share);
        m->hosts = calloc((size_t)n, 2 * sizeof *m->hosts);
        is_there = m->send && m->hosts;
        if (!is_there) break;
        m->recv = m->send + share;
        m->times = (double *)(void *)(m->hosts + n);
    }
    if (!is_there) (void)!weft_fail_memory(error, (size_t)(n + 1) * (size_t)share);
    return weft_world_agree(error);
}

static weft_status over(measuring *all, uint32_t axes, int64_t share, weft_rank_body body,
                        weft_link_speed *speed, weft_error *error)
{
    all->axes = axes;
    WEFT_TRY(weft_comms_prepare(all->comms, axes, error));
    all->n = weft_mesh_group(all->mesh, axes, weft_mesh_first_local(all->mesh), NULL, NULL);
    weft_status status = take(all, share, error);
    for (int at = 0; status == WEFT_OK && at < weft_mesh_n_local(all->mesh); at++)
        all->ranks[at].speed = *speed;
    if (status == WEFT_OK) weft_mesh_each(all->mesh, body, all);
    for (int at = 0; status == WEFT_OK && at < weft_mesh_n_local(all->mesh); at++) {
        const weft_error *own = &all->ranks[at].error;
        if (own->status != WEFT_OK) (void)!weft_fail(error, own->status, "%s", own->message);
        take_worse(speed, &all->ranks[at].speed);
    }
    give_back(all);
    return status == WEFT_OK ? weft_world_agree(error) : status;
}

weft_status weft_comms_measure(weft_comms *comms, weft_link_speed *speeds, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    WEFT_GIVEN(speeds, error);
    weft_mesh *mesh = weft_comms_mesh(comms);
    measuring all = {.comms = comms, .mesh = mesh};
    const int n_axes = weft_mesh_n_axes(mesh);
    weft_error own = {.rank = -1};
    weft_status status = WEFT_OK;
    memset(speeds, 0, WEFT_MAX_AXES * sizeof *speeds);
    for (int a = 0; a < n_axes && status == WEFT_OK; a++) {
        weft_link_speed *speed = &speeds[a];
        if (weft_mesh_axis_size(mesh, a) == 1) continue;
        const int64_t n = weft_mesh_axis_size(mesh, a);
        status = over(&all, 1u << a, most_bytes((int)n), measure_rank, speed, &own);
        if (status == WEFT_OK)
            status = over(&all, (1u << n_axes) - 1, sizeof *speed, share_rank, speed, &own);
    }
    return status == WEFT_OK ? WEFT_OK : weft_fail(error, own.status, "%s", own.message);
}

/* ---- as text ------------------------------------------------------------------------------------ */

/* Two digits, and the unit in which they are at most 1000. */
static void print_amount(double amount, const char *const *units, int n_units, char *text,
                         size_t bytes)
{
    int unit = 0;
    double scale = pow(10, floor(log10(amount)) - 1);
    amount = round(amount / scale) * scale;
    for (; unit + 1 < n_units && amount >= 999.5; unit++)
        amount /= 1000;
    weft_text_format(text, bytes, "%.4g%s", amount, units[unit]);
}

void weft_links_text(const weft_mesh *mesh, const weft_link_speed *speeds, char *text, size_t bytes)
{
    static const char *const rates[] = {"B", "kB", "MB", "GB", "TB"};
    static const char *const times[] = {"ns", "us", "ms", "s"};
    size_t used = 0;
    if (text == NULL || bytes == 0) return;
    *text = '\0';
    for (int a = 0; speeds != NULL && a < weft_mesh_n_axes(mesh); a++) {
        char rate[32], latency[32];
        if (!(speeds[a].bytes_per_s >= 1 && speeds[a].bytes_per_s < 1e18)) continue;
        if (!(speeds[a].latency_s < 1e9)) continue;
        print_amount(speeds[a].bytes_per_s, rates, 5, rate, sizeof rate);
        print_amount(fmax(1e9 * speeds[a].latency_s, 1), times, 4, latency, sizeof latency);
        const int n = snprintf(text + used, bytes - used, "%s%s:%s+%s", used ? "," : "",
                               weft_mesh_axis_name(mesh, a), rate, latency);
        if (n < 0 || (size_t)n >= bytes - used) {
            text[used] = '\0';
            return;
        }
        used += (size_t)n;
    }
}
