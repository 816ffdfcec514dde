/* data_test: a run continues with the data that it has learned from. Another file, window or vocabulary is refused
 * with both, unless --data-changed allows it. The same bytes under another name are the same, and ranks with other
 * files do not begin.
 */
#include "text_folder.h"

#include <jansson.h>

#include "io/checkpoint/manifest.h"

typedef struct change {
    const char *arguments; /* in place of the task's own data; %s: the folder */
    const char *sentence;
    bool fits; /* --data-changed goes on with it */
} change;

typedef struct task {
    const char *program, *net, *data,
        *moved; /* arguments; moved: the same data elsewhere, "" none */
    change changes[4];
} task;

static const task tasks[] = {
    {"gpt train",
     "--layers 1 --width 8 --heads 2 --batch 4 --rope --quiet",
     "--seq 8 --data %s/text.txt",
     "--seq 8 --data %s/moved.txt",
     {{"--seq 8 --data %s/short.txt", "and is 500 bytes (hash ", true},
      {"--seq 8 --data %s/longer.txt",
       "it has grown from 8000 to 8006 bytes, of which the first 8000 are the same; give", true},
      {"--seq 8 --data %s/edited.txt", "text was 8000 bytes (hash ", true},
      {"--seq 6 --data %s/text.txt", "other data: seq was 8 and is 6;", true}}},
    {"gpt train",
     "--layers 1 --width 8 --heads 2 --batch 4 --quiet",
     "--seq 8 --tokens %s/words --data %s/text.tokens",
     "--seq 8 --tokens %s/copied --data %s/text.tokens",
     {{"--seq 8 --tokens %s/swapped --data %s/text.tokens", "words was 260 words (hash ", true},
      {"--seq 8 --tokens %s/words --data %s/short.tokens", "tokens was ", true}}},
    {"charlm",
     "--width 8 --batch 4",
     "--seq 8 --data %s/text.txt",
     "--seq 8 --data %s/moved.txt",
     {{"--seq 8 --data %s/short.txt", "text was 8000 bytes (hash ", true},
      {"--seq 6 --data %s/text.txt", "seq was 8 and is 6", true}}},
    {"charlm",
     "--width 8 --batch 4 --carry",
     "--seq 8 --data %s/text.txt",
     "--seq 8 --data %s/moved.txt",
     {{"--seq 8 --data %s/edited.txt", "text was 8000 bytes (hash ", true},
      {"--seq 6 --data %s/text.txt", "seq was 8 and is 6", true}}},
    {"mnist",
     "--hidden 4 --batch 10",
     "--data %s/digits",
     "--data %s/packed",
     {{"--data %s/others", "labels was 10008 bytes (hash ", true}}},
    {"seq2seq",
     "--letters 5 --width 8 --heads 2 --batch 4 --beam 1 --model lstm",
     "--length 4",
     "",
     {{"--length 3", "length was 4 and is 3", true}}},
    {"word2vec",
     "--width 4 --batch 8 --thin 0",
     "--window 3 --data %s/text.txt",
     "--window 3 --data %s/moved.txt",
     {{"--window 3 --data %s/turned.txt", " words (hash ", true},
      {"--window 2 --data %s/text.txt", "window was 3 and is 2", true}}},
    {"gpt train",
     "--layers 1 --width 8 --heads 2 --batch 4 --rope --quiet --pack",
     "--seq 8 --data %s/text.txt",
     "--seq 8 --data %s/moved.txt",
     {{"--seq 8 --data %s/edited.txt", "data was text: 8000 bytes (hash ", true},
      {"--seq 6 --data %s/text.txt", "then pack seq 8 of text, end -1, index ", true}}},
};
enum { N_TASKS = sizeof tasks / sizeof *tasks, TEXT = 4096 };

static const command_result *run(const char *launcher, const task *t, const char *data,
                                 const char *name, const char *more)
{
    static command_result r;
    char line[TEXT], arguments[TEXT / 2];
    snprintf(arguments, sizeof arguments, data, folder, folder);
    snprintf(line, sizeof line,
             "timeout -k 1 600 %s " WEFT_TEST_BIN
             "/%s %s --schedule constant --run %s/%s %s %s 2>&1",
             launcher, t->program, t->net, folder, name, arguments, more);
    r = command_run_all(line);
    return &r;
}

