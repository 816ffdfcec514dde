/* link: an engine that is as slow as a network would be: for studying, on one machine, what overlap hides.
 *
 *     gpt train --plugin liblink.so --engine link:50us,1GB --mesh data:4 --layout batch:data
 *     gpt train --plugin liblink.so --engine link:50us,1GB,report ...      and a line about it at the end
 *
 * It stands on the engine that Weft would take, which moves the bytes at once; it says that they have come when they
 * would have. Each rank has one line out and one line in, of the given bandwidth. A message leaves when the rank's
 * line out is free, and is at the other end a latency after its last byte; there it passes the line in. A line goes
 * on while its rank computes, as a network card does, so what is not waited for costs nothing. Senders tell when
 * their last byte leaves in a second exchange, of 8 bytes: clocks of several machines do not agree, so all ranks are
 * on one.
 */
#define _POSIX_C_SOURCE 200809L
#include "link.h"
#include "weft/number.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- settings ---------------------------------------------------------------------------------- */

static struct {
    double latency, bandwidth; /* s; bytes/s */
    bool reports;
} wire;

typedef struct unit {
    const char *name;
    double is;
} unit;

/* "50us": the number times its unit; *end behind it. Below 0: there is none. */
static double read_amount(const char *text, const unit *units, const char **end)
{
    double number; /* with a point, whatever the locale */
    const char *after = text + weft_number_read(text, &number);
    const size_t n = strcspn(after, ",");
    for (const unit *u = units; u->name != NULL; u++) {
        if (after == text || !(number >= 0) || strlen(u->name) != n) continue;
        if (strncmp(after, u->name, n) != 0) continue;
        *end = after + n;
        return number * u->is;
    }
    return -1;
}

static weft_status set(const char *settings, weft_error *error)
{
    static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
    static const unit rates[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {NULL, 0}};
    const char *at = settings;
    const double latency = read_amount(at, times, &at);
    const double bandwidth = latency >= 0 && *at == ',' ? read_amount(at + 1, rates, &at) : -1;
    const bool reports = strcmp(at, ",report") == 0;
    if (!(bandwidth > 0) || (*at != '\0' && !reports))
        return weft_fail(error, WEFT_USAGE,
                         "engine link:%.100s: it takes a latency and the bytes a second of each "
                         "rank's line, as link:50us,1GB, and then perhaps ,report",
                         settings);
    wire.latency = latency, wire.bandwidth = bandwidth, wire.reports = reports;
    return WEFT_OK;
}

/* ---- lines ------------------------------------------------------------------------------------- */

/* When a rank's lines are free. Touched by that rank alone; in all its groups it is one. */
enum { LINES = 4096 }; /* ranks of one process */
static struct {
    _Alignas(64) double out, in;
} lines[LINES];

static atomic_llong n_exchanges, n_bytes;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* When the last of `bytes` has passed a line that is free at *is_free, of which none comes before `from`. */
static double pass(double *is_free, double from, int64_t bytes)
{
    return *is_free = later(*is_free, from) + (double)bytes / wire.bandwidth;
}

/* ---- exchanges --------------------------------------------------------------------------------- */

typedef struct flight {
    weft_comm_exchange *data, *left; /* of the engine below: the bytes, and when they left */
    double own_left, due;            /* due below 0: not known yet */
    int64_t in_bytes;                /* from others */
    int64_t *bytes, *at;             /* [n_ranks], of `left` */
    double *all_left;                /* [n_ranks] */
    int64_t room[];
} flight;

static int64_t exchange_bytes(const weft_comm *comm)
{
    return (int64_t)(sizeof(flight) + 3 * sizeof(int64_t) * (size_t)weft_comm_n_ranks(comm));
}

static weft_status create(weft_comm_exchange *it, weft_error *error)
{
    flight *f = it->state;
    const int n = weft_comm_n_ranks(it->comm);
    f->bytes = f->room, f->at = f->room + n, f->all_left = (double *)(f->room + 2 * n);
    for (int r = 0; r < n; r++)
        f->bytes[r] = sizeof(double), f->at[r] = r * (int64_t)sizeof(double);
    WEFT_TRY(weft_exchange_take(weft_comm_below(it->comm), &f->data, error));
    const weft_status status = weft_exchange_take(weft_comm_below(it->comm), &f->left, error);
    if (status != WEFT_OK) weft_exchange_give(f->data);
    return status;
}

