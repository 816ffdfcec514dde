/* carry_mutation_test: files with random damage, in this very process: HDF5 files (through the process that reads
 * them), headers of safetensors files, maps, manifests. In every case this process lives, every answer is one of the
 * statuses that are meant for it, and nothing half-written stays.
 *
 *     carry_mutation_test                some of each
 *     carry_mutation_test --many 20000   so many of each; --seed 2 behind it: others
 */
#include "apps/weft/carry/hdf5_carry.h"
#include "io/checkpoint/manifest.h"

#include "carry_damage.h"

static char folder[] = "/tmp/weft-mutation-XXXXXX";
static int n_files = 60;

/* ---- what came of it ------------------------------------------------------------------------- */

typedef struct tally {
    const char *what;
    int n, n_of[WEFT_CORRUPT + 1];
    int n_crashed, n_quiet, n_busy, n_stopped, n_ended, n_lied; /* the process that reads */
    double longest;
} tally;

static void count(tally *t, weft_status status, const weft_error *error, double took)
{
    static const char *const ways[] = {"crashed (",     "no progress",     "of processor time",
                                       "does not need", "ended too early", "what cannot be"};
    int *const counts[] = {&t->n_crashed, &t->n_quiet, &t->n_busy,
                           &t->n_stopped, &t->n_ended, &t->n_lied};
    t->n++;
    t->n_of[status]++;
    for (int i = 0; i < 6; i++)
        *counts[i] += status == WEFT_CORRUPT && strstr(error->message, ways[i]) != NULL;
    if (took > t->longest) t->longest = took;
}

static void print(const tally *t)
{
    printf("%s: %d files; taken %d, refused %d, damaged %d, not finite %d, other %d", t->what, t->n,
           t->n_of[WEFT_OK], t->n_of[WEFT_USAGE], t->n_of[WEFT_CORRUPT], t->n_of[WEFT_NONFINITE],
           t->n - t->n_of[WEFT_OK] - t->n_of[WEFT_USAGE] - t->n_of[WEFT_CORRUPT] -
               t->n_of[WEFT_NONFINITE]);
    printf("; the reader crashed %d, was quiet %d, used up its time %d, was stopped %d, ended %d, "
           "lied %d; longest %.2f s\n",
           t->n_crashed, t->n_quiet, t->n_busy, t->n_stopped, t->n_ended, t->n_lied, t->longest);
}

/* One file, all the way into a checkpoint, by a map or, NULL, as it is. */
static void import_by(const carry_format *format, const char *path, carry_map *map, tally *t)
{
    weft_error error = {.rank = -1};
    json_t *facts = NULL;
    const double begin = seconds();
    const weft_status status = carry_import(format, path, "out", map, &facts, &error);
    count(t, status, &error, seconds() - begin);
    json_decref(facts);
    const bool is_meant = status == WEFT_OK || status == WEFT_USAGE || status == WEFT_CORRUPT ||
                          status == WEFT_NONFINITE;
    weft_test_check(is_meant, __FILE__, __LINE__, error.message);
    weft_test_check(error.status == status && (status == WEFT_OK) == (error.message[0] == 0),
                    __FILE__, __LINE__, error.message);
    CHECK_EQ_INT(strchr(error.message, '\n') != NULL, 0);
    const bool is_written = is_there("out/step_00000001") || is_there("out");
    weft_test_check(is_written == (status == WEFT_OK || status == WEFT_NONFINITE), __FILE__,
                    __LINE__, error.message);
    if (is_written) remove_all("out");
}

static void import(const carry_format *format, const char *path, tally *t)
{
    import_by(format, path, NULL, t);
}

/* ---- HDF5 ------------------------------------------------------------------------------------ */

#ifdef WEFT_HAVE_HDF5
#include <hdf5.h>

static weft_status open_real(const char *path, source *from, weft_error *error)
{
    char *const reader[] = {WEFT_TEST_BIN "/weft-read-hdf5", NULL};
    enum { QUIET_MS = 3000 }; /* a tenth of the real patience: some files make libhdf5 spin */
    return hdf5_source_open(path, reader, QUIET_MS, from, error);
}
static const carry_format real = {
    .name = "hdf5", .endings = {".h5", NULL}, .write = NULL, .open = open_real};

static void add(hid_t at, const char *name, hid_t type, int rank, hid_t creation)
{
    static float numbers[6 * 5 * 4];
    const hsize_t sizes[] = {6, 5, 4};
    for (int i = 0; i < 6 * 5 * 4; i++)
        numbers[i] = (float)(i % 50);
    const hid_t space = H5Screate_simple(rank, sizes, NULL),
                dataset = H5Dcreate2(at, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    const hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 6);
    const hid_t attribute = H5Acreate2(dataset, "dims", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, text, "a,b,c");
    H5Aclose(attribute);
    H5Tclose(text);
    H5Sclose(scalar);
    H5Sclose(space);
    H5Dclose(dataset);
}

