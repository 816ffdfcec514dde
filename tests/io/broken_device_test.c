/* broken_device_test: what a device that has failed gives is nothing's: no process reads it, none saves it, and what was
 * saved before stays. */
/* RANKS: 2 3 */
#include "checkpoint_places.h"
#include "mesh/fake_device.h"

static const net_options f64 = {.dtype = WEFT_F64};

/* On one process, all of whose ranks have it; all processes are told. */
static void break_device(void)
{
    fake_plant(weft_world_is_root() ? FAKE_BROKEN : FAKE_SOUND);
}

static void check_broken(weft_status status, const weft_error *error)
{
    CHECK_EQ_INT(status, WEFT_IO);
    CHECK_TEXT(error->message, "the fake device is broken");
}

static void check_refused(net *n, const char *directory)
{
    double bytes[NET_BYTES / sizeof(double)];
    int64_t steps[2] = {0};
    weft_value v;
    for (int i = 0; (v = weft_variable_at(n->program, i)).id != 0; i++) {
        weft_error error = {0};
        const int64_t size = (int64_t)sizeof(double) * weft_shape_count(weft_shape_of(v));
        break_device();
        check_broken(weft_read(n->program, v, WEFT_F64, bytes, size, &error), &error);
    }
    weft_error error = {0};
    break_device();
    check_broken(net_save(n, directory, &error), &error);
    CHECK_EQ_INT(weft_stored_steps(directory, steps, 2), 1);
    CHECK_EQ_INT(steps[0], 1);
    fake_plant(FAKE_SOUND);
}

static void test_what_a_broken_device_has_is_neither_read_nor_saved(void)
{
    for (int i = 0; i < n_places; i++) {
        weft_error error = {0};
        net n;
        char directory[128];
        snprintf(directory, sizeof directory, "%s%d", scratch("broken"), i);
        if (CHECK_OK(net_open(&places[i], &f64, &n, &error), error)) {
            CHECK_OK(net_run(&n, 1, 1, NULL, &error), error);
            CHECK_OK(net_save(&n, directory, &error), error);
            CHECK_OK(net_run(&n, 2, 2, NULL, &error), error);
            check_refused(&n, directory);
            CHECK_OK(net_save(&n, directory, &error), error);
        }
        net_close(&n);
    }
}

static void run_all(void)
{
    fake_use(true);
    RUN(test_what_a_broken_device_has_is_neither_read_nor_saved);
}

int main(void)
{
    return in_world(run_all);
}