static void destroy(weft_comm_exchange *it)
{
    flight *f = it->state;
    weft_exchange_give(f->left);
    weft_exchange_give(f->data);
}

static int64_t bytes_of(const weft_parts *parts, int r)
{
    return parts->bytes != NULL ? parts->bytes[r] : parts->all_bytes;
}

static weft_status start(weft_comm_exchange *it, weft_error *error)
{
    flight *f = it->state;
    const int n = weft_comm_n_ranks(it->comm), self = weft_comm_self(it->comm);
    int64_t out_bytes = 0;
    f->in_bytes = 0;
    for (int r = 0; r < n; r++) {
        if (r != self) out_bytes += bytes_of(&it->send, r);
        if (r != self) f->in_bytes += bytes_of(&it->recv, r);
    }
    f->due = -1;
    f->own_left = pass(&lines[weft_comm_rank(it->comm) % LINES].out, now(), out_bytes);
    atomic_fetch_add(&n_exchanges, 1);
    atomic_fetch_add(&n_bytes, out_bytes);
    f->data->send = it->send;
    f->data->recv = it->recv;
    f->left->send = (weft_parts){(char *)&f->own_left, NULL, NULL, sizeof(double)};
    f->left->recv = (weft_parts){(char *)f->all_left, f->bytes, f->at, 0};
    /* Tickets of the engine below: two for each of ours. */
    WEFT_TRY(weft_exchange_begin(f->data, 2 * it->ticket, it->fingerprint, error));
    return weft_exchange_begin(f->left, 2 * it->ticket + 1, it->fingerprint, error);
}

/* All bytes are here: when would they have come? And what this rank has sent must have left. */
static double find_due(const weft_comm_exchange *it)
{
    const flight *f = it->state;
    double last = 0;
    for (int r = 0; r < weft_comm_n_ranks(it->comm); r++)
        if (r != weft_comm_self(it->comm) && bytes_of(&it->recv, r) > 0)
            last = later(last, f->all_left[r]);
    if (f->in_bytes == 0) return f->own_left;
    /* The line in passes what comes while it comes: its last byte not before the last sender's. */
    double *in = &lines[weft_comm_rank(it->comm) % LINES].in;
    const double passed = pass(in, last - (double)f->in_bytes / wire.bandwidth, f->in_bytes);
    return later(passed + wire.latency, f->own_left);
}

static bool poll(weft_comm_exchange *it)
{
    flight *f = it->state;
    const bool has_data = weft_exchange_poll(f->data), has_left = weft_exchange_poll(f->left);
    if (!has_data || !has_left) return false;
    weft_fail(&it->error, f->data->error.status, "%s", f->data->error.message);
    weft_fail(&it->error, f->left->error.status, "%s", f->left->error.message);
    if (it->error.status != WEFT_OK) return true;
    if (f->due < 0) f->due = find_due(it);
    return now() >= f->due;
}

const weft_engine link_engine = {
    .size = sizeof(weft_engine),
    .name = "link",
    .below = "",
    .set = set,
    .exchange_bytes = exchange_bytes,
    .exchange_create = create,
    .exchange_destroy = destroy,
    .start = start,
    .poll = poll,
};

/* ---- the plug-in ------------------------------------------------------------------------------- */

link_total link_carried(void)
{
    link_total total = {atomic_load(&n_exchanges), atomic_load(&n_bytes), 0};
    total.seconds = (double)total.exchanges * wire.latency;
    if (wire.bandwidth > 0) total.seconds += (double)total.bytes / wire.bandwidth;
    return total;
}

static void report(void)
{
    const link_total total = link_carried();
    if (!wire.reports) return;
    fprintf(stderr, "link: %lld exchanges, %lld bytes sent, %.6f s on the way\n", total.exchanges,
            total.bytes, total.seconds);
}

WEFT_API weft_status weft_plugin(weft_error *error);
weft_status weft_plugin(weft_error *error)
{
    atexit(report);
    return weft_extend_engine(&link_engine, error);
}
