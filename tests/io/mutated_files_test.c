/* mutated_files_test: files of every kind with random damage: cut, bytes changed, pieces moved. Each is opened and all of its records are
 * read through the whole way of a chain. In every case this process lives and goes on, and what cannot be read is one sentence.
 *
 *     mutated_files_test               some of each
 *     mutated_files_test --many 20000  so many of each
 *     mutated_files_test SEED          that one of each
 */
#include "made_files.h"

#ifdef WEFT_FILES_FOLDER
#include <jpeglib.h>
#endif
#include <time.h>
#include <unistd.h>

#include "chain.h"
#include "oracle/seeds.h"
#include "weft/data.h"

enum { RECORDS = 6, LARGEST = 1 << 16, MOST_READ = 1 << 20 };

static char folder[] = "/tmp/weft-mutated-XXXXXX";
static seed_range seeds;

typedef struct subject {
    const char *name, *ending;
    unsigned char bytes[LARGEST];
    size_t n;
    int read, refused;
} subject;

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return *random;
}

/* One file of each hundred is as it was. */
static size_t damage(const subject *s, uint64_t seed, unsigned char *to)
{
    uint64_t random = seed * 0x9E3779B97F4A7C15u + 88172645463325252u;
    size_t n = s->n;
    memcpy(to, s->bytes, n);
    if (seed % 100 == 0) return n;
    for (int k = (int)(next(&random) % 4); k >= 0; k--) {
        const size_t at = next(&random) % n, from = next(&random) % n;
        const size_t room = n - (at > from ? at : from),
                     length = next(&random) % (room < 64 ? room + 1 : 64);
        switch (next(&random) % 6) {
        case 0:
            n = at + 1;
            break;
        case 1:
            to[at] = 0xFF;
            break;
        case 2:
            memmove(to + at, to + from, length);
            break;
        case 3:
            to[at] ^= (unsigned char)(1u << next(&random) % 8);
            break;
        default:
            to[at] = (unsigned char)next(&random);
        }
    }
    return n;
}

/* All records, of each field so much as an input would take. */
static weft_status read_all(const weft_chain *chain, weft_error *error)
{
    const size_t room = (chain->found.scratch_bytes + 64) / 64 * 64;
    void *scratch = aligned_alloc(64, room), *to = malloc(MOST_READ * sizeof(int64_t));
    weft_status status = WEFT_OK;
    const int64_t records = weft_chain_records(chain) < 50 ? weft_chain_records(chain) : 50;
    for (int64_t i = 0; status == WEFT_OK && i < records; i++)
        for (int f = 0; status == WEFT_OK && f < weft_chain_fields(chain); f++) {
            const weft_field *field = &chain->found.fields[f];
            int64_t count = 1;
            status = weft_chain_count(chain, i, f, scratch, &count, error);
            int64_t n = weft_field_count(field) * (field->is_ragged ? count : 1);
            if (n > MOST_READ) n = MOST_READ;
            const weft_want want = {f, field->dtype, 0, n, to};
            if (status == WEFT_OK && n > 0)
                status = weft_chain_ask(chain, i, &want, 1, scratch, error);
        }
    free(scratch);
    free(to);
    return status;
}

static void check_one(subject *s, uint64_t seed)
{
    static unsigned char copy[LARGEST];
    char path[100];
    weft_error error = {.rank = -1};
    weft_chain *chain = NULL;
    snprintf(path, sizeof path, "%s/x%s", folder, s->ending);
    made_bytes(path, copy, damage(s, seed, copy));
    weft_status status = weft_chain_open(path, NULL, &chain, &error);
    if (status == WEFT_OK) status = read_all(chain, &error);
    s->read += status == WEFT_OK;
    s->refused += status != WEFT_OK;
    if (status != WEFT_OK) {
        const bool is_meant = (status == WEFT_USAGE || status == WEFT_IO) &&
                              error.status == status && error.message[0] != '\0' &&
                              strchr(error.message, '\n') == NULL &&
                              strstr(error.message, folder) != NULL;
        if (!CHECK(is_meant))
            fprintf(stderr, "%s, seed %llu: %d %s\n", s->name, (unsigned long long)seed, status,
                    error.message);
    } else
        CHECK(error.message[0] == '\0');
    if (seed % 100 == 0) CHECK_OK(status, error);
    weft_chain_close(&chain);
}

