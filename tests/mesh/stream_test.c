/* stream_test: a loop's pieces cover it once, in lane order; device memory is aligned, zeroed,
 * copied. */
#include "weft/device.h"

#include <stdlib.h>

#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

enum { MAX_LANES = 7 };

typedef struct record {
    int64_t begin[MAX_LANES], end[MAX_LANES];
    atomic_int n_pieces;
} record;

static void note(void *argument, int64_t begin, int64_t end, int lane)
{
    record *r = argument;
    r->begin[lane] = begin;
    r->end[lane] = end;
    atomic_fetch_add(&r->n_pieces, 1);
}

static void check_pieces(weft_stream *stream, int64_t count, int64_t grain)
{
    record r = {0};
    weft_parallel(stream, count, grain, note, &r);
    int n = atomic_load(&r.n_pieces);
    if (count == 0) {
        CHECK_EQ_INT(n, 0);
        return;
    }
    CHECK(n >= 1 && n <= weft_stream_lanes(stream));
    int64_t at = 0;
    for (int lane = 0; lane < n; lane++) {
        CHECK_EQ_INT(r.begin[lane], at);
        CHECK(n == 1 || r.end[lane] - at >= grain);
        at = r.end[lane];
    }
    CHECK_EQ_INT(at, count);
}

/* What lane 0 sees of a loop that is long enough for pauses, on the owner's thread and in order. */
typedef struct paused {
    int64_t at[MAX_LANES], count[MAX_LANES];
    int n_pauses;
    atomic_bool is_in_order;
} paused;

static void work(void *argument, int64_t begin, int64_t end, int lane)
{
    paused *p = argument;
    if (p->count[lane] > 0 && p->at[lane] != begin) p->is_in_order = false;
    for (volatile int64_t i = 0; i < 1000 * (end - begin); i++) /* takes time */
        continue;
    p->at[lane] = end;
    p->count[lane] += end - begin;
}

static void pause_work(void *argument)
{
    ((paused *)argument)->n_pauses++;
}

static void test_the_owner_looks_up_in_the_middle_of_long_loops(void)
{
    for (int n_lanes = 1; n_lanes <= 3; n_lanes++) {
        weft_error error = {0};
        weft_stream *stream;
        paused with = {.is_in_order = true}, without = {.is_in_order = true};
        CHECK_OK(weft_devices[WEFT_CPU]->stream_create(n_lanes, &stream, &error), error);
        weft_stream_meanwhile(stream, pause_work, &with);
        weft_parallel(stream, 20000, 1, work, &with);
        weft_stream_meanwhile(stream, NULL, NULL);
        const int n_pauses = with.n_pauses;
        weft_parallel(stream, 20000, 1, work, &without);
        CHECK(with.n_pauses > 1);
        CHECK_EQ_INT(with.n_pauses, n_pauses);
        CHECK(with.is_in_order && without.is_in_order);
        for (int lane = 0; lane < n_lanes; lane++)
            CHECK_EQ_INT(with.count[lane], without.count[lane]);
        weft_devices[WEFT_CPU]->stream_destroy(&stream);
    }
    weft_stream_meanwhile(NULL, pause_work, NULL); /* changes nothing */
}

/* A piece that is not cut says itself where it can be left. */
typedef struct whole {
    paused seen;
    weft_stream *stream;
    int n_calls[MAX_LANES];
} whole;

static void work_whole(void *argument, int64_t begin, int64_t end, int lane)
{
    whole *w = argument;
    w->n_calls[lane]++;
    for (int64_t at = begin; at < end; at++) {
        work(&w->seen, at, at + 1, lane);
        weft_stream_pause(w->stream, lane);
    }
}

static void test_a_whole_piece_is_one_call_with_pauses_where_it_says(void)
{
    for (int n_lanes = 1; n_lanes <= 3; n_lanes++) {
        weft_error error = {0};
        whole w = {.seen = {.is_in_order = true}};
        CHECK_OK(weft_devices[WEFT_CPU]->stream_create(n_lanes, &w.stream, &error), error);
        weft_stream_meanwhile(w.stream, pause_work, &w.seen);
        weft_parallel_whole(w.stream, 20000, 1, work_whole, &w);
        CHECK(w.seen.n_pauses > 1 && w.seen.n_pauses < 20000 / n_lanes);
        const int n_pauses = w.seen.n_pauses;
        weft_stream_meanwhile(w.stream, NULL, NULL);
        weft_parallel_whole(w.stream, 20000, 1, work_whole, &w);
        CHECK_EQ_INT(w.seen.n_pauses, n_pauses);
        for (int lane = 0; lane < n_lanes; lane++)
            CHECK_EQ_INT(w.n_calls[lane], 2);
        weft_devices[WEFT_CPU]->stream_destroy(&w.stream);
    }
    weft_stream_pause(NULL, 0); /* does nothing */
}

