/* element.h: for element ops of the tree: their tables' declarations, and the macros that everybody has. */
#ifndef WEFT_ELEMENT_H
#define WEFT_ELEMENT_H

#include "op.h"
#include "weft/extend/element.h"

#endif
