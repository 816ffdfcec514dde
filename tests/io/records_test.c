/* records_test: files of each format are read as they were written, whole or in pieces; cut at any byte, and with bytes changed, they give
 * a sentence or records, and never end the process. */
#include "source/records.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "own_folder.h"
#include "test.h"

static weft_records *open_good(const char *name)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    CHECK_OK(weft_records_open(path_of(name), NULL, &records, &error), error);
    return records;
}

static void check_refused(const char *name, weft_status status, const char *fact)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    CHECK_EQ_INT(weft_records_open(path_of(name), NULL, &records, &error), status);
    CHECK_TEXT(error.message, fact);
    CHECK(records == NULL && strchr(error.message, '\n') == NULL);
    weft_records_close(&records);
}

static void check_text(const weft_records *records, int64_t record, int field, const char *wanted)
{
    char text[256] = "";
    int64_t n = -1;
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_records_shape(records, record, field, &n, &error), error);
    if (!CHECK_EQ_INT(n, strlen(wanted))) return;
    CHECK_OK(weft_records_read(records, record, field, 0, n, text, &error), error);
    CHECK(strcmp(text, wanted) == 0);
}

static int64_t whole(const weft_records *records, int64_t record, int field)
{
    int64_t number = -777;
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_records_read(records, record, field, 0, 1, &number, &error), error);
    return number;
}

/* ---- writers ------------------------------------------------------------------------------------- */

enum { ROWS = 5, WIDE = 3 };

/* An array of f4 [ROWS, WIDE]: 0, 1, 2, ... */
static size_t make_npy(unsigned char *to)
{
    const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }\n";
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = sizeof dict - 1;
    to[9] = 0;
    memcpy(to + 10, dict, sizeof dict - 1);
    size_t n = 10 + sizeof dict - 1;
    for (int i = 0; i < ROWS * WIDE; i++, n += 4)
        memcpy(to + n, &(float){(float)i}, 4);
    return n;
}

static void put(unsigned char **at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(i < 8 ? number >> 8 * i : 0);
}

static size_t deflate_all(const unsigned char *from, size_t n, unsigned char *to, size_t room)
{
    z_stream z = {0};
    deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    z.next_in = (unsigned char *)(uintptr_t)from;
    z.avail_in = (unsigned)n;
    z.next_out = to;
    z.avail_out = (unsigned)room;
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return z.total_out;
}

/* One array, "x.npy". */
static size_t make_npz(unsigned char *to, bool is_deflated)
{
    unsigned char array[512], packed[1024], *at = to;
    const size_t n = make_npy(array);
    const size_t length = is_deflated ? deflate_all(array, n, packed, sizeof packed) : n;
    const uint64_t crc = crc32(0, array, (unsigned)n);
    for (int central = 0; central < 2; central++) {
        const size_t here = (size_t)(at - to);
        put(&at, central ? 0x02014b50 : 0x04034b50, 4);
        if (central) put(&at, 20, 2);
        put(&at, 20, 2), put(&at, 0, 2), put(&at, is_deflated ? 8 : 0, 2), put(&at, 0, 4);
        put(&at, crc, 4), put(&at, length, 4), put(&at, n, 4), put(&at, 5, 2), put(&at, 0, 2);
        if (central) put(&at, 0, 14);
        memcpy(at, "x.npy", 5), at += 5;
        if (!central) memcpy(at, is_deflated ? packed : array, length), at += length;
        if (central) put(&at, 0x06054b50, 4), put(&at, 0, 4), put(&at, 1, 2), put(&at, 1, 2);
        if (central) put(&at, 51, 4), put(&at, here, 4), put(&at, 0, 2);
    }
    return (size_t)(at - to);
}

