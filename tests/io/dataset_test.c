/* dataset_test: every mesh and layout sees the same samples at the same step, none twice in an
 * epoch. */
#include "weft/collectives.h"
#include "weft/io.h"
#include "weft/ops.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { SEQ = 5, BATCH = 3, WINDOWS = 10, BYTES = SEQ * WINDOWS + 1, STEPS = 7 };
static char path[] = "/tmp/weft-text-XXXXXX";
static weft_dtype token_dtype = WEFT_I32; /* of the inputs */
static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};

typedef struct feed {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value tokens, targets, sum;
    weft_program *program;
    weft_dataset *data;
} feed;

static bool feed_open(feed *f, const char *mesh, const char *layout, int64_t seq, weft_error *error)
{
    const weft_dim batch = {"batch", BATCH}, time = {"seq", seq};
    *f = (feed){.graph = weft_graph_create(1)};
    f->tokens = weft_input(f->graph, "tokens", token_dtype, WEFT_DIMS(batch, time));
    f->targets = weft_input(f->graph, "targets", token_dtype, WEFT_DIMS(batch, time));
    weft_value both = weft_add(weft_cast(f->tokens, WEFT_F64), weft_cast(f->targets, WEFT_F64));
    f->sum = weft_sum(WEFT_SCALAR, both);
    if (!CHECK_OK(weft_mesh_create(&alone, mesh, &f->mesh, error), *error)) return false;
    if (!CHECK_OK(weft_layout_create(layout, &f->layout, error), *error)) return false;
    if (!CHECK_OK(weft_compile(f->mesh, f->layout, WEFT_VALUES(f->sum), NULL, &f->program, error),
                  *error))
        return false;
    return CHECK_OK(weft_text_open(path, SEQ, 9, &f->data, error), *error);
}

static void feed_close(feed *f)
{
    weft_dataset_close(&f->data);
    weft_program_destroy(&f->program);
    weft_graph_destroy(&f->graph);
    weft_layout_destroy(&f->layout);
    weft_mesh_destroy(&f->mesh);
}

static bool read_tokens(feed *f, weft_value input, int64_t tokens[BATCH * SEQ])
{
    weft_error error = {0};
    int64_t raw[BATCH * SEQ];
    const int64_t bytes = BATCH * SEQ * (int64_t)weft_dtype_bytes(token_dtype);
    if (!CHECK_OK(weft_read(f->program, input, token_dtype, raw, bytes, &error), error))
        return false;
    for (int i = 0; i < BATCH * SEQ; i++)
        tokens[i] = (int64_t)weft_dtype_get(token_dtype, raw, i);
    return true;
}

/* The windows of STEPS batches: tokens[step][row] is the number of the window. -1: not a window of
 * the file. */
static void read_windows(feed *f, int windows[STEPS * BATCH])
{
    weft_error error = {0};
    int64_t tokens[BATCH * SEQ] = {0}, targets[BATCH * SEQ] = {0};
    if (!CHECK_OK(weft_dataset_start(f->data, f->program, &error), error)) return;
    for (int step = 0; step < STEPS; step++) {
        CHECK_OK(weft_dataset_next(f->data, f->program, &error), error);
        if (!read_tokens(f, f->tokens, tokens) || !read_tokens(f, f->targets, targets)) return;
        for (int row = 0; row < BATCH; row++) {
            const int64_t first = tokens[row * SEQ];
            bool is_window = first % SEQ == 0;
            for (int i = 0; i < SEQ; i++)
                is_window = is_window && tokens[row * SEQ + i] == first + i &&
                            targets[row * SEQ + i] == first + i + 1;
            windows[step * BATCH + row] = is_window ? (int)first / SEQ : -1;
        }
    }
}

