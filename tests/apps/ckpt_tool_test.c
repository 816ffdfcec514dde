/* ckpt_tool_test: weft ckpt, as its user runs it: what it says of good and of damaged checkpoints;
 * to safetensors and HDF5 and back without a changed byte; files that break a rule of the format.
 */
#include "command.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { TEXT = 2048 };
static char folder[64];
static bool is_hdf5_read; /* built with what that takes */

/* weft ckpt ARGUMENTS, in the test's folder; what it printed, stderr too. */
static command_result ckpt(const char *arguments)
{
    char line[2 * TEXT];
    snprintf(line, sizeof line, "cd %s && timeout -k 1 600 " WEFT_TEST_BIN "/weft ckpt %s 2>&1",
             folder, arguments);
    return command_run_all(line);
}

/* The same, kept in one place: results are large, and a sanitizer gives each its own room on the
 * stack. */
static const command_result *run_ckpt(const char *arguments)
{
    static command_result result;
    result = ckpt(arguments);
    return &result;
}

static int train(const char *arguments)
{
    char line[2 * TEXT];
    snprintf(
        line, sizeof line,
        "cd %s && timeout -k 1 600 " WEFT_TEST_BIN
        "/gpt train --data text.txt --layers 1 --width 12 --heads 3 --batch 2 --seq 8 --quiet %s",
        folder, arguments);
    return command_run_all(line).status;
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!CHECK(file != NULL)) return;
    fwrite(data, 1, bytes, file);
    fclose(file);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void test_list_and_show(void)
{
    command_result r = ckpt("list a");
    CHECK_EQ_INT(r.status, 0);
    CHECK_EQ_INT(command_lines(r.text, ""), 3); /* the heading, steps 2 and 4 */
    CHECK_TEXT(r.text, "data:2");
    r = ckpt("show a");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "step    4");
    CHECK_TEXT(r.text, "block0.up/m");
    CHECK_TEXT(r.text, "[embed:12, hidden:48]");
    r = ckpt("list nowhere");
    CHECK_EQ_INT(r.status, 2);
    CHECK_TEXT(r.text, "nowhere");
}

static void test_json(void)
{
    static const char *const commands[] = {
        "list a --json",
        "show a --json",
        "verify a --json",
        "diff a a --json",
        "export a j.safetensors --json",
        "import j.safetensors js --json",
        "export a j.h5 --json",
        "import j.h5 jh --json",
    };
    if (system("python3 -c pass") != 0) return; /* no judge of JSON here */
    for (int i = 0; i < (is_hdf5_read ? 8 : 6); i++) {
        char line[TEXT];
        snprintf(line, sizeof line,
                 "cd %s && " WEFT_TEST_BIN "/weft ckpt %s | python3 -m json.tool >/dev/null",
                 folder, commands[i]);
        weft_test_check(command_run_all(line).status == 0, __FILE__, __LINE__, commands[i]);
    }
}

static void test_diff(void)
{
    command_result r = ckpt("diff a a");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "no difference");
    r = ckpt("diff a/ckpt/step_00000002 a/ckpt/step_00000004");
    CHECK_EQ_INT(r.status, 1);
    CHECK_TEXT(r.text, "block0.up");
    CHECK_TEXT(r.text, "elements, by at most");
}

