/* recorder: what one rank does, written down as it does it. */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "weft/layout.h"

static const char magic[8] = "weftrec";

/* Calls are a process's, and so are these: entries are written once, then the count is raised. */
static struct {
    weft_recorder *all[WEFT_MOST_RECORDERS];
    _Atomic int n;
    char folder[3800]; /* "": in memory only */
    /* what the watching thread writes, and a recorder that goes into its file */
    pthread_mutex_t writing;
} here = {.writing = PTHREAD_MUTEX_INITIALIZER};

/* ---- words ----------------------------------------------------------------------------------- */

const char *weft_call_name(int kind)
{
    static const char *const names[WEFT_CALLS - WEFT_CALL_ALL_REDUCE] = {
        "all_reduce", "all_gather",     "all_to_all",      "broadcast",       "agreeing on failure",
        "deciding",   "making a group", "leaving the job", "writing together"};
    if (kind >= WEFT_CALL_ALL_REDUCE && kind < WEFT_CALLS)
        return names[kind - WEFT_CALL_ALL_REDUCE];
    return kind >= 0 && kind < WEFT_CONVERTS ? weft_convert_name((weft_convert_kind)kind) : "?";
}

int64_t weft_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t weft_digest(uint64_t before, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    uint64_t digest = before ? before : 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ byte[i]) * 1099511628211u;
    return digest;
}

/* One step of a rolling hash: order counts, and so does every bit. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

uint64_t weft_call_fingerprint(uint64_t before, const weft_call_facts *call)
{
    const uint64_t words = (uint64_t)call->kind | (uint64_t)call->dtype << 8 |
                           (uint64_t)call->combine << 16 | (uint64_t)(uint32_t)call->root << 32;
    return mix(mix(mix(before, words), (uint64_t)call->count), call->digest);
}

/* ---- life ------------------------------------------------------------------------------------ */

int weft_n_recorders(void)
{
    return weft_sync_load_acquire(&here.n);
}

weft_recorder *weft_recorder_at(int index)
{
    return here.all[index];
}

void weft_recorder_path(const char *folder, int rank, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/rank_%05d.rec", folder, rank);
}

static weft_status fail(weft_error *error, const char *path)
{
    return weft_fail(
        error, WEFT_IO,
        "cannot keep records of calls in %.300s: %s; they stay in memory, and are lost "
        "when the process is killed",
        path, strerror(errno));
}

/* Every byte gets its place on the disk now: a full disk later would end the rank at a store. */
static weft_status open_file(const char *path, int *file, weft_error *error)
{
    unlink(path); /* an earlier job's, whose processes may still look at it */
    *file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*file < 0) return fail(error, path);
    errno = posix_fallocate(*file, 0, sizeof(weft_recorder));
    if (errno == 0) return WEFT_OK;
    fail(error, path);
    close(*file);
    unlink(path);
    return WEFT_IO;
}

