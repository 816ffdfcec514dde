/* chain_test: stages give the records that the plain arrays of an oracle have, on any mesh, with any threads, from any position. */
#include "chain.h"
#include "weft/collectives.h"
#include "weft/ops.h"

#include "test.h"

enum { MOST = 4000, BATCH = 6, WIDE = 4 };

/* Record i of source k has k * 1000 + i in its field. */
static weft_status read_number(const void *argument, int field, int64_t sample, void *row,
                               weft_error *error)
{
    (void)field, (void)error;
    for (int i = 0; i < WIDE; i++)
        ((int64_t *)row)[i] = *(const int *)argument * 1000 + sample + 100000 * i;
    return WEFT_OK;
}

static const int sources[4] = {0, 1, 2, 3};
static const weft_sample_field number = {"x", {"wide", WIDE}, WEFT_I64};

static weft_chain *source(int k, int64_t records)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    const weft_samples_options options = {&number, 1, records, read_number, &sources[k], false, 0};
    CHECK_OK(weft_chain_samples(&options, &chain, &error), error);
    return chain;
}

static int64_t record_of(const weft_chain *chain, int64_t i)
{
    int64_t x[WIDE] = {0}, scratch[64];
    weft_error error = {0};
    const weft_want want = {0, WEFT_I64, 0, WIDE, x};
    CHECK(chain->found.scratch_bytes <= sizeof scratch);
    CHECK_OK(weft_chain_ask(chain, i, &want, 1, scratch, &error), error);
    return x[0];
}

static void check_records(const weft_chain *chain, const int64_t *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ_INT(record_of(chain, i), expected[i]);
}

/* ---- each stage against arrays ------------------------------------------------------------------- */

static void test_take_repeat_and_concat_are_those_of_arrays(void)
{
    weft_error error = {0};
    int64_t expected[MOST];
    weft_chain *parts[3] = {source(0, 5), source(1, 1), source(2, 7)}, *chain = NULL;
    if (!CHECK_OK(weft_chain_concat(parts, 3, &chain, &error), error)) return;
    CHECK(parts[0] == NULL && parts[2] == NULL);
    CHECK_EQ_INT(weft_chain_records(chain), 13);
    CHECK_OK(weft_chain_take(&chain, 3, 6, &error), error);
    CHECK_OK(weft_chain_repeat(&chain, 3, &error), error);
    CHECK_EQ_INT(weft_chain_records(chain), 18);
    static const int64_t taken[6] = {3, 4, 1000, 2000, 2001, 2002};
    for (int i = 0; i < 40; i++)
        expected[i] = taken[i % 6];
    check_records(chain, expected, 40);
    weft_chain_close(&chain);
}

static void test_interleave_takes_turns_until_each_is_at_its_end(void)
{
    static const int64_t lengths[4] = {5, 2, 9, 2};
    weft_error error = {0};
    int64_t expected[MOST], n = 0;
    weft_chain *parts[4], *chain = NULL;
    for (int k = 0; k < 4; k++)
        parts[k] = source(k, lengths[k]);
    for (int64_t turn = 0; turn < 9; turn++)
        for (int k = 0; k < 4; k++)
            if (turn < lengths[k]) expected[n++] = k * 1000 + turn;
    for (int i = 0; i < n; i++)
        expected[n + i] = expected[i];
    if (!CHECK_OK(weft_chain_interleave(parts, 4, &chain, &error), error)) return;
    CHECK_EQ_INT(weft_chain_records(chain), n);
    check_records(chain, expected, 2 * n);
    weft_chain_close(&chain);
}

static void test_every_stretch_of_a_mix_has_the_shares(void)
{
    static const double weights[3] = {0.7, 0.2, 0.1};
    weft_error error = {0};
    weft_chain *parts[3] = {source(0, 50), source(1, 20), source(2, 30)}, *chain = NULL;
    int64_t seen[3] = {0};
    if (!CHECK_OK(weft_chain_mix(parts, weights, 3, &chain, &error), error)) return;
    for (int64_t i = 0; i < MOST; i++) {
        const int64_t x = record_of(chain, i), k = x / 1000;
        CHECK_EQ_INT(x % 1000, seen[k] % (k == 0 ? 50 : k == 1 ? 20 : 30)); /* each in its order */
        seen[k]++;
        for (int j = 0; j < 3; j++)
            CHECK(fabs((double)seen[j] - weights[j] * (double)(i + 1)) < 3);
    }
    weft_chain_close(&chain);
}