static void put_member(unsigned char **at, const char *name, const void *bytes, size_t n)
{
    unsigned char *head = *at;
    unsigned sum = 0;
    memset(head, 0, 512 + (n + 511) / 512 * 512);
    snprintf((char *)head, 100, "%s", name);
    snprintf((char *)head + 124, 12, "%011o", (unsigned)n);
    memcpy(head + 257,
           "ustar\0"
           "00",
           8);
    head[156] = '0';
    memset(head + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += head[i];
    snprintf((char *)head + 148, 8, "%06o", sum);
    memcpy(head + 512, bytes, n);
    *at += 512 + (n + 511) / 512 * 512;
}

static size_t make_tar(unsigned char *to)
{
    unsigned char *at = to, array[512];
    const size_t n = make_npy(array);
    put_member(&at, "a/01.txt", "one", 3), put_member(&at, "a/01.cls", "7\n", 2);
    put_member(&at, "a/01.x.npy", array, n);
    put_member(&at, "a/02.cls", "-8", 2), put_member(&at, "a/02.txt", "two, too", 8);
    put_member(&at, "a/02.x.npy", array, n);
    memset(at, 0, 1024);
    return (size_t)(at - to) + 1024;
}

static const char csv[] =
    "name,x,n\r\n\"a, \"\"b\"\"\n c\",1.5,-3\r\n\r\nplain,,9223372036854775807\n";
static const char jsonl[] =
    "{\"text\": \"na\\u00efve\", \"n\": 3, \"row\": [1, 2.5], \"deep\": {\"a\": 1}}\n\n"
    "{\"n\": 4, \"row\": [], \"text\": \"\"}\n";

/* ---- as they were written ------------------------------------------------------------------------- */

static void check_array(const char *name, const char *field)
{
    weft_records *records = open_good(name);
    if (records == NULL) return;
    const weft_record_field *f = weft_records_field(records, 0);
    CHECK_EQ_INT(weft_records_count(records), ROWS);
    CHECK(strcmp(f->name, field) == 0 && f->dtype == WEFT_F32 && f->n_dims == 1 &&
          f->dims[0] == WIDE);
    for (int64_t i = 0; i < ROWS; i++) {
        float row[WIDE] = {0}, one = 0;
        CHECK_EQ_INT(weft_records_read(records, i, 0, 0, WIDE, row, NULL), WEFT_OK);
        CHECK_EQ_INT(weft_records_read(records, i, 0, 1, 2, &one, NULL), WEFT_OK);
        CHECK(row[0] == (float)(3 * i) && row[2] == (float)(3 * i + 2) && one == row[1]);
    }
    weft_records_close(&records);
}

static void test_arrays(void)
{
    unsigned char bytes[4096];
    write_bytes("a.npy", bytes, make_npy(bytes));
    check_array("a.npy", "array");
    write_bytes("a.npz", bytes, make_npz(bytes, false));
    check_array("a.npz", "x");
    write_bytes("b.npz", bytes, make_npz(bytes, true));
    check_array("b.npz", "x");
}

static void test_tables_of_text(void)
{
    write_bytes("a.csv", csv, sizeof csv - 1);
    weft_records *records = open_good("a.csv");
    double x = 0;
    CHECK_EQ_INT(weft_records_count(records), 2);
    check_text(records, 0, 0, "a, \"b\"\n c");
    check_text(records, 1, 0, "plain");
    CHECK(weft_records_read(records, 0, 1, 0, 1, &x, NULL) == WEFT_OK && x == 1.5);
    CHECK(weft_records_read(records, 1, 1, 0, 1, &x, NULL) == WEFT_OK && x != x);
    CHECK_EQ_INT(whole(records, 0, 2), -3);
    CHECK_EQ_INT(whole(records, 1, 2), INT64_MAX);
    weft_records_close(&records);
    write_bytes("odd.csv", "a,b\n1,2\n3\n", 10);
    check_refused("odd.csv", WEFT_USAGE, "line 3 has 1 cells");
    write_bytes("open.csv", "a,b\n1,\"2\n", 9);
    check_refused("open.csv", WEFT_USAGE, "not closed");
}

/* Of blanks alone: no record, and nothing of the one before. But a tab that separates says that two cells are empty. */
static void test_blank_lines(void)
{
    static const char spaces[] = "n,word\n1,one\n  \n \r\n\n2, two \n ",
                      tabs[] = "a\tb\n1\t2\n\t\n\t\r\n3\t4\n";
    double x = 0;
    write_bytes("spaces.csv", spaces, sizeof spaces - 1);
    weft_records *records = open_good("spaces.csv");
    CHECK_EQ_INT(weft_records_count(records), 2);
    check_text(records, 0, 1, "one");
    check_text(records, 1, 1, " two ");
    weft_records_close(&records);
    write_bytes("tabs.csv", tabs, sizeof tabs - 1);
    records = open_good("tabs.csv");
    CHECK_EQ_INT(weft_records_count(records), 4);
    for (int64_t i = 0; i < 4; i++)
        for (int field = 0; field < 2; field++) {
            CHECK_EQ_INT(weft_records_read(records, i, field, 0, 1, &x, NULL), WEFT_OK);
            CHECK(i == 1 || i == 2 ? x != x : x == (double)(2 * (i / 3) + field + 1));
        }
    weft_records_close(&records);
}

static void test_json_lines(void)
{
    write_bytes("a.jsonl", jsonl, sizeof jsonl - 1);
    weft_records *records = open_good("a.jsonl");
    double row[2] = {0};
    int64_t n = -1;
    CHECK_EQ_INT(weft_records_fields(records), 3);
    check_text(records, 0, 0, "na\xc3\xafve");
    check_text(records, 1, 0, "");
    CHECK_EQ_INT(whole(records, 1, 1), 4);
    CHECK_EQ_INT(weft_records_read(records, 0, 2, 0, 2, row, NULL), WEFT_OK);
    CHECK(row[0] == 1 && row[1] == 2.5);
    CHECK(weft_records_shape(records, 1, 2, &n, NULL) == WEFT_OK && n == 0);
    weft_records_close(&records);
    write_bytes("bad.jsonl", "{\"n\": 1}\n{\"n\": \"x\"}\n", 21);
    records = open_good("bad.jsonl");
    weft_error error = WEFT_NO_ERROR;
    CHECK_EQ_INT(weft_records_read(records, 1, 0, 0, 1, &n, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "line 2");
    weft_records_close(&records);
}

static void test_tar_groups_files_by_key(void)
{
    static unsigned char bytes[16384];
    write_bytes("a.tar", bytes, make_tar(bytes));
    weft_records *records = open_good("a.tar");
    int64_t dims[8] = {0};
    CHECK_EQ_INT(weft_records_count(records), 2);
    check_text(records, 0, 0, "one");
    check_text(records, 1, 0, "two, too");
    CHECK_EQ_INT(whole(records, 0, 1), 7);
    CHECK_EQ_INT(whole(records, 1, 1), -8);
    CHECK(weft_records_shape(records, 1, 2, dims, NULL) == WEFT_OK && dims[0] == 5 && dims[1] == 3);
    weft_records_close(&records);
}

static void test_gzip_changes_nothing_but_the_file(void)
{
    char plain[WEFT_RECORDS_PRINT], packed[WEFT_RECORDS_PRINT];
    gzFile file = gzopen(path_of("a.csv.gz"), "wb");
    gzwrite(file, csv, sizeof csv - 1);
    gzclose(file);
    weft_records *a = open_good("a.csv"), *b = open_good("a.csv.gz");
    CHECK(weft_records_print(a, plain, NULL) == WEFT_OK &&
          weft_records_print(b, packed, NULL) == WEFT_OK);
    CHECK(strcmp(plain, packed) == 0);
    check_text(b, 0, 0, "a, \"b\"\n c");
    weft_records_close(&a);
    weft_records_close(&b);
}

/* More files than are kept open, and a host's share of them. */
static void test_files_by_pattern_are_in_the_order_of_their_names(void)
{
    char name[32], line[64];
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "many-%03d.csv", i);
        const int n = snprintf(line, sizeof line, "n\n%d\n%d\n", 2 * i, 2 * i + 1);
        write_bytes(name, line, (size_t)n);
    }
    weft_records *all = open_good("many-*.csv"), *part = NULL;
    CHECK_EQ_INT(weft_records_count(all), 300);
    for (int64_t i = 0; i < 300; i++)
        CHECK_EQ_INT(whole(all, i, 0), i);
    CHECK_EQ_INT(weft_records_open(path_of("many-*.csv"),
                                   &(weft_records_options){.fields = "n", .part = 1, .n_parts = 3},
                                   &part, NULL),
                 WEFT_OK);
    for (int64_t i = 0; i < 100; i++)
        CHECK_EQ_INT(whole(part, i, 0), (i / 2 * 3 + 1) * 2 + i % 2);
    weft_records_close(&part);
    write_bytes("many-000.csv", "n\n5\n", 4);
    weft_error error = WEFT_NO_ERROR;
    int64_t number;
    CHECK_EQ_INT(weft_records_read(all, 0, 0, 0, 1, &number, &error), WEFT_IO);
    CHECK_TEXT(error.message, "was changed while it is read");
    weft_records_close(&all);
    write_bytes("many-001.csv", "m\n5\n", 4);
    check_refused("many-*.csv", WEFT_USAGE, "no field n");
}

