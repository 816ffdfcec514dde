/* hdf5_carry.h: a checkpoint as one HDF5 file; an HDF5 file as a source, read by a process that is
 * not trusted. */
#ifndef WEFT_APPS_HDF5_CARRY_H
#define WEFT_APPS_HDF5_CARRY_H

#include "carry.h"

/* hdf5_write - as carry_format.write: every tensor one contiguous dataset in the groups parameters
 * and slots, its dims the attribute "dims"; step, sample, seed, mesh and layout are attributes of
 * the root. Local. */
weft_status hdf5_write(const weft_stored *stored, const char *path, weft_error *error);

/* hdf5_source_open - as carry_format.open, with a reader of one's own: reader is its path and
 * arguments, NULL at the end; quiet_ms its longest silence. Local. */
weft_status hdf5_source_open(const char *path, char *const *reader, int quiet_ms, source *from,
                             weft_error *error);

#endif
