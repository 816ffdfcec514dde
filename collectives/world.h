/* world.h: what world.c asks of MPI, where there is MPI. */
#ifndef WEFT_WORLD_H
#define WEFT_WORLD_H

#include "weft/collectives.h"

#ifdef WEFT_HAVE_MPI
/* Join the others: fills all of `world` but the launcher. Begins MPI unless somebody has.
 * Collective over the job. */
weft_status weft_mpi_open(weft_world *world, weft_error *error);
/* Collective over the job. Ends MPI if weft_mpi_open began it. */
void weft_mpi_close(void);
/* weft_world_agree for more processes than one. */
weft_status weft_mpi_agree(const weft_world *world, weft_error *error);
/* weft_world_any for more processes than one. */
weft_status weft_mpi_any(bool mine, bool *any, weft_error *error);
/* weft_world_same_group for more processes than one. */
weft_status weft_mpi_same_group(const char *engine, int n_ranks, weft_error *error);
#endif

/* weft_world_same_group - whether all processes make a group of that many ranks now, by the same engine, and know the same
 * combines from outside under the same numbers. WEFT_MISMATCH says who does not. Collective over the job. */
weft_status weft_world_same_group(const char *engine, int n_ranks, weft_error *error);

#endif
