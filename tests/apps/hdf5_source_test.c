/* hdf5_source_test: what weft believes of the process that reads HDF5 files for it: nothing. Here
 * this very program is that process, and lies, crashes, spins, eats memory or says nothing; each
 * ends with one sentence. Then the real one: every type of numbers, every way of storing them,
 * against what was written.
 */
#include "apps/weft/carry/hdf5_carry.h"
#include "io/apart/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5_lies.h"
#include "test.h"

static char folder[] = "/tmp/weft-hdf5-XXXXXX", self[4096];

/* ---- what is to survive it ------------------------------------------------------------------- */

static const char *lie; /* what `open_lie` starts */

static weft_status open_lie(const char *path, source *from, weft_error *error)
{
    char *const reader[] = {self, "--say", (char *)lie, NULL};
    const bool is_quiet = strcmp(lie, "quiet") == 0 || strcmp(lie, "fork") == 0;
    return hdf5_source_open(path, reader, is_quiet ? 300 : 30000, from, error);
}

static const carry_format liar = {
    .name = "hdf5", .endings = {".h5", NULL}, .write = NULL, .open = open_lie};

static bool is_there(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

static void test_nothing_is_believed(void)
{
    for (int i = 0; i < N_LIES; i++) {
        weft_error error = {.rank = -1};
        json_t *said = NULL;
        lie = lies[i].name;
        const weft_status status = carry_import(&liar, "empty.h5", "out", NULL, &said, &error);
        weft_test_check(status == lies[i].status, __FILE__, __LINE__, lie);
        CHECK_TEXT(error.message, lies[i].fact);
        CHECK_EQ_INT(strpbrk(error.message, "\n\033") != NULL, 0);
        CHECK_EQ_INT(is_there("out"), status == WEFT_OK); /* nothing half-written */
        if (status == WEFT_OK) CHECK_EQ_INT(system("rm -r out"), 0);
        json_decref(said);
    }
}

/* What one process does under limits of its own. */
static weft_status run_under(const char *what, int64_t memory, int64_t processor_s,
                             weft_error *error)
{
    char *const reader[] = {self, "--say", (char *)what, NULL};
    const int input = open("empty.h5", O_RDONLY | O_CLOEXEC);
    const weft_sandbox_order order = {"empty.h5",  reader, input, memory,
                                      processor_s, 30000,  false, "nothing was written",
                                      WEFT_CORRUPT};
    weft_sandbox box;
    char byte;
    weft_status status = weft_sandbox_start(&box, &order, error);
    if (status == WEFT_OK) status = weft_sandbox_read(&box, &byte, 1, error);
    weft_sandbox_stop(&box);
    close(input);
    return status;
}

static void test_limits(void)
{
    weft_error error = {.rank = -1};
    CHECK_EQ_INT(run_under("spin", INT64_C(1) << 30, 1, &error), WEFT_CORRUPT);
    CHECK_TEXT(error.message, "used up its 1 s of processor time");
    error = (weft_error){.rank = -1};
#ifndef WEFT_SANITIZE /* which wants all of the address space */
    CHECK_EQ_INT(run_under("eat", INT64_C(1) << 29, 20, &error), WEFT_CORRUPT);
    CHECK_TEXT(error.message, "exit status 5");
    error = (weft_error){.rank = -1};
#endif
    char *const none[] = {"/nowhere/weft-read-hdf5", NULL};
    source from;
    CHECK_EQ_INT(hdf5_source_open("empty.h5", none, 30000, &from, &error), WEFT_IO);
    CHECK_TEXT(error.message, "cannot be started");
}

/* ---- the real one -----------------------------------------------------------------------------
 */

#ifdef WEFT_HAVE_HDF5
#include <hdf5.h>

enum { ROWS = 37, COLUMNS = 29, COUNT = ROWS * COLUMNS };

static hid_t float_type(size_t bytes, size_t exponent, size_t mantissa, size_t bias)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    CHECK(H5Tset_fields(type, exponent + mantissa, mantissa, exponent, 0, mantissa) >= 0 &&
          H5Tset_size(type, bytes) >= 0 && H5Tset_ebias(type, bias) >= 0);
    return type;
}

/* The numbers, which fit into every type that is tried: small halves for floats, else whole ones.
 */
static double number(int i, bool is_float, bool is_signed)
{
    const int whole = i % 100 - (is_signed ? 50 : 0);
    return is_float ? whole + 0.5 * (i % 2) : whole;
}

