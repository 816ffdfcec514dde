/* events_test: the bytes of an event file. CRC-32C of known texts is right. A reader of our own reads all that was written. A file that is cut
 * off at any byte is its whole records before. A turned bit is found. A full disk is told. */
#include "events_read.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[] = "/tmp/weft-events-XXXXXX";

static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* RFC 3720, B.4, and the check value of the catalogue of CRCs. */
static void test_crc_is_castagnoli(void)
{
    unsigned char zeros[32] = {0}, ones[32], up[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (unsigned char)i;
    CHECK_EQ_INT(events_crc("123456789", 9), masked(0xe3069283u));
    CHECK_EQ_INT(events_crc(zeros, 32), masked(0x8a9136aau));
    CHECK_EQ_INT(events_crc(ones, 32), masked(0x62a8ab43u));
    CHECK_EQ_INT(events_crc(up, 32), masked(0x46dd794eu));
    CHECK_EQ_INT(events_crc("", 0), masked(0));
}

static const double parts[] = {3, 0, 4, 5};
static const events_histogram spread = {-1.5, 2.5, 6.25, 40.5, parts, 4},
                              equal = {7, 7, 84, 588, parts, 4};

/* One of each kind. Leaves the path of the file. */
static void write_some(int64_t first, char path[512])
{
    weft_error error = {0};
    events *e = NULL;
    CHECK_OK(events_open(folder, first, &e, &error), error);
    CHECK_OK(events_text(e, 0, "layout", "batch:data", &error), error);
    CHECK_OK(events_graph(e, "graph", 5, &error), error);
    for (int i = 0; i < 3; i++)
        CHECK_OK(events_scalar(e, first + i, "loss", 1.0 / (i + 1), &error), error);
    CHECK_OK(events_scalar(e, first, "rate", (double)NAN, &error), error);
    CHECK_OK(events_counts(e, first, "variables/w", &spread, &error), error);
    CHECK_OK(events_counts(e, first, "variables/b", &equal, &error), error);
    CHECK_OK(events_flush(e, &error), error);
    snprintf(path, 512, "%s", events_path(e));
    events_close(&e);
    CHECK(e == NULL);
}

static void test_what_was_written_is_read(void)
{
    char path[512];
    write_some(41, path);
    read_file f = read_events(path);
    if (!CHECK_EQ_INT(f.n, 10) || !CHECK(f.is_whole)) return;
    const read_event *e = f.events;
    CHECK_TEXT(e[0].version, "brain.Event:2");
    CHECK(e[1].is_start && e[1].step == 41);
    CHECK(e[2].is_text && strcmp(e[2].tag, "layout") == 0 && strcmp(e[2].text, "batch:data") == 0);
    CHECK(e[3].graph_bytes == 5 && memcmp(e[3].graph, "graph", 5) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(e[4 + i].is_scalar && e[4 + i].step == 41 + i &&
              e[4 + i].number == (double)(float)(1.0 / (i + 1)));
    CHECK(isnan(e[7].number));
    for (int i = 1; i < f.n; i++)
        CHECK(e[i].time >= e[i - 1].time && e[i].time > 1.5e9);
    read_done(&f);
}

/* The numbers that a reader makes bars of: limits ascend, the first bar begins at the least number and the last ends at the largest. */
static void test_histograms_keep_their_ends(void)
{
    char path[512];
    write_some(1, path);
    read_file f = read_events(path);
    const read_event *h = &f.events[8], *one = &f.events[9];
    if (!CHECK(f.n == 10 && h->is_histogram && h->n_parts == 5)) return;
    CHECK(h->low == -1.5 && h->high == 2.5 && h->count == 12 && h->sum == 6.25 &&
          h->squares == 40.5);
    CHECK(h->limits[0] == -1.5 && h->limits[4] == 2.5 && h->counts[0] == 0);
    for (int i = 0; i < 4; i++)
        CHECK(h->limits[i + 1] == -0.5 + i && h->counts[i + 1] == parts[i]);
    CHECK(one->n_parts == 1 && one->limits[0] == 7 && one->counts[0] == 12 && one->low == 7);
    read_done(&f);
}

static void test_cut_anywhere_it_is_a_prefix(void)
{
    char path[512];
    write_some(1, path);
    read_file f = read_events(path);
    int before = 0;
    for (size_t bytes = 0; bytes <= f.bytes; bytes++) {
        size_t end;
        unsigned char *cut = malloc(bytes + 1); /* a byte read beyond is found by the sanitizer */
        if (!CHECK(cut != NULL)) break;
        memcpy(cut, f.all, bytes);
        const int n = read_records(cut, bytes, NULL, &end);
        CHECK(end <= bytes && (n == before || n == before + 1));
        before = n;
        free(cut);
    }
    CHECK_EQ_INT(before, f.n);
    read_done(&f);
}

static void test_any_turned_bit_is_found(void)
{
    char path[512];
    write_some(1, path);
    read_file f = read_events(path);
    for (size_t at = 0; at < f.bytes; at++) {
        size_t end;
        f.all[at] ^= (unsigned char)(1u << at % 8);
        CHECK(read_records(f.all, f.bytes, NULL, &end) < f.n && end <= at);
        f.all[at] ^= (unsigned char)(1u << at % 8);
    }
    read_done(&f);
}

/* Two in one second have names of their own. */
static void test_no_file_is_written_over(void)
{
    char first[512], second[512];
    write_some(1, first);
    write_some(1, second);
    CHECK(strcmp(first, second) != 0);
    read_file f = read_events(first);
    CHECK_EQ_INT(f.n, 10);
    read_done(&f);
}

static void test_a_full_disk_is_told(void)
{
    const struct rlimit small = {200, RLIM_INFINITY};
    struct rlimit usual;
    weft_error error = {0};
    events *e = NULL;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &usual);
    CHECK_OK(events_open(folder, 1, &e, &error), error);
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 20; i++)
        CHECK_OK(events_scalar(e, i, "loss", 1, &error), error);
    CHECK_EQ_INT(events_flush(e, &error), WEFT_IO);
    CHECK_TEXT(error.message, "File too large");
    CHECK_TEXT(error.message, "tfevents");
    setrlimit(RLIMIT_FSIZE, &usual);
    events_close(&e);
}

static void test_a_folder_that_cannot_be_made_is_told(void)
{
    weft_error error = {0};
    events *e = NULL;
    CHECK_EQ_INT(events_open("/proc/none/board", 1, &e, &error), WEFT_IO);
    CHECK_TEXT(error.message, "name another folder with --tensorboard DIR");
    CHECK(e == NULL);
}

int main(void)
{
    char line[64];
    if (mkdtemp(folder) == NULL) return 1;
    RUN(test_crc_is_castagnoli);
    RUN(test_what_was_written_is_read);
    RUN(test_histograms_keep_their_ends);
    RUN(test_cut_anywhere_it_is_a_prefix);
    RUN(test_any_turned_bit_is_found);
    RUN(test_no_file_is_written_over);
    RUN(test_a_full_disk_is_told);
    RUN(test_a_folder_that_cannot_be_made_is_told);
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(system(line), 0);
    return weft_test_report();
}
