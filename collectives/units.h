/* units.h (private): which unit of its device each rank of a mesh is on. */
#ifndef WEFT_UNITS_H
#define WEFT_UNITS_H

#include "engine.h"

/* weft_units_check - that each rank has a unit of its own, or those that share one may. Collective over the mesh.
 *
 * comm    of all ranks, where each process has one; NULL: all are in this process
 * errors  USAGE, the same on all: the first two that share one, how many units there are, and the way out
 */
weft_status weft_units_check(const weft_mesh *mesh, weft_comm *comm, weft_error *error);

#endif
