/* torch_table.h: what a case gives, beside the lines that PyTorch gave for it:
 *
 *     CASE OUTPUT sum squares first middle last
 */
#ifndef TORCH_TABLE_H
#define TORCH_TABLE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "oracle.h"
#include "test.h"

static inline void check_numbers(const char *line, const weft_oracle_result *result, int output,
                                 const double *expected)
{
    if (!CHECK(output < result->n_outputs)) return;
    const double *data = result->data[output];
    const int64_t count = result->count[output];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += data[i], squares += data[i] * data[i];
    const double found[5] = {sum, squares, data[0], data[count / 2], data[count - 1]};
    for (int i = 0; i < 5; i++) {
        char text[400];
        snprintf(text, sizeof text, "\"%.200s\": number %d is %.17g", line, i + 1, found[i]);
        const double scale = i == 1 ? 0 : sqrt(squares);
        weft_test_check(fabs(expected[i] - found[i]) <= 1e-12 * fmax(fabs(expected[i]), scale),
                        __FILE__, __LINE__, text);
    }
}

static inline int output_named(const char *const *outputs, const char *name, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(outputs[i], name) == 0) return i;
    return n;
}

/* Of the case called `name` every line of the table, each about one of `outputs`, in the order in which the case gives them. */
static inline void check_torch_table(const char *table, const char *name,
                                     const char *const *outputs, const weft_oracle_result *result)
{
    char path[512], line[512], of[64], what[16];
    double x[5];
    int n_lines = 0;
    snprintf(path, sizeof path, "%s/reference/%s", WEFT_TEST_DATA, table);
    FILE *file = fopen(path, "r");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const int n = sscanf(line, "%63s %15s %lf %lf %lf %lf %lf", of, what, &x[0], &x[1], &x[2],
                             &x[3], &x[4]);
        if (strcmp(of, name) != 0) continue;
        weft_test_check(n == 7, __FILE__, __LINE__, line);
        check_numbers(line, result, output_named(outputs, what, result->n_outputs), x);
        n_lines++;
    }
    fclose(file);
    CHECK_EQ_INT(n_lines, result->n_outputs);
}

#endif
