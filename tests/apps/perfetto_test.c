/* perfetto_test: the bytes of a trace file, by hand; slices that nest whatever the calls; time in order over all tracks. */
#include "perfetto_read.h"

static void check_bytes(const proto *made, const unsigned char *by_hand, size_t bytes)
{
    CHECK_EQ_INT(made->bytes, bytes);
    CHECK(made->bytes == bytes && memcmp(made->all, by_hand, bytes) == 0);
}

/* Protobuf's own example: 150 in field 1 is 08 96 01, "testing" in field 2 is 12 07 74 65 ... */
static void test_fields_are_those_of_protobuf(void)
{
    static const unsigned char by_hand[] = {
        0x08, 0x96, 0x01,                                                  /* 150 in field 1 */
        0x12, 0x07, 't',  'e',  's',  't',  'i',  'n',  'g',               /* a text in field 2 */
        0xf9, 0x02, 1,    2,    3,    4,    5,    6,    7,    8,           /* 8 bytes in field 47 */
        0xe2, 0x03, 0x00,                                                  /* nothing in field 60 */
        0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}; /* -1 in field 4 */
    proto p = {0};
    proto_number(&p, 1, 150);
    proto_text(&p, 2, "testing");
    proto_fixed(&p, 47, 0x0807060504030201);
    proto_bytes(&p, 60, NULL, 0);
    proto_number(&p, 4, (uint64_t)-1);
    check_bytes(&p, by_hand, sizeof by_hand);
    proto_free(&p);
}

/* The packets of one slice, in the one that holds them deflated. */
static void test_a_slice_is_these_packets(void)
{
    static const unsigned char by_hand[] = {
        /* texts: sequence 1, flags 3, name 1 is "a", category 1 is "b" */
        0x0a, 0x14, 0x50, 1, 0x68, 3, 0x62, 0x0e, 0x12, 5, 0x08, 1, 0x12, 1, 'a', 0x0a, 5, 0x08, 1,
        0x12, 1, 'b',
        /* track 1: process 1 "p" */
        0x0a, 0x0e, 0x50, 1, 0xe2, 0x03, 9, 0x08, 1, 0x1a, 5, 0x08, 1, 0x32, 1, 'p',
        /* track 2: thread 1000001 of it, "t" */
        0x0a, 0x12, 0x50, 1, 0xe2, 0x03, 13, 0x08, 2, 0x22, 9, 0x08, 1, 0x10, 0xc1, 0x84, 0x3d,
        0x2a, 1, 't',
        /* at 5 a slice begins on track 2, at 300 it ends */
        0x0a, 0x10, 0x50, 1, 0x40, 5, 0x68, 2, 0x5a, 8, 0x48, 1, 0x58, 2, 0x50, 1, 0x18, 1, 0x0a,
        0x0d, 0x50, 1, 0x40, 0xac, 0x02, 0x68, 2, 0x5a, 4, 0x48, 2, 0x58, 2};
    perfetto *p = perfetto_create();
    const uint32_t process = perfetto_process(p, "p"), thread = perfetto_thread(p, process, "t");
    char *all = NULL;
    size_t bytes = 0;
    weft_error error = {0};
    unsigned char plain[4096];
    uLongf room = sizeof plain;
    perfetto_begin(p, thread, 5, &(perfetto_slice){.name = "a", .category = "b"});
    perfetto_end(p, thread, 300);
    FILE *file = open_memstream(&all, &bytes);
    CHECK_OK(perfetto_write(p, file, &error), error);
    fclose(file);
    const read_field whole = {.data = (unsigned char *)all, .bytes = bytes};
    const read_field packet = read_find(&whole, 1), small = read_find(&packet, 50);
    CHECK_EQ_INT(uncompress(plain, &room, small.data, small.bytes), Z_OK);
    const proto found = {.all = plain, .bytes = room};
    check_bytes(&found, by_hand, sizeof by_hand);
    free(all);
    perfetto_destroy(&p);
}

