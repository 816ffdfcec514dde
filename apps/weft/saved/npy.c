/* npy: tensors as files that NumPy opens, which come to their names when they are whole.
 *
 * The head has a fixed length, so rows are appended and the first size is filled in at the end.
 * source  NumPy's description of its format 1.0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "saved.h"

enum { HEAD = 512, MAGIC = 10, NAME = 4096 };

struct npy {
    FILE *file;
    char path[NAME], beside[NAME + 24];
    weft_dtype dtype;
    weft_shape shape;
    int64_t puts;
};

static const char *const described[WEFT_DTYPES] = {
    [WEFT_F32] = "<f4", [WEFT_F64] = "<f8", [WEFT_I32] = "<i4", [WEFT_BF16] = "<f4",
    [WEFT_F16] = "<f2", [WEFT_I64] = "<i8", [WEFT_U8] = "|u1"};

static weft_status fail_write(const npy *n, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "--output: %.300s cannot be written: %s", n->path,
                     strerror(errno));
}

/* The dims by their sizes; the first as often as was put. */
static void print_head(const npy *n, char head[HEAD])
{
    char sizes[WEFT_MAX_DIMS * 24] = "";
    size_t used = 0;
    for (int d = 0; d < n->shape.n_dims; d++)
        used += (size_t)snprintf(sizes + used, sizeof sizes - used, "%lld,%s",
                                 (long long)n->shape.dims[d].size * (d == 0 ? n->puts : 1),
                                 d + 1 < n->shape.n_dims ? " " : "");
    memset(head, ' ', HEAD);
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)((HEAD - MAGIC) & 255), head[9] = (char)((HEAD - MAGIC) >> 8);
    const int length = snprintf(head + MAGIC, HEAD - MAGIC,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                                described[n->dtype], sizes);
    head[MAGIC + length] = ' ';
    head[HEAD - 1] = '\n';
}

weft_status npy_create(const char *path, weft_dtype dtype, const weft_shape *shape, npy **file,
                       weft_error *error)
{
    char head[HEAD];
    npy *n = calloc(1, sizeof *n);
    if (n == NULL) return weft_fail_memory(error, sizeof *n);
    snprintf(n->path, sizeof n->path, "%s", path);
    snprintf(n->beside, sizeof n->beside, "%s.%ld.new", n->path, (long)getpid());
    n->dtype = dtype, n->shape = *shape;
    n->file = fopen(n->beside, "w");
    *file = n;
    if (n->file == NULL) return fail_write(n, error);
    print_head(n, head);
    return fwrite(head, 1, HEAD, n->file) == HEAD ? WEFT_OK : fail_write(n, error);
}

weft_status npy_put(npy *n, const void *numbers, weft_error *error)
{
    const int64_t count = weft_shape_count(&n->shape);
    n->puts++;
    if (n->dtype != WEFT_BF16) {
        const size_t bytes = (size_t)count * weft_dtype_bytes(n->dtype);
        return fwrite(numbers, 1, bytes, n->file) == bytes ? WEFT_OK : fail_write(n, error);
    }
    for (int64_t i = 0; i < count; i++) {
        const float number = (float)weft_dtype_get(n->dtype, numbers, i);
        if (fwrite(&number, sizeof number, 1, n->file) != 1) return fail_write(n, error);
    }
    return WEFT_OK;
}

weft_status npy_end(npy **file, weft_error *error)
{
    npy *n = *file;
    char head[HEAD];
    print_head(n, head);
    bool is_written = fseek(n->file, 0, SEEK_SET) == 0 && fwrite(head, 1, HEAD, n->file) == HEAD;
    is_written = fflush(n->file) == 0 && is_written && fsync(fileno(n->file)) == 0;
    is_written = is_written && rename(n->beside, n->path) == 0;
    const weft_status status = is_written ? WEFT_OK : fail_write(n, error);
    npy_drop(file);
    return status;
}

void npy_drop(npy **file)
{
    npy *n = *file;
    if (n == NULL) return;
    if (n->file) (void)fclose(n->file);
    (void)unlink(n->beside); /* after npy_end there is none */
    free(n);
    *file = NULL;
}
