/* RANKS: 2 4 */
/* samples_test: samples that a function makes: every rank gets its part of each field, split along the batch or along a row, in the
 * order that the seed says; a failure of the function is everybody's; what is told wrongly is one sentence.
 */
#include "weft/io.h"
#include "oracle.h"
#include "weft/ops.h"

#include <string.h>
#include <unistd.h>

#include "test.h"

enum { BATCH = 5, WIDE = 7, SAMPLES = 12, STEPS = 6 };
enum { SLOW = 1000 };     /* `failing`: sample 0 fails, after a while */
static atomic_int n_slow; /* times that it began to */
static const weft_dim batch = {"batch", BATCH}, letter = {"letter", WIDE}, point = {"point", 3};
static weft_oracle oracle;

/* Field, sample and place can be read off every number. */
static double number(int field, int64_t sample, int i)
{
    return 1000 * field + 10 * (double)sample + i;
}

static weft_status read_row(const void *argument, int field, int64_t sample, void *row,
                            weft_error *error)
{
    const int64_t *failing = argument;
    if (failing != NULL && *failing == SLOW && sample == 0) {
        atomic_fetch_add(&n_slow, 1);
        usleep(100000);
    }
    if (failing != NULL && (sample == *failing || (*failing == SLOW && sample == 0)))
        return weft_fail(error, WEFT_IO, "sample %lld is not there", (long long)sample);
    if (failing != NULL && sample == -*failing) return WEFT_IO; /* and not a word */
    for (int i = 0; i < (field == 0 ? WIDE : field == 1 ? 3 : 1); i++) {
        if (field == 1)
            ((double *)row)[i] = number(field, sample, i);
        else
            ((int32_t *)row)[i] = (int32_t)number(field, sample, i);
    }
    return WEFT_OK;
}

/* Names that are gone when the dataset is started. */
static weft_status open_samples(bool is_shuffled, const int64_t *failing, weft_dataset **data,
                                weft_error *error)
{
    char names[5][10] = {"word", "where", "label", "letter", "point"};
    const weft_sample_field fields[] = {{names[0], {names[3], WIDE}, WEFT_I32},
                                        {names[1], {names[4], 3}, WEFT_F64},
                                        {names[2], {NULL, 0}, WEFT_I32}};
    const weft_status status = weft_samples_open(
        &(weft_samples_options){fields, 3, SAMPLES, read_row, failing, is_shuffled, 5}, data,
        error);
    memset(names, '?', sizeof names);
    return status;
}

typedef struct feed {
    weft_graph *graph;
    weft_value word, where, label;
    weft_program *program;
    weft_dataset *data;
} feed;

static bool feed_open(feed *f, weft_mesh *mesh, const char *layout_text, bool is_shuffled,
                      const int64_t *failing)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_graph *g = weft_graph_create(1);
    *f = (feed){.graph = g};
    f->word = weft_input(g, "word", WEFT_I32, WEFT_DIMS(batch, letter));
    f->where = weft_input(g, "where", WEFT_F64, WEFT_DIMS(batch, point));
    f->label = weft_input(g, "label", WEFT_I32, WEFT_DIMS(batch));
    const weft_value all =
        weft_group(g, WEFT_VALUES(weft_sum(WEFT_SCALAR, f->word), weft_sum(WEFT_SCALAR, f->where),
                                  weft_sum(WEFT_SCALAR, f->label)));
    weft_status status = weft_layout_create(layout_text, &layout, &error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(all), NULL, &f->program, &error);
    if (status == WEFT_OK) status = open_samples(is_shuffled, failing, &f->data, &error);
    if (status == WEFT_OK) status = weft_dataset_start(f->data, f->program, &error);
    weft_layout_destroy(&layout);
    return CHECK_OK(status, error);
}

static void feed_close(feed *f)
{
    weft_dataset_close(&f->data);
    weft_program_destroy(&f->program);
    weft_graph_destroy(&f->graph);
}

/* The samples of the next batch; every number is that of its field, sample and place. */
static bool next(feed *f, int64_t samples[BATCH])
{
    int32_t word[BATCH][WIDE], label[BATCH];
    double where[BATCH][3];
    weft_error error = {0};
    bool same = true;
    if (!CHECK_OK(weft_dataset_next(f->data, f->program, &error), error) ||
        !CHECK_OK(weft_read(f->program, f->word, WEFT_I32, word, sizeof word, &error), error) ||
        !CHECK_OK(weft_read(f->program, f->where, WEFT_F64, where, sizeof where, &error), error) ||
        !CHECK_OK(weft_read(f->program, f->label, WEFT_I32, label, sizeof label, &error), error))
        return false;
    for (int b = 0; b < BATCH; b++) {
        samples[b] = word[b][0] / 10;
        for (int i = 0; i < WIDE; i++)
            same = same && word[b][i] == (int32_t)number(0, samples[b], i);
        for (int i = 0; i < 3; i++)
            same = same && where[b][i] == number(1, samples[b], i);
        same = same && label[b] == (int32_t)number(2, samples[b], 0);
    }
    return CHECK(same);
}

