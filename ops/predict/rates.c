/* rates: seconds of a workload or an exchange on a machine, from the most that is known of it.
 *
 * A kernel that was measured with these sizes takes what it took. A kernel that was measured with other sizes is slower than
 * the machine's rates by a factor; the factor changes little from size to size, so the nearest ones give it. For all else the
 * rates alone count: arithmetic or memory traffic, whatever takes longer.
 */
#include "machine.h"

#include <math.h>
#include <string.h>

/* ---- rates alone ----------------------------------------------------------------------------------- */

static double act_seconds(const weft_load *load, const char *op)
{
    for (int a = 0; a < load->n_acts; a++)
        if (strcmp(load->acts[a].op, op) == 0) return load->acts[a].elements;
    return load->other_act;
}

static double arithmetic_seconds(const weft_load *load, const weft_workload *work)
{
    const weft_curve *rate = &load->flop_rate[work->dtype];
    double seconds = 0;
    if (rate->n == 0) rate = &load->flop_rate[WEFT_F32];
    if (work->flops > 0) seconds += work->flops / weft_curve_at(rate, work->flops);
    for (int a = 0; a < work->n_acts; a++)
        seconds += work->acts[a].elements * act_seconds(load, work->acts[a].op);
    return seconds;
}

static double rated_seconds(const weft_load *load, const weft_workload *work)
{
    const double memory =
        work->bytes > 0 ? work->bytes / weft_curve_at(&load->byte_rate, work->bytes) : 0;
    return load->step_seconds + fmax(arithmetic_seconds(load, work), memory);
}

/* ---- what is similar ------------------------------------------------------------------------------- */

static const double OTHER_OPS = 4; /* octaves */

static bool is_similar(const weft_workload *a, const weft_workload *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->n_sizes == b->n_sizes;
}

static double acts_of(const weft_workload *work)
{
    double elements = 0;
    for (int a = 0; a < work->n_acts; a++)
        elements += work->acts[a].elements;
    return elements;
}

static double share_of(const weft_workload *work, const char *op, double all)
{
    for (int i = 0; i < work->n_acts; i++)
        if (strcmp(work->acts[i].op, op) == 0) return work->acts[i].elements / all;
    return 0;
}

/* The part of a's elements to which b applies other ops: 0 to 1. */
static double unlike(const weft_workload *a, const weft_workload *b)
{
    const double all_a = acts_of(a), all_b = acts_of(b);
    double part = 0;
    if (all_a <= 0 || all_b <= 0) return 0;
    for (int i = 0; i < a->n_acts; i++)
        part += fmax(a->acts[i].elements / all_a - share_of(b, a->acts[i].op, all_b), 0);
    return part;
}

static void mark(const weft_workload *work, weft_mark *to)
{
    to->flops = log2(1 + work->flops);
    to->acts = log2(1 + acts_of(work));
    for (int i = 0; i < work->n_sizes; i++)
        to->sizes[i] = log2(1 + work->sizes[i]);
}

static double factor_of(const weft_load *load, const weft_sample *sample)
{
    return log(sample->seconds / rated_seconds(load, &sample->work));
}

weft_status weft_marks_make(const weft_load *load, weft_arena *arena, weft_mark **marks,
                            weft_error *error)
{
    const size_t n = (size_t)load->n_samples + 1;
    *marks = weft_arena_take(arena, n * sizeof **marks);
    if (!*marks) return weft_fail_memory(error, n * sizeof **marks);
    for (int s = 0; s < load->n_samples; s++) {
        mark(&load->samples[s].work, &(*marks)[s]);
        (*marks)[s].factor = factor_of(load, &load->samples[s]);
    }
    return WEFT_OK;
}

/* In octaves, squared. Loops of quite other ops are as far apart as some of 16 times the size. */
static double distance(const weft_workload *a, const weft_mark *of_a, const weft_workload *b,
                       const weft_mark *of_b)
{
    const double flops = of_a->flops - of_b->flops, acts = of_a->acts - of_b->acts,
                 ops = OTHER_OPS * unlike(a, b);
    double sum = flops * flops + acts * acts + ops * ops;
    for (int i = 0; i < a->n_sizes; i++) {
        const double size = of_a->sizes[i] - of_b->sizes[i];
        sum += size * size;
    }
    return sum;
}

/* The mean of the factors of all similar ones in logarithms, nearer ones first: one that is twice as far counts a sixteenth.
 * Where some are as large in all sizes, these alone. */
static bool similar_factor(const weft_load *load, const weft_mark *marks, const weft_workload *work,
                           double *factor)
{
    static const double SAME = 1e-9;
    double sum = 0, weights = 0;
    weft_mark own;
    if (!marks) return false;
    mark(work, &own);
    for (int s = 0; s < load->n_samples; s++) {
        const weft_workload *other = &load->samples[s].work;
        if (!is_similar(other, work)) continue;
        const double d = fmax(distance(other, &marks[s], work, &own), SAME), weight = 1 / (d * d);
        sum += weight * marks[s].factor;
        weights += weight;
    }
    if (weights > 0) *factor = exp(sum / weights);
    return weights > 0;
}

weft_sample *weft_load_sample(const weft_load *load, const weft_workload *work)
{
    for (int s = 0; s < load->n_samples; s++)
        if (load->samples[s].work.id == work->id && is_similar(&load->samples[s].work, work))
            return &load->samples[s];
    return NULL;
}