/* One dataset [ROWS, COLUMNS] of `type` in a file of its own: chunks of `chunk` (0: contiguous),
 * all filters. */
static void write_numbers(const char *path, hid_t type, int chunk, bool is_old)
{
    static double numbers[COUNT];
    const hsize_t sizes[] = {ROWS, COLUMNS}, chunks[] = {(hsize_t)chunk, (hsize_t)chunk};
    const bool is_float = H5Tget_class(type) == H5T_FLOAT;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = number(i, is_float, is_float || H5Tget_sign(type) == H5T_SGN_2);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_DATASET_CREATE);
    if (!is_old) H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access),
                space = H5Screate_simple(2, sizes, NULL);
    if (chunk > 0) {
        H5Pset_chunk(creation, 2, chunks);
        H5Pset_shuffle(creation);
        H5Pset_deflate(creation, 6);
        H5Pset_fletcher32(creation);
    }
    const hid_t dataset = H5Dcreate2(file, "w", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(creation);
    H5Pclose(access);
    H5Fclose(file);
}

static weft_status open_real(const char *path, source *from, weft_error *error)
{
    char *const reader[] = {WEFT_TEST_BIN "/weft-read-hdf5", NULL};
    return hdf5_source_open(path, reader, 30000, from, error);
}

static double element(weft_dtype dtype, const void *data, int i)
{
    return weft_dtype_get(dtype, data, i);
}

static void check_numbers(weft_dtype dtype, const char *type, bool is_float, bool is_signed)
{
    weft_error error = {.rank = -1};
    source from;
    double data[COUNT];
    if (!CHECK_OK(open_real("numbers.h5", &from, &error), error)) return;
    if (CHECK_EQ_INT(from.n_tensors, 1) && CHECK_EQ_INT(from.tensors[0].dtype, dtype) &&
        CHECK_EQ_INT(from.tensors[0].sizes[1], COLUMNS)) {
        int n_wrong = 0;
        CHECK_OK(from.read(&from, 0, data, &error), error);
        CHECK_OK(from.finish(&from, &error), error);
        for (int i = 0; i < COUNT; i++)
            n_wrong += element(dtype, data, i) != number(i, is_float, is_signed);
        weft_test_check(n_wrong == 0, __FILE__, __LINE__, type);
        CHECK(strcmp(from.tensors[0].type, type) == 0);
    }
    from.close(&from);
}

static void test_every_type_and_storage(void)
{
    const hid_t f16 = float_type(2, 5, 10, 15), bf16 = float_type(2, 8, 7, 127);
    const hid_t f16_big = H5Tcopy(f16);
    H5Tset_order(f16_big, H5T_ORDER_BE);
    const struct {
        hid_t type;
        const char *name;
        weft_dtype dtype;
        bool is_float, is_signed;
    } types[] = {
        {f16, "f16", WEFT_F16, true, true},
        {f16_big, "f16", WEFT_F16, true, true},
        {bf16, "bf16", WEFT_BF16, true, true},
        {H5T_IEEE_F32LE, "f32", WEFT_F32, true, true},
        {H5T_IEEE_F32BE, "f32", WEFT_F32, true, true},
        {H5T_IEEE_F64LE, "f64", WEFT_F64, true, true},
        {H5T_IEEE_F64BE, "f64", WEFT_F64, true, true},
        {H5T_STD_I8LE, "i8", WEFT_I32, false, true},
        {H5T_STD_U8BE, "u8", WEFT_U8, false, false},
        {H5T_STD_I16BE, "i16", WEFT_I32, false, true},
        {H5T_STD_U16LE, "u16", WEFT_I32, false, false},
        {H5T_STD_I32BE, "i32", WEFT_I32, false, true},
        {H5T_STD_U32BE, "u32", WEFT_I64, false, false},
        {H5T_STD_I64LE, "i64", WEFT_I64, false, true},
        {H5T_STD_I64BE, "i64", WEFT_I64, false, true},
        {H5T_STD_U64LE, "u64", WEFT_I64, false, false},
    };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int kind = 0; kind < 4; kind++) {
            write_numbers("numbers.h5", types[t].type, kind / 2 * 8, kind % 2);
            check_numbers(types[t].dtype, types[t].name, types[t].is_float, types[t].is_signed);
        }
    H5Tclose(f16);
    H5Tclose(bf16);
    H5Tclose(f16_big);
}

