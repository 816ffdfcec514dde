/* checkpoint_damage_test: bits that flip, files that end early, processes that are killed,
 * manifests that lie: every one is found, and the checkpoint before is still good. */
#include "checkpoint_net.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint/manifest.h"

enum { FLIPS = 240, TRUNCATIONS = 50, KILLS = 20 };
static const net_options f64 = {.dtype = WEFT_F64};
static const place alone = {"data:1", "", 0, 1};
static char directory[128], manifest_path[256], data_path[256];
static char older[NET_BYTES]; /* variables of step 1 */

/* The same numbers in every run of this test. */
static uint32_t draw(uint32_t below)
{
    static uint64_t state = 12345;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Steps 1 and 2 in `directory`. */
static bool make_two(const char *what)
{
    weft_error error = {0};
    net n;
    snprintf(directory, sizeof directory, "%s", scratch(what));
    snprintf(manifest_path, sizeof manifest_path, "%s/step_00000002/manifest.json", directory);
    snprintf(data_path, sizeof data_path, "%s/step_00000002/state.h5", directory);
    bool is_good = CHECK_OK(net_open(&alone, &f64, &n, &error), error);
    for (int step = 1; step <= 2 && is_good; step++) {
        is_good = CHECK_OK(net_run(&n, step, step, NULL, &error), error) &&
                  CHECK_OK(net_save(&n, directory, &error), error);
        if (step == 1) net_read(&n, older);
    }
    net_close(&n);
    return is_good;
}

static bool stored_is_good(void)
{
    char path[160];
    weft_error error = {0};
    weft_stored *stored;
    snprintf(path, sizeof path, "%s/step_00000002", directory);
    weft_status status = weft_stored_open(path, &stored, &error);
    if (status == WEFT_OK) status = weft_stored_verify(stored, &error);
    weft_stored_close(&stored);
    if (status != WEFT_OK) CHECK_EQ_INT(status, WEFT_CORRUPT);
    return status == WEFT_OK;
}

/* The newest is damaged: restore must mark it and give step 1. */
static void check_falls_back(net *n)
{
    char values[NET_BYTES], mark[160];
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state = {0};
    snprintf(mark, sizeof mark, "%s/step_00000002/damaged", directory);
    if (!CHECK_OK(weft_checkpoints_open(directory, NULL, &c, &error), error)) return;
    CHECK_EQ_INT(weft_checkpoints_restore(c, n->program, 2, &state, &error), WEFT_CORRUPT);
    error = (weft_error){0};
    CHECK_OK(weft_checkpoints_restore(c, n->program, WEFT_NEWEST, &state, &error), error);
    CHECK_EQ_INT(state.step, 1);
    CHECK_EQ_INT(weft_runs(n->program), 1);
    CHECK_TEXT(weft_checkpoints_skipped(c), "step 2 is damaged: ");
    net_read(n, values);
    CHECK(memcmp(values, older, sizeof values) == 0);
    CHECK_EQ_INT(access(mark, F_OK), 0);
    /* Not tried again. */
    CHECK_OK(weft_checkpoints_restore(c, n->program, WEFT_NEWEST, &state, &error), error);
    CHECK(state.step == 1 && weft_checkpoints_skipped(c)[0] == 0);
    CHECK_EQ_INT(unlink(mark), 0);
    weft_checkpoints_close(&c);
}

static int64_t file_bytes(const char *path)
{
    struct stat facts = {0};
    CHECK_EQ_INT(stat(path, &facts), 0);
    return facts.st_size;
}

static void flip(const char *path, int64_t at, int bit)
{
    const int file = open(path, O_RDWR);
    unsigned char byte = 0;
    CHECK_EQ_INT(pread(file, &byte, 1, at), 1);
    byte ^= (unsigned char)(1u << bit);
    CHECK_EQ_INT(pwrite(file, &byte, 1, at), 1);
    close(file);
}

/* A byte of a tensor: most of a small file is space between them. */
static int64_t draw_in_tensor(void)
{
    weft_error error = {0};
    weft_stored *stored;
    if (!CHECK_OK(weft_stored_open(directory, &stored, &error), error)) return 0;
    const weft_stored_tensor *t =
        weft_stored_tensor_at(stored, (int)draw((uint32_t)weft_stored_n_tensors(stored)));
    const int64_t at = t->offset + draw((uint32_t)t->bytes);
    weft_stored_close(&stored);
    return at;
}

static void test_every_flipped_bit_is_found(void)
{
    weft_error error = {0};
    net n;
    if (!make_two("flip") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    CHECK(stored_is_good());
    for (int i = 0; i < FLIPS; i++) {
        const char *path = i % 3 == 0 ? manifest_path : data_path;
        const int64_t at = i % 3 == 1 ? draw_in_tensor() : draw((uint32_t)file_bytes(path));
        const int bit = (int)draw(8);
        flip(path, at, bit);
        CHECK(!stored_is_good());
        if (i % 4 == 0) check_falls_back(&n);
        flip(path, at, bit);
    }
    CHECK(stored_is_good());
    net_close(&n);
}

static void test_every_truncation_is_found(void)
{
    weft_error error = {0};
    net n;
    if (!make_two("cut") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    for (int i = 0; i < TRUNCATIONS; i++) {
        const char *path = i % 2 ? manifest_path : data_path;
        const int64_t bytes = file_bytes(path);
        char *kept = malloc((size_t)bytes);
        int file = open(path, O_RDWR);
        CHECK_EQ_INT(pread(file, kept, (size_t)bytes, 0), bytes);
        CHECK_EQ_INT(ftruncate(file, draw((uint32_t)bytes)), 0);
        CHECK(!stored_is_good());
        if (i < 4) check_falls_back(&n);
        CHECK_EQ_INT(pwrite(file, kept, (size_t)bytes, 0), bytes);
        close(file);
        free(kept);
    }
    CHECK(stored_is_good());
    CHECK_EQ_INT(unlink(data_path), 0);
    CHECK(!stored_is_good());
    check_falls_back(&n);
    CHECK_EQ_INT(unlink(manifest_path), 0);
    check_falls_back(&n);
    net_close(&n);
}

static void test_a_step_under_another_name(void)
{
    char command[600];
    weft_error error = {0};
    net n;
    if (!make_two("moved") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    snprintf(command, sizeof command,
             "rm -rf %s/step_00000002 && cp -r %s/step_00000001 %s/step_00000002", directory,
             directory, directory);
    CHECK_EQ_INT(system(command), 0);
    check_falls_back(&n);
    net_close(&n);
}

static void test_nothing_good_is_an_error(void)
{
    char path[256];
    weft_error error = {0};
    weft_checkpoint_state state;
    net n;
    if (!make_two("bad") || !CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
    snprintf(path, sizeof path, "%s/step_00000001/manifest.json", directory);
    flip(path, 20, 1);
    flip(manifest_path, 20, 1);
    for (int i = 0; i < 2; i++) { /* first found out, then known */
        error = (weft_error){0};
        CHECK_EQ_INT(net_restore(&n, directory, WEFT_NEWEST, &state, &error), WEFT_CORRUPT);
        CHECK_TEXT(error.message, "2 of them are damaged");
    }
    net_close(&n);
}

/* ---- more than one block --------------------------------------------------------------------- */

enum {
    ROWS = 1100,
    COLUMNS = 1501,
    BIG = ROWS * COLUMNS
}; /* 6.6 MB: two blocks, and runs across their border */

static weft_status big_open(const char *mesh, const char *layout_text, net *n, weft_error *error)
{
    const weft_dim row = {"row", ROWS}, column = {"column", COLUMNS};
    weft_layout *layout;
    *n = (net){.graph = weft_graph_create(5)};
    weft_value table =
        weft_variable(n->graph, "table", WEFT_F32, WEFT_DIMS(row, column), weft_uniform(-1.0, 1.0));
    n->loss = weft_mean(table);
    WEFT_TRY(weft_mesh_create(&world, mesh, &n->mesh, error));
    WEFT_TRY(weft_layout_create(layout_text, &layout, error));
    const weft_status status =
        weft_compile(n->mesh, layout, WEFT_VALUES(n->loss), NULL, &n->program, error);
    weft_layout_destroy(&layout);
    return status;
}

static void test_blocks_are_named_and_put_together(void)
{
    static const char *const places[][2] = {{"model:3", "column:model"},
                                            {"data:3", "row:data"},
                                            {"data:2,model:2", "row:data,column:model"}};
    weft_error error = {0};
    weft_checkpoint_state state;
    weft_stored *stored = NULL;
    net n;
    float *expected = malloc(BIG * sizeof *expected), *found = malloc(BIG * sizeof *found);
    snprintf(directory, sizeof directory, "%s", scratch("big"));
    CHECK_OK(big_open("model:2", "column:model", &n, &error), error);
    weft_set_runs(n.program, 2);
    weft_value table = weft_variable_at(n.program, 0);
    CHECK_OK(weft_read(n.program, table, WEFT_F32, expected, BIG * sizeof *expected, &error),
             error);
    CHECK_OK(net_save(&n, directory, &error), error);
    net_close(&n);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(big_open(places[i][0], places[i][1], &n, &error), error);
        table = weft_variable_at(n.program, 0);
        memset(found, 0, BIG * sizeof *found);
        CHECK_OK(weft_write(n.program, table, WEFT_F32, found, BIG * sizeof *found, &error), error);
        CHECK_OK(net_restore(&n, directory, WEFT_NEWEST, &state, &error), error);
        CHECK_OK(weft_read(n.program, table, WEFT_F32, found, BIG * sizeof *found, &error), error);
        CHECK(memcmp(expected, found, BIG * sizeof *found) == 0);
        net_close(&n);
    }
    if (CHECK_OK(weft_stored_open(directory, &stored, &error), error)) {
        snprintf(data_path, sizeof data_path, "%s/state.h5", weft_stored_path(stored));
        flip(data_path, weft_stored_tensor_at(stored, 0)->offset + WEFT_BLOCK_BYTES + 77, 3);
        CHECK_EQ_INT(weft_stored_verify(stored, &error), WEFT_CORRUPT);
        CHECK_TEXT(error.message, "tensor table, block 1 of 2");
    }
    weft_stored_close(&stored);
    free(expected);
    free(found);
}

/* ---- killed ---------------------------------------------------------------------------------- */

static void fill_w1(net *n, double number, weft_error *error)
{
    double w1[PIXEL * HIDDEN];
    for (int i = 0; i < PIXEL * HIDDEN; i++)
        w1[i] = number;
    CHECK_OK(
        weft_write(n->program, weft_variable_at(n->program, 0), WEFT_F64, w1, sizeof w1, error),
        *error);
}

/* The victim: from the newest on, one save a step, for ever; w1 is the step all over. */
static int be_victim(const char *where)
{
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state;
    net n;
    if (net_open(&alone, &f64, &n, &error) != WEFT_OK ||
        weft_checkpoints_open(where, NULL, &c, &error) != WEFT_OK ||
        weft_checkpoints_restore(c, n.program, WEFT_NEWEST, &state, &error) != WEFT_OK)
        return 1;
    for (;;) {
        state.step++;
        fill_w1(&n, (double)state.step, &error);
        if (weft_checkpoints_save(c, n.program, &state, &error) != WEFT_OK) return 2;
    }
}

static int64_t newest_on_disk(const char *where)
{
    int64_t steps[16];
    const int n = weft_stored_steps(where, steps, 16);
    return n > 0 ? steps[(n < 16 ? n : 16) - 1] : 0;
}

/* Start a victim, let it commit something, kill it at any moment after that. */
static int64_t kill_one(const char *where, int64_t before)
{
    const pid_t victim = fork();
    if (victim == 0) {
        execl("/proc/self/exe", "victim", "--victim", where, (char *)NULL);
        _exit(3);
    }
    int64_t seen = before;
    for (int i = 0; i < 20000 && seen == before; i++) {
        usleep(500);
        seen = newest_on_disk(where);
    }
    usleep(draw(60000));
    seen = newest_on_disk(where);
    int status = 0;
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    CHECK(WIFSIGNALED(status) && seen > before);
    return seen;
}

static void test_killed_while_saving(void)
{
    char where[128];
    int64_t seen = 0;
    int n_torn = 0;
    weft_error error = {0};
    snprintf(where, sizeof where, "%s", scratch("kill"));
    for (int i = 0; i < KILLS; i++) {
        double w1[PIXEL * HIDDEN];
        weft_stored *stored = NULL;
        weft_checkpoint_state state = {0};
        net n;
        seen = kill_one(where, seen);
        if (!CHECK_OK(net_open(&alone, &f64, &n, &error), error)) return;
        CHECK_OK(net_restore(&n, where, WEFT_NEWEST, &state, &error), error);
        CHECK(state.step >= seen); /* what was there when it was killed is there still */
        CHECK_EQ_INT(state.step, newest_on_disk(where)); /* none was marked as damaged */
        CHECK_OK(
            weft_read(n.program, weft_variable_at(n.program, 0), WEFT_F64, w1, sizeof w1, &error),
            error);
        for (int k = 0; k < PIXEL * HIDDEN; k++)
            n_torn += w1[k] != (double)state.step;
        if (CHECK_OK(weft_stored_open(where, &stored, &error), error))
            CHECK_OK(weft_stored_verify(stored, &error), error);
        weft_stored_close(&stored);
        net_close(&n);
        seen = state.step;
    }
    CHECK_EQ_INT(n_torn, 0);
}

/* ---- manifests that lie, with a right hash --------------------------------------------------- */

typedef struct lie {
    const char *key, *value, *says;
    bool is_root; /* of the manifest; else of its first tensor, w1 */
} lie;

#define HASH "\"0123456789abcdef0123456789abcdef\""
static const lie lies[] = {
    {"offset", "-4096", "\"offset\" is -4096, but must be from 0"},
    {"offset", "1048576000", "past the"},
    {"offset", "9223372036854775807", "past the"},
    {"offset", "1.5", "\"offset\" must be a whole number"},
    {"offset", "\"4096\"", "\"offset\" must be a whole number"},
    {"bytes", "281", "which is not 281 bytes"},
    {"bytes", "-280", "must be from 0"},
    {"dims", "[[\"a\", 9223372036854775807], [\"b\", 9223372036854775807]]",
     "which is not 280 bytes"},
    {"dims", "[[\"a\", 4294967296], [\"b\", 4294967296], [\"c\", 35]]", "which is not 280 bytes"},
    {"dims", "[[\"pixel\", -7], [\"hidden\", -5]]", "dim pixel has the size -7"},
    {"dims", "[[\"pixel\", 7], [\"pixel\", 5]]", "dim pixel is there twice"},
    {"dims",
     "[[\"a\",1],[\"b\",1],[\"c\",1],[\"d\",1],[\"e\",1],[\"f\",1],[\"g\",1],[\"h\",1],[\"i\",35]]",
     "\"dims\" lists 9 things"},
    {"dims", "[7, 5]", "pairs of a name and a size"},
    {"dims", "{}", "\"dims\" must be a list"},
    {"dtype", "\"f24\"", "unknown dtype \"f24\""},
    {"dtype", "null", "\"dtype\" must be a text"},
    {"kind", "\"secret\"", "it can be a parameter or a slot"},
    {"file", "\"../state.h5\"", "not among \"files\""},
    {"name", "\"b1\"", "two tensors are named b1"},
    {"name", "\"\"", "\"name\" has 0 bytes"},
    {"name", "\"w\\u001b1\"", "control character 27"},
    {"hashes", "[]", "has 0 hashes, but 1 blocks"},
    {"hashes", "[" HASH ", " HASH "]", "has 2 hashes, but 1 blocks"},
    {"hashes", "[\"0123\"]", "32 lower-case hexadecimal digits"},
    {"hashes", "[" HASH "]", "block 0 of 1"},
    {"files", "[]", "not among \"files\"", true},
    {"files", "[{\"name\": \"../x\", \"bytes\": 1, \"structure\": " HASH "}]", "not a plain name",
     true},
    {"files", "[{\"name\": \"/etc/passwd\", \"bytes\": 1, \"structure\": " HASH "}]",
     "not a plain name", true},
    {"files", "[{\"name\": \"state.h5\", \"bytes\": 9223372036854775807, \"structure\": " HASH "}]",
     "but was written with", true},
    {"files", "[{\"name\": \"state.h5\", \"bytes\": 1, \"structure\": " HASH "}]", "past the 1 of",
     true},
    {"files",
     "[{\"name\": \"a\", \"bytes\": 1, \"structure\": " HASH "},"
     "{\"name\": \"a\", \"bytes\": 1, \"structure\": " HASH "}]",
     "listed twice", true},
    {"tensors", "{}", "\"tensors\" must be a list", true},
    {"tensors", "[1]", "\"tensors\" must list objects", true},
    {"step", "-1", "\"step\" is -1", true},
    {"step", "\"2\"", "\"step\" must be a whole number", true},
    {"seed", "\"18446744073709551616\"", "\"seed\" must be", true},
    {"seed", "\"-1\"", "\"seed\" must be", true},
    {"block_bytes", "1", "\"block_bytes\" is 1", true},
    {"format", "2", "use a later Weft", true},
};

static char *slurp(const char *path)
{
    const int64_t bytes = file_bytes(path);
    char *text = calloc(1, (size_t)bytes + 1);
    const int file = open(path, O_RDONLY);
    CHECK_EQ_INT(pread(file, text, (size_t)bytes, 0), bytes);
    close(file);
    return text;
}

static void put(const char *path, const char *text)
{
    const int file = open(path, O_WRONLY | O_TRUNC);
    CHECK_EQ_INT(write(file, text, strlen(text)), (long long)strlen(text));
    close(file);
}

static void check_refused(weft_status expected, const char *says)
{
    char path[160];
    weft_error error = {0};
    weft_stored *stored;
    snprintf(path, sizeof path, "%s/step_00000002", directory);
    weft_status status = weft_stored_open(path, &stored, &error);
    if (status == WEFT_OK) status = weft_stored_verify(stored, &error);
    CHECK_EQ_INT(status, expected);
    CHECK_TEXT(error.message, says);
    weft_stored_close(&stored);
}

static void tell(const char *truth, const lie *l)
{
    json_t *root = json_loads(truth, 0, NULL);
    json_t *value = json_loads(l->value, JSON_DECODE_ANY, NULL);
    json_t *into = l->is_root ? root : json_array_get(json_object_get(root, "tensors"), 0);
    CHECK(root && into && value && json_object_set_new(into, l->key, value) == 0);
    CHECK(weft_manifest_seal(root));
    char *text = json_dumps(root, JSON_INDENT(1));
    put(manifest_path, text);
    free(text);
    json_decref(root);
}

static void test_manifests_that_lie(void)
{
    if (!make_two("lie")) return;
    char *truth = slurp(manifest_path);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        tell(truth, &lies[i]);
        check_refused(strcmp(lies[i].key, "format") ? WEFT_CORRUPT : WEFT_USAGE, lies[i].says);
    }
    json_t *root = json_loads(truth, 0, NULL), *list = json_object_get(root, "tensors");
    char offset[32];
    snprintf(offset, sizeof offset, "%lld",
             json_integer_value(json_object_get(json_array_get(list, 1), "offset")));
    tell(truth, &(lie){"offset", offset});
    check_refused(WEFT_CORRUPT, "share bytes of state.h5");
    json_decref(root);
    put(manifest_path, truth);
    CHECK(stored_is_good());
    free(truth);
}

static void test_texts_that_are_no_manifest(void)
{
    if (!make_two("text")) return;
    static const char *const texts[][2] = {
        {"", "line 1"},
        {"[]", "one JSON object"},
        {"{}", "\"hash\" must be"},
        {"{\"hash\": " HASH "}", "hash of itself does not fit"},
        {"{\"a\": 1, \"a\": 2}", "duplicate"},
        {"{\"a\": \"\\u0000\"}", "line 1"},
        {"{\"a\": \"\xff\"}", "decode byte 0xff"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put(manifest_path, texts[i][0]);
        check_refused(WEFT_CORRUPT, texts[i][1]);
    }
    enum { DEEP = 100000 };
    char *deep = malloc(DEEP + 1);
    memset(deep, '[', DEEP);
    deep[DEEP] = 0;
    put(manifest_path, deep);
    check_refused(WEFT_CORRUPT, "line 1");
    free(deep);
}

static void test_links_are_not_followed(void)
{
    char other[300];
    if (!make_two("link")) return;
    snprintf(other, sizeof other, "%s.other", data_path);
    CHECK(rename(data_path, other) == 0 && symlink(other, data_path) == 0);
    check_refused(WEFT_CORRUPT, "it is a link");
    CHECK(unlink(data_path) == 0 && mkdir(data_path, 0777) == 0);
    check_refused(WEFT_CORRUPT, "not a regular file");
}

static void run_all(void)
{
    RUN(test_every_flipped_bit_is_found);
    RUN(test_every_truncation_is_found);
    RUN(test_a_step_under_another_name);
    RUN(test_nothing_good_is_an_error);
    RUN(test_blocks_are_named_and_put_together);
    RUN(test_killed_while_saving);
    RUN(test_manifests_that_lie);
    RUN(test_texts_that_are_no_manifest);
    RUN(test_links_are_not_followed);
}

int main(int n_arguments, char **arguments)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    if (n_arguments == 3 && strcmp(arguments[1], "--victim") == 0) return be_victim(arguments[2]);
    if (CAN_SAVE)
        run_all();
    else
        check_cannot_save();
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}