/* Lanes go through the items in passes, some of them slowly, and look that nobody is ahead of anybody. */
enum { ITEMS = 60, PASSES = 5 };
typedef struct shared {
    weft_stream *stream;
    atomic_int done[ITEMS], n_done, n_helped, n_wrong;
    int64_t count;
    int n_passes, busy; /* busy: turns of an empty loop that an item takes, times 0 to 4 */
    bool is_held_up;    /* lane 0's first item ends when all others are done */
} shared;

static void do_item(shared *s, int64_t item, int pass, bool is_own)
{
    if (atomic_load(&s->done[item]) != pass) atomic_fetch_add(&s->n_wrong, 1);
    for (volatile int i = 0; i < (item * 7 + pass) % 5 * s->busy; i++)
        continue;
    if (atomic_fetch_add(&s->done[item], 1) != pass) atomic_fetch_add(&s->n_wrong, 1);
    atomic_fetch_add(&s->n_done, 1);
    if (!is_own) atomic_fetch_add(&s->n_helped, 1);
}

static void work_shared(void *argument, int64_t begin, int64_t end, int lane)
{
    shared *s = argument;
    for (int pass = 0; pass < s->n_passes; pass++) {
        int64_t first, last;
        if (pass > 0) weft_stream_again(s->stream, lane);
        while (weft_stream_take(s->stream, lane, 3, &first, &last)) {
            while (s->is_held_up && lane == 0 &&
                   atomic_load(&s->n_done) < s->count - (last - first))
                weft_stream_pause(s->stream, lane);
            for (int64_t i = first; i < last; i++)
                do_item(s, i, pass, i >= begin && i < end);
        }
    }
}

static void check_shared(int n_lanes, int64_t count, int n_passes, int busy, bool is_held_up)
{
    weft_error error = {0};
    shared s = {.count = count, .n_passes = n_passes, .busy = busy, .is_held_up = is_held_up};
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(n_lanes, &s.stream, &error), error);
    weft_parallel_whole(s.stream, count, 1, work_shared, &s);
    CHECK_EQ_INT(atomic_load(&s.n_wrong), 0);
    for (int64_t i = 0; i < count; i++)
        CHECK_EQ_INT(atomic_load(&s.done[i]), n_passes);
    if (n_lanes == 1) CHECK_EQ_INT(atomic_load(&s.n_helped), 0);
    if (is_held_up) CHECK(atomic_load(&s.n_helped) > 0);
    int64_t first, last;
    CHECK(!weft_stream_take(s.stream, 0, 1, &first, &last)); /* the loop is over */
    weft_devices[WEFT_CPU]->stream_destroy(&s.stream);
}

static void test_lanes_take_what_others_have_left_and_no_item_before_its_last_pass_is_done(void)
{
    for (int round = 0; round < 20; round++)
        for (int n_lanes = 1; n_lanes <= 4; n_lanes++)
            check_shared(n_lanes, 1 + round * 7 % ITEMS, PASSES, 2000, false);
}

/* Two items for each lane and many passes, on fewer cores than lanes: a lane that has gone on is met by one that was
 * put aside in the middle of helping. Lanes that then wait for each other stand still. */
static void test_no_lane_waits_for_one_that_waits_for_it(void)
{
    static const int n_lanes[] = {3, 4, 7, 16};
    for (int i = 0; i < 4; i++)
        for (int round = 0; round < 10; round++) {
            weft_test_hangs_after(60);
            check_shared(n_lanes[i], 2 * n_lanes[i], weft_test_cases(2000), round % 2, false);
        }
    weft_test_hangs_after(0);
}

static void test_a_lane_that_is_held_up_is_helped(void)
{
    for (int n_lanes = 2; n_lanes <= 4; n_lanes++)
        check_shared(n_lanes, ITEMS, 1, 2000, true);
}

