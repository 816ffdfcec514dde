/* readers_test: of N ranks that read for all each record is read by one, and every rank has what it would have read itself, on any mesh. A
 * reader's failure is everybody's.
 * RANKS: 2 3 4 6
 */
#include "chain.h"
#include "weft/collectives.h"
#include "weft/ops.h"

#include <stdatomic.h>

#include "test.h"

enum { BATCH = 7, WIDE = 6, RECORDS = 45, STEPS = 4, MOST_MESHES = 8 };

static weft_world world;
static atomic_int n_read;   /* records that this process was asked for */
static int64_t broken = -1; /* one that cannot be read; -1: none */

static int64_t number_of(int64_t record, int i)
{
    return record * 100 + i;
}

static weft_status read_number(const void *argument, int field, int64_t sample, void *row,
                               weft_error *error)
{
    (void)argument;
    if (sample == broken)
        return weft_fail(error, WEFT_IO, "record %lld is damaged", (long long)sample);
    if (field == 1) {
        *(int32_t *)row = (int32_t)(sample % 3);
        return WEFT_OK;
    }
    atomic_fetch_add(&n_read, 1);
    for (int i = 0; i < WIDE; i++)
        ((int64_t *)row)[i] = number_of(sample, i);
    return WEFT_OK;
}

/* ---- a program that is fed ------------------------------------------------------------------------ */

typedef struct fed {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value x, kind;
    weft_program *program;
    weft_dataset *data;
} fed;

static bool fed_open(fed *f, const char *mesh, const char *layout)
{
    static const weft_sample_field fields[] = {{"x", {"wide", WIDE}, WEFT_I64},
                                               {"kind", {NULL, 0}, WEFT_I32}};
    weft_error error = {0};
    const weft_samples_options options = {fields, 2, RECORDS, read_number, NULL, true, 3};
    *f = (fed){.graph = weft_graph_create(1)};
    f->x = weft_input(f->graph, "x", WEFT_I64, WEFT_DIMS({"batch", BATCH}, {"wide", WIDE}));
    f->kind = weft_input(f->graph, "kind", WEFT_I32, WEFT_DIMS({"batch", BATCH}));
    const weft_value sums[] = {weft_sum(WEFT_SCALAR, f->x),
                               weft_sum(WEFT_SCALAR, weft_cast(f->kind, WEFT_I64))};
    return CHECK_OK(weft_mesh_create(&world, mesh, &f->mesh, &error), error) &&
           CHECK_OK(weft_layout_create(layout, &f->layout, &error), error) &&
           CHECK_OK(
               weft_compile(f->mesh, f->layout, (weft_values){sums, 2}, NULL, &f->program, &error),
               error) &&
           CHECK_OK(weft_samples_open(&options, &f->data, &error), error);
}

static void fed_close(fed *f)
{
    weft_dataset_close(&f->data);
    weft_program_destroy(&f->program);
    weft_graph_destroy(&f->graph);
    weft_layout_destroy(&f->layout);
    weft_mesh_destroy(&f->mesh);
}

static bool fed_start(fed *f, int n_readers, int n_threads, int n_ahead)
{
    weft_error error = {0};
    const weft_feed_options feed = {n_threads, n_ahead, n_readers};
    return CHECK_OK(weft_dataset_feed(f->data, &feed, &error), error) &&
           CHECK_OK(weft_dataset_start(f->data, f->program, &error), error);
}

/* Meshes of this world, or of threads of this process. */
static int meshes(char texts[MOST_MESHES][48])
{
    static const char *const threads[] = {"data:1", "data:3", "model:2", "data:2,model:2"};
    const int n = world.n_processes;
    int count = 0;
    for (; n == 1 && count < 4; count++)
        snprintf(texts[count], 48, "%s", threads[count]);
    for (int a = 1; n > 1 && a <= n; a++)
        if (n % a == 0) snprintf(texts[count++], 48, "data:%d,model:%d", a, n / a);
    return count;
}

/* ---- the same samples, each read once --------------------------------------------------------------- */

