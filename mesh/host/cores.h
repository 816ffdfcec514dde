/* cores.h: the cores of a topology that a process may use. */
#ifndef WEFT_HOST_CORES_H
#define WEFT_HOST_CORES_H

#include <hwloc.h>

#include "host.h"

/* weft_cores_look - what a mask allows of a topology, this machine's or a recorded one. Local. */
void weft_cores_look(hwloc_topology_t topology, hwloc_const_cpuset_t mask, weft_cores *cores);

#endif
