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
} here;

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
    return atomic_load_explicit(&here.n, memory_order_acquire);
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
static weft_status keep(weft_recorder *recorder, const char *folder, weft_error *error)
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
    atomic_store(&head->alive, head->opened);
    atomic_store(&head->saved, -1);
    atomic_store(&head->n_spots, 1); /* spot 0: nowhere */
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
    atomic_store_explicit(&here.n, n + 1, memory_order_release);
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
        mmap(here.all[i], sizeof *here.all[i], PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    atomic_store(&here.n, 0);
    here.folder[0] = '\0';
}

/* ---- tables ---------------------------------------------------------------------------------- */

int weft_recorder_channel(weft_recorder *recorder, uint64_t key, int lowest, int n_ranks,
                          const char *axes)
{
    weft_recorder_head *head = &recorder->head;
    const uint32_t n = atomic_load(&head->n_channels);
    for (uint32_t i = 0; i < n; i++)
        if (head->channels[i].key == key) return (int)i;
    if (n == WEFT_CHANNELS) return -1;
    weft_channel *channel = &head->channels[n];
    channel->key = key;
    channel->lowest = lowest;
    channel->n_ranks = n_ranks;
    snprintf(channel->axes, sizeof channel->axes, "%s", axes);
    atomic_store_explicit(&head->n_channels, n + 1, memory_order_release);
    return (int)n;
}

