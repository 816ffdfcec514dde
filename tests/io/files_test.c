/* files_test: what weft-read-files reads: images as they were written, compressed files, and a sentence for those that are cut, changed,
 * or for which it is not there. Images and archives are made by the libraries themselves. */
#ifdef WEFT_FILES_FOLDER
#include "source/records.h"
#include "weft/data.h"

#include <jpeglib.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "own_folder.h"
#include "test.h"

enum { HIGH = 6, WIDE = 9, COLOURS = 3, PIXELS = HIGH * WIDE * COLOURS, FIRST = 4096 };
static unsigned char pixels[PIXELS], jpeg_bytes[FIRST], png_bytes[FIRST];
static size_t jpeg_n, png_n;

static void make_images(void)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    unsigned char *made = NULL;
    unsigned long n = 0;
    png_image png = {
        .version = PNG_IMAGE_VERSION, .width = WIDE, .height = HIGH, .format = PNG_FORMAT_RGB};
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = (unsigned char)(i % COLOURS * 60 + i / COLOURS % WIDE * 5 + 20);
    jpeg.err = jpeg_std_error(&manager);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &made, &n);
    jpeg.image_width = WIDE;
    jpeg.image_height = HIGH;
    jpeg.input_components = COLOURS;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < HIGH) {
        JSAMPROW row = pixels + WIDE * COLOURS * jpeg.next_scanline;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    CHECK(n <= FIRST);
    memcpy(jpeg_bytes, made, n);
    jpeg_n = n;
    free(made);
    png_alloc_size_t room = FIRST;
    CHECK(png_image_write_to_memory(&png, png_bytes, &room, 0, pixels, 0, NULL));
    png_n = room;
}

static void check_image(const char *name, int off)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    int64_t dims[WEFT_RECORD_DIMS] = {0};
    unsigned char there[PIXELS] = {0}, one = 0;
    write_bytes(name, off ? jpeg_bytes : png_bytes, off ? jpeg_n : png_n);
    if (!CHECK_OK(weft_records_open(path_of(name), NULL, &records, &error), error)) return;
    CHECK_OK(weft_records_shape(records, 0, 0, dims, &error), error);
    CHECK(dims[0] == HIGH && dims[1] == WIDE && dims[2] == COLOURS);
    CHECK_OK(weft_records_read(records, 0, 0, 0, PIXELS, there, &error), error);
    CHECK_OK(weft_records_read(records, 0, 0, 7, 8, &one, &error), error);
    CHECK(one == there[7]);
    for (int i = 0; i < PIXELS; i++)
        CHECK(abs(there[i] - pixels[i]) <= off);
    weft_records_close(&records);
}

static void test_images_are_what_was_written(void)
{
    check_image("a.png", 0);
    check_image("a.jpg", 24); /* colours are halved in both directions */
}

static void test_a_folder_of_images_is_a_chain(void)
{
    weft_error error = WEFT_NO_ERROR;
    weft_chain *chain = NULL;
    mkdir(path_of("images"), 0700);
    write_bytes("images/a.png", png_bytes, png_n);
    write_bytes("images/b.jpg", jpeg_bytes, jpeg_n);
    CHECK_OK(weft_chain_open(path_of("images"), NULL, &chain, &error), error);
    CHECK_EQ_INT(weft_chain_records(chain), 2);
    const weft_shape *shape = weft_chain_field_shape(chain, 0);
    CHECK(shape != NULL && shape->n_dims == 3 && shape->dims[0].size == HIGH &&
          strcmp(shape->dims[2].name, "channel") == 0);
    weft_chain_close(&chain);
}

/* Three images, in these folders of a folder; the chain of it. */
static weft_chain *open_classes(const char *name, const char *const folders[3],
                                const weft_open_options *o)
{
    weft_error error = WEFT_NO_ERROR;
    weft_chain *chain = NULL;
    char path[128];
    mkdir(path_of(name), 0700);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", name, folders[i]);
        mkdir(path_of(path), 0700);
        snprintf(path, sizeof path, "%s/%s/%d.png", name, folders[i], i);
        write_bytes(path, png_bytes, png_n);
    }
    CHECK_OK(weft_chain_open(path_of(name), o, &chain, &error), error);
    return chain;
}

static void check_label(const weft_chain *chain, int64_t record, int32_t expected)
{
    weft_error error = WEFT_NO_ERROR;
    int32_t label = -1;
    CHECK_OK(weft_chain_read(chain, record, 1, 1, &label, sizeof label, &error), error);
    CHECK_EQ_INT(label, expected);
}

