/* skeleton: an HDF5 file whose datasets have places but no bytes yet.
 *
 * One process lays it with the serial library and closes it; then any number of processes write
 * bytes at the places. Contiguous, early allocation and no fill give every dataset a place in a
 * sparse file at once; the format of 1.10 has checksums over the library's own structures. Names of
 * dims are the attribute "dims" of a dataset. An export says in attributes of the root what the manifest says beside a
 * checkpoint.
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
#include "libhdf5.h"

/* What is open while the skeleton is laid; negative: not open. */
typedef struct skeleton {
    const weft_hdf5 *h5;
    const char *path;
    hid_t access, space, creation, links, file;
    bool is_short; /* of memory: our own, HDF5 has nothing to say about it */
} skeleton;

/* The library's own sentences hold "errno = 28" where the system refused something. */
static herr_t find_reason(unsigned depth, const H5E_error2_t *entry, void *reason)
{
    const char *at = entry->desc ? strstr(entry->desc, "errno = ") : NULL;
    (void)depth;
    return at != NULL && sscanf(at, "errno = %d", (int *)reason) == 1;
}

/* Directly after the call that failed: the next one clears the library's sentences. */
static weft_status fail(const skeleton *s, const char *what, weft_error *error)
{
    int reason = 0;
    s->h5->H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_reason, &reason);
    if (s->is_short) return weft_fail_memory(error, strlen(s->path));
    if (reason == 0) WEFT_TRY(weft_hdf5_room(0, error));
    if (reason == 0) return weft_fail(error, WEFT_IO, "HDF5 could not %s %.300s", what, s->path);
    errno = reason;
    return weft_fail_io(error, what, s->path, 0);
}

/* Every dataset on a page of its own: no two processes write one page unless they share a tensor. Of 4096 bytes
 * whatever this machine's are, so that files are the same everywhere; where pages are larger, two may write one, each
 * its own bytes. The library's own structures go together into larger pieces. What the alignment leaves between them
 * is not kept for later: of every place for a dataset the library would look through all of it, which is quadratic. */
