/* clocks: how far the clocks of ranks are apart. */
#include "clocks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct hello {
    uint64_t clock, job;
} hello;

/* The start of the host's kernel, and the name space of times; else the host's name. */
static uint64_t own_clock(void)
{
    char boot[64] = "", space[64] = "", host[256] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool has_boot = file && fgets(boot, sizeof boot, file);
    if (file) fclose(file);
    if (!has_boot) gethostname(host, sizeof host - 1);
    (void)!readlink("/proc/self/ns/time", space, sizeof space - 1);
    const uint64_t digest = weft_digest(weft_digest(0, boot, strlen(boot)), host, strlen(host));
    return weft_digest(digest, space, strlen(space));
}

static void hear(weft_clocks *clocks, const hello *all, int n)
{
    clocks->job = all[0].job;
    for (int r = 1; r < n; r++)
        clocks->is_one = clocks->is_one && all[r].clock == all[0].clock;
}

static weft_status take_room(weft_clocks *clocks, const weft_error *refused, weft_error *error)
{
    const size_t bytes = 3 * (size_t)weft_mesh_n_ranks(clocks->program->mesh) * sizeof(int64_t);
    weft_error own = *refused;
    clocks->heard = malloc(bytes);
    if (!clocks->heard) weft_fail_memory(&own, bytes);
    if (weft_world_agree(&own) == WEFT_OK) return WEFT_OK;
    return weft_fail(error, own.status, "%s", own.message);
}

weft_status weft_clocks_open(weft_program *program, const weft_error *refused, weft_clocks *clocks,
                             weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->mesh);
    const hello own = {own_clock(), (uint64_t)weft_clock_ns() ^ (uint64_t)getpid() << 48};
    *clocks = (weft_clocks){.program = program, .is_one = true, .job = own.job};
    WEFT_TRY(take_room(clocks, refused, error));
    if (program->n_local == n) return WEFT_OK;
    void *all;
    const weft_status status = weft_hear_all(program, &own, sizeof own, &all, error);
    if (status == WEFT_OK) hear(clocks, all, n);
    free(all);
    return status;
}

void weft_clocks_close(weft_clocks *clocks)
{
    free(clocks->heard);
    *clocks = (weft_clocks){0};
}

weft_traced_clock weft_clock_between(const int64_t *own, const int64_t *zero, int n)
{
    weft_traced_clock best = {.error = INT64_MAX};
    for (int k = 1; k <= n; k++) {
        const int64_t gap = own[k + 1] - own[k - 1], middle = own[k - 1] + gap / 2;
        if ((gap + 1) / 2 < best.error)
            best = (weft_traced_clock){middle, zero[k] - middle, (gap + 1) / 2};
    }
    return best;
}

static weft_status gather(const weft_clocks *clocks, int64_t own, weft_error *error)
{
    const weft_program *program = clocks->program;
    const int n = weft_mesh_n_ranks(program->mesh);
    int64_t *bytes = clocks->heard + n, *places = bytes + n;
    weft_comm *comm =
        weft_comm_of(program->comms, weft_mesh_first_local(program->mesh), weft_all_axes(program));
    weft_request request;
    for (int r = 0; r < n; r++) {
        bytes[r] = sizeof own;
        places[r] = r * (int64_t)sizeof own;
    }
    WEFT_TRY(weft_all_gather_start(comm, &own, sizeof own, clocks->heard, bytes, places, &request,
                                   error));
    return weft_wait(&request, error);
}

weft_status weft_clocks_compare(const weft_clocks *clocks, weft_traced_clock *clock,
                                weft_error *error)
{
    int64_t own[WEFT_CLOCK_ROUNDS + 2], zero[WEFT_CLOCK_ROUNDS + 1];
    *clock = (weft_traced_clock){.at = weft_sync_now()};
    if (clocks->is_one) return WEFT_OK;
    for (int k = 0; k <= WEFT_CLOCK_ROUNDS; k++) {
        own[k] = weft_sync_now();
        WEFT_TRY(gather(clocks, own[k], error));
        zero[k] = clocks->heard[0];
    }
    own[WEFT_CLOCK_ROUNDS + 1] = weft_sync_now();
    *clock = weft_clock_between(own, zero, WEFT_CLOCK_ROUNDS);
    if (weft_mesh_first_local(clocks->program->mesh) == 0)
        *clock = (weft_traced_clock){own[0], 0, 0};
    return WEFT_OK;
}
