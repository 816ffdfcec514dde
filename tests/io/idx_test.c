/* idx_test: IDX files, plain and compressed, are read as they are and refused when they lie.
 *
 * Its results are checked through dataset.h, piece by piece; through a program in dataset_test.c.
 */
#include "dataset.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "own_folder.h"
#include "test.h"

enum { SAMPLES = 5, ROWS = 2, COLUMNS = 3, WIDTH = ROWS * COLUMNS };

/* header [n_header] and then `bytes` bytes 0, 1, 2, ...; compressed when the name ends in .gz */
static void write_idx(const char *name, const unsigned char *header, size_t n_header, size_t bytes)
{
    const bool is_compressed = strstr(name, ".gz") != NULL;
    gzFile file = gzopen(path_of(name), is_compressed ? "wb" : "wbT");
    if (!CHECK(file != NULL)) return;
    gzwrite(file, header, (unsigned)n_header);
    for (size_t i = 0; i < bytes; i++)
        gzputc(file, (int)(i % 256));
    gzclose(file);
}

static const unsigned char images[16] = {0, 0, 8, 3,    0, 0, 0, SAMPLES,
                                         0, 0, 0, ROWS, 0, 0, 0, COLUMNS};
static const unsigned char labels[8] = {0, 0, 8, 1, 0, 0, 0, SAMPLES};

static weft_status open_both(const char *first_name, const char *second_name, weft_error *error)
{
    weft_dataset *data = NULL;
    const weft_status status =
        weft_idx_open(path_of(first_name), path_of(second_name), 0, 0, true, 1, &data, error);
    CHECK((status == WEFT_OK) == (data != NULL));
    weft_dataset_close(&data);
    return status;
}

static void facts_of(const char *first_name, const char *second_name, char *text, size_t bytes)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    CHECK_OK(weft_idx_open(path_of(first_name), path_of(second_name), 0, 0, true, 1, &data, &error),
             error);
    snprintf(text, bytes, "%s", weft_dataset_facts(data));
    weft_dataset_close(&data);
}

/* Refused with WEFT_USAGE, and all facts in the sentence. */
static void check_refused(const char *image_name, const char *label_name, const char *fact,
                          const char *other_fact)
{
    weft_error error = {0};
    CHECK_EQ_INT(open_both(image_name, label_name, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, fact);
    CHECK_TEXT(error.message, other_fact);
}

static void test_right_files_open(void)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    write_idx("images", images, sizeof images, SAMPLES * WIDTH);
    write_idx("labels", labels, sizeof labels, SAMPLES);
    write_idx("packed-images.gz", images, sizeof images, SAMPLES * WIDTH);
    write_idx("packed-labels.gz", labels, sizeof labels, SAMPLES);
    CHECK_OK(open_both("images", "labels", &error), error);
    CHECK_OK(open_both("packed-images.gz", "packed-labels.gz", &error), error);
    CHECK_OK(open_both("packed-images", "packed-labels", &error), error); /* .gz is found */
    char plain[400], packed[400];
    facts_of("images", "labels", plain, sizeof plain);
    facts_of("packed-images", "packed-labels", packed, sizeof packed);
    CHECK_TEXT(plain, "images: 46 bytes (hash ");
    CHECK_TEXT(plain, "; samples: 5 from 0 on");
    CHECK(strcmp(plain, packed) == 0); /* what is in them counts */
    CHECK_OK(
        weft_idx_open(path_of("images"), path_of("packed-labels"), 2, 2, false, 1, &data, &error),
        error);
    if (!data) return;
    CHECK_EQ_INT(weft_dataset_samples(data), 2);
    CHECK_EQ_INT(weft_dataset_width(data), WIDTH);
    weft_dataset_close(&data);
}