static void check_good(const char *arguments)
{
    const command_result *r = run_ckpt(arguments);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

/* Out, in again, and on from there, beside the run that never left. */
static void go_and_return(const char *file, const char *back, int steps)
{
    char line[TEXT], difference[TEXT];
    snprintf(line, sizeof line, "export a %s", file);
    check_good(line);
    snprintf(line, sizeof line, "import %s %s/ckpt", file, back);
    check_good(line);
    snprintf(difference, sizeof difference, "diff a %s", back);
    check_good(difference);
    snprintf(line, sizeof line, "--run %s --steps %d", back, steps);
    CHECK_EQ_INT(train(line), 0); /* the slots came along: it can be continued */
    snprintf(line, sizeof line, "--run a --steps %d --mesh data:1", steps);
    CHECK_EQ_INT(train(line), 0);
    check_good(difference);
}

static void test_to_safetensors_and_back(void)
{
    go_and_return("a.safetensors", "back", 6);
}

static void test_to_hdf5_and_back(void)
{
    if (!is_hdf5_read) return;
    go_and_return("a.h5", "back5", 8);
    go_and_return("a.hdf5", "back6", 10);
    /* A checkpoint's own data file is the same kind of file. */
    char line[TEXT];
    snprintf(line, sizeof line, "cd %s && cp a/ckpt/step_00000010/*.h5 own.h5", folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    check_good("import own.h5 own");
    check_good("diff a own");
}

/* By programs that are not ours. */
static void test_others_read_what_is_exported(void)
{
    if (!is_hdf5_read) return;
    char line[2 * TEXT];
    check_good("export a others.h5");
    if (system("h5dump --version >/dev/null 2>&1") == 0) {
        snprintf(line, sizeof line,
                 "cd %s && h5dump -a /parameters/block0.up/dims -d /slots/block0.up/m others.h5 && "
                 "h5dump -a /step -a /layout others.h5",
                 folder);
        const command_result r = command_run_all(line);
        CHECK_EQ_INT(r.status, 0);
        CHECK_TEXT(r.text, "\"embed,hidden\"");
        CHECK_TEXT(r.text, "( 12, 48 )");
        CHECK_TEXT(r.text, "(0): 10");
    } else {
        printf("  not by h5dump: it is not here\n");
    }
    if (system("python3 -c 'import h5py' 2>/dev/null") != 0) {
        printf("  not by h5py: it is not here\n");
        return;
    }
    snprintf(line, sizeof line,
             "cd %s && python3 -c 'import h5py; f = h5py.File(\"others.h5\"); "
             "w = f[\"parameters/block0.up\"]; assert w.chunks is None and w.shape == (12, 48); "
             "assert abs(w[()]).max() > 0 and w.attrs[\"dims\"] == b\"embed,hidden\"; "
             "assert f.attrs[\"step\"] == 10 and f.attrs[\"seed\"] >= 0'",
             folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
}

/* On a disk of so many KiB: written whole, or one sentence and no file. */
static void test_a_full_disk(void)
{
    static const int sizes[] = {4, 32, 64, 68, 76, 100, 132, 164, 200, 300, 2000};
    int n_full = 0, n_whole = 0;
    if (system("unshare -rm mount -t tmpfs none /mnt 2>/dev/null") != 0) {
        printf("  not tried: no small disk can be made here\n");
        return;
    }
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        char line[TEXT];
        const char *ending = i % 2 ? "h5" : "safetensors";
        if (i % 2 && !is_hdf5_read) continue;
        snprintf(line, sizeof line,
                 "cd %s && unshare -rm sh -c 'mount -t tmpfs -o size=%dk none /mnt && "
                 "timeout -k 1 600 " WEFT_TEST_BIN "/weft ckpt export a /mnt/a.%s 2>&1; "
                 "s=$?; ls /mnt; exit $s'",
                 folder, sizes[i / 2], ending);
        const command_result r = command_run_all(line);
        CHECK_EQ_INT(command_lines(r.text, ""), r.status == 0 ? 2 : 1);
        weft_test_check(r.status == 0 || r.status == 2, __FILE__, __LINE__, r.text);
        CHECK_TEXT(r.text, r.status == 0 ? "tensors" : "weft ckpt: cannot ");
        CHECK_TEXT(r.text, "/mnt/a.");
        n_full += r.status == 2;
        n_whole += r.status == 0;
    }
    CHECK(n_full > 2 && n_whole > 0);
}

/* A header and how many bytes of data follow it. */
static const struct {
    const char *header;
    int data;
    const char *fact;
} broken[] = {
    {"[1]", 0, "JSON object"},
    {"{\"w\":{\"dtype\":\"F12\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "w"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "w"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "w"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 0, "w"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, "behind the last"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "gap"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     4, "overlap"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "unique"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,4]}}", 4,
     "w"},
    {"{}", 0, "no tensors"},
    {"{\"w\\u001b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "control"},
    {"{\"w\\u0000\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "JSON"},
    {"{\"a/../w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"..\""},
    {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "empty"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "size 0"},
};

static void test_broken_safetensors_are_refused(void)
{
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char data[1024] = {0};
        const size_t length = strlen(broken[i].header);
        data[0] = (char)(length & 255), data[1] = (char)(length >> 8);
        memcpy(data + 8, broken[i].header, length);
        write_file("broken.safetensors", data, 8 + length + (size_t)broken[i].data);
        const command_result r = ckpt("import broken.safetensors never");
        weft_test_check(r.status == 2, __FILE__, __LINE__, broken[i].header);
        CHECK_EQ_INT(command_lines(r.text, ""), 1);
        CHECK_TEXT(r.text, broken[i].fact);
    }
    write_file("broken.safetensors", "\377\377\377\377\377\377\377\377{}", 10);
    CHECK_EQ_INT(ckpt("import broken.safetensors never").status, 2);
    write_file("broken.safetensors", "{}", 2);
    CHECK_EQ_INT(ckpt("import broken.safetensors never").status, 2);
    CHECK_EQ_INT(ckpt("list never").status, 2); /* and nothing was made */
}

/* Change one byte in the middle of the largest data file of the newest checkpoint. */
static void test_verify_finds_a_changed_byte(void)
{
    char line[TEXT];
    CHECK_EQ_INT(ckpt("verify a").status, 0);
    snprintf(line, sizeof line,
             "cd %s/a/ckpt && cd $(ls | tail -n 1) && f=$(ls -S *.h5 | head -n 1) && n=$(($(wc -c "
             "<$f) / 2)) && cp $f whole &&"
             "b=$(od -An -tu1 -j $n -N 1 $f) &&"
             "printf \"\\\\$(printf %%o $(((b + 1) %% 256)))\" |"
             "dd of=$f bs=1 seek=$n conv=notrunc 2>/dev/null",
             folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    const command_result r = ckpt("verify a");
    CHECK_EQ_INT(r.status, 77);
    CHECK_EQ_INT(command_lines(r.text, "weft ckpt: "), 1);
    snprintf(line, sizeof line, "cd %s/a/ckpt && cd $(ls | tail -n 1) && mv whole *.h5", folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    CHECK_EQ_INT(ckpt("verify a").status, 0);
}

static void test_wrong_commands(void)
{
    static const char *const wrong[] = {
        "diff a",
        "",
        "import a.txt never",
        "export a a.txt --format safetensor",
        "export a nowhere/a.h5",
        "export a nowhere/a.safetensors",
        "import nowhere.h5 never",
    };
    CHECK_TEXT(run_ckpt("lisst a")->text, "list");
    CHECK_TEXT(run_ckpt("export a a.txt")->text, ".safetensors and .h5");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const command_result *r = run_ckpt(wrong[i]);
        CHECK_EQ_INT(r->status, 2);
        CHECK_EQ_INT(command_lines(r->text, ""), 1);
    }
    check_good("export a a.txt --format safetensors");
    check_good("import a.txt text --format safetensors");
    check_good("--help");
}

int main(void)
{
    static char text[4000];
    is_hdf5_read = access(WEFT_TEST_BIN "/weft-read-hdf5", X_OK) == 0;
    snprintf(folder, sizeof folder, "/tmp/weft-ckpt-XXXXXX");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(' ' + i * i % 90);
    if (CHECK(mkdtemp(folder) != NULL)) {
        write_file("text.txt", text, sizeof text);
        CHECK_EQ_INT(train("--run a --steps 4 --save-every 2 --mesh data:2 --layout batch:data"),
                     0);
        RUN(test_list_and_show);
        RUN(test_json);
        RUN(test_diff);
        RUN(test_to_safetensors_and_back);
        RUN(test_to_hdf5_and_back);
        RUN(test_others_read_what_is_exported);
        RUN(test_a_full_disk);
        RUN(test_broken_safetensors_are_refused);
        RUN(test_verify_finds_a_changed_byte);
        RUN(test_wrong_commands);
        char line[TEXT];
        snprintf(line, sizeof line, "rm -r %s", folder);
        CHECK_EQ_INT(command_run(line).status, 0);
    }
    return weft_test_report();
}
