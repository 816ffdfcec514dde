/* bucket_test: rows of any length in buckets of one size. Each row is whole and there once, with the fields beside it, by any threads and in
 * any pieces. The index is found again in a folder. A row without room is refused with its record.
 */
#include <stdlib.h>
#include <unistd.h>

#include "chain.h"

#include "own_folder.h"

enum { RECORDS = 700, LONGEST = 40, VALUES = 64 };

static char path[256], index_folder[256];

static int length_of(int i)
{
    return i % 11 == 0 && i > 0 ? 0 : i == 0 ? 1 : i * 7919 % (LONGEST + 1);
}

static double value_of(int64_t i, int64_t k)
{
    return (double)(i * 100 + k) / 2 + 0.5;
}

static void write_records(void)
{
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    for (int i = 0; i < RECORDS; i++) {
        fprintf(file, "{\"id\": %d, \"row\": [", i);
        for (int k = 0; k < length_of(i); k++)
            fprintf(file, "%s%.1f", k > 0 ? ", " : "", value_of(i, k));
        fprintf(file, "], \"mark\": %d.25}\n", i);
    }
    CHECK(fclose(file) == 0);
}

/* Without record 0, whose number stands for no row. */
static weft_status opened(const weft_bucket_options *o, weft_chain **chain, weft_error *error)
{
    WEFT_TRY(weft_chain_open(path, NULL, chain, error));
    WEFT_TRY(weft_chain_take(chain, 1, 0, error));
    return weft_chain_bucket(chain, o, error);
}

static void check_bucket(const weft_chain *chain, int64_t b, int64_t rows, int *seen)
{
    double values[VALUES], marks[RECORDS];
    int64_t ids[RECORDS];
    int32_t offsets[RECORDS + 1];
    weft_error error = {0};
    CHECK_OK(weft_chain_read(chain, b, 1, 0, ids, rows * 8, &error), error);
    CHECK_OK(weft_chain_read(chain, b, 1, 1, values, sizeof values, &error), error);
    CHECK_OK(weft_chain_read(chain, b, 1, 2, marks, rows * 8, &error), error);
    CHECK_OK(weft_chain_read(chain, b, 1, 3, offsets, (rows + 1) * 4, &error), error);
    bool is_good = offsets[0] == 0 && offsets[rows] <= VALUES;
    int64_t last = 0;
    for (int64_t r = 0; r < rows; r++) {
        const int32_t n = offsets[r + 1] - offsets[r];
        if (ids[r] == 0) { /* none: all behind the last */
            is_good = is_good && n == 0 && marks[r] == 0;
            last = RECORDS;
            continue;
        }
        is_good = is_good && ids[r] > last && n == length_of((int)ids[r]) &&
                  marks[r] == (double)ids[r] + 0.25;
        for (int32_t k = 0; k < n && is_good; k++)
            is_good = values[offsets[r] + k] == value_of(ids[r], k);
        last = ids[r];
        if (is_good) seen[ids[r]]++;
    }
    for (int32_t k = offsets[rows]; k < VALUES; k++)
        is_good = is_good && values[k] == 0;
    CHECK(is_good);
}

static void test_each_row_is_whole_and_once(void)
{
    char *first = NULL;
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        int seen[RECORDS] = {0};
        bool is_once = true;
        weft_error error = {0};
        weft_chain *chain = NULL;
        const weft_bucket_options o = {.values = VALUES, .look_ahead = 200, .n_threads = n_threads};
        if (!CHECK_OK(opened(&o, &chain, &error), error)) return;
        const weft_shape *values = weft_chain_field_shape(chain, 1),
                         *marks = weft_chain_field_shape(chain, 2),
                         *offsets = weft_chain_field_shape(chain, 3);
        CHECK(weft_chain_fields(chain) == 4 && values->n_dims == 1 &&
              values->dims[0].size == VALUES && !weft_chain_is_ragged(chain, 1));
        const int64_t rows = marks->dims[0].size;
        CHECK(strcmp(weft_chain_field_name(chain, 3), "offsets") == 0 &&
              offsets->dims[0].size == rows + 1);
        for (int64_t b = 0; b < weft_chain_records(chain); b++)
            check_bucket(chain, b, rows, seen);
        for (int i = 1; i < RECORDS; i++)
            is_once = is_once && seen[i] == 1;
        CHECK(is_once);
        CHECK_TEXT(weft_chain_facts(chain), " % full, index ");
        if (first == NULL) first = strdup(weft_chain_facts(chain));
        CHECK(strcmp(first, weft_chain_facts(chain)) == 0);
        weft_chain_close(&chain);
    }
    free(first);
}

