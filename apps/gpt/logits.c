/* logits: a .npy file: a magic number, the length of a header, the header, a dictionary of Python's as text, and the numbers.
 *
 * source  numpy.lib.format, "Format Version 1.0"
 */
#include "logits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 128 }; /* bytes before the numbers: a multiple of 64 */

static bool write_head(FILE *file, int64_t rows, int64_t columns)
{
    char head[HEAD];
    const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, HEAD - 10, 0};
    memset(head, ' ', sizeof head);
    memcpy(head, magic, sizeof magic);
    const int n = snprintf(head + sizeof magic, sizeof head - sizeof magic,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld)}",
                           (long long)rows, (long long)columns);
    head[sizeof magic + (size_t)n] = ' ';
    head[HEAD - 1] = '\n';
    return fwrite(head, 1, sizeof head, file) == sizeof head;
}

static bool write_numbers(FILE *file, weft_dtype dtype, const void *numbers, int64_t count)
{
    bool is_good = true;
    for (int64_t i = 0; is_good && i < count; i++) {
        const float number = (float)weft_dtype_get(dtype, numbers, i);
        is_good = fwrite(&number, sizeof number, 1, file) == 1;
    }
    return is_good;
}

weft_status gpt_logits_write(const char *path, weft_dtype dtype, const void *numbers, int64_t rows,
                             int64_t columns, weft_error *error)
{
    FILE *file = fopen(path, "wbe");
    bool is_good = file && write_head(file, rows, columns) &&
                   write_numbers(file, dtype, numbers, rows * columns);
    if (file) is_good = fclose(file) == 0 && is_good;
    if (is_good) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", path, strerror(errno));
}