static void test_every_rank_gets_its_part_of_each_field(void)
{
    static const char *const layouts[] = {"", "batch:d", "letter:d,point:d", "batch:d,letter:d"};
    for (int m = -1; m < oracle.n_meshes; m++) {
        for (int i = 0; i < (m < 0 ? 1 : 4); i++) {
            feed f;
            int64_t samples[BATCH] = {0};
            if (feed_open(&f, m < 0 ? oracle.alone : oracle.meshes[m], layouts[i], false, NULL))
                for (int step = 0; step < STEPS && next(&f, samples); step++)
                    for (int b = 0; b < BATCH; b++)
                        CHECK_EQ_INT((int)samples[b], (step * BATCH + b) % SAMPLES);
            feed_close(&f);
        }
    }
}

static void test_an_epoch_has_every_sample_once(void)
{
    feed f;
    int64_t samples[SAMPLES * BATCH];
    bool is_in_order = true;
    if (feed_open(&f, oracle.alone, "", true, NULL)) {
        for (int step = 0; step < SAMPLES; step++)
            if (!next(&f, samples + step * BATCH)) break;
        for (int epoch = 0; epoch < BATCH; epoch++) {
            unsigned seen = 0;
            for (int i = 0; i < SAMPLES; i++) {
                seen |= 1u << samples[epoch * SAMPLES + i];
                is_in_order = is_in_order && samples[epoch * SAMPLES + i] == i;
            }
            CHECK_EQ_INT((int)seen, (1 << SAMPLES) - 1);
        }
        CHECK(!is_in_order);
    }
    feed_close(&f);
}

/* Sample 6 is in the second batch, on one rank where the batch is split. */
static void test_a_failure_is_everybodys(void)
{
    static const int64_t failing[2] = {6, -6};
    for (int m = 0; m < 2 * oracle.n_meshes; m++) {
        feed f;
        int64_t samples[BATCH];
        weft_error error = {0};
        if (feed_open(&f, oracle.meshes[m / 2], "batch:d", false, &failing[m % 2]) &&
            next(&f, samples)) {
            CHECK_EQ_INT(weft_dataset_next(f.data, f.program, &error), WEFT_IO);
            CHECK_TEXT(error.message, m % 2 == 0 ? "sample 6 is not there"
                                                 : "of sample 6 cannot be read, and its function");
        }
        feed_close(&f);
    }
}

/* Labels are 2000 + 10 sample: that of sample 6, in the second batch, is none of 2060, for all ranks, unless it is what is ignored. */
static void test_a_label_that_is_no_class_is_everybodys_failure(void)
{
    for (int m = 0; m < 2 * oracle.n_meshes; m++) {
        feed f;
        int64_t samples[BATCH];
        weft_error error = {0};
        const bool ignores = m % 2 == 1;
        if (feed_open(&f, oracle.meshes[m / 2], "batch:d", false, NULL)) {
            CHECK_EQ_INT(weft_dataset_bound(f.data, "label", 9, 0, &error), WEFT_USAGE);
            CHECK_TEXT(error.message, "has been started");
            error = (weft_error){0};
            weft_dataset_close(&f.data);
            CHECK_OK(open_samples(false, NULL, &f.data, &error), error);
            CHECK_OK(weft_dataset_bound(f.data, "label", 2060, ignores ? 2060 : 0, &error), error);
            CHECK_OK(weft_dataset_start(f.data, f.program, &error), error);
            CHECK(next(&f, samples));
            CHECK_EQ_INT(weft_dataset_next(f.data, f.program, &error), WEFT_USAGE);
            CHECK_TEXT(error.message, ignores
                                          ? "label of sample 7 is 2070, and there are 2060 ids, 0 "
                                            "to 2059, or 2060, which is ignored"
                                          : "label of sample 6 is 2060, and there are 2060 ids");
        }
        feed_close(&f);
    }
}

/* A set that a function makes has no largest number; one that is negative is no id. */
static void test_numbers_of_a_function_are_looked_at_as_they_come(void)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    if (!CHECK_OK(open_samples(false, NULL, &data, &error), error)) return;
    CHECK_EQ_INT(weft_dataset_highest(data, "label", &error), -1);
    CHECK_EQ_INT(error.status, WEFT_USAGE);
    CHECK_TEXT(error.message, "numbers of label are made as they are wanted");
    CHECK_EQ_INT(weft_dataset_bound(data, "label", 0, 0, NULL), WEFT_USAGE);
    weft_dataset_close(&data);
}

