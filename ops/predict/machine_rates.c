/* machine_rates: what a machine model says, figure by figure, for people. */
#include "machine.h"

typedef struct listing {
    weft_machine_rate *rates; /* [room] */
    int n, room;
} listing;

static void add(listing *l, double value, const char *unit, const char *format, ...)
    WEFT_FORMAT(4, 5);

static void add(listing *l, double value, const char *unit, const char *format, ...)
{
    va_list arguments;
    if (l->n++ >= l->room) return;
    weft_machine_rate *rate = &l->rates[l->n - 1];
    rate->value = value;
    rate->unit = unit;
    va_start(arguments, format);
    vsnprintf(rate->what, sizeof rate->what, format, arguments);
    va_end(arguments);
}

static void add_load(listing *l, const weft_load *load)
{
    char who[40];
    snprintf(who, sizeof who, "%d x %d lanes", load->ranks, load->lanes);
    add(l, 1e6 * load->step_seconds, "us", "%s: a step", who);
    add(l, 1e6 * load->run_seconds, "us", "%s: a run, besides its steps", who);
    add(l, 1e-9 * load->input_bytes_per_second, "GB/s", "%s: written into a rank's inputs", who);
    for (int d = 0; d < WEFT_DTYPES; d++)
        for (int i = 0; i < load->flop_rate[d].n; i++)
            add(l, 1e-9 * load->flop_rate[d].value[i], "GFLOP/s", "%s: products, %s, %.3g flops",
                who, weft_dtype_name((weft_dtype)d), load->flop_rate[d].size[i]);
    for (int i = 0; i < load->byte_rate.n; i++)
        add(l, 1e-9 * load->byte_rate.value[i], "GB/s", "%s: memory, %.3g bytes", who,
            load->byte_rate.size[i]);
    for (int a = 0; a < load->n_acts; a++)
        add(l, 1e9 * load->acts[a].elements, "ns", "%s: %s, an element", who, load->acts[a].op);
    add(l, load->n_samples, "", "%s: kernels measured", who);
}

static void add_exchange(listing *l, const weft_machine_model *model,
                         const weft_exchange_curve *exchange)
{
    for (int i = 0; i < exchange->seconds.n; i++)
        add(l, 1e6 * exchange->seconds.value[i], "us", "%s: %s of %d, %.3g bytes",
            model->levels[exchange->level].name, weft_convert_name(exchange->kind), exchange->ranks,
            exchange->seconds.size[i]);
}

static void add_slow(listing *l, const weft_machine_model *model, const weft_slow *slow)
{
    const char *level = model->levels[slow->level].name, *kind = weft_convert_name(slow->kind);
    add(l, 100 * slow->cpu, "%", "%s: cores that %s takes of a %s", level, kind, slow->work);
}

int weft_machine_model_rates(const weft_machine_model *model, weft_machine_rate *rates, int room)
{
    listing l = {.rates = rates, .room = rates ? room : 0};
    if (!model) return 0;
    for (int i = 0; i < model->n_loads; i++)
        add_load(&l, &model->loads[i]);
    for (int i = 0; i < model->n_levels; i++) {
        add(&l, 1e6 * model->levels[i].latency_seconds, "us", "%s: latency", model->levels[i].name);
        add(&l, 1e-9 * model->levels[i].bytes_per_second, "GB/s", "%s: a rank's link",
            model->levels[i].name);
        add(&l, 1e6 * model->levels[i].late_seconds, "us", "%s: where a rank is late, besides",
            model->levels[i].name);
        add(&l, 1e6 * model->levels[i].crowded_seconds, "us",
            "%s: where ranks share cores, besides", model->levels[i].name);
    }
    for (int i = 0; i < model->n_exchanges; i++)
        add_exchange(&l, model, &model->exchanges[i]);
    for (int i = 0; i < model->n_slows; i++)
        add_slow(&l, model, &model->slows[i]);
    return l.n;
}