/* Labels are 0, 1, .. 4: as many classes as that, or the first that is none of fewer, in the file's own count. */
static void test_labels_are_compared_with_the_classes(void)
{
    static const char *const names[] = {"images", "packed-images"};
    for (int i = 0; i < 2; i++)
        for (int first = 0; first < 3; first++) {
            weft_error error = {0};
            weft_dataset *data = NULL;
            CHECK_OK(weft_idx_open(path_of(names[i]), path_of(i ? "packed-labels" : "labels"),
                                   first, 0, true, 1, &data, &error),
                     error);
            if (!CHECK(data != NULL)) return;
            CHECK_EQ_INT(weft_dataset_highest(data, "label", &error), 4);
            CHECK_OK(weft_dataset_bound(data, "label", 5, 0, &error), error);
            CHECK_OK(weft_dataset_bound(data, "label", 4, 4, &error), error);
            CHECK_EQ_INT(weft_dataset_bound(data, "label", 3, 0, &error), WEFT_USAGE);
            CHECK_TEXT(error.message, i ? "packed-labels.gz: label 3 is 3, and there are 3 classes"
                                        : "labels: label 3 is 3, and there are 3 classes, 0 to 2");
            weft_dataset_close(&data);
        }
}

static void test_truncated_files(void)
{
    write_idx("short", images, sizeof images, SAMPLES * WIDTH - 1);
    write_idx("short.gz", images, sizeof images, SAMPLES * WIDTH - 1);
    write_idx("long.gz", images, sizeof images, SAMPLES * WIDTH + 3);
    write_idx("stub", images, 9, 0);
    check_refused("short", "labels", "46", "45");
    check_refused("short.gz", "labels", "46", "45");
    check_refused("long.gz", "labels", "46", "49");
    check_refused("stub", "labels", "9", "16");
}

static void test_compressed_stream_that_breaks_off(void)
{
    write_idx("cut.gz", images, sizeof images, SAMPLES * WIDTH);
    FILE *file = fopen(path_of("cut.gz"), "rb");
    char bytes[512];
    const size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    if (!CHECK(n > 12)) return;
    CHECK_EQ_INT(truncate(path_of("cut.gz"), (off_t)n - 12), 0);
    check_refused("cut.gz", "labels", "cut.gz", "breaks off");
}

static void test_headers_that_lie(void)
{
    unsigned char many[16], empty[16], floats[16], labels_many[8];
    memcpy(many, images, 16);
    memcpy(empty, images, 16);
    memcpy(floats, images, 16);
    memcpy(labels_many, labels, 8);
    many[4] = 0xff;   /* four thousand million samples */
    empty[11] = 0;    /* no rows */
    floats[2] = 0x0d; /* another type */
    labels_many[7] = SAMPLES + 1;
    write_idx("many", many, 16, SAMPLES * WIDTH);
    write_idx("many.gz", many, 16, SAMPLES * WIDTH);
    write_idx("empty", empty, 16, 0);
    write_idx("floats", floats, 16, SAMPLES * WIDTH);
    write_idx("labels-many", labels_many, 8, SAMPLES + 1);
    check_refused("many", "labels", "4278190085", "46");
    check_refused("many.gz", "labels", "4278190085", "46");
    check_refused("empty", "labels", "1 x 0 bytes", "empty");
    check_refused("floats", "labels", "00 00 0d", "00 00 08");
    check_refused("images", "labels-many", "5 images", "6 labels");
    check_refused("labels", "images", "1 dims", "swapped");
}

static void test_missing_file(void)
{
    weft_error error = {0};
    CHECK_EQ_INT(open_both("absent", "labels", &error), WEFT_IO);
    CHECK_TEXT(error.message, "absent");
    CHECK_TEXT(error.message, "No such file");
}

static void test_samples_past_the_end(void)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    CHECK_EQ_INT(weft_idx_open(path_of("images"), path_of("labels"), 3, 3, true, 1, &data, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "has 5");
}

int main(void)
{
    if (own_folder_open("idx")) {
        RUN(test_right_files_open);
        RUN(test_labels_are_compared_with_the_classes);
        RUN(test_truncated_files);
        RUN(test_compressed_stream_that_breaks_off);
        RUN(test_headers_that_lie);
        RUN(test_missing_file);
        RUN(test_samples_past_the_end);
        own_folder_close();
    }
    return weft_test_report();
}
