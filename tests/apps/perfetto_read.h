/* perfetto_read.h: a file of apps/perfetto.c, read again: fields, then packets, then slices with their notes and arrows. */
#ifndef TEST_PERFETTO_READ_H
#define TEST_PERFETTO_READ_H

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "apps/proto_read.h"
#include "perfetto.h"
#include "test.h"

enum {
    READ_TRACKS = 64,
    READ_SLICES = 1 << 15,
    READ_TEXTS = 512,
    READ_DEPTH = 16,
    READ_TABLES = 30,
    READ_NOTES = 10
};

typedef struct read_slice {
    uint32_t track;
    int64_t begin, end;
    int depth;
    const char *name, *category;
    uint64_t flows[2];
    int n_flows, n_notes;
    const char *note_names[READ_NOTES], *note_texts[READ_NOTES];
    int64_t note_numbers[READ_NOTES];
} read_slice;

typedef struct read_trace {
    char *texts[READ_TABLES][READ_TEXTS]; /* by the field of their table, by number */
    char *tracks[READ_TRACKS];            /* names */
    read_slice slices[READ_SLICES];
    int n_slices, n_events, n_counts, open[READ_TRACKS][READ_DEPTH], n_open[READ_TRACKS];
    int64_t last, counts[READ_SLICES];
    uint32_t count_tracks[READ_SLICES];
} read_trace;

/* The value, or place, of a field of a message; number 0: it has none. */
static inline read_field read_find(const read_field *message, uint32_t number)
{
    read_field f;
    const unsigned char *at = message->data;
    while (read_next(&at, message->data + message->bytes, &f))
        if (f.number == number) return f;
    return (read_field){0};
}

static inline void read_texts(read_trace *t, const read_field *interned)
{
    read_field f;
    const unsigned char *at = interned->data;
    while (read_next(&at, interned->data + interned->bytes, &f)) {
        const read_field id = read_find(&f, 1), text = read_find(&f, 2);
        if (!CHECK(f.number < READ_TABLES && id.value > 0 && id.value < READ_TEXTS)) return;
        t->texts[f.number][id.value] = strndup((const char *)text.data, text.bytes);
    }
}

static inline void read_track(read_trace *t, const read_field *track)
{
    const read_field id = read_find(track, 1), process = read_find(track, 3),
                     thread = read_find(track, 4), own = read_find(track, 2);
    if (!CHECK(id.value > 0 && id.value < READ_TRACKS && t->tracks[id.value] == NULL)) return;
    const read_field name = process.number  ? read_find(&process, 6)
                            : thread.number ? read_find(&thread, 5)
                                            : own;
    t->tracks[id.value] = strndup((const char *)name.data, name.bytes);
}

static inline void read_begin(read_trace *t, const read_field *event, uint32_t track, int64_t time)
{
    read_slice *s = &t->slices[t->n_slices];
    read_field f;
    const unsigned char *at = event->data;
    *s = (read_slice){.track = track, .begin = time, .end = -1, .depth = t->n_open[track]};
    while (read_next(&at, event->data + event->bytes, &f)) {
        if (f.number == 10) s->name = t->texts[2][f.value];
        if (f.number == 3) s->category = t->texts[1][f.value];
        if (f.number == 47 && CHECK(s->n_flows < 2)) s->flows[s->n_flows++] = f.value;
        if (f.number != 4 || !CHECK(s->n_notes < READ_NOTES)) continue;
        const read_field text = read_find(&f, 17);
        s->note_names[s->n_notes] = t->texts[3][read_find(&f, 1).value];
        s->note_texts[s->n_notes] = text.number ? t->texts[29][text.value] : NULL;
        s->note_numbers[s->n_notes++] = (int64_t)read_find(&f, 4).value;
    }
    if (CHECK(t->n_open[track] < READ_DEPTH)) t->open[track][t->n_open[track]++] = t->n_slices++;
}

static inline void read_event(read_trace *t, const read_field *event, int64_t time)
{
    const uint64_t type = read_find(event, 9).value, track = read_find(event, 11).value;
    CHECK(time >= t->last);
    t->last = time;
    t->n_events++;
    if (!CHECK(track < READ_TRACKS && t->tracks[track] != NULL && t->n_slices < READ_SLICES))
        return;
    if (type == 1) read_begin(t, event, (uint32_t)track, time);
    if (type == 2 && CHECK(t->n_open[track] > 0))
        t->slices[t->open[track][--t->n_open[track]]].end = time;
    if (type != 4) return;
    t->count_tracks[t->n_counts] = (uint32_t)track;
    t->counts[t->n_counts++] = (int64_t)read_find(event, 30).value;
}

static inline void read_packets(read_trace *t, const unsigned char *data, size_t bytes)
{
    read_field packet;
    const unsigned char *at = data;
    while (read_next(&at, data + bytes, &packet)) {
        const read_field small = read_find(&packet, 50), texts = read_find(&packet, 12),
                         track = read_find(&packet, 60), event = read_find(&packet, 11);
        uLongf room = 1 << 21;
        if (small.number) {
            unsigned char *large = malloc(room);
            CHECK_EQ_INT(uncompress(large, &room, small.data, small.bytes), Z_OK);
            read_packets(t, large, room);
            free(large);
        }
        if (texts.number) read_texts(t, &texts);
        if (track.number) read_track(t, &track);
        if (event.number) read_event(t, &event, (int64_t)read_find(&packet, 8).value);
    }
}

/* What was put into p, written and read; all slices have an end. To be given back: read_close. */
static inline read_trace *read_back(perfetto *p)
{
    char *all = NULL;
    size_t bytes = 0;
    weft_error error = {0};
    read_trace *t = calloc(1, sizeof *t);
    FILE *file = open_memstream(&all, &bytes);
    CHECK_OK(perfetto_write(p, file, &error), error);
    fclose(file);
    read_packets(t, (const unsigned char *)all, bytes);
    for (int i = 0; i < READ_TRACKS; i++)
        CHECK_EQ_INT(t->n_open[i], 0);
    free(all);
    return t;
}

static inline void read_close(read_trace *t)
{
    for (int i = 0; i < READ_TABLES; i++)
        for (int k = 0; k < READ_TEXTS; k++)
            free(t->texts[i][k]);
    for (int i = 0; i < READ_TRACKS; i++)
        free(t->tracks[i]);
    free(t);
}

/* The first slice of that category and name from *from on, which becomes the one behind it; NULL: there is none. */
static inline const read_slice *read_slice_of(const read_trace *t, const char *category,
                                              const char *track, int *from)
{
    for (int i = *from; i < t->n_slices; i++) {
        const read_slice *s = &t->slices[i];
        if (strcmp(s->category, category) != 0 || strcmp(t->tracks[s->track], track) != 0) continue;
        *from = i + 1;
        return s;
    }
    return NULL;
}

#endif
