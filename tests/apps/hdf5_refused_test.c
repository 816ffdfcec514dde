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
#include "hdf5_hostile.h"

enum { TEXT = 4096 };
static char folder[] = "/tmp/weft-refused-XXXXXX";

static command_result ckpt(const char *arguments)
{
    char line[TEXT];
    snprintf(line, sizeof line, "timeout -k 1 600 " WEFT_TEST_BIN "/weft ckpt %s 2>&1", arguments);
    return command_run_all(line);
}

static void run(const char *line)
{
    weft_test_check(system(line) == 0, __FILE__, __LINE__, line);
}

static bool is_there(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

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
    CHECK_EQ_INT(strlen(r.text) < 520, 1);
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

/* ---- what a map leaves -----------------------------------------------------------------------
 */

static void (*make_odd)(hid_t file); /* what odd_and_good makes besides */

static void odd_and_good(hid_t file)
{
    make_odd(file);
    add_good(file, "keep");
}

/* Of what there is but a name, of the structure itself, or of no one tensor, a map says nothing. */
static bool is_of_one_tensor(size_t i)
{
    static void (*const others[])(hid_t) = {
        doubling_groups,  deep_groups,   attributes_of_root, bomb_of_names, name_of_dots,
        name_of_controls, name_not_utf8, name_of_codes,      long_name,     nothing};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (refused[i].make == others[k]) return false;
    return true;
}

static void test_what_a_map_leaves_is_never_looked_at(void)
{
    static const char *const names[] = {"out", "a", "b", "z", "odd", "w", "t", "g", "g/again"};
    FILE *map = fopen("leave.json", "w");
    fprintf(map, "{\"tensors\": [{\"from\": \"keep\", \"to\": \"keep\"}");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(map, ", {\"from\": \"%s\", \"leave\": \"odd\"}", names[i]);
    fprintf(map, "]}");
    CHECK_EQ_INT(fclose(map), 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!is_of_one_tensor(i)) continue;
        make_odd = refused[i].make;
        make_file("odd.h5", odd_and_good, i % 2);
        const command_result r = ckpt("import odd.h5 out --map leave.json");
        if (!weft_test_check(r.status == 0, __FILE__, __LINE__, refused[i].fact))
            fprintf(stderr, "%s\n", r.text);
        run("rm -rf out");
    }
    /* what is taken, or has to be zero, is looked at */
    run("echo '{\"rest\": \"keep\", \"tensors\": [{\"from\": \"w\", \"zero\": \"it\"}]}' > "
        "zero.json");
    make_odd = size_zero;
    make_file("odd.h5", odd_and_good, true);
    check_refused("odd.h5 out --map zero.json", 2, "/w with a dim of size 0");
    check_refused("odd.h5 out", 2, "a map can leave it: --map FILE");
}

/* ---- newer than the library ------------------------------------------------------------------
 */

/* A byte of a copy of `from` changed: the one at `at` behind where `pattern` stands. */
static void patch(const char *from, const char *to, const char *pattern, size_t n, size_t at,
                  char value)
{
    static char bytes[1 << 16];
    FILE *file = fopen(from, "rb");
    const size_t all = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    char *found = memmem(bytes, all, pattern, n);
    if (file) fclose(file);
    if (!CHECK(found != NULL)) return;
    found[at] = value;
    file = fopen(to, "wb");
    CHECK(file && fwrite(bytes, 1, all, file) == all && fclose(file) == 0);
}

static void one_good(hid_t file)
{
    add_good(file, "w");
}

static void test_a_newer_format_is_no_damage(void)
{
    static const char signature[] = "\211HDF\r\n\032\n";
    static const char type[] = "\x11\x20\x1f\0\4\0\0\0\0\0\x20\0\x17\x08\0\x17";
    for (int is_new = 0; is_new < 2; is_new++) {
        make_file("good.h5", one_good, is_new);
        patch("good.h5", "newer.h5", signature, 8, 8, 7);
        check_refused("newer.h5 out", 2, "is in a newer format than libhdf5 1.");
        check_refused("newer.h5 out", 2, "libver=('earliest', 'v110')");
    }
    make_file("good.h5", one_good, false);
    patch("good.h5", "newer.h5", type, sizeof type - 1, 0, 0x51);
    check_refused("newer.h5 out", 2, "bad version number for datatype message");
    /* of one tensor it is no reason to refuse others */
    make_odd = one_good;
    make_file("good.h5", odd_and_good, false);
    run("cp good.h5 two.h5");
    patch("two.h5", "newer.h5", type, sizeof type - 1, 0, 0x51);
    const command_result r = ckpt("import newer.h5 out --map leave.json");
    CHECK_EQ_INT((r.status == 0) + (strstr(r.text, "keep") != NULL), 1);
    run("rm -rf out");
}

/* ---- damage, and what is no file --------------------------------------------------------------
 */

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
    check_refused("folder.h5 out", 2, "has neither model.safetensors nor");
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
    RUN(test_what_a_map_leaves_is_never_looked_at);
    RUN(test_a_newer_format_is_no_damage);
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