/* Any piece of a field is that of the whole. */
static void test_pieces_are_those_of_the_whole(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    if (!CHECK_OK(opened(&(weft_bucket_options){.values = VALUES}, &chain, &error), error)) return;
    void *scratch = aligned_alloc(64, (chain->found.scratch_bytes + 127) / 64 * 64);
    for (int f = 0; f < 4; f++) {
        const weft_field *field = &chain->found.fields[f];
        const int64_t n = weft_field_count(field);
        const size_t element = weft_dtype_bytes(field->dtype);
        char *whole = malloc((size_t)n * element), *part = malloc((size_t)n * element);
        CHECK_OK(weft_chain_read(chain, 5, 1, f, whole, n * (int64_t)element, &error), error);
        for (int64_t begin = 0; begin < n; begin += 1 + n / 7)
            for (int64_t end = begin + 1; end <= n; end += 1 + n / 5) {
                const weft_want want = {f, field->dtype, begin, end, part};
                CHECK_OK(weft_chain_ask(chain, 5, &want, 1, scratch, &error), error);
                CHECK(memcmp(part, whole + (size_t)begin * element,
                             (size_t)(end - begin) * element) == 0);
            }
        free(whole), free(part);
    }
    free(scratch);
    weft_chain_close(&chain);
}

static void test_an_index_is_found_again(void)
{
    char *first = NULL;
    for (int k = 0; k < 2; k++) {
        weft_error error = {0};
        weft_chain *chain = NULL;
        const weft_bucket_options o = {.values = VALUES, .folder = index_folder};
        if (!CHECK_OK(opened(&o, &chain, &error), error)) return;
        if (first == NULL) first = strdup(weft_chain_facts(chain));
        CHECK(strcmp(first, weft_chain_facts(chain)) == 0);
        weft_chain_close(&chain);
    }
    free(first);
}

static void check_refused(const weft_bucket_options *o, const char *one, const char *other)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_EQ_INT(opened(o, &chain, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, one);
    CHECK_TEXT(error.message, other);
    CHECK(weft_chain_fields(chain) == 3); /* as it was */
    weft_chain_close(&chain);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    check_refused(&(weft_bucket_options){.values = LONGEST - 5}, "in row, and 35 have room",
                  "filter it out");
    check_refused(&(weft_bucket_options){.values = 0}, "values", "0");
    check_refused(&(weft_bucket_options){.values = 64, .field = "id"}, "of id is asked",
                  "takes one");
    CHECK_OK(weft_chain_open(path, &(weft_open_options){.fields = "id,mark"}, &chain, &error),
             error);
    CHECK(weft_chain_bucket(&chain, &(weft_bucket_options){.values = 8}, &error) == WEFT_USAGE);
    CHECK_TEXT(error.message, "0 fields have other sizes");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!own_folder_open("bucket")) return weft_test_report();
    snprintf(path, sizeof path, "%s", path_of("r.jsonl"));
    snprintf(index_folder, sizeof index_folder, "%s", path_of("index"));
    write_records();
    RUN(test_each_row_is_whole_and_once);
    RUN(test_pieces_are_those_of_the_whole);
    RUN(test_an_index_is_found_again);
    RUN(test_what_cannot_be_is_one_sentence);
    own_folder_close();
    return weft_test_report();
}