static void add_labels(hid_t at, const char *name)
{
    const char *labels[] = {"batch", "seq", "embed"};
    const hsize_t three = 3;
    const hid_t space = H5Screate_simple(1, &three, NULL), type = H5Tcopy(H5T_C_S1),
                dataset = H5Dopen2(at, name, H5P_DEFAULT);
    H5Tset_size(type, H5T_VARIABLE);
    H5Adelete(dataset, "dims");
    const hid_t attribute =
        H5Acreate2(dataset, "DIMENSION_LABELS", type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, labels);
    H5Aclose(attribute);
    H5Dclose(dataset);
    H5Tclose(type);
    H5Sclose(space);
}

/* Groups, chunks with all three filters, compact and contiguous ones, links, attributes, labels: 0
 * with the oldest structures, 1 with those of 1.8, 2 with the newest. */
static void make_seed(const char *path, int generation)
{
    static const H5F_libver_t versions[] = {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_V110};
    const hsize_t chunk[] = {4, 3, 2};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), chunks = H5Pcreate(H5P_DATASET_CREATE),
                compact = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_libver_bounds(access, versions[generation],
                         generation == 0 ? H5F_LIBVER_V110 : versions[generation]);
    H5Pset_chunk(chunks, 3, chunk);
    H5Pset_shuffle(chunks);
    H5Pset_deflate(chunks, 6);
    H5Pset_fletcher32(chunks);
    H5Pset_layout(compact, H5D_COMPACT);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t outer = H5Gcreate2(file, "layer", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                inner = H5Gcreate2(outer, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add(inner, "kernel", H5T_IEEE_F32LE, 3, chunks);
    add(inner, "moment", H5T_IEEE_F64BE, 3, chunks);
    add(outer, "bias", H5T_IEEE_F64LE, 1, compact);
    add(file, "table", H5T_STD_I64LE, 2, H5P_DEFAULT);
    add(file, "bytes", H5T_STD_U8LE, 3, H5P_DEFAULT);
    add(file, "labelled", H5T_IEEE_F32LE, 3, H5P_DEFAULT);
    add_labels(file, "labelled");
    H5Lcreate_soft("/layer/inner/kernel", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "table", outer, "tied", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(inner);
    H5Gclose(outer);
    H5Fclose(file);
    H5Pclose(access);
    H5Pclose(chunks);
    H5Pclose(compact);
}

/* Many of one kind, so that lists and trees have inner nodes. */
static void make_wide_seed(const char *path, int generation)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (generation > 0) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        add(file, name, H5T_IEEE_F32LE, 1, H5P_DEFAULT);
    }
    H5Fclose(file);
    H5Pclose(access);
}

static void test_damaged_hdf5(void)
{
    static bytes seeds[5], file;
    if (access(WEFT_TEST_BIN "/weft-read-hdf5", X_OK) != 0) {
        printf("  not tried: built without libseccomp\n");
        return;
    }
    for (int s = 0; s < 5; s++) {
        tally t = {.what = "a seed itself"};
        if (s < 3)
            make_seed("seed.h5", s);
        else
            make_wide_seed("seed.h5", s - 3);
        read_bytes("seed.h5", &seeds[s]);
        import(&real, "seed.h5", &t);
        CHECK_EQ_INT(t.n_of[WEFT_OK], 1);
    }
    tally t = {.what = "HDF5"};
    for (int i = 0; i < n_files; i++) {
        damage(&seeds[i % 5], &file);
        write_bytes("file.h5", &file);
        import(&real, "file.h5", &t);
        if (i % 2000 == 1999) print(&t), fflush(stdout);
    }
    print(&t);
    CHECK_EQ_INT(t.n, n_files);
    CHECK(t.n_of[WEFT_OK] > 0 && t.n_of[WEFT_CORRUPT] > 0);
    CHECK_EQ_INT(t.n_lied, 0);
#ifndef WEFT_SANITIZE             /* which has to open and write to tell what it found */
    CHECK_EQ_INT(t.n_stopped, 0); /* random damage is no attack: it leads into no forbidden call */
#endif
}
#else
static void test_damaged_hdf5(void)
{
    printf("  not tried: built without HDF5\n");
}
#endif

/* ---- JSON: texts that still parse reach further than noise ------------------------------------
 */

static const char *const tokens[] = {"-1",
                                     "0",
                                     "1",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "4294967296",
                                     "1e308",
                                     "null",
                                     "true",
                                     "[]",
                                     "{}",
                                     "\"\"",
                                     "\"../x\"",
                                     "\"w\"",
                                     "[[[[",
                                     "1.5",
                                     "\"",
                                     "\\u0000",
                                     "\\u001b",
                                     "\"F64\"",
                                     "]",
                                     "}",
                                     "[0,0]",
                                     "2,2",
                                     "\"hash\":1,",
                                     "\xC3\x28",
                                     "4194304"};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One value of a JSON text for another. */
