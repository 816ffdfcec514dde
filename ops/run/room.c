/* room.c: whether there is the memory that a program needs, asked before any of it is taken.
 *
 * The plan says what is needed to the byte. Processes of one host share what is free, and some hold what others use too: so
 * it is what all need that is compared with what is free on all hosts.
 */
#include "program.h"

#include <stdlib.h>

#include "weft/collectives.h"

/* Of a process: what its ranks are about to take; its part of what is free on its host, -1: nobody knows. */
typedef struct need {
    int64_t bytes, room;
} need;

static int64_t saturated_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static need need_of(weft_program *program)
{
    const weft_device *device = program->ranks->device;
    need own = {0, device->room ? device->room() : -1};
    for (int at = 0; at < program->n_local; at++) {
        weft_rank *rank = &program->ranks[at];
        const weft_status status = weft_count_homes(rank, NULL);
        const int64_t homes = status == WEFT_OK ? rank->homes_bytes : INT64_MAX;
        own.bytes = saturated_sum(own.bytes, saturated_sum(homes, rank->layout.arena_bytes));
    }
    if (own.room > 0) own.room /= weft_world_n_near();
    return own;
}

static need add_up(const need *all, int n)
{
    need sum = {0};
    for (int i = 0; i < n; i++) {
        sum.bytes = saturated_sum(sum.bytes, all[i].bytes);
        sum.room = sum.room < 0 || all[i].room < 0 ? -1 : sum.room + all[i].room;
    }
    return sum;
}

static weft_status find_sum(weft_program *program, need *sum, weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->mesh);
    *sum = need_of(program);
    if (program->n_local == n) return WEFT_OK;
    void *all;
    const weft_status status = weft_hear_all(program, sum, sizeof *sum, &all, error);
    if (status == WEFT_OK) *sum = add_up(all, n);
    free(all);
    return status;
}

static weft_status refuse(const weft_program *program, const need *sum, weft_error *error)
{
    const double gib = 1 << 30;
    const int n = weft_mesh_n_ranks(program->mesh);
    weft_usage usage = {0};
    char others[80] = "";
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    if (n > 1)
        snprintf(others, sizeof others, ", all %d ranks %.1f GiB", n, (double)sum->bytes / gib);
    return weft_fail(
        error, WEFT_MEMORY,
        "rank 0 of this program needs %.1f GiB (parameters %.1f, optimizer state %.1f, "
        "inputs %.1f, temporaries %.1f)%s, and %.1f GiB are free; use a smaller batch or "
        "model, more hosts, or ZeRO",
        (double)usage.total_bytes / gib, (double)usage.variable_bytes / gib,
        (double)usage.slot_bytes / gib, (double)usage.input_bytes / gib,
        (double)usage.arena_bytes / gib, others, (double)sum->room / gib);
}

weft_status weft_check_room(weft_program *program, weft_error *error)
{
    need sum;
    WEFT_TRY(find_sum(program, &sum, error));
    return sum.room < 0 || sum.bytes <= sum.room ? WEFT_OK : refuse(program, &sum, error);
}
