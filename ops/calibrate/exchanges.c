/* exchanges: seconds of each kind of exchange by size, as training makes them: all ranks of a group at once, and all groups.
 *
 * A move of each kind and size is flown again and again. Of a few tries the fastest counts, as others may be using links or
 * cores, and of all ranks the slowest, since an exchange waits for it.
 */
#include "flown.h"

#include <math.h>

enum { LEAST_COLUMNS = 4, MOST_COLUMNS = 1 << 20, GROWTH = 8, LEAST_SIZES = 3 };
static const double TOO_LONG_S = 0.2;

/* is_late: the same on all ranks: no more sizes than there must be, farther apart. */
static weft_status measure_kind(weft_flown *f, weft_convert_kind kind, int level, bool is_late,
                                weft_machine_model *model, weft_error *error)
{
    weft_exchange_curve *curve;
    const int first = weft_mesh_first_local(f->mesh),
              n = weft_mesh_group(f->mesh, f->axes, first, NULL, NULL);
    WEFT_TRY(weft_machine_add_exchange(model, kind, level, n, &curve, error));
    for (int64_t columns = LEAST_COLUMNS;
         columns <= MOST_COLUMNS && weft_flown_set(f, kind, columns);
         columns *= is_late ? GROWTH * GROWTH : GROWTH) {
        weft_exchange exchange;
        double seconds;
        const weft_type type = {.dtype = WEFT_F32, .shape = f->shape};
        if (!weft_convert_exchange(f->mesh, &type, &f->step, first, &exchange)) break;
        WEFT_TRY(weft_flown_time(f, 0, &seconds, error));
        WEFT_TRY(weft_curve_add(model->arena, &curve->seconds, exchange.bytes, seconds, error));
        if (seconds > TOO_LONG_S || (curve->seconds.n >= LEAST_SIZES && is_late)) break;
    }
    return WEFT_OK;
}

/* Its latency and rate, for kinds and sizes of groups that were not measured: by the shortest and the longest all_gather. */
static void set_links(weft_machine_model *model, int level, int n)
{
    const weft_curve *curve = NULL;
    for (int e = 0; e < model->n_exchanges; e++)
        if (model->exchanges[e].kind == WEFT_ALL_GATHER && model->exchanges[e].level == level)
            curve = &model->exchanges[e].seconds;
    if (!curve || curve->n < 2) return;
    const int last = curve->n - 1;
    double least = curve->value[0]; /* a smaller one may have been disturbed */
    for (int i = 1; i < last; i++)
        least = fmin(least, curve->value[i]);
    const double longer = fmax(curve->value[last] - least, 1e-3 * curve->value[last]);
    model->levels[level].latency_seconds = least / (n - 1);
    model->levels[level].bytes_per_second = curve->size[last] * (n - 1) / n / longer;
}

weft_status weft_calibrate_exchanges(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                     bool is_late, weft_machine_model *model, weft_error *error)
{
    static const weft_convert_kind kinds[] = {WEFT_ALL_REDUCE, WEFT_ALL_GATHER, WEFT_REDUCE_SCATTER,
                                              WEFT_ALL_TO_ALL, WEFT_MOVE};
    weft_flown f;
    weft_status status = weft_flown_open(&f, mesh, comms, axes, error);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && status == WEFT_OK; k++)
        status = measure_kind(&f, kinds[k], level, is_late, model, error);
    if (status == WEFT_OK)
        set_links(model, level,
                  weft_mesh_group(mesh, axes, weft_mesh_first_local(mesh), NULL, NULL));
    weft_flown_close(&f);
    return status;
}
