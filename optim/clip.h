/* clip.h: inside optim only. */
#ifndef WEFT_CLIP_H
#define WEFT_CLIP_H

#include "weft/graph.h"

/* The scalar that all gradients are multiplied by, so that their global norm is at most `largest`.
 */
weft_value weft_clip_scale(weft_value norm, double largest);

#endif
