/* images: folders of images by class, as chains. A permutation of a fixed seed decides which fifth is for the test. */
#include "images.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 4096, SPLIT_SEED = 2, LEAST = 5, ROUND = 200 };

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static bool has_file(const char *folder, const char *name)
{
    char path[LONGEST + 64];
    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    return access(path, F_OK) == 0;
}

bool mnist_has_images(const char *folder)
{
    char path[LONGEST + 300];
    bool has_folder = false;
    if (has_file(folder, "t10k-images-idx3-ubyte") || has_file(folder, "t10k-images-idx3-ubyte.gz"))
        return false;
    DIR *listing = opendir(folder);
    struct dirent *entry;
    while (listing != NULL && !has_folder && (entry = readdir(listing)) != NULL) {
        snprintf(path, sizeof path, "%.4000s/%s", folder, entry->d_name);
        has_folder = entry->d_name[0] != '.' && is_folder(path);
    }
    if (listing != NULL) closedir(listing);
    return has_folder;
}

weft_status mnist_images_size(const char *size, int64_t *rows, int64_t *columns, weft_error *error)
{
    char *end = NULL;
    *rows = *columns = 0;
    if (*size == '\0') return WEFT_OK;
    *rows = strtoll(size, &end, 10);
    if (*end == 'x') *columns = strtoll(end + 1, &end, 10);
    if (*end == '\0' && *rows >= 1 && *columns >= 1 && *rows <= 4096 && *columns <= 4096)
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--size %.60s: it is rows x columns, each 1 to 4096, as --size 28x28", size);
}

/* Where a part is: in a folder of its own, or in the one that is named. */
static bool find_folder(const char *folder, mnist_part part, char *path, size_t bytes)
{
    char train[LONGEST], test[LONGEST];
    snprintf(train, sizeof train, "%.4000s/train", folder);
    snprintf(test, sizeof test, "%.4000s/test", folder);
    const bool is_split = is_folder(train) && is_folder(test);
    snprintf(path, bytes, "%.4000s",
             !is_split              ? folder
             : part == MNIST_LEARNS ? train
             : part == MNIST_TESTS  ? test
                                    : folder);
    return is_split && part != MNIST_WHOLE;
}

static weft_status open_folder(const char *path, const mnist_images *images, weft_chain **chain,
                               weft_error *error)
{
    const weft_open_options o = {.rows = images->rows, .columns = images->columns};
    WEFT_TRY(weft_chain_open(path, &o, chain, error));
    if (strcmp(weft_chain_format(*chain), "images") == 0 && weft_chain_fields(*chain) == 2)
        return WEFT_OK;
    const bool has_images = strcmp(weft_chain_format(*chain), "images") == 0;
    char format[40];
    snprintf(format, sizeof format, "%.30s", weft_chain_format(*chain));
    weft_chain_close(chain);
    if (has_images)
        return weft_fail(error, WEFT_USAGE,
                         "%.240s: images lie in folders of their classes, as %.100s/cat/1.jpg, and "
                         "some lie beside these folders; move them",
                         path, path);
    return weft_fail(error, WEFT_USAGE,
                     "%.240s: its files are %s, and JPEG or PNG images are wanted, in folders of "
                     "their classes",
                     path, format);
}

/* The same images in each pass. */
static weft_status take_part(const char *path, mnist_part part, weft_chain **chain,
                             weft_error *error)
{
    const int64_t n = weft_chain_records(*chain);
    int64_t n_test = n / LEAST;
    if (n < LEAST)
        return weft_fail(error, WEFT_USAGE,
                         "%.240s has %lld images, and a fifth of them is for the test; give at "
                         "least %d, or folders train and test",
                         path, (long long)n, LEAST);
    if (n_test > ROUND) n_test -= n_test % ROUND;
    WEFT_TRY(weft_chain_shuffle(chain, 0, SPLIT_SEED, error));
    WEFT_TRY(weft_chain_freeze(chain, error));
    return part == MNIST_TESTS ? weft_chain_take(chain, n - n_test, n_test, error)
                               : weft_chain_take(chain, 0, n - n_test, error);
}

static weft_status arrange(const char *path, mnist_part part, bool is_own, bool is_shuffled,
                           uint64_t seed, weft_chain **chain, weft_error *error)
{
    if (!is_own && part != MNIST_WHOLE) WEFT_TRY(take_part(path, part, chain, error));
    return is_shuffled ? weft_chain_shuffle(chain, 0, seed, error) : WEFT_OK;
}

weft_status mnist_images_open(const char *folder, mnist_part part, bool is_shuffled, uint64_t seed,
                              mnist_images *images, weft_dataset **data, weft_error *error)
{
    char path[LONGEST];
    weft_chain *chain = NULL;
    const bool is_own = find_folder(folder, part, path, sizeof path);
    WEFT_TRY(open_folder(path, images, &chain, error));
    const weft_shape *shape = weft_chain_field_shape(chain, 0);
    images->rows = shape->dims[0].size;
    images->columns = shape->dims[1].size;
    images->channels = shape->dims[2].size;
    images->classes = weft_chain_labels(chain, 1);
    weft_status status = arrange(path, part, is_own, is_shuffled, seed, &chain, error);
    if (status == WEFT_OK) status = weft_chain_dataset(&chain, NULL, data, error);
    weft_chain_close(&chain);
    return status;
}

static weft_status compare(const weft_chain *a, const weft_chain *b, const char *first,
                           const char *second, weft_error *error)
{
    const int n = weft_chain_labels(a, 1), m = weft_chain_labels(b, 1);
    for (int i = 0; i < n || i < m; i++) {
        const char *x = weft_chain_label(a, 1, i), *y = weft_chain_label(b, 1, i);
        if (x != NULL && y != NULL && strcmp(x, y) == 0) continue;
        return weft_fail(error, WEFT_USAGE,
                         "%.140s has %d classes and %.140s %d; class %d is %.60s in the first and "
                         "%.60s in the second: give both the same folders",
                         first, n, second, m, i, x ? x : "none", y ? y : "none");
    }
    return WEFT_OK;
}

weft_status mnist_images_alike(const char *learned, const char *other, weft_error *error)
{
    char first[LONGEST], second[LONGEST];
    const mnist_images as_they_are = {0};
    weft_chain *a = NULL, *b = NULL;
    (void)find_folder(learned, MNIST_LEARNS, first, sizeof first);
    snprintf(second, sizeof second, "%.4000s", other);
    if (strcmp(learned, other) == 0) (void)find_folder(other, MNIST_TESTS, second, sizeof second);
    if (strcmp(first, second) == 0) return WEFT_OK;
    weft_status status = open_folder(first, &as_they_are, &a, error);
    if (status == WEFT_OK) status = open_folder(second, &as_they_are, &b, error);
    if (status == WEFT_OK) status = compare(a, b, first, second, error);
    weft_chain_close(&a);
    weft_chain_close(&b);
    return status;
}
