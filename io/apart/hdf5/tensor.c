/* tensor: one dataset: whether it is plain numbers stored in this file, and its elements as
 * numbers of ours.
 *
 * Nothing is rounded: a type of the file becomes the least of ours that has all its values; unsigned integers of 64 bits become
 * i64 if every one of them fits.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../shut_in.h"
#include "reader.h"

/* ---- types ----------------------------------------------------------------------------------- */

/* A type that is taken. */
typedef struct element {
    const char *name;
    H5T_class_t kind;
    size_t bytes;
    bool is_signed;            /* integers */
    size_t exponent, mantissa; /* floats: bits */
    size_t bias;
    weft_dtype dtype; /* what it becomes */
    bool is_unsigned; /* read as u64, and checked to fit into an i64 */
} element;

static const element elements[] = {
    {"f16", H5T_FLOAT, 2, true, 5, 10, 15, WEFT_F16, false},
    {"bf16", H5T_FLOAT, 2, true, 8, 7, 127, WEFT_BF16, false},
    {"f32", H5T_FLOAT, 4, true, 8, 23, 127, WEFT_F32, false},
    {"f64", H5T_FLOAT, 8, true, 11, 52, 1023, WEFT_F64, false},
    {"i8", H5T_INTEGER, 1, true, 0, 0, 0, WEFT_I32, false},
    {"u8", H5T_INTEGER, 1, false, 0, 0, 0, WEFT_U8, false},
    {"i16", H5T_INTEGER, 2, true, 0, 0, 0, WEFT_I32, false},
    {"u16", H5T_INTEGER, 2, false, 0, 0, 0, WEFT_I32, false},
    {"i32", H5T_INTEGER, 4, true, 0, 0, 0, WEFT_I32, false},
    {"u32", H5T_INTEGER, 4, false, 0, 0, 0, WEFT_I64, false},
    {"i64", H5T_INTEGER, 8, true, 0, 0, 0, WEFT_I64, false},
    {"u64", H5T_INTEGER, 8, false, 0, 0, 0, WEFT_I64, true},
};

/* Of a number of ours. This program has nothing of Weft's in it. */
static const size_t element_bytes[WEFT_DTYPES] = {
    [WEFT_F32] = 4, [WEFT_F64] = 8, [WEFT_I32] = 4, [WEFT_BF16] = 2,
    [WEFT_F16] = 2, [WEFT_I64] = 8, [WEFT_U8] = 1};

static const char *const classes[] = {
    [H5T_INTEGER] = "integer",      [H5T_FLOAT] = "float",         [H5T_TIME] = "time",
    [H5T_STRING] = "string",        [H5T_BITFIELD] = "bits",       [H5T_OPAQUE] = "opaque",
    [H5T_COMPOUND] = "compound",    [H5T_REFERENCE] = "reference", [H5T_ENUM] = "enumeration",
    [H5T_VLEN] = "variable length", [H5T_ARRAY] = "array",
};

static bool is_float(hid_t type, const element *e)
{
    size_t sign, exponent_at, exponent, mantissa_at, mantissa;
    return H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) >= 0 &&
           exponent == e->exponent && mantissa == e->mantissa && mantissa_at == 0 &&
           exponent_at == mantissa && sign == mantissa + exponent &&
           H5Tget_ebias(type) == e->bias && H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

