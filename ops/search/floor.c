/* floor: what no plan of a choice can beat, in closed form.
 *
 * Seconds: each piece of work of the plan on one rank, at the best rate that the machine has at any size, divided among the ranks of
 * all axes whose roles can cut it. A role can cut what has one of its dims, or a dim that some factor links with one: that is more
 * than will really be cut. Bytes: variables, slots and inputs, split as names say.
 */
#include "searching.h"

#include <math.h>
#include <string.h>

/* ---- the machine ------------------------------------------------------------------------------------ */

static double best_of(const weft_curve *curve)
{
    double best = 0;
    for (int i = 0; i < curve->n; i++)
        best = fmax(best, curve->value[i]);
    return best;
}

/* A kernel that was measured may be quicker than the rates say. */
static double least_factor(const weft_load *load, const weft_search_rates *rates)
{
    double least = 1;
    for (int i = 0; i < load->n_samples; i++) {
        const weft_sample *sample = &load->samples[i];
        double compute = sample->work.flops / rates->flops[sample->work.dtype];
        for (int a = 0; a < sample->work.n_acts; a++)
            compute += sample->work.acts[a].elements *
                       weft_search_act_seconds(rates, sample->work.acts[a].op);
        const double rated = fmax(compute, sample->work.bytes / rates->bytes);
        if (rated > 0) least = fmin(least, sample->seconds / rated);
    }
    return least;
}

double weft_search_act_seconds(const weft_search_rates *rates, const char *op)
{
    for (int a = 0; a < rates->load->n_acts; a++)
        if (strcmp(rates->load->acts[a].op, op) == 0) return rates->load->acts[a].elements;
    return rates->load->other_act;
}

int weft_search_host_ranks(const weft_search_options *options)
{
    const int all = options->ranks, asked = options->host_ranks;
    if (asked > 0) return asked < all ? asked : all;
    return weft_machine_model_host_ranks(options->machine, all);
}

void weft_search_rates_find(const weft_machine_model *machine, int host_ranks,
                            weft_search_rates *rates)
{
    const weft_load *load = weft_load_of(machine, host_ranks);
    *rates = (weft_search_rates){
        .load = load, .bytes = best_of(&load->byte_rate), .factor = 1, .plain = *load};
    rates->plain.n_samples = 0;
    for (int d = 0; d < WEFT_DTYPES; d++) {
        const weft_curve *rate = &load->flop_rate[d];
        rates->flops[d] = best_of(rate->n > 0 ? rate : &load->flop_rate[WEFT_F32]);
    }
    rates->factor = least_factor(load, rates);
    rates->crowd = weft_load_crowd(machine, load, host_ranks);
}

/* Of kernels of its name that were measured, the one that is quickest beside its rates says how quick it may be. */
static double kernel_factor(const weft_search_rates *rates, const weft_workload *kernel)
{
    double least = INFINITY;
    for (int i = 0; i < rates->load->n_samples; i++) {
        const weft_sample *sample = &rates->load->samples[i];
        weft_time_source source;
        if (strcmp(sample->work.name, kernel->name) != 0) continue;
        const double rated = weft_work_seconds(&rates->plain, NULL, &sample->work, &source);
        if (rated > 0) least = fmin(least, sample->seconds / rated);
    }
    return isfinite(least) ? least : 1;
}

double weft_search_kernel_seconds(const weft_search_rates *rates, const weft_workload *kernel,
                                  double ranks)
{
    weft_workload part = *kernel;
    weft_time_source source;
    part.flops /= ranks;
    part.bytes /= ranks;
    for (int a = 0; a < part.n_acts; a++)
        part.acts[a].elements /= ranks;
    return rates->crowd * kernel_factor(rates, kernel) *
           weft_work_seconds(&rates->plain, NULL, &part, &source);
}

double weft_search_kernel_best(const weft_search_rates *rates, const weft_workload *kernel)
{
    return rates->crowd * kernel_factor(rates, kernel) *
           fmax(kernel->flops / rates->flops[kernel->dtype], kernel->bytes / rates->bytes);
}

/* ---- seconds ---------------------------------------------------------------------------------------- */

/* The best rate of all sizes up to this one. */
static double best_up_to(const weft_curve *curve, double size)
{
    double best = weft_curve_at(curve, size);
    for (int i = 0; i < curve->n && curve->size[i] <= size; i++)
        best = fmax(best, curve->value[i]);
    return best;
}

