/* mpi_world.h: what the MPI files of this room share; only they see <mpi.h>. */
#ifndef WEFT_MPI_WORLD_H
#define WEFT_MPI_WORLD_H

#include <mpi.h>

#include "weft/collectives.h"

/* All processes, apart from whatever else talks over MPI_COMM_WORLD; MPI_COMM_NULL while not open.
 * Local. */
MPI_Comm weft_mpi_comm(void);

/* weft_mpi_tag - of the messages of an exchange: as many of the fingerprint's bits as MPI's tags have room for, and the
 * ticket's last. Local. */
int weft_mpi_tag(uint64_t fingerprint, uint64_t ticket);

/* weft_mpi_same - whether every process has this number. Collective over the job. */
weft_status weft_mpi_same(int64_t number, bool *is_same, weft_error *error);

/* weft_mpi_look - what look says, which asks MPI how requests fare, while MPI yields the core to nobody. Local. */
bool weft_mpi_look(bool (*look)(void *argument), void *argument);

/* weft_mpi_crowd - so many processes of the job are on this host, of which those that wait look the shorter. Local. */
void weft_mpi_crowd(int n_near);

/* weft_mpi_finish - a call of MPI that does not wait has returned this code and request: wait for it, in a way that lets others
 * run. Returns MPI's code. From the first thread of a process. Collective as the call is. */
int weft_mpi_finish(int code, MPI_Request request);

/* The sentence for an MPI error code; WEFT_COMM. `what` names the call: "all_to_all". Local. */
weft_status weft_mpi_fail(weft_error *error, const char *what, int code);

#endif