/* NULL: it is none that is taken, and t has the problem. */
static const element *element_of(hid_t type, const char *path, stream_tensor *t)
{
    const H5T_class_t kind = H5Tget_class(type);
    const size_t bytes = H5Tget_size(type);
    if (H5Tcommitted(type) > 0) {
        object(t, "has a committed type under the tensor /%s; only plain numbers are taken",
               printable(path));
        return NULL;
    }
    if (kind != H5T_INTEGER && kind != H5T_FLOAT) {
        object(t, "has the tensor /%s of the type %s; only numbers are taken", printable(path),
               kind >= 0 && (size_t)kind < sizeof classes / sizeof *classes ? classes[kind] : "?");
        return NULL;
    }
    const bool is_whole = H5Tget_precision(type) == 8 * bytes && H5Tget_offset(type) == 0;
    for (size_t i = 0; i < sizeof elements / sizeof *elements && is_whole; i++) {
        const element *e = &elements[i];
        if (e->kind != kind || e->bytes != bytes) continue;
        if (kind == H5T_FLOAT ? is_float(type, e)
                              : e->is_signed == (H5Tget_sign(type) == H5T_SGN_2))
            return e;
    }
    object(t,
           "has the tensor /%s of a %s of %zu bytes that is none of f16, bf16, f32, f64, i8 to i64 "
           "and u8 to u64",
           printable(path), classes[kind], bytes);
    return NULL;
}

/* A float of 16 bits as it lies in memory; the caller closes it. */
static hid_t half_type(const element *e)
{
    const hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
    if (type < 0 || H5Tset_fields(type, 15, e->mantissa, e->exponent, 0, e->mantissa) < 0 ||
        H5Tset_ebias(type, e->bias) < 0 || H5Tset_precision(type, 16) < 0 ||
        H5Tset_size(type, 2) < 0)
        refuse_failed("the type", e->name);
    return type;
}

/* The caller closes it. */
static hid_t memory_type(const element *e)
{
    const hid_t plain[WEFT_DTYPES] = {
        [WEFT_F32] = H5T_NATIVE_FLOAT, [WEFT_F64] = H5T_NATIVE_DOUBLE,
        [WEFT_I32] = H5T_NATIVE_INT32, [WEFT_I64] = H5T_NATIVE_INT64,
        [WEFT_U8] = H5T_NATIVE_UINT8,
    };
    if (e->kind == H5T_FLOAT && e->bytes == 2) return half_type(e);
    return H5Tcopy(e->is_unsigned ? H5T_NATIVE_UINT64 : plain[e->dtype]);
}

/* ---- how it is stored ------------------------------------------------------------------------ */

static bool check_filters(hid_t creation, const char *path, stream_tensor *t)
{
    const int n = H5Pget_nfilters(creation);
    if (n < 0) return object_failed(t, "the filters", path);
    for (int i = 0; i < n; i++) {
        char name[64] = "";
        unsigned flags, info;
        size_t n_values = 0;
        const H5Z_filter_t id = H5Pget_filter2(creation, (unsigned)i, &flags, &n_values, NULL,
                                               sizeof name, name, &info);
        if (id < 0) return object_failed(t, "the filters", path);
        name[sizeof name - 1] = 0;
        if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_FLETCHER32)
            return object(t,
                          "has the tensor /%s behind the filter %d (%s); deflate, shuffle and "
                          "fletcher32 are taken: h5repack -f NONE takes others away",
                          printable(path), (int)id, *name ? printable(name) : "no name");
    }
    return true;
}

static bool check_chunks(hid_t creation, size_t width, const char *path, stream_tensor *t)
{
    hsize_t sizes[H5S_MAX_RANK];
    double bytes = (double)width;
    const int n = H5Pget_chunk(creation, H5S_MAX_RANK, sizes);
    for (int d = 0; d < n; d++)
        bytes *= (double)sizes[d];
    return bytes <= MOST_CHUNK ||
           object(t, "has the tensor /%s in chunks of %.3g bytes; at most %d are taken",
                  printable(path), bytes, MOST_CHUNK);
}

static bool check_storage(hid_t dataset, size_t width, const char *path, stream_tensor *t)
{
    const hid_t creation = H5Dget_create_plist(dataset);
    const H5D_layout_t layout = creation < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(creation);
    if (layout == H5D_VIRTUAL)
        return object(t,
                      "has the virtual dataset /%s, whose bytes are in other files; h5repack makes "
                      "a plain one of it",
                      printable(path));
    if (layout < 0) return object_failed(t, "the layout", path);
    if (H5Pget_external_count(creation) != 0)
        return object(t,
                      "has the bytes of the tensor /%s in external files; h5repack takes them in",
                      printable(path));
    const bool is_good = check_filters(creation, path, t) &&
                         (layout != H5D_CHUNKED || check_chunks(creation, width, path, t));
    H5Pclose(creation);
    return is_good;
}