static bool set_properties(skeleton *s)
{
    enum { PAGE = 4096, STRUCTURES = 64 << 10 };
    const weft_hdf5 *h5 = s->h5;
    s->access = h5->H5Pcreate(*h5->H5P_CLS_FILE_ACCESS_ID_g);
    s->space = h5->H5Pcreate(*h5->H5P_CLS_FILE_CREATE_ID_g);
    s->creation = h5->H5Pcreate(*h5->H5P_CLS_DATASET_CREATE_ID_g);
    s->links = h5->H5Pcreate(*h5->H5P_CLS_LINK_CREATE_ID_g);
    return s->access >= 0 && s->space >= 0 && s->creation >= 0 && s->links >= 0 &&
           h5->H5Pset_libver_bounds(s->access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
           h5->H5Pset_alignment(s->access, 1, PAGE) >= 0 &&
           h5->H5Pset_meta_block_size(s->access, STRUCTURES) >= 0 &&
           h5->H5Pset_small_data_block_size(s->access, 0) >= 0 &&
           h5->H5Pset_file_space_strategy(s->space, H5F_FSPACE_STRATEGY_AGGR, false, 1) >= 0 &&
           h5->H5Pset_layout(s->creation, H5D_CONTIGUOUS) >= 0 &&
           h5->H5Pset_alloc_time(s->creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
           h5->H5Pset_fill_time(s->creation, H5D_FILL_TIME_NEVER) >= 0 &&
           h5->H5Pset_create_intermediate_group(s->links, 1) >= 0 &&
           h5->H5Pset_char_encoding(s->links, H5T_CSET_UTF8) >= 0;
}

/* A float of 16 bits, described: sign, exponent, fraction, from the top. */
static hid_t half_type(const weft_hdf5 *h5, size_t exponent, size_t bias)
{
    const size_t fraction = 15 - exponent;
    const hid_t type = h5->H5Tcopy(*h5->H5T_IEEE_F32LE_g);
    const bool is_good = type >= 0 &&
                         h5->H5Tset_fields(type, 15, fraction, exponent, 0, fraction) >= 0 &&
                         h5->H5Tset_ebias(type, bias) >= 0 && h5->H5Tset_precision(type, 16) >= 0 &&
                         h5->H5Tset_size(type, 2) >= 0;
    if (is_good) return type;
    if (type >= 0) h5->H5Tclose(type);
    return -1;
}

/* The caller closes it. */
static hid_t file_type(const weft_hdf5 *h5, weft_dtype dtype)
{
    const hid_t types[WEFT_DTYPES] = {
        [WEFT_F32] = *h5->H5T_IEEE_F32LE_g, [WEFT_F64] = *h5->H5T_IEEE_F64LE_g,
        [WEFT_I32] = *h5->H5T_STD_I32LE_g,  [WEFT_I64] = *h5->H5T_STD_I64LE_g,
        [WEFT_U8] = *h5->H5T_STD_U8LE_g,
    };
    if (dtype == WEFT_BF16) return half_type(h5, 8, 127);
    if (dtype == WEFT_F16) return half_type(h5, 5, 15);
    return h5->H5Tcopy(types[dtype]);
}

static bool add_attribute(const weft_hdf5 *h5, hid_t to, const char *name, hid_t type,
                          const void *value)
{
    const hid_t space = h5->H5Screate(H5S_SCALAR);
    const hid_t attribute = h5->H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool is_good = attribute >= 0 && h5->H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0) is_good &= h5->H5Aclose(attribute) >= 0;
    h5->H5Sclose(space);
    return is_good;
}

static bool add_text(const weft_hdf5 *h5, hid_t to, const char *name, const char *text)
{
    const hid_t type = h5->H5Tcopy(*h5->H5T_C_S1_g);
    const bool is_good = h5->H5Tset_size(type, strlen(text) + 1) >= 0 &&
                         h5->H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
                         add_attribute(h5, to, name, type, text);
    h5->H5Tclose(type);
    return is_good;
}

static bool add_state(const skeleton *s, const weft_manifest *manifest)
{
    const weft_hdf5 *h5 = s->h5;
    const weft_checkpoint_state *state = &manifest->state;
    const hid_t i64 = *h5->H5T_NATIVE_INT64_g, u64 = *h5->H5T_NATIVE_UINT64_g;
    return add_text(h5, s->file, "format", "weft") &&
           add_attribute(h5, s->file, "step", i64, &state->step) &&
           add_attribute(h5, s->file, "sample", i64, &state->sample) &&
           add_attribute(h5, s->file, "seed", u64, &state->seed) &&
           (manifest->data[0] == 0 || add_text(h5, s->file, "data", manifest->data)) &&
           add_text(h5, s->file, "mesh", manifest->mesh) &&
           add_text(h5, s->file, "layout", manifest->layout);
}

/* "batch,seq" */
static bool add_dims(skeleton *s, hid_t dataset, const weft_shape *shape)
{
    size_t bytes = 1;
    for (int d = 0; d < shape->n_dims; d++)
        bytes += strlen(shape->dims[d].name) + 1;
    char *text = malloc(bytes), *end = text;
    s->is_short = text == NULL;
    if (text == NULL) return false;
    *end = 0;
    for (int d = 0; d < shape->n_dims; d++)
        end += sprintf(end, "%s%s", d ? "," : "", shape->dims[d].name);
    const bool is_good = add_text(s->h5, dataset, "dims", text);
    free(text);
    return is_good;
}

static bool add_dataset(skeleton *s, weft_entry *entry)
{
    hsize_t sizes[WEFT_MAX_DIMS];
    const weft_hdf5 *h5 = s->h5;
    weft_stored_tensor *tensor = &entry->tensor;
    for (int d = 0; d < tensor->shape.n_dims; d++)
        sizes[d] = (hsize_t)tensor->shape.dims[d].size;
    const hid_t space = tensor->shape.n_dims
                            ? h5->H5Screate_simple(tensor->shape.n_dims, sizes, NULL)
                            : h5->H5Screate(H5S_SCALAR);
    const hid_t type = file_type(h5, entry->dtype);
    const hid_t dataset =
        h5->H5Dcreate2(s->file, entry->dataset, type, space, s->links, s->creation, H5P_DEFAULT);
    bool is_good = dataset >= 0 && add_dims(s, dataset, &tensor->shape);
    if (is_good) {
        const haddr_t offset = tensor->bytes ? h5->H5Dget_offset(dataset) : 0;
        is_good = offset != HADDR_UNDEF;
        tensor->offset = (int64_t)offset;
    }
    if (dataset >= 0) is_good &= h5->H5Dclose(dataset) >= 0;
    if (type >= 0) h5->H5Tclose(type);
    if (space >= 0) h5->H5Sclose(space);
    return is_good;
}

static weft_status lay(skeleton *s, weft_manifest *manifest, bool has_state, weft_error *error)
{
    if (!set_properties(s)) return fail(s, "choose the format of", error);
    s->file = s->h5->H5Fcreate(s->path, H5F_ACC_EXCL, s->space, s->access);
    if (s->file < 0) return fail(s, "make", error);
    if (has_state && !add_state(s, manifest)) return fail(s, "make an attribute in", error);
    for (int i = 0; i < manifest->n_entries; i++)
        if (!add_dataset(s, &manifest->entries[i])) return fail(s, "make a dataset in", error);
    return s->h5->H5Fflush(s->file, H5F_SCOPE_GLOBAL) < 0 ? fail(s, "write", error) : WEFT_OK;
}

weft_status weft_checkpoints_can_save(weft_error *error)
{
    const weft_hdf5 *h5;
    return weft_hdf5_load(&h5, error);
}

weft_status weft_skeleton_lay(const char *path, weft_manifest *manifest, bool has_state,
                              weft_error *error)
{
    skeleton s = {.path = path, .access = -1, .space = -1, .creation = -1, .links = -1, .file = -1};
    WEFT_TRY(weft_hdf5_load(&s.h5, error));
    WEFT_TRY(weft_hdf5_room(manifest->n_entries, error));
    weft_status status = lay(&s, manifest, has_state, error);
    if (s.file >= 0 && s.h5->H5Fclose(s.file) < 0 && status == WEFT_OK)
        status = fail(&s, "write", error);
    if (s.access >= 0) s.h5->H5Pclose(s.access);
    if (s.space >= 0) s.h5->H5Pclose(s.space);
    if (s.creation >= 0) s.h5->H5Pclose(s.creation);
    if (s.links >= 0) s.h5->H5Pclose(s.links);
    return status;
}

#else

weft_status weft_checkpoints_can_save(weft_error *error)
{
    return weft_fail(
        error, WEFT_USAGE,
        "this Weft was built without HDF5, which checkpoints are written with; install "
        "libhdf5-dev and build it again");
}

weft_status weft_skeleton_lay(const char *path, weft_manifest *manifest, bool has_state,
                              weft_error *error)
{
    (void)path, (void)manifest, (void)has_state;
    return weft_checkpoints_can_save(error);
}

#endif
