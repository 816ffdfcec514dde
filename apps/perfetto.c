/* perfetto: a trace file for Perfetto: tracks of slices, and counters, from any source. */
#include "perfetto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Numbers of fields, as in perfetto/trace/ *.proto. */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIME = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_DEFLATED = 50,
    PACKET_TRACK = 60
};
enum { FLAG_FIRST = 1, FLAG_USES_INTERNED = 2 };
enum {
    EVENT_CATEGORY = 3,
    EVENT_NOTE = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_COUNT = 30,
    EVENT_FLOW = 47
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };
enum { NOTE_NAME = 1, NOTE_NUMBER = 4, NOTE_TEXT = 17 };
enum {
    TRACK_ID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, UNIT_BYTES = 3 };
enum { INTERNED_ID = 1, INTERNED_TEXT = 2 };

/* Texts are numbered by what they are for, each from 1. */
typedef enum text_use { CATEGORIES, NAMES, NOTE_NAMES, TEXTS, USES } text_use;
static const uint32_t interned_as[USES] = {1, 2, 3, 29};

enum { SEQUENCE = 1, FIRST_THREAD = 1000000, CHUNK = 1 << 19 };

typedef struct known {
    char *text;
    uint32_t id;
} known;

typedef struct table {
    known *all; /* [room] by hash; text NULL: free */
    uint32_t n, room;
} table;

typedef struct track_state {
    uint32_t pid; /* of its process */
    int64_t last; /* the latest call */
    int n_open;
} track_state;

typedef struct event {
    int64_t at;
    size_t begin, bytes; /* in `events` */
} event;

struct perfetto {
    table tables[USES];
    proto interned, described; /* fields of the first packet; packets */
    proto events;              /* each a field of its packet */
    proto one, note;           /* being made */
    track_state *tracks;       /* [n_tracks + 1] */
    event *order;              /* [n_events] */
    size_t n_events, room;
    uint32_t n_tracks, n_processes;
    int64_t n_slices;
    bool is_short;
};

perfetto *perfetto_create(void)
{
    return calloc(1, sizeof(perfetto));
}

void perfetto_destroy(perfetto **p)
{
    if (!*p) return;
    for (int use = 0; use < USES; use++) {
        for (uint32_t i = 0; i < (*p)->tables[use].room; i++)
            free((*p)->tables[use].all[i].text);
        free((*p)->tables[use].all);
    }
    proto_free(&(*p)->interned);
    proto_free(&(*p)->described);
    proto_free(&(*p)->events);
    proto_free(&(*p)->one);
    proto_free(&(*p)->note);
    free((*p)->tracks);
    free((*p)->order);
    free(*p);
    *p = NULL;
}

/* ---- texts ------------------------------------------------------------------------------------- */

static known *find(const table *t, const char *text)
{
    uint32_t at = 2166136261u;
    for (const char *c = text; *c; c++)
        at = (at ^ (unsigned char)*c) * 16777619u;
    for (;; at++) {
        known *place = &t->all[at % t->room];
        if (!place->text || strcmp(place->text, text) == 0) return place;
    }
}

static bool widen(table *t)
{
    const table old = *t;
    const table wide = {calloc(2 * old.room + 64, sizeof(known)), old.n, 2 * old.room + 64};
    if (!wide.all) return false;
    for (uint32_t i = 0; i < old.room; i++)
        if (old.all[i].text) *find(&wide, old.all[i].text) = old.all[i];
    free(old.all);
    *t = wide;
    return true;
}

static uint32_t intern(perfetto *p, text_use use, const char *text)
{
    table *t = &p->tables[use];
    if (2 * (t->n + 1) > t->room && !widen(t)) return p->is_short = true, 0;
    known *place = find(t, text);
    if (place->text) return place->id;
    *place = (known){strdup(text), t->n + 1};
    if (!place->text) return p->is_short = true, 0;
    proto entry = {0};
    proto_number(&entry, INTERNED_ID, ++t->n);
    proto_text(&entry, INTERNED_TEXT, text);
    proto_bytes(&p->interned, interned_as[use], entry.all, entry.bytes);
    p->is_short = p->is_short || entry.is_short;
    proto_free(&entry);
    return place->id;
}

/* ---- tracks ------------------------------------------------------------------------------------ */

static void put_packet(proto *to, uint32_t field, const proto *fields)
{
    proto packet = {0};
    proto_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    proto_bytes(&packet, field, fields->all, fields->bytes);
    proto_bytes(to, TRACE_PACKET, packet.all, packet.bytes);
    to->is_short |= packet.is_short | fields->is_short;
    proto_free(&packet);
}