static void test_epochs_show_every_window_once(void)
{
    feed f;
    weft_error error = {0};
    int windows[STEPS * BATCH] = {0}, seen[2][WINDOWS] = {{0}}, same_place = 0;
    if (feed_open(&f, "data:1", "", SEQ, &error)) {
        read_windows(&f, windows);
        for (int i = 0; i < 2 * WINDOWS; i++) {
            if (CHECK(windows[i] >= 0 && windows[i] < WINDOWS)) seen[i / WINDOWS][windows[i]]++;
            same_place += i < WINDOWS && windows[i] == windows[i + WINDOWS];
        }
        for (int w = 0; w < WINDOWS; w++)
            CHECK(seen[0][w] == 1 && seen[1][w] == 1);
        CHECK(same_place < WINDOWS);
    }
    feed_close(&f);
}

static void test_layouts_see_the_same_samples(void)
{
    static const char *const cases[][2] = {{"data:2", "batch:data"},
                                           {"data:4", "batch:data"},
                                           {"model:2", "seq:model"},
                                           {"data:2", ""},
                                           {"data:2,model:3", "batch:data,seq:model"}};
    feed f;
    weft_error error = {0};
    int expected[STEPS * BATCH], windows[STEPS * BATCH];
    if (feed_open(&f, "data:1", "", SEQ, &error)) read_windows(&f, expected);
    feed_close(&f);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (feed_open(&f, cases[c][0], cases[c][1], SEQ, &error)) {
            read_windows(&f, windows);
            CHECK(memcmp(windows, expected, sizeof windows) == 0);
        }
        feed_close(&f);
    }
}

/* A part has its own permutation, of its own windows, each once an epoch; two that share none have all together. */
static void test_a_part_has_its_own_windows_alone(void)
{
    enum { KEPT = WINDOWS - WINDOWS / 4 };
    static const int64_t parts[2][2] = {{0, KEPT}, {KEPT, WINDOWS - KEPT}};
    int windows[STEPS * BATCH] = {0}, seen[WINDOWS] = {0};
    weft_error error = {0};
    for (int p = 0; p < 2; p++) {
        feed f;
        if (feed_open(&f, "data:2", "batch:data", SEQ, &error)) {
            const int64_t first = parts[p][0], n = parts[p][1];
            CHECK_EQ_INT(weft_dataset_take(f.data, WINDOWS, 1, &error), WEFT_USAGE);
            CHECK_TEXT(error.message, "1 samples from sample ");
            error = (weft_error){0};
            CHECK_EQ_INT(weft_dataset_take(f.data, 1, WINDOWS, NULL), WEFT_USAGE);
            CHECK_EQ_INT(weft_dataset_take(f.data, -1, 1, NULL), WEFT_USAGE);
            CHECK_EQ_INT(weft_dataset_take(f.data, 0, 0, NULL), WEFT_USAGE);
            CHECK_OK(weft_dataset_take(f.data, 0, WINDOWS, &error), error);
            CHECK(strstr(weft_dataset_facts(f.data), "part: ") == NULL); /* it is all of it */
            CHECK_OK(weft_dataset_take(f.data, first, n, &error), error);
            CHECK(strstr(weft_dataset_facts(f.data), "part: ") != NULL);
            CHECK_EQ_INT(weft_dataset_samples(f.data), n);
            read_windows(&f, windows);
            for (int i = 0; i < n; i++)
                if (CHECK(windows[i] >= first && windows[i] < first + n)) seen[windows[i]]++;
            CHECK_EQ_INT(weft_dataset_take(f.data, 0, 1, NULL), WEFT_USAGE); /* it reads */
        }
        feed_close(&f);
    }
    for (int w = 0; w < WINDOWS; w++)
        CHECK_EQ_INT(seen[w], 1);
}

/* FIRST and so on, of two bytes each. */
enum { FIRST = 300 };
static bool write_tokens(const char *to, int32_t said)
{
    const int32_t head[WEFT_TOKENS_HEAD] = {WEFT_TOKENS_MAGIC, WEFT_TOKENS_VERSION, said};
    uint16_t tokens[BYTES];
    for (int i = 0; i < BYTES; i++)
        tokens[i] = (uint16_t)(FIRST + i);
    FILE *file = fopen(to, "wb");
    return file != NULL && fwrite(head, sizeof head, 1, file) == 1 &&
           fwrite(tokens, sizeof tokens, 1, file) == 1 && fclose(file) == 0;
}

