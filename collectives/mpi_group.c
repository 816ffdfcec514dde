/* mpi_group: groups that are left for the next. */
#include "mpi_group.h"

#include <stdlib.h>

enum { MOST = 16 };

/* Of the process, whose first thread alone calls MPI. */
static weft_mpi_group *left;
static int n_left;

static bool has_ranks(const weft_mpi_group *g, const int *ranks, int n_ranks)
{
    if (g->n_ranks != n_ranks) return false;
    for (int i = 0; i < n_ranks; i++)
        if (g->offsets[i] != ranks[i] - ranks[0]) return false;
    return true;
}

weft_mpi_group *weft_mpi_group_left(const int *ranks, int n_ranks)
{
    weft_mpi_group *oldest = NULL;
    for (weft_mpi_group *g = left; g != NULL; g = g->next)
        if (has_ranks(g, ranks, n_ranks) && (oldest == NULL || g->number < oldest->number))
            oldest = g;
    return oldest;
}

void weft_mpi_group_take(weft_mpi_group *group)
{
    weft_mpi_group **at = &left;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    group->next = NULL;
    n_left--;
}

void weft_mpi_group_leave(weft_mpi_group *group)
{
    if (n_left == MOST || group->comm == MPI_COMM_NULL || group->block == MPI_DATATYPE_NULL) {
        weft_mpi_group_destroy(group);
        return;
    }
    group->next = left;
    left = group;
    n_left++;
}

void weft_mpi_group_destroy(weft_mpi_group *group)
{
    int is_over = 0;
    if (group == NULL) return;
    MPI_Finalized(&is_over);
    if (!is_over && group->block != MPI_DATATYPE_NULL) MPI_Type_free(&group->block);
    if (!is_over && group->comm != MPI_COMM_NULL) MPI_Comm_free(&group->comm);
    free(group);
}

void weft_mpi_groups_close(void)
{
    while (left != NULL) {
        weft_mpi_group *g = left;
        weft_mpi_group_take(g);
        weft_mpi_group_destroy(g);
    }
}