static void check_good(const command_result *r)
{
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

static void test_another_set_is_refused_with_both(void)
{
    for (int i = 0; i < N_TASKS; i++) {
        const task *t = &tasks[i];
        check_good(run("", t, t->data, "own", "--steps 2 --fresh"));
        for (int c = 0; c < 4 && t->changes[c].arguments; c++) {
            const command_result *r = run("", t, t->changes[c].arguments, "own", "--steps 4");
            CHECK_EQ_INT(r->status, 2);
            CHECK_TEXT(r->text, "has learned from other data: ");
            CHECK_TEXT(r->text, t->changes[c].sentence);
            CHECK_TEXT(r->text, "or --data-changed to go on with this");
            CHECK_EQ_INT(command_lines(r->text, ""), 1);
        }
        if (*t->moved) check_good(run("", t, t->moved, "own", "--steps 4"));
    }
}

/* Where what is told goes: gpt says it unless it is quiet. */
static const char *loud(const task *t, const char *quiet, const char *other)
{
    return strncmp(t->program, "gpt", 3) == 0 ? other : quiet;
}

/* Meant, it goes on, from the first sample; the same command again is then the same data, and what was before is other data. */
static void test_other_data_may_be_meant(void)
{
    for (int i = 0; i < N_TASKS; i++) {
        const task *t = &tasks[i];
        for (int c = 0; c < 4 && t->changes[c].fits; c++) {
            const char *other = t->changes[c].arguments;
            check_good(run("", t, t->data, "meant", "--steps 2 --fresh"));
            const command_result *r =
                run("", t, other, "meant",
                    loud(t, "--steps 3 --data-changed", "--steps 3 --data-changed --no-quiet"));
            check_good(r);
            CHECK_TEXT(r->text, "goes on with other data, from its first sample: ");
            check_good(run("", t, other, "meant", "--steps 4"));
            CHECK_EQ_INT(run("", t, t->data, "meant", "--steps 5")->status, 2);
        }
    }
}

static void forget_data(const char *name)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s/ckpt/step_%08d/manifest.json", folder, name, 2);
    json_t *root = json_load_file(path, 0, NULL);
    if (!CHECK(root != NULL)) return;
    CHECK_EQ_INT(json_object_del(root, "data"), 0);
    CHECK(weft_manifest_seal(root));
    CHECK_EQ_INT(json_dump_file(root, path, JSON_INDENT(1) | JSON_SORT_KEYS), 0);
    json_decref(root);
}

static void test_a_checkpoint_of_before_goes_on_and_says_so(void)
{
    static const int some[] = {0, 2, 6};
    for (int i = 0; i < 3; i++) {
        const task *t = &tasks[some[i]];
        check_good(run("", t, t->data, "old", "--steps 2 --fresh"));
        forget_data("old");
        const command_result *r =
            run("", t, t->data, "old", loud(t, "--steps 3", "--steps 3 --no-quiet"));
        check_good(r);
        CHECK_TEXT(r->text, "does not say what it has learned from");
    }
}

/* Each rank a file of its own by one name: what a host's disk would have. */
static void test_ranks_with_other_files_do_not_begin(void)
{
    static const char *const programs[] = {
        "gpt train --layers 1 --width 8 --heads 2 --batch 4 --seq 8 --quiet",
        "charlm --width 8 --batch 4 --seq 8", "charlm --width 8 --batch 4 --seq 8 --carry",
        "word2vec --width 4 --batch 8 --thin 0"};
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    for (int i = 0; i < 8; i++) {
        char line[TEXT];
        const bool is_same = i % 2 == 0;
        snprintf(line, sizeof line,
                 "timeout -k 1 600 " WEFT_TEST_MPIEXEC
                 " -n 2 --oversubscribe sh -c 'exec " WEFT_TEST_BIN
                 "/%s --steps 2 --fresh --run %s/ranks --data %s/of%s.txt' 2>&1",
                 programs[i / 2], folder, folder, is_same ? "0" : "$OMPI_COMM_WORLD_RANK");
        const command_result r = command_run_all(line);
        CHECK_EQ_INT(r.status, is_same ? 0 : 2);
        if (!is_same) CHECK_TEXT(r.text, "ranks have other data: ");
        if (!is_same) CHECK_TEXT(r.text, "at rank 1; give all ranks the same files");
    }
}

static void test_a_text_is_written_in_the_words_of_the_run(void)
{
    char line[TEXT];
    const task *t = &tasks[1];
    check_good(run("", t, t->data, "spoken", "--steps 2 --fresh"));
    for (int other = 0; other < 2; other++) {
        snprintf(line, sizeof line,
                 WEFT_TEST_BIN "/gpt sample --run %s/spoken --sample 5 --tokens %s/%s 2>&1", folder,
                 folder, other ? "swapped" : "words");
        const command_result r = command_run_all(line);
        CHECK_EQ_INT(r.status, other ? 2 : 0);
        if (other) CHECK_TEXT(r.text, "was trained with 260 words (hash ");
    }
}

