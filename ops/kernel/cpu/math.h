/* math.h: what every op and kernel has of mathematics is weft/extend/math.h. */
#ifndef WEFT_MATH_H
#define WEFT_MATH_H

#include "weft/extend/math.h"

#endif
