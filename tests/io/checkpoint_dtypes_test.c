/* checkpoint_dtypes_test: variables of every dtype are saved, read by HDF5, and restored as they were, or exactly wider. */
#include "weft/checkpoint.h"
#include "weft/collectives.h"
#include "weft/ops.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef WEFT_HAVE_HDF5
#include <hdf5.h>
#endif

#include "test.h"

enum { ROWS = 5, COLUMNS = 3, COUNT = ROWS * COLUMNS };
static char folder[] = "/tmp/weft-dtypes-XXXXXX";
static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};

/* A variable of each dtype, named like it, or all of the dtypes that `as` says. */
typedef struct tensors {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value values[WEFT_DTYPES];
    weft_program *program;
} tensors;

static bool open_tensors(tensors *t, const char *mesh, const char *layout, const weft_dtype *as)
{
    const weft_dim row = {"row", ROWS}, column = {"column", COLUMNS};
    weft_error error = {0};
    *t = (tensors){.graph = weft_graph_create(1)};
    for (int d = 0; d < WEFT_DTYPES; d++)
        t->values[d] = weft_variable(t->graph, weft_dtype_name((weft_dtype)d), as[d],
                                     WEFT_DIMS(row, column), weft_constant_of(0.0));
    weft_lanes_choose(3);
    weft_status status = weft_mesh_create(&alone, mesh, &t->mesh, &error);
    if (status == WEFT_OK) status = weft_layout_create(layout, &t->layout, &error);
    if (status == WEFT_OK)
        status = weft_compile(t->mesh, t->layout, (weft_values){t->values, WEFT_DTYPES}, NULL,
                              &t->program, &error);
    return CHECK_OK(status, error);
}

static void close_tensors(tensors *t)
{
    weft_program_destroy(&t->program);
    weft_graph_destroy(&t->graph);
    weft_layout_destroy(&t->layout);
    weft_mesh_destroy(&t->mesh);
}

/* Of a dtype: fractions, its largest numbers, and what is only in it. */
static double number_of(weft_dtype dtype, int i)
{
    static const double ends[WEFT_DTYPES] = {
        3.4e38, 1e300, 2147483647.0, 3.3e38, 65504.0, 9007199254740992.0, 255.0};
    if (i == 0) return ends[dtype];
    if (i == 1 && dtype != WEFT_U8) return -ends[dtype];
    return weft_dtype_is_float(dtype) ? cos(i) : i * 7.0;
}

static void fill(const tensors *t)
{
    weft_error error = {0};
    for (int d = 0; d < WEFT_DTYPES; d++) {
        char data[8 * COUNT] = {0};
        const weft_dtype dtype = weft_dtype_of(t->values[d]);
        for (int i = 0; i < COUNT; i++)
            weft_dtype_put(dtype, data, i, number_of(dtype, i));
        CHECK_OK(weft_write(t->program, t->values[d], dtype, data,
                            COUNT * (int64_t)weft_dtype_bytes(dtype), &error),
                 error);
    }
}

/* As numbers: what each dtype holds of what fill wrote. */
static void check_numbers(const tensors *t)
{
    weft_error error = {0};
    for (int d = 0; d < WEFT_DTYPES; d++) {
        char data[8 * COUNT] = {0}, one[8];
        const weft_dtype dtype = weft_dtype_of(t->values[d]);
        CHECK_OK(weft_read(t->program, t->values[d], dtype, data,
                           COUNT * (int64_t)weft_dtype_bytes(dtype), &error),
                 error);
        for (int i = 0; i < COUNT; i++) {
            weft_dtype_put((weft_dtype)d, one, 0, number_of((weft_dtype)d, i));
            CHECK(weft_dtype_get(dtype, data, i) == weft_dtype_get((weft_dtype)d, one, 0));
        }
    }
}

