/* events: an event file of TensorBoard.
 *
 * Formats: record_writer.cc, event.proto, summary.proto, tensor.proto and graph.proto of TensorFlow.
 */
#include "events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto.h"

enum { /* fields of messages */
       EVENT_TIME = 1,
       EVENT_STEP = 2,
       EVENT_VERSION = 3,
       EVENT_GRAPH = 4,
       EVENT_SUMMARY = 5,
       EVENT_SESSION = 7,
       SESSION_STATUS = 1,
       SESSION_START = 1, /* a status */
       SUMMARY_VALUE = 1,
       VALUE_TAG = 1,
       VALUE_NUMBER = 2,
       VALUE_HISTOGRAM = 5,
       VALUE_TENSOR = 8,
       VALUE_METADATA = 9,
       METADATA_PLUGIN = 1,
       PLUGIN_NAME = 1,
       TENSOR_DTYPE = 1,
       TENSOR_SHAPE = 2,
       TENSOR_TEXT = 8,
       DTYPE_TEXT = 7, /* a dtype */
       SHAPE_DIM = 2,
       DIM_SIZE = 1,
       HISTOGRAM_LOW = 1,
       HISTOGRAM_HIGH = 2,
       HISTOGRAM_COUNT = 3,
       HISTOGRAM_SUM = 4,
       HISTOGRAM_SQUARES = 5,
       HISTOGRAM_LIMITS = 6,
       HISTOGRAM_COUNTS = 7
};

struct events {
    FILE *file;
    char path[4352];
    proto event, summary, value, part; /* kept for the next */
};

/* ---- records ------------------------------------------------------------------------------------ */

