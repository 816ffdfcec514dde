/* images_test: mnist learns from folders of images by class, the same on any mesh, continued too. Sizes that differ are named or scaled.
 * Folders that cannot be learned give one sentence. */
#include "png.h"
#include "text_folder.h"

enum { EACH = 20, SIDE = 12, LARGEST = 2 * SIDE };
#define MNIST WEFT_TEST_BIN "/mnist --hidden 8 --batch 8 --schedule constant --rate 1e-2 --data "

/* A bar that stands, or lies, or a spot, each somewhere; brighter than its ground. */
static void draw(int kind, int i, int rows, int columns, int channels, unsigned char *pixels)
{
    const int at = 2 + i * 7 % (SIDE - 4);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            for (int k = 0; k < channels; k++) {
                const int y = r * SIDE / rows, x = c * SIDE / columns;
                const bool is_on = kind == 0   ? x == at
                                   : kind == 1 ? y == at
                                               : abs(x - at) <= 1 && abs(y - at) <= 1;
                pixels[(r * columns + c) * channels + k] =
                    (unsigned char)((is_on ? 200 : 10) + (i * 31 + r * c) % 20);
            }
}

static void write_images(const char *name, int n_classes, int scale, int channels)
{
    static const char *const classes[] = {"standing", "lying", "spot"};
    unsigned char pixels[LARGEST * LARGEST * 3];
    char path[300];
    for (int k = 0; k < n_classes; k++) {
        snprintf(path, sizeof path, "mkdir -p %s/%s", name, classes[k]);
        CHECK_EQ_INT(text_folder_run(path)->status, 0);
        for (int i = 0; i < EACH; i++) {
            const int wide = scale * SIDE;
            snprintf(path, sizeof path, "%s/%s/%s/%d.png", folder, name, classes[k], i);
            draw(k, i, wide, wide, channels, pixels);
            CHECK(png_write(path, wide, wide, channels, pixels));
        }
    }
}

static const char *run(const char *arguments, int status)
{
    char line[1024];
    snprintf(line, sizeof line, MNIST "%s", arguments);
    const command_result *r = text_folder_run(line);
    weft_test_check(r->status == status, __FILE__, __LINE__, r->text);
    return r->text;
}

static double accuracy(const char *text)
{
    const char *at = strstr(text, "test accuracy ");
    return CHECK(at != NULL) ? atof(at + strlen("test accuracy ")) : 0;
}

static void test_folders_are_learned_on_any_mesh(void)
{
    const char *text = run("bars --fresh --run a --steps 120", 0);
    CHECK_TEXT(text, "3 classes\n");
    CHECK_TEXT(text, "48 images of 12 x 12 to learn from, 12 to look at\n");
    const double alone = accuracy(text);
    CHECK(alone >= 75);
    CHECK(accuracy(run("bars --fresh --run b --steps 120 --mesh data:2 --layout batch:data", 0)) ==
          alone);
    CHECK(accuracy(run("colours --model cnn --channels 2 --fresh --run c --steps 4 --mesh space:2 "
                       "--layout row:space",
                       0)) >= 0);
    (void)run("bars --fresh --run d --steps 120 --until 60", 0);
    CHECK(accuracy(run("bars --run d --steps 120 --mesh model:2 --layout hidden:model", 0)) ==
          alone);
}

static void test_sizes_are_named_or_scaled(void)
{
    CHECK_TEXT(run("mixed --fresh --run e --steps 2", 2), "give all the same size");
    CHECK_TEXT(run("mixed --size 12x12 --fresh --run e --steps 2", 0), "12 x 12");
    CHECK_TEXT(run("bars --size 12 --fresh --run e --steps 2", 2), "rows x columns");
    CHECK_TEXT(run("bars --run d --size 6x6 --steps 130", 2), "has learned from other data");
}

static void test_folders_train_and_test_are_taken_as_such(void)
{
    CHECK_EQ_INT(text_folder_run("mkdir split && cp -r bars split/train && cp -r bars split/test "
                                 "&& rm split/test/*/1?.png")
                     ->status,
                 0);
    CHECK_TEXT(run("split --fresh --run f --steps 2", 0),
               "60 images of 12 x 12 to learn from, 30 to look at\n");
    CHECK_EQ_INT(text_folder_run("rm -r split/test/spot")->status, 0);
    CHECK_TEXT(run("split --fresh --run f --steps 2", 2), "class 1 is spot in the first");
}

static void test_what_cannot_be_learned_is_one_sentence(void)
{
    CHECK_TEXT(run("bars --eval-data two --fresh --run g --steps 2", 2),
               "has 3 classes and two 2; class 1 is spot in the first and standing in the second");
    CHECK_TEXT(run("bars --classes 2 --fresh --run g --steps 2", 2), "3 folders of classes");
    CHECK_TEXT(run("bars --batch 49 --fresh --run g --steps 2", 2), "48 images to learn from");
    CHECK_TEXT(run("texts --fresh --run g --steps 2", 2), "JPEG or PNG images are wanted");
    CHECK_EQ_INT(text_folder_run("cp bars/spot/1.png two")->status, 0);
    CHECK_TEXT(run("two --fresh --run g --steps 2", 2), "some lie beside these folders");
    CHECK_TEXT(run("nothing --fresh --run g --steps 2", 2), "cannot open data file");
}

static void test_weft_data_tells_what_there_is(void)
{
    const char *text = text_folder_run(WEFT_TEST_BIN "/weft data bars text.txt --records 1")->text;
    CHECK_TEXT(text, "bars: images, 60 records\n");
    CHECK_TEXT(text, "[row:12, column:12, channel:1]");
    CHECK_TEXT(text, "i32: 0 lying, 1 spot, 2 standing\n");
    CHECK_TEXT(text, "text.txt: text, 1 record\n");
    CHECK_TEXT(text, "\"the quick brown fox");
    CHECK_TEXT(text_folder_run(WEFT_TEST_BIN "/weft data")->text, "data of which files?");
    CHECK_TEXT(text_folder_run(WEFT_TEST_BIN "/weft data tekst.txt")->text, "as text.txt");
    CHECK_TEXT(text_folder_run(WEFT_TEST_BIN "/weft data bars --fields labl")->text,
               "did you mean label?");
    CHECK_TEXT(text_folder_run(WEFT_TEST_BIN "/weft data text.txt --format txet")->text,
               "the nearest is text");
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "images"))) return weft_test_report();
    write_images("bars", 3, 1, 1);
    if (strstr(text_folder_run(WEFT_TEST_BIN "/weft data bars")->text, "install the package")) {
        weft_test_skip("built without what reads images");
        return weft_test_report();
    }
    write_images("two", 2, 1, 1);
    write_images("colours", 3, 1, 3);
    write_images("mixed", 3, 1, 1);
    write_images("mixed", 2, 2, 1);
    CHECK_EQ_INT(text_folder_run("mkdir -p texts/a && cp text.txt texts/a")->status, 0);
    RUN(test_folders_are_learned_on_any_mesh);
    RUN(test_sizes_are_named_or_scaled);
    RUN(test_folders_train_and_test_are_taken_as_such);
    RUN(test_what_cannot_be_learned_is_one_sentence);
    RUN(test_weft_data_tells_what_there_is);
    CHECK_EQ_INT(text_folder_run("rm -r ../$(basename $(pwd))")->status, 0);
    return weft_test_report();
}
