/* hdf5_rows_test: datasets of HDF5 files are records as they were written, stored whole or in compressed pieces, by any thread; what is no
 * set of records, changes, or ends the process that reads it, is one sentence. */
#ifdef WEFT_FILES_FOLDER
#include "source/records.h"
#include "weft/data.h"

#include <hdf5.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_folder.h"
#include "test.h"

enum { ROWS = 41, WIDE = 6, HIGH = 3, THREADS = 3 };

/* ---- files ---------------------------------------------------------------------------------------- */

static double number(int field, int row, int i)
{
    return field * 1000 + row * 7 + i;
}

/* Of any size and type: what it has is number(). */
static void add(hid_t file, const char *name, int field, hid_t type, int n_dims, hsize_t rows,
                bool is_packed)
{
    static double numbers[ROWS * WIDE * HIGH];
    const hsize_t sizes[] = {rows, WIDE, HIGH}, chunk[] = {5, 4, 2};
    const int n = n_dims == 1 ? 1 : n_dims == 2 ? WIDE : WIDE * HIGH;
    for (int r = 0; r < (int)rows; r++)
        for (int i = 0; i < n; i++)
            numbers[r * n + i] = number(field, r, i);
    const hid_t space = H5Screate_simple(n_dims, sizes, NULL),
                creation = H5Pcreate(H5P_DATASET_CREATE);
    if (is_packed) {
        H5Pset_chunk(creation, n_dims, chunk);
        H5Pset_shuffle(creation);
        H5Pset_deflate(creation, 6);
    }
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(dataset);
    H5Pclose(creation);
    H5Sclose(space);
}

static void write_good(const char *name)
{
    const hid_t file = H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "train", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    add(file, "train/image", 1, H5T_STD_I16BE, 3, ROWS, true);
    add(file, "label", 2, H5T_STD_I64LE, 1, ROWS, false);
    add(file, "x", 3, H5T_IEEE_F32LE, 2, ROWS, false);
    H5Fclose(file);
}

static void write_odd(const char *name, int n_dims, hsize_t rows)
{
    const hid_t file = H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    add(file, "x", 3, H5T_IEEE_F32LE, 2, ROWS, false);
    add(file, "y", 2, H5T_IEEE_F64LE, n_dims, rows, false);
    const hid_t text = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(text, 5);
    const hid_t dataset =
        H5Dcreate2(file, "words", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Tclose(text);
    H5Fclose(file);
}

/* ---- reading -------------------------------------------------------------------------------------- */

static int field_of(const weft_records *records, const char *name)
{
    for (int f = 0; f < weft_records_fields(records); f++)
        if (strcmp(weft_records_field(records, f)->name, name) == 0) return f;
    CHECK(!"the field is there");
    return 0;
}

static void check_row(const weft_records *records, int row)
{
    int32_t image[WIDE * HIGH];
    int64_t label = 0;
    float x[WIDE];
    int n_wrong = 0;
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(weft_records_read(records, row, field_of(records, "train/image"), 0, WIDE * HIGH,
                               image, &error),
             error);
    CHECK_OK(weft_records_read(records, row, field_of(records, "label"), 0, 1, &label, &error),
             error);
    CHECK_OK(weft_records_read(records, row, field_of(records, "x"), 2, 5, x + 2, &error), error);
    for (int i = 0; i < WIDE * HIGH; i++)
        n_wrong += image[i] != (int)number(1, row, i);
    for (int i = 2; i < 5; i++)
        n_wrong += x[i] != (float)number(3, row, i);
    CHECK_EQ_INT(n_wrong, 0);
    CHECK_EQ_INT(label, (int64_t)number(2, row, 0));
}

static weft_records *open_good(const char *name)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    CHECK_OK(weft_records_open(path_of(name), NULL, &records, &error), error);
    CHECK_EQ_INT(weft_records_fields(records), 3);
    CHECK(strcmp(weft_records_format(records), "hdf5") == 0);
    return records;
}

static void *read_some(void *argument)
{
    for (int i = 0; i < 2 * ROWS; i++)
        check_row(argument, i * 17 % ROWS);
    return NULL;
}

static void test_rows_are_what_was_written_to_any_thread(void)
{
    pthread_t threads[THREADS];
    write_good("a.h5");
    weft_records *records = open_good("a.h5");
    CHECK_EQ_INT(weft_records_count(records), ROWS);
    for (int row = 0; row < ROWS; row++)
        check_row(records, row);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, read_some, records), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weft_records_close(&records);
}

static void test_many_files_are_one_list(void)
{
    char name[32];
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    mkdir(path_of("many"), 0700);
    for (int i = 0; i < 130; i++) { /* more than are kept open */
        snprintf(name, sizeof name, "many/%03d.h5", i);
        if (i == 0)
            write_good(name);
        else
            CHECK_EQ_INT(link(path_of("many/000.h5"), path_of(name)), 0);
    }
    CHECK_OK(weft_records_open(path_of("many"), &(weft_records_options){.fields = "label"},
                               &records, &error),
             error);
    CHECK_EQ_INT(weft_records_count(records), 130 * ROWS);
    for (int i = 0; i < 60; i++) {
        int64_t label = -1;
        const int record = i * 977 % (130 * ROWS);
        CHECK_OK(weft_records_read(records, record, 0, 0, 1, &label, &error), error);
        CHECK_EQ_INT(label, (int64_t)number(2, record % ROWS, 0));
    }
    weft_records_close(&records);
}

