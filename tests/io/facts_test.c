/* facts_test: what data is told by is what it holds, wherever it lies; processes with other data, and a checkpoint that has learned
 * from other data, are refused with both.
 */
/* RANKS: 2 3 */
#include <sys/stat.h>

#include "checkpoint_places.h"
#include "weft/io.h"

enum { SEQ = 8, TEXT = 1000, PATH = 200 };
static const net_options f64 = {.dtype = WEFT_F64};

/* A file of this process: n letters, of which number `odd` is another. */
static const char *write_text(const char *name, int64_t n, int64_t odd)
{
    static char path[PATH];
    snprintf(path, sizeof path, "%s", scratch(""));
    (void)mkdir(path, 0777);
    snprintf(path, sizeof path, "%s%d-%s", scratch("text"), world.process, name);
    FILE *file = fopen(path, "wb");
    if (!CHECK(file != NULL)) return path;
    for (int64_t i = 0; i < n; i++)
        fputc(i == odd ? '!' : 'a' + (int)(i * i % 23), file);
    CHECK_EQ_INT(fclose(file), 0);
    return path;
}

/* A file of zeros that has no room on the disk, with one other byte. */
static const char *write_sparse(const char *name, int64_t bytes, int64_t odd)
{
    const char *path = write_text(name, 0, -1);
    FILE *file = fopen(path, "r+b");
    if (!CHECK(file != NULL)) return path;
    CHECK_EQ_INT(ftruncate(fileno(file), bytes), 0);
    CHECK(odd < 0 || (fseeko(file, odd, SEEK_SET) == 0 && fputc('x', file) == 'x'));
    CHECK_EQ_INT(fclose(file), 0);
    return path;
}

static char told[4][1024];
static const char *facts_of(const char *path, int64_t seq, int which)
{
    weft_error error = {0};
    weft_dataset *data = NULL;
    CHECK_OK(weft_text_open(path, seq, 1, &data, &error), error);
    snprintf(told[which], sizeof told[which], "%s", weft_dataset_facts(data));
    weft_dataset_close(&data);
    unlink(path);
    return told[which];
}

static void test_a_text_is_told_by_its_bytes_and_windows(void)
{
    char own[40];
    const char *first = facts_of(write_text("one", TEXT, -1), SEQ, 0);
    CHECK_TEXT(first, "text: 1000 bytes (hash ");
    CHECK_TEXT(first, "; seq: 8");
    CHECK(strcmp(facts_of(write_text("moved", TEXT, -1), SEQ, 1), first) == 0);
    CHECK(strcmp(facts_of(write_text("one", TEXT, TEXT / 2), SEQ, 1), first) != 0);
    CHECK(strcmp(facts_of(write_text("one", TEXT + 1, -1), SEQ, 1), first) != 0);
    CHECK(strcmp(facts_of(write_text("one", TEXT, -1), SEQ + 1, 1), first) != 0);
    snprintf(own, sizeof own, "seq: %d", SEQ + 1);
    CHECK_TEXT(told[1], own);
}

/* More than is hashed as a whole: the first byte, the last, one of each block, and how many there are. */
static void test_a_large_file_is_told_by_blocks_of_it(void)
{
    const int64_t large = INT64_C(10) << 30;
    const char *first = facts_of(write_sparse("large", large, -1), SEQ, 0);
    const int64_t seen[] = {0, (64 << 10) - 1, (large - (64 << 10)) / 63 * 20 + 5, large - 1};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        CHECK(strcmp(facts_of(write_sparse("large", large, seen[i]), SEQ, 1), first) != 0);
    CHECK(strcmp(facts_of(write_sparse("large", large + 1, -1), SEQ, 1), first) != 0);
    CHECK(strcmp(facts_of(write_sparse("large", large, large / 100), SEQ, 1), first) == 0);
    const int64_t whole = 64 << 20;
    first = facts_of(write_sparse("whole", whole, -1), SEQ, 0);
    CHECK(strcmp(facts_of(write_sparse("whole", whole, whole / 3 + 7), SEQ, 1), first) != 0);
}