static weft_status save(const tensors *t, weft_error *error)
{
    weft_checkpoints *checkpoints = NULL;
    const weft_checkpoint_state state = {.step = 1};
    WEFT_TRY(weft_checkpoints_open(folder, NULL, &checkpoints, error));
    weft_status status = weft_checkpoints_save(checkpoints, t->program, &state, error);
    if (status == WEFT_OK) status = weft_checkpoints_wait(checkpoints, error);
    weft_checkpoints_close(&checkpoints);
    return status;
}

static weft_status restore(const tensors *t, weft_error *error)
{
    weft_checkpoints *checkpoints = NULL;
    weft_checkpoint_state state = {0};
    WEFT_TRY(weft_checkpoints_open(folder, NULL, &checkpoints, error));
    weft_status status =
        weft_checkpoints_restore(checkpoints, t->program, WEFT_NEWEST, &state, error);
    weft_checkpoints_close(&checkpoints);
    return status;
}

static const weft_dtype same[WEFT_DTYPES] = {WEFT_F32, WEFT_F64, WEFT_I32, WEFT_BF16,
                                             WEFT_F16, WEFT_I64, WEFT_U8};
static const weft_dtype wider[WEFT_DTYPES] = {WEFT_F64, WEFT_F64, WEFT_I64, WEFT_F32,
                                              WEFT_F32, WEFT_I64, WEFT_I32};

static void restored_as(const char *mesh, const char *layout, const weft_dtype *as)
{
    tensors t;
    weft_error error = {0};
    if (open_tensors(&t, mesh, layout, as) && CHECK_OK(restore(&t, &error), error))
        check_numbers(&t);
    close_tensors(&t);
}

static void test_every_dtype_comes_back_on_every_mesh(void)
{
    tensors t;
    weft_error error = {0};
    if (open_tensors(&t, "data:2", "row:data", same)) {
        fill(&t);
        check_numbers(&t);
        CHECK_OK(save(&t, &error), error);
    }
    close_tensors(&t);
    restored_as("data:1", "", same);
    restored_as("data:3", "row:data", same);
    restored_as("data:2", "column:data", same);
    restored_as("data:1", "", wider);
    restored_as("data:3", "row:data", wider);
}

static void test_an_integer_that_may_not_fit_is_refused(void)
{
    weft_dtype narrow[WEFT_DTYPES];
    tensors t;
    weft_error error = {0};
    memcpy(narrow, same, sizeof narrow);
    narrow[WEFT_I64] = WEFT_I32;
    if (open_tensors(&t, "data:1", "", narrow)) {
        CHECK(restore(&t, &error) == WEFT_USAGE);
        CHECK_TEXT(error.message, "of i64 in");
    }
    close_tensors(&t);
}

#ifdef WEFT_HAVE_HDF5
/* Any reader of HDF5 converts them by what the file says of its types. */
static void test_hdf5_reads_every_dtype(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/step_00000001/state.h5", folder);
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (!CHECK(file >= 0)) return;
    for (int d = 0; d < WEFT_DTYPES; d++) {
        char name[64], one[8];
        double numbers[COUNT] = {0};
        snprintf(name, sizeof name, "/parameters/%s", weft_dtype_name((weft_dtype)d));
        const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
        if (!CHECK(set >= 0)) continue;
        CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        for (int i = 0; i < COUNT; i++) {
            weft_dtype_put((weft_dtype)d, one, 0, number_of((weft_dtype)d, i));
            CHECK(numbers[i] == weft_dtype_get((weft_dtype)d, one, 0));
        }
        H5Dclose(set);
    }
    H5Fclose(file);
}
#endif

int main(void)
{
    weft_error error = {0};
    if (weft_checkpoints_can_save(&error) != WEFT_OK) {
        weft_test_skip(error.message);
        return weft_test_report();
    }
    if (!CHECK(mkdtemp(folder) != NULL)) return weft_test_report();
    RUN(test_every_dtype_comes_back_on_every_mesh);
    RUN(test_an_integer_that_may_not_fit_is_refused);
#ifdef WEFT_HAVE_HDF5
    RUN(test_hdf5_reads_every_dtype);
#endif
    char line[80];
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(system(line), 0);
    return weft_test_report();
}