static void test_tracks_are_merged_by_time(void)
{
    perfetto *p = perfetto_create();
    const uint32_t process = perfetto_process(p, "p");
    const uint32_t tracks[2] = {perfetto_thread(p, process, "x"), perfetto_thread(p, process, "y")};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 50; i++) {
            const perfetto_note note = {"i", NULL, -i};
            perfetto_begin(p, tracks[k], 10 * i + k, &(perfetto_slice){"s", "c", &note, 1, 0, {0}});
            perfetto_end(p, tracks[k], 10 * i + 9);
        }
    CHECK_EQ_INT(perfetto_slices(p), 100);
    read_trace *t = read_back(p); /* which looks at the order of time */
    CHECK_EQ_INT(t->n_slices, 100);
    for (int i = 0; i < t->n_slices; i++) {
        const read_slice *s = &t->slices[i];
        CHECK_EQ_INT(s->begin, 10 * (i / 2) + i % 2);
        CHECK_EQ_INT(s->end, 10 * (i / 2) + 9);
        CHECK_EQ_INT(s->note_numbers[0], -(i / 2));
    }
    read_close(t);
    perfetto_destroy(&p);
}

/* A call that is earlier than the one before it counts as that; an end that is none is left out, and one that is missing made. */
static void test_slices_nest_whatever_the_calls(void)
{
    perfetto *p = perfetto_create();
    const uint32_t thread = perfetto_thread(p, perfetto_process(p, "p"), "t");
    const perfetto_slice slice = {.name = "s", .category = "c"};
    perfetto_end(p, thread, 1);
    perfetto_begin(p, thread, 100, &slice);
    perfetto_begin(p, thread, 50, &slice);
    perfetto_end(p, thread, 40);
    perfetto_begin(p, thread, 200, &slice);
    read_trace *t = read_back(p);
    CHECK_EQ_INT(t->n_slices, 3);
    CHECK(t->slices[0].begin == 100 && t->slices[0].end == 200 && t->slices[0].depth == 0);
    CHECK(t->slices[1].begin == 100 && t->slices[1].end == 100 && t->slices[1].depth == 1);
    CHECK(t->slices[2].begin == 200 && t->slices[2].end == 200 && t->slices[2].depth == 1);
    read_close(t);
    perfetto_destroy(&p);
}

static void test_bytes_are_counted_as_they_are_written(void)
{
    perfetto *p = perfetto_create();
    const uint32_t process = perfetto_process(p, "p"), thread = perfetto_thread(p, process, "t"),
                   counter = perfetto_counter(p, process, "n");
    for (int i = 0; i < 1000; i++) {
        perfetto_begin(p, thread, 1000 + i, &(perfetto_slice){.name = "s"});
        perfetto_count(p, counter, 1000 + i, i);
        perfetto_end(p, thread, 1000 + i);
    }
    const int64_t bytes = perfetto_bytes(p);
    CHECK(bytes > 3000 * 12 && bytes < 3000 * 30);
    perfetto_destroy(&p);
    CHECK(p == NULL);
}

static void test_a_full_disk_is_told(void)
{
    perfetto *p = perfetto_create();
    weft_error error = {0};
    FILE *full = fopen("/dev/full", "w");
    (void)perfetto_process(p, "p");
    CHECK_EQ_INT(perfetto_write(p, full, &error), WEFT_IO);
    CHECK_TEXT(error.message, "No space left on device");
    if (full) fclose(full);
    perfetto_destroy(&p);
}

int main(void)
{
    RUN(test_fields_are_those_of_protobuf);
    RUN(test_a_slice_is_these_packets);
    RUN(test_tracks_are_merged_by_time);
    RUN(test_slices_nest_whatever_the_calls);
    RUN(test_bytes_are_counted_as_they_are_written);
    RUN(test_a_full_disk_is_told);
    return weft_test_report();
}