static void check_kind(subject *s)
{
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        weft_test_hangs_after(300);
        check_one(s, seed);
    }
    printf("  %s: %d read, %d refused\n", s->name, s->read, s->refused);
}

/* ---- what is damaged ------------------------------------------------------------------------------ */

static void take_file(subject *s, const char *path)
{
    FILE *file = fopen(path, "rb");
    s->n = file != NULL ? fread(s->bytes, 1, sizeof s->bytes, file) : 0;
    if (file != NULL) fclose(file);
    CHECK(s->n > 0 && s->n < sizeof s->bytes);
}

static void check_made(made_kind kind, const char *name, const char *ending)
{
    static subject s;
    char base[60], path[400];
    s = (subject){.name = name, .ending = ending};
    snprintf(base, sizeof base, "%s/whole", folder);
    made_path(kind, base, path);
    made_file(kind, base, 5, RECORDS);
    take_file(&s, path);
    check_kind(&s);
}

static void test_files_of_text_and_arrays(void)
{
    check_made(MADE_NPY, "npy", ".npy");
    check_made(MADE_NPZ, "npz", ".npz");
    check_made(MADE_CSV, "csv", ".csv");
    check_made(MADE_CSV_GZIP, "csv.gz", ".csv.gz");
    check_made(MADE_JSONL, "jsonl", ".jsonl");
    check_made(MADE_IDX, "idx", ".idx");
    check_made(MADE_TAR, "tar", ".tar");
}

#ifdef WEFT_FILES_FOLDER
/* Progressive, the harder way. */
static void make_jpeg(const char *path)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    FILE *file = fopen(path, "wb");
    jpeg.err = jpeg_std_error(&manager);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = jpeg.image_height = 20;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (int r = 0; r < 20; r++) {
        unsigned char row[60];
        for (int i = 0; i < 60; i++)
            row[i] = (unsigned char)made_number(3, r, i);
        jpeg_write_scanlines(&jpeg, &(JSAMPROW){row}, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

static void test_images_and_compressed_files(void)
{
    static subject s;
    char path[100];
    check_made(MADE_JSONL_ZSTD, "jsonl.zst", ".jsonl.zst");
    s = (subject){.name = "jpeg", .ending = ".jpg"};
    snprintf(path, sizeof path, "%s/whole.jpg", folder);
    make_jpeg(path);
    take_file(&s, path);
    check_kind(&s);
    s = (subject){.name = "png", .ending = ".png"};
    snprintf(path, sizeof path, "%s/whole-images", folder);
    made_images(path, 5, 1);
    strcat(path, "/0000.png");
    take_file(&s, path);
    check_kind(&s);
}
#endif

#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
static void test_hdf5_files(void)
{
    check_made(MADE_HDF5, "hdf5", ".h5");
}
#endif

int main(int argc, char **argv)
{
    char command[128];
    if (!seeds_of(argc, argv, (uint64_t)weft_test_cases(100), &seeds)) return 2;
    if (!CHECK(mkdtemp(folder) != NULL)) return weft_test_report();
    RUN(test_files_of_text_and_arrays);
#ifdef WEFT_FILES_FOLDER
    setenv("WEFT_FILES_PATH", WEFT_FILES_FOLDER, 1);
    RUN(test_images_and_compressed_files);
#endif
#if defined WEFT_READS_HDF5 && defined WEFT_FILES_FOLDER
    RUN(test_hdf5_files);
#endif
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ_INT(system(command), 0);
    return weft_test_report();
}
