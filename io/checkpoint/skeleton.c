/* skeleton: an HDF5 file whose datasets have places but no bytes yet.
 *
 * One process lays it with the serial library and closes it; then any number of processes write
 * bytes at the places. Contiguous, early allocation and no fill give every dataset a place in a
 * sparse file at once; the format of 1.10 has checksums over the library's own structures. Names of
 * dims are the attribute "dims" of a dataset.
 */
#include "skeleton.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

const char *weft_dataset_path(weft_arena *arena, const char *name, bool is_slot)
{
    const char *slot = is_slot ? strrchr(name, '/') : NULL;
    char *path = weft_arena_take(arena, 3 * strlen(name) + sizeof "/parameters/");
    if (path == NULL) return NULL;
    char *end = stpcpy(path, is_slot ? "/slots/" : "/parameters/");
    for (const char *c = name; *c; c++) {
        const bool is_lone_dot = c == name && strcmp(name, ".") == 0;
        if (*c == '%' || (*c == '/' && c != slot) || is_lone_dot)
            end += sprintf(end, "%%%02X", (unsigned)(unsigned char)*c);
        else
            *end++ = *c;
    }
    return path;
}

#ifdef WEFT_HAVE_HDF5
#include <hdf5.h>

/* What is open while the skeleton is laid; negative: not open. */
typedef struct skeleton {
    const char *path;
    hid_t access, creation, links, file;
} skeleton;

/* The library's own sentences hold "errno = 28" where the system refused something. */
static herr_t find_reason(unsigned depth, const H5E_error2_t *entry, void *reason)
{
    const char *at = entry->desc ? strstr(entry->desc, "errno = ") : NULL;
    (void)depth;
    return at != NULL && sscanf(at, "errno = %d", (int *)reason) == 1;
}

/* Directly after the call that failed: the next one clears the library's sentences. */
static weft_status fail(const char *path, const char *what, weft_error *error)
{
    int reason = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_reason, &reason);
    if (reason == 0) return weft_fail(error, WEFT_IO, "HDF5 could not %s %.300s", what, path);
    errno = reason;
    return weft_fail_io(error, what, path, 0);
}

/* The library's exit handler crashes after a failed write, it prints by itself, and it loads
 * plug-ins. */
static void tame_library(void)
{
    static bool is_tamed;
    if (is_tamed) return;
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
    is_tamed = true;
}

/* Every dataset on a page of its own: no two processes write one page unless they share a tensor.
 * The library's own structures go together into larger pieces. */
