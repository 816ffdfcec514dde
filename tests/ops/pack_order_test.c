/* pack_order_test: packed in the best of several orders, buffers that live at the same time still lie apart. The arena is
 * never larger than the order of sizes makes it, and for nested lifetimes it is the live memory of the fullest step.
 */
#define main pack_main
#include "pack_test.c"
#undef main

/* Bytes at the fullest step: no arena is smaller. */
static int64_t floor_of(const weft_buffer *buffers, uint32_t n, uint32_t n_steps)
{
    int64_t most = 0;
    for (uint32_t s = 0; s < n_steps; s++) {
        int64_t alive = 0;
        for (uint32_t i = 0; i < n; i++)
            if (buffers[i].first <= s && s <= buffers[i].last) alive += buffers[i].bytes;
        if (alive > most) most = alive;
    }
    return most;
}

static int larger_before(const void *a, const void *b)
{
    const weft_buffer *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* The end; 0 after a failed check. `all` is what is packed. */
static int64_t pack_tight(weft_buffer *const *all, uint32_t n, uint32_t n_steps)
{
    weft_error error = {0};
    weft_arena *arena = weft_arena_create();
    int64_t end = -1;
    CHECK_OK(weft_pack_in_best_order(all, n, n_steps, arena, &end, &error), error);
    weft_arena_destroy(&arena);
    return end;
}

static void check_apart(const weft_buffer *buffers, uint32_t n, int64_t end)
{
    int64_t highest = 0;
    bool is_apart = true;
    for (uint32_t i = 0; i < n; i++) {
        is_apart = is_apart && buffers[i].offset >= 0 && !meets_any(buffers, i, buffers[i].offset);
        if (buffers[i].offset + buffers[i].bytes > highest)
            highest = buffers[i].offset + buffers[i].bytes;
    }
    CHECK(is_apart);
    CHECK_EQ_INT(highest, end);
}

static void test_never_larger_than_by_size(void)
{
    static weft_buffer buffers[MOST], sorted[MOST];
    static weft_buffer *all[MOST], *order[MOST];
    uint32_t state = 0, n_better = 0;
    for (int trial = 0; trial < 60; trial++) {
        const uint32_t n = 1 + draw(&state, 200), n_steps = 1 + draw(&state, 150);
        weft_error error = {0};
        int64_t by_size = 0;
        draw_buffers(&state, buffers, n, n_steps);
        memcpy(sorted, buffers, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, larger_before);
        for (uint32_t i = 0; i < n; i++) {
            all[i] = &buffers[i];
            order[i] = &sorted[i];
        }
        CHECK_OK(weft_pack(order, n, n_steps, &by_size, &error), error);
        const int64_t end = pack_tight(all, n, n_steps);
        check_apart(buffers, n, end);
        CHECK(end <= by_size && end >= floor_of(buffers, n, n_steps));
        n_better += end < by_size;
    }
    CHECK(n_better > 10);
}

/* Made going forward, read going back: sizes grow towards the middle, which is worst for the order of sizes. */
static void test_nested_lives_leave_no_gap(void)
{
    enum { LAYERS = 40, STEPS = 2 * LAYERS };
    weft_buffer buffers[2 * LAYERS];
    weft_buffer *all[2 * LAYERS];
    uint32_t state = 100;
    for (int trial = 0; trial < 20; trial++) {
        for (uint32_t i = 0; i < LAYERS; i++) {
            const uint32_t last = STEPS - 1 - i;
            buffers[2 * i] = (weft_buffer){
                .bytes = 64 * (int64_t)(1 + draw(&state, 9)), .first = i, .last = last};
            buffers[2 * i + 1] =
                (weft_buffer){.bytes = 64, .first = last, .last = last}; /* for a moment */
        }
        for (uint32_t i = 0; i < 2 * LAYERS; i++)
            all[i] = &buffers[i];
        const int64_t end = pack_tight(all, 2 * LAYERS, STEPS);
        check_apart(buffers, 2 * LAYERS, end);
        CHECK_EQ_INT(end, floor_of(buffers, 2 * LAYERS, STEPS));
    }
}

static void test_nothing_to_pack(void)
{
    CHECK_EQ_INT(pack_tight((weft_buffer *[1]){NULL}, 0, 5), 0);
}

int main(void)
{
    RUN(test_never_larger_than_by_size);
    RUN(test_nested_lives_leave_no_gap);
    RUN(test_nothing_to_pack);
    return weft_test_report();
}
