/* hdf5_refused_test: what an HDF5 file may have that weft ckpt import does not take: each gets its
 * own sentence, exit status 2 (77 where the file is damaged), and nothing is written. And what it
 * does take though it is odd.
 */
#include "command.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#ifdef WEFT_HAVE_HDF5
#include <hdf5.h>

enum { TEXT = 4096 };
static char folder[] = "/tmp/weft-refused-XXXXXX";

static command_result ckpt(const char *arguments)
{
    char line[TEXT];
    snprintf(line, sizeof line, "timeout -k 1 60 " WEFT_TEST_BIN "/weft ckpt %s 2>&1", arguments);
    return command_run_all(line);
}

static bool is_there(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

/* ---- making files: everything that is added is closed by the one who made the file ------------
 */

static hid_t space_of(hsize_t size)
{
    return H5Screate_simple(1, &size, NULL);
}

static void add(hid_t file, const char *name, hid_t type, hid_t space, hid_t creation)
{
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(dataset >= 0 && H5Dclose(dataset) >= 0);
}

/* A dataset that is taken: four f32. */
static void add_good(hid_t file, const char *name)
{
    const float numbers[] = {1, 2, 3, 4};
    const hid_t space = space_of(4), dataset = H5Dcreate2(file, name, H5T_IEEE_F32LE, space,
                                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void external_link(hid_t file)
{
    H5Lcreate_external("other.h5", "/w", file, "out", H5P_DEFAULT, H5P_DEFAULT);
}

static void soft_through_external(hid_t file)
{
    /* Sorted before the external link, so met first. */
    H5Lcreate_external("other.h5", "/", file, "z", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/z/w", file, "a", H5P_DEFAULT, H5P_DEFAULT);
}

static void external_storage(hid_t file)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(4);
    H5Pset_external(creation, "/etc/passwd", 0, 16);
    add(file, "w", H5T_IEEE_F32LE, space, creation);
    H5Sclose(space);
    H5Pclose(creation);
}

static void virtual_dataset(hid_t file)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(4);
    CHECK(H5Pset_virtual(creation, space, "other.h5", "/w", space) >= 0);
    add(file, "w", H5T_IEEE_F32LE, space, creation);
    H5Sclose(space);
    H5Pclose(creation);
}

static void soft_loop(hid_t file)
{
    H5Lcreate_soft("/b", file, "a", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/a", file, "b", H5P_DEFAULT, H5P_DEFAULT);
}

static void soft_nowhere(hid_t file)
{
    H5Lcreate_soft("/b", file, "a", H5P_DEFAULT, H5P_DEFAULT);
}

/* A link cannot be made without one. */
static void never(void)
{
}

static void user_link(hid_t file)
{
    static const H5L_class_t kind = {.version = H5L_LINK_CLASS_T_VERS,
                                     .id = 200,
                                     .trav_func = (H5L_traverse_func_t)(void *)never};
    CHECK(H5Lregister(&kind) >= 0);
    CHECK(H5Lcreate_ud(file, "odd", (H5L_type_t)200, "x", 1, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void known_filter(hid_t file)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(4);
    const hsize_t chunk = 4;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_scaleoffset(creation, H5Z_SO_INT, 0);
    add(file, "w", H5T_STD_I32LE, space, creation);
    H5Sclose(space);
    H5Pclose(creation);
}

static size_t copy(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *room,
                   void **buffer)
{
    (void)flags, (void)n, (void)values, (void)room, (void)buffer;
    return bytes;
}

static void unknown_filter(hid_t file)
{
    static const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                                        .id = 300,
                                        .encoder_present = 1,
                                        .decoder_present = 1,
                                        .name = "of the test",
                                        .filter = copy};
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(4);
    const hsize_t chunk = 4;
    const float numbers[] = {1, 2, 3, 4};
    CHECK(H5Zregister(&filter) >= 0);
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_filter(creation, 300, H5Z_FLAG_MANDATORY, 0, NULL);
    const hid_t dataset =
        H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(creation);
}

static void committed_type(hid_t file)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tcommit2(file, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Tclose(type);
}

/* The type has no name any more that a walk would find, but it is committed. */
static void hidden_committed_type(hid_t file)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE), space = space_of(4);
    H5Tcommit2(file, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add(file, "w", type, space, H5P_DEFAULT);
    H5Ldelete(file, "t", H5P_DEFAULT);
    H5Tclose(type);
    H5Sclose(space);
}

static void add_of(hid_t file, hid_t type)
{
    const hid_t space = space_of(4);
    add(file, "w", type, space, H5P_DEFAULT);
    H5Sclose(space);
    H5Tclose(type);
}

static void compound(hid_t file)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(type, "re", 0, H5T_IEEE_F32LE);
    H5Tinsert(type, "im", 4, H5T_IEEE_F32LE);
    add_of(file, type);
}

static void string(hid_t file)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    add_of(file, type);
}

static void reference(hid_t file)
{
    add_of(file, H5Tcopy(H5T_STD_REF_OBJ));
}

static void enumeration(hid_t file)
{
    const hid_t type = H5Tenum_create(H5T_STD_I8LE);
    const int8_t no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    add_of(file, type);
}

static void array(hid_t file)
{
    const hsize_t three = 3;
    add_of(file, H5Tarray_create2(H5T_IEEE_F32LE, 1, &three));
}

static void variable_length(hid_t file)
{
    add_of(file, H5Tvlen_create(H5T_IEEE_F32LE));
}

static void opaque(hid_t file)
{
    add_of(file, H5Tcreate(H5T_OPAQUE, 4));
}

static void bits(hid_t file)
{
    add_of(file, H5Tcopy(H5T_STD_B32LE));
}

static void odd_float(hid_t file)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_ebias(type, 100);
    add_of(file, type);
}