double weft_work_seconds(const weft_load *load, const weft_mark *marks, const weft_workload *work,
                         weft_time_source *source)
{
    double factor = 1;
    *source = WEFT_TIME_RATES;
    if (work->name == NULL) return 0;
    const weft_sample *sample = weft_load_sample(load, work);
    if (sample) *source = WEFT_TIME_MEASURED;
    if (sample) return sample->seconds;
    if (similar_factor(load, marks, work, &factor)) *source = WEFT_TIME_SIMILAR;
    return factor * rated_seconds(load, work);
}

double weft_work_spread(const weft_load *load, const weft_workload *work)
{
    const weft_sample *sample = work->name ? weft_load_sample(load, work) : NULL;
    return sample ? sample->spread : 0;
}

/* ---- exchanges ------------------------------------------------------------------------------------- */

/* How often a ring goes around; 0: each sends once to those it has something for. */
static const double around[WEFT_CONVERTS] = {
    [WEFT_ALL_REDUCE] = 2, [WEFT_ALL_GATHER] = 1, [WEFT_REDUCE_SCATTER] = 1};

/* Of the bytes through a rank's link, the part at a level at which `near` of n ranks meet, `inside` of them nearer still. What a move
 * or a border sends may all go to the farthest. */
static double part_through(weft_convert_kind kind, double inside, double near, double n)
{
    if (around[kind] > 0) return (1 / inside - 1 / near) / (1 - 1 / n);
    if (kind == WEFT_ALL_TO_ALL) return (near - inside) / (n - 1);
    return near == n;
}

/* How often its latency is paid there. */
static double turns_of(weft_convert_kind kind, double inside, double near, double n)
{
    return around[kind] > 0 ? around[kind] * (near / inside - 1) : near == n;
}

static double linked_seconds(const weft_machine_model *model, const weft_meeting *meeting,
                             const weft_exchange *exchange)
{
    const double n = exchange->n_ranks;
    double seconds = 0, inside = 1;
    for (int l = 0; l <= meeting->level; l++) {
        const weft_level *level = &model->levels[l];
        const double near = meeting->near[l];
        if (near <= inside) continue;
        seconds += turns_of(exchange->kind, inside, near, n) * level->latency_seconds +
                   part_through(exchange->kind, inside, near, n) * exchange->link_bytes /
                       level->bytes_per_second;
        inside = near;
    }
    return seconds;
}

/* A group of which no two are nearer than the level. */
static weft_meeting far_apart(int level, int n)
{
    weft_meeting meeting = {.level = level};
    for (int l = 0; l < level; l++)
        meeting.near[l] = 1;
    meeting.near[level] = n;
    return meeting;
}

static double far_seconds(const weft_machine_model *model, int level, const weft_exchange *exchange)
{
    const weft_meeting meeting = far_apart(level, exchange->n_ranks);
    return linked_seconds(model, &meeting, exchange);
}

/* Of the kind at the level, of groups as near as may be in size. */
static const weft_exchange_curve *find_curve_of(const weft_machine_model *model, int level,
                                                weft_convert_kind kind,
                                                const weft_exchange *exchange)
{
    const weft_exchange_curve *best = NULL;
    double nearest = INFINITY;
    for (int e = 0; e < model->n_exchanges; e++) {
        const weft_exchange_curve *curve = &model->exchanges[e];
        if (curve->level != level || curve->kind != kind) continue;
        const double apart = fabs(log2((double)curve->ranks / exchange->n_ranks));
        if (apart >= nearest) continue;
        nearest = apart;
        best = curve;
    }
    return best;
}

/* A border is a move between neighbours. */
static const weft_exchange_curve *find_curve(const weft_machine_model *model, int level,
                                             const weft_exchange *exchange)
{
    const weft_exchange_curve *own = find_curve_of(model, level, exchange->kind, exchange);
    return own || exchange->kind != WEFT_BORDER ? own
                                                : find_curve_of(model, level, WEFT_MOVE, exchange);
}

double weft_exchange_seconds(const weft_machine_model *model, const weft_meeting *meeting,
                             const weft_exchange *exchange, weft_time_source *source)
{
    const int level = meeting->level;
    const weft_exchange_curve *curve = find_curve(model, level, exchange);
    *source = WEFT_TIME_RATES;
    if (!curve) return linked_seconds(model, meeting, exchange);
    const double measured = weft_curve_along(&curve->seconds, exchange->bytes);
    *source = WEFT_TIME_MEASURED;
    if (curve->ranks == exchange->n_ranks) return measured;
    weft_exchange there = *exchange;
    const double n = curve->ranks, others = (n - 1) / n;
    there.n_ranks = curve->ranks;
    there.link_bytes *= others * exchange->n_ranks / (exchange->n_ranks - 1.0);
    *source = WEFT_TIME_SIMILAR;
    return measured * far_seconds(model, level, exchange) / far_seconds(model, level, &there);
}

double weft_exchange_share(const weft_machine_model *model, int level, weft_convert_kind kind)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < model->n_slows; i++) {
        const weft_slow *slow = &model->slows[i];
        if (slow->level != level || slow->kind != kind) continue;
        sum += slow->cpu;
        n++;
    }
    return n > 0 ? sum / n : model->levels[level].cpu;
}
