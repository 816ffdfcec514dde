/* checkpoint_manifest_test: manifests that lie with a right hash, texts that are none, and links: each is refused with what is
 * wrong. */
#include "checkpoint_two.h"

#include <fcntl.h>
#include <jansson.h>

#include "checkpoint/manifest.h"

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

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    if (CAN_SAVE) {
        RUN(test_manifests_that_lie);
        RUN(test_texts_that_are_no_manifest);
        RUN(test_links_are_not_followed);
    } else {
        check_cannot_save();
    }
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}