static int64_t count_taken(weft_stream *stream, int lane, int64_t *at)
{
    int64_t n = 0, begin, end;
    while (weft_stream_take(stream, lane, (int64_t)1 << 60, &begin, &end)) {
        if (begin != *at || end <= begin) return -1;
        *at = end, n += end - begin;
    }
    return n;
}

typedef struct taken {
    weft_stream *stream;
    int64_t n;
} taken;

static void take_all(void *argument, int64_t begin, int64_t end, int lane)
{
    taken *t = argument;
    int64_t at = 0;
    CHECK_EQ_INT(begin, 0);
    t->n = count_taken(t->stream, lane, &at);
    CHECK_EQ_INT(at, end);
}

static void test_any_number_of_items_is_taken_once(void)
{
    const int64_t counts[] = {1, (1 << 20) - 2, (1 << 20) - 1, 1 << 20, ((int64_t)1 << 41) + 3};
    weft_error error = {0};
    taken t = {0};
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(1, &t.stream, &error), error);
    for (int c = 0; c < 5; c++) {
        weft_parallel_whole(t.stream, counts[c], 1, take_all, &t);
        CHECK_EQ_INT(t.n, counts[c]);
    }
    weft_devices[WEFT_CPU]->stream_destroy(&t.stream);
    CHECK(!weft_stream_take(NULL, 0, 1, &t.n, &t.n));
    weft_stream_again(NULL, 0);
}

static void test_pieces_cover_the_loop_once(void)
{
    const int64_t counts[] = {0, 1, 2, 3, 6, 7, 8, 100, 1001, (int64_t)1 << 61};
    const int64_t grains[] = {0, 1, 3, 50, 5000};
    for (int n_lanes = 1; n_lanes <= MAX_LANES; n_lanes += 2) {
        weft_error error = {0};
        weft_stream *stream;
        CHECK_OK(weft_devices[WEFT_CPU]->stream_create(n_lanes, &stream, &error), error);
        CHECK_EQ_INT(weft_stream_lanes(stream), n_lanes);
        for (int c = 0; c < 10; c++)
            for (int g = 0; g < 5; g++)
                check_pieces(stream, counts[c], grains[g]);
        weft_devices[WEFT_CPU]->stream_destroy(&stream);
        CHECK(stream == NULL);
    }
}

static void add_one(void *argument, int64_t begin, int64_t end, int lane)
{
    (void)lane;
    int *numbers = argument;
    for (int64_t i = begin; i < end; i++)
        numbers[i]++;
}

static void test_many_short_loops_lose_nothing(void)
{
    enum { N = 64, RUNS = 3000 };
    int numbers[N] = {0};
    weft_error error = {0};
    weft_stream *stream;
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(3, &stream, &error), error);
    for (int run = 0; run < RUNS; run++)
        weft_parallel(stream, N, 1 + run % N, add_one, numbers);
    for (int i = 0; i < N; i++)
        CHECK_EQ_INT(numbers[i], RUNS);
    weft_devices[WEFT_CPU]->stream_destroy(&stream);
}

static void test_scratch_is_each_lanes_own(void)
{
    weft_error error = {0};
    weft_stream *stream;
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(3, &stream, &error), error);
    for (int lane = 0; lane < 3; lane++) {
        CHECK_EQ_INT((uintptr_t)weft_stream_scratch(stream, lane) % 64, 0);
        memset(weft_stream_scratch(stream, lane), lane + 1, WEFT_LANE_SCRATCH);
    }
    for (int lane = 0; lane < 3; lane++) {
        const char *scratch = weft_stream_scratch(stream, lane);
        CHECK(scratch[0] == lane + 1 && scratch[WEFT_LANE_SCRATCH - 1] == lane + 1);
    }
    weft_devices[WEFT_CPU]->stream_destroy(&stream);
}

static void test_memory_is_aligned_zeroed_and_given_back(void)
{
    const size_t sizes[] = {0, 1, 63, 4097, (1 << 20) - 1, 1 << 20, (2 << 20) + 5, 9 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int again = 0; again < 2; again++) { /* what was given back dirty comes zeroed */
            weft_error error = {0};
            void *memory = NULL;
            CHECK_OK(weft_devices[WEFT_CPU]->take(NULL, sizes[s], &memory, &error), error);
            CHECK_EQ_INT((uintptr_t)memory % 64, 0);
            size_t n_dirty = 0;
            for (size_t i = 0; i < sizes[s]; i++)
                n_dirty += ((char *)memory)[i] != 0;
            CHECK_EQ_INT(n_dirty, 0);
            if (sizes[s] > 0) memset(memory, 0xff, sizes[s]);
            weft_devices[WEFT_CPU]->give(NULL, memory, sizes[s]);
        }
    weft_devices[WEFT_CPU]->give(NULL, NULL, 10);
}

