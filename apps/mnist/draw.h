/* draw.h: digits to learn where MNIST's files are not at hand. */
#ifndef WEFT_APPS_MNIST_DRAW_H
#define WEFT_APPS_MNIST_DRAW_H

#include "weft/error.h"

/* mnist_draw - write t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, of 10,000 digits that are drawn by a pen of ours, into a
 * folder, which is made. The same bytes each time. Local. returns WEFT_IO */
weft_status mnist_draw(const char *folder, weft_error *error);

#endif
