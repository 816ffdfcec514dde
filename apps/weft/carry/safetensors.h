/* safetensors.h: the format: 8 bytes little-endian length of a JSON header, the header, the
 * tensors' bytes.
 *
 *     {"__metadata__": {"step": "1000", "dims.w": "pixel hidden"},
 *      "w": {"dtype": "F32", "shape": [784, 64], "data_offsets": [0, 200704]}}
 *
 * source  https://github.com/huggingface/safetensors, "Format"
 */
#ifndef WEFT_APPS_SAFETENSORS_H
#define WEFT_APPS_SAFETENSORS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "numbers.h"
#include "weft/layout.h"

/* How it writes a dtype of ours. */
static const char *const safetensors_dtypes[WEFT_DTYPES] = {
    [WEFT_F32] = "F32", [WEFT_F64] = "F64", [WEFT_I32] = "I32", [WEFT_BF16] = "BF16",
    [WEFT_F16] = "F16", [WEFT_I64] = "I64", [WEFT_U8] = "U8"};

typedef struct safetensor {
    const char *name;        /* borrowed from the header */
    const char *dtype;       /* as the file has it; borrowed from the header */
    const number_type *type; /* NULL: it is none that is known here */
    int n_dims;              /* sizes has the first of more than WEFT_MAX_DIMS */
    int64_t sizes[WEFT_MAX_DIMS];
    int64_t begin, end; /* bytes, from the end of the header */
} safetensor;

typedef struct safetensors {
    const char *path; /* borrowed */
    FILE *file;
    json_t *header;
    int64_t data; /* where the tensors' bytes begin in the file */
    int n_tensors;
    safetensor *tensors; /* in the order of their bytes */
} safetensors;

/* safetensors_open - read and check the header: every byte behind it belongs to one tensor, sizes
 * fit. Local. returns WEFT_IO for a file that cannot be read, WEFT_USAGE for one that breaks a rule
 */
weft_status safetensors_open(const char *path, safetensors *file, weft_error *error);
void safetensors_close(safetensors *file);
/* safetensors_metadata - a text of the metadata; NULL when it is not there. Borrowed. Local. */
const char *safetensors_metadata(const safetensors *file, const char *key);
/* safetensors_read - a tensor's bytes into buffer [end - begin]. Local. */
weft_status safetensors_read(const safetensors *file, const safetensor *tensor, void *buffer,
                             weft_error *error);

#endif
