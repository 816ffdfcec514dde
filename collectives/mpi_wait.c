/* mpi_wait: how a process waits for what MPI does: as for all else that a rank has under way (pending.c).
 *
 * Inside its own waits Open MPI polls, and yields the core at best. Beside strangers each yield is a time slice of theirs, in
 * every round of every agreement; a process that naps runs as soon as it wakes.
 */
#include "mpi_world.h"
#include "pending.h"

/* Open MPI yields the core whenever it is asked and has nothing to tell, where more processes were started than there are
 * cores. How a rank waits is decided where it waits (pending.c): no yielding while requests are looked at. Other libraries
 * have no such switch. */
extern bool opal_progress_set_yield_when_idle(bool yields) __attribute__((weak));
static int yields_else = -1; /* as it was set for the process */

bool weft_mpi_look(bool (*look)(void *argument), void *argument)
{
    if (!opal_progress_set_yield_when_idle) return look(argument);
    const bool before = opal_progress_set_yield_when_idle(false);
    if (yields_else < 0) yields_else = before;
    const bool is_over = look(argument);
    opal_progress_set_yield_when_idle(yields_else == 1);
    return is_over;
}

typedef struct awaited {
    weft_pending pending; /* first */
    MPI_Request request;
    int code;
} awaited;

static bool test(void *argument)
{
    awaited *it = argument;
    int is_over = 0;
    it->code = MPI_Test(&it->request, &is_over, MPI_STATUS_IGNORE);
    return is_over || it->code != MPI_SUCCESS;
}

static bool poll(weft_pending *it)
{
    return weft_mpi_look(test, it);
}

/* Of the process, whose first thread alone calls MPI: what it has learned of its neighbours on these cores stays. */
static weft_desk desk;

void weft_mpi_crowd(int n_near)
{
    weft_desk_open(&desk, false, n_near);
}

int weft_mpi_finish(int code, MPI_Request request)
{
    awaited it = {.pending = {.poll = poll}, .request = request, .code = code};
    if (code != MPI_SUCCESS) return code;
    weft_desk_begin(&desk, &it.pending);
    (void)!weft_desk_wait(&desk, &it.pending, NULL);
    return it.code;
}
