/* libhdf5.h (private): libhdf5, loaded when the first checkpoint is saved and not before.
 *
 * Debian's brings curl, TLS, Kerberos and LDAP along, forty shared objects that training and restoring never use. So it
 * is not linked: WEFT_HDF5_SYMBOLS names what is used of it, and its own header gives each name its type. A function is
 * called as h5->H5Fcreate(...); a type such as H5T_IEEE_F32LE is a variable of the library, *h5->H5T_IEEE_F32LE_g.
 */
#ifndef WEFT_CHECKPOINT_LIBHDF5_H
#define WEFT_CHECKPOINT_LIBHDF5_H

#include <hdf5.h>

#include "weft/error.h"

/* Its constants, H5F_ACC_EXCL among them, call these two before they are themselves. weft_hdf5_load has called H5open,
 * and the loader, by the SONAME, does what H5check_version is for. */
#undef H5CHECK
#undef H5OPEN
#define H5CHECK
#define H5OPEN

#define WEFT_HDF5_SYMBOLS(SYMBOL)                                                                  \
    SYMBOL(H5open)                                                                                 \
    SYMBOL(H5dont_atexit)                                                                          \
    SYMBOL(H5Eset_auto2)                                                                           \
    SYMBOL(H5Ewalk2)                                                                               \
    SYMBOL(H5PLset_loading_state)                                                                  \
    SYMBOL(H5P_CLS_FILE_ACCESS_ID_g)                                                               \
    SYMBOL(H5P_CLS_FILE_CREATE_ID_g)                                                               \
    SYMBOL(H5P_CLS_DATASET_CREATE_ID_g)                                                            \
    SYMBOL(H5P_CLS_LINK_CREATE_ID_g)                                                               \
    SYMBOL(H5Pcreate)                                                                              \
    SYMBOL(H5Pset_libver_bounds)                                                                   \
    SYMBOL(H5Pset_alignment)                                                                       \
    SYMBOL(H5Pset_meta_block_size)                                                                 \
    SYMBOL(H5Pset_small_data_block_size)                                                           \
    SYMBOL(H5Pset_file_space_strategy)                                                             \
    SYMBOL(H5Pset_layout)                                                                          \
    SYMBOL(H5Pset_alloc_time)                                                                      \
    SYMBOL(H5Pset_fill_time)                                                                       \
    SYMBOL(H5Pset_create_intermediate_group)                                                       \
    SYMBOL(H5Pset_char_encoding)                                                                   \
    SYMBOL(H5Pclose)                                                                               \
    SYMBOL(H5Fcreate)                                                                              \
    SYMBOL(H5Fflush)                                                                               \
    SYMBOL(H5Fclose)                                                                               \
    SYMBOL(H5T_C_S1_g)                                                                             \
    SYMBOL(H5T_IEEE_F32LE_g)                                                                       \
    SYMBOL(H5T_IEEE_F64LE_g)                                                                       \
    SYMBOL(H5T_STD_I32LE_g)                                                                        \
    SYMBOL(H5T_STD_I64LE_g)                                                                        \
    SYMBOL(H5T_STD_U8LE_g)                                                                         \
    SYMBOL(H5T_NATIVE_INT64_g)                                                                     \
    SYMBOL(H5T_NATIVE_UINT64_g)                                                                    \
    SYMBOL(H5Tcopy)                                                                                \
    SYMBOL(H5Tset_size)                                                                            \
    SYMBOL(H5Tset_cset)                                                                            \
    SYMBOL(H5Tset_fields)                                                                          \
    SYMBOL(H5Tset_precision)                                                                       \
    SYMBOL(H5Tset_ebias)                                                                           \
    SYMBOL(H5Tclose)                                                                               \
    SYMBOL(H5Screate)                                                                              \
    SYMBOL(H5Screate_simple)                                                                       \
    SYMBOL(H5Sclose)                                                                               \
    SYMBOL(H5Acreate2)                                                                             \
    SYMBOL(H5Awrite)                                                                               \
    SYMBOL(H5Aclose)                                                                               \
    SYMBOL(H5Dcreate2)                                                                             \
    SYMBOL(H5Dget_offset)                                                                          \
    SYMBOL(H5Dclose)

typedef struct weft_hdf5 {
#define WEFT_HDF5_SLOT(symbol) __typeof__(&symbol) symbol;
    WEFT_HDF5_SYMBOLS(WEFT_HDF5_SLOT)
#undef WEFT_HDF5_SLOT
} weft_hdf5;

/* weft_hdf5_load - the library's functions; it is loaded once and stays until the process ends. A load that failed is
 * tried again by the next call. Local.
 *
 * returns  WEFT_USAGE when the library is not there or is not the one we were built for: the sentence names what gives it */
weft_status weft_hdf5_load(const weft_hdf5 **h5, weft_error *error);
/* weft_hdf5_room - WEFT_MEMORY unless there is room for the library, or for laying that many tensors. Local.
 *
 * Asked before the library is called. HDF5 does not live through a refusal: at about every tenth of its calls for memory
 * it crashes, at every third it is of no use afterwards until the process ends. */
weft_status weft_hdf5_room(int64_t n_tensors, weft_error *error);
/* weft_hdf5_fill - the same from a library of that file name, by the way of the loader; it is not made ready. Local. */
weft_status weft_hdf5_fill(const char *library, weft_hdf5 *h5, weft_error *error);

#endif
