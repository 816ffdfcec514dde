/* device_test: the CUDA device's table on a driver that does things late and in any order (tests/cuda/driver), or on a GPU
 * where there is one: bytes, queues and events, boxes of every kind, every combine, and what fails. */
#include "mesh/cuda/parts.h"

#include "engine.h"
#include "mesh/devices.h"
#include "weft/layout.h"

#include <string.h>

#include "test.h"

enum { N = 64 };

static const weft_device *device;
static weft_stream *stream;

static void *take(size_t bytes)
{
    weft_error error = {0};
    void *memory = NULL;
    CHECK_OK(device->take(stream, bytes, &memory, &error), error);
    CHECK_EQ_INT((int64_t)((uintptr_t)memory % 64), 0);
    return memory;
}

static void put(void *to, int32_t first)
{
    int32_t numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = first + i;
    device->put(stream, to, numbers, sizeof numbers);
}

static int32_t first_of(const void *from)
{
    int32_t numbers[N];
    device->get(stream, numbers, from, sizeof numbers);
    for (int i = 1; i < N; i++)
        CHECK_EQ_INT(numbers[i], numbers[0] + i);
    return numbers[0];
}

static void check_sound(void)
{
    weft_error error = {0};
    CHECK_OK(device->failed(stream, &error), error);
}

static void test_bytes_come_back(void)
{
    weft_error error = {0};
    void *a = take(N * 4), *b = take(N * 4), *zeroed, *staging;
    put(a, 7);
    CHECK_EQ_INT(first_of(a), 7);
    device->copy(stream, WEFT_COMPUTE, b, a, N * 4);
    CHECK_EQ_INT(first_of(b), 7);
    CHECK_OK(device->take_zeroed(stream, N * 4, &zeroed, &error), error);
    CHECK_OK(device->take_staging(N * 4, &staging, &error), error);
    int32_t back[N] = {1};
    device->get(stream, back, zeroed, sizeof back);
    for (int i = 0; i < N; i++)
        CHECK(back[i] == 0 && ((int32_t *)staging)[i] == 0);
    device->copy(stream, 2, staging, a, N * 4);
    device->wait(stream, device->record(stream, 2));
    CHECK_EQ_INT(((int32_t *)staging)[N - 1], 7 + N - 1);
    ((int32_t *)staging)[0] = -5;
    device->copy(stream, 1, b, staging, 4);
    device->finish(stream);
    device->get(stream, back, b, sizeof back);
    CHECK_EQ_INT(back[0], -5);
    CHECK_EQ_INT(back[1], 8);
    device->put(stream, b, back, 0); /* nothing */
    CHECK(device->room(stream) > 0);
    check_sound();
    device->give(stream, a, N * 4), device->give(stream, b, N * 4),
        device->give(stream, zeroed, N * 4);
    device->give(stream, NULL, 4), device->give_staging(NULL, 4);
    device->give_staging(staging, N * 4);
}

/* The copy on queue 1 reads what the one on queue 0 writes, many times: events are used again. */
static void test_what_follows_an_event_comes_after_it(void)
{
    void *a = take(N * 4), *b = take(N * 4), *c = take(N * 4);
    for (int round = 0; round < 3 * CUDA_EVENTS; round++) {
        put(a, round);
        put(b, -1000);
        device->copy(stream, WEFT_COMPUTE, b, a, N * 4);
        device->follow(stream, 1, device->record(stream, WEFT_COMPUTE));
        device->copy(stream, 1, c, b, N * 4);
        const weft_event event = device->record(stream, 1);
        while (!device->is_done(stream, event)) {
        }
        CHECK_EQ_INT(first_of(c), round);
        CHECK_EQ_INT((int64_t)device->record(stream, 1).number, (int64_t)event.number);
    }
    check_sound();
    device->give(stream, a, N * 4), device->give(stream, b, N * 4), device->give(stream, c, N * 4);
}

static void test_old_events_stay_over(void)
{
    void *a = take(N * 4), *b = take(N * 4);
    const weft_event none = device->record(stream, 3);
    CHECK(device->is_done(stream, none));
    device->copy(stream, 3, b, a, N * 4);
    const weft_event first = device->record(stream, 3);
    device->wait(stream, first);
    for (int i = 0; i < 2 * CUDA_EVENTS + 1; i++) {
        device->copy(stream, 3, b, a, N * 4);
        (void)device->record(stream, 3);
    }
    CHECK(device->is_done(stream, first));
    device->finish(stream);
    CHECK(device->done(stream) > 2 * CUDA_EVENTS); /* of all queues */
    check_sound();
    device->give(stream, a, N * 4), device->give(stream, b, N * 4);
}