/* A track, with what it is: `kind` says the field of `what`. */
static uint32_t add_track(perfetto *p, uint32_t pid, uint32_t kind, proto *what, proto *rest)
{
    track_state *tracks = realloc(p->tracks, (p->n_tracks + 2) * sizeof *tracks);
    if (tracks) {
        p->tracks = tracks;
        tracks[++p->n_tracks] = (track_state){.pid = pid, .last = INT64_MIN};
        proto_number(rest, TRACK_ID, p->n_tracks);
        proto_bytes(rest, kind, what->all, what->bytes);
        put_packet(&p->described, PACKET_TRACK, rest);
    }
    p->is_short = p->is_short || !tracks || what->is_short || rest->is_short;
    proto_free(what);
    proto_free(rest);
    return p->is_short ? 0 : p->n_tracks;
}

uint32_t perfetto_process(perfetto *p, const char *name)
{
    proto what = {0}, rest = {0};
    const uint32_t pid = ++p->n_processes;
    proto_number(&what, PROCESS_PID, pid);
    proto_text(&what, PROCESS_NAME, name);
    return add_track(p, pid, TRACK_PROCESS, &what, &rest);
}

uint32_t perfetto_thread(perfetto *p, uint32_t process, const char *name)
{
    proto what = {0}, rest = {0};
    if (process == 0) return 0;
    const uint32_t pid = p->tracks[process].pid;
    proto_number(&what, THREAD_PID, pid);
    proto_number(&what, THREAD_TID, FIRST_THREAD + p->n_tracks);
    proto_text(&what, THREAD_NAME, name);
    return add_track(p, pid, TRACK_THREAD, &what, &rest);
}

uint32_t perfetto_counter(perfetto *p, uint32_t process, const char *name)
{
    proto what = {0}, rest = {0};
    if (process == 0) return 0;
    proto_text(&rest, TRACK_NAME, name);
    proto_number(&rest, TRACK_PARENT, process);
    proto_number(&what, COUNTER_UNIT, UNIT_BYTES);
    return add_track(p, p->tracks[process].pid, TRACK_COUNTER, &what, &rest);
}

/* ---- events ------------------------------------------------------------------------------------ */

static bool has_room(perfetto *p)
{
    if (p->n_events < p->room) return true;
    const size_t room = 2 * p->room + 1024;
    event *order = realloc(p->order, room * sizeof *order);
    if (!order) return false;
    p->order = order;
    p->room = room;
    return true;
}

/* What was made of it, no earlier than the call before on its track. */
static void add_event(perfetto *p, uint32_t number, int64_t at)
{
    track_state *t = &p->tracks[number];
    if (!has_room(p)) {
        p->is_short = true;
        return;
    }
    if (at > t->last) t->last = at;
    const size_t begin = p->events.bytes;
    proto_bytes(&p->events, PACKET_EVENT, p->one.all, p->one.bytes);
    p->order[p->n_events++] = (event){t->last, begin, p->events.bytes - begin};
    p->is_short = p->is_short || p->one.is_short || p->events.is_short;
}

static void make(perfetto *p, uint32_t track, uint64_t type)
{
    p->one.bytes = 0;
    proto_number(&p->one, EVENT_TYPE, type);
    proto_number(&p->one, EVENT_TRACK, track);
}

static void add_note(perfetto *p, const perfetto_note *note)
{
    p->note.bytes = 0;
    proto_number(&p->note, NOTE_NAME, intern(p, NOTE_NAMES, note->name));
    if (note->text)
        proto_number(&p->note, NOTE_TEXT, intern(p, TEXTS, note->text));
    else
        proto_number(&p->note, NOTE_NUMBER, (uint64_t)note->number);
    proto_bytes(&p->one, EVENT_NOTE, p->note.all, p->note.bytes);
    p->is_short = p->is_short || p->note.is_short;
}

void perfetto_begin(perfetto *p, uint32_t track, int64_t at, const perfetto_slice *slice)
{
    if (track == 0) return;
    make(p, track, TYPE_BEGIN);
    proto_number(&p->one, EVENT_NAME, intern(p, NAMES, slice->name));
    if (slice->category)
        proto_number(&p->one, EVENT_CATEGORY, intern(p, CATEGORIES, slice->category));
    for (int i = 0; i < slice->n_notes; i++)
        add_note(p, &slice->notes[i]);
    for (int i = 0; i < slice->n_flows; i++)
        proto_fixed(&p->one, EVENT_FLOW, slice->flows[i]);
    add_event(p, track, at);
    p->tracks[track].n_open++;
    p->n_slices++;
}

