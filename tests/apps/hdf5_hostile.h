/* hdf5_hostile.h: HDF5 files with something that must not be taken, one function each. Everything that is added is
 * closed by the one who made the file. */
#ifndef TEST_HDF5_HOSTILE_H
#define TEST_HDF5_HOSTILE_H

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

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

#endif