/* Many sizes of pieces: tall, flat, deep, and larger than a frame. */
static void test_every_shape_in_order(void)
{
    static const struct {
        int n;
        hsize_t sizes[4];
    } shapes[] = {{1, {1}},           {1, {300001}},        {2, {300001, 1}}, {2, {3, 200000}},
                  {3, {2, 3, 70000}}, {4, {5, 7, 11, 501}}, {3, {1, 1, 1}},   {3, {700, 1, 301}}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        weft_error error = {.rank = -1};
        source from;
        size_t count = 1, n_wrong = 0;
        for (int d = 0; d < shapes[s].n; d++)
            count *= shapes[s].sizes[d];
        int64_t *numbers = malloc(count * sizeof *numbers);
        for (size_t i = 0; i < count; i++)
            numbers[i] = (int64_t)i;
        const hid_t file = H5Fcreate("shape.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                    space = H5Screate_simple(shapes[s].n, shapes[s].sizes, NULL),
                    dataset = H5Dcreate2(file, "w", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                                         H5P_DEFAULT);
        H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
        H5Dclose(dataset);
        H5Sclose(space);
        H5Fclose(file);
        memset(numbers, 0, count * sizeof *numbers);
        if (CHECK_OK(open_real("shape.h5", &from, &error), error)) {
            CHECK_OK(from.read(&from, 0, numbers, &error), error);
            CHECK_OK(from.finish(&from, &error), error);
            for (size_t i = 0; i < count; i++)
                n_wrong += numbers[i] != (int64_t)i;
            CHECK_EQ_INT(n_wrong, 0);
            from.close(&from);
        }
        free(numbers);
    }
}
#endif

#ifdef WEFT_HAVE_HDF5
/* What the kernel says of the process while it waits for us to read. */
static void test_it_is_shut_in(void)
{
    enum { SIZE = 1 << 20 };
    weft_error error = {.rank = -1};
    source from;
    const hsize_t size = SIZE;
    const hid_t file = H5Fcreate("large.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                space = H5Screate_simple(1, &size, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
    H5Dclose(H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Pclose(creation);
    H5Sclose(space);
    H5Fclose(file);
    if (!CHECK_OK(open_real("large.h5", &from, &error), error)) return;
    char path[64], text[1 << 14];
    const pid_t process = ((const weft_sandbox *)from.file)->process; /* its first member */
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *status = fopen(path, "r");
    if (CHECK(status != NULL)) {
        text[fread(text, 1, sizeof text - 1, status)] = 0;
        fclose(status);
        CHECK_TEXT(text, "NoNewPrivs:\t1");
        CHECK_TEXT(text, "Seccomp:\t2");
    }
    snprintf(path, sizeof path, "ls /proc/%d/fd | wc -l | grep -qx 3", (int)process);
    CHECK_EQ_INT(system(path), 0);
    from.close(&from);
}
#endif

static void test_the_real_one(void)
{
#ifdef WEFT_HAVE_HDF5
    if (access(WEFT_TEST_BIN "/weft-read-hdf5", X_OK) != 0) return; /* built without libseccomp */
    test_it_is_shut_in();
    test_every_type_and_storage();
    test_every_shape_in_order();
#endif
}

int main(int n, char **arguments)
{
    for (int i = 0; i < N_LIES && n == 3; i++)
        if (strcmp(arguments[2], lies[i].name) == 0) {
            lies[i].say();
            _exit(0);
        }
    if (n == 3) {
        if (strcmp(arguments[2], "spin") == 0) spin();
        if (strcmp(arguments[2], "eat") == 0) eat();
        _exit(8);
    }
    if (WEFT_TEST_EMULATOR[0] != '\0') {
        weft_test_skip("a reader that lies is this program again, in a process that may not start "
                       "an emulator");
        return weft_test_report();
    }
    if (!CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0) ||
        !CHECK(mkdtemp(folder) != NULL) || !CHECK(chdir(folder) == 0))
        return weft_test_report();
    setenv("HDF5_PLUGIN_PATH", "/tmp", 1);
    close(open("empty.h5", O_CREAT | O_WRONLY, 0600));
    RUN(test_nothing_is_believed);
    RUN(test_limits);
    RUN(test_the_real_one);
    CHECK_EQ_INT(chdir("/"), 0);
    char line[80];
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(system(line), 0);
    return weft_test_report();
}
