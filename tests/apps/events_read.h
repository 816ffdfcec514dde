/* events_read.h: an event file of TensorBoard, read by hand: records with their CRCs, events, values. Nothing of apps/events.c but its CRC,
 * which a test compares with known ones, is used. */
#ifndef TEST_EVENTS_READ_H
#define TEST_EVENTS_READ_H

#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/events.h"
#include "apps/proto_read.h"
#include "test.h"

enum { READ_EVENTS = 4096, READ_TAG = 80, READ_PARTS = 64 };

typedef struct read_event {
    double time;
    int64_t step;
    char tag[READ_TAG]; /* "": none */
    char version[32];
    bool is_start, is_scalar, is_text, is_histogram;
    double number;
    double low, high, count, sum, squares;
    double limits[READ_PARTS], counts[READ_PARTS];
    int n_parts;
    char text[8000];
    const unsigned char *graph;
    size_t graph_bytes;
} read_event;

typedef struct read_file {
    unsigned char *all;
    size_t bytes;
    read_event *events; /* [n] */
    int n;
    bool is_whole; /* it ends with its last record */
} read_file;

static inline double read_double(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline float read_float(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float number;
    memcpy(&number, &low, sizeof number);
    return number;
}

static inline void read_text(char *to, size_t room, const read_field *f)
{
    const size_t n = f->bytes < room - 1 ? f->bytes : room - 1;
    memcpy(to, f->data, n);
    to[n] = '\0';
}

static inline void read_parts(double *to, const read_field *f)
{
    if (!CHECK(f->bytes <= 8 * READ_PARTS)) return;
    for (size_t i = 0; i < f->bytes / 8; i++)
        to[i] = read_double(read_little(f->data + 8 * i, 8));
}

static inline void read_histogram(read_event *e, const read_field *message)
{
    read_field f;
    e->is_histogram = true;
    for (const unsigned char *at = message->data;
         read_next(&at, message->data + message->bytes, &f);) {
        double *const numbers[] = {NULL, &e->low, &e->high, &e->count, &e->sum, &e->squares};
        if (f.number >= 1 && f.number <= 5) *numbers[f.number] = read_double(f.value);
        if (f.number == 6) e->n_parts = (int)f.bytes / 8;
        if (f.number == 6) read_parts(e->limits, &f);
        if (f.number == 7) read_parts(e->counts, &f);
    }
}

static inline void read_value(read_event *e, const read_field *message)
{
    read_field f, g;
    for (const unsigned char *at = message->data;
         read_next(&at, message->data + message->bytes, &f);) {
        if (f.number == 1) read_text(e->tag, sizeof e->tag, &f);
        if (f.number == 2) e->number = (double)read_float(f.value);
        if (f.number == 2) e->is_scalar = true;
        if (f.number == 5) read_histogram(e, &f);
        for (const unsigned char *in = f.data;
             f.number == 8 && read_next(&in, f.data + f.bytes, &g);)
            if (g.number == 8) read_text(e->text, sizeof e->text, &g);
        e->is_text = e->text[0] != '\0';
    }
}

static inline void read_one(read_event *e, const unsigned char *data, size_t bytes)
{
    read_field f, g;
    *e = (read_event){0};
    for (const unsigned char *at = data; read_next(&at, data + bytes, &f);) {
        if (f.number == 1) e->time = read_double(f.value);
        if (f.number == 2) e->step = (int64_t)f.value;
        if (f.number == 3) read_text(e->version, sizeof e->version, &f);
        if (f.number == 4) e->graph = f.data;
        if (f.number == 4) e->graph_bytes = f.bytes;
        for (const unsigned char *in = f.data;
             f.number == 5 && read_next(&in, f.data + f.bytes, &g);)
            if (g.number == 1) read_value(e, &g);
        for (const unsigned char *in = f.data;
             f.number == 7 && read_next(&in, f.data + f.bytes, &g);)
            e->is_start |= g.number == 1 && g.value == 1;
    }
}

/* Records up to the first that is not whole, or whose CRC is another: how many, and where they end. */
static inline int read_records(const unsigned char *all, size_t bytes, read_event *events,
                               size_t *end)
{
    int n = 0;
    for (*end = 0; bytes - *end >= 12; n++) {
        const unsigned char *at = all + *end;
        const uint64_t length = read_little(at, 8);
        if (read_little(at + 8, 4) != events_crc(at, 8) || length > bytes - *end - 12 ||
            bytes - *end - 12 - length < 4 ||
            read_little(at + 12 + length, 4) != events_crc(at + 12, (size_t)length))
            break;
        if (events && CHECK(n < READ_EVENTS)) read_one(&events[n], at + 12, (size_t)length);
        *end += 16 + (size_t)length;
    }
    return n;
}

static inline read_file read_events(const char *path)
{
    read_file f = {.events = calloc(READ_EVENTS, sizeof *f.events)};
    FILE *file = fopen(path, "rb");
    if (!CHECK(file != NULL && f.events != NULL)) exit(1);
    f.all = malloc(16 << 20);
    f.bytes = fread(f.all, 1, 16 << 20, file);
    fclose(file);
    size_t end;
    f.n = read_records(f.all, f.bytes, f.events, &end);
    f.is_whole = end == f.bytes;
    return f;
}

static inline void read_done(read_file *f)
{
    free(f->all);
    free(f->events);
    *f = (read_file){0};
}

/* Paths of a folder's files, by their names, which begin with the time. Returns how many. */
static inline int read_folder(const char *folder, char paths[][512], int room)
{
    struct dirent **entries = NULL;
    const int n = scandir(folder, &entries, NULL, alphasort);
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, "tfevents") && found < room)
            snprintf(paths[found++], 512, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return found;
}

#endif
