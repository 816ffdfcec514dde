/* permute_test: the order of samples is a bijection that the key changes. */
#include "weft/io.h"

#include <stdlib.h>

#include "test.h"

static void test_every_element_is_hit_once(void)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4096, 10007};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        char *seen = calloc((size_t)n, 1);
        bool is_bijection = true;
        for (int64_t i = 0; i < n; i++) {
            const int64_t j = weft_permute(42 + (uint64_t)s, n, i);
            is_bijection = is_bijection && j >= 0 && j < n && !seen[j];
            if (j >= 0 && j < n) seen[j] = 1;
        }
        CHECK(is_bijection);
        free(seen);
    }
}

static void test_large_ranges_stay_inside(void)
{
    const int64_t n = INT64_C(1) << 60;
    for (int64_t i = 0; i < 1000; i++) {
        const int64_t j = weft_permute(7, n - 1, i * (n / 1001));
        if (!CHECK(j >= 0 && j < n - 1)) return;
    }
}

static void test_another_key_is_another_order(void)
{
    int equal = 0;
    for (int64_t i = 0; i < 1000; i++)
        equal += weft_permute(1, 1000, i) == weft_permute(2, 1000, i);
    CHECK(equal < 20); /* one is expected */
}

static void test_order_looks_random(void)
{
    double mean_step = 0; /* of |p(i + 1) - p(i)|: a third of n for a random order */
    const int64_t n = 9999;
    for (int64_t i = 0; i + 1 < n; i++)
        mean_step += fabs((double)(weft_permute(3, n, i + 1) - weft_permute(3, n, i)));
    mean_step /= (double)((n - 1) * n);
    CHECK(mean_step > 0.32 && mean_step < 0.35);
}

int main(void)
{
    RUN(test_every_element_is_hit_once);
    RUN(test_large_ranges_stay_inside);
    RUN(test_another_key_is_another_order);
    RUN(test_order_looks_random);
    return weft_test_report();
}