static bool has_batch(const fed *f, int64_t first)
{
    int64_t x[BATCH * WIDE] = {0};
    int32_t kinds[BATCH] = {0};
    weft_error error = {0};
    bool is_same = true;
    if (!CHECK_OK(weft_read(f->program, f->x, WEFT_I64, x, sizeof x, &error), error) ||
        !CHECK_OK(weft_read(f->program, f->kind, WEFT_I32, kinds, sizeof kinds, &error), error))
        return false;
    for (int row = 0; row < BATCH; row++) {
        const int64_t at = first + row;
        const uint64_t key = 3 + (uint64_t)(at / RECORDS) * 0xD6E8FEB86659FD93u;
        const int64_t record = weft_permute(key, RECORDS, at % RECORDS);
        is_same = is_same && kinds[row] == (int32_t)(record % 3);
        for (int i = 0; i < WIDE; i++)
            is_same = is_same && x[row * WIDE + i] == number_of(record, i);
    }
    return is_same;
}

/* What each rank holds, not only what weft_read finds first of it. */
static void check_copies(const fed *f)
{
    weft_box box;
    const int64_t *x = weft_local(f->program, f->x, weft_mesh_first_local(f->mesh), &box);
    int64_t whole[BATCH * WIDE], n_wrong = 0;
    weft_error error = {0};
    if (!CHECK_OK(weft_read(f->program, f->x, WEFT_I64, whole, sizeof whole, &error), error))
        return;
    for (int64_t row = box.begin[0]; x != NULL && row < box.end[0]; row++)
        for (int64_t i = box.begin[1]; i < box.end[1]; i++)
            n_wrong += *x++ != whole[row * WIDE + i];
    CHECK_EQ_INT(n_wrong, 0);
}

static void check_batches(const fed *f, int64_t first)
{
    weft_error error = {0};
    weft_dataset_seek(f->data, first);
    for (int step = 0; step < STEPS; step++) {
        if (!CHECK_OK(weft_dataset_next(f->data, f->program, &error), error)) return;
        CHECK(has_batch(f, first + step * BATCH));
        check_copies(f);
    }
}

static void test_samples_are_the_same_with_any_number_of_readers(void)
{
    static const char *const layouts[] = {"", "batch:data", "batch:data,wide:model", "batch:model"};
    char texts[MOST_MESHES][48];
    const int n_meshes = meshes(texts);
    for (int m = 0; m < n_meshes; m++)
        for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
            fed f;
            char layout[80];
            snprintf(layout, sizeof layout, "%s", layouts[l]); /* of axes that are there */
            if ((strstr(layout, "model") && !strstr(texts[m], "model")) ||
                (strstr(layout, "data") && !strstr(texts[m], "data")))
                continue;
            for (int n = 0; fed_open(&f, texts[m], layout) && n <= weft_mesh_n_ranks(f.mesh); n++) {
                if (fed_start(&f, n, 1 + n % 3, 1 + n % 2)) {
                    check_batches(&f, 0);
                    check_batches(&f, 1000003);
                }
                fed_close(&f);
            }
            fed_close(&f);
        }
}

static bool is_reader(int rank, int n, int n_ranks)
{
    bool is = false;
    for (int k = 0; k < n; k++)
        is = is || k * n_ranks / n == rank;
    return is;
}

/* A process that does not read is asked for nothing; one that does, for its part of the batches handed over and of those ahead. Threads of
 * one process have in common what it reads, whatever n. */
static void test_each_record_is_read_once(void)
{
    enum { AHEAD = 2 };
    char mesh[48];
    const bool is_alone = world.n_processes == 1;
    const int n_ranks = is_alone ? 3 : world.n_processes;
    snprintf(mesh, sizeof mesh, "model:%d", n_ranks);
    for (int n = 1; n <= n_ranks; n++) {
        fed f;
        const int block = is_alone ? BATCH : (BATCH + n - 1) / n;
        const bool reads = is_alone || is_reader(world.process, n, n_ranks);
        atomic_store(&n_read, 0);
        if (fed_open(&f, mesh, is_alone ? "" : "wide:model") && fed_start(&f, n, 2, AHEAD))
            check_batches(&f, 0);
        fed_close(&f);
        CHECK(atomic_load(&n_read) <= (reads ? block * (STEPS + AHEAD) : 0));
    }
}