static void check_tokens(const char *file, const char *mesh, const char *layout)
{
    feed f;
    weft_error error = {0};
    int expected[STEPS * BATCH], windows[STEPS * BATCH] = {0};
    if (feed_open(&f, "data:1", "", SEQ, &error)) read_windows(&f, expected);
    feed_close(&f);
    if (feed_open(&f, mesh, layout, SEQ, &error)) {
        weft_dataset_close(&f.data);
        if (CHECK_OK(weft_tokens_open(file, FIRST + BYTES, SEQ, 9, &f.data, &error), error))
            read_windows(&f, windows);
        for (int i = 0; i < STEPS * BATCH; i++)
            CHECK_EQ_INT(windows[i], expected[i] + FIRST / SEQ);
    }
    feed_close(&f);
}

static void test_words_come_as_bytes_do(void)
{
    char file[sizeof path + sizeof ".tokens"];
    snprintf(file, sizeof file, "%s.tokens", path);
    if (!CHECK(write_tokens(file, BYTES))) return;
    for (int wide = 0; wide < 2; wide++) {
        token_dtype = wide ? WEFT_I64 : WEFT_I32;
        check_tokens(file, "data:1", "");
        check_tokens(file, "data:2,model:3", "batch:data,seq:model");
    }
    token_dtype = WEFT_I32;
    unlink(file);
}

static weft_status next_of_words(feed *f, const char *file, int64_t n_words, weft_error *error)
{
    *error = (weft_error){0};
    weft_dataset_close(&f->data);
    WEFT_TRY(weft_tokens_open(file, n_words, SEQ, 9, &f->data, error));
    WEFT_TRY(weft_dataset_start(f->data, f->program, error));
    for (int step = 0; step < STEPS; step++)
        WEFT_TRY(weft_dataset_next(f->data, f->program, error));
    return WEFT_OK;
}

