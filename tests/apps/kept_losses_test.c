/* kept_losses_test: a few steps of the programs end with the losses that they had on x86-64 with AVX-512, except for
 * the rounding of f32: on another processor, by other kernels and another BLAS, too.
 *
 * After an intended change of a model, its initial values or its batches, take the losses that a failed check prints.
 */
#include "losses.h"
#include "text_folder.h"

#include <stdint.h>

#include "test.h"

static const double apart = 1e-5; /* of the loss; 20 steps were seen to differ by 2e-7 */

typedef struct training {
    const char *line; /* of a program, its options but for where its data and run are */
    const char *data; /* in the folder */
    double loss;      /* of the last step */
} training;

#define GPT    "gpt train --layers 2 --width 32 --heads 4 --seq 16 --batch 8 --steps 20 "
#define MNIST  "mnist --batch 20 --steps 20 "
#define CHARLM "charlm --width 32 --seq 16 --batch 8 --steps 20 "

static const training trainings[] = {
    {GPT, "text.txt", 4.977222},
    {GPT "--mesh data:2 --layout batch:data --zero 3", "text.txt", 4.977222},
    {GPT "--mesh model:2 --layout hidden:model,heads:model,vocab:model", "text.txt", 4.977222},
    {GPT "--rope --norm rms --experts 4 --optimizer lion", "text.txt", 4.914185},
    {MNIST "--hidden 64", "", 0.736033},
    {MNIST "--model cnn --channels 4 --hidden 32", "", 1.671909},
    {CHARLM, "text.txt", 5.275057},
    {CHARLM "--model gru --layers 2 --dropout 0.1", "text.txt", 5.034078},
};
enum { N_TRAININGS = sizeof trainings / sizeof *trainings };

enum { STEPS = 20 };

/* As the run's metrics have it, or what follows the last "loss " that the program said; 0: nothing. */
static double last_loss(int i, const char *text)
{
    char run[200];
    double loss = 0, losses[STEPS + 1] = {0};
    snprintf(run, sizeof run, "%s/run%d", folder, i);
    if (losses_read(run, STEPS, losses) == STEPS) return losses[STEPS];
    for (const char *at = text; (at = strstr(at, "loss ")) != NULL; at++)
        loss = atof(at + strlen("loss "));
    return loss;
}

static void test_losses_are_those_kept(void)
{
    static command_result r; /* large: not on the stack */
    char line[2048], text[1024];
    for (int i = 0; i < N_TRAININGS; i++) {
        const training *t = &trainings[i];
        snprintf(line, sizeof line, WEFT_TEST_BIN "/%s --data %s/%s --run %s/run%d 2>&1", t->line,
                 folder, t->data, folder, i);
        r = command_run_all(line);
        const double loss = last_loss(i, r.text);
        snprintf(text, sizeof text, "%s: loss %.7g, kept %.7g: %.1e apart; %.300s", t->line, loss,
                 t->loss, fabs(loss - t->loss) / t->loss, r.status != 0 ? r.text : "");
        printf("%s\n", text);
        weft_test_check(r.status == 0 && loss > 0 && fabs(loss - t->loss) <= apart * t->loss,
                        __FILE__, __LINE__, text);
    }
}

/* ---- digits, near enough for a net ------------------------------------------------------------- */

enum { IMAGES = 10000, SIDE = 28 };

static FILE *open_idx(const char *name, const unsigned char *header, size_t bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file != NULL) fwrite(header, 1, bytes, file);
    return file;
}

/* Image i is a bar whose slope is its label's, with some dots. */
static bool write_digits(void)
{
    static const unsigned char images[16] = {0, 0, 8, 3,    0, 0, 0x27, 0x10,
                                             0, 0, 0, SIDE, 0, 0, 0,    SIDE};
    static const unsigned char labels[8] = {0, 0, 8, 1, 0, 0, 0x27, 0x10};
    FILE *image_file = open_idx("t10k-images-idx3-ubyte", images, sizeof images);
    FILE *label_file = open_idx("t10k-labels-idx1-ubyte", labels, sizeof labels);
    uint32_t dots = 1;
    if (image_file == NULL || label_file == NULL) return false;
    for (int i = 0; i < IMAGES; i++) {
        fputc(i % 10, label_file);
        for (int at = 0; at < SIDE * SIDE; at++) {
            const int row = at / SIDE, column = at % SIDE;
            dots = dots * 1664525u + 1013904223u;
            const bool is_bar = abs(10 * column - 100 - (i % 10) * row) < 15;
            fputc(is_bar ? 200 : dots >> 28 == 0 ? 100 : 0, image_file);
        }
    }
    return fclose(image_file) == 0 && fclose(label_file) == 0;
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "kept-losses")) || !CHECK(write_digits()))
        return weft_test_report();
    RUN(test_losses_are_those_kept);
    text_folder_close();
    return weft_test_report();
}
