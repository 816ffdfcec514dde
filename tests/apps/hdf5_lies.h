/* hdf5_lies.h: what a process may say that reads an HDF5 file for weft and is not to be believed: it lies, crashes, spins, eats
 * memory or says nothing. */
#ifndef TEST_HDF5_LIES_H
#define TEST_HDF5_LIES_H

#include "io/apart/stream.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static void say(stream_kind kind, const void *body, size_t bytes)
{
    const stream_head head = {(uint32_t)kind, (uint32_t)bytes};
    if (write(1, &head, sizeof head) != (ssize_t)sizeof head ||
        (bytes > 0 && write(1, body, bytes) != (ssize_t)bytes))
        _exit(9);
}

static stream_tensor tensor_of(const char *name, int64_t size)
{
    stream_tensor t;
    memset(&t, 0, sizeof t);
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.dims, sizeof t.dims, "row");
    snprintf(t.type, sizeof t.type, "f32");
    t.dtype = WEFT_F32;
    t.n_dims = 1;
    t.sizes[0] = size;
    return t;
}

/* Say one tensor of two f32, its state, and `bytes` of it. */
static void say_tensor(const stream_tensor *t, size_t bytes, bool is_ended)
{
    static const float numbers[2] = {1, 2};
    const stream_state state = {7, 8, 9, ""};
    say(STREAM_TENSOR, t, sizeof *t);
    say(STREAM_STATE, &state, sizeof state);
    if (bytes > 0) say(STREAM_BYTES, numbers, bytes);
    if (is_ended) say(STREAM_END, NULL, 0);
}

static void truth(void)
{
    const stream_tensor t = tensor_of("w", 2);
    say_tensor(&t, 8, true);
}

/* It has nothing of ours: no environment, nothing open. */
static void look_around(void)
{
    const bool is_clean = getenv("HDF5_PLUGIN_PATH") == NULL && getenv("PATH") == NULL &&
                          fcntl(3, F_GETFD) < 0 && fcntl(4, F_GETFD) < 0 && fcntl(7, F_GETFD) < 0;
    if (is_clean) truth();
}

static void crash(void)
{
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's own would end it otherwise */
    raise(SIGSEGV);
}

static void spin(void)
{
    for (volatile int i = 0;; i = !i) {
    }
}

static void be_quiet(void)
{
    pause();
}

static void eat(void)
{
    for (volatile char *last = NULL;;) {
        volatile char *next = malloc(16 << 20);
        if (next == NULL) _exit(last ? 5 : 6);
        next[0] = 1;
        last = next;
    }
}

static void write_a_file(void)
{
    const int file = open("/tmp/weft-never", O_CREAT | O_WRONLY, 0600);
    signal(SIGXFSZ, SIG_DFL);
    unlink("/tmp/weft-never");
    if (write(file, "x", 1) == 1) _exit(0);
}

static void fork_on(void) /* a process of its own that lives on and holds the pipe */
{
    if (fork() != 0) return;
    alarm(5); /* it is nobody's child any more */
    pause();
}

static void say_odd_kind(void)
{
    say((stream_kind)77, NULL, 0);
}

static void say_nine_dims(void)
{
    stream_tensor t = tensor_of("w", 2);
    t.n_dims = 9;
    say_tensor(&t, 8, true);
}

static void say_negative_size(void)
{
    const stream_tensor t = tensor_of("w", -2);
    say_tensor(&t, 8, true);
}

static void say_overflow(void)
{
    stream_tensor t = tensor_of("w", INT64_C(1) << 40);
    t.n_dims = 4;
    t.sizes[1] = t.sizes[2] = t.sizes[3] = t.sizes[0];
    say_tensor(&t, 8, true);
}

static void say_too_much(void)
{
    const stream_tensor t = tensor_of("w", 17 << 20); /* 68 MiB of a file of no bytes */
    say_tensor(&t, 8, true);
}

static void say_much_in_pieces(void)
{
    for (int i = 0; i < 70; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        const stream_tensor t = tensor_of(name, 1 << 18);
        say(STREAM_TENSOR, &t, sizeof t);
    }
    const stream_state state = {7, 8, 9};
    say(STREAM_STATE, &state, sizeof state);
    pause();
}

/* Of sizes that cannot be, which nobody looks at then. */
static void say_problem(void)
{
    stream_tensor t = tensor_of("w", -7);
    strcpy(t.problem, "is odd");
    say_tensor(&t, 0, true);
}

static void say_odd_problem(void)
{
    stream_tensor t = tensor_of("w", 2);
    strcpy(t.problem, "is\033[2J odd");
    say_tensor(&t, 0, true);
}

static void say_no_dtype(void)
{
    stream_tensor t = tensor_of("w", 2);
    t.dtype = WEFT_DTYPES;
    say_tensor(&t, 8, true);
}