static void test_what_is_no_file_of_records_is_said(void)
{
    check_refused("nothing.csv", WEFT_IO, "No such file");
    check_refused("nothing-*.csv", WEFT_IO, "no file is called so");
    write_bytes("empty.csv", "", 0);
    check_refused("empty.csv", WEFT_IO, "is empty");
    mkdir(path_of("hollow"), 0700);
    check_refused("hollow", WEFT_IO, "no file in it");
    write_bytes("what.bin", "\1\2\3\4", 4);
    check_refused("what.bin", WEFT_USAGE, "formats of records are");
}

/* ---- hostile files ---------------------------------------------------------------------------------- */

/* Whatever it is, all of it that can be read is; what cannot is a sentence. */
static void read_any(const char *name)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    const weft_status status = weft_records_open(path_of(name), NULL, &records, &error);
    CHECK((status == WEFT_OK) == (records != NULL) &&
          (status == WEFT_OK || error.message[0] != '\0'));
    for (int64_t i = 0; i < weft_records_count(records) && i < 20; i++)
        for (int f = 0; f < weft_records_fields(records); f++) {
            int64_t dims[WEFT_RECORD_DIMS] = {0}, n = 1;
            const weft_record_field *field = weft_records_field(records, f);
            if (weft_records_shape(records, i, f, dims, NULL) != WEFT_OK) continue;
            for (int d = 0; d < field->n_dims; d++)
                n *= dims[d];
            if (n < 0 || n > 100000) continue;
            char *to = malloc((size_t)n * 8 + 1);
            (void)!weft_records_read(records, i, f, 0, n, to, NULL);
            free(to);
        }
    weft_records_close(&records);
}

