/* shards: tensors that go into a file of the format, or, where they are more than a file may have, into several, in their order, with
 * an index that says which has each: model-00001-of-00003.safetensors, ..., model.safetensors.index.json. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../json.h"
#include "carry.h"

enum { MAX_PATH = 4096 };
static const char ending[] = ".safetensors";

int64_t carry_bytes_of(const carried *t)
{
    int64_t bytes = (int64_t)weft_dtype_bytes(t->dtype);
    for (int d = 0; d < t->n_dims; d++)
        bytes *= t->sizes[d];
    return bytes;
}

/* ---- one file -------------------------------------------------------------------------------- */

/* The new name is on the disk, not only on its way to it. */
static weft_status sync_directory(const char *path, weft_error *error)
{
    char directory[MAX_PATH];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash) slash[slash == directory] = 0;
    const int file = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_synced = file >= 0 && (fsync(file) == 0 || errno == EINVAL);
    const int reason = errno;
    if (file >= 0) close(file);
    return is_synced ? WEFT_OK
                     : weft_fail(error, WEFT_IO, "cannot sync the directory of %.300s: %s", path,
                                 strerror(reason));
}

weft_status carry_fresh_name(const char *path, char *fresh, size_t bytes, weft_error *error)
{
    const int length = snprintf(fresh, bytes, "%s.new", path);
    if (length < (int)bytes) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "the path %.200s... has %d bytes; use a shorter one", path,
                     length);
}

weft_status carry_put(const char *fresh, const char *path, weft_status status, weft_error *error)
{
    if (status == WEFT_OK && rename(fresh, path) != 0)
        status = weft_fail(error, WEFT_IO, "cannot write %.300s: %s", path, strerror(errno));
    if (status == WEFT_OK) return sync_directory(path, error);
    unlink(fresh);
    return status;
}

static weft_status write_one(source *from, const carry_format *format, const char *path,
                             weft_error *error)
{
    char fresh[MAX_PATH];
    WEFT_TRY(carry_fresh_name(path, fresh, sizeof fresh, error));
    return carry_put(fresh, path, format->write_source(from, fresh, error), error);
}

/* ---- several --------------------------------------------------------------------------------- */

/* Tensors [first, first + n) of another source. */
typedef struct part {
    source *whole;
    int first, n;
} part;

static weft_status read_part(source *from, int i, void *buffer, weft_error *error)
{
    const part *p = from->file;
    return p->whole->read(p->whole, p->first + i, buffer, error);
}

/* As many of the next tensors as a file may have, or one. */
static part next_part(source *from, int first, int64_t most)
{
    int64_t bytes = 0;
    part p = {from, first, 0};
    for (; first + p.n < from->n_tensors; p.n++) {
        bytes += carry_bytes_of(&from->tensors[first + p.n]);
        if (p.n > 0 && bytes > most) break;
    }
    return p;
}

static int count_parts(source *from, int64_t most)
{
    int n = 0;
    for (int first = 0; first < from->n_tensors; n++)
        first += next_part(from, first, most).n;
    return n;
}

static weft_status write_index(const json_t *of, int64_t bytes, const char *path, weft_error *error)
{
    char fresh[MAX_PATH];
    WEFT_TRY(carry_fresh_name(path, fresh, sizeof fresh, error));
    json_t *all =
        json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)bytes, "weight_map", of);
    weft_status status = app_json_status(error);
    if (status == WEFT_OK && json_dump_file(all, fresh, JSON_INDENT(2)) != 0)
        status = weft_fail(error, WEFT_IO, "cannot write %.300s: %s", path, strerror(errno));
    json_decref(all);
    return carry_put(fresh, path, status, error);
}

/* of: {"wte.weight": "model-00001-of-00002.safetensors"}, to be filled. */
static weft_status write_parts(source *from, const carry_format *format, const char *stem, int n,
                               int64_t most, json_t *of, weft_error *error)
{
    char path[MAX_PATH];
    for (int first = 0, k = 1; first < from->n_tensors; k++) {
        part p = next_part(from, first, most);
        source one = *from;
        one.n_tensors = p.n, one.tensors = from->tensors + first;
        one.file = &p, one.read = read_part;
        snprintf(path, sizeof path, "%.4000s-%05d-of-%05d%s", stem, k, n, ending);
        WEFT_TRY(write_one(&one, format, path, error));
        const char *slash = strrchr(path, '/');
        for (int i = 0; i < p.n; i++)
            json_object_set_new(of, one.tensors[i].name, json_string(slash ? slash + 1 : path));
        first += p.n;
    }
    return WEFT_OK;
}

static int64_t bytes_of_all(const source *from)
{
    int64_t bytes = 0;
    for (int i = 0; i < from->n_tensors; i++)
        bytes += carry_bytes_of(&from->tensors[i]);
    return bytes;
}

weft_status carry_write(source *from, const carry_format *format, const char *path, int64_t most,
                        weft_error *error)
{
    char stem[MAX_PATH], index[MAX_PATH + 40];
    const int64_t bytes = bytes_of_all(from);
    const size_t letters = strlen(path), n = sizeof ending - 1;
    const bool is_named = letters > n && letters < 4000 && strcmp(path + letters - n, ending) == 0;
    snprintf(stem, sizeof stem, "%.*s", (int)(is_named ? letters - n : 0), path);
    snprintf(index, sizeof index, "%.4000s%s.index.json", stem, ending);
    if (most <= 0 || bytes <= most) {
        WEFT_TRY(write_one(from, format, path, error));
        if (is_named) (void)unlink(index); /* of files that it is in place of */
        return WEFT_OK;
    }
    if (!is_named)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s: files of %lld bytes have their names of one that ends in %s; "
                         "name such a one, or a folder",
                         path, (long long)most, ending);
    json_t *of = json_object();
    weft_status status = write_parts(from, format, stem, count_parts(from, most), most, of, error);
    if (status == WEFT_OK) status = write_index(of, bytes, index, error);
    if (status == WEFT_OK) (void)unlink(path);
    json_decref(of);
    return status;
}
