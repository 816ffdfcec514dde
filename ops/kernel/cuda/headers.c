/* headers: the text of each header in the library. */
#include "headers.h"

#include "mesh/cuda/image.h"

#define HEADER(symbol, name, file)                                                                 \
    CUDA_IMAGE(cuda_header_##symbol, WEFT_SOURCE_DIR "/" file)                                     \
    extern const char cuda_header_##symbol[];
#include "headers.inc"
HEADER(stand_in, "", "ops/kernel/cuda/stand_in.h")
#undef HEADER

/* Names that one text stands for. */
#define STAND_INS(STAND_IN)                                                                        \
    STAND_IN("math.h")                                                                             \
    STAND_IN("stdint.h")                                                                           \
    STAND_IN("string.h") STAND_IN("limits.h") STAND_IN("stdbool.h") STAND_IN("weft/error.h")

#define HEADER(symbol, name, file) name,
#define STAND_IN(name)             name,
const char *const cuda_header_names[] = {
#include "headers.inc"
    STAND_INS(STAND_IN)};
#undef HEADER
#undef STAND_IN

#define HEADER(symbol, name, file) cuda_header_##symbol,
#define STAND_IN(name)             cuda_header_stand_in,
const char *const cuda_header_texts[] = {
#include "headers.inc"
    STAND_INS(STAND_IN)};
#undef HEADER
#undef STAND_IN

const int cuda_n_headers = sizeof cuda_header_names / sizeof *cuda_header_names;
