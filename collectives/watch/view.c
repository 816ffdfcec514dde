/* view: what a recorder says at one moment, while its rank goes on writing it. */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "weft/extend/combine.h"
#include "weft/layout.h"

bool weft_record_read(const weft_recorder *recorder, uint64_t number, weft_record *record)
{
    if (number == 0) return false;
    weft_guarded_get(record, &recorder->records[number % WEFT_RECORDS], sizeof *record);
    /* The next record but one to be written may be half there already. */
    return record->number == number &&
           weft_sync_load(&recorder->head.n_begun) < number + WEFT_RECORDS - 1;
}

/* Both or none: a sequence with the fingerprint of another would look like ranks that disagree. */
static bool read_channel(const weft_channel *channel, weft_channel_view *view)
{
    *view = (weft_channel_view){.key = channel->key,
                                .lowest = channel->lowest,
                                .n_ranks = channel->n_ranks,
                                .tells = (int32_t)weft_sync_load_relaxed(&channel->tells)};
    for (int tries = 0; tries < 1000; tries++) {
        struct {
            uint64_t sequence, past[WEFT_PAST];
        } both;
        if (!weft_guarded_read(&channel->version, &both, &channel->sequence, sizeof both)) continue;
        view->sequence = both.sequence;
        memcpy(view->past, both.past, sizeof view->past);
        return true;
    }
    return false; /* killed in the middle of a change, or never still */
}

bool weft_channels_differ(const weft_channel_view *a, const weft_channel_view *b)
{
    const uint64_t both = a->sequence < b->sequence ? a->sequence : b->sequence;
    const uint64_t latest = a->sequence < b->sequence ? b->sequence : a->sequence;
    return both > 0 && latest - both < WEFT_PAST &&
           a->past[both % WEFT_PAST] != b->past[both % WEFT_PAST];
}

const weft_channel_view *weft_view_channel(const weft_rank_view *view, uint64_t key, int lowest)
{
    for (int i = 0; i < view->n_channels; i++)
        if (view->channels[i].key == key && view->channels[i].lowest == lowest)
            return &view->channels[i];
    return NULL;
}

/* ---- long ago -------------------------------------------------------------------------------- */

/* What a rank's fingerprint was after a call of a group that it has begun; 0: not known any more, or spoken of. */
static uint64_t fingerprint_after(const weft_rank_view *view, const weft_channel_view *its,
                                  uint64_t sequence)
{
    const weft_recall *r = &view->recalled;
    if (sequence == 0 || sequence > its->sequence) return 0;
    if (its->sequence - sequence < WEFT_PAST) return its->past[sequence % WEFT_PAST];
    if (view->is_waiting && view->call.key == its->key && view->call.lowest == its->lowest &&
        view->call.sequence == sequence)
        return view->call_fingerprint;
    return r->key == its->key && r->lowest == its->lowest && r->sequence == sequence
               ? r->fingerprint
               : 0;
}

/* In the call that a rank waits in, which may be far behind what it has begun. */
static bool differ_in_call(const weft_rank_view *waiter, const weft_channel_view *own,
                           const weft_rank_view *other, const weft_channel_view *its)
{
    const weft_channel_view *call = &waiter->call;
    if (!waiter->is_waiting || call->key != own->key || call->lowest != own->lowest) return false;
    const uint64_t x = fingerprint_after(waiter, own, call->sequence),
                   y = fingerprint_after(other, its, call->sequence);
    return x != 0 && y != 0 && x != y;
}

/* A rank that is told begins anew, with 0 (weft_recorder_settle). All of its group are told of the same call, but not at one
 * moment: one has its old fingerprint yet while another is in the next call already. */
static bool is_settled(const weft_channel_view *a, const weft_channel_view *b)
{
    const uint64_t both = a->sequence < b->sequence ? a->sequence : b->sequence;
    return a->past[both % WEFT_PAST] == 0 || b->past[both % WEFT_PAST] == 0;
}

bool weft_views_differ(const weft_rank_view *a, const weft_rank_view *b, bool is_untold)
{
    for (int i = 0; i < a->n_channels; i++) {
        const weft_channel_view *own = &a->channels[i],
                                *its = weft_view_channel(b, own->key, own->lowest);
        if (its == NULL || (own->tells && !is_untold)) continue;
        if ((weft_channels_differ(own, its) && !is_settled(own, its)) ||
            differ_in_call(a, own, b, its) || differ_in_call(b, its, a, own))
            return true;
    }
    return false;
}

bool weft_views_were_told(const weft_rank_view *told, const weft_rank_view *other)
{
    for (int i = 0; i < told->n_channels; i++) {
        const weft_channel_view *c = &told->channels[i];
        if (c->sequence > 0 && c->past[c->sequence % WEFT_PAST] == 0 &&
            weft_view_channel(other, c->key, c->lowest) != NULL)
            return true;
    }
    return false;
}

static bool is_about(const weft_recall *r, const weft_channel_view *call)
{
    return r->key == call->key && r->lowest == call->lowest && r->sequence == call->sequence;
}

