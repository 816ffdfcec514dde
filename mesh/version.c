/* version: the project's version, as CMake knows it. */
#include "weft/version.h"

const char *weft_version(void)
{
    return WEFT_VERSION;
}