static void check_shuffle(int64_t records, int64_t block)
{
    static int seen[2][MOST];
    weft_error error = {0};
    weft_chain *chain = source(0, records);
    int64_t same = 0;
    memset(seen, 0, sizeof seen);
    if (!CHECK_OK(weft_chain_shuffle(&chain, block, 7, &error), error)) return;
    for (int64_t i = 0; i < 2 * records; i++) {
        const int64_t x = record_of(chain, i);
        if (CHECK(x >= 0 && x < records)) seen[i / records][x]++;
        same += i >= records && x == record_of(chain, i - records);
        if (block == 0) /* what text_open has always given */
            CHECK_EQ_INT(x, weft_permute(7 + (uint64_t)(i / records) * 0xD6E8FEB86659FD93u, records,
                                         i % records));
    }
    for (int64_t i = 0; i < records; i++)
        CHECK(seen[0][i] == 1 && seen[1][i] == 1);
    CHECK(records < 20 || same < records / 2);
    weft_chain_close(&chain);
}

static void test_each_pass_of_a_shuffle_has_every_record_once(void)
{
    static const int64_t records[] = {1, 2, 17, 100, 999};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        for (int64_t block = 0; block < 12; block += 5)
            check_shuffle(records[i], block);
}

/* ---- on meshes ----------------------------------------------------------------------------------- */

static weft_status add_noise(const void *argument, int64_t i, const void *const *in,
                             void *const *out, weft_philox_key key, weft_error *error)
{
    uint32_t words[4];
    const int64_t *x = in[0];
    if (argument && i == *(const int64_t *)argument)
        return weft_fail(error, WEFT_USAGE, "record %lld is not to be had", (long long)i);
    weft_philox(key, 0, words);
    for (int w = 0; w < WIDE; w++)
        ((int64_t *)out[0])[w] = x[w] * 8 + words[w] % 8;
    return WEFT_OK;
}

/* Shuffled sources mixed, taken, shuffled again in blocks and changed by random numbers. */
static weft_chain *composed(const int64_t *fails)
{
    static const double weights[3] = {3, 1, 2};
    const weft_map_options noise = {"noise", &number, 1, add_noise, fails, true, 5};
    weft_error error = {0};
    weft_chain *parts[3], *chain = NULL;
    for (int k = 0; k < 3; k++) {
        parts[k] = source(k, 11 + 6 * k);
        CHECK_OK(weft_chain_shuffle(&parts[k], 0, (uint64_t)k, &error), error);
    }
    if (!CHECK_OK(weft_chain_mix(parts, weights, 3, &chain, &error), error)) return NULL;
    CHECK_OK(weft_chain_take(&chain, 2, 40, &error), error);
    CHECK_OK(weft_chain_shuffle(&chain, 3, 9, &error), error);
    CHECK_OK(weft_chain_map(&chain, &noise, &error), error);
    return chain;
}

static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};

typedef struct bound {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value x;
    weft_program *program;
} bound;

static bool bound_open(bound *b, const char *mesh, const char *layout)
{
    weft_error error = {0};
    *b = (bound){.graph = weft_graph_create(1)};
    b->x = weft_input(b->graph, "x", WEFT_I64, WEFT_DIMS({"batch", BATCH}, {"wide", WIDE}));
    return CHECK_OK(weft_mesh_create(&alone, mesh, &b->mesh, &error), error) &&
           CHECK_OK(weft_layout_create(layout, &b->layout, &error), error) &&
           CHECK_OK(weft_compile(b->mesh, b->layout, WEFT_VALUES(weft_sum(WEFT_SCALAR, b->x)), NULL,
                                 &b->program, &error),
                    error);
}

static void bound_close(bound *b)
{
    weft_program_destroy(&b->program);
    weft_graph_destroy(&b->graph);
    weft_layout_destroy(&b->layout);
    weft_mesh_destroy(&b->mesh);
}

static void check_batches(bound *b, weft_dataset *data, const weft_chain *plain, int64_t from)
{
    int64_t x[BATCH * WIDE], expected[WIDE], scratch[64];
    weft_error error = {0};
    weft_dataset_seek(data, from);
    for (int step = 0; step < 6; step++) {
        if (!CHECK_OK(weft_dataset_next(data, b->program, &error), error) ||
            !CHECK_OK(weft_read(b->program, b->x, WEFT_I64, x, sizeof x, &error), error))
            return;
        for (int row = 0; row < BATCH; row++) {
            const weft_want want = {0, WEFT_I64, 0, WIDE, expected};
            CHECK_OK(weft_chain_ask(plain, from + step * BATCH + row, &want, 1, scratch, &error),
                     error);
            CHECK(memcmp(x + row * WIDE, expected, sizeof expected) == 0);
        }
    }
}

