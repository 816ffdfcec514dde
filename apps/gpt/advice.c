/* advice: the same training by other options that change no number but dropout's masks: blocks computed again, the batch in parts,
 * storage that is sharded.
 */
#include "advice.h"

#include <stdio.h>

#define GIB 1073741824.0

typedef struct way {
    bool recomputes;
    int64_t parts;
    int zero;
} way;

/* The program by other options: its bytes on rank 0. */
static weft_status plan(const gpt_setup *setup, const way *w, int64_t *bytes, weft_error *error)
{
    weft_usage usage = {0};
    gpt_setup other = {.settings = setup->settings,
                       .shape = setup->shape,
                       .steps = setup->steps,
                       .until = setup->until,
                       .groups = setup->groups,
                       .parts = w->parts,
                       .zero = w->zero};
    other.shape.recomputes = w->recomputes;
    weft_status status = weft_mesh_plan(weft_mesh_text(setup->mesh), &other.mesh, error);
    if (status == WEFT_OK) status = gpt_setup_build(&other, error);
    if (status == WEFT_OK) status = gpt_setup_compile(&other, error);
    if (status == WEFT_OK) status = weft_plan_usage(other.program, 0, &usage, error);
    *bytes = usage.total_bytes;
    gpt_setup_close(&other);
    return status;
}

/* The least number of parts from `least` on, a power of two times those now, that a batch can be cut into; 0: none. */
static int64_t parts_from(const gpt_setup *setup, int64_t least)
{
    const gpt_shape *s = &setup->shape;
    const int64_t share = (s->micro > 1 ? s->micro : 1) * (s->turns > 1 ? 2 : 1);
    if (s->computes == WEFT_F16) return 0;
    for (int64_t p = setup->parts; p <= s->batch; p *= 2)
        if (p >= least && s->batch % p == 0 && s->batch / p % share == 0) return p;
    return 0;
}

static void print_way(const gpt_setup *setup, const way *w, int64_t bytes, int64_t room)
{
    char text[120];
    int used = 0;
    if (w->recomputes != setup->shape.recomputes)
        used += snprintf(text + used, sizeof text - (size_t)used, "--recompute ");
    if (w->parts != setup->parts)
        used += snprintf(text + used, sizeof text - (size_t)used, "--accumulate %lld ",
                         (long long)w->parts);
    if (w->zero != setup->zero)
        used += snprintf(text + used, sizeof text - (size_t)used, "--zero %d ", w->zero);
    printf("  %-40s %10.1f GiB%s\n", text, (double)bytes / GIB, bytes <= room ? ", fits" : "");
}

static bool is_same(const gpt_setup *setup, const way *w)
{
    return w->recomputes == setup->shape.recomputes && w->parts == setup->parts &&
           w->zero == setup->zero;
}

/* From what costs least time to what costs most, each together with those before it. */
static weft_status try_ways(const gpt_setup *setup, int64_t room, weft_error *error)
{
    const int64_t few = parts_from(setup, setup->parts * 8),
                  most = parts_from(setup, setup->shape.batch / 8);
    const int64_t n[] = {setup->parts, few ? few : setup->parts,
                         most  ? most
                         : few ? few
                               : setup->parts};
    const way ways[] = {{true, n[0], setup->zero}, {true, n[1], setup->zero},
                        {true, n[2], setup->zero}, {true, n[0], 3},
                        {true, n[1], 3},           {true, n[2], 3}};
    const int n_ways = weft_mesh_n_ranks(setup->mesh) > 1 ? 6 : 3;
    int64_t bytes = room + 1;
    for (int i = 0; i < n_ways && bytes > room; i++) {
        if (is_same(setup, &ways[i]) ||
            (i > 0 && ways[i].parts == ways[i - 1].parts && ways[i].zero == ways[i - 1].zero))
            continue;
        WEFT_TRY(plan(setup, &ways[i], &bytes, error));
        print_way(setup, &ways[i], bytes, room);
    }
    if (bytes > room)
        printf("  none of them fits: take more ranks, or a smaller model, --seq or --batch\n");
    return WEFT_OK;
}

weft_status gpt_advise(const gpt_setup *setup, weft_error *error)
{
    weft_usage usage;
    const weft_machine *machine = weft_machine_info();
    const int64_t limit = machine->memory_limit, all = machine->memory_bytes;
    const int64_t room = limit > 0 && limit < all ? limit : all;
    WEFT_TRY(weft_plan_usage(setup->program, 0, &usage, error));
    if (usage.total_bytes <= room) return WEFT_OK;
    printf("\nmemory: a rank needs %.1f GiB, and this machine has %.1f GiB; planned with other "
           "options:\n",
           (double)usage.total_bytes / GIB, (double)room / GIB);
    return try_ways(setup, room, error);
}
