/* fake_device_test: the device that other tests run on finds what it is there to find. */
#include "mesh/fake_device.h"

#include "weft/collectives.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { N = 64 };

static const weft_device *fake(void)
{
    return weft_devices[fake_device()];
}

typedef struct bench {
    weft_stream *stream;
    int32_t *a, *b, *c; /* [N] */
} bench;

static bench open_bench(void)
{
    weft_error error = {0};
    bench f = {0};
    void *memory[3];
    CHECK_OK(fake()->stream_create(1, &f.stream, &error), error);
    for (int i = 0; i < 3; i++)
        CHECK_OK(fake()->take(NULL, N * sizeof(int32_t), &memory[i], &error), error);
    f.a = memory[0], f.b = memory[1], f.c = memory[2];
    fake_forget();
    return f;
}

static void close_bench(bench *f)
{
    fake()->stream_destroy(&f->stream);
    fake()->give(NULL, f->a, N * sizeof(int32_t));
    fake()->give(NULL, f->b, N * sizeof(int32_t));
    fake()->give(NULL, f->c, N * sizeof(int32_t));
}

static void put(const bench *f, int32_t *to, int32_t first)
{
    int32_t numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = first + i;
    fake()->put(f->stream, to, numbers, sizeof numbers);
}

static int32_t first_of(const bench *f, const int32_t *from)
{
    int32_t numbers[N];
    fake()->get(f->stream, numbers, from, sizeof numbers);
    for (int i = 1; i < N; i++)
        CHECK_EQ_INT(numbers[i], numbers[0] == -1 ? -1 : numbers[0] + i);
    return numbers[0];
}

static void test_bytes_come_back_and_fresh_memory_is_no_number(void)
{
    bench f = open_bench();
    void *zeroed;
    weft_error error = {0};
    CHECK_EQ_INT(first_of(&f, f.a), -1); /* a NaN as a float */
    put(&f, f.a, 7);
    CHECK_EQ_INT(first_of(&f, f.a), 7);
    fake()->copy(f.stream, WEFT_COMPUTE, f.b, f.a, N * sizeof(int32_t));
    CHECK_EQ_INT(first_of(&f, f.b), 7);
    CHECK_OK(fake()->take_zeroed(NULL, 100, &zeroed, &error), error);
    char bytes[100];
    fake()->get(f.stream, bytes, zeroed, sizeof bytes);
    for (int i = 0; i < 100; i++)
        CHECK_EQ_INT(bytes[i], 0);
    fake()->give(NULL, zeroed, 100);
    CHECK_EQ_INT(fake_seen().n_races + fake_seen().n_dead, 0);
    close_bench(&f);
}

/* In a child of its own: it does not live. */
static void test_the_host_cannot_touch_it(void)
{
    bench f = open_bench();
    for (int writes = 0; writes < 2; writes++) {
        const pid_t child = fork();
        if (child == 0) {
            volatile int32_t *at = f.a;
            signal(SIGSEGV, SIG_DFL);
            signal(SIGBUS, SIG_DFL);
            if (writes) at[0] = 1;
            _exit(writes ? 0 : at[0] & 0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(!WIFEXITED(status) ||
              WEXITSTATUS(status) != 0); /* the sanitizers end it with a status */
    }
    close_bench(&f);
}

static void copy(const bench *f, int queue, int32_t *to, const int32_t *from)
{
    fake()->copy(f->stream, queue, to, from, N * sizeof(int32_t));
}

static void test_queues_keep_their_order_and_are_overtaken_by_others(void)
{
    fake_forget();
    for (int round = 0; round < 50; round++) {
        bench f = open_bench();
        void *d;
        weft_error error = {0};
        CHECK_OK(fake()->take(NULL, N * sizeof(int32_t), &d, &error), error);
        put(&f, f.a, round);
        put(&f, f.c, 0);
        for (int k = 0; k < 8; k++) {
            copy(&f, WEFT_COMPUTE, f.b, f.a);
            copy(&f, 1, d, f.c);
        }
        CHECK_EQ_INT(first_of(&f, f.b), round);
        CHECK_EQ_INT(fake_seen().n_races, 0);
        CHECK(fake_seen().n_overtaken > 0);
        fake()->give(NULL, d, N * sizeof(int32_t));
        close_bench(&f);
    }
}

/* The copy on queue 1 reads what the one on queue 0 writes. */
static void in_turn(const bench *f, bool follows)
{
    put(f, f->a, 100);
    put(f, f->b, 200);
    copy(f, WEFT_COMPUTE, f->b, f->a);
    if (follows) fake()->follow(f->stream, 1, fake()->record(f->stream, WEFT_COMPUTE));
    copy(f, 1, f->c, f->b);
}

static void test_what_follows_an_event_comes_after_it(void)
{
    for (int round = 0; round < 50; round++) {
        bench f = open_bench();
        in_turn(&f, true);
        CHECK_EQ_INT(first_of(&f, f.c), 100);
        CHECK_EQ_INT(fake_seen().n_races, 0);
        close_bench(&f);
    }
}

static void test_a_missing_event_is_a_race_in_every_order(void)
{
    for (int round = 0; round < 50; round++) {
        bench f = open_bench();
        in_turn(&f, false);
        fake()->finish(f.stream);
        CHECK_EQ_INT(fake_seen().n_races, 1);
        CHECK_TEXT(fake_seen().first, "copy on queue 1 and copy on queue 0 have no order");
        close_bench(&f);
    }
}

static void test_an_event_that_the_host_waited_for_is_an_order_too(void)
{
    bench f = open_bench();
    put(&f, f.a, 100);
    copy(&f, WEFT_COMPUTE, f.b, f.a);
    fake()->wait(f.stream, fake()->record(f.stream, WEFT_COMPUTE));
    copy(&f, 1, f.c, f.b);
    copy(&f, 2, f.c, f.b); /* writes where queue 1 does */
    CHECK_EQ_INT(first_of(&f, f.c), 100);
    CHECK_EQ_INT(fake_seen().n_races, 1);
    CHECK_TEXT(fake_seen().first, "queue 2 and copy on queue 1");
    close_bench(&f);
}

static void test_memory_that_was_given_back_is_not_used(void)
{
    bench f = open_bench();
    weft_error error = {0};
    void *gone;
    CHECK_OK(fake()->take(NULL, N * sizeof(int32_t), &gone, &error), error);
    put(&f, f.a, 5);
    put(&f, gone, 6);
    CHECK_EQ_INT(fake_seen().n_dead, 0);
    fake()->give(NULL, gone, N * sizeof(int32_t));
    copy(&f, WEFT_COMPUTE, gone, f.a);
    fake()->finish(f.stream);
    CHECK_EQ_INT(fake_seen().n_dead, 1);
    CHECK_TEXT(fake_seen().first, "copy uses memory that is not taken");
    fake()->give(NULL, gone, N * sizeof(int32_t)); /* twice */
    CHECK_EQ_INT(fake_seen().n_dead, 2);
    close_bench(&f);
}

int main(void)
{
    RUN(test_bytes_come_back_and_fresh_memory_is_no_number);
    RUN(test_the_host_cannot_touch_it);
    RUN(test_queues_keep_their_order_and_are_overtaken_by_others);
    RUN(test_what_follows_an_event_comes_after_it);
    RUN(test_a_missing_event_is_a_race_in_every_order);
    RUN(test_an_event_that_the_host_waited_for_is_an_order_too);
    RUN(test_memory_that_was_given_back_is_not_used);
    fake_forget();
    return weft_test_report();
}