/* What another program was given comes back with what it has learned from. */
static void test_the_data_goes_with_a_checkpoint(void)
{
    static const char *const files[] = {"there.safetensors", "there.h5"};
    const task *t = &tasks[0];
    /* HDF5 is read by a process of its own, which may not start an emulator. */
    const int n = WEFT_TEST_EMULATOR[0] != '\0' ? 1 : 2;
    for (int i = 0; i < n; i++) {
        char line[TEXT];
        check_good(run("", t, t->data, "carried", "--steps 2 --fresh"));
        snprintf(line, sizeof line,
                 "cd %s && rm -rf back && %s/weft ckpt export carried %s && %s/weft ckpt import %s "
                 "back/ckpt 2>&1",
                 folder, WEFT_TEST_BIN, files[i], WEFT_TEST_BIN, files[i]);
        const command_result r = command_run_all(line);
        if (r.status == 2 && strstr(r.text, "seccomp")) continue;
        check_good(&r);
        const command_result *back = run("", t, t->changes[0].arguments, "back", "--steps 3");
        CHECK_EQ_INT(back->status, 2);
        CHECK_TEXT(back->text, "has learned from other data: ");
        check_good(run("", t, t->data, "back", "--steps 3"));
    }
}

/* Letters, 1 to 26: as many classes as there are, counted; of ten the first that is none is named, and nothing is learned. */
static void test_labels_that_are_no_classes_are_refused(void)
{
    const task *t = &tasks[4];
    const char *launchers[] = {"", WEFT_TEST_MPIEXEC " -n 2 --oversubscribe"};
    for (int i = 0; i < 1 + (WEFT_TEST_MPIEXEC[0] != '\0'); i++) {
        const command_result *r =
            run(launchers[i], t, "--data %s/letters", "alphabet", "--steps 2 --fresh");
        check_good(r);
        CHECK_TEXT(r->text, "27 classes\n");
        r = run(launchers[i], t, "--data %s/letters", "alphabet", "--steps 2 --fresh --classes 10");
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, "labels-idx1-ubyte: label 9 is 10, and there are 10 classes, 0 to 9");
        CHECK_EQ_INT(command_lines(r->text, "mnist: "), 1);
    }
    CHECK(strstr(run("", t, t->data, "ten", "--steps 2 --fresh")->text, "classes\n") == NULL);
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* shift -1: labels of letters. */
static void write_digits(const char *name, int shift)
{
    static const unsigned char heads[2][16] = {{0, 0, 8, 3, 0, 0, 39, 16, 0, 0, 0, 28, 0, 0, 0, 28},
                                               {0, 0, 8, 1, 0, 0, 39, 16}};
    char path[TEXT];
    snprintf(path, sizeof path, "mkdir %s/%s", folder, name);
    CHECK_EQ_INT(command_run_all(path).status, 0);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s/t10k-%s-ubyte", folder, name,
                 k == 0 ? "images-idx3" : "labels-idx1");
        FILE *file = fopen(path, "wb");
        if (!CHECK(file != NULL)) return;
        CHECK(fwrite(heads[k], k == 0 ? 16 : 8, 1, file) == 1);
        for (int i = 0; i < 10000; i++)
            if (k == 1) fputc(shift < 0 ? 1 + i % 26 : (i + shift) % 10, file);
        if (k == 0) CHECK_EQ_INT(ftruncate(fileno(file), 16 + 10000 * 784), 0);
        CHECK_EQ_INT(fclose(file), 0);
    }
}

/* Words 256 and 257 have changed places: as many as before, and other ones. */
static bool write_files(void)
{
    static const char commands[] =
        "set -e; cd %s; B=%s; cp text.txt moved.txt; head -c 500 text.txt >short.txt; (cat "
        "text.txt; "
        "printf 'a fox.') >longer.txt; sed 's/lazy/hazy/13;s/quick/quack/40' text.txt >edited.txt; "
        "tr 'qf' 'fq' <text.txt >turned.txt; cp text.txt of0.txt; tr 'qf' 'fq' <text.txt >of1.txt; "
        "$B/weft tokens train text.txt words --words 260 >/dev/null; "
        "$B/weft tokens encode text.txt text.tokens --tokens words >/dev/null; "
        "$B/weft tokens encode short.txt short.tokens --tokens words >/dev/null; "
        "cp -r words copied; cp -r words swapped; "
        "sed -i 's/:256,/:X,/;s/:257,/:256,/;s/:X,/:257,/' swapped/vocab.json; "
        "cp -r digits packed; gzip packed/*";
    char line[TEXT];
    write_digits("digits", 0);
    write_digits("others", 1);
    write_digits("letters", -1);
    snprintf(line, sizeof line, commands, folder, WEFT_TEST_BIN);
    return command_run_all(line).status == 0;
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "data")) || !CHECK(write_files()))
        return weft_test_report();
    RUN(test_another_set_is_refused_with_both);
    RUN(test_other_data_may_be_meant);
    RUN(test_a_checkpoint_of_before_goes_on_and_says_so);
    RUN(test_ranks_with_other_files_do_not_begin);
    RUN(test_a_text_is_written_in_the_words_of_the_run);
    RUN(test_the_data_goes_with_a_checkpoint);
    RUN(test_labels_that_are_no_classes_are_refused);
    text_folder_close();
    return weft_test_report();
}
