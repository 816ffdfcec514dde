/* map_files.h: files of other programs that are made, carried over by `weft ckpt`, and looked for in the checkpoint. */
#ifndef TEST_MAP_FILES_H
#define TEST_MAP_FILES_H

#include "command.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "weft/checkpoint.h"

enum { LINE = 4096, MOST = 1 << 16 };

static char folder[64];

/* ---- files ----------------------------------------------------------------------------------- */

/* A safetensors file being made. */
typedef struct file {
    json_t *header;
    char data[1 << 20];
    size_t bytes;
} file;

static file made;

static inline void begin_file(void)
{
    json_decref(made.header);
    made.header = json_object();
    made.bytes = 0;
}

/* Element `i` of a tensor: a multiple of 1/16 with few bits, which all types of floats have, another for each name. */
static inline double value_of(const char *name, int64_t i)
{
    uint64_t hash = 1469598103934665603U;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    hash = (hash ^ (uint64_t)i) * 1099511628211U;
    return (double)((int64_t)(hash >> 40 & 127) - 63) / 16;
}

static inline void put(const char *type, double value)
{
    char *to = made.data + made.bytes;
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 16);
    const int exponent = (int)(bits >> 23 & 255) - 127 + 15;
    const uint16_t half =
        value == 0 ? 0
                   : (uint16_t)(bits >> 31 << 15 | (uint32_t)exponent << 10 | (bits >> 13 & 1023));
    const int64_t whole = (int64_t)value;
    if (strcmp(type, "F32") == 0) memcpy(to, &narrow, 4), made.bytes += 4;
    if (strcmp(type, "F64") == 0) memcpy(to, &value, 8), made.bytes += 8;
    if (strcmp(type, "BF16") == 0) memcpy(to, &upper, 2), made.bytes += 2;
    if (strcmp(type, "F16") == 0) memcpy(to, &half, 2), made.bytes += 2;
    if (strcmp(type, "I64") == 0) memcpy(to, &whole, 8), made.bytes += 8;
    const uint64_t natural = value > 0 ? (uint64_t)value : 0;
    if (strcmp(type, "U64") == 0) memcpy(to, &natural, 8), made.bytes += 8;
    if (strcmp(type, "BOOL") == 0) *to = whole != 0, made.bytes += 1;
}

/* sizes [n]; scale 0: all zero. */
static inline void add_tensor(const char *name, const char *type, int n, const int64_t *sizes,
                              double scale)
{
    const size_t begin = made.bytes;
    json_t *shape = json_array();
    int64_t count = 1;
    for (int d = 0; d < n; d++) {
        count *= sizes[d];
        json_array_append_new(shape, json_integer(sizes[d]));
    }
    for (int64_t i = 0; i < count; i++)
        put(type, scale * value_of(name, i));
    json_object_set_new(made.header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape,
                                  "data_offsets", (json_int_t)begin, (json_int_t)made.bytes));
}
#define SIZES(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline void write_bytes(const char *name, const char *prefix, size_t n_prefix,
                               const char *bytes, size_t n)
{
    char path[LINE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "we");
    CHECK(to && fwrite(prefix, 1, n_prefix, to) == n_prefix && fwrite(bytes, 1, n, to) == n);
    if (to) CHECK_EQ_INT(fclose(to), 0);
}

static inline void end_file(const char *name)
{
    char *text = json_dumps(made.header, JSON_COMPACT), *all;
    const uint64_t bytes = strlen(text);
    const size_t front = 8 + bytes;
    if (!CHECK((all = malloc(front)) != NULL)) return;
    memcpy(all, &bytes, 8); /* this machine is little-endian, as the format */
    memcpy(all + 8, text, bytes);
    write_bytes(name, all, front, made.data, made.bytes);
    free(all);
    free(text);
}

/* ---- programs -------------------------------------------------------------------------------- */

static inline command_result *run_ckpt(const char *arguments)
{
    static command_result result; /* a large one */
    char line[LINE];
    snprintf(line, sizeof line, "cd %s && timeout -k 1 600 " WEFT_TEST_BIN "/weft ckpt %s 2>&1",
             folder, arguments);
    result = command_run_all(line);
    return &result;
}

static inline void check_good(const char *arguments)
{
    const command_result *r = run_ckpt(arguments);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

/* ---- what is in a checkpoint ----------------------------------------------------------------- */

static inline weft_stored *open_stored(const char *name)
{
    char path[LINE];
    weft_error error = {0};
    weft_stored *stored = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(weft_stored_open(path, &stored, &error), error);
    return stored;
}

/* The tensor and its elements, as doubles [MOST]; NULL: it is not there, or its dims are not "vocab:256,embed:24". */
static inline const weft_stored_tensor *read_stored(const weft_stored *stored, const char *name,
                                                    const char *dims, double *values)
{
    static char raw[8 * MOST];
    weft_error error = {0};
    char text[256], wanted[260];
    snprintf(wanted, sizeof wanted, "[%s]", dims);
    for (int i = 0; stored && i < weft_stored_n_tensors(stored); i++) {
        const weft_stored_tensor *t = weft_stored_tensor_at(stored, i);
        if (strcmp(t->name, name) != 0) continue;
        weft_shape_print(&t->shape, text, sizeof text);
        CHECK_TEXT(text, wanted);
        if (!CHECK_OK(weft_stored_read(stored, i, raw, &error), error)) return NULL;
        const int64_t count = weft_shape_count(&t->shape);
        for (int64_t k = 0; k < count; k++)
            values[k] = weft_dtype_get(weft_dtype_find(t->dtype), raw, k);
        return t;
    }
    weft_test_check(false, __FILE__, __LINE__, name);
    return NULL;
}

/* Where element (a, b, c) of ours lies in the file's tensor; NULL: in the same order. */
typedef int64_t (*place)(int64_t a, int64_t b, int64_t c);

static inline void check_tensor(const weft_stored *stored, const char *name, const char *dims,
                                const char *from, double scale, place where)
{
    static double values[MOST];
    const weft_stored_tensor *t = read_stored(stored, name, dims, values);
    int n_wrong = 0;
    if (!t) return;
    const int64_t n[3] = {t->shape.dims[0].size, t->shape.n_dims > 1 ? t->shape.dims[1].size : 1,
                          t->shape.n_dims > 2 ? t->shape.dims[2].size : 1};
    for (int64_t a = 0; a < n[0]; a++)
        for (int64_t b = 0; b < n[1]; b++)
            for (int64_t c = 0; c < n[2]; c++) {
                const int64_t here = (a * n[1] + b) * n[2] + c;
                n_wrong += values[here] != scale * value_of(from, where ? where(a, b, c) : here);
            }
    weft_test_check(n_wrong == 0, __FILE__, __LINE__, name);
}

static inline void write_map(const char *text)
{
    write_bytes("map.json", "", 0, text, strlen(text));
}

/* A folder with a text to train on, in which `run_all` is called. */
static inline int with_folder(void (*run_all)(void))
{
    char text[2000], line[LINE];
#ifndef WEFT_HAVE_HDF5
    weft_test_skip("built without HDF5, which checkpoints are written with");
    return weft_test_report();
#endif
    snprintf(folder, sizeof folder, "/tmp/weft-map-XXXXXX");
    if (CHECK(mkdtemp(folder) != NULL)) {
        memset(text, 'a', sizeof text);
        write_bytes("text.txt", "", 0, text, sizeof text);
        run_all();
        json_decref(made.header);
        snprintf(line, sizeof line, "rm -r %s", folder);
        CHECK_EQ_INT(command_run(line).status, 0);
    }
    return weft_test_report();
}

#endif
