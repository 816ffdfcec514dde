/* readers_test: --readers of every program that reads data: the losses are those of ranks that each read what they hold, when others go on,
 * too. A damaged file and numbers that cannot be give one sentence.
 */
#include "png.h"
#include "text_folder.h"

enum { STEPS = 6, EACH = 10, SIDE = 12 };
#define TWO_RANKS WEFT_TEST_MPIEXEC " -n 2 --oversubscribe "

/* Names of classes are those of folders; an image is like no other. */
static void write_images(const char *name)
{
    static const char *const classes[] = {"dark", "light"};
    unsigned char pixels[SIDE * SIDE];
    char path[300];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < EACH; i++) {
            snprintf(path, sizeof path, "mkdir -p %s/%s", name, classes[k]);
            CHECK_EQ_INT(text_folder_run(path)->status, 0);
            snprintf(path, sizeof path, "%s/%s/%s/%d.png", folder, name, classes[k], i);
            for (int p = 0; p < SIDE * SIDE; p++)
                pixels[p] = (unsigned char)(100 * k + (p * (7 + i)) % 90);
            CHECK(png_write(path, SIDE, SIDE, 1, pixels));
        }
}

static const char *const tasks[] = {
    "gpt train --layers 1 --width 8 --heads 2 --batch 4 --seq 8 --quiet --data text.txt "
    "--eval-share 0.1 --eval-steps 2",
    "gpt train --layers 1 --width 8 --heads 2 --batch 4 --seq 8 --pack --rope --quiet "
    "--data text.txt",
    "charlm --width 8 --batch 4 --seq 8 --data text.txt",
    "charlm --width 8 --batch 4 --seq 8 --carry --data text.txt",
    "mnist --hidden 4 --batch 5 --data images",
    "seq2seq --letters 5 --length 4 --width 8 --heads 2 --batch 4 --beam 1 --model lstm",
    "word2vec --width 4 --batch 8 --thin 0 --window 3 --data text.txt",
};
enum { N_TASKS = sizeof tasks / sizeof *tasks };

static const command_result *run(const char *launcher, const char *task, const char *more)
{
    char line[1024];
    snprintf(line, sizeof line, "%s" WEFT_TEST_BIN "/%s --steps %d --schedule constant %s",
             launcher, task, STEPS, more);
    return text_folder_run(line);
}

static void must(const char *launcher, const char *task, const char *more)
{
    const command_result *r = run(launcher, task, more);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

static void check_losses(const char *a, const char *b)
{
    double losses[2][STEPS] = {{0}};
    char path[300];
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, a);
    CHECK_EQ_INT(text_folder_losses(path, losses[0], STEPS), STEPS);
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, b);
    CHECK_EQ_INT(text_folder_losses(path, losses[1], STEPS), STEPS);
    CHECK(losses[0][STEPS - 1] > 0 && memcmp(losses[0], losses[1], sizeof losses[0]) == 0);
}

static void test_losses_are_the_same_whoever_reads(void)
{
    for (int t = 0; t < N_TASKS; t++) {
        char more[200];
        snprintf(more, sizeof more, "--mesh model:2 --run each%d", t);
        must("", tasks[t], more);
        snprintf(more, sizeof more, "--mesh model:2 --readers 1 --until 3 --run few%d", t);
        must(TWO_RANKS, tasks[t], more);
        snprintf(more, sizeof more, "--mesh model:2 --readers 2 --run few%d", t);
        must(TWO_RANKS, tasks[t], more);
        char names[2][24];
        snprintf(names[0], sizeof names[0], "each%d", t);
        snprintf(names[1], sizeof names[1], "few%d", t);
        check_losses(names[0], names[1]);
    }
}

static void check_refused(const char *launcher, const char *more, int status, const char *sentence)
{
    const command_result *r = run(launcher, tasks[4], more);
    weft_test_check(r->status == status, __FILE__, __LINE__, r->text);
    CHECK_EQ_INT(command_lines(r->text, "mnist: "), 1);
    CHECK_TEXT(r->text, sentence);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    check_refused("", "--readers 0 --run no", 2, "--readers 0: readers must be from 1 to ");
    check_refused("", "--readers -1 --run no", 2, "readers must be from 1 to ");
    check_refused("", "--readers two --run no", 2, "\"two\" is not a whole number");
    check_refused("", "--mesh data:2 --readers 3 --run no", 2,
                  "--readers 3, and mesh data:2 has 2 ranks; give 1 to 2, or leave it away");
    check_refused(TWO_RANKS, "--readers 3 --run no", 2, "--readers 3, and mesh data:2 has 2 ranks");
}

/* One of the two ranks comes to it. */
static void test_what_a_reader_cannot_read_is_one_sentence(void)
{
    CHECK_EQ_INT(text_folder_run("cp -r images damaged && for i in damaged/*/*.png; do printf xxxx "
                                 "| dd of=$i bs=1 seek=60 conv=notrunc status=none; done")
                     ->status,
                 0);
    for (int n = 1; n <= 2; n++) {
        char more[120];
        snprintf(more, sizeof more, "--mesh model:2 --data damaged --readers %d --run bad%d", n, n);
        const command_result *r = run(TWO_RANKS, "mnist --hidden 4 --batch 5", more);
        weft_test_check(r->status == 74 || r->status == 2, __FILE__, __LINE__, r->text);
        CHECK_EQ_INT(command_lines(r->text, "mnist: "), 1);
        CHECK_TEXT(r->text, ".png");
    }
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "readers"))) return weft_test_report();
    write_images("images");
    if (strstr(text_folder_run(WEFT_TEST_BIN "/weft data images")->text, "install the package"))
        weft_test_skip("built without what reads images");
    else if (WEFT_TEST_MPIEXEC[0] == '\0')
        weft_test_skip("built without MPI");
    else {
        RUN(test_losses_are_the_same_whoever_reads);
        RUN(test_what_cannot_be_is_one_sentence);
        RUN(test_what_a_reader_cannot_read_is_one_sentence);
    }
    text_folder_close();
    return weft_test_report();
}
