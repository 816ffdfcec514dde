/* ckpt_tool_test: weft ckpt, as its user runs it: what it says of good and of damaged checkpoints;
 * to safetensors and back without a changed byte; files that break a rule of the format.
 */
#include "command.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { TEXT = 2048 };
static char folder[64];

/* weft ckpt ARGUMENTS, in the test's folder; what it printed, stderr too. */
static command_result ckpt(const char *arguments)
{
    char line[2 * TEXT];
    snprintf(line, sizeof line, "cd %s && timeout -k 1 30 " WEFT_TEST_BIN "/weft ckpt %s 2>&1",
             folder, arguments);
    return command_run_all(line);
}

static int train(const char *arguments)
{
    char line[2 * TEXT];
    snprintf(
        line, sizeof line,
        "cd %s && timeout -k 1 30 " WEFT_TEST_BIN
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
    static const char *const commands[] = {"list a --json", "show a --json", "verify a --json",
                                           "diff a a --json"};
    if (system("python3 -c pass") != 0) return; /* no judge of JSON here */
    for (int i = 0; i < 4; i++) {
        char line[TEXT];
        snprintf(line, sizeof line,
                 "cd %s && " WEFT_TEST_BIN "/weft ckpt %s | python3 -m json.tool >/dev/null",
                 folder, commands[i]);
        CHECK_EQ_INT(command_run_all(line).status, 0);
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

static void test_to_safetensors_and_back(void)
{
    CHECK_EQ_INT(ckpt("export a a.safetensors").status, 0);
    command_result r = ckpt("import a.safetensors back/ckpt");
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    r = ckpt("diff a back");
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    CHECK_EQ_INT(train("--run back --steps 6"), 0); /* the slots came along: it can be continued */
    CHECK_EQ_INT(train("--run a --steps 6 --mesh data:1"), 0);
    r = ckpt("diff a back");
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
}

/* A header and how many bytes of data follow it. */
static const struct {
    const char *header;
    int data;
    const char *fact;
} broken[] = {
    {"[1]", 0, "JSON object"},
    {"{\"w\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "w"},
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
    snprintf(
        line, sizeof line,
        "cd %s/a/ckpt/step_00000006 && f=$(ls -S *.h5 | head -n 1) && n=$(($(wc -c <$f) / 2)) &&"
        "b=$(od -An -tu1 -j $n -N 1 $f) &&"
        "printf \"\\\\$(printf %%o $(((b + 1) %% 256)))\" |"
        "dd of=$f bs=1 seek=$n conv=notrunc 2>/dev/null",
        folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    const command_result r = ckpt("verify a/ckpt/step_00000006");
    CHECK_EQ_INT(r.status, 77);
    CHECK_EQ_INT(command_lines(r.text, "weft ckpt: "), 1);
}

static void test_wrong_commands(void)
{
    command_result r = ckpt("lisst a");
    CHECK_EQ_INT(r.status, 2);
    CHECK_TEXT(r.text, "list");
    CHECK_EQ_INT(ckpt("diff a").status, 2);
    CHECK_EQ_INT(ckpt("").status, 2);
    CHECK_EQ_INT(ckpt("export a a.txt").status, 2);
    CHECK_EQ_INT(ckpt("--help").status, 0);
}

int main(void)
{
    static char text[4000];
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
        RUN(test_broken_safetensors_are_refused);
        RUN(test_verify_finds_a_changed_byte);
        RUN(test_wrong_commands);
        char line[TEXT];
        snprintf(line, sizeof line, "rm -r %s", folder);
        CHECK_EQ_INT(command_run(line).status, 0);
    }
    return weft_test_report();
}