static void test_tokens_that_cannot_serve(void)
{
    feed f;
    weft_error error = {0};
    char file[sizeof path + sizeof ".tokens"];
    snprintf(file, sizeof file, "%s.tokens", path);
    if (feed_open(&f, "data:2", "batch:data", SEQ, &error) && CHECK(write_tokens(file, BYTES))) {
        CHECK_EQ_INT(next_of_words(&f, file, FIRST + BYTES - 1, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "token 50 is 350, and there are 350 words, 0 to 349");
        CHECK_EQ_INT(next_of_words(&f, file, FIRST + 7, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "token 7 is 307, and there are 307 words, 0 to 306");
        CHECK_EQ_INT(next_of_words(&f, path, FIRST, &error), WEFT_IO);
        CHECK_TEXT(error.message, "does not begin as one");
        CHECK_EQ_INT(next_of_words(&f, file, 65537, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "65537 words");
        CHECK(write_tokens(file, BYTES + 1));
        CHECK_EQ_INT(next_of_words(&f, file, FIRST, &error), WEFT_IO);
        CHECK_TEXT(error.message, "not as many as it says");
    }
    feed_close(&f);
    unlink(file);
}

/* Bytes are ids too, of a net that has rows for fewer. */
static void test_bytes_beyond_a_vocabulary_are_found(void)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    if (!CHECK_OK(weft_text_open(path, SEQ, 9, &data, &error), error)) return;
    CHECK_OK(weft_dataset_bound(data, "tokens", BYTES, 0, &error), error);
    CHECK_EQ_INT(weft_dataset_bound(data, "targets", BYTES - 1, 0, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, ": byte 50 is 50, and there are 50 ids, 0 to 49");
    error = (weft_error){0};
    CHECK_OK(weft_dataset_bound(data, "tokens", BYTES - 1, 0, &error),
             error); /* all but the last */
    CHECK_EQ_INT(weft_dataset_bound(data, "targets", BYTES - 1, 0, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, ": byte 50 is 50, and there are 50 ids, 0 to 49");
    error = (weft_error){0};
    CHECK_EQ_INT(weft_dataset_bound(data, "tokens", BYTES - 2, 0, &error), WEFT_USAGE);
    CHECK_EQ_INT(weft_dataset_bound(data, "targets", BYTES - 2, 0, NULL), WEFT_USAGE);
    error = (weft_error){0};
    CHECK_EQ_INT(weft_dataset_bound(data, "label", 3, 0, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "no input named label");
    weft_dataset_close(&data);
}

static void test_seek_goes_back(void)
{
    feed f;
    weft_error error = {0};
    int first[STEPS * BATCH], again[STEPS * BATCH];
    if (feed_open(&f, "data:2", "batch:data", SEQ, &error)) {
        read_windows(&f, first);
        CHECK_EQ_INT(weft_dataset_position(f.data), STEPS * BATCH);
        weft_dataset_seek(f.data, 0);
        read_windows(&f, again);
        CHECK(memcmp(first, again, sizeof first) == 0);
    }
    feed_close(&f);
}

static void test_inputs_that_do_not_fit(void)
{
    feed f;
    weft_error error = {0};
    if (feed_open(&f, "data:1", "", SEQ + 1, &error)) {
        CHECK_EQ_INT(weft_dataset_start(f.data, f.program, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "seq:6");
        CHECK_TEXT(error.message, "seq:5");
    }
    feed_close(&f);
}

static void test_file_that_shrinks_is_an_error(void)
{
    feed f;
    weft_error error = {0};
    if (feed_open(&f, "data:2", "batch:data", SEQ, &error)) {
        CHECK_EQ_INT(truncate(path, SEQ), 0);
        CHECK_OK(weft_dataset_start(f.data, f.program, &error), error);
        weft_status status = WEFT_OK;
        for (int step = 0; step < STEPS && status == WEFT_OK; step++)
            status = weft_dataset_next(f.data, f.program, &error);
        CHECK_EQ_INT(status, WEFT_IO);
        CHECK_TEXT(error.message, "ends at byte");
    }
    feed_close(&f);
}

static void test_text_files_that_cannot_serve(void)
{
    weft_error missing = {0}, directory = {0}, short_one = {0}, empty = {0};
    weft_dataset *data = NULL;
    CHECK_EQ_INT(weft_text_open("/nonexistent/book.txt", 4, 1, &data, &missing), WEFT_IO);
    CHECK_TEXT(missing.message, "No such file");
    CHECK_EQ_INT(weft_text_open("/tmp", 4, 1, &data, &directory), WEFT_IO);
    CHECK_TEXT(directory.message, "directory");
    CHECK_EQ_INT(weft_text_open(path, SEQ, 1, &data, &short_one), WEFT_USAGE); /* shrunk above */
    CHECK_TEXT(short_one.message, "5 bytes");
    CHECK_EQ_INT(truncate(path, 0), 0);
    CHECK_EQ_INT(weft_text_open(path, SEQ, 1, &data, &empty), WEFT_IO);
    CHECK_TEXT(empty.message, "empty");
    CHECK(data == NULL);
}

int main(void)
{
    unsigned char bytes[BYTES];
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)i;
    const int file = mkstemp(path);
    if (CHECK(file >= 0 && write(file, bytes, BYTES) == BYTES)) {
        RUN(test_epochs_show_every_window_once);
        RUN(test_layouts_see_the_same_samples);
        RUN(test_a_part_has_its_own_windows_alone);
        RUN(test_words_come_as_bytes_do);
        RUN(test_tokens_that_cannot_serve);
        RUN(test_bytes_beyond_a_vocabulary_are_found);
        RUN(test_seek_goes_back);
        RUN(test_inputs_that_do_not_fit);
        RUN(test_file_that_shrinks_is_an_error);
        RUN(test_text_files_that_cannot_serve);
    }
    if (file >= 0) close(file);
    unlink(path);
    return weft_test_report();
}
