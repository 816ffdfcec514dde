/* weft.h: all that a training program needs, in one: the ring "use" of docs/api.md.
 *
 *     #include <weft.h>
 *
 * Every header of it can be included alone; each is a page of the reference.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include "weft/autodiff.h"
#include "weft/checkpoint.h"
#include "weft/collectives.h"
#include "weft/error.h"
#include "weft/graph.h"
#include "weft/data.h"
#include "weft/io.h"
#include "weft/layers.h"
#include "weft/layout.h"
#include "weft/mesh.h"
#include "weft/number.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/philox.h"
#include "weft/program.h"
#include "weft/saved.h"
#include "weft/scan.h"
#include "weft/version.h"
#include "weft/watch.h"

#endif
