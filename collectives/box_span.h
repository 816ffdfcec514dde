/* box_span.h: a piece of a tensor that lies in two boxes, as loops over runs that are contiguous in both: what a device
 * copies and combines (weft/device.h). */
#ifndef WEFT_BOX_SPAN_H
#define WEFT_BOX_SPAN_H

#include "weft/collectives.h"

_Static_assert((int)WEFT_BOX_LOOPS >= (int)WEFT_MAX_DIMS, "a loop for each dim");

/* `piece` is not empty and lies in `from` and in `to`. A packed piece is a box of its own: pass it
 * twice. Local. */
void weft_box_copy_make(weft_box_copy *copy, int n_dims, const weft_box *piece,
                        const weft_box *from, const weft_box *to);

#endif