static void test_a_run_goes_on_with_others_that_read(void)
{
    char texts[MOST_MESHES][48];
    const int n_meshes = meshes(texts);
    for (int m = 0; m < n_meshes; m++) {
        fed f;
        weft_error error = {0};
        int64_t at = 0;
        for (int n = 4; n >= 0; n--) {
            if (!fed_open(&f, texts[m], "")) break;
            const int most = weft_mesh_n_ranks(f.mesh);
            weft_dataset_seek(f.data, at);
            if (fed_start(&f, n < most ? n : most, 1, 1) &&
                CHECK_OK(weft_dataset_next(f.data, f.program, &error), error))
                CHECK(has_batch(&f, at));
            at = weft_dataset_position(f.data);
            fed_close(&f);
        }
        CHECK_EQ_INT(at, 5 * BATCH);
    }
}

/* ---- failure --------------------------------------------------------------------------------------- */

/* The next call tries again. */
static void test_what_a_reader_cannot_read_nobody_gets(void)
{
    char texts[MOST_MESHES][48];
    const int n_meshes = meshes(texts);
    for (int m = 0; m < n_meshes; m++)
        for (int n = 1; n <= 2; n++) {
            fed f;
            weft_error error = {0}, again = {0}, none = {0};
            broken = weft_permute(3, RECORDS, BATCH + 5); /* in the second batch */
            char expected[80];
            snprintf(expected, sizeof expected, "record %lld is damaged", (long long)broken);
            if (fed_open(&f, texts[m], "") && weft_mesh_n_ranks(f.mesh) >= n &&
                fed_start(&f, n, 2, 2)) {
                CHECK_OK(weft_dataset_next(f.data, f.program, &none), none);
                CHECK_EQ_INT(weft_dataset_next(f.data, f.program, &error), WEFT_IO);
                CHECK_TEXT(error.message, expected);
                CHECK_EQ_INT(weft_dataset_next(f.data, f.program, &again), WEFT_IO);
                CHECK_TEXT(again.message, expected);
                CHECK_EQ_INT(weft_dataset_position(f.data), BATCH);
                check_batches(&f, 2 * BATCH); /* others are there */
            }
            broken = -1;
            fed_close(&f);
        }
}

static void test_ranks_that_say_other_readers_are_told(void)
{
    fed f;
    weft_error error = {0};
    char mesh[48];
    snprintf(mesh, sizeof mesh, "model:%d", world.n_processes);
    if (fed_open(&f, mesh, "") && fed_start(&f, world.process == 0 ? 2 : 1, 1, 1)) {
        CHECK_EQ_INT(weft_dataset_next(f.data, f.program, &error), WEFT_MISMATCH);
        CHECK_TEXT(error.message, "readers is 2 at rank 0 and 1 at rank 1");
    }
    fed_close(&f);
}

static void test_more_readers_than_ranks_are_refused(void)
{
    fed f;
    weft_error many = {0}, below = {0}, late = {0};
    char texts[MOST_MESHES][48], expected[120];
    (void)meshes(texts);
    if (fed_open(&f, texts[0], "")) {
        const int n = weft_mesh_n_ranks(f.mesh);
        const weft_feed_options feed = {1, 1, n + 1}, none = {1, 1, -1};
        snprintf(expected, sizeof expected, "%d readers on mesh %s, which has %d rank", n + 1,
                 weft_mesh_text(f.mesh), n);
        CHECK_EQ_INT(weft_dataset_feed(f.data, &none, &below), WEFT_USAGE);
        CHECK_TEXT(below.message, "-1 readers; from 1 to all ranks");
        CHECK_OK(weft_dataset_feed(f.data, &feed, &many), many);
        CHECK_EQ_INT(weft_dataset_start(f.data, f.program, &many), WEFT_USAGE);
        CHECK_TEXT(many.message, expected);
        if (fed_start(&f, n, 1, 1)) {
            CHECK_EQ_INT(weft_dataset_feed(f.data, &feed, &late), WEFT_USAGE);
            CHECK_TEXT(late.message, "has been started");
        }
    }
    fed_close(&f);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_samples_are_the_same_with_any_number_of_readers);
        RUN(test_each_record_is_read_once);
        RUN(test_a_run_goes_on_with_others_that_read);
        RUN(test_what_a_reader_cannot_read_nobody_gets);
        if (world.n_processes > 1) RUN(test_ranks_that_say_other_readers_are_told);
        RUN(test_more_readers_than_ranks_are_refused);
    }
    weft_world_close();
    return weft_test_report();
}