/* ---- boxes against the CPU's ------------------------------------------------------------------- */

enum { ROOM = 4096 };

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* A part of a row-major tensor, into a part of another, of up to four loops. */
static weft_box_copy random_box(int width)
{
    weft_box_copy box = {.run = (1 + random_below(5)) * width};
    int64_t from = box.run + random_below(3) * width, to = box.run + random_below(3) * width;
    box.from_at = random_below(4) * width, box.to_at = random_below(4) * width;
    box.n_loops = (int)random_below(4);
    for (int l = 0; l < box.n_loops; l++) {
        box.count[l] = 1 + random_below(4);
        box.from_stride[l] = from, box.to_stride[l] = to;
        from = from * box.count[l] + random_below(3) * width;
        to = to * box.count[l] + random_below(3) * width;
    }
    return box;
}

static void compare(const char *what, const void *device_memory, const char *expected)
{
    static char got[ROOM * 8];
    device->get(stream, got, device_memory, sizeof got);
    CHECK(weft_test_check(memcmp(got, expected, sizeof got) == 0, __FILE__, __LINE__, what));
}

static void test_boxes_are_copied_as_on_the_host(void)
{
    static const size_t elements[] = {1, 2, 4, 8};
    static char to_host[ROOM * 8], from_host[ROOM * 8];
    void *to = take(sizeof to_host), *from = take(sizeof from_host);
    for (size_t i = 0; i < sizeof from_host; i++)
        from_host[i] = (char)(i * 7 + i / 256);
    device->put(stream, from, from_host, sizeof from_host);
    for (int round = 0; round < 60; round++) {
        const size_t element = elements[random_below(4)];
        const weft_box_copy box = random_box(1);
        memset(to_host, round, sizeof to_host);
        device->put(stream, to, to_host, sizeof to_host);
        weft_devices[0]->copy_box(NULL, 0, to_host, from_host, &box, element);
        device->copy_box(stream, (int)random_below(WEFT_QUEUES), to, from, &box, element);
        compare("copy_box", to, to_host);
    }
    check_sound();
    device->give(stream, to, sizeof to_host), device->give(stream, from, sizeof from_host);
}

/* Numbers of every kind, NaN and infinity too; in a state, what a state may hold. */
static void fill(char *memory, weft_combine combine, weft_dtype dtype, int64_t count)
{
    const int width = weft_combine_width(combine);
    for (int64_t i = 0; i < count; i++) {
        const int at = (int)(i % width);
        double x = (double)random_below(200) / 8 - 10;
        if (random_below(20) == 0) x = random_below(2) ? (double)NAN : (double)INFINITY;
        if (dtype == WEFT_I32 || dtype == WEFT_I64 || dtype == WEFT_U8) x = random_below(100);
        if (combine == WEFT_MOMENTS) x = at == 0 ? random_below(4) : random_below(90) / 8.0;
        if (combine == WEFT_LSE && at == 1) x = random_below(90) / 8.0;
        weft_dtype_put(dtype, memory, i, x);
        if (combine == WEFT_ARGMAX && at == 1) {
            const int32_t index = (int32_t)random_below(40) - 1;
            if (dtype == WEFT_F64)
                weft_dtype_put(dtype, memory, i, index);
            else
                memcpy(memory + i * 4, &index, 4);
        }
    }
}

static bool is_near(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b));
}

/* Sums, extremes and indices bit by bit; lse has an exp, and moments divide: there, nearly. */
static void compare_states(const weft_combining *rule, const void *memory, const char *expected)
{
    static char got[ROOM * 8];
    const weft_dtype dtype = (weft_dtype)rule->dtype;
    char what[80];
    snprintf(what, sizeof what, "%s %s", weft_combine_name((weft_combine)rule->combine),
             weft_dtype_name(dtype));
    device->get(stream, got, memory, ROOM * (size_t)rule->element);
    const bool is_exact = rule->combine != WEFT_LSE && rule->combine != WEFT_MOMENTS;
    for (int64_t i = 0; i < ROOM; i++) {
        const size_t at = (size_t)(i * rule->element), n = (size_t)rule->element;
        const bool is_equal = memcmp(got + at, expected + at, n) == 0;
        const bool is_right =
            is_equal || (!is_exact && is_near(weft_dtype_get(dtype, got, i),
                                              weft_dtype_get(dtype, expected, i)));
        if (!weft_test_check(is_right, __FILE__, __LINE__, what)) return;
    }
}

