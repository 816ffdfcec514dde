/* hdf5_write: a checkpoint as one HDF5 file, laid out as the data files of a checkpoint are.
 *
 * libhdf5 makes the structure, with a place for every dataset, and closes the file; the elements
 * are written at those places by ourselves. So a full disk is met by plain writes, which say so,
 * and not inside the library, which does not come out of it well.
 */
#include "hdf5_carry.h"

#ifdef WEFT_HAVE_HDF5
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef struct laying {
    const weft_stored *stored;
    const char *path;
    hid_t file, access, creation, links; /* negative: not open */
    int64_t *places;                     /* [n_tensors] bytes from the start of the file */
} laying;

/* ---- the structure --------------------------------------------------------------------------- */

static weft_status fail_hdf5(const laying *l, const char *what, weft_error *error)
{
    return weft_fail(error, WEFT_IO,
                     "cannot write %.300s: HDF5 could not make %s; is the disk full?", l->path,
                     what);
}

static bool add_attribute(hid_t to, const char *name, hid_t type, const void *value)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool is_good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0) is_good &= H5Aclose(attribute) >= 0;
    H5Sclose(space);
    return is_good;
}

static bool add_text(hid_t to, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const bool is_good = H5Tset_size(type, strlen(text) + 1) >= 0 &&
                         H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
                         add_attribute(to, name, type, text);
    H5Tclose(type);
    return is_good;
}

static bool add_state(const laying *l)
{
    weft_checkpoint_state state;
    weft_stored_state(l->stored, &state);
    return add_text(l->file, "format", "weft") &&
           add_attribute(l->file, "step", H5T_NATIVE_INT64, &state.step) &&
           add_attribute(l->file, "sample", H5T_NATIVE_INT64, &state.sample) &&
           add_attribute(l->file, "seed", H5T_NATIVE_UINT64, &state.seed) &&
           add_text(l->file, "mesh", weft_stored_mesh(l->stored)) &&
           add_text(l->file, "layout", weft_stored_layout(l->stored));
}

/* "/parameters/w", "/slots/w/m": any other slash, and what cannot be a name of HDF5's, is written
 * %2F. */
static void dataset_path(const weft_stored_tensor *t, char *path)
{
    const char *slot = t->is_slot ? strrchr(t->name, '/') : NULL;
    char *end = stpcpy(path, t->is_slot ? "/slots/" : "/parameters/");
    for (const char *c = t->name; *c; c++) {
        const bool is_lone_dot = c == t->name && strcmp(t->name, ".") == 0;
        if (*c == '%' || (*c == '/' && c != slot) || is_lone_dot)
            end += sprintf(end, "%%%02X", (unsigned)(unsigned char)*c);
        else
            *end++ = *c;
    }
    *end = 0;
}

static bool add_dims(hid_t dataset, const weft_shape *shape)
{
    char text[4096] = "";
    for (int d = 0; d < shape->n_dims; d++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", d > 0 ? "," : "", shape->dims[d].name);
    }
    return add_text(dataset, "dims", text);
}

static hid_t type_of(const char *dtype)
{
    const hid_t types[WEFT_DTYPES] = {
        [WEFT_F32] = H5T_IEEE_F32LE, [WEFT_F64] = H5T_IEEE_F64LE, [WEFT_I32] = H5T_STD_I32LE};
    for (int d = 0; d < WEFT_DTYPES; d++)
        if (strcmp(weft_dtype_name((weft_dtype)d), dtype) == 0) return types[d];
    return -1;
}

static bool add_dataset(const laying *l, const weft_stored_tensor *t, int64_t *place)
{
    hsize_t sizes[WEFT_MAX_DIMS];
    char *path = malloc(3 * strlen(t->name) + sizeof "/parameters/");
    if (!path) return false;
    dataset_path(t, path);
    for (int d = 0; d < t->shape.n_dims; d++)
        sizes[d] = (hsize_t)t->shape.dims[d].size;
    const hid_t space =
        t->shape.n_dims ? H5Screate_simple(t->shape.n_dims, sizes, NULL) : H5Screate(H5S_SCALAR);
    const hid_t dataset =
        H5Dcreate2(l->file, path, type_of(t->dtype), space, l->links, l->creation, H5P_DEFAULT);
    bool is_good = dataset >= 0 && add_dims(dataset, &t->shape);
    const haddr_t at = is_good && t->bytes > 0 ? H5Dget_offset(dataset) : 0;
    *place = (int64_t)at;
    if (dataset >= 0) is_good &= H5Dclose(dataset) >= 0;
    if (space >= 0) H5Sclose(space);
    free(path);
    return is_good && at != HADDR_UNDEF;
}

/* As the data files of a checkpoint are: checksums over the library's own structures, every tensor
 * on pages of its own, its place taken at once and not filled. */