static void test_rows_are_a_chain(void)
{
    weft_error error = WEFT_NO_ERROR;
    weft_chain *chain = NULL;
    write_good("a.h5");
    CHECK_OK(
        weft_chain_open(path_of("a.h5"), &(weft_open_options){.fields = "x,label"}, &chain, &error),
        error);
    CHECK_EQ_INT(weft_chain_fields(chain), 2);
    CHECK_EQ_INT(weft_chain_field_dtype(chain, 0), WEFT_F32);
    CHECK_EQ_INT(weft_chain_field_shape(chain, 0)->dims[0].size, WIDE);
    weft_chain_close(&chain);
}

/* ---- what is refused ------------------------------------------------------------------------------ */

static void check_refused(const char *name, const char *fields, weft_status status,
                          const char *fact)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    CHECK_EQ_INT(weft_records_open(path_of(name), &(weft_records_options){.fields = fields},
                                   &records, &error),
                 status);
    CHECK_TEXT(error.message, fact);
    CHECK(records == NULL && strchr(error.message, '\n') == NULL);
}

static void test_what_is_no_set_of_records_is_said(void)
{
    write_odd("odd.h5", 2, ROWS - 1);
    check_refused("odd.h5", NULL, WEFT_USAGE, "only numbers are taken; name the fields");
    check_refused("odd.h5", "x,y", WEFT_USAGE, "y has 40 rows and x has 41");
    check_refused("odd.h5", "x,z", WEFT_USAGE, "it has no field z");
    CHECK_EQ_INT(truncate(path_of("odd.h5"), 700), 0);
    check_refused("odd.h5", "x", WEFT_USAGE, "odd.h5");
    CHECK_EQ_INT(truncate(path_of("odd.h5"), 0), 0);
    check_refused("odd.h5", "x", WEFT_IO, "is empty");
}

static void test_a_file_that_changes_is_said(void)
{
    weft_error error = WEFT_NO_ERROR;
    int64_t label;
    write_good("change.h5");
    weft_records *records = open_good("change.h5");
    check_row(records, 3);
    CHECK_EQ_INT(truncate(path_of("change.h5"), 2000), 0);
    CHECK_EQ_INT(weft_records_read(records, 4, field_of(records, "label"), 0, 1, &label, &error),
                 WEFT_IO);
    CHECK_TEXT(error.message, "change.h5 was changed while it is read");
    CHECK_TEXT(error.message, "(record 4)");
    weft_records_close(&records);
}

static void end_children(void)
{
    char path[64], line[256] = "";
    siginfo_t facts = {0};
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (file != NULL && fgets(line, sizeof line, file) != NULL)
        for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
            kill((pid_t)atoi(word), SIGKILL);
            waitid(P_PID, (id_t)atoi(word), &facts, WEXITED | WNOWAIT);
        }
    if (file != NULL) fclose(file);
}

static void test_one_that_somebody_ends_is_followed_by_another(void)
{
    write_good("b.h5");
    weft_records *records = open_good("b.h5");
    check_row(records, 1);
    end_children();
    check_row(records, 2);
    weft_records_close(&records);
}

/* Bytes past the first block, where datasets lie: numbers that are others, a sentence, and never the end of this process. */
static void test_changed_bytes_end_no_process(void)
{
    static unsigned char bytes[1 << 16], copy[1 << 16];
    uint64_t random = 88172645463325252u;
    write_good("harm.h5");
    FILE *file = fopen(path_of("harm.h5"), "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(n > 4096 && n < sizeof bytes);
    for (int k = weft_test_cases(40); k > 0; k--) {
        weft_error error = WEFT_NO_ERROR;
        weft_records *records = NULL;
        memcpy(copy, bytes, n);
        for (int i = 0; i < 1 + k % 8; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            copy[8 + random % (n - 8)] = (unsigned char)(random >> 40);
        }
        file = fopen(path_of("harm.h5"), "wb");
        CHECK(fwrite(copy, 1, n, file) == n && fclose(file) == 0);
        weft_status status = weft_records_open(path_of("harm.h5"), NULL, &records, &error);
        for (int f = 0; status == WEFT_OK && f < weft_records_fields(records); f++) {
            char row[WIDE * HIGH * 8];
            const weft_record_field *field = weft_records_field(records, f);
            int64_t elements = 1;
            for (int d = 0; d < field->n_dims; d++)
                elements *= field->dims[d];
            if (elements <= WIDE * HIGH)
                status = weft_records_read(records, weft_records_count(records) - 1, f, 0, elements,
                                           row, &error);
        }
        CHECK(status == WEFT_OK ||
              (error.message[0] != '\0' && strchr(error.message, '\n') == NULL));
        weft_records_close(&records);
    }
}

int main(void)
{
    weft_test_hangs_after(600);
    if (!own_folder_open("rows")) return weft_test_report();
    setenv("WEFT_FILES_PATH", WEFT_FILES_FOLDER, 1);
    RUN(test_rows_are_what_was_written_to_any_thread);
    RUN(test_many_files_are_one_list);
    RUN(test_rows_are_a_chain);
    RUN(test_what_is_no_set_of_records_is_said);
    RUN(test_a_file_that_changes_is_said);
    RUN(test_one_that_somebody_ends_is_followed_by_another);
    RUN(test_changed_bytes_end_no_process);
    own_folder_close();
    return weft_test_report();
}
#else
#include "own_folder.h"

MAIN_THAT_IS_SKIPPED("built without weft-read-hdf5")
#endif