static void harm(const char *name, const unsigned char *bytes, size_t n)
{
    static unsigned char copy[16384];
    uint64_t random = 88172645463325252u;
    for (size_t cut = 0; cut < n; cut += 1 + n / 500) {
        write_bytes(name, bytes, cut);
        read_any(name);
    }
    for (int k = weft_test_cases(600); k > 0; k--) {
        memcpy(copy, bytes, n);
        for (int i = 0; i < 1 + k % 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            copy[random % n] = k % 3 == 0 ? 0xff : (unsigned char)(random >> 40);
        }
        write_bytes(name, copy, n);
        read_any(name);
    }
}

static void test_cut_and_changed_files_end_no_process(void)
{
    static unsigned char bytes[16384];
    harm("h.npy", bytes, make_npy(bytes));
    harm("h.npz", bytes, make_npz(bytes, false));
    harm("h2.npz", bytes, make_npz(bytes, true));
    harm("h.tar", bytes, make_tar(bytes));
    harm("h.csv", (const unsigned char *)csv, sizeof csv - 1);
    harm("h.jsonl", (const unsigned char *)jsonl, sizeof jsonl - 1);
}

int main(void)
{
    if (!own_folder_open("records")) return weft_test_report();
    RUN(test_arrays);
    RUN(test_tables_of_text);
    RUN(test_blank_lines);
    RUN(test_json_lines);
    RUN(test_tar_groups_files_by_key);
    RUN(test_gzip_changes_nothing_but_the_file);
    RUN(test_files_by_pattern_are_in_the_order_of_their_names);
    RUN(test_what_is_no_file_of_records_is_said);
    RUN(test_cut_and_changed_files_end_no_process);
    own_folder_close();
    return weft_test_report();
}