/* The other rank is ahead in the group of a call, and cannot be compared with who waits in it. */
static bool is_far_ahead(const weft_rank_view *other, const weft_channel_view *call)
{
    const weft_channel_view *its = weft_view_channel(other, call->key, call->lowest);
    return its != NULL && its->sequence >= call->sequence + WEFT_PAST &&
           !is_about(&other->recalled, call);
}

static bool has_to_be_asked(const weft_rank_view *views, int n, int waiter)
{
    const weft_rank_view *view = &views[waiter];
    for (int k = 0; k < n && view->is_known && view->is_waiting; k++)
        if (k != waiter && views[k].is_known && is_far_ahead(&views[k], &view->call)) return true;
    return false;
}

/* Whose call was asked for last; -1: nobody's. */
static int asked_last(const weft_rank_view *views, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && views[i].is_known && views[i].is_waiting; k++)
            if (views[k].is_known && views[k].recalled.sequence > 0 &&
                is_about(&views[k].recalled, &views[i].call))
                return i;
    return -1;
}

/* In turn: a rank keeps one answer, and there may be many questions. */
weft_recall weft_views_ask(const weft_rank_view *views, int n)
{
    const int last = asked_last(views, n);
    for (int turn = 1; turn <= n; turn++) {
        const int i = (last + turn) % n;
        if (has_to_be_asked(views, n, i))
            return (weft_recall){.key = views[i].call.key,
                                 .sequence = views[i].call.sequence,
                                 .lowest = views[i].call.lowest};
    }
    return (weft_recall){0};
}