static void change_token(bytes *b, size_t at)
{
    const char *token = tokens[below(sizeof tokens / sizeof *tokens)];
    size_t n = 0;
    while (at < b->n && !is_digit(b->data[at]) && b->data[at] != '"')
        at++;
    if (at == b->n) return;
    if (is_digit(b->data[at]))
        while (at + n < b->n && is_digit(b->data[at + n]))
            n++;
    else if (below(2) == 0)
        while (at + ++n < b->n && b->data[at + n] != '"') {
        }
    take_out(b, at, n);
    insert(b, at, token, strlen(token));
}

static void damage_json(const bytes *from, bytes *to)
{
    if (below(4) == 0) {
        damage(from, to);
        return;
    }
    memcpy(to->data, from->data, from->n);
    to->n = from->n;
    for (int i = below(2) == 0 ? 1 : 2 + (int)below(3); i > 0 && to->n > 0; i--)
        change_token(to, below(to->n));
}

/* A safetensors file of a header and as many bytes as there were; the length is right most times.
 */
static void join(const bytes *header, size_t n_data, bytes *to)
{
    const uint64_t length = below(16) == 0 ? next() >> below(64) : header->n;
    to->n = 0;
    for (int i = 0; i < 8; i++)
        to->data[to->n++] = (char)(length >> 8 * i);
    memcpy(to->data + to->n, header->data, header->n);
    memset(to->data + to->n + header->n, 0, n_data);
    to->n += header->n + n_data;
}

static void test_damaged_safetensors(void)
{
    static const char text[] =
        "{\"__metadata__\":{\"format\":\"weft\",\"step\":\"3\",\"sample\":\"12\",\"seed\":\"7\","
        "\"dims.w\":\"pixel hidden\",\"dims.w/m\":\"pixel hidden\"},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]},"
        "\"w/m\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[32,64]},"
        "\"b\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[64,88]},"
        "\"i\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[88,92]},"
        "\"h\":{\"dtype\":\"BF16\",\"shape\":[5],\"data_offsets\":[92,102]},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[2,1],\"data_offsets\":[102,118]}}";
    static bytes seed, header, file;
    tally t = {.what = "safetensors"};
    seed.n = sizeof text - 1;
    memcpy(seed.data, text, seed.n);
    for (int i = 0; i < n_files; i++) {
        damage_json(&seed, &header);
        join(&header, 118, &file);
        write_bytes("file.safetensors", &file);
        import(&carry_safetensors, "file.safetensors", &t);
    }
    print(&t);
    CHECK_EQ_INT(t.n, n_files);
    CHECK(t.n_of[WEFT_OK] > 0 && t.n_of[WEFT_USAGE] > 0);
    CHECK_EQ_INT(t.n_of[WEFT_CORRUPT], 0);
}

/* Maps for one file; whatever they say, they are refused, or what they make of it is a checkpoint. */
static void test_damaged_maps(void)
{
    static const char tensors[] =
        "{\"p.h.0.c\":{\"dtype\":\"F32\",\"shape\":[4,12],\"data_offsets\":[0,192]},"
        "\"p.h.1.c\":{\"dtype\":\"F32\",\"shape\":[4,12],\"data_offsets\":[192,384]},"
        "\"p.t\":{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[384,432]},"
        "\"p.z\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[432,444]},"
        "\"p.m\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[444,446]}}";
    static const char text[] =
        "{\"prefix\": \"p.\", \"sizes\": {\"kv\": 2, \"a\": 2}, \"slots\": [\"m\"], \"rest\": "
        "\"refuse\", \"tensors\": [{\"from\": \"h.{i}.c\", \"dims\": [\"e\", \"qkv\"], \"split\": "
        "{\"qkv\": \"heads*kv\"}, \"to\": [\"b{i}.q\", \"b{i}.k\", \"b{i}.v\"]}, {\"from\": "
        "[\"u\", \"t\"], \"dims\": [\"a\", \"b\"], \"order\": [\"b\", \"a\"], \"to\": \"t\"}, "
        "{\"from\": \"t\", \"dims\": [\"x\", \"y\"], \"split\": {\"y\": [\"\", \"a\"]}, \"to\": "
        "[\"one\", \"two\"]}, {\"from\": \"z\", \"zero\": \"why\"}, {\"from\": \"m\", "
        "\"leave\": \"so\"}]}";
    static bytes seed, file, header;
    tally t = {.what = "maps"};
    header.n = sizeof tensors - 1;
    memcpy(header.data, tensors, header.n);
    do
        join(&header, 446, &file);
    while (file.data[0] != (char)(header.n & 255) || file.data[1] != (char)(header.n >> 8));
    write_bytes("mapped.safetensors", &file);
    seed.n = sizeof text - 1;
    memcpy(seed.data, text, seed.n);
    for (int i = 0; i < n_files; i++) {
        weft_error error = {.rank = -1};
        carry_map *map = NULL;
        if (i > 0) damage_json(&seed, &file);
        write_bytes("map.json", i > 0 ? &file : &seed);
        if (carry_map_read("map.json", &(carry_said){.sizes = ""}, &map, &error) == WEFT_OK)
            import_by(&carry_safetensors, "mapped.safetensors", map, &t);
        else
            count(&t, error.status, &error, 0);
        carry_map_destroy(&map);
    }
    print(&t);
    CHECK_EQ_INT(t.n, n_files);
    CHECK(t.n_of[WEFT_OK] > 0);
    CHECK_EQ_INT(t.n_of[WEFT_OK] + t.n_of[WEFT_USAGE], n_files);
}

