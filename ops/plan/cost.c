/* cost: the price of an exchange and of work, and what a step of a plan exchanges.
 *
 * choose prices ways by these before there are steps, join by these and a latency; weft_plan_cost prices the steps.
 */
#include "plan.h"

#include <math.h>
#include <stdlib.h>

double weft_exchange_price(const weft_plan *plan, const weft_cost *cost,
                           const weft_exchange *exchange)
{
    if (cost->exchange) return cost->exchange(cost->context, exchange);
    return weft_link_over(plan, exchange->axes).byte * exchange->link_bytes;
}

double weft_work_price(const weft_cost *cost, double flops)
{
    if (cost->work) return cost->work(cost->context, flops);
    return flops / (cost->flops_per_byte > 0 ? cost->flops_per_byte : WEFT_FLOPS_PER_BYTE);
}

double weft_step_work(const weft_plan *plan, const weft_step *step)
{
    double bytes = 0;
    for (int i = 0; i < step->n_in; i++)
        bytes += (double)weft_placed_bytes(plan, step->in[i], 0);
    for (int o = 0; o < step->n_out; o++)
        bytes += (double)weft_placed_bytes(plan, step->out[o], 0);
    const double flops = weft_work_price(&plan->build.cost, weft_step_flops(plan, step, 0));
    return fmax(flops, bytes / (2 * WEFT_COPIES_PER_BYTE));
}

double weft_usual_latency(const weft_cost *cost)
{
    return cost->latency > 0 ? cost->latency : WEFT_LATENCY;
}

double weft_latency_price(const weft_plan *plan, uint32_t axes)
{
    return plan->build.cost.latency > 0 ? plan->build.cost.latency
                                        : weft_link_over(plan, axes).latency;
}

static int group_size(const weft_mesh *mesh, uint32_t axes)
{
    int n = 1;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (axes >> a & 1) n *= weft_mesh_axis_size(mesh, a);
    return n;
}

bool weft_convert_exchange(const weft_mesh *mesh, const weft_type *type,
                           const weft_convert_step *convert, int rank, weft_exchange *exchange)
{
    int n = group_size(mesh, convert->axes);
    if (n < 2) return false;
    double part = (double)(n - 1) / n;
    double wire = (double)weft_convert_bytes(mesh, &type->shape, type->dtype, convert, rank);
    *exchange = (weft_exchange){.mesh = mesh,
                                .axes = convert->axes,
                                .n_ranks = n,
                                .kind = convert->kind,
                                .bytes = wire,
                                .link_bytes = wire};
    if (convert->kind == WEFT_ALL_REDUCE) exchange->link_bytes = 2 * wire * part;
    if (convert->kind == WEFT_REDUCE_SCATTER || convert->kind == WEFT_ALL_GATHER)
        exchange->link_bytes = wire * part;
    if (convert->kind == WEFT_ALL_TO_ALL) { /* the wire's bytes are those sent to others */
        weft_box box;
        weft_spec_box(&convert->from, mesh, &type->shape, rank, &box);
        exchange->bytes = (double)weft_box_count(&box, type->shape.n_dims) *
                          (double)weft_dtype_bytes(type->dtype) * n;
    }
    return true;
}

weft_convert_step weft_step_convert(const weft_plan *plan, const weft_step *step, int k)
{
    return (weft_convert_step){.kind = step->convert.kind,
                               .axes = step->convert.axes,
                               .from = plan->placed[step->in[k]].spec,
                               .to = plan->placed[step->out[k]].spec};
}

bool weft_step_exchange(const weft_plan *plan, const weft_step *step, int rank,
                        weft_exchange *exchange)
{
    if (step->kind != WEFT_STEP_CONVERT) return false;
    for (int k = 0; k < step->n_in; k++) {
        const weft_convert_step convert = weft_step_convert(plan, step, k);
        const weft_type *type = &plan->placed[step->in[k]].type;
        weft_exchange part;
        if (!weft_convert_exchange(plan->mesh, type, &convert, rank, &part)) return false;
        if (k > 0) part.bytes += exchange->bytes, part.link_bytes += exchange->link_bytes;
        *exchange = part;
    }
    return true;
}

int64_t weft_step_wire_bytes(const weft_plan *plan, const weft_step *step, int rank)
{
    int64_t bytes = 0;
    for (int k = 0; k < step->n_in; k++) {
        const weft_convert_step convert = weft_step_convert(plan, step, k);
        const weft_type *type = &plan->placed[step->in[k]].type;
        bytes += weft_convert_bytes(plan->mesh, &type->shape, type->dtype, &convert, rank);
    }
    return bytes;
}

static bool receives(const weft_mesh *mesh, const weft_shape *shape,
                     const weft_convert_step *convert, int rank)
{
    const int n_axes = weft_mesh_n_axes(mesh), n = group_size(mesh, convert->axes);
    int at[WEFT_MAX_AXES];
    weft_mesh_coordinates(mesh, rank, at);
    for (int i = 0; i < n; i++) {
        int left = i;
        weft_box piece;
        for (int a = n_axes - 1; a >= 0; a--) {
            if (!(convert->axes >> a & 1)) continue;
            at[a] = left % weft_mesh_axis_size(mesh, a);
            left /= weft_mesh_axis_size(mesh, a);
        }
        const int source = weft_mesh_rank(mesh, at);
        if (source != rank && weft_move_sends(mesh, shape, convert, source, rank, &piece))
            return true;
    }
    return false;
}

/* Of a collective all ranks do both. */
uint8_t weft_step_ways(const weft_plan *plan, const weft_step *step, int rank)
{
    static const bool is_one_way[WEFT_CONVERTS] = {
        [WEFT_ALL_TO_ALL] = true, [WEFT_MOVE] = true, [WEFT_BORDER] = true};
    uint8_t ways = 0;
    if (!is_one_way[step->convert.kind]) return WEFT_SENDS | WEFT_RECEIVES;
    if (weft_step_wire_bytes(plan, step, rank) > 0) ways |= WEFT_SENDS;
    for (int k = 0; k < step->n_in && !(ways & WEFT_RECEIVES); k++) {
        const weft_convert_step convert = weft_step_convert(plan, step, k);
        if (receives(plan->mesh, &plan->placed[step->in[k]].type.shape, &convert, rank))
            ways |= WEFT_RECEIVES;
    }
    return ways;
}

weft_status weft_step_move(const weft_plan *plan, const weft_step *step, int rank, weft_move **move,
                           weft_error *error)
{
    const size_t bytes = (size_t)step->n_in * sizeof(weft_move_part);
    weft_move_part *parts = malloc(bytes);
    if (!parts) return weft_fail_memory(error, bytes);
    for (int k = 0; k < step->n_in; k++)
        parts[k] = (weft_move_part){&plan->placed[step->in[k]].type.shape,
                                    weft_step_convert(plan, step, k)};
    const weft_status status = weft_move_create_joined(
        plan->mesh, parts, step->n_in, plan->placed[step->in[0]].type.dtype, rank, move, error);
    free(parts);
    return status;
}