/* ---- declare --------------------------------------------------------------------------------- */

/* Negative: libhdf5 has failed. */
static hid_t open_dataset(const reader *r, const found *f)
{
    enum { SLOTS = 10007 };
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (H5Pset_chunk_cache(access, SLOTS, CHUNK_CACHE, 1.0) < 0)
        refuse_failed("the access", f->path);
    const hid_t dataset = H5Dopen2(r->file, f->path, access);
    if (dataset >= 0) H5Pclose(access); /* it would take the reasons of a failure away */
    return dataset;
}

static bool sizes_of(hid_t dataset, const char *path, stream_tensor *t)
{
    hsize_t sizes[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(dataset);
    const H5S_class_t kind = space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    if (kind == H5S_NULL)
        return object(t, "has the dataset /%s without any element", printable(path));
    const int n = kind < 0 ? -1 : H5Sget_simple_extent_dims(space, sizes, NULL);
    if (n < 0) return object_failed(t, "the shape", path);
    H5Sclose(space);
    if (n > WEFT_MAX_DIMS)
        return object(t, "has the tensor /%s of %d dims; the most is %d", printable(path), n,
                      WEFT_MAX_DIMS);
    for (int d = 0; d < n; d++) {
        if (sizes[d] == 0 || sizes[d] > (hsize_t)1 << 40)
            return object(t, "has the tensor /%s with a dim of size %llu; a size is 1 to 2^40",
                          printable(path), (unsigned long long)sizes[d]);
        t->sizes[d] = (int64_t)sizes[d];
    }
    t->n_dims = n;
    return true;
}

/* Past the group's name, "%2F" is a slash again. */
static void decode(const char *from, char *to)
{
    while (*from) {
        unsigned code = 0;
        const bool is_code = *from == '%' && isxdigit((unsigned char)from[1]) &&
                             isxdigit((unsigned char)from[2]) &&
                             sscanf(from + 1, "%2X", &code) == 1 && code > 0;
        *to++ = is_code ? (char)code : *from;
        from += is_code ? 3 : 1;
    }
    *to = 0;
}

/* "parameters/block0%2Fw" of a file of ours is block0/w, "slots/w/m" is w/m; others are called what
 * they are called. */
static void name_of(const char *path, bool is_own, stream_tensor *t)
{
    static const char *const groups[] = {"parameters/", "slots/"};
    strcpy(t->name, path);
    for (int g = 0; g < 2 && is_own; g++) {
        if (strncmp(path, groups[g], strlen(groups[g])) != 0) continue;
        memset(t->name, 0, sizeof t->name);
        decode(path + strlen(groups[g]), t->name);
        t->is_slot = g == 1;
    }
}

/* What it is, into t; false: t has the problem. *dataset: to be closed. */
static const element *look_at(const reader *r, const found *f, stream_tensor *t, hid_t *dataset)
{
    *dataset = open_dataset(r, f);
    const hid_t type = *dataset < 0 ? -1 : H5Dget_type(*dataset);
    if (type < 0) {
        object_failed(t, *dataset < 0 ? "the header" : "the type", f->path);
        return NULL;
    }
    const element *e = element_of(type, f->path, t);
    H5Tclose(type);
    const bool is_good =
        e && check_storage(*dataset, e->bytes, f->path, t) && sizes_of(*dataset, f->path, t);
    return is_good ? e : NULL;
}

static void describe(const reader *r, const found *f, stream_tensor *t)
{
    hid_t dataset;
    const element *e = look_at(r, f, t, &dataset);
    if (e) {
        dims_of(r, dataset, t->n_dims, t->dims);
        name_of(f->path, has_own_dims(dataset), t);
        strcpy(t->type, e->name);
        t->dtype = e->dtype;
    }
    if (dataset >= 0) H5Dclose(dataset);
}

void declare(const reader *r, const found *f)
{
    stream_tensor t;
    memset(&t, 0, sizeof t);
    strcpy(t.name, f->path);
    if (f->problem) {
        object(&t, "%s", f->problem);
        t.is_damaged = f->is_damaged;
    } else {
        describe(r, f, &t);
    }
    for (const char *c = t.name; *c; c++)
        if (is_control(*c))
            refuse(false, "has a control character (%d) in the name /%s", *c, printable(f->path));
    for (char *c = t.problem; *c; c++)
        if (is_control(*c)) *c = '?';
    send_message(STREAM_TENSOR, &t, sizeof t);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* A row-major walk in pieces that are boxes: whole in the dims past `cut`, `rows` of that one, one
 * of those before. */
typedef struct pieces {
    int n_dims, cut;
    int64_t sizes[WEFT_MAX_DIMS], rows;
    hsize_t start[WEFT_MAX_DIMS], count[WEFT_MAX_DIMS];
} pieces;

static int64_t plan_pieces(pieces *p)
{
    enum { MOST = STREAM_FRAME / 8 }; /* elements of a piece */
    int64_t inner = 1;
    p->cut = p->n_dims - 1;
    while (p->cut > 0 && inner * p->sizes[p->cut] <= MOST)
        inner *= p->sizes[p->cut--];
    p->rows = MOST / inner < p->sizes[p->cut] ? MOST / inner : p->sizes[p->cut];
    for (int d = 0; d < p->n_dims; d++)
        p->count[d] = d < p->cut ? 1 : (hsize_t)p->sizes[d];
    return inner * p->rows;
}

/* To the next piece; false past the last. */
static bool advance(pieces *p)
{
    int d = p->cut;
    p->start[d] += p->count[d];
    while (p->start[d] >= (hsize_t)p->sizes[d] && d > 0) {
        p->start[d] = 0;
        p->start[--d]++;
    }
    return p->start[d] < (hsize_t)p->sizes[d];
}

static void check_fits(const element *e, const void *numbers, int64_t n, const char *path)
{
    const int64_t *x = numbers; /* past INT64_MAX they are negative so */
    for (int64_t i = 0; i < n; i++)
        if (x[i] < 0)
            refuse(false,
                   "has the tensor /%s of %s, and one of its numbers (%llu) does not fit into i64, "
                   "the widest integers there are here",
                   printable(path), e->name, (unsigned long long)x[i]);
}

static void send_piece(hid_t dataset, const element *e, const pieces *p, void *buffer,
                       const char *path)
{
    int64_t n = 1;
    hid_t memory = H5S_ALL, space = H5S_ALL;
    for (int d = 0; d < p->n_dims; d++)
        n *= (int64_t)p->count[d];
    if (p->n_dims > 0) {
        const hsize_t all = (hsize_t)n;
        space = H5Dget_space(dataset);
        memory = H5Screate_simple(1, &all, NULL);
        if (H5Sselect_hyperslab(space, H5S_SELECT_SET, p->start, NULL, p->count, NULL) < 0)
            refuse_failed("the shape", path);
    }
    const hid_t type = memory_type(e);
    if (H5Dread(dataset, type, memory, space, H5P_DEFAULT, buffer) < 0)
        refuse_failed("the numbers", path);
    H5Tclose(type);
    if (p->n_dims > 0) {
        H5Sclose(space);
        H5Sclose(memory);
    }
    if (e->is_unsigned) check_fits(e, buffer, n, path);
    send_bytes(buffer, (size_t)n * element_bytes[e->dtype]);
}

void send_elements(const reader *r, const found *f)
{
    stream_tensor t;
    hid_t dataset;
    memset(&t, 0, sizeof t);
    const element *e = look_at(r, f, &t, &dataset);
    if (!e) refuse(t.is_damaged, "%s", t.problem);
    pieces p = {.n_dims = t.n_dims};
    memcpy(p.sizes, t.sizes, sizeof p.sizes);
    void *buffer = take((size_t)(p.n_dims > 0 ? plan_pieces(&p) : 1) * 8);
    bool is_more = true;
    while (is_more) {
        if (p.n_dims > 0) {
            const int64_t left = p.sizes[p.cut] - (int64_t)p.start[p.cut];
            p.count[p.cut] = (hsize_t)(left < p.rows ? left : p.rows);
        }
        send_piece(dataset, e, &p, buffer, f->path);
        is_more = p.n_dims > 0 && advance(&p);
    }
    send_rest();
    free(buffer);
    H5Dclose(dataset);
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { MOST_ROW = 1 << 28 /* bytes */, ROW_SECONDS = 20 };

/* A tensor of which rows are asked for, and the last of them. */
typedef struct rows {
    hid_t dataset, type, space, memory;
    const element *element;
    int64_t sizes[WEFT_MAX_DIMS], n; /* elements of a row */
    int n_dims;
    int64_t record; /* that `buffer` has; -1: none */
    char *buffer;
} rows;

static void open_rows(const reader *r, const found *f, rows *all)
{
    stream_tensor t;
    hid_t dataset;
    memset(&t, 0, sizeof t);
    const element *e = f->problem ? NULL : look_at(r, f, &t, &dataset);
    if (!e) refuse(t.is_damaged, "%s", f->problem ? f->problem : t.problem);
    *all = (rows){.dataset = dataset, .element = e, .n = 1, .n_dims = t.n_dims, .record = -1};
    memcpy(all->sizes, t.sizes, sizeof all->sizes);
    for (int d = 1; d < t.n_dims; d++)
        if (t.sizes[d] > MOST_ROW / 8 / all->n)
            refuse(false, "has records of more than 256 MiB in /%s; they are not for training",
                   printable(f->path));
        else
            all->n *= t.sizes[d];
    const hsize_t n = (hsize_t)all->n;
    all->type = memory_type(e);
    all->space = H5Dget_space(dataset);
    all->memory = t.n_dims > 0 ? H5Screate_simple(1, &n, NULL) : H5S_ALL;
    all->buffer = take((size_t)all->n * 8);
}

static void read_row(const found *f, rows *all, int64_t record)
{
    hsize_t start[WEFT_MAX_DIMS] = {(hsize_t)record}, count[WEFT_MAX_DIMS] = {1};
    if (all->record == record) return;
    for (int d = 1; d < all->n_dims; d++)
        count[d] = (hsize_t)all->sizes[d];
    all->record = -1;
    if (all->n_dims > 0 &&
        H5Sselect_hyperslab(all->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0)
        refuse_failed("the shape", f->path);
    if (H5Dread(all->dataset, all->type, all->memory, all->n_dims > 0 ? all->space : H5S_ALL,
                H5P_DEFAULT, all->buffer) < 0)
        refuse_failed("the numbers", f->path);
    if (all->element->is_unsigned) check_fits(all->element, all->buffer, all->n, f->path);
    all->record = record;
}

void send_rows(const reader *r)
{
    rows *all = take((size_t)r->n_found * sizeof *all);
    stream_rows asked;
    memset(all, 0, (size_t)r->n_found * sizeof *all);
    for (allow_seconds(0); socket_read(&asked, sizeof asked); allow_seconds(0)) {
        allow_seconds(ROW_SECONDS);
        if (asked.tensor < 0 || asked.tensor >= r->n_found) _exit(1);
        const found *f = &r->found[asked.tensor];
        rows *its = &all[asked.tensor];
        if (its->buffer == NULL) open_rows(r, f, its);
        if (asked.begin < 0 || asked.end > its->n || asked.begin >= asked.end || asked.record < 0 ||
            (its->n_dims > 0 && asked.record >= its->sizes[0]))
            _exit(1);
        read_row(f, its, asked.record);
        const size_t width = element_bytes[its->element->dtype];
        send_bytes(its->buffer + (size_t)asked.begin * width,
                   (size_t)(asked.end - asked.begin) * width);
        send_rest();
    }
}
