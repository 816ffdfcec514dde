/* old_mark_test: charlm --carry goes on from a checkpoint of before these said their data. Its seed has a mark of the text in it,
 * made of its length and the windows'. The run goes on with that text and with no other.
 */
#include "tasks.h"

#include <jansson.h>
#include <sys/stat.h>

#include "io/checkpoint/manifest.h"

enum { SEED = 7, WINDOW = 10 };

static const task run_of = {
    "charlm",
    "--model lstm --width 6 --seq 10 --batch 4 --carry --seed 7 --data %s/text.txt",
    "",
    {NULL}};

/* source  charlm's first versions: of so many bytes in windows of so many */
static uint64_t mark_of(int64_t bytes, int64_t window)
{
    return ((uint64_t)bytes << 21 | (uint64_t)window) * UINT64_C(0x9E3779B97F4A7C15);
}

static int64_t bytes_of(const char *name)
{
    char path[1024];
    struct stat found = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(stat(path, &found) == 0);
    return found.st_size;
}

/* The checkpoint at `step` as it was of old: nothing of the data, and the mark in the seed. */
static void make_old(const char *run, int step)
{
    char path[1024], seed[32];
    snprintf(path, sizeof path, "%s/%s/ckpt/step_%08d/manifest.json", folder, run, step);
    json_t *root = json_load_file(path, 0, NULL);
    if (!CHECK(root != NULL)) return;
    snprintf(seed, sizeof seed, "%llu",
             (unsigned long long)(SEED ^ mark_of(bytes_of("text.txt"), WINDOW)));
    CHECK_EQ_INT(json_object_del(root, "data"), 0);
    CHECK_EQ_INT(json_object_set_new(root, "seed", json_string(seed)), 0);
    CHECK(weft_manifest_seal(root));
    CHECK_EQ_INT(json_dump_file(root, path, JSON_INDENT(1) | JSON_SORT_KEYS), 0);
    json_decref(root);
}

static void test_a_run_with_a_mark_in_its_seed_goes_on_with_its_text_alone(void)
{
    char line[TEXT], other[TEXT];
    CHECK_EQ_INT(start(&run_of, "", "old", "--steps 2 --fresh")->status, 0);
    make_old("old", 2);
    snprintf(line, sizeof line, "sh -c 'head -c 7999 %s/text.txt > %s/other.txt'", folder, folder);
    CHECK_EQ_INT(command_run(line).status, 0);
    snprintf(other, sizeof other, "--steps 4 --data %s/other.txt", folder);
    const command_result *r = start(&run_of, "", "old", other);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "has learned from other data, or has another --seed");
    r = start(&run_of, "", "old", "--steps 4");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "continues from step 2");
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "old_mark"))) {
        RUN(test_a_run_with_a_mark_in_its_seed_goes_on_with_its_text_alone);
        text_folder_close();
    }
    return weft_test_report();
}
