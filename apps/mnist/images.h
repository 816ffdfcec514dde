/* images.h: folders of JPEG and PNG images, one for each class: DIR/cat/1.jpg, DIR/dog/1.jpg; or DIR/train and DIR/test of such. */
#ifndef WEFT_APPS_MNIST_IMAGES_H
#define WEFT_APPS_MNIST_IMAGES_H

#include "weft/data.h"

typedef enum mnist_part {
    MNIST_LEARNS, /* four fifths, drawn once and for all; of DIR/train all */
    MNIST_TESTS,  /* the last fifth; of DIR/test all */
    MNIST_WHOLE   /* all images there are */
} mnist_part;

typedef struct mnist_images {
    int64_t rows, columns, channels; /* of each image */
    int64_t classes;
} mnist_images;

/* mnist_has_images - whether a folder is one of those, and has no IDX files of MNIST's. Local. */
bool mnist_has_images(const char *folder);
/* mnist_images_size - "28x28" of --size; "": 0, as images are. Local. */
weft_status mnist_images_size(const char *size, int64_t *rows, int64_t *columns, weft_error *error);
/* mnist_images_open - fields "image" [row, column, channel] and "label". seed: of the order; is_shuffled false: as they were drawn.
 * images: in, the size that they are scaled to, or 0; out what they have. Local. */
weft_status mnist_images_open(const char *folder, mnist_part part, bool is_shuffled, uint64_t seed,
                              mnist_images *images, weft_dataset **data, weft_error *error);
/* mnist_images_alike - whether what is learned from and another folder, or its own test, have the same classes. Local. returns WEFT_USAGE
 * with the first that differs */
weft_status mnist_images_alike(const char *learned, const char *other, weft_error *error);

#endif