static void check_combine(const weft_combining *rule)
{
    static char to_host[ROOM * 8], from_host[ROOM * 8];
    void *to = take(sizeof to_host), *from = take(sizeof from_host);
    const weft_combine combine = (weft_combine)rule->combine;
    const size_t bytes = ROOM * (size_t)rule->element;
    for (int round = 0; round < 4; round++) {
        const weft_box_copy box = random_box(rule->width);
        fill(to_host, combine, (weft_dtype)rule->dtype, ROOM);
        fill(from_host, combine, (weft_dtype)rule->dtype, ROOM);
        device->put(stream, to, to_host, bytes);
        device->put(stream, from, from_host, bytes);
        weft_devices[0]->combine_box(NULL, 0, to_host, from_host, &box, rule);
        device->combine_box(stream, 1, to, from, &box, rule);
        compare_states(rule, to, to_host);
    }
    rule->identity(to_host, 300);
    device->identity(stream, 2, to, 300, rule);
    compare_states(rule, to, to_host);
    device->give(stream, to, sizeof to_host), device->give(stream, from, sizeof from_host);
}

static void test_every_combine_is_the_hosts(void)
{
    int n = 0;
    for (int combine = WEFT_SUM; combine < WEFT_COMBINES; combine++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            const weft_combining rule = weft_combining_of((weft_combine)combine, (weft_dtype)dtype);
            if (rule.host == NULL) continue;
            check_combine(&rule);
            n++;
        }
    CHECK_EQ_INT(n, 4 * 7 + 2 + 3 + 2);
    check_sound();
}

/* ---- what fails -------------------------------------------------------------------------------- */

static void test_memory_that_is_not_there_is_a_sentence_with_both_figures(void)
{
    weft_error error = {0};
    void *memory = &error;
    CHECK_EQ_INT(device->take(stream, (size_t)1 << 45, &memory, &error), WEFT_MEMORY);
    CHECK(memory == NULL);
    CHECK_TEXT(error.message, "has no 33554432.0 MiB more");
    CHECK_TEXT(error.message, "MiB are free");
}

/* A stream of its own: it is of no use afterwards. */
static void test_a_combine_that_it_does_not_know_is_the_streams_failure(void)
{
    weft_error error = {0};
    weft_stream *own = NULL;
    void *a = take(N * 4);
    const weft_combining rule = {.combine = WEFT_COMBINES + 3, .width = 1, .element = 4};
    CHECK_OK(device->stream_create(1, &own, &error), error);
    CHECK_OK(device->seat(own, 0, &error), error);
    device->identity(own, WEFT_COMPUTE, a, N, &rule);
    CHECK_EQ_INT(device->failed(own, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "not one that the device cuda knows");
    device->copy(own, WEFT_COMPUTE, a, a, 4); /* nothing more is done, and nobody hangs */
    device->wait(own, device->record(own, WEFT_COMPUTE));
    device->finish(own);
    device->stream_destroy(&own);
    CHECK(own == NULL);
    device->give(stream, a, N * 4);
}

int main(void)
{
    weft_error error = {0};
    weft_device_kind kind;
    if (cuda_device_open(&kind, &error) != WEFT_OK) {
        weft_test_skip(error.message);
        return weft_test_report();
    }
    device = weft_devices[kind];
    char text[300];
    device->describe(text, sizeof text);
    printf("%s\n", text);
    if (device->stream_create(1, &stream, &error) != WEFT_OK ||
        device->seat(stream, 0, &error) != WEFT_OK)
        puts(error.message), exit(1);
    RUN(test_bytes_come_back);
    RUN(test_what_follows_an_event_comes_after_it);
    RUN(test_old_events_stay_over);
    RUN(test_boxes_are_copied_as_on_the_host);
    RUN(test_every_combine_is_the_hosts);
    RUN(test_memory_that_is_not_there_is_a_sentence_with_both_figures);
    RUN(test_a_combine_that_it_does_not_know_is_the_streams_failure);
    device->stream_destroy(&stream);
    return weft_test_report();
}
