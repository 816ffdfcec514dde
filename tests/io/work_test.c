/* work_test: every item is done once, on however many threads, and the lowest failure is the one
 * that is told. */
#include "checkpoint/work.h"
#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

enum { ITEMS = 1000 };
static atomic_int done[ITEMS];

static weft_status count(void *argument, int64_t item, void *scratch, weft_error *error)
{
    (void)argument, (void)error;
    atomic_fetch_add(&done[item], 1);
    memset(scratch, (int)item, 100);
    return WEFT_OK;
}

static void test_every_item_once(void)
{
    weft_error error = {0};
    for (int n = 1; n <= 9; n += 4) {
        int n_wrong = 0;
        memset(done, 0, sizeof done);
        CHECK_OK(weft_work(n, ITEMS, 100, count, NULL, &error), error);
        for (int i = 0; i < ITEMS; i++)
            n_wrong += done[i] != 1;
        CHECK_EQ_INT(n_wrong, 0);
    }
    CHECK_OK(weft_work(3, 0, 100, count, NULL, &error), error);
}

/* Item 20 fails at once, item 10 late. */
static weft_status fail_twice(void *argument, int64_t item, void *scratch, weft_error *error)
{
    (void)argument, (void)scratch;
    if (item == 10) usleep(20000);
    if (item != 10 && item != 20) return WEFT_OK;
    return weft_fail(error, WEFT_CORRUPT, "item %d", (int)item);
}

static void test_the_lowest_failure_is_told(void)
{
    for (int n = 1; n <= 4; n++) {
        weft_error error = {0};
        CHECK_EQ_INT(weft_work(n, 100, 0, fail_twice, NULL, &error), WEFT_CORRUPT);
        CHECK(strcmp(error.message, "item 10") == 0);
    }
}

int main(void)
{
    RUN(test_every_item_once);
    RUN(test_the_lowest_failure_is_told);
    return weft_test_report();
}