static void test_batches_are_the_same_on_any_mesh_with_any_threads(void)
{
    static const char *const cases[][2] = {
        {"d:2", "batch:d"}, {"d:4", "batch:d"}, {"d:2,m:2", "batch:d,wide:m"}, {"m:4", "wide:m"}};
    static const weft_feed_options feeds[] = {{1, 1, 0}, {3, 1, 0}, {2, 4, 0}};
    weft_chain *plain = composed(NULL);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bound b;
        weft_error error = {0};
        if (bound_open(&b, cases[c][0], cases[c][1]))
            for (size_t f = 0; f < sizeof feeds / sizeof *feeds; f++) {
                weft_chain *chain = composed(NULL);
                weft_dataset *data = NULL;
                if (CHECK_OK(weft_chain_dataset(&chain, &feeds[f], &data, &error), error) &&
                    CHECK_OK(weft_dataset_start(data, b.program, &error), error)) {
                    check_batches(&b, data, plain, 0);
                    check_batches(&b, data, plain, 1000003);
                    check_batches(&b, data, plain, 5);
                }
                weft_dataset_close(&data);
            }
        bound_close(&b);
    }
    weft_chain_close(&plain);
}

static void test_a_map_that_fails_is_everybodys_failure(void)
{
    static const int64_t fails = 8;
    weft_error error = {0};
    weft_chain *chain = composed(&fails);
    weft_dataset *data = NULL;
    bound b;
    if (bound_open(&b, "d:2", "batch:d") &&
        CHECK_OK(weft_chain_dataset(&chain, &(weft_feed_options){.n_threads = 2, .n_ahead = 2},
                                    &data, &error),
                 error) &&
        CHECK_OK(weft_dataset_start(data, b.program, &error), error)) {
        CHECK_OK(weft_dataset_next(data, b.program, &error), error);
        CHECK_EQ_INT(weft_dataset_next(data, b.program, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "record 8 is not to be had");
    }
    weft_dataset_close(&data);
    bound_close(&b);
}

/* ---- identity and bad input ---------------------------------------------------------------------- */

static void test_digests_tell_every_setting(void)
{
    weft_error error = {0};
    weft_chain *a = source(0, 20), *b = source(0, 20);
    weft_hash first = weft_chain_digest(a), second = weft_chain_digest(b);
    CHECK(weft_hash_equal(&first, &second));
    CHECK_OK(weft_chain_shuffle(&a, 0, 1, &error), error);
    CHECK_OK(weft_chain_shuffle(&b, 0, 2, &error), error);
    first = weft_chain_digest(a), second = weft_chain_digest(b);
    CHECK(!weft_hash_equal(&first, &second));
    weft_chain_close(&a), weft_chain_close(&b);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    weft_error zero = {0}, small = {0}, beyond = {0}, other = {0}, format = {0}, twice = {0};
    weft_chain *parts[2] = {source(0, 3), source(1, 3)}, *chain = NULL;
    CHECK_EQ_INT(weft_chain_mix(parts, (double[]){1, 0}, 2, &chain, &zero), WEFT_USAGE);
    CHECK_TEXT(zero.message, "weight 1 is 0");
    CHECK_EQ_INT(weft_chain_mix(parts, (double[]){1, 1e-9}, 2, &chain, &small), WEFT_USAGE);
    CHECK_TEXT(small.message, "below 1 of 65536");
    CHECK_EQ_INT(weft_chain_take(&parts[0], 2, 2, &beyond), WEFT_USAGE);
    CHECK_TEXT(beyond.message, "2 records from 2 on, and there are 3");
    const weft_sample_field wider = {"x", {"wide", WIDE + 1}, WEFT_I64};
    weft_chain *odd[2] = {parts[0], NULL};
    const weft_samples_options options = {&wider, 1, 3, read_number, &sources[0], false, 0};
    CHECK_OK(weft_chain_samples(&options, &odd[1], &other), other);
    CHECK_EQ_INT(weft_chain_concat(odd, 2, &chain, &other), WEFT_USAGE);
    CHECK_TEXT(other.message, "[wide:5]");
    CHECK_EQ_INT(weft_chain_open("/tmp", &(weft_open_options){.format = "txet"}, &chain, &format),
                 WEFT_USAGE);
    CHECK_TEXT(format.message, "the nearest is text");
    weft_chain *same[2] = {parts[0], parts[0]};
    CHECK_EQ_INT(weft_chain_interleave(same, 2, &chain, &twice), WEFT_USAGE);
    CHECK_TEXT(twice.message, "chains 0 and 1 are the same one");
    CHECK(chain == NULL && parts[0] != NULL);
    weft_chain_close(&odd[1]);
    weft_chain_close(&parts[0]), weft_chain_close(&parts[1]);
}

int main(void)
{
    RUN(test_take_repeat_and_concat_are_those_of_arrays);
    RUN(test_interleave_takes_turns_until_each_is_at_its_end);
    RUN(test_every_stretch_of_a_mix_has_the_shares);
    RUN(test_each_pass_of_a_shuffle_has_every_record_once);
    RUN(test_batches_are_the_same_on_any_mesh_with_any_threads);
    RUN(test_a_map_that_fails_is_everybodys_failure);
    RUN(test_digests_tell_every_setting);
    RUN(test_what_cannot_be_is_one_sentence);
    return weft_test_report();
}