/* Paths are in the order of their bytes, "a-b/" before "a/", and classes in that of their names. */
static void test_images_have_the_class_of_their_folder(void)
{
    static const char *const folders[3] = {"b", "a-b", "a"}, *const others[3] = {"b", "a", "a"},
                             *const names[3] = {"a", "a-b", "b"};
    weft_chain *chain = open_classes("classes", folders, NULL),
               *other = open_classes("others", others, NULL);
    CHECK_EQ_INT(weft_chain_labels(chain, 1), 3);
    CHECK_EQ_INT(weft_chain_labels(other, 1), 2);
    CHECK_EQ_INT(weft_chain_labels(chain, 0), 0);
    for (int i = 0; i < 3; i++)
        CHECK(strcmp(weft_chain_label(chain, 1, i), names[i]) == 0);
    CHECK(weft_chain_label(chain, 1, 3) == NULL && weft_chain_label(NULL, 0, 0) == NULL);
    check_label(chain, 0, 1), check_label(chain, 1, 0), check_label(chain, 2, 2);
    CHECK_TEXT(weft_chain_facts(chain), "classes: 3 (hash ");
    CHECK_TEXT(weft_chain_facts(chain), " a, a-b, b");
    CHECK(strcmp(weft_chain_facts(chain), weft_chain_facts(other)) != 0);
    weft_error error = WEFT_NO_ERROR;
    weft_chain *two[2] = {chain, other}, *joined = NULL;
    CHECK_EQ_INT(weft_chain_concat(two, 2, &joined, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "label of chain 0 is of 3 classes, and of chain 1 of 2");
    weft_chain_close(&chain), weft_chain_close(&other);
}

/* Images beside the folders have no class, and then none has. */
static void test_images_beside_folders_leave_all_without_a_class(void)
{
    static const char *const folders[3] = {"a", "b", "c"};
    weft_error error = WEFT_NO_ERROR;
    weft_chain *chain = open_classes("beside", folders, NULL);
    CHECK_EQ_INT(weft_chain_fields(chain), 2);
    weft_chain_close(&chain);
    write_bytes("beside/x.png", png_bytes, png_n);
    CHECK_OK(weft_chain_open(path_of("beside"), NULL, &chain, &error), error);
    CHECK_EQ_INT(weft_chain_fields(chain), 1);
    weft_chain_close(&chain);
    CHECK_OK(weft_chain_open(path_of("beside/?/*.png"), NULL, &chain, &error), error);
    CHECK_EQ_INT(weft_chain_labels(chain, 1), 3);
    weft_chain_close(&chain);
}

/* The mean of what rows [y, y + 1) of `rows` and columns alike cover, in doubles. */
static double mean_of(int rows, int columns, int r, int c, int k)
{
    double sum = 0;
    for (int y = 0; y < HIGH; y++)
        for (int x = 0; x < WIDE; x++) {
            const double high = fmin(y + 1, (double)(r + 1) * HIGH / rows) -
                                fmax(y, (double)r * HIGH / rows),
                         wide = fmin(x + 1, (double)(c + 1) * WIDE / columns) -
                                fmax(x, (double)c * WIDE / columns);
            if (high > 0 && wide > 0) sum += high * wide * pixels[(y * WIDE + x) * COLOURS + k];
        }
    return sum * rows * columns / (HIGH * WIDE);
}

static void check_scale(int rows, int columns)
{
    static const char *const folders[3] = {"a", "b", "c"};
    const weft_open_options o = {.rows = rows, .columns = columns};
    unsigned char there[32 * 32 * COLOURS];
    weft_error error = WEFT_NO_ERROR;
    weft_chain *chain = open_classes("scaled", folders, &o);
    const weft_shape *shape = weft_chain_field_shape(chain, 0);
    CHECK(shape != NULL && shape->dims[0].size == rows && shape->dims[1].size == columns);
    CHECK_OK(weft_chain_read(chain, 1, 1, 0, there, (int64_t)rows * columns * COLOURS, &error),
             error);
    for (int i = 0; i < rows * columns * COLOURS; i++) {
        const int pixel = i / COLOURS;
        CHECK(fabs(there[i] - mean_of(rows, columns, pixel / columns, pixel % columns,
                                      i % COLOURS)) <= 0.5 + 1e-9);
    }
    weft_chain_close(&chain);
}

static void test_images_are_scaled_by_the_mean_of_areas(void)
{
    check_scale(HIGH, WIDE);
    check_scale(3, 3);
    check_scale(4, 7);
    check_scale(13, 20);
    check_scale(1, 1);
}

static void test_zstd_changes_nothing_but_the_file(void)
{
    static const char csv[] = "a,b\n1,x\n2,y\n";
    char packed[256];
    weft_error error = WEFT_NO_ERROR;
    weft_chain *chain = NULL;
    const size_t n = ZSTD_compress(packed, sizeof packed, csv, sizeof csv - 1, 3);
    write_bytes("a.csv.zst", packed, n);
    CHECK_OK(weft_chain_open(path_of("a.csv.zst"), NULL, &chain, &error), error);
    CHECK_EQ_INT(weft_chain_records(chain), 2);
    weft_chain_close(&chain);
    write_bytes("a.csv.zst", packed, n - 3);
    CHECK_EQ_INT(weft_chain_open(path_of("a.csv.zst"), NULL, &chain, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "cannot be decompressed");
}

static void read_any(const char *name)
{
    unsigned char *to;
    int64_t dims[WEFT_RECORD_DIMS];
    weft_records *records = NULL;
    weft_error error = WEFT_NO_ERROR;
    if (weft_records_open(path_of(name), NULL, &records, &error) != WEFT_OK) {
        CHECK(error.message[0] != '\0');
        return;
    }
    if (weft_records_shape(records, 0, 0, dims, &error) == WEFT_OK &&
        dims[0] * dims[1] * dims[2] < 1 << 20) {
        to = malloc((size_t)(dims[0] * dims[1] * dims[2]));
        (void)!weft_records_read(records, 0, 0, 0, dims[0] * dims[1] * dims[2], to, &error);
        free(to);
    }
    CHECK(error.status == WEFT_OK || error.message[0] != '\0');
    weft_records_close(&records);
}

static void harm(const char *name, const unsigned char *bytes, size_t n)
{
    unsigned char copy[FIRST];
    uint64_t random = 88172645463325252u;
    for (size_t cut = 1; cut < n; cut += 1 + n / 200) {
        write_bytes(name, bytes, cut);
        read_any(name);
    }
    for (int k = weft_test_cases(300); k > 0; k--) {
        memcpy(copy, bytes, n);
        for (int i = 0; i < 1 + k % 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            copy[4 + random % (n - 4)] = (unsigned char)(random >> 40);
        }
        write_bytes(name, copy, n);
        read_any(name);
    }
}

static void test_cut_and_changed_images_end_no_process(void)
{
    harm("h.png", png_bytes, png_n);
    harm("h.jpg", jpeg_bytes, jpeg_n);
}

/* In a process of its own, as what is loaded stays. */
static void test_without_the_plug_in_its_package_is_named(const char *self)
{
    char command[800], line[800] = "";
    snprintf(command, sizeof command, "WEFT_FILES_PATH=%s '%s' '%s'", folder, self,
             path_of("a.png"));
    FILE *out = popen(command, "r");
    CHECK(out != NULL && fgets(line, sizeof line, out) != NULL && pclose(out) == 0);
    CHECK_TEXT(line, "install the package libweft-files0");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        weft_error error = WEFT_NO_ERROR;
        weft_records *records = NULL;
        int64_t dims[WEFT_RECORD_DIMS];
        if (weft_records_open(argv[1], NULL, &records, &error) == WEFT_OK)
            (void)!weft_records_shape(records, 0, 0, dims, &error);
        weft_records_close(&records);
        puts(error.message);
        return 0;
    }
    if (!own_folder_open("files")) return weft_test_report();
    setenv("WEFT_FILES_PATH", WEFT_FILES_FOLDER, 1);
    make_images();
    RUN(test_images_are_what_was_written);
    RUN(test_a_folder_of_images_is_a_chain);
    RUN(test_images_have_the_class_of_their_folder);
    RUN(test_images_beside_folders_leave_all_without_a_class);
    RUN(test_images_are_scaled_by_the_mean_of_areas);
    RUN(test_zstd_changes_nothing_but_the_file);
    RUN(test_cut_and_changed_images_end_no_process);
    weft_test_.running = "test_without_the_plug_in_its_package_is_named";
    test_without_the_plug_in_its_package_is_named(argv[0]);
    own_folder_close();
    return weft_test_report();
}
#else
#include "own_folder.h"

MAIN_THAT_IS_SKIPPED("built without libarchive, libzstd, libsnappy, libjpeg or libpng")
#endif
