/* made_files.h: files of records of each kind, with numbers that follow from a seed: made_file writes one, and says how it is called. */
#ifndef WEFT_TESTS_MADE_FILES_H
#define WEFT_TESTS_MADE_FILES_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#ifdef WEFT_FILES_FOLDER
#include <png.h>
#include <zstd.h>
#endif
#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
#include <hdf5.h>
#endif

#include "test.h"

typedef enum made_kind {
    MADE_NPY,
    MADE_NPZ,
    MADE_CSV,
    MADE_CSV_GZIP,
    MADE_JSONL,
    MADE_IDX,
    MADE_TAR,
    MADE_SOME_FILES,
#ifdef WEFT_FILES_FOLDER
    MADE_JSONL_ZSTD,
    MADE_IMAGES,
#endif
#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
    MADE_HDF5,
#endif
    MADE_KINDS
} made_kind;

enum { MADE_ROOM = 1 << 16, MADE_WIDE = 3 };

static inline int made_number(uint64_t seed, int record, int i)
{
    uint64_t x = seed * 0x9E3779B97F4A7C15u + (uint64_t)record * 1000003u + (uint64_t)i;
    x ^= x >> 31, x *= 0xBF58476D1CE4E5B9u, x ^= x >> 27;
    return (int)(x % 250);
}

static inline void made_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static inline void made_little(unsigned char **at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(i < 8 ? number >> 8 * i : 0);
}

/* f4 [n, MADE_WIDE] */
static inline size_t made_npy(unsigned char *to, uint64_t seed, int first, int n)
{
    char dict[128];
    const int length =
        snprintf(dict, sizeof dict,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }\n", n, MADE_WIDE);
    memcpy(to, "\x93NUMPY\1\0", 8);
    to[8] = (unsigned char)length, to[9] = 0;
    memcpy(to + 10, dict, (size_t)length);
    unsigned char *at = to + 10 + length;
    for (int r = 0; r < n; r++)
        for (int i = 0; i < MADE_WIDE; i++, at += 4)
            memcpy(at, &(float){(float)made_number(seed, first + r, i)}, 4);
    return (size_t)(at - to);
}

/* One array, stored. */
static inline size_t made_npz(unsigned char *to, uint64_t seed, int n)
{
    static unsigned char array[MADE_ROOM / 2];
    const size_t length = made_npy(array, seed, 0, n);
    const uint64_t crc = crc32(0, array, (unsigned)length);
    unsigned char *at = to;
    for (int central = 0; central < 2; central++) {
        const size_t here = (size_t)(at - to);
        made_little(&at, central ? 0x02014b50 : 0x04034b50, 4);
        if (central) made_little(&at, 20, 2);
        made_little(&at, 20, 2), made_little(&at, 0, 8);
        made_little(&at, crc, 4), made_little(&at, length, 4), made_little(&at, length, 4);
        made_little(&at, 5, 2), made_little(&at, 0, 2);
        if (central) made_little(&at, 0, 14);
        memcpy(at, "x.npy", 5), at += 5;
        if (!central) memcpy(at, array, length), at += length;
        if (!central) continue;
        made_little(&at, 0x06054b50, 4), made_little(&at, 0, 4), made_little(&at, 1, 2);
        made_little(&at, 1, 2), made_little(&at, 51, 4), made_little(&at, here, 4);
        made_little(&at, 0, 2);
    }
    return (size_t)(at - to);
}

static inline size_t made_csv(char *to, uint64_t seed, int first, int n)
{
    size_t used = (size_t)sprintf(to, "a,b,c\n");
    for (int r = first; r < first + n; r++)
        used += (size_t)sprintf(to + used, "%d,%d.5,%d\n", made_number(seed, r, 0),
                                made_number(seed, r, 1), made_number(seed, r, 2));
    return used;
}

static inline size_t made_jsonl(char *to, uint64_t seed, int n)
{
    size_t used = 0;
    for (int r = 0; r < n; r++)
        used += (size_t)sprintf(to + used, "{\"a\": %d, \"b\": %d.25}\n", made_number(seed, r, 0),
                                made_number(seed, r, 1));
    return used;
}

static inline size_t made_idx(unsigned char *to, uint64_t seed, int n)
{
    unsigned char *at = to;
    memcpy(at, "\0\0\x08\3", 4), at += 4;
    for (int d = 0; d < 3; d++) {
        const int size = d == 0 ? n : 2;
        *at++ = 0, *at++ = 0, *at++ = (unsigned char)(size >> 8), *at++ = (unsigned char)size;
    }
    for (int r = 0; r < n; r++)
        for (int i = 0; i < 4; i++)
            *at++ = (unsigned char)made_number(seed, r, i);
    return (size_t)(at - to);
}

static inline void made_member(unsigned char **at, const char *name, const void *bytes, size_t n)
{
    unsigned char *head = *at;
    unsigned sum = 0;
    memset(head, 0, 512 + (n + 511) / 512 * 512);
    snprintf((char *)head, 100, "%s", name);
    memcpy(head + 100, "0000644\0000000000\0000000000\000", 24);
    snprintf((char *)head + 124, 12, "%011zo", n);
    memcpy(head + 136, "00000000000", 12);
    memcpy(head + 148, "        0", 9);
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += head[i];
    snprintf((char *)head + 148, 8, "%06o", sum);
    memcpy(head + 512, bytes, n);
    *at += 512 + (n + 511) / 512 * 512;
}

