/* mpi_group.h: groups of processes that MPI has made, and keeps for the next that wants one of the same ranks. Only files that
 * see <mpi.h>.
 *
 * Each program of a mesh has groups of its own, and MPI makes a communicator in many rounds, in which a process can only poll:
 * with more processes than cores that took most of the time of a compilation. So who is done with a group leaves it here.
 */
#ifndef WEFT_MPI_GROUP_H
#define WEFT_MPI_GROUP_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct weft_mpi_group {
    struct weft_mpi_group *next; /* of those that are left */
    MPI_Comm comm;
    MPI_Datatype block; /* of a message that is longer than an int counts */
    bool is_far;        /* not all on this host */
    int64_t
        number; /* of all that this process has made: of one group it is the same on every rank */
    uint64_t user; /* of all users of groups: no user takes messages to another one */
    int n_ranks;
    int offsets
        []; /* [n_ranks] from the lowest rank: what says, for a mesh, who all the groups are */
} weft_mpi_group;

/* weft_mpi_group_left - the oldest that was left of these ranks, still there; NULL: none. weft_mpi_group_take - it is not left
 * any more. weft_mpi_group_leave - for the next; the caller does not touch it again. weft_mpi_group_destroy - by all of its ranks; NULL
 * is fine. weft_mpi_groups_close - all that are left; before MPI ends. Local. */
weft_mpi_group *weft_mpi_group_left(const int *ranks, int n_ranks);
void weft_mpi_group_take(weft_mpi_group *group);
void weft_mpi_group_leave(weft_mpi_group *group);
void weft_mpi_group_destroy(weft_mpi_group *group);
void weft_mpi_groups_close(void);

#endif
