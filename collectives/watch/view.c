/* view: what a recorder says at one moment, while its rank goes on writing it. */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "weft/extend/combine.h"
#include "weft/layout.h"

bool weft_record_read(const weft_recorder *recorder, uint64_t number, weft_record *record)
{
    if (number == 0) return false;
    memcpy(record, &recorder->records[number % WEFT_RECORDS], sizeof *record);
    atomic_thread_fence(memory_order_acquire);
    /* The next record but one to be written may be half there already. */
    return record->number == number &&
           atomic_load(&recorder->head.n_begun) < number + WEFT_RECORDS - 1;
}

/* Both or none: a sequence with the fingerprint of another would look like ranks that disagree. */
static bool read_channel(const weft_channel *channel, weft_channel_view *view)
{
    for (int tries = 0; tries < 1000; tries++) {
        const uint32_t before = atomic_load_explicit(&channel->version, memory_order_acquire);
        *view = (weft_channel_view){
            .key = channel->key,
            .sequence = atomic_load_explicit(&channel->sequence, memory_order_relaxed),
            .lowest = channel->lowest,
            .n_ranks = channel->n_ranks};
        for (int i = 0; i < WEFT_PAST; i++)
            view->past[i] = atomic_load_explicit(&channel->past[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (before % 2 == 0 && before == atomic_load(&channel->version)) return true;
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

/* Whether a rank so far ahead has other calls behind it. A fingerprint of 0 is that of ranks that have spoken of it. */
static bool recalls_other(const weft_rank_view *ahead, const weft_channel_view *own,
                          const weft_channel_view *behind)
{
    const weft_recall *r = &ahead->recalled;
    const uint64_t its = behind->past[behind->sequence % WEFT_PAST];
    return r->sequence > 0 && r->key == own->key && r->lowest == own->lowest &&
           r->sequence == behind->sequence && r->fingerprint != 0 && its != 0 &&
           r->fingerprint != its;
}

bool weft_views_differ(const weft_rank_view *a, const weft_rank_view *b)
{
    for (int i = 0; i < a->n_channels; i++) {
        const weft_channel_view *own = &a->channels[i],
                                *its = weft_view_channel(b, own->key, own->lowest);
        if (its && (weft_channels_differ(own, its) || recalls_other(a, own, its) ||
                    recalls_other(b, its, own)))
            return true;
    }
    return false;
}

/* The other rank is ahead in the group of a call, and cannot be compared with who waits in it. */
static bool is_far_ahead(const weft_rank_view *other, const weft_channel_view *call)
{
    const weft_channel_view *its = weft_view_channel(other, call->key, call->lowest);
    const weft_recall *r = &other->recalled;
    const bool is_answered =
        r->key == call->key && r->lowest == call->lowest && r->sequence == call->sequence;
    return its != NULL && its->sequence >= call->sequence + WEFT_PAST && !is_answered;
}

weft_recall weft_views_ask(const weft_rank_view *views, int n)
{
    for (int i = 0; i < n; i++) {
        const weft_channel_view *call = &views[i].call;
        for (int k = 0; k < n && views[i].is_known && views[i].is_waiting; k++)
            if (k != i && views[k].is_known && is_far_ahead(&views[k], call))
                return (weft_recall){
                    .key = call->key, .sequence = call->sequence, .lowest = call->lowest};
    }
    return (weft_recall){0};
}

/* The ring is gone through from the last call back. */
void weft_view_recall(const weft_recorder *recorder, const weft_recall *asked, weft_rank_view *view)
{
    const uint64_t last = atomic_load(&recorder->head.n_begun);
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

static void print_doing(const weft_recorder *recorder, const weft_record *waiting, uint64_t n_begun,
                        weft_rank_view *view)
{
    char call[WEFT_DOING_BYTES - 16] = "";
    weft_record last;
    const char *spot = spot_text(recorder, atomic_load(&recorder->head.spot));
    if (waiting) {
        weft_record_print(recorder, waiting, call, sizeof call);
        snprintf(view->doing, sizeof view->doing, "in %s", call);
    } else if (*spot && atomic_load(&recorder->head.is_running)) {
        snprintf(view->doing, sizeof view->doing, "in its own work %s", spot);
    } else if (weft_record_read(recorder, n_begun, &last)) {
        weft_record_print(recorder, &last, call, sizeof call);
        snprintf(view->doing, sizeof view->doing, "after %s", call);
    } else {
        snprintf(view->doing, sizeof view->doing, "before its first call");
    }
}

/* ---- the view -------------------------------------------------------------------------------- */

static void take_call(const weft_recorder *recorder, const weft_record *record,
                      weft_rank_view *view)
{
    const weft_channel *channel = &recorder->head.channels[record->channel];
    const int64_t bytes =
        record->dtype < WEFT_DTYPES ? (int64_t)weft_dtype_bytes((weft_dtype)record->dtype) : 1;
    view->is_waiting = true;
    view->call = (weft_channel_view){.key = channel->key,
                                     .sequence = record->sequence,
                                     .lowest = channel->lowest,
                                     .n_ranks = channel->n_ranks};
    if (__builtin_mul_overflow(record->count, bytes * channel->n_ranks, &view->call_bytes))
        view->call_bytes = INT64_MAX; /* a damaged file */
}

static void take_busy(const weft_recorder_head *head, weft_rank_view *view)
{
    const uint32_t version = atomic_load(&head->busy_version);
    memcpy(view->busy, head->busy, sizeof view->busy);
    view->busy[sizeof view->busy - 1] = '\0';
    if (version % 2 == 1 || atomic_load(&head->busy_version) != version) view->busy[0] = '\0';
}

void weft_view_take(const weft_recorder *recorder, weft_rank_view *view)
{
    const weft_recorder_head *head = &recorder->head;
    /* In this order: what a rank waits in is read before how far it has come (judge.c). */
    const uint64_t waiting = atomic_load(&head->waiting), n_begun = atomic_load(&head->n_begun);
    weft_record record;
    *view = (weft_rank_view){.is_known = true, .rank = head->rank, .pid = head->pid};
    memcpy(view->host, head->host, sizeof view->host - 1);
    view->signal = atomic_load(&head->signal);
    view->presence = atomic_load(&head->has_left) ? WEFT_LEFT : WEFT_PRESENT;
    view->run = atomic_load(&head->run);
    view->saved = atomic_load(&head->saved);
    view->n_begun = n_begun;
    view->has_failed = atomic_load(&head->failed) == n_begun + 1;
    take_busy(head, view);
    const bool has_call = weft_record_read(recorder, waiting, &record) &&
                          record.channel < WEFT_CHANNELS && record.ended == 0;
    if (has_call) take_call(recorder, &record, view);
    print_doing(recorder, has_call ? &record : NULL, n_begun, view);
    const uint32_t n = atomic_load(&head->n_channels);
    for (uint32_t i = 0; i < n && i < WEFT_CHANNELS; i++)
        if (read_channel(&head->channels[i], &view->channels[view->n_channels])) view->n_channels++;
}
