/* wrong_files_test: every program's reader is given files of other kinds: each is named as what it is, in one line, with status 2;
 * a byte order mark and lines of any length are no harm. */
#include "text_folder.h"

#include <jansson.h>

#include "test.h"

enum { LINE = 4096, LONG = 4096 };

static command_result run_in_folder(const char *command)
{
    char line[LINE];
    snprintf(line, sizeof line, "cd %s && PATH=%s:$PATH && { timeout -k 1 600 %s; } 2>&1", folder,
             WEFT_TEST_BIN, command);
    return command_run_all(line);
}

static void make(const char *name, const char *bytes, size_t n)
{
    char path[LINE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}
#define MAKE(name, bytes) make(name, bytes, sizeof(bytes) - 1)

static void check_refused(const char *command, const char *kind)
{
    const command_result r = run_in_folder(command);
    const bool is_good = r.status == 2 && strstr(r.text, kind) && command_lines(r.text, "") == 1;
    if (!weft_test_check(is_good, __FILE__, __LINE__, command)) fprintf(stderr, "%s\n", r.text);
}

static void check_good(const char *command)
{
    const command_result r = run_in_folder(command);
    if (!weft_test_check(r.status == 0, __FILE__, __LINE__, command))
        fprintf(stderr, "%s\n", r.text);
}

static void make_files(void)
{
    MAKE("lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
    MAKE("page", "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n");
    MAKE("utf16", "\xff\xfel\0r\0 \0=\0 \0001\0");
    MAKE("gz", "\x1f\x8b\x08\0\0\0\0\0");
    MAKE("torch",
         "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl\x80\2");
    MAKE("pickle", "\x80\x04K\1.");
    MAKE("npz", "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0w.npy\x93NUMPY");
    MAKE("csv", "label,1x1,1x2\n5,0,0\n");
    MAKE("empty", "");
}

/* What they are called in sentences. */
static const struct {
    const char *name, *kind;
    bool is_text; /* a reader of text takes it */
} wrong[] = {{"lfs", "a pointer of Git LFS", false},
             {"page", "a server's answer", false},
             {"utf16", "text in UTF-16", false},
             {"gz", "a gzip archive", false},
             {"torch", "a file of PyTorch's", false},
             {"pickle", "a Python pickle", false},
             {"npz", "NumPy arrays (.npz)", false},
             {"csv", "a table of text (CSV)", true},
             {"empty", "empty", false}};
enum { N_WRONG = sizeof wrong / sizeof *wrong };

/* unpacks: gzip is no other kind to these commands. */
static void try_all(const char *const *commands, int n, bool reads_text, bool unpacks)
{
    char line[LINE];
    for (int c = 0; c < n; c++)
        for (int i = 0; i < N_WRONG; i++) {
            if (reads_text && wrong[i].is_text) continue;
            if (unpacks && strcmp(wrong[i].name, "gz") == 0) continue;
            snprintf(line, sizeof line, commands[c], wrong[i].name);
            check_refused(line, wrong[i].kind);
        }
}

static void test_tensors_are_not_read_from_other_files(void)
{
    static const char *const commands[] = {
        "sh -c 'ln -sf %s x.safetensors; weft ckpt import x.safetensors out'",
        "sh -c 'ln -sf %s x.h5; weft ckpt import x.h5 out'",
    };
    try_all(commands, 2, false, false);
    check_refused("weft ckpt import npz out", "NumPy arrays (.npz)");
    check_refused("weft ckpt show npz", "npz is no checkpoint: it is NumPy arrays");
    check_refused("weft ckpt list lfs", "lfs is no checkpoint: it is a pointer of Git LFS");
    check_refused("sh -c 'mkdir -p d.safetensors; weft ckpt import d.safetensors out'",
                  "has neither model.safetensors nor");
    check_refused("sh -c 'mkdir -p d.h5; weft ckpt import d.h5 out'",
                  "has neither model.safetensors nor");
}

static void test_texts_are_not_read_from_other_files(void)
{
    static const char *const commands[] = {
        "weft tokens train %s words",
        "charlm --data %s --steps 1 --run r",
        "word2vec --data %s --steps 1 --run r",
    };
    static const char *const gpt = "gpt train --data %s --steps 1 --run r --quiet";
    try_all(commands, sizeof commands / sizeof *commands, true, false);
    try_all(&gpt, 1, true, true);
    check_refused("gpt train --data gz --steps 1 --run r --quiet",
                  "gz breaks off after 0 decompressed bytes");
    check_refused("sh -c 'mkdir -p folder; weft tokens train folder words'", "not a directory");
}

static void test_lines_and_json_are_not_read_from_other_files(void)
{
    check_refused("gpt train --config utf16 --run r", "no text of lines: it is text in UTF-16");
    check_refused("gpt train --config page --run r", "a server's answer");
    check_refused("gpt train --config pickle --run r", "a Python pickle");
    check_refused("weft ckpt import x.safetensors out --map ./page", "a server's answer");
    check_refused("weft ckpt import x.safetensors out --map ./utf16", "text in UTF-16");
    check_refused("weft tokens decode csv --tokens words",
                  "a table of text (CSV); weft tokens encode");
    check_refused("sh -c 'mkdir -p images; cp csv images/t10k-images-idx3-ubyte; cp csv "
                  "images/t10k-labels-idx1-ubyte; mnist --data images --run r'",
                  "is no IDX file: it is a table of text (CSV)");
    check_good("weft tokens train text.txt words --words 270");
    check_refused("sh -c 'cp -r words lost; cp lfs lost/vocab.json; weft tokens encode text.txt t "
                  "--tokens lost'",
                  "lost/vocab.json is no JSON: it is a pointer of Git LFS");
    check_refused("sh -c 'cp words/vocab.json lost; cp utf16 lost/merges.txt; weft tokens encode "
                  "text.txt t --tokens lost'",
                  "lost/merges.txt is no text of lines: it is text in UTF-16");
}

static void test_a_byte_order_mark_is_passed_over(void)
{
    MAKE("mark.conf", "\xef\xbb\xbfsteps = 1\n");
    check_good(
        "gpt train --config mark.conf --data text.txt --run r --width 24 --heads 3 --layers 1 "
        "--dry-run");
    check_refused(
        "sh -c 'printf \"\\357\\273\\277stesp = 1\" > bad.conf; gpt train --config bad.conf'",
        "did you mean steps?");
    check_good(
        "sh -c 'rm -rf marked; cp -r words marked; for f in vocab.json merges.txt; do printf "
        "\"\\357\\273\\277\" | cat - words/$f > marked/$f; done; weft tokens encode text.txt a "
        "--tokens words && weft tokens encode text.txt b --tokens marked && cmp a b'");
    /* in a text to learn from it is text, and comes back */
    check_good(
        "sh -c '(printf \"\\357\\273\\277\"; cat text.txt) > m.txt; weft tokens encode m.txt m "
        "--tokens words >m.log && weft tokens decode m --tokens words | cmp - m.txt'");
}

/* xx, xxxx, ... 4096 letters, behind the words that there are; and a text of the longest. */
static void make_long_words(void)
{
    char line[LINE], *word = calloc(LONG + 1, 1);
    snprintf(line, sizeof line, "%s/words/vocab.json", folder);
    json_t *all = json_load_file(line, 0, NULL);
    check_good("cp -r words longer");
    snprintf(line, sizeof line, "%s/longer/merges.txt", folder);
    FILE *merges = fopen(line, "a");
    if (!CHECK(word && all && merges)) return;
    for (size_t n = 1; n <= LONG; n *= 2) {
        memset(word, 'x', n);
        if (n < LONG) fprintf(merges, "%s %s\n", word, word);
        if (!json_object_get(all, word))
            json_object_set_new(all, word, json_integer((json_int_t)json_object_size(all)));
    }
    make("x.txt", word, LONG);
    snprintf(line, sizeof line, "%s/longer/vocab.json", folder);
    CHECK(json_dump_file(all, line, 0) == 0 && fclose(merges) == 0);
    json_decref(all);
    free(word);
}

/* A comment, a value and a word of a vocabulary that no buffer of old would have held. */
static void test_lines_of_any_length_are_one_line(void)
{
    check_refused("sh -c '(printf \"# \"; head -c 4085 /dev/zero | tr \"\\0\" x; echo \"steps = "
                  "nonsense\"; echo \"stesp = 1\") > long.conf; gpt train --config long.conf'",
                  "long.conf:2: stesp; did you mean steps?");
    check_refused(
        "sh -c '(printf \"data = \"; head -c 9000 /dev/zero | tr \"\\0\" x) > long.conf; gpt "
        "train --config long.conf'",
        "FILE xxxxx");
    check_refused("sh -c 'printf \"steps = 1\\0 2\\n\" > zero.conf; gpt train --config zero.conf'",
                  "zero.conf, line 1: a byte 0");
    make_long_words();
    const command_result r = run_in_folder("weft tokens encode x.txt x --tokens longer");
    CHECK_TEXT(r.text, "x: 1 tokens of 282 words, for 4096 bytes");
}

int main(void)
{
    if (!text_folder_open("/tmp", "wrong")) return 1;
    make_files();
    RUN(test_tensors_are_not_read_from_other_files);
    RUN(test_texts_are_not_read_from_other_files);
    RUN(test_lines_and_json_are_not_read_from_other_files);
    RUN(test_a_byte_order_mark_is_passed_over);
    RUN(test_lines_of_any_length_are_one_line);
    text_folder_close();
    return weft_test_report();
}