static double loops_seconds(const weft_search_rates *rates, const weft_search_work *loops,
                            double ranks)
{
    const double rate = best_up_to(&rates->load->byte_rate, 2 * loops->most / ranks);
    const double memory = rates->crowd * rates->factor * loops->bytes / ranks / rate;
    return fmax(loops->seconds / ranks, memory);
}

static double seconds_among(const searching *s, const weft_search_work *work, double ranks)
{
    return work->is_kernel
               ? work->times * weft_search_kernel_seconds(&s->rates, &work->kernel, ranks)
               : loops_seconds(&s->rates, work, ranks);
}

static void cut_piece(void *context, int piece)
{
    searching *s = context;
    const weft_search_profile *profile = &s->profiles[piece];
    for (int w = 0; w < profile->n_works; w++)
        for (int c = 0; c < s->n_cuts; c++)
            profile->works[w].cut_seconds[c] = seconds_among(s, &profile->works[w], s->cuts[c]);
}

void weft_search_cut_works(searching *s)
{
    s->n_cuts = 0;
    for (int ranks = 1; ranks <= s->options->ranks && s->n_cuts < WEFT_SEARCH_CUTS; ranks++)
        if (s->options->ranks % ranks == 0) s->cuts[s->n_cuts++] = ranks;
    weft_search_crew_do(s->threads, s->n_profiles, cut_piece, s);
}

void weft_search_share(const searching *s, const weft_search_outline *outline,
                       weft_search_sharing *sharing)
{
    sharing->n = outline->n;
    sharing->stored = 0;
    for (int a = 0; a < outline->n; a++) {
        const weft_search_role *role = &s->roles.list[outline->axes[a].role];
        sharing->reach[a] = role->reach;
        sharing->stored |= (uint32_t)role->splits_storage << a;
    }
    for (uint32_t axes = 0; axes < 1u << outline->n; axes++) {
        double ranks = 1;
        int at = s->n_cuts - 1;
        for (int a = 0; a < outline->n; a++)
            if (axes >> a & 1) ranks *= outline->axes[a].size;
        while (at >= 0 && s->cuts[at] != ranks)
            at--;
        sharing->ranks[axes] = ranks;
        sharing->cut[axes] = (int8_t)at;
    }
}

double weft_search_work_seconds(const searching *s, const weft_search_sharing *sharing,
                                const weft_search_setting *setting, const weft_search_work *work,
                                double *ranks)
{
    uint32_t axes = work->is_stored && setting->zero > 0 ? sharing->stored : 0;
    for (int a = 0; a < sharing->n; a++)
        axes |= (uint32_t)((work->dims & sharing->reach[a]) != 0) << a;
    *ranks = sharing->ranks[axes];
    const int cut = sharing->cut[axes];
    return cut >= 0 ? work->cut_seconds[cut] : seconds_among(s, work, *ranks);
}

double weft_search_floor_seconds(const searching *s, const weft_search_sharing *sharing,
                                 const weft_search_setting *setting)
{
    const weft_search_profile *profile = &s->profiles[setting->profile];
    double seconds = 0, ranks;
    for (int w = 0; w < profile->n_works; w++)
        seconds += weft_search_work_seconds(s, sharing, setting, &profile->works[w], &ranks);
    return seconds;
}

/* ---- bytes ------------------------------------------------------------------------------------------ */

/* Storage is sharded over the axes that split the dim, but for those that split the variable itself. */
static bool is_sharded(const weft_search_setting *setting, const weft_search_home *home,
                       const weft_search_role *role)
{
    const bool is_kept_so =
        home->is_variable && (home->is_slot ? setting->zero >= 1 : setting->zero == 3);
    return is_kept_so && home->dims != 0 && role->splits_storage;
}

double weft_search_floor_bytes(const searching *s, const weft_search_outline *outline,
                               const weft_search_setting *setting)
{
    const weft_search_profile *profile = &s->profiles[setting->profile];
    double bytes = 0;
    for (int h = 0; h < profile->n_homes; h++) {
        const weft_search_home *home = &profile->homes[h];
        double ranks = 1;
        for (int a = 0; a < outline->n; a++) {
            const weft_search_role *role = &s->roles.list[outline->axes[a].role];
            if (home->dims & role->set || home->is_placed || is_sharded(setting, home, role))
                ranks *= outline->axes[a].size;
        }
        bytes += home->bytes / ranks;
    }
    return bytes;
}
