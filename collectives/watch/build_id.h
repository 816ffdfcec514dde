/* build_id.h (private): which build of Weft this process runs. */
#ifndef WEFT_BUILD_ID_H
#define WEFT_BUILD_ID_H

#include "recorder.h"

/* weft_build_id - a digest of the mark that the linker puts into a library; 0: it put none. Equal for equal builds. Local.
 */
uint64_t weft_build_id(void);

#endif