uint32_t weft_recorder_spot(weft_recorder *recorder, uint64_t digest, const char *text)
{
    const uint32_t n = atomic_load(&recorder->head.n_spots);
    if (n == 0) return 0; /* a forked process: the records are its parent's */
    for (uint32_t i = n - 1; i > 0; i--) {
        const weft_recorded_spot *spot = &recorder->spots[i];
        if (spot->digest == digest && strncmp(spot->text, text, sizeof spot->text - 1) == 0)
            return i;
    }
    if (n == WEFT_SPOTS) return 0;
    weft_recorded_spot *spot = &recorder->spots[n];
    spot->digest = digest;
    snprintf(spot->text, sizeof spot->text, "%s", text);
    atomic_store_explicit(&recorder->head.n_spots, n + 1, memory_order_release);
    return n;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void set_channel(weft_channel *channel, uint64_t sequence, uint64_t fingerprint)
{
    const uint32_t version = atomic_load_explicit(&channel->version, memory_order_relaxed);
    atomic_store_explicit(&channel->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&channel->sequence, sequence, memory_order_relaxed);
    atomic_store_explicit(&channel->past[sequence % WEFT_PAST], fingerprint, memory_order_relaxed);
    atomic_store_explicit(&channel->version, version + 2, memory_order_release);
}

void weft_recorder_settle(weft_recorder *recorder, int channel)
{
    if (recorder == NULL || channel < 0) return;
    set_channel(&recorder->head.channels[channel],
                atomic_load(&recorder->head.channels[channel].sequence), 0);
    atomic_store(&recorder->head.failed, atomic_load(&recorder->head.n_begun) + 1);
}

weft_call_mark weft_recorder_begin(weft_recorder *recorder, int channel,
                                   const weft_call_facts *call)
{
    if (recorder == NULL || channel < 0) return (weft_call_mark){0};
    weft_recorder_head *head = &recorder->head;
    const uint64_t number = atomic_load_explicit(&head->n_begun, memory_order_relaxed) + 1;
    weft_channel *its = &head->channels[channel];
    const uint64_t sequence = atomic_load_explicit(&its->sequence, memory_order_relaxed);
    const uint64_t before =
        atomic_load_explicit(&its->past[sequence % WEFT_PAST], memory_order_relaxed);
    const uint64_t fingerprint = weft_call_fingerprint(before, call);
    set_channel(its, sequence + 1, fingerprint);
    recorder->records[number % WEFT_RECORDS] = (weft_record){
        .number = number,
        .begun = weft_clock_ns(),
        .sequence = sequence + 1,
        .fingerprint = fingerprint,
        .count = call->count,
        .run = atomic_load_explicit(&head->run, memory_order_relaxed),
        .spot = call->spot,
        .step = atomic_load_explicit(&head->step, memory_order_relaxed),
        .root = call->root,
        .channel = (uint16_t)channel,
        .kind = call->kind,
        .dtype = call->dtype,
        .combine = call->combine,
    };
    if (atomic_fetch_add_explicit(&head->n_open, 1, memory_order_relaxed) == 0)
        atomic_store_explicit(&head->oldest, number, memory_order_relaxed);
    atomic_store_explicit(&head->n_begun, number, memory_order_release);
    return (weft_call_mark){number, fingerprint};
}

void weft_recorder_wait(weft_recorder *recorder, const weft_call_mark *mark)
{
    if (mark->number > 0)
        atomic_store_explicit(&recorder->head.waiting, mark->number, memory_order_release);
}

/* NULL: its place has another by now. */
static weft_record *record_of(weft_recorder *recorder, const weft_call_mark *mark)
{
    if (mark->number == 0) return NULL;
    weft_record *record = &recorder->records[mark->number % WEFT_RECORDS];
    return record->number == mark->number ? record : NULL;
}

void weft_recorder_stamp_wait(weft_recorder *recorder, const weft_call_mark *mark)
{
    weft_record *record = record_of(recorder, mark);
    if (record) record->awaited = weft_clock_ns();
    weft_recorder_wait(recorder, mark);
}

void weft_recorder_stamp_arrival(weft_recorder *recorder, const weft_call_mark *mark)
{
    weft_record *record = record_of(recorder, mark);
    if (record) record->arrived = weft_clock_ns();
}

/* Those behind it that have ended, or whose records are gone, are not the oldest either. */
static void find_oldest(weft_recorder *recorder)
{
    weft_recorder_head *head = &recorder->head;
    const uint64_t n_begun = atomic_load_explicit(&head->n_begun, memory_order_relaxed);
    uint64_t oldest = atomic_load_explicit(&head->oldest, memory_order_relaxed);
    for (; oldest <= n_begun; oldest++) {
        const weft_record *record = &recorder->records[oldest % WEFT_RECORDS];
        if (record->number == oldest && record->ended == 0) break;
    }
    atomic_store_explicit(&head->oldest, oldest, memory_order_relaxed);
}

void weft_recorder_end(weft_recorder *recorder, const weft_call_mark *mark)
{
    if (mark->number == 0) return;
    weft_recorder_head *head = &recorder->head;
    weft_record *record = &recorder->records[mark->number % WEFT_RECORDS];
    if (record->number == mark->number) record->ended = weft_clock_ns();
    atomic_store_explicit(&head->waiting, 0, memory_order_release);
    if (atomic_load_explicit(&head->n_open, memory_order_relaxed) > 0)
        atomic_fetch_sub_explicit(&head->n_open, 1, memory_order_relaxed);
    if (atomic_load_explicit(&head->oldest, memory_order_relaxed) == mark->number)
        find_oldest(recorder);
}

/* ---- the device ------------------------------------------------------------------------------ */

static void change_device(weft_recorder_head *head, const weft_device_wait *wait)
{
    const uint32_t version = atomic_load_explicit(&head->device_version, memory_order_relaxed);
    atomic_store_explicit(&head->device_version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    head->device = *wait;
    atomic_store_explicit(&head->device_version, version + 2, memory_order_release);
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
    atomic_store_explicit(&head->device_done, done, memory_order_relaxed);
    change_device(head, &wait);
}

void weft_recorder_goes_on(weft_recorder *recorder, uint64_t done)
{
    if (recorder == NULL) return;
    atomic_store_explicit(&recorder->head.device_done, done, memory_order_relaxed);
}

void weft_recorder_awaited(weft_recorder *recorder)
{
    if (recorder == NULL) return;
    weft_device_wait wait = recorder->head.device;
    wait.ended = weft_clock_ns();
    change_device(&recorder->head, &wait);
}