/* The manifest's hash of itself, made right again, so that what is behind it is met. */
static void seal(bytes *b)
{
    json_error_t where;
    json_t *root = json_loadb(b->data, b->n, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(root) && weft_manifest_seal(root)) {
        char *text = json_dumps(root, 0);
        if (text && strlen(text) < MOST) {
            b->n = strlen(text);
            memcpy(b->data, text, b->n);
        }
        free(text);
    }
    json_decref(root);
}

/* All that weft ckpt does with a checkpoint but printing. */
static weft_status look(weft_error *error)
{
    weft_stored *stored = NULL;
    weft_status status = weft_stored_open("good", &stored, error);
    if (status != WEFT_OK) return status;
    for (int i = 0; i < weft_stored_n_tensors(stored) && status == WEFT_OK; i++) {
        const weft_stored_tensor *tensor = weft_stored_tensor_at(stored, i);
        void *buffer = malloc((size_t)tensor->bytes + 1);
        status = CHECK(buffer != NULL) ? weft_stored_read(stored, i, buffer, error) : WEFT_MEMORY;
        free(buffer);
    }
    if (status == WEFT_OK) status = weft_stored_verify(stored, error);
    if (status == WEFT_OK)
        status = carry_export(stored, &carry_safetensors, "again", NULL, 0, error);
    weft_stored_close(&stored);
    return status;
}

static void test_damaged_manifests(void)
{
    static bytes seed, file;
    tally t = {.what = "manifests"};
    weft_error error = {.rank = -1};
    json_t *facts = NULL;
    static const char text[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
        "\"w/m\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,32]}}";
    seed.n = sizeof text - 1;
    memcpy(seed.data, text, seed.n);
    file.n = 0;
    for (int i = 0; i < 8; i++)
        insert(&file, file.n, &(char){(char)(seed.n >> 8 * i)}, 1);
    insert(&file, file.n, text, seed.n);
    memset(file.data + file.n, 0, 32);
    file.n += 32;
    write_bytes("good.safetensors", &file);
    CHECK_OK(carry_import(&carry_safetensors, "good.safetensors", "good", NULL, &facts, &error),
             error);
    json_decref(facts);
    read_bytes("good/step_00000001/manifest.json", &seed);
    for (int i = 0; i < n_files; i++) {
        weft_error own = {.rank = -1};
        damage_json(&seed, &file);
        if (i % 4 != 0) seal(&file);
        write_bytes("good/step_00000001/manifest.json", &file);
        const double begin = seconds();
        const weft_status status = look(&own);
        count(&t, status, &own, seconds() - begin);
        weft_test_check(status == WEFT_OK || status == WEFT_CORRUPT || status == WEFT_USAGE,
                        __FILE__, __LINE__, own.message);
    }
    print(&t);
    CHECK_EQ_INT(t.n, n_files);
    CHECK(t.n_of[WEFT_OK] > 0 && t.n_of[WEFT_CORRUPT] > 0);
}

int main(int n, char **arguments)
{
    if (n > 2 && strcmp(arguments[1], "--many") == 0) n_files = atoi(arguments[2]);
    if (n > 4 && strcmp(arguments[3], "--seed") == 0) chance += strtoull(arguments[4], NULL, 10);
    if (!CHECK(mkdtemp(folder) != NULL) || !CHECK(chdir(folder) == 0)) return weft_test_report();
    RUN(test_damaged_safetensors);
    RUN(test_damaged_maps);
    RUN(test_damaged_manifests);
    RUN(test_damaged_hdf5);
    CHECK_EQ_INT(chdir("/"), 0);
    remove_all(folder);
    return weft_test_report();
}