static void say_endless_name(void)
{
    stream_tensor t = tensor_of("w", 2);
    memset(t.name, 'w', sizeof t.name);
    say_tensor(&t, 8, true);
}

static void say_hidden_name(void)
{
    stream_tensor t = tensor_of("w", 2);
    t.name[3] = 'x';
    say_tensor(&t, 8, true);
}

static void say_control(void)
{
    const stream_tensor t = tensor_of("w\033[2J", 2);
    say_tensor(&t, 8, true);
}

static void say_dots(void)
{
    const stream_tensor t = tensor_of("a/../w", 2);
    say_tensor(&t, 8, true);
}

static void say_no_utf8(void)
{
    const stream_tensor t = tensor_of("w\377", 2);
    say_tensor(&t, 8, true);
}

static void say_twice(void)
{
    const stream_tensor t = tensor_of("w", 2);
    say(STREAM_TENSOR, &t, sizeof t);
    say_tensor(&t, 8, true);
}

static void say_short_frame(void)
{
    const stream_tensor t = tensor_of("w", 2);
    say_tensor(&t, 4, true);
}

static void say_long_frame(void)
{
    const stream_tensor t = tensor_of("w", 1);
    say_tensor(&t, 8, true);
}

static void say_no_end(void)
{
    const stream_tensor t = tensor_of("w", 2);
    say_tensor(&t, 8, false);
}

static void say_nothing(void)
{
}

static void say_none(void)
{
    const stream_state state = {7, 8, 9, ""};
    say(STREAM_STATE, &state, sizeof state);
    say(STREAM_END, NULL, 0);
}

static void say_too_many(void)
{
    for (int i = 0; i <= CARRY_MOST_TENSORS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        const stream_tensor t = tensor_of(name, 1);
        say(STREAM_TENSOR, &t, sizeof t);
    }
}

static void say_endless_refusal(void)
{
    stream_refusal r;
    memset(&r, 'a', sizeof r);
    say(STREAM_REFUSED, &r, sizeof r);
}

static void say_long_refusal(void)
{
    stream_refusal r = {0};
    memset(r.sentence, 'a', sizeof r.sentence - 1);
    say(STREAM_REFUSED, &r, sizeof r);
}

static const struct {
    const char *name;
    void (*say)(void);
    weft_status status; /* what comes of it */
    const char *fact;
} lies[] = {
    {"truth", truth, WEFT_OK, ""},
    {"look", look_around, WEFT_OK, ""},
    {"crash", crash, WEFT_CORRUPT, "crashed (Segmentation fault)"},
    {"quiet", be_quiet, WEFT_CORRUPT, "no progress"},
    {"file", write_a_file, WEFT_CORRUPT, "crashed (File size limit exceeded)"},
    {"fork", fork_on, WEFT_CORRUPT, "no progress"},
    {"kind", say_odd_kind, WEFT_CORRUPT, "out of turn"},
    {"nine", say_nine_dims, WEFT_CORRUPT, "cannot be"},
    {"negative", say_negative_size, WEFT_CORRUPT, "cannot be"},
    {"overflow", say_overflow, WEFT_USAGE, "more than 2^50 elements"},
    {"much", say_too_much, WEFT_USAGE, "so much is not taken out of so little"},
    {"pieces", say_much_in_pieces, WEFT_USAGE, "up to w64"},
    {"problem", say_problem, WEFT_USAGE, "empty.h5 is odd; a map can leave it"},
    {"odd-problem", say_odd_problem, WEFT_CORRUPT, "cannot be"},
    {"dtype", say_no_dtype, WEFT_CORRUPT, "cannot be"},
    {"endless", say_endless_name, WEFT_CORRUPT, "cannot be"},
    {"hidden", say_hidden_name, WEFT_CORRUPT, "cannot be"},
    {"control", say_control, WEFT_CORRUPT, "cannot be"},
    {"dots", say_dots, WEFT_USAGE, "\"..\""},
    {"utf8", say_no_utf8, WEFT_USAGE, "UTF-8"},
    {"twice", say_twice, WEFT_USAGE, "twice"},
    {"short", say_short_frame, WEFT_CORRUPT, "out of turn"},
    {"long", say_long_frame, WEFT_CORRUPT, "out of turn"},
    {"no-end", say_no_end, WEFT_CORRUPT, "ended too early"},
    {"nothing", say_nothing, WEFT_CORRUPT, "ended too early"},
    {"none", say_none, WEFT_USAGE, "no tensors"},
    {"many", say_too_many, WEFT_USAGE, "more than 16384"},
    {"refusal", say_endless_refusal, WEFT_CORRUPT, "no sentence"},
    {"words", say_long_refusal, WEFT_USAGE, "aaaa"},
};
enum { N_LIES = sizeof lies / sizeof *lies };

#endif
