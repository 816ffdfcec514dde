/* logits.h: what a model says of each place of a text, into a file that NumPy reads: to be compared with another program's. */
#ifndef WEFT_APPS_GPT_LOGITS_H
#define WEFT_APPS_GPT_LOGITS_H

#include "weft/dtype.h"

/* gpt_logits_write - numbers [rows, columns] of a float dtype as a .npy file of f32. Local. */
weft_status gpt_logits_write(const char *path, weft_dtype dtype, const void *numbers, int64_t rows,
                             int64_t columns, weft_error *error);

#endif
