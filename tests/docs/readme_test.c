/* readme_test: the program in the README is tests/apps/readme_program.c, letter by letter, and it learns the same
 * alone and on a mesh.
 */
#define main readme_main
#include "tests/apps/readme_program.c"
#undef main

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { IMAGES = 256, PIXELS = 784, TEXT = 1 << 16 };
static char folder[] = "/tmp/weft-readme-XXXXXX";

/* The whole of a file under the project's root as text; "" when it cannot be read. */
static char *read_file(const char *name)
{
    char path[1024];
    char *text = calloc(1, TEXT);
    snprintf(path, sizeof path, "%s/../%s", WEFT_TEST_DATA, name);
    FILE *file = fopen(path, "r");
    if (!weft_test_check(file != NULL && text != NULL, __FILE__, __LINE__, path)) exit(1);
    const size_t n = fread(text, 1, TEXT - 1, file);
    CHECK(n > 0 && n < TEXT - 1);
    fclose(file);
    return text;
}

static void test_readme_shows_this_program(void)
{
    char *readme = read_file("README.md"), *program = read_file("tests/apps/readme_program.c");
    char *begin = strstr(readme, "```c\n");
    char *end = begin != NULL ? strstr(begin, "\n```\n") : NULL;
    if (CHECK(begin != NULL && end != NULL)) {
        end[1] = '\0';
        CHECK(strcmp(begin + strlen("```c\n"), program) == 0);
    }
    free(readme);
    free(program);
}

/* Noise, in which ten pixels in a hundred are a little brighter for each label. */
static void write_images(const char *images, const char *labels)
{
    static const unsigned char image_header[] = {0, 0, 8, 3, 0, 0, 1, 0, 0, 0, 0, 28, 0, 0, 0, 28};
    static const unsigned char label_header[] = {0, 0, 8, 1, 0, 0, 1, 0};
    FILE *first = fopen(images, "wb"), *second = fopen(labels, "wb");
    if (!CHECK(first != NULL && second != NULL)) exit(1);
    fwrite(image_header, 1, sizeof image_header, first);
    fwrite(label_header, 1, sizeof label_header, second);
    for (int i = 0; i < IMAGES; i++) {
        fputc(i % 10, second);
        for (int p = 0; p < PIXELS; p++)
            fputc((i * 977 + p * 331 + i * p * 7) % 199 + (p % 10 == i % 10 ? 50 : 0), first);
    }
    fclose(first);
    fclose(second);
}

/* What the program prints, run as `mlp IMAGES LABELS MESH LAYOUT`. */
static void run(const char *mesh, const char *layout, char *printed)
{
    char images[128], labels[128], output[128];
    snprintf(images, sizeof images, "%s/images", folder);
    snprintf(labels, sizeof labels, "%s/labels", folder);
    snprintf(output, sizeof output, "%s/output", folder);
    write_images(images, labels);
    char *arguments[] = {"mlp", images, labels, (char *)mesh, (char *)layout, NULL};
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    CHECK(freopen(output, "w", stdout) != NULL);
    const int status = readme_main(5, arguments);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    CHECK_EQ_INT(status, 0);
    FILE *file = fopen(output, "r");
    if (!CHECK(file != NULL)) exit(1);
    printed[fread(printed, 1, TEXT - 1, file)] = '\0';
    fclose(file);
    unlink(images);
    unlink(labels);
    unlink(output);
}

/* The number behind the n-th "loss", n from 0; NaN when there is none. */
static double loss_of(const char *printed, int n)
{
    double loss;
    for (printed = strstr(printed, "loss "); printed != NULL;
         printed = strstr(printed + 1, "loss "))
        if (n-- == 0) return sscanf(printed, "loss %lf", &loss) == 1 ? loss : NAN;
    return NAN;
}

static void test_it_learns_the_same_on_a_mesh(void)
{
    static char alone[TEXT], mesh[TEXT];
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    run("", "", alone);
    run("data:2,model:2", "batch:data,hidden:model", mesh);
    rmdir(folder);
    for (int n = 0; n < 5; n++)
        CHECK(fabs(loss_of(mesh, n) - loss_of(alone, n)) <= 2e-4 + 1e-3 * loss_of(alone, n));
    CHECK(loss_of(alone, 4) < loss_of(alone, 0));
    CHECK(loss_of(alone, 4) < 1.0);
}

int main(void)
{
    RUN(test_readme_shows_this_program);
    RUN(test_it_learns_the_same_on_a_mesh);
    return weft_test_report();
}
