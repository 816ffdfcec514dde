/* libhdf5_test: HDF5 comes when it is asked for, once, and what stands in its place is refused. */
#include "test.h"

#ifdef WEFT_HAVE_HDF5
#include "checkpoint/libhdf5.h"
#include "weft/checkpoint.h"

static bool is_mapped(const char *library)
{
    char line[4096];
    bool is_there = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        is_there |= strstr(line, library) != NULL;
    if (maps != NULL) fclose(maps);
    return is_there;
}

static void test_library_that_is_not_there(void)
{
    weft_hdf5 h5;
    weft_error error = {0};
    CHECK_EQ_INT(weft_hdf5_fill("libnot_there.so.1", &h5, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "libnot_there.so.1: cannot open shared object file");
    CHECK_TEXT(error.message, "install the package that has libnot_there.so.1: libhdf5");
}

static void test_library_that_is_another(void)
{
    weft_hdf5 h5;
    weft_error error = {0};
    CHECK_EQ_INT(weft_hdf5_fill("libz.so.1", &h5, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "the libz.so.1 that was found has no H5open");
    CHECK_TEXT(error.message, "install the package that has it, libhdf5");
}

static void test_it_comes_when_asked_for_and_once(void)
{
    const weft_hdf5 *first = NULL, *second = NULL;
    weft_error error = {0};
    CHECK(!is_mapped("/libhdf5"));
    CHECK_OK(weft_checkpoints_can_save(&error), error);
    CHECK(is_mapped("/libhdf5"));
    if (!CHECK_OK(weft_hdf5_load(&first, &error), error)) return;
    CHECK_OK(weft_hdf5_load(&second, &error), error);
    CHECK(first == second);
    CHECK(*first->H5T_IEEE_F32LE_g > 0 && *first->H5P_CLS_FILE_ACCESS_ID_g > 0);
}

int main(void)
{
    RUN(test_library_that_is_not_there);
    RUN(test_library_that_is_another);
    RUN(test_it_comes_when_asked_for_and_once);
    return weft_test_report();
}
#else
int main(void)
{
    weft_test_skip("built without HDF5");
    return weft_test_report();
}
#endif