/* Whether all pages of memory are there. */
static bool is_there(char *memory, size_t bytes)
{
    static unsigned char pages[(9 << 20) / 4096];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (mincore(memory, bytes, pages) != 0) return false;
    for (size_t p = 0; p < bytes / page; p++)
        if (!(pages[p] & 1)) return false;
    return true;
}

/* Under the sanitizers memory is the heap's; before Linux 5.14, and where programs are emulated, nobody makes pages in
 * advance, or says so. */
static bool makes_pages(void)
{
#if defined(MADV_POPULATE_WRITE) && !defined(WEFT_SANITIZE)
    enum { BYTES = 1 << 20 };
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    const bool is_made =
        madvise(memory, BYTES, MADV_POPULATE_WRITE) == 0 && is_there(memory, BYTES);
    munmap(memory, BYTES);
    return is_made;
#else
    return false;
#endif
}

static void test_memory_that_is_touched_is_there_and_zero(void)
{
    const size_t sizes[] = {1, 1 << 20, (2 << 20) + 5, 9 << 20};
    const bool is_made = makes_pages();
    weft_stream *stream;
    weft_error error = {0};
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(2, &stream, &error), error);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        void *memory = NULL;
        CHECK_OK(weft_devices[WEFT_CPU]->take(NULL, sizes[s], &memory, &error), error);
        weft_devices[WEFT_CPU]->touch(stream, memory, sizes[s]);
        if (sizes[s] >= 1 << 20 && is_made) CHECK(is_there(memory, sizes[s]));
        size_t n_dirty = 0;
        for (size_t i = 0; i < sizes[s]; i++)
            n_dirty += ((char *)memory)[i] != 0;
        CHECK_EQ_INT(n_dirty, 0);
        weft_devices[WEFT_CPU]->give(NULL, memory, sizes[s]);
    }
    weft_devices[WEFT_CPU]->touch(stream, NULL, 10);
    weft_devices[WEFT_CPU]->stream_destroy(&stream);
}

static void test_too_much_memory_is_an_error(void)
{
    weft_error error = {0};
    void *memory;
    CHECK_EQ_INT(weft_devices[WEFT_CPU]->take(NULL, SIZE_MAX / 2, &memory, &error), WEFT_MEMORY);
    CHECK(memory == NULL);
    CHECK_TEXT(error.message, "could not allocate");
}

static void test_copy_copies_all(void)
{
    enum { BYTES = (1 << 20) + 13 };
    char *from = malloc(BYTES), *to = calloc(1, BYTES);
    weft_error error = {0};
    weft_stream *stream;
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(2, &stream, &error), error);
    for (int i = 0; i < BYTES; i++)
        from[i] = (char)(i * 31 >> 3);
    weft_devices[WEFT_CPU]->copy(stream, WEFT_COMPUTE, to, from, BYTES);
    weft_devices[WEFT_CPU]->wait(stream, weft_devices[WEFT_CPU]->record(stream, WEFT_COMPUTE));
    CHECK(memcmp(from, to, BYTES) == 0);
    weft_devices[WEFT_CPU]->copy(stream, WEFT_COMPUTE, NULL, NULL, 0);
    weft_devices[WEFT_CPU]->stream_destroy(&stream);
    free(from);
    free(to);
}

int main(void)
{
    RUN(test_lanes_take_what_others_have_left_and_no_item_before_its_last_pass_is_done);
    RUN(test_no_lane_waits_for_one_that_waits_for_it);
    RUN(test_a_lane_that_is_held_up_is_helped);
    RUN(test_any_number_of_items_is_taken_once);
    RUN(test_pieces_cover_the_loop_once);
    RUN(test_the_owner_looks_up_in_the_middle_of_long_loops);
    RUN(test_a_whole_piece_is_one_call_with_pauses_where_it_says);
    RUN(test_many_short_loops_lose_nothing);
    RUN(test_scratch_is_each_lanes_own);
    RUN(test_memory_is_aligned_zeroed_and_given_back);
    RUN(test_memory_that_is_touched_is_there_and_zero);
    RUN(test_too_much_memory_is_an_error);
    RUN(test_copy_copies_all);
    return weft_test_report();
}