/* The reader is in the middle of a batch that nobody wants any more, and it fails. */
static void test_a_seek_while_a_batch_fails_goes_to_the_batch_wanted(void)
{
    static const int64_t failing = SLOW;
    feed f;
    int64_t samples[BATCH];
    weft_error error = {0};
    weft_test_hangs_after(60);
    if (feed_open(&f, oracle.alone, "", false, &failing)) {
        while (atomic_load(&n_slow) == 0)
            usleep(1000);
        weft_dataset_seek(f.data, 6);
        if (next(&f, samples)) CHECK_EQ_INT((int)samples[0], 6);
        weft_dataset_seek(f.data, 0);
        CHECK_EQ_INT(weft_dataset_next(f.data, f.program, &error), WEFT_IO);
        CHECK_TEXT(error.message, "sample 0 is not there");
        weft_dataset_seek(f.data, 1); /* the failure was of another batch */
        if (next(&f, samples)) CHECK_EQ_INT((int)samples[0], 1);
    }
    feed_close(&f);
    weft_test_hangs_after(0);
}

/* ---- what is told wrongly ------------------------------------------------------------------------ */

static void check_refused(weft_samples_options options, const char *sentence)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    CHECK_EQ_INT(weft_samples_open(&options, &data, &error), WEFT_USAGE);
    CHECK(data == NULL);
    CHECK_TEXT(error.message, sentence);
}

static void test_what_is_told_wrongly_is_one_sentence(void)
{
    const weft_sample_field good = {"a", {NULL, 0}, WEFT_I32}, named = {"two words", {NULL, 0}, 0},
                            wide = {"a", {"w", 0}, WEFT_I32}, typed = {"a", {NULL, 0}, 99};
    check_refused((weft_samples_options){&good, 1, 5, NULL}, "read is NULL");
    check_refused((weft_samples_options){NULL, 1, 5, read_row}, "fields is NULL");
    check_refused((weft_samples_options){&good, 0, 5, read_row}, "0 fields; there can be 1 to 16");
    check_refused((weft_samples_options){&good, 1, 0, read_row}, "0 samples; there can be 1 to");
    check_refused((weft_samples_options){&named, 1, 5, read_row}, "two words");
    check_refused((weft_samples_options){&wide, 1, 5, read_row}, "a is w:0 wide; 1 to 2^30");
    check_refused((weft_samples_options){&typed, 1, 5, read_row}, "the dtype of a is none");
}

/* Inputs that are not as the fields say. */
static void test_an_input_of_other_dims_is_refused(void)
{
    static const struct {
        weft_dtype dtype;
        weft_dim dim;
        const char *sentence;
    } cases[] = {{WEFT_F32, {"letter", WIDE}, "does not give; make it i32"},
                 {WEFT_I32, {"leter", WIDE}, "the dataset fills [batch, letter]"},
                 {WEFT_I32, {"letter", 8}, "has letter:7; make them equal"}};
    for (int i = 0; i < 3; i++) {
        weft_error error = {0};
        weft_program *program = NULL;
        weft_dataset *data = NULL;
        weft_graph *g = weft_graph_create(1);
        const weft_value word =
            weft_input(g, "word", cases[i].dtype, WEFT_DIMS(batch, cases[i].dim));
        if (CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(weft_sum(WEFT_SCALAR, word)),
                                  NULL, &program, &error),
                     error) &&
            CHECK_OK(open_samples(false, NULL, &data, &error), error)) {
            CHECK_EQ_INT(weft_dataset_start(data, program, &error), WEFT_USAGE);
            CHECK_TEXT(error.message, cases[i].sentence);
        }
        weft_dataset_close(&data);
        (void)!weft_program_destroy(&program);
        (void)!weft_graph_destroy(&g);
    }
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 2, &error), error)) {
        RUN(test_every_rank_gets_its_part_of_each_field);
        RUN(test_an_epoch_has_every_sample_once);
        RUN(test_a_failure_is_everybodys);
        RUN(test_a_label_that_is_no_class_is_everybodys_failure);
        RUN(test_numbers_of_a_function_are_looked_at_as_they_come);
        RUN(test_a_seek_while_a_batch_fails_goes_to_the_batch_wanted);
        RUN(test_what_is_told_wrongly_is_one_sentence);
        RUN(test_an_input_of_other_dims_is_refused);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
