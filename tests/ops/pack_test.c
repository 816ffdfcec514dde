/* pack_test: buffers that live at the same time lie apart, each at the lowest place there is, as looking at all pairs
 * finds it. */
#include "ops/plan/pack.h"

#include <stdlib.h>

#include "test.h"
#include "weft/philox.h"

enum { MOST = 3000 };

static uint32_t draw(uint32_t *state, uint32_t below)
{
    uint32_t words[4];
    weft_philox((weft_philox_key){.seed = 17}, (*state)++, words);
    return words[0] % below;
}

/* Lifetimes as programs have them: of a few steps; from a step of the forward pass to its mirror; to the end; any. */
static void draw_buffers(uint32_t *state, weft_buffer *buffers, uint32_t n, uint32_t n_steps)
{
    const uint32_t n_sizes = 1 + draw(state, 5), kinds = 1 + draw(state, 4);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = draw(state, n_steps), last = first + draw(state, 4);
        const uint32_t kind = draw(state, kinds);
        if (kind == 1 && first < n_steps / 2) last = n_steps - 1 - first;
        if (kind == 2) last = n_steps - 1;
        if (kind == 3) last = first + draw(state, n_steps - first);
        buffers[i] = (weft_buffer){.bytes = 64 * (int64_t)(1 + draw(state, n_sizes)),
                                   .offset = -1,
                                   .first = first,
                                   .last = last < n_steps ? last : n_steps - 1};
    }
}

static bool meet(const weft_buffer *a, const weft_buffer *b, int64_t at)
{
    return a->first <= b->last && b->first <= a->last && at < b->offset + b->bytes &&
           b->offset < at + a->bytes;
}

/* Whether buffer i meets one before it when it lies at `at`. */
static bool meets_any(const weft_buffer *buffers, uint32_t i, int64_t at)
{
    for (uint32_t k = 0; k < i; k++)
        if (meet(&buffers[i], &buffers[k], at)) return true;
    return false;
}

/* The definition, for many: places that others end at, in ascending order, until one is free. */
static int64_t lowest_of_all(weft_buffer *const *sorted, uint32_t n, const weft_buffer *b)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const weft_buffer *other = sorted[i];
        if (other->last < b->first || b->last < other->first) continue;
        if (other->offset - at >= b->bytes) break;
        if (other->offset + other->bytes > at) at = other->offset + other->bytes;
    }
    return at;
}

static int64_t pack_plainly(weft_buffer *buffers, uint32_t n)
{
    static weft_buffer *sorted[MOST]; /* by offset */
    int64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        weft_buffer *b = &buffers[i];
        uint32_t at = i;
        b->offset = lowest_of_all(sorted, i, b);
        for (; at > 0 && sorted[at - 1]->offset > b->offset; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = b;
        if (b->offset + b->bytes > end) end = b->offset + b->bytes;
    }
    return end;
}

static void test_every_buffer_lies_at_the_lowest_place(void)
{
    uint32_t state = 0;
    weft_error error = {0};
    for (int round = 0; round < 60; round++) {
        weft_buffer buffers[60], *order[60];
        const uint32_t n = 1 + draw(&state, 60), n_steps = 1 + draw(&state, 100);
        int64_t end, highest = 0;
        draw_buffers(&state, buffers, n, n_steps);
        for (uint32_t i = 0; i < n; i++)
            order[i] = &buffers[i];
        CHECK_OK(weft_pack(order, n, n_steps, &end, &error), error);
        for (uint32_t i = 0; i < n; i++) {
            bool is_lowest = !meets_any(buffers, i, buffers[i].offset);
            for (int64_t at = 0; at < buffers[i].offset && is_lowest; at += 64)
                is_lowest = meets_any(buffers, i, at);
            CHECK(is_lowest);
            if (buffers[i].offset + buffers[i].bytes > highest)
                highest = buffers[i].offset + buffers[i].bytes;
        }
        CHECK_EQ_INT(end, highest);
    }
}

static void test_many_lie_where_all_pairs_put_them(void)
{
    static weft_buffer buffers[MOST], again[MOST];
    static weft_buffer *order[MOST];
    uint32_t state = 1000000;
    weft_error error = {0};
    for (int round = 0; round < 40; round++) {
        const uint32_t n = 1 + draw(&state, MOST), n_steps = 1 + draw(&state, 2 * MOST);
        int64_t end = -1;
        bool is_same = true;
        draw_buffers(&state, buffers, n, n_steps);
        memcpy(again, buffers, sizeof buffers);
        for (uint32_t i = 0; i < n; i++)
            order[i] = &buffers[i];
        CHECK_OK(weft_pack(order, n, n_steps, &end, &error), error);
        CHECK_EQ_INT(end, pack_plainly(again, n));
        for (uint32_t i = 0; i < n; i++)
            is_same = is_same && buffers[i].offset == again[i].offset;
        CHECK(is_same);
    }
}

static void test_nothing_takes_no_room(void)
{
    weft_error error = {0};
    int64_t end = -1;
    CHECK_OK(weft_pack(NULL, 0, 1, &end, &error), error);
    CHECK_EQ_INT(end, 0);
}

int main(void)
{
    RUN(test_every_buffer_lies_at_the_lowest_place);
    RUN(test_many_lie_where_all_pairs_put_them);
    RUN(test_nothing_takes_no_room);
    return weft_test_report();
}
