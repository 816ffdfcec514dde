/* clock_leap_test: a clock that leaps while a machine is measured, back or ahead, at any moment: the model that comes out can be
 * written and read, or there is a sentence and no model.
 */
#include "weft/research/predict.h"

#include "ops/predict/machine.h"
#include "test.h"

#include "sync.h"

#include <stdatomic.h>

static atomic_llong n_calls;
static long long leap_at; /* which call; 0: none */
static int64_t leap_by;   /* ns */

/* What is measured here does not matter, and the faster the clock goes the sooner there are enough rounds of it. */
enum { FASTER = 16 };
static int64_t begin;

int64_t __real_weft_sync_now(void);
int64_t __wrap_weft_sync_now(void);

int64_t __wrap_weft_sync_now(void)
{
    const long long n = atomic_fetch_add(&n_calls, 1) + 1;
    return begin + FASTER * (__real_weft_sync_now() - begin) +
           (leap_at > 0 && n >= leap_at ? leap_by : 0);
}

/* returns how often the clock was read. */
static long long measure(const weft_world *world, long long at, int64_t by)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL, *again = NULL;
    const weft_calibrate_options options = {.seconds = 0.02, .noisy = true};
    atomic_store(&n_calls, 0);
    leap_at = at;
    leap_by = by;
    const weft_status status = weft_calibrate(world, &options, &model, &error);
    CHECK((status == WEFT_OK) == (model != NULL));
    if (model) {
        CHECK_OK(weft_machine_model_copy(model, &again, &error), error);
    } else {
        CHECK_EQ_INT(status, WEFT_USAGE);
        CHECK_TEXT(error.message, "did this machine's clock jump? Measure it again");
    }
    weft_machine_model_destroy(&model);
    weft_machine_model_destroy(&again);
    return atomic_load(&n_calls);
}

int main(void)
{
    weft_world world;
    weft_error error = WEFT_NO_ERROR;
    begin = __real_weft_sync_now();
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    const long long n = measure(&world, 0, 0);
    CHECK(n > 500);
    measure(&world, 1 + n / 3, -20000000000);
    measure(&world, 1 + n * 9 / 10, -20000000000);
    measure(&world, 1 + n / 2, 3600000000000);
    leap_at = 0;
    weft_world_close();
    return weft_test_report();
}