static void test_facts_that_cannot_be_said_are_refused(void)
{
    static char long_one[2000];
    const char *const wrong[][2] = {{"", "x"},       {"a", ""},      {"a: b", "x"},
                                    {"a; b", "x"},   {"a", "x; y"},  {"a", "two\nlines"},
                                    {long_one, "x"}, {"a", long_one}};
    memset(long_one, 'x', sizeof long_one - 1);
    weft_error error = {0};
    weft_dataset *data = NULL;
    const char *path = write_text("said", TEXT, -1);
    if (!CHECK_OK(weft_text_open(path, SEQ, 1, &data, &error), error)) return;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_error own = {0};
        CHECK_EQ_INT(weft_dataset_fact(data, wrong[i][0], wrong[i][1], &own), WEFT_USAGE);
        CHECK_TEXT(own.message, "weft_dataset_fact: ");
    }
    CHECK_OK(weft_dataset_fact(data, "words", "7", &error), error);
    CHECK_OK(weft_dataset_fact(data, "seq", "other", &error), error);
    CHECK_TEXT(weft_dataset_facts(data), "; words: 7; seq: other");
    weft_dataset_close(&data);
    unlink(path);
}

/* ---- processes ------------------------------------------------------------------------------------ */

typedef struct feed {
    weft_mesh *mesh;
    weft_graph *graph;
    weft_program *program;
} feed;

static void feed_open(feed *f)
{
    weft_error error = {0};
    char mesh[20];
    *f = (feed){.graph = weft_graph_create(1)};
    const weft_value tokens =
        weft_input(f->graph, "tokens", WEFT_I32, WEFT_DIMS({"batch", 6}, {"seq", SEQ}));
    const weft_value sum = weft_sum(WEFT_SCALAR, weft_cast(tokens, WEFT_F64));
    snprintf(mesh, sizeof mesh, "data:%d", world.n_processes > 1 ? world.n_processes : 2);
    CHECK_OK(weft_mesh_create(&world, mesh, &f->mesh, &error), error);
    CHECK_OK(weft_compile(f->mesh, NULL, WEFT_VALUES(sum), NULL, &f->program, &error), error);
}

static void feed_close(feed *f)
{
    weft_program_destroy(&f->program);
    weft_graph_destroy(&f->graph);
    weft_mesh_destroy(&f->mesh);
}

/* The last process has another file, or says something else of the same. */
static void check_agreement(bool other_file, bool other_words, bool by_agree)
{
    char name[20];
    weft_error error = {0};
    weft_dataset *data = NULL;
    feed f;
    const bool is_odd = world.n_processes > 1 && world.process == world.n_processes - 1;
    feed_open(&f);
    snprintf(name, sizeof name, "of%d", world.process);
    const char *path = write_text(name, is_odd && other_file ? TEXT / 2 : TEXT, -1);
    CHECK_OK(weft_text_open(path, SEQ, 1, &data, &error), error);
    CHECK_OK(
        weft_dataset_fact(data, "words", is_odd && other_words ? "512 (b)" : "512 (a)", &error),
        error);
    CHECK_OK(weft_dataset_start(data, f.program, &error), error);
    const weft_status status = by_agree ? weft_dataset_agree(data, f.program, &error)
                                        : weft_dataset_next(data, f.program, &error);
    const bool differ = world.n_processes > 1 && (other_file || other_words);
    CHECK_EQ_INT(status, differ ? WEFT_MISMATCH : WEFT_OK);
    CHECK_EQ_INT(weft_dataset_position(data), differ || by_agree ? 0 : 6);
    if (differ) {
        char rank[40];
        snprintf(rank, sizeof rank, "at rank 0 and %s",
                 other_file ? "500 bytes (hash " : "512 (b)");
        CHECK_TEXT(error.message, other_file ? "text is 1000 bytes (hash " : "words is 512 (a)");
        CHECK_TEXT(error.message, rank);
        snprintf(rank, sizeof rank, "at rank %d; give all", world.n_processes - 1);
        CHECK_TEXT(error.message, rank);
    }
    weft_dataset_close(&data);
    feed_close(&f);
    unlink(path);
}

static void test_processes_with_other_data_are_told_so(void)
{
    for (int by_agree = 0; by_agree < 2; by_agree++) {
        check_agreement(false, false, by_agree);
        check_agreement(true, false, by_agree);
        check_agreement(false, true, by_agree);
    }
}

/* ---- checkpoints ---------------------------------------------------------------------------------- */

static const char one[] = "text: 300000 bytes (hash 0011); seq: 64",
                  two[] = "seq: 32; text: 5000 bytes (hash 2233)";

static void save_with(const char *directory, const char *data)
{
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    net n;
    if (CHECK_OK(net_open(&places[0], &f64, &n, &error), error) &&
        CHECK_OK(
            weft_checkpoints_open(directory, &(weft_checkpoint_options){.data = data}, &c, &error),
            error)) {
        CHECK_OK(net_run(&n, 1, 2, NULL, &error), error);
        const weft_checkpoint_state state = net_state(&n);
        CHECK_OK(weft_checkpoints_save(c, n.program, &state, &error), error);
        CHECK_OK(weft_checkpoints_wait(c, &error), error);
    }
    weft_checkpoints_close(&c);
    net_close(&n);
}

