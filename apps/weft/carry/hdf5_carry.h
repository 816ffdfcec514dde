/* hdf5_carry.h: an HDF5 file as a source, read by a process that is not trusted. */
#ifndef WEFT_APPS_HDF5_CARRY_H
#define WEFT_APPS_HDF5_CARRY_H

#include "carry.h"

/* hdf5_source_open - as carry_format.open, with a reader of one's own: reader is its path and
 * arguments, NULL at the end; quiet_ms its longest silence. Local. */
weft_status hdf5_source_open(const char *path, char *const *reader, int quiet_ms, source *from,
                             weft_error *error);

#endif