static bool set_properties(laying *l)
{
    enum { PAGE = 4096, STRUCTURES = 64 << 10 };
    l->access = H5Pcreate(H5P_FILE_ACCESS);
    l->creation = H5Pcreate(H5P_DATASET_CREATE);
    l->links = H5Pcreate(H5P_LINK_CREATE);
    return l->access >= 0 && l->creation >= 0 && l->links >= 0 &&
           H5Pset_libver_bounds(l->access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
           H5Pset_alignment(l->access, PAGE, PAGE) >= 0 &&
           H5Pset_meta_block_size(l->access, STRUCTURES) >= 0 &&
           H5Pset_layout(l->creation, H5D_CONTIGUOUS) >= 0 &&
           H5Pset_alloc_time(l->creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
           H5Pset_fill_time(l->creation, H5D_FILL_TIME_NEVER) >= 0 &&
           H5Pset_create_intermediate_group(l->links, 1) >= 0 &&
           H5Pset_char_encoding(l->links, H5T_CSET_UTF8) >= 0;
}

static weft_status lay(laying *l, weft_error *error)
{
    if (!set_properties(l)) return fail_hdf5(l, "its properties", error);
    l->file = H5Fcreate(l->path, H5F_ACC_TRUNC, H5P_DEFAULT, l->access);
    if (l->file < 0) return fail_hdf5(l, "the file", error);
    if (!add_state(l)) return fail_hdf5(l, "an attribute", error);
    for (int i = 0; i < weft_stored_n_tensors(l->stored); i++)
        if (!add_dataset(l, weft_stored_tensor_at(l->stored, i), &l->places[i]))
            return fail_hdf5(l, "a dataset", error);
    return H5Fflush(l->file, H5F_SCOPE_GLOBAL) < 0 ? fail_hdf5(l, "its structures", error)
                                                   : WEFT_OK;
}

/* ---- the elements ---------------------------------------------------------------------------- */

static weft_status fail_write(const laying *l, int file, int64_t bytes, weft_error *error)
{
    const int reason = errno;
    struct statvfs space;
    if ((reason == ENOSPC || reason == EDQUOT) && fstatvfs(file, &space) == 0)
        return weft_fail(error, WEFT_IO,
                         "cannot write %.300s: %s; %lld bytes are wanted and %lld are free: make "
                         "room, or name another place",
                         l->path, strerror(reason), (long long)bytes,
                         (long long)space.f_bavail * (long long)space.f_frsize);
    return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", l->path, strerror(reason));
}

static weft_status write_bytes(const laying *l, int file, const char *from, int64_t bytes,
                               int64_t at, weft_error *error)
{
    enum { MOST = 1 << 30 };
    while (bytes > 0) {
        const ssize_t n = pwrite(file, from, bytes < MOST ? (size_t)bytes : MOST, at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return fail_write(l, file, bytes, error);
        from += n;
        at += n;
        bytes -= n;
    }
    return WEFT_OK;
}

static weft_status write_elements(const laying *l, int file, weft_error *error)
{
    for (int i = 0; i < weft_stored_n_tensors(l->stored); i++) {
        const int64_t bytes = weft_stored_tensor_at(l->stored, i)->bytes;
        char *buffer = malloc((size_t)bytes + 1);
        if (!buffer) return weft_fail_memory(error, (size_t)bytes);
        weft_status status = weft_stored_read(l->stored, i, buffer, error);
        if (status == WEFT_OK) status = write_bytes(l, file, buffer, bytes, l->places[i], error);
        free(buffer);
        WEFT_TRY(status);
    }
    return fsync(file) == 0 ? WEFT_OK : fail_write(l, file, 0, error);
}

static weft_status fill(const laying *l, weft_error *error)
{
    const int file = open(l->path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return fail_write(l, file, 0, error);
    weft_status status = write_elements(l, file, error);
    if (close(file) != 0 && status == WEFT_OK) status = fail_write(l, -1, 0, error);
    return status;
}

weft_status hdf5_write(const weft_stored *stored, const char *path, weft_error *error)
{
    const size_t n = (size_t)weft_stored_n_tensors(stored) + 1;
    laying l = {stored, path, -1, -1, -1, -1, calloc(n, sizeof *l.places)};
    if (!l.places) return weft_fail_memory(error, n * sizeof *l.places);
    H5dont_atexit(); /* its exit handler crashes after a failed write */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
    weft_status status = lay(&l, error);
    if (l.file >= 0 && H5Fclose(l.file) < 0 && status == WEFT_OK)
        status = fail_hdf5(&l, "its structures", error);
    if (l.access >= 0) H5Pclose(l.access);
    if (l.creation >= 0) H5Pclose(l.creation);
    if (l.links >= 0) H5Pclose(l.links);
    if (status == WEFT_OK) status = fill(&l, error);
    free(l.places);
    return status;
}

#else

weft_status hdf5_write(const weft_stored *stored, const char *path, weft_error *error)
{
    (void)stored;
    return weft_fail(error, WEFT_USAGE,
                     "cannot write %.300s: this Weft was built without HDF5; install libhdf5-dev "
                     "and build it again, or write a .safetensors file",
                     path);
}

#endif