/* said: in the sentence, or in what is told; "" nothing. */
static void check_restore(const char *directory, const weft_checkpoint_options *o,
                          weft_status expected, int64_t sample, const char *said)
{
    char before[NET_BYTES], after[NET_BYTES];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state = {.step = 9};
    net n;
    if (CHECK_OK(net_open(&places[n_places - 1], &f64, &n, &error), error) &&
        CHECK_OK(weft_checkpoints_open(directory, o, &c, &error), error)) {
        net_read(&n, before);
        CHECK_EQ_INT(weft_checkpoints_restore(c, n.program, WEFT_NEWEST, &state, &error), expected);
        net_read(&n, after);
        CHECK((memcmp(before, after, sizeof before) == 0) == (expected != WEFT_OK));
        CHECK_EQ_INT(state.step, expected == WEFT_OK ? 2 : 0);
        CHECK_EQ_INT(state.sample, sample);
        const char *text = expected == WEFT_OK ? weft_checkpoints_data(c) : error.message;
        CHECK_TEXT(text, said);
        CHECK(*said != '\0' || *text == '\0');
    }
    weft_checkpoints_close(&c);
    net_close(&n);
}

static void test_a_checkpoint_goes_on_with_its_own_data(void)
{
    char directory[128];
    weft_error error = {0};
    weft_stored *stored = NULL;
    snprintf(directory, sizeof directory, "%s", scratch("data"));
    save_with(directory, one);
    if (CHECK_OK(weft_stored_open(directory, &stored, &error), error))
        CHECK_TEXT(weft_stored_data(stored), one);
    weft_stored_close(&stored);
    const char *difference = "text was 300000 bytes (hash 0011) and is 5000 bytes (hash 2233), "
                             "seq was 64 and is 32";
    check_restore(directory, &(weft_checkpoint_options){.data = one}, WEFT_OK, 2 * BATCH, "");
    check_restore(directory,
                  &(weft_checkpoint_options){.data = "seq: 64; text: 300000 bytes (hash 0011)"},
                  WEFT_OK, 2 * BATCH, "");
    check_restore(directory, NULL, WEFT_OK, 2 * BATCH, "");
    check_restore(directory, &(weft_checkpoint_options){.data = two}, WEFT_USAGE, 0, difference);
    check_restore(directory, &(weft_checkpoint_options){.data = two, .other_data = true}, WEFT_OK,
                  0, difference);
    check_restore(directory,
                  &(weft_checkpoint_options){.data = "text: 300000 bytes (hash 0011); words: 7"},
                  WEFT_USAGE, 0, "seq was 64 and is not said, words was not said and is 7");
}

static void test_a_checkpoint_that_does_not_say_its_data_goes_on(void)
{
    char directory[128];
    snprintf(directory, sizeof directory, "%s", scratch("nodata"));
    save_with(directory, NULL);
    check_restore(directory, &(weft_checkpoint_options){.data = one}, WEFT_OK, 2 * BATCH,
                  "does not say what it has learned from");
}

static void test_what_a_manifest_cannot_hold_is_refused(void)
{
    static char long_one[1025];
    memset(long_one, 'x', sizeof long_one - 1);
    const char *const wrong[] = {"two\nlines", long_one};
    for (int i = 0; i < 2; i++) {
        weft_error error = {0};
        weft_checkpoints *c = NULL;
        CHECK_EQ_INT(weft_checkpoints_open(scratch("refused"),
                                           &(weft_checkpoint_options){.data = wrong[i]}, &c,
                                           &error),
                     WEFT_USAGE);
        CHECK_TEXT(error.message, "there can be 1023");
        CHECK(c == NULL);
    }
}

static void run_all(void)
{
    RUN(test_a_text_is_told_by_its_bytes_and_windows);
    RUN(test_a_large_file_is_told_by_blocks_of_it);
    RUN(test_facts_that_cannot_be_said_are_refused);
    RUN(test_processes_with_other_data_are_told_so);
    RUN(test_a_checkpoint_goes_on_with_its_own_data);
    RUN(test_a_checkpoint_that_does_not_say_its_data_goes_on);
    RUN(test_what_a_manifest_cannot_hold_is_refused);
}

int main(void)
{
    return in_world(run_all);
}