/* The ring is gone through from the last call back. */
void weft_view_recall(const weft_recorder *recorder, const weft_recall *asked, weft_rank_view *view)
{
    const uint64_t last = weft_sync_load(&recorder->head.n_begun);
    weft_record record;
    if (asked->sequence == 0 || !weft_view_channel(view, asked->key, asked->lowest)) return;
    view->recalled = *asked;
    view->recalled.fingerprint = 0;
    for (uint64_t number = last; weft_record_read(recorder, number, &record); number--) {
        const weft_channel *channel = &recorder->head.channels[record.channel % WEFT_CHANNELS];
        if (record.sequence != asked->sequence || channel->key != asked->key ||
            channel->lowest != asked->lowest)
            continue;
        view->recalled.fingerprint = record.fingerprint;
        return;
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

static const char *spot_text(const weft_recorder *recorder, uint32_t spot)
{
    return spot > 0 && spot < WEFT_SPOTS ? recorder->spots[spot].text : "";
}

static void print_facts(const weft_record *record, char *text, size_t bytes)
{
    const bool has_dtype = record->dtype < WEFT_DTYPES,
               has_combine = record->combine != WEFT_NO_COMBINE &&
                             weft_combine_is_known((weft_combine)record->combine);
    int used = 0;
    text[0] = '\0';
    if (record->count > 0)
        used = snprintf(text, bytes, " of %lld %s", (long long)record->count,
                        has_dtype ? weft_dtype_name((weft_dtype)record->dtype) : "bytes");
    if (has_combine && used >= 0 && (size_t)used < bytes)
        used += snprintf(text + used, bytes - (size_t)used, ", %s",
                         weft_combine_name((weft_combine)record->combine));
    if (record->root >= 0 && used >= 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, " from its rank %d", record->root);
}

void weft_record_print(const weft_recorder *recorder, const weft_record *record, char *text,
                       size_t bytes)
{
    char facts[96];
    const char *axes =
        record->channel < WEFT_CHANNELS ? recorder->head.channels[record->channel].axes : "?";
    print_facts(record, facts, sizeof facts);
    snprintf(text, bytes, "%s %llu over %.40s%s%s", weft_call_name(record->kind),
             (unsigned long long)record->sequence, axes, record->spot ? " " : facts,
             spot_text(recorder, record->spot));
}

/* "its own work of x's result ..., called at model.c:84"; false: the rank runs no program. */
static bool print_work(const weft_recorder *recorder, char *text, size_t bytes)
{
    const char *spot = spot_text(recorder, weft_sync_load(&recorder->head.spot));
    if (!*spot || !weft_sync_load(&recorder->head.is_running)) return false;
    snprintf(text, bytes, "in its own work %s", spot);
    return true;
}

static void print_where(const weft_recorder *recorder, const weft_record *waiting, uint64_t n_begun,
                        char *text, size_t bytes)
{
    char call[WEFT_DOING_BYTES - 16] = "";
    weft_record last;
    if (waiting) {
        weft_record_print(recorder, waiting, call, sizeof call);
        snprintf(text, bytes, "in %s", call);
    } else if (print_work(recorder, text, bytes)) {
        return;
    } else if (weft_record_read(recorder, n_begun, &last)) {
        weft_record_print(recorder, &last, call, sizeof call);
        snprintf(text, bytes, "after %s", call);
    } else {
        snprintf(text, bytes, "before its first call");
    }
}

static void append(char *text, size_t bytes, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s", more);
}

/* Calls beside the one that it waits in: the oldest may be what others miss. */
static void print_under_way(const weft_recorder *recorder, const weft_record *waiting,
                            weft_rank_view *view)
{
    char call[WEFT_DOING_BYTES - 64], more[WEFT_DOING_BYTES];
    weft_record oldest;
    const int n_more = view->n_open - (waiting != NULL);
    if (n_more <= 0 ||
        !weft_record_read(recorder, weft_sync_load(&recorder->head.oldest), &oldest) ||
        oldest.ended != 0)
        return;
    if (waiting && oldest.number == waiting->number) {
        snprintf(more, sizeof more, "; %d call%s behind it under way", n_more,
                 n_more == 1 ? "" : "s");
    } else {
        weft_record_print(recorder, &oldest, call, sizeof call);
        snprintf(more, sizeof more, "; %d %scall%s under way since %s", n_more,
                 waiting ? "more " : "", n_more == 1 ? "" : "s", call);
    }
    append(view->doing, sizeof view->doing, more);
}

void weft_device_wait_print(const weft_device_wait *wait, uint64_t done, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "waiting for event %llu of queue %d of its device %s, which has done %llu",
             (unsigned long long)wait->event, wait->queue, wait->device, (unsigned long long)done);
}

static void print_doing(const weft_recorder *recorder, const weft_record *waiting,
                        const weft_device_wait *device, weft_rank_view *view)
{
    view->doing[0] = '\0';
    if (view->is_on_device) {
        weft_device_wait_print(device, view->device_done, view->doing, sizeof view->doing);
        append(view->doing, sizeof view->doing, ", ");
    }
    const size_t used = strlen(view->doing);
    print_where(recorder, waiting, view->n_begun, view->doing + used, sizeof view->doing - used);
    print_under_way(recorder, waiting, view);
}

/* ---- the view -------------------------------------------------------------------------------- */

static void take_call(const weft_recorder *recorder, const weft_record *record,
                      weft_rank_view *view)
{
    const weft_channel *channel = &recorder->head.channels[record->channel];
    const int64_t bytes =
        record->dtype < WEFT_DTYPES ? (int64_t)weft_dtype_bytes((weft_dtype)record->dtype) : 1;
    view->is_waiting = true;
    view->call_fingerprint = record->fingerprint;
    view->call = (weft_channel_view){.key = channel->key,
                                     .sequence = record->sequence,
                                     .lowest = channel->lowest,
                                     .n_ranks = channel->n_ranks};
    if (__builtin_mul_overflow(record->count, bytes * channel->n_ranks, &view->call_bytes))
        view->call_bytes = INT64_MAX; /* a damaged file */
}

static void take_busy(const weft_recorder_head *head, weft_rank_view *view)
{
    if (!weft_guarded_read(&head->busy_version, view->busy, head->busy, sizeof view->busy))
        view->busy[0] = '\0';
    view->busy[sizeof view->busy - 1] = '\0';
}

bool weft_device_wait_read(const weft_recorder *recorder, weft_device_wait *wait)
{
    const weft_recorder_head *head = &recorder->head;
    for (int tries = 0; tries < 1000; tries++) {
        if (!weft_guarded_read(&head->device_version, wait, &head->device, sizeof *wait)) continue;
        wait->device[sizeof wait->device - 1] = '\0';
        return wait->number > 0;
    }
    return false;
}

static bool take_device(const weft_recorder *recorder, weft_device_wait *wait, weft_rank_view *view)
{
    if (!weft_device_wait_read(recorder, wait)) return false;
    view->device_wait = wait->number;
    view->device_done = weft_sync_load(&recorder->head.device_done);
    return wait->ended == 0;
}

void weft_view_take(const weft_recorder *recorder, weft_rank_view *view)
{
    const weft_recorder_head *head = &recorder->head;
    /* In this order: what a rank waits in is read before how far it has come (judge.c). */
    const uint64_t waiting = weft_sync_load(&head->waiting),
                   n_begun = weft_sync_load(&head->n_begun);
    weft_record record;
    *view = (weft_rank_view){.is_known = true, .rank = head->rank, .pid = head->pid};
    memcpy(view->host, head->host, sizeof view->host - 1);
    view->signal = weft_sync_load(&head->signal);
    view->presence = weft_sync_load(&head->has_left) ? WEFT_LEFT : WEFT_PRESENT;
    view->run = weft_sync_load(&head->run);
    view->saved = weft_sync_load(&head->saved);
    view->n_begun = n_begun;
    view->has_failed = weft_sync_load(&head->failed) == n_begun + 1;
    take_busy(head, view);
    weft_device_wait device = {0};
    view->n_open = (int32_t)weft_sync_load(&head->n_open);
    view->is_on_device = take_device(recorder, &device, view);
    const bool has_call = !view->is_on_device && weft_record_read(recorder, waiting, &record) &&
                          record.channel < WEFT_CHANNELS && record.ended == 0;
    if (has_call) take_call(recorder, &record, view);
    print_doing(recorder, has_call ? &record : NULL, &device, view);
    const uint32_t n = weft_sync_load(&head->n_channels);
    for (uint32_t i = 0; i < n && i < WEFT_CHANNELS; i++)
        if (read_channel(&head->channels[i], &view->channels[view->n_channels])) view->n_channels++;
}
