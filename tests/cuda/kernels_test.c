/* kernels_test: what the assembler says of every kernel, for every architecture: so few registers that a processor of the GPU
 * holds two thousand threads or nearly so, and nothing spilled to memory. */
#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { MOST_REGISTERS = 64, MOST_OF_ATTENTION = 128 }; /* whose blocks have half as many threads */

static int n_kernels, n_limits;

/* "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" */
static void check_spills(const char *line, const char *kernel)
{
    long stack, stores, loads;
    if (sscanf(line, " %ld bytes stack frame, %ld bytes spill stores, %ld bytes spill loads",
               &stack, &stores, &loads) != 3)
        return;
    const bool may_spill =
        strstr(kernel, "'attend_") && strstr(kernel, "f64'"); /* plain, in double */
    weft_test_check(may_spill || (stores == 0 && loads == 0), __FILE__, __LINE__, kernel);
    n_limits++;
}

static void check_registers(const char *line, const char *kernel)
{
    const char *at = strstr(line, "Used ");
    if (at == NULL || strstr(line, " registers") == NULL) return;
    const int most = strstr(kernel, "'attend_") ? MOST_OF_ATTENTION : MOST_REGISTERS;
    weft_test_check(strtol(at + strlen("Used "), NULL, 10) <= most, __FILE__, __LINE__, kernel);
    n_limits++;
}

static void look_at(const char *path)
{
    char line[1000], kernel[1000] = "";
    FILE *file = fopen(path, "r");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "Compiling entry function ");
        if (at != NULL) {
            snprintf(kernel, sizeof kernel, "%s", at);
            n_kernels++;
        }
        check_spills(line, kernel);
        check_registers(line, kernel);
    }
    fclose(file);
}

static void test_kernels_fit_the_processor(void)
{
    glob_t reports;
    CHECK_EQ_INT(glob(WEFT_TEST_CUDA_IMAGES "/*.report", 0, NULL, &reports), 0);
    for (size_t i = 0; i < reports.gl_pathc; i++)
        look_at(reports.gl_pathv[i]);
    globfree(&reports);
    CHECK(n_kernels >= 2 * 60); /* for two architectures */
    CHECK_EQ_INT(n_limits, 2 * n_kernels);
}

int main(void)
{
    RUN(test_kernels_fit_the_processor);
    return weft_test_report();
}