static bool set_properties(skeleton *s)
{
    enum { PAGE = 4096, STRUCTURES = 64 << 10 };
    s->access = H5Pcreate(H5P_FILE_ACCESS);
    s->creation = H5Pcreate(H5P_DATASET_CREATE);
    s->links = H5Pcreate(H5P_LINK_CREATE);
    return s->access >= 0 && s->creation >= 0 && s->links >= 0 &&
           H5Pset_libver_bounds(s->access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
           H5Pset_alignment(s->access, 1, PAGE) >= 0 &&
           H5Pset_meta_block_size(s->access, STRUCTURES) >= 0 &&
           H5Pset_small_data_block_size(s->access, 0) >= 0 &&
           H5Pset_layout(s->creation, H5D_CONTIGUOUS) >= 0 &&
           H5Pset_alloc_time(s->creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
           H5Pset_fill_time(s->creation, H5D_FILL_TIME_NEVER) >= 0 &&
           H5Pset_create_intermediate_group(s->links, 1) >= 0 &&
           H5Pset_char_encoding(s->links, H5T_CSET_UTF8) >= 0;
}

static hid_t file_type(weft_dtype dtype)
{
    const hid_t types[WEFT_DTYPES] = {
        [WEFT_F32] = H5T_IEEE_F32LE, [WEFT_F64] = H5T_IEEE_F64LE, [WEFT_I32] = H5T_STD_I32LE};
    return types[dtype];
}

static bool add_text(hid_t dataset, const char *name, const char *text)
{
    const hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    bool is_good =
        H5Tset_size(type, strlen(text) + 1) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    const hid_t attribute =
        is_good ? H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT) : -1;
    is_good = attribute >= 0 && H5Awrite(attribute, type, text) >= 0;
    if (attribute >= 0) is_good &= H5Aclose(attribute) >= 0;
    H5Tclose(type);
    H5Sclose(space);
    return is_good;
}

/* "batch,seq" */
static bool add_dims(hid_t dataset, const weft_shape *shape)
{
    size_t bytes = 1;
    for (int d = 0; d < shape->n_dims; d++)
        bytes += strlen(shape->dims[d].name) + 1;
    char *text = malloc(bytes), *end = text;
    if (text == NULL) return false;
    *end = 0;
    for (int d = 0; d < shape->n_dims; d++)
        end += sprintf(end, "%s%s", d ? "," : "", shape->dims[d].name);
    const bool is_good = add_text(dataset, "dims", text);
    free(text);
    return is_good;
}

static bool add_dataset(const skeleton *s, weft_entry *entry)
{
    hsize_t sizes[WEFT_MAX_DIMS];
    weft_stored_tensor *tensor = &entry->tensor;
    for (int d = 0; d < tensor->shape.n_dims; d++)
        sizes[d] = (hsize_t)tensor->shape.dims[d].size;
    const hid_t space = tensor->shape.n_dims ? H5Screate_simple(tensor->shape.n_dims, sizes, NULL)
                                             : H5Screate(H5S_SCALAR);
    const hid_t dataset = H5Dcreate2(s->file, entry->dataset, file_type(entry->dtype), space,
                                     s->links, s->creation, H5P_DEFAULT);
    bool is_good = dataset >= 0 && add_dims(dataset, &tensor->shape);
    if (is_good) {
        const haddr_t offset = tensor->bytes ? H5Dget_offset(dataset) : 0;
        is_good = offset != HADDR_UNDEF;
        tensor->offset = (int64_t)offset;
    }
    if (dataset >= 0) is_good &= H5Dclose(dataset) >= 0;
    if (space >= 0) H5Sclose(space);
    return is_good;
}

static weft_status lay(skeleton *s, weft_manifest *manifest, weft_error *error)
{
    if (!set_properties(s)) return fail(s->path, "choose the format of", error);
    s->file = H5Fcreate(s->path, H5F_ACC_EXCL, H5P_DEFAULT, s->access);
    if (s->file < 0) return fail(s->path, "make", error);
    for (int i = 0; i < manifest->n_entries; i++)
        if (!add_dataset(s, &manifest->entries[i]))
            return fail(s->path, "make a dataset in", error);
    return WEFT_OK;
}

weft_status weft_skeleton_lay(const char *path, weft_manifest *manifest, weft_error *error)
{
    skeleton s = {.path = path, .access = -1, .creation = -1, .links = -1, .file = -1};
    tame_library();
    weft_status status = lay(&s, manifest, error);
    if (status == WEFT_OK && H5Fflush(s.file, H5F_SCOPE_GLOBAL) < 0)
        status = fail(path, "write", error);
    if (s.file >= 0 && H5Fclose(s.file) < 0 && status == WEFT_OK)
        status = fail(path, "write", error);
    if (s.access >= 0) H5Pclose(s.access);
    if (s.creation >= 0) H5Pclose(s.creation);
    if (s.links >= 0) H5Pclose(s.links);
    return status;
}

#else

weft_status weft_skeleton_lay(const char *path, weft_manifest *manifest, weft_error *error)
{
    (void)manifest;
    return weft_fail(error, WEFT_USAGE,
                     "cannot save %.200s: this Weft was built without HDF5, which checkpoints are "
                     "written with; install libhdf5-dev and build it again",
                     path);
}

#endif
