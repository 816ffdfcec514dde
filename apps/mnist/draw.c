/* draw: digits as strokes of a pen, each a little turned, shifted, stretched and shaken, in MNIST's format (IDX).
 *
 * They are easier than handwritten ones: a program learns them in less time, and its count of right answers says nothing of MNIST.
 */
#include "draw.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../run.h"
#include "weft/philox.h"

enum { IMAGES = 10000, SIDE = 28, POINTS = 9, DRAW_STREAM = 0x44524157 };

/* Corners of a line through the unit square, x to the right, y down; [0] is how many. */
static const struct {
    int n;
    double at[POINTS][2];
} strokes[10] = {
    {7, {{.5, .05}, {.8, .25}, {.8, .75}, {.5, .95}, {.2, .75}, {.2, .25}, {.5, .05}}},
    {3, {{.3, .25}, {.55, .05}, {.55, .95}}},
    {6, {{.2, .25}, {.45, .05}, {.75, .15}, {.75, .4}, {.2, .95}, {.8, .95}}},
    {7, {{.2, .1}, {.7, .1}, {.45, .42}, {.75, .6}, {.7, .88}, {.4, .95}, {.2, .85}}},
    {4, {{.65, .95}, {.65, .05}, {.2, .65}, {.85, .65}}},
    {7, {{.75, .05}, {.25, .05}, {.25, .45}, {.6, .4}, {.8, .65}, {.6, .93}, {.2, .88}}},
    {8, {{.7, .1}, {.4, .2}, {.2, .6}, {.35, .93}, {.65, .93}, {.8, .7}, {.6, .5}, {.25, .6}}},
    {3, {{.2, .05}, {.8, .05}, {.4, .95}}},
    {9,
     {{.5, .48},
      {.25, .3},
      {.5, .05},
      {.75, .3},
      {.5, .48},
      {.2, .75},
      {.5, .95},
      {.8, .75},
      {.5, .48}}},
    {7, {{.75, .4}, {.4, .5}, {.2, .3}, {.4, .05}, {.7, .1}, {.75, .4}, {.65, .95}}},
};

/* From -1 to 1: the k-th number of image i. */
static double drawn(int i, int k)
{
    uint32_t words[4];
    weft_philox((weft_philox_key){1, DRAW_STREAM, 0}, (uint64_t)i * 64 + (uint64_t)(k / 4), words);
    return 2 * weft_philox_unit(words[k % 4]) - 1;
}

/* The corners of image i, in pixels. */
static void place(int i, int digit, double at[POINTS][2])
{
    const double turn = 0.2 * drawn(i, 0), slant = 0.2 * drawn(i, 1);
    const double wide = 15 + 3 * drawn(i, 2), high = 19 + 2 * drawn(i, 3);
    const double right = 1.5 * drawn(i, 4), down = 1.5 * drawn(i, 5);
    for (int p = 0; p < strokes[digit].n; p++) {
        const double x = wide * (strokes[digit].at[p][0] - 0.5 + 0.05 * drawn(i, 8 + 2 * p));
        const double y = high * (strokes[digit].at[p][1] - 0.5 + 0.05 * drawn(i, 9 + 2 * p));
        at[p][0] = SIDE / 2.0 + right + x * cos(turn) - y * (sin(turn) + slant);
        at[p][1] = SIDE / 2.0 + down + x * sin(turn) + y * cos(turn);
    }
}

/* Of a point from the line between two others. */
static double distance(double x, double y, const double a[2], const double b[2])
{
    const double dx = b[0] - a[0], dy = b[1] - a[1];
    const double t = ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy + 1e-9);
    const double s = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypot(x - a[0] - s * dx, y - a[1] - s * dy);
}

static void draw(int i, int digit, unsigned char image[SIDE * SIDE])
{
    double at[POINTS][2];
    const double thick = 1.3 + 0.4 * drawn(i, 6);
    place(i, digit, at);
    for (int p = 0; p < SIDE * SIDE; p++) {
        double nearest = SIDE;
        for (int s = 0; s + 1 < strokes[digit].n; s++)
            nearest = fmin(nearest, distance(p % SIDE + 0.5, p / SIDE + 0.5, at[s], at[s + 1]));
        const double ink = thick - nearest + 0.5; /* its edge fades over a pixel */
        image[p] = (unsigned char)(255 * fmax(0, fmin(1, ink)));
    }
}

static void put_number(uint32_t number, FILE *file)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(number >> shift & 255), file);
}

static weft_status open_file(const char *folder, const char *name, FILE **file, weft_error *error)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    *file = fopen(path, "wbe");
    if (*file) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write %s: %s; name another folder", path,
                     strerror(errno));
}

static weft_status close_file(FILE *file, const char *folder, weft_error *error)
{
    const bool is_bad = ferror(file) != 0;
    if (fclose(file) == 0 && !is_bad) return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "cannot write the digits in %.300s to their end: %s; make room there", folder,
                     strerror(errno));
}

static weft_status draw_images(const char *folder, weft_error *error)
{
    FILE *file;
    unsigned char image[SIDE * SIDE];
    WEFT_TRY(open_file(folder, "t10k-images-idx3-ubyte", &file, error));
    put_number(0x00000803, file); /* bytes, of three dims */
    put_number(IMAGES, file);
    put_number(SIDE, file);
    put_number(SIDE, file);
    for (int i = 0; i < IMAGES; i++) {
        draw(i, i % 10, image);
        fwrite(image, sizeof image, 1, file);
    }
    return close_file(file, folder, error);
}

static weft_status draw_labels(const char *folder, weft_error *error)
{
    FILE *file;
    WEFT_TRY(open_file(folder, "t10k-labels-idx1-ubyte", &file, error));
    put_number(0x00000801, file);
    put_number(IMAGES, file);
    for (int i = 0; i < IMAGES; i++)
        fputc(i % 10, file);
    return close_file(file, folder, error);
}

weft_status mnist_draw(const char *folder, weft_error *error)
{
    WEFT_TRY(app_make_folder(folder, error));
    WEFT_TRY(draw_images(folder, error));
    return draw_labels(folder, error);
}