/* From memory into a file, at the same address: whoever knows the recorder need not be told. */
static weft_status move_into_file(weft_recorder *recorder, const char *folder, weft_error *error)
{
    char path[4096];
    int file;
    weft_recorder_path(folder, recorder->head.rank, path, sizeof path);
    WEFT_TRY(open_file(path, &file, error));
    weft_status status = WEFT_OK;
    const char *from = (const char *)recorder;
    for (size_t at = 0; at < sizeof *recorder && status == WEFT_OK;) {
        const ssize_t n = pwrite(file, from + at, sizeof *recorder - at, (off_t)at);
        if (n <= 0) status = fail(error, path);
        at += n > 0 ? (size_t)n : 0;
    }
    if (status == WEFT_OK && mmap(recorder, sizeof *recorder, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        status = fail(error, path);
    close(file);
    if (status != WEFT_OK) unlink(path);
    return status;
}

/* What the watching thread writes between the copy and the mapping would be lost. */
static weft_status keep(weft_recorder *recorder, const char *folder, weft_error *error)
{
    weft_lock_take(&here.writing);
    const weft_status status = move_into_file(recorder, folder, error);
    weft_lock_give(&here.writing);
    return status;
}

void weft_recorders_alive(int64_t now)
{
    weft_lock_take(&here.writing);
    for (int i = 0; i < weft_n_recorders(); i++)
        weft_sync_store_relaxed(&here.all[i]->head.alive, now);
    weft_lock_give(&here.writing);
}

void weft_recorders_input(int64_t ns)
{
    for (int i = 0; i < weft_n_recorders(); i++)
        weft_sync_add_relaxed(&here.all[i]->head.input, ns);
}

static void fill_head(weft_recorder_head *head, int rank)
{
    memcpy(head->magic, magic, sizeof magic);
    head->format = WEFT_RECORDER_FORMAT;
    head->n_records = WEFT_RECORDS;
    head->n_spots_room = WEFT_SPOTS;
    head->rank = rank;
    head->pid = (int32_t)getpid();
    gethostname(head->host, sizeof head->host - 1);
    head->opened = weft_clock_ns();
    weft_sync_store(&head->alive, head->opened);
    weft_sync_store(&head->saved, -1);
    weft_sync_store(&head->n_spots, 1); /* spot 0: nowhere */
}

weft_recorder *weft_recorder_of(int rank)
{
    const int n = weft_n_recorders();
    for (int i = 0; i < n; i++)
        if (here.all[i]->head.rank == rank) return here.all[i];
    if (n == WEFT_MOST_RECORDERS) return NULL;
    weft_recorder *recorder = mmap(NULL, sizeof *recorder, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (recorder == MAP_FAILED) return NULL;
    fill_head(&recorder->head, rank);
    if (here.folder[0]) (void)keep(recorder, here.folder, NULL);
    here.all[n] = recorder;
    weft_sync_store_release(&here.n, n + 1);
    return recorder;
}

weft_status weft_recorders_keep(const char *folder, weft_error *error)
{
    snprintf(here.folder, sizeof here.folder, "%s", folder);
    for (int i = 0; i < weft_n_recorders(); i++)
        WEFT_TRY(keep(here.all[i], folder, error));
    return WEFT_OK;
}

/* Memory of its own in the place of each: what holds a recorder may go on, and writes nothing into the parent's. */
void weft_recorders_forget(void)
{
    for (int i = 0; i < weft_n_recorders(); i++)
        (void)mmap(here.all[i], sizeof *here.all[i], PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    weft_sync_store(&here.n, 0);
    here.folder[0] = '\0';
}

/* ---- tables ---------------------------------------------------------------------------------- */

int weft_recorder_channel(weft_recorder *recorder, uint64_t key, int lowest, int n_ranks,
                          const char *axes)
{
    weft_recorder_head *head = &recorder->head;
    const uint32_t n = weft_sync_load(&head->n_channels);
    for (uint32_t i = 0; i < n; i++)
        if (head->channels[i].key == key) return (int)i;
    if (n == WEFT_CHANNELS) return -1;
    weft_channel *channel = &head->channels[n];
    channel->key = key;
    channel->lowest = lowest;
    channel->n_ranks = n_ranks;
    snprintf(channel->axes, sizeof channel->axes, "%s", axes);
    weft_sync_store_release(&head->n_channels, n + 1);
    return (int)n;
}

void weft_recorder_tells(weft_recorder *recorder, int channel)
{
    if (recorder != NULL && channel >= 0)
        weft_sync_store_relaxed(&recorder->head.channels[channel].tells, 1);
}

/* Where the number of a spot is, or belongs: a place that is free. Twice as many places as spots: one is. */
static uint16_t *find_spot(weft_recorder *recorder, uint64_t digest, const char *text)
{
    uint64_t at = mix(0, digest);
    for (;; at++) {
        uint16_t *place = &recorder->spot_at[at % (2 * WEFT_SPOTS)];
        const weft_recorded_spot *spot = &recorder->spots[*place];
        if (*place == 0 ||
            (spot->digest == digest && strncmp(spot->text, text, sizeof spot->text - 1) == 0))
            return place;
    }
}

uint32_t weft_recorder_spot(weft_recorder *recorder, uint64_t digest, const char *text)
{
    const uint32_t n = weft_sync_load(&recorder->head.n_spots);
    if (n == 0) return 0; /* a forked process: the records are its parent's */
    uint16_t *at = find_spot(recorder, digest, text);
    if (*at != 0 || n == WEFT_SPOTS) return *at;
    *at = (uint16_t)n;
    weft_recorded_spot *spot = &recorder->spots[n];
    spot->digest = digest;
    snprintf(spot->text, sizeof spot->text, "%s", text);
    weft_sync_store_release(&recorder->head.n_spots, n + 1);
    return n;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void set_channel(weft_channel *channel, uint64_t sequence, uint64_t fingerprint)
{
    weft_guarded_open(&channel->version);
    weft_sync_store_release(&channel->sequence, sequence);
    weft_sync_store_release(&channel->past[sequence % WEFT_PAST], fingerprint);
    weft_guarded_shut(&channel->version);
}

void weft_recorder_settle(weft_recorder *recorder, int channel)
{
    if (recorder == NULL || channel < 0) return;
    set_channel(&recorder->head.channels[channel],
                weft_sync_load(&recorder->head.channels[channel].sequence), 0);
    weft_sync_store(&recorder->head.failed, weft_sync_load(&recorder->head.n_begun) + 1);
}

weft_call_mark weft_recorder_begin(weft_recorder *recorder, int channel,
                                   const weft_call_facts *call)
{
    if (recorder == NULL || channel < 0) return (weft_call_mark){0};
    weft_recorder_head *head = &recorder->head;
    const uint64_t number = weft_sync_load_relaxed(&head->n_begun) + 1;
    weft_channel *its = &head->channels[channel];
    const uint64_t sequence = weft_sync_load_relaxed(&its->sequence);
    const uint64_t before = weft_sync_load_relaxed(&its->past[sequence % WEFT_PAST]);
    const uint64_t fingerprint = weft_call_fingerprint(before, call);
    set_channel(its, sequence + 1, fingerprint);
    const weft_record record = {
        .number = number,
        .begun = weft_clock_ns(),
        .sequence = sequence + 1,
        .fingerprint = fingerprint,
        .count = call->count,
        .run = weft_sync_load_relaxed(&head->run),
        .spot = call->spot,
        .step = weft_sync_load_relaxed(&head->step),
        .root = call->root,
        .channel = (uint16_t)channel,
        .kind = call->kind,
        .dtype = call->dtype,
        .combine = call->combine,
    };
    weft_guarded_put(&recorder->records[number % WEFT_RECORDS], &record, sizeof record);
    if (weft_sync_add_relaxed(&head->n_open, 1) == 0)
        weft_sync_store_relaxed(&head->oldest, number);
    weft_sync_store_release(&head->n_begun, number);
    return (weft_call_mark){number, fingerprint};
}

void weft_recorder_wait(weft_recorder *recorder, const weft_call_mark *mark)
{
    if (mark->number > 0) weft_sync_store_release(&recorder->head.waiting, mark->number);
}

/* NULL: its place has another by now. */
static weft_record *record_of(weft_recorder *recorder, const weft_call_mark *mark)
{
    if (mark->number == 0) return NULL;
    weft_record *record = &recorder->records[mark->number % WEFT_RECORDS];
    return record->number == mark->number ? record : NULL;
}

/* The one time of a record that is under way. */
static void stamp(int64_t *time)
{
    const int64_t now = weft_clock_ns();
    weft_guarded_put(time, &now, sizeof now);
}

void weft_recorder_stamp_wait(weft_recorder *recorder, const weft_call_mark *mark)
{
    weft_record *record = record_of(recorder, mark);
    if (record) stamp(&record->awaited);
    weft_recorder_wait(recorder, mark);
}

void weft_recorder_stamp_arrival(weft_recorder *recorder, const weft_call_mark *mark)
{
    weft_record *record = record_of(recorder, mark);
    if (record) stamp(&record->arrived);
}

/* Those behind it that have ended, or whose records are gone, are not the oldest either. */
static void find_oldest(weft_recorder *recorder)
{
    weft_recorder_head *head = &recorder->head;
    const uint64_t n_begun = weft_sync_load_relaxed(&head->n_begun);
    uint64_t oldest = weft_sync_load_relaxed(&head->oldest);
    for (; oldest <= n_begun; oldest++) {
        const weft_record *record = &recorder->records[oldest % WEFT_RECORDS];
        if (record->number == oldest && record->ended == 0) break;
    }
    weft_sync_store_relaxed(&head->oldest, oldest);
}

void weft_recorder_end(weft_recorder *recorder, const weft_call_mark *mark)
{
    if (mark->number == 0) return;
    weft_recorder_head *head = &recorder->head;
    weft_record *record = record_of(recorder, mark);
    if (record) stamp(&record->ended);
    if (record && weft_sync_load_relaxed(&head->waiting) == mark->number)
        weft_sync_add_relaxed(&head->waited,
                              record->ended - (record->awaited ? record->awaited : record->begun));
    weft_sync_store_release(&head->waiting, 0);
    if (weft_sync_load_relaxed(&head->n_open) > 0) weft_sync_sub_relaxed(&head->n_open, 1);
    if (weft_sync_load_relaxed(&head->oldest) == mark->number) find_oldest(recorder);
}

/* ---- the device ------------------------------------------------------------------------------ */

_Static_assert(sizeof(weft_device_wait) % 8 == 0, "copied in words");

static void change_device(weft_recorder_head *head, const weft_device_wait *wait)
{
    weft_guarded_write(&head->device_version, &head->device, wait, sizeof *wait);
}

void weft_recorder_await(weft_recorder *recorder, const char *device, int queue, uint64_t event,
                         uint64_t done)
{
    if (recorder == NULL) return;
    weft_recorder_head *head = &recorder->head;
    weft_device_wait wait = {.number = head->device.number + 1,
                             .begun = weft_clock_ns(),
                             .event = event,
                             .queue = queue};
    snprintf(wait.device, sizeof wait.device, "%s", device);
    weft_sync_store_relaxed(&head->device_done, done);
    change_device(head, &wait);
}

void weft_recorder_goes_on(weft_recorder *recorder, uint64_t done)
{
    if (recorder == NULL) return;
    weft_sync_store_relaxed(&recorder->head.device_done, done);
}

void weft_recorder_awaited(weft_recorder *recorder)
{
    if (recorder == NULL) return;
    weft_device_wait wait = recorder->head.device;
    wait.ended = weft_clock_ns();
    change_device(&recorder->head, &wait);
}