static inline size_t made_tar(unsigned char *to, uint64_t seed, int n)
{
    unsigned char *at = to, array[256];
    char name[32], text[16];
    for (int r = 0; r < n; r++) {
        snprintf(name, sizeof name, "%04d.cls", r);
        made_member(&at, name, text, (size_t)sprintf(text, "%d", made_number(seed, r, 9)));
        snprintf(name, sizeof name, "%04d.npy", r);
        made_member(&at, name, array, made_npy(array, seed, r, 1));
    }
    memset(at, 0, 1024);
    return (size_t)(at - to) + 1024;
}

static inline void made_gzip(const char *path, const void *bytes, size_t n)
{
    gzFile file = gzopen(path, "wb");
    CHECK(file != NULL && gzwrite(file, bytes, (unsigned)n) == (int)n && gzclose(file) == Z_OK);
}

#ifdef WEFT_FILES_FOLDER
static inline void made_images(const char *folder, uint64_t seed, int n)
{
    CHECK_EQ_INT(mkdir(folder, 0700), 0);
    for (int r = 0; r < n; r++) {
        char path[400];
        unsigned char pixels[18];
        png_image png = {
            .version = PNG_IMAGE_VERSION, .width = 3, .height = 2, .format = PNG_FORMAT_RGB};
        for (int i = 0; i < 18; i++)
            pixels[i] = (unsigned char)made_number(seed, r, i);
        snprintf(path, sizeof path, "%s/%04d.png", folder, r);
        CHECK(png_image_write_to_file(&png, path, 0, pixels, 0, NULL));
    }
}
#endif

#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
static inline void made_hdf5(const char *path, uint64_t seed, int n)
{
    static int numbers[MADE_ROOM];
    const hsize_t sizes[] = {(hsize_t)n, MADE_WIDE}, chunk[] = {4, 2};
    for (int i = 0; i < n * MADE_WIDE; i++)
        numbers[i] = made_number(seed, i / MADE_WIDE, i % MADE_WIDE);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                space = H5Screate_simple(2, sizes, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_deflate(creation, 1);
    const hid_t dataset =
        H5Dcreate2(file, "x", H5T_STD_I16LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(dataset), H5Pclose(creation), H5Sclose(space), H5Fclose(file);
}
#endif

/* made_path - what one can be opened by. base: a path without an ending; path: [400] out. */
static inline void made_path(made_kind kind, const char *base, char *path)
{
    static const char *const endings[MADE_KINDS] = {
        [MADE_NPY] = ".npy",
        [MADE_NPZ] = ".npz",
        [MADE_CSV] = ".csv",
        [MADE_CSV_GZIP] = ".csv.gz",
        [MADE_JSONL] = ".jsonl",
        [MADE_IDX] = ".idx",
        [MADE_TAR] = ".tar",
        [MADE_SOME_FILES] = "-*.csv",
#ifdef WEFT_FILES_FOLDER
        [MADE_JSONL_ZSTD] = ".jsonl.zst",
        [MADE_IMAGES] = "-images",
#endif
#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
        [MADE_HDF5] = ".h5",
#endif
    };
    snprintf(path, 400, "%.380s%s", base, endings[kind]);
}

/* made_file - n records, 2 to 200. */
static inline void made_file(made_kind kind, const char *base, uint64_t seed, int n)
{
    static unsigned char bytes[1 << 18];
    char path[400];
    made_path(kind, base, path);
    switch (kind) {
    case MADE_NPY:
        made_bytes(path, bytes, made_npy(bytes, seed, 0, n));
        break;
    case MADE_NPZ:
        made_bytes(path, bytes, made_npz(bytes, seed, n));
        break;
    case MADE_CSV:
        made_bytes(path, bytes, made_csv((char *)bytes, seed, 0, n));
        break;
    case MADE_CSV_GZIP:
        made_gzip(path, bytes, made_csv((char *)bytes, seed, 0, n));
        break;
    case MADE_JSONL:
        made_bytes(path, bytes, made_jsonl((char *)bytes, seed, n));
        break;
    case MADE_IDX:
        made_bytes(path, bytes, made_idx(bytes, seed, n));
        break;
    case MADE_TAR:
        made_bytes(path, bytes, made_tar(bytes, seed, n));
        break;
    case MADE_SOME_FILES:
        for (int k = 0; k < 2; k++) {
            char part[400];
            const int first = k == 0 ? 0 : (n + 1) / 2, end = k == 0 ? (n + 1) / 2 : n;
            snprintf(part, sizeof part, "%.380s-%d.csv", base, k);
            if (end > first)
                made_bytes(part, bytes, made_csv((char *)bytes, seed, first, end - first));
        }
        break;
#ifdef WEFT_FILES_FOLDER
    case MADE_JSONL_ZSTD: {
        static unsigned char packed[1 << 18];
        const size_t length = made_jsonl((char *)bytes, seed, n);
        made_bytes(path, packed, ZSTD_compress(packed, sizeof packed, bytes, length, 3));
        break;
    }
    case MADE_IMAGES:
        made_images(path, seed, n);
        break;
#endif
#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
    case MADE_HDF5:
        made_hdf5(path, seed, n);
        break;
#endif
    default:
        CHECK(!"a kind that is made");
    }
}

#endif
