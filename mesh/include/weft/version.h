/* version.h: which Weft this is: the library's version at run time. */
#ifndef WEFT_VERSION_H
#define WEFT_VERSION_H

#include "weft/error.h"

WEFT_BEGIN

/* weft_version - of the library that is loaded: "0.1.0". Local. Static. */
WEFT_API const char *weft_version(void);

WEFT_END

#endif
