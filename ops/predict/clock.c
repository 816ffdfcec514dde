/* clock: how long each step of a plan takes on a machine. See clock.h. */
#include "clock.h"

#include "weft/collectives.h"

#include <math.h>

/* The first and the last rank of the group of a rank over `axes`: no two of it are farther apart. */
static void find_ends(const weft_mesh *mesh, int rank, uint32_t axes, int *first, int *last)
{
    int coordinates[WEFT_MAX_AXES];
    const int n_axes = weft_mesh_n_axes(mesh);
    weft_mesh_coordinates(mesh, rank, coordinates);
    for (int a = 0; a < n_axes; a++)
        if (axes >> a & 1) coordinates[a] = 0;
    *first = weft_mesh_rank(mesh, coordinates);
    for (int a = 0; a < n_axes; a++)
        if (axes >> a & 1) coordinates[a] = weft_mesh_axis_size(mesh, a) - 1;
    *last = weft_mesh_rank(mesh, coordinates);
}

static int level_over(const weft_mesh *mesh, const weft_machine_model *model, int rank,
                      uint32_t axes)
{
    int first, last;
    find_ends(mesh, rank, axes, &first, &last);
    return weft_level_of(model, first, last);
}

static int group_size(const weft_mesh *mesh, uint32_t axes)
{
    int n = 1;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (axes >> a & 1) n *= weft_mesh_axis_size(mesh, a);
    return n;
}

/* Of the group of a rank over `axes`, those with a number below `limit`: digit by digit of that, as the last axis varies quickest. */
static double members_below(const weft_mesh *mesh, int rank, uint32_t axes, int64_t limit)
{
    int own[WEFT_MAX_AXES], end[WEFT_MAX_AXES];
    double left = group_size(mesh, axes), below = 0;
    if (limit >= weft_mesh_n_ranks(mesh)) return left;
    weft_mesh_coordinates(mesh, rank, own);
    weft_mesh_coordinates(mesh, (int)limit, end);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (axes >> a & 1) {
            left /= weft_mesh_axis_size(mesh, a);
            below += end[a] * left;
        } else if (own[a] != end[a]) {
            return own[a] < end[a] ? below + left : below;
        }
    }
    return below;
}

/* Members of the group of a rank among the `ranks` that it is one of. */
static double members_near(const weft_mesh *mesh, int rank, uint32_t axes, int ranks)
{
    const int64_t begin = rank / ranks * ranks;
    return members_below(mesh, rank, axes, begin + ranks) - members_below(mesh, rank, axes, begin);
}

/* All wait for those with the fewest near them: at one of the ends of the group. */
static weft_meeting meeting_of(const weft_mesh *mesh, const weft_machine_model *model, int rank,
                               uint32_t axes)
{
    int first, last;
    find_ends(mesh, rank, axes, &first, &last);
    weft_meeting meeting = {.level = weft_level_of(model, first, last)};
    for (int l = 0; l < meeting.level; l++)
        meeting.near[l] = fmin(members_near(mesh, first, axes, model->levels[l].ranks),
                               members_near(mesh, last, axes, model->levels[l].ranks));
    meeting.near[meeting.level] = group_size(mesh, axes);
    return meeting;
}

int weft_clock_level(const weft_clock *clock, int rank, uint32_t axes)
{
    return level_over(clock->plan->mesh, clock->model, rank, axes);
}

static double shared(const weft_clock *clock, double seconds)
{
    return seconds * weft_load_crowd(clock->model, clock->load, clock->host_ranks);
}

static void look_up(const weft_clock *clock, const weft_workload *work, weft_known_work *known)
{
    const double alone = weft_work_seconds(clock->load, clock->marks, work, &known->source);
    known->seconds = shared(clock, alone);
    known->spread = weft_work_spread(clock->load, work);
}

static weft_step_time work_time(weft_clock *clock, const weft_step *step, int rank)
{
    weft_workload work;
    weft_step_workload(clock->plan, step, rank, &work);
    const uint64_t id = work.id | 1;
    size_t at = (size_t)id & (clock->n_known - 1);
    while (clock->known[at].id != 0 && clock->known[at].id != id)
        at = (at + 1) & (clock->n_known - 1);
    weft_known_work *known = &clock->known[at];
    if (known->id == 0) look_up(clock, &work, known);
    known->id = id;
    return (weft_step_time){known->seconds, known->spread, known->source};
}

double weft_clock_besides(const weft_clock *clock, int rank)
{
    const weft_load *load = clock->load;
    double bytes = 0;
    for (uint32_t id = 1; id < clock->plan->n_placed; id++) {
        weft_view view;
        if (clock->plan->placed[id].home != WEFT_INPUT_HOME) continue;
        weft_placed_view(clock->plan, id, rank, &view);
        bytes += (double)weft_view_count(&view) * (double)weft_dtype_bytes(view.dtype);
    }
    const double rate = load->input_bytes_per_second;
    return shared(clock, load->run_seconds + (rate > 0 ? bytes / rate : 0));
}

weft_step_time weft_clock_step(weft_clock *clock, const weft_step *step, int rank)
{
    weft_exchange exchange;
    weft_step_time time = {0};
    if (!weft_step_exchange(clock->plan, step, rank, &exchange))
        return work_time(clock, step, rank);
    const weft_meeting meeting = meeting_of(clock->plan->mesh, clock->model, rank, exchange.axes);
    time.seconds = weft_exchange_seconds(clock->model, &meeting, &exchange, &time.source);
    return time;
}

static int ranks_of_host(const weft_mesh *mesh, const weft_machine_model *model, int asked)
{
    const int all = weft_mesh_n_ranks(mesh);
    if (asked > 0) return asked < all ? asked : all;
    return weft_machine_model_host_ranks(model, all);
}

weft_status weft_clock_open(const weft_plan *plan, const weft_machine_model *model, int host_ranks,
                            size_t n_asked, weft_arena *arena, weft_clock *clock, weft_error *error)
{
    *clock = (weft_clock){.plan = plan, .model = model, .n_known = 64};
    clock->host_ranks = ranks_of_host(plan->mesh, model, host_ranks);
    clock->load = weft_load_of(model, clock->host_ranks);
    WEFT_TRY(weft_marks_make(clock->load, arena, &clock->marks, error));
    while (clock->n_known < 2 * n_asked)
        clock->n_known *= 2;
    clock->known = weft_arena_take(arena, clock->n_known * sizeof *clock->known);
    return clock->known ? WEFT_OK : weft_fail_memory(error, clock->n_known * sizeof *clock->known);
}

void weft_clock_links(const weft_mesh *mesh, const weft_machine_model *model,
                      char text[WEFT_LINKS_BYTES])
{
    weft_link_speed speeds[WEFT_MAX_AXES] = {{0}};
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (weft_mesh_axis_size(mesh, a) < 2) continue;
        const weft_level *level = &model->levels[level_over(mesh, model, 0, 1u << a)];
        speeds[a] = (weft_link_speed){level->bytes_per_second, level->latency_seconds, false};
    }
    weft_links_text(mesh, speeds, text, WEFT_LINKS_BYTES);
}

double weft_clock_work(const weft_mesh *mesh, const weft_machine_model *model,
                       const weft_graph *graph)
{
    const weft_load *load = weft_load_of(model, ranks_of_host(mesh, model, 0));
    double best = 0;
    for (uint32_t v = 1; v < graph->n_tensors; v++) {
        const weft_curve *rate = &load->flop_rate[graph->tensors[v].type.dtype];
        if (rate->n > 0) best = fmax(best, rate->value[rate->n - 1]);
    }
    return best / WEFT_USUAL_LINK;
}