uint32_t events_crc(const void *data, size_t bytes)
{
    /* What four bits shift into the rest: the polynomial 0x82f63b78, the lowest bit first. */
    static const uint32_t table[16] = {0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u,
                                       0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
                                       0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u,
                                       0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u};
    const unsigned char *byte = data;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= byte[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(unsigned char *to, uint64_t number, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        to[i] = (unsigned char)(number >> 8 * i);
}

static weft_status refuse(const events *e, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", e->path, strerror(errno));
}

/* What is in e->event, which is emptied. */
static weft_status put_record(events *e, weft_error *error)
{
    unsigned char head[12], tail[4];
    const proto *event = &e->event;
    const size_t bytes = event->bytes;
    e->event.bytes = 0;
    if (event->is_short) return weft_fail_memory(error, bytes);
    put_little(head, bytes, 8);
    put_little(head + 8, events_crc(head, 8), 4);
    put_little(tail, events_crc(event->all, bytes), 4);
    if (fwrite(head, sizeof head, 1, e->file) == 1 &&
        fwrite(event->all, 1, bytes, e->file) == bytes &&
        fwrite(tail, sizeof tail, 1, e->file) == 1)
        return WEFT_OK;
    return refuse(e, error);
}

/* ---- events ------------------------------------------------------------------------------------- */

static void begin_event(events *e, int64_t step)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    proto_double(&e->event, EVENT_TIME, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
    proto_number(&e->event, EVENT_STEP, (uint64_t)step);
}

/* The one value of an event: e->value, after its tag. */
static void begin_value(events *e, int64_t step, const char *tag)
{
    begin_event(e, step);
    proto_text(&e->value, VALUE_TAG, tag);
}

static weft_status end_value(events *e, weft_error *error)
{
    proto_message(&e->summary, SUMMARY_VALUE, &e->value);
    proto_message(&e->event, EVENT_SUMMARY, &e->summary);
    return put_record(e, error);
}

/* Which part of TensorBoard shows it. */
static void put_plugin(events *e, const char *name)
{
    proto metadata = {0};
    proto_text(&e->part, PLUGIN_NAME, name);
    proto_message(&metadata, METADATA_PLUGIN, &e->part);
    proto_message(&e->value, VALUE_METADATA, &metadata);
    proto_free(&metadata);
}

weft_status events_scalar(events *e, int64_t step, const char *tag, double number,
                          weft_error *error)
{
    begin_value(e, step, tag);
    proto_float(&e->value, VALUE_NUMBER, (float)number);
    put_plugin(e, "scalars");
    return end_value(e, error);
}

/* A tensor of one text. */
weft_status events_text(events *e, int64_t step, const char *tag, const char *text,
                        weft_error *error)
{
    proto dim = {0}, shape = {0};
    begin_value(e, step, tag);
    put_plugin(e, "text");
    proto_number(&dim, DIM_SIZE, 1);
    proto_message(&shape, SHAPE_DIM, &dim);
    proto_number(&e->part, TENSOR_DTYPE, DTYPE_TEXT);
    proto_message(&e->part, TENSOR_SHAPE, &shape);
    proto_text(&e->part, TENSOR_TEXT, text);
    proto_message(&e->value, VALUE_TENSOR, &e->part);
    proto_free(&dim);
    proto_free(&shape);
    return end_value(e, error);
}

weft_status events_graph(events *e, const void *graph, size_t bytes, weft_error *error)
{
    begin_event(e, 0);
    proto_bytes(&e->event, EVENT_GRAPH, graph, bytes);
    return put_record(e, error);
}

/* Limits are the upper ends. The first part of ours has a lower end, which TensorBoard takes from the limit before: so an empty one comes
 * first, unless all numbers are one. */
static void put_limits(proto *to, const events_histogram *h)
{
    double *limits = calloc(2 * (h->n + 1), sizeof *limits);
    double *counts = limits ? limits + h->n + 1 : NULL;
    to->is_short |= limits == NULL;
    for (size_t i = 0; limits && i <= h->n; i++) {
        limits[i] = h->low + (h->high - h->low) * ((double)i / (double)h->n);
        counts[i] = i > 0 ? h->counts[i - 1] : 0;
    }
    if (limits) limits[h->n] = h->high;
    if (limits) proto_doubles(to, HISTOGRAM_LIMITS, limits, h->n + 1);
    if (limits) proto_doubles(to, HISTOGRAM_COUNTS, counts, h->n + 1);
    free(limits);
}

weft_status events_counts(events *e, int64_t step, const char *tag, const events_histogram *h,
                          weft_error *error)
{
    double count = 0;
    for (size_t i = 0; i < h->n; i++)
        count += h->counts[i];
    begin_value(e, step, tag);
    proto_double(&e->part, HISTOGRAM_LOW, h->low);
    proto_double(&e->part, HISTOGRAM_HIGH, h->high);
    proto_double(&e->part, HISTOGRAM_COUNT, count);
    proto_double(&e->part, HISTOGRAM_SUM, h->sum);
    proto_double(&e->part, HISTOGRAM_SQUARES, h->sum_squares);
    if (h->high > h->low) {
        put_limits(&e->part, h);
    } else { /* one part, which ends at the one number */
        proto_doubles(&e->part, HISTOGRAM_LIMITS, &h->high, 1);
        proto_doubles(&e->part, HISTOGRAM_COUNTS, &count, 1);
    }
    proto_message(&e->value, VALUE_HISTOGRAM, &e->part);
    put_plugin(e, "histograms");
    return end_value(e, error);
}

/* ---- life --------------------------------------------------------------------------------------- */

static weft_status put_version(events *e, weft_error *error)
{
    begin_event(e, 0);
    proto_text(&e->event, EVENT_VERSION, "brain.Event:2");
    return put_record(e, error);
}

static weft_status put_start(events *e, int64_t step, weft_error *error)
{
    proto session = {0};
    proto_number(&session, SESSION_STATUS, SESSION_START);
    begin_event(e, step);
    proto_message(&e->event, EVENT_SESSION, &session);
    proto_free(&session);
    return put_record(e, error);
}

/* TensorBoard knows its files by what is in their names, and takes them in the order of these: time first. A file that is there is of a
 * process that is gone, with this one's number, in the same second. */
static weft_status open_file(events *e, const char *folder, weft_error *error)
{
    char host[64] = "";
    (void)mkdir(folder, 0777); /* the file tells whether it is there */
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < 1000; i++) {
        snprintf(e->path, sizeof e->path, "%.4000s/events.out.tfevents.%010lld.%s.%d.%d.v2", folder,
                 (long long)time(NULL), host, (int)getpid(), i);
        e->file = fopen(e->path, "wxe");
        if (e->file) return WEFT_OK;
        if (errno != EEXIST) break;
    }
    return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO,
                     "cannot write %.300s: %s; name another folder with --tensorboard DIR", e->path,
                     strerror(errno));
}

weft_status events_open(const char *folder, int64_t step, events **made, weft_error *error)
{
    events *e = *made = calloc(1, sizeof *e);
    if (!e) return weft_fail_memory(error, sizeof *e);
    weft_status status = open_file(e, folder, error);
    if (status == WEFT_OK) status = put_version(e, error);
    if (status == WEFT_OK) status = put_start(e, step, error);
    if (status != WEFT_OK) events_close(made);
    return status;
}

weft_status events_flush(events *e, weft_error *error)
{
    return fflush(e->file) == 0 ? WEFT_OK : refuse(e, error);
}

const char *events_path(const events *e)
{
    return e->path;
}

void events_close(events **e)
{
    if (!*e) return;
    if ((*e)->file) fclose((*e)->file);
    proto_free(&(*e)->event);
    proto_free(&(*e)->summary);
    proto_free(&(*e)->value);
    proto_free(&(*e)->part);
    free(*e);
    *e = NULL;
}