void perfetto_end(perfetto *p, uint32_t track, int64_t at)
{
    if (track == 0 || p->tracks[track].n_open == 0) return;
    make(p, track, TYPE_END);
    add_event(p, track, at);
    p->tracks[track].n_open--;
}

void perfetto_count(perfetto *p, uint32_t track, int64_t at, int64_t value)
{
    if (track == 0) return;
    make(p, track, TYPE_COUNTER);
    proto_number(&p->one, EVENT_COUNT, (uint64_t)value);
    add_event(p, track, at);
}

int64_t perfetto_slices(const perfetto *p)
{
    return p->n_slices;
}

/* ---- the file ---------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->at != y->at) return (x->at > y->at) - (x->at < y->at);
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void put_event(const perfetto *p, const event *e, proto *packet, proto *to)
{
    packet->bytes = 0;
    proto_number(packet, PACKET_SEQUENCE, SEQUENCE);
    proto_number(packet, PACKET_TIME, (uint64_t)e->at);
    proto_number(packet, PACKET_FLAGS, FLAG_USES_INTERNED);
    proto_raw(packet, p->events.all + e->begin, e->bytes);
    proto_bytes(to, TRACE_PACKET, packet->all, packet->bytes);
}

/* The packets so far, as one. */
static bool deflate_all(proto *packets, FILE *file)
{
    uLongf bytes = compressBound(packets->bytes);
    proto packet = {0}, whole = {0};
    unsigned char *small = malloc(bytes);
    bool is_good = small && !packets->is_short &&
                   compress2(small, &bytes, packets->all, packets->bytes, 6) == Z_OK;
    if (is_good) {
        proto_bytes(&packet, PACKET_DEFLATED, small, bytes);
        proto_bytes(&whole, TRACE_PACKET, packet.all, packet.bytes);
        is_good = !packet.is_short && !whole.is_short;
    }
    if (is_good) (void)!fwrite(whole.all, 1, whole.bytes, file); /* the file keeps its failure */
    free(small);
    proto_free(&packet);
    proto_free(&whole);
    packets->bytes = 0;
    return is_good;
}

/* All texts, before what names their numbers. */
static void put_texts(const perfetto *p, proto *to)
{
    proto first = {0};
    proto_number(&first, PACKET_SEQUENCE, SEQUENCE);
    proto_number(&first, PACKET_FLAGS, FLAG_FIRST | FLAG_USES_INTERNED);
    proto_bytes(&first, PACKET_INTERNED, p->interned.all, p->interned.bytes);
    proto_bytes(to, TRACE_PACKET, first.all, first.bytes);
    to->is_short |= first.is_short;
    proto_free(&first);
}

static bool write_all(const perfetto *p, FILE *file)
{
    proto packets = {0}, packet = {0};
    put_texts(p, &packets);
    proto_raw(&packets, p->described.all, p->described.bytes);
    bool is_good = true;
    for (size_t i = 0; i < p->n_events && is_good; i++) {
        put_event(p, &p->order[i], &packet, &packets);
        if (packets.bytes > CHUNK) is_good = deflate_all(&packets, file);
    }
    is_good = is_good && deflate_all(&packets, file) && !packet.is_short;
    proto_free(&packets);
    proto_free(&packet);
    return is_good;
}

int64_t perfetto_bytes(const perfetto *p)
{
    proto one = {0}, packet = {0};
    const event last = {.at = INT64_MAX / 2};
    put_event(p, &last, &packet, &one); /* what is around an event */
    const size_t around = one.bytes;
    proto_free(&one);
    proto_free(&packet);
    return (int64_t)(p->interned.bytes + p->described.bytes + p->events.bytes +
                     around * p->n_events);
}

weft_status perfetto_write(perfetto *p, FILE *file, weft_error *error)
{
    for (uint32_t t = 1; t <= p->n_tracks; t++)
        while (p->tracks[t].n_open > 0)
            perfetto_end(p, t, p->tracks[t].last);
    if (p->n_events > 0) qsort(p->order, p->n_events, sizeof *p->order, by_time);
    errno = 0;
    const bool is_short = p->is_short || p->interned.is_short || p->described.is_short;
    if (is_short || !write_all(p, file)) return weft_fail_memory(error, p->events.bytes);
    if (fflush(file) == 0 && !ferror(file)) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "%s", strerror(errno));
}
