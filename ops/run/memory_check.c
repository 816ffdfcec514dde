/* memory_check: is there the memory that a program needs? Asked before any of it is taken.
 *
 * The plan says what is needed to the byte. Processes of one host share what is free there, and some hold what others use too: so
 * of the host's memory it is what all need that is compared with what is free on all hosts. A unit of a device has memory of its
 * own: there it is what those need who are on it.
 */
#include "program.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

#include "weft/collectives.h"

/* Of a rank: what it is about to take; what is free there, of the host's memory its part; -1: nobody knows. */
typedef struct need {
    int64_t bytes, room;
    weft_device_unit unit; /* id 0: the host's memory */
} need;

static int64_t saturated_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The host is asked once for all ranks here: that reads files. */
static void find_own(weft_program *program, need *own)
{
    const weft_device *asked = NULL;
    int64_t room = -1;
    for (int at = 0; at < program->n_local; at++) {
        weft_rank *rank = &program->ranks[at];
        const weft_device *device = rank->device;
        const weft_status status = weft_count_homes(rank, NULL);
        const int64_t homes = status == WEFT_OK ? rank->homes_bytes : INT64_MAX;
        if (device != asked || device->unit) room = device->room ? device->room(rank->stream) : -1;
        asked = device;
        own[at] = (need){saturated_sum(homes, rank->layout.arena_bytes), room, {0}};
        if (device->unit)
            device->unit(rank->stream, &own[at].unit);
        else if (own[at].room > 0)
            own[at].room /= (int64_t)weft_world_n_near() * program->n_local;
    }
}

/* Of all ranks, [n_ranks], to be freed. */
static weft_status find_all(weft_program *program, need **all, weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->mesh);
    if (program->n_local < n) {
        need own; /* each process has one */
        void *heard;
        find_own(program, &own);
        const weft_status status = weft_hear_all(program, &own, sizeof own, &heard, error);
        *all = heard;
        return status;
    }
    *all = calloc((size_t)n, sizeof **all);
    if (!*all) return weft_fail_memory(error, (size_t)n * sizeof **all);
    find_own(program, *all);
    return WEFT_OK;
}

/* What all on the same unit need; returns how many. */
static int add_up(const need *all, int n, const need *one, need *sum)
{
    const bool is_host = one->unit.id == 0;
    int n_there = 0;
    *sum = (need){0, is_host ? 0 : one->room, one->unit};
    for (int i = 0; i < n; i++) {
        if (all[i].unit.id != one->unit.id) continue;
        n_there++;
        sum->bytes = saturated_sum(sum->bytes, all[i].bytes);
        if (sum->room < 0 || all[i].room < 0)
            sum->room = -1;
        else if (is_host)
            sum->room += all[i].room;
        else if (all[i].room < sum->room)
            sum->room = all[i].room;
    }
    return n_there;
}

static weft_status refuse(const weft_program *program, int rank, int n_there, const need *sum,
                          weft_error *error)
{
    const double gib = 1 << 30;
    const bool is_host = sum->unit.id == 0;
    weft_usage usage = {0};
    char others[100] = "", where[80] = "";
    WEFT_TRY(weft_plan_usage(program, rank, &usage, error));
    if (!is_host) snprintf(where, sizeof where, " on %s", sum->unit.name);
    if (n_there > 1)
        weft_text_format(others, sizeof others, ", all %d ranks%s %.1f GiB", n_there,
                         is_host ? "" : " there", (double)sum->bytes / gib);
    return weft_fail(
        error, WEFT_MEMORY,
        "rank %d of this program needs %.1f GiB (parameters %.1f, optimizer state %.1f, "
        "inputs %.1f, temporaries %.1f)%s, and %.1f GiB are free%s; use a smaller batch or "
        "model, more %s, or ZeRO",
        rank, (double)usage.total_bytes / gib, (double)usage.variable_bytes / gib,
        (double)usage.slot_bytes / gib, (double)usage.input_bytes / gib,
        (double)usage.arena_bytes / gib, others, (double)sum->room / gib, where,
        is_host ? "hosts" : "devices");
}

weft_status weft_check_memory(weft_program *program, weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->mesh);
    need *all, sum;
    weft_status status = find_all(program, &all, error);
    for (int r = 0; r < n && status == WEFT_OK; r++) {
        if (r > 0 && all[r].unit.id == all[r - 1].unit.id) continue; /* looked at */
        const int n_there = add_up(all, n, &all[r], &sum);
        if (sum.room >= 0 && sum.bytes > sum.room)
            status = refuse(program, r, n_there, &sum, error);
    }
    free(all);
    return status;
}