static void twelve_bits(hid_t file)
{
    const hid_t type = H5Tcopy(H5T_STD_U16LE);
    H5Tset_precision(type, 12);
    add_of(file, type);
}

static void no_elements(hid_t file)
{
    const hid_t space = H5Screate(H5S_NULL);
    add(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT);
    H5Sclose(space);
}

static void size_zero(hid_t file)
{
    const hid_t space = space_of(0);
    add(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT);
    H5Sclose(space);
}

static void nine_dims(hid_t file)
{
    const hsize_t sizes[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const hid_t space = H5Screate_simple(9, sizes, NULL);
    add(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT);
    H5Sclose(space);
}

static void large_unsigned(hid_t file)
{
    const uint64_t numbers[] = {1, 2, UINT64_MAX, 4};
    const hid_t space = space_of(4), dataset = H5Dcreate2(file, "w", H5T_STD_U64LE, space,
                                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void group_in_itself(hid_t file)
{
    const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "g", group, "again", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
}

/* Two doors to the next room, sixty times: 2^60 paths. */
static void doubling_groups(hid_t file)
{
    hid_t here = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 20; i++) {
        const hid_t next = H5Gcreate2(here, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_hard(here, "a", here, "b", H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(here);
        here = next;
    }
    H5Gclose(here);
}

static void deep_groups(hid_t file)
{
    hid_t here = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 40; i++) {
        const hid_t next = H5Gcreate2(here, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(here);
        here = next;
    }
    H5Gclose(here);
}

static void add_attributes(hid_t to, int n)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        const hid_t attribute = H5Acreate2(to, name, H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Aclose(attribute);
    }
    H5Sclose(space);
}

static void attributes_of_root(hid_t file)
{
    add_attributes(file, 1025);
}

static void attributes_of_group(hid_t file)
{
    const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_attributes(group, 1025);
    H5Gclose(group);
}

static void large_chunk(hid_t file)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(1 << 26);
    const hsize_t chunk = 1 << 26;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_deflate(creation, 9);
    add(file, "w", H5T_IEEE_F32LE, space, creation);
    H5Sclose(space);
    H5Pclose(creation);
}

/* Elements that were never written are zeros without a place. */
static void bomb_of_nothing(hid_t file)
{
    const hid_t space = space_of((hsize_t)1 << 38);
    add(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT);
    H5Sclose(space);
}

/* 128 MiB of zeros, a thousandth of it on the disk. */
static void bomb_of_deflate(hid_t file)
{
    enum { SIZE = 1 << 25 };
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(SIZE);
    const hsize_t chunk = 1 << 20;
    float *zeros = calloc(SIZE, sizeof *zeros);
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_deflate(creation, 1);
    const hid_t dataset =
        H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
    free(zeros);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(creation);
}

/* One dataset of 1 MiB by two thousand names. */
static void bomb_of_names(hid_t file)
{
    enum { SIZE = 1 << 18 };
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(SIZE);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    add(file, "w", H5T_IEEE_F32LE, space, creation);
    for (int i = 0; i < 2000; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        H5Lcreate_hard(file, "w", file, name, H5P_DEFAULT, H5P_DEFAULT);
    }
    H5Sclose(space);
    H5Pclose(creation);
}

static void name_of_dots(hid_t file)
{
    add_good(file, "..");
}

static void name_of_controls(hid_t file)
{
    add_good(file, "w\033[2Jx");
}

static void name_not_utf8(hid_t file)
{
    add_good(file, "w\377");
}

/* In a file of ours %0A would be a new line. */
static void name_of_codes(hid_t file)
{
    const hid_t group = H5Gcreate2(file, "parameters", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_good(group, "w%0Ax");
    const hid_t dataset = H5Dopen2(group, "w%0Ax", H5P_DEFAULT), type = H5Tcopy(H5T_C_S1),
                space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 4);
    const hid_t attribute = H5Acreate2(dataset, "dims", type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, "row");
    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
    H5Gclose(group);
}

static void long_name(hid_t file)
{
    char name[600];
    memset(name, 'w', sizeof name - 1);
    name[sizeof name - 1] = 0;
    add_good(file, name);
}

static void nothing(hid_t file)
{
    (void)file;
}

static void not_a_number(hid_t file)
{
    const float numbers[] = {1, NAN, 3, 4};
    const hid_t space = space_of(4), dataset = H5Dcreate2(file, "w", H5T_IEEE_F32LE, space,
                                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    H5Dclose(dataset);
    H5Sclose(space);
}

static const struct {
    void (*make)(hid_t file);
    int status;
    const char *fact;
} refused[] = {
    {external_link, 2, "external link /out"},
    {soft_through_external, 2, "soft link /a, which leads into another file"},
    {external_storage, 2, "tensor /w in external files"},
    {virtual_dataset, 2, "virtual dataset /w"},
    {soft_loop, 2, "soft link /a, which leads in a circle"},
    {soft_nowhere, 2, "soft link /a, which leads nowhere"},
    {user_link, 2, "link /odd of a kind that a user has defined"},
    {known_filter, 2, "filter 6 (scaleoffset)"},
    {unknown_filter, 2, "filter 300 (of the test)"},
    {committed_type, 2, "committed type /t"},
    {hidden_committed_type, 2, "committed type under the tensor /w"},
    {compound, 2, "/w of the type compound"},
    {string, 2, "/w of the type string"},
    {reference, 2, "/w of the type reference"},
    {enumeration, 2, "/w of the type enumeration"},
    {array, 2, "/w of the type array"},
    {variable_length, 2, "/w of the type variable length"},
    {opaque, 2, "/w of the type opaque"},
    {bits, 2, "/w of the type bits"},
    {odd_float, 2, "/w of a float of 4 bytes"},
    {twelve_bits, 2, "/w of a integer of 2 bytes"},
    {no_elements, 2, "/w without any element"},
    {size_zero, 2, "/w with a dim of size 0"},
    {nine_dims, 2, "/w of 9 dims"},
    {large_unsigned, 2, "(18446744073709551615) does not fit into i64"},
    {group_in_itself, 2, "group /g/again a second time"},
    {doubling_groups, 2, "a second time"},
    {deep_groups, 2, "more than 32 deep"},
    {attributes_of_root, 2, "1025 attributes at its root"},
    {attributes_of_group, 2, "1025 attributes at /g"},
    {large_chunk, 2, "in chunks of 2.68e+08 bytes"},
    {bomb_of_nothing, 2, "so much is not taken out of so little"},
    {bomb_of_deflate, 2, "so much is not taken out of so little"},
    {bomb_of_names, 2, "so much is not taken out of so little"},
    {name_of_dots, 2, "the name \"..\""},
    {name_of_controls, 2, "control character (27)"},
    {name_not_utf8, 2, "not UTF-8"},
    {name_of_codes, 2, "control character (10)"},
    {long_name, 2, "longer than 511 bytes"},
    {nothing, 2, "no tensors"},
    {not_a_number, 76, "NaN"},
};

static void make_file(const char *path, void (*make)(hid_t file), bool is_new)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (is_new) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    make(file);
    CHECK(H5Fclose(file) >= 0);
    H5Pclose(access);
}

/* what: a file, and options */
static void check_refused(const char *what, int status, const char *fact)
{
    char line[TEXT];
    snprintf(line, sizeof line, "import %s", what);
    const command_result r = ckpt(line);
    CHECK_EQ_INT(r.status, status);
    CHECK_TEXT(r.text, fact);
    CHECK_EQ_INT(command_lines(r.text, ""), 1);
    CHECK_EQ_INT(strlen(r.text) < 500, 1);
    CHECK_EQ_INT(is_there("out"), status == 76); /* the directory only: refused when it is saved */
    if (is_there("out")) CHECK_EQ_INT(rmdir("out"), 0);
}

static void test_each_is_refused_by_name(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        make_file("odd.h5", refused[i].make, i % 2);
        check_refused("odd.h5 out", refused[i].status, refused[i].fact);
    }
}

/* ---- damage, and what is no file --------------------------------------------------------------
 */

static void run(const char *line)
{
    weft_test_check(system(line) == 0, __FILE__, __LINE__, line);
}

static void checked_chunks(hid_t file)
{
    enum { SIZE = 4096 };
    static float numbers[SIZE];
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = space_of(SIZE);
    const hsize_t chunk = SIZE;
    for (int i = 0; i < SIZE; i++)
        numbers[i] = (float)i;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_fletcher32(creation);
    const hid_t dataset =
        H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(creation);
}

static void test_damaged_files(void)
{
    make_file("whole.h5", checked_chunks, true);
    CHECK_EQ_INT(ckpt("import whole.h5 out").status, 0);
    run("rm -r out");
    run("head -c 3000 whole.h5 > cut.h5");
    check_refused("cut.h5 out", 77, "cut.h5 is damaged");
    run("cp whole.h5 bad.h5 && printf XXXX | dd of=bad.h5 bs=1 conv=notrunc "
        "seek=$(($(wc -c <whole.h5) - 8000)) 2>/dev/null");
    check_refused("bad.h5 out", 77, "of w cannot be read (libhdf5: ");
    run("cp whole.h5 bad.h5 && printf X | dd of=bad.h5 bs=1 conv=notrunc seek=20 2>/dev/null");
    check_refused("bad.h5 out", 77, "bad.h5 is damaged");
    run(": > empty.h5; echo text > text.h5; mkdir folder.h5; mkfifo pipe.h5");
    check_refused("empty.h5 out", 2, "is no HDF5 file");
    check_refused("text.h5 out", 2, "is no HDF5 file");
    check_refused("folder.h5 out", 2, "not a regular file");
    check_refused("pipe.h5 out", 2, "not a regular file");
    check_refused("missing.h5 out", 2, "No such file");
    check_refused("whole.txt out", 2, ".safetensors and .h5");
    make_file("safe.txt", checked_chunks, true);
    CHECK_EQ_INT(ckpt("import safe.txt out --format hdf5").status, 0);
    run("rm -r out");
    check_refused("whole.h5 out --format safetensors", 2, "no safetensors file");
}

/* ---- what is odd and yet taken ----------------------------------------------------------------
 */

static void add_labels(hid_t file, const char *dataset_name, const char *a, const char *b)
{
    const char *labels[] = {a, b};
    const hsize_t sizes[] = {3, 4}, two = 2;
    const hid_t space = H5Screate_simple(2, sizes, NULL), pair = H5Screate_simple(1, &two, NULL),
                type = H5Tcopy(H5T_C_S1),
                dataset = H5Dcreate2(file, dataset_name, H5T_IEEE_F32LE, space, H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t attribute =
        H5Acreate2(dataset, "DIMENSION_LABELS", type, pair, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Awrite(attribute, type, labels) >= 0);
    H5Aclose(attribute);
    H5Dclose(dataset);
    H5Tclose(type);
    H5Sclose(pair);
    H5Sclose(space);
}

/* An attribute "dims" as ours is, but with more behind the end of its text. */
static void add_hidden_text(hid_t file, const char *dataset_name)
{
    const hid_t dataset = H5Dopen2(file, dataset_name, H5P_DEFAULT), type = H5Tcopy(H5T_C_S1),
                space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 8);
    const hid_t attribute = H5Acreate2(dataset, "dims", type, space, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Awrite(attribute, type, "hid\0den") >= 0);
    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
}

static void odd_but_good(hid_t file)
{
    const hid_t group = H5Gcreate2(file, "dense", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_good(group, "kernel:0");
    add_good(file, "dense_1");
    add_hidden_text(file, "dense_1");
    H5Lcreate_soft("/dense/kernel:0", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "dense_1", file, "tied", H5P_DEFAULT, H5P_DEFAULT);
    add_labels(file, "labelled", "batch", "seq");
    add_labels(file, "half_labelled", "batch", "");
    add_labels(file, "same_labels", "row", "row");
    add_labels(file, "odd_labels", "a row", "a\nb");
    add_labels(file, "no_utf8", "a\377", "b");
    add_attributes(group, 1000);
    H5Gclose(group);
}

static void test_odd_files_are_taken(void)
{
    make_file("good.h5", odd_but_good, false);
    command_result r = ckpt("import good.h5 out");
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    r = ckpt("show out");
    CHECK_TEXT(r.text, "dense/kernel:0");
    CHECK_TEXT(r.text, "soft  ");
    CHECK_TEXT(r.text, "tied  ");
    CHECK_TEXT(r.text, "[batch:3, seq:4]");
    CHECK_TEXT(r.text, "[hid:4]");
    CHECK_EQ_INT(strstr(r.text, "[batch:3, dim1:4]") == NULL, 1);
    CHECK_EQ_INT(strstr(r.text, "row") == NULL, 1);
    const char *second = strstr(r.text, "[dim0:3, dim1:4]");
    CHECK(second != NULL && strstr(second + 1, "[dim0:3, dim1:4]") != NULL);
    run("rm -r out");
}

/* A user block before the file's first byte is part of the format. */
static void test_user_block(void)
{
    run("(head -c 512 /dev/zero; cat whole.h5) > block.h5");
    const command_result r = ckpt("import block.h5 out --json");
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    CHECK_TEXT(r.text, "\"n_tensors\": 1");
    run("rm -rf out");
}

int main(void)
{
    if (access(WEFT_TEST_BIN "/weft-read-hdf5", X_OK) != 0) {
        weft_test_skip("built without libseccomp, so no HDF5 file of others is read");
        return weft_test_report();
    }
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (!CHECK(mkdtemp(folder) != NULL) || !CHECK(chdir(folder) == 0)) return weft_test_report();
    RUN(test_each_is_refused_by_name);
    RUN(test_damaged_files);
    RUN(test_odd_files_are_taken);
    RUN(test_user_block);
    CHECK_EQ_INT(chdir("/"), 0);
    char line[80];
    snprintf(line, sizeof line, "rm -r %s", folder);
    run(line);
    return weft_test_report();
}

#else

int main(void)
{
    weft_test_skip("built without HDF5");
    return weft_test_report();
}

#endif
