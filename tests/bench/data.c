/* data: how fast records come, how much memory their order takes, how quickly any of them is found. data.py runs it beside others.
 *
 *     data tokens FILE SEQ BATCH BATCHES         windows of a file of tokens, shuffled, through a program's inputs
 *     data chain PATH FIELDS BATCH BATCHES THREADS [shuffle]     records of files: "jpg,cls"
 *     data records PATH FIELD RECORDS [shuffle]  a field of records of any length, one by one: its length, then its numbers
 *     data order RECORDS                         a shuffle of so many records: memory of the process before and after
 *     data seek FILE SEQ TIMES                   from anywhere to anywhere in a file of tokens, one window each time
 *
 * Each prints a line of JSON. "sum" is that of all numbers that were delivered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft.h>
#include <weft/data.h>

#include "protocol.h"

typedef struct feed {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    weft_dataset *data;
    weft_value inputs[WEFT_MAX_FIELDS];
    int n;
    int64_t batch;
} feed;

static weft_status bind(feed *f, weft_error *error)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_value sums[WEFT_MAX_FIELDS];
    for (int i = 0; i < f->n; i++)
        sums[i] = weft_sum(WEFT_SCALAR, weft_cast(f->inputs[i], WEFT_F64));
    WEFT_TRY(weft_mesh_create(&alone, "data:1", &f->mesh, error));
    WEFT_TRY(weft_layout_create("", &f->layout, error));
    WEFT_TRY(weft_compile(
        f->mesh, f->layout,
        (weft_values){(weft_value[]){weft_group(f->graph, (weft_values){sums, f->n})}, 1}, NULL,
        &f->program, error));
    return weft_dataset_start(f->data, f->program, error);
}

/* Seconds of so many batches. */
static weft_status take(feed *f, int64_t batches, double *seconds, weft_error *error)
{
    const double begin = bench_now();
    for (int64_t i = 0; i < batches; i++)
        WEFT_TRY(weft_dataset_next(f->data, f->program, error));
    *seconds = bench_now() - begin;
    return WEFT_OK;
}

/* Of the numbers that the inputs have now. */
static weft_status sum_of(feed *f, double *sum, weft_error *error)
{
    for (int i = 0; i < f->n; i++) {
        const weft_dtype dtype = weft_dtype_of(f->inputs[i]);
        const int64_t n = weft_shape_count(weft_shape_of(f->inputs[i])),
                      bytes = n * (int64_t)weft_dtype_bytes(dtype);
        void *numbers = malloc((size_t)bytes);
        if (numbers == NULL) return weft_fail(error, WEFT_MEMORY, "no memory");
        const weft_status status =
            weft_read(f->program, f->inputs[i], dtype, numbers, bytes, error);
        for (int64_t k = 0; status == WEFT_OK && k < n; k++)
            *sum += weft_dtype_get(dtype, numbers, k);
        free(numbers);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static int64_t memory_of(void)
{
    long long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%lld %lld", &all, &pages) != 2) pages = 0;
        fclose(file);
    }
    return pages * sysconf(_SC_PAGESIZE);
}

static weft_status measure(feed *f, int64_t batches, weft_error *error)
{
    double seconds = 0, sum = 0;
    WEFT_TRY(take(f, 4, &seconds, error)); /* what is opened and started by the first */
    WEFT_TRY(take(f, batches, &seconds, error));
    WEFT_TRY(sum_of(f, &sum, error));
    printf(
        "{\"records\": %lld, \"seconds\": %.6g, \"rate\": %.6g, \"sum\": %.17g, \"rss\": %lld}\n",
        (long long)(batches * f->batch), seconds, (double)(batches * f->batch) / seconds, sum,
        (long long)memory_of());
    return WEFT_OK;
}

static weft_status open_tokens(feed *f, const char *path, int64_t seq, weft_error *error)
{
    const weft_dim batch = {"batch", f->batch}, along = {"seq", seq};
    f->graph = weft_graph_create(1);
    f->inputs[f->n++] = weft_input(f->graph, "tokens", WEFT_I32, WEFT_DIMS(batch, along));
    f->inputs[f->n++] = weft_input(f->graph, "targets", WEFT_I32, WEFT_DIMS(batch, along));
    WEFT_TRY(weft_tokens_open(path, 50257, seq, 1, &f->data, error));
    return bind(f, error);
}

static weft_status do_tokens(feed *f, char **words, weft_error *error)
{
    f->batch = atoll(words[2]);
    WEFT_TRY(open_tokens(f, words[0], atoll(words[1]), error));
    return measure(f, atoll(words[3]), error);
}

static weft_status do_chain(feed *f, char **words, weft_error *error)
{
    weft_chain *chain = NULL;
    const int threads = atoi(words[4]);
    f->batch = atoll(words[2]);
    f->graph = weft_graph_create(1);
    WEFT_TRY(weft_chain_open(words[0], &(weft_open_options){.fields = words[1]}, &chain, error));
    if (words[5] != NULL) WEFT_TRY(weft_chain_shuffle(&chain, 0, 1, error));
    for (f->n = 0; f->n < weft_chain_fields(chain); f->n++) {
        weft_shape shape = {1, {{"batch", f->batch}}};
        const weft_shape *record = weft_chain_field_shape(chain, f->n);
        for (int d = 0; d < record->n_dims; d++)
            shape.dims[shape.n_dims++] = record->dims[d];
        f->inputs[f->n] = weft_input(f->graph, weft_chain_field_name(chain, f->n),
                                     weft_chain_field_dtype(chain, f->n), shape);
    }
    const weft_feed_options feed = {.n_threads = threads, .n_ahead = threads};
    weft_status status = weft_chain_dataset(&chain, &feed, &f->data, error);
    if (status == WEFT_OK) status = bind(f, error);
    return status == WEFT_OK ? measure(f, atoll(words[3]), error) : status;
}

/* ---- records of any length ------------------------------------------------------------------------ */

static weft_status read_records(const weft_chain *chain, int64_t records, char *room,
                                int64_t room_bytes, double *sum, weft_error *error)
{
    const int64_t element = (int64_t)weft_dtype_bytes(weft_chain_field_dtype(chain, 0));
    for (int64_t i = 0; i < records; i++) {
        int64_t n = 0;
        WEFT_TRY(weft_chain_lengths(chain, i, 1, 0, &n, error));
        if (n * element > room_bytes)
            return weft_fail(error, WEFT_USAGE, "record %lld has %lld numbers, too many for this",
                             (long long)i, (long long)n);
        WEFT_TRY(weft_chain_read(chain, i, 1, 0, room, n * element, error));
        *sum += (double)n + (n > 0 ? (double)room[n * element - 1] : 0);
    }
    return WEFT_OK;
}

static weft_status do_records(feed *f, char **words, weft_error *error)
{
    enum { ROOM = 1 << 20 };
    static char room[ROOM];
    const int64_t records = atoll(words[2]);
    weft_chain *chain = NULL;
    double sum = 0;
    (void)f;
    WEFT_TRY(weft_chain_open(words[0], &(weft_open_options){.fields = words[1]}, &chain, error));
    weft_status status = words[3] != NULL ? weft_chain_shuffle(&chain, 0, 1, error) : WEFT_OK;
    const double begin = bench_now();
    if (status == WEFT_OK) status = read_records(chain, records, room, ROOM, &sum, error);
    const double seconds = bench_now() - begin;
    weft_chain_close(&chain);
    if (status == WEFT_OK)
        printf("{\"records\": %lld, \"seconds\": %.6g, \"rate\": %.6g, \"sum\": %.17g}\n",
               (long long)records, seconds, (double)records / seconds, sum);
    return status;
}

/* ---- order ------------------------------------------------------------------------------------------ */

static weft_status number_of(const void *argument, int field, int64_t sample, void *row,
                             weft_error *error)
{
    (void)argument, (void)field, (void)error;
    *(int64_t *)row = sample;
    return WEFT_OK;
}

static weft_status do_order(feed *f, char **words, weft_error *error)
{
    static const weft_sample_field x = {"x", {NULL, 0}, WEFT_I64};
    const int64_t records = atoll(words[0]);
    weft_chain *chain = NULL;
    double seconds = 0, sum = 0;
    f->batch = 1000;
    f->graph = weft_graph_create(1);
    f->inputs[f->n++] = weft_input(f->graph, "x", WEFT_I64, WEFT_DIMS({"batch", f->batch}));
    WEFT_TRY(weft_chain_samples(&(weft_samples_options){&x, 1, records, number_of, NULL, false, 0},
                                &chain, error));
    weft_status status = weft_chain_dataset(&chain, NULL, &f->data, error);
    if (status == WEFT_OK) status = bind(f, error);
    if (status == WEFT_OK) status = take(f, 10, &seconds, error);
    const int64_t before = memory_of();
    weft_dataset_close(&f->data);
    weft_program_destroy(&f->program);
    WEFT_TRY(status);
    WEFT_TRY(weft_chain_samples(&(weft_samples_options){&x, 1, records, number_of, NULL, false, 0},
                                &chain, error));
    WEFT_TRY(weft_chain_shuffle(&chain, 0, 1, error));
    WEFT_TRY(weft_chain_dataset(&chain, NULL, &f->data, error));
    weft_mesh_destroy(&f->mesh);
    weft_layout_destroy(&f->layout);
    WEFT_TRY(bind(f, error));
    int64_t most = 0;
    for (int64_t at = 0; at < records; at += f->batch) {
        int64_t numbers[1000];
        const double begin = bench_now();
        WEFT_TRY(weft_dataset_next(f->data, f->program, error));
        seconds += bench_now() - begin;
        WEFT_TRY(weft_read(f->program, f->inputs[0], WEFT_I64, numbers, sizeof numbers, error));
        for (int i = 0; i < 1000; i++)
            sum += (double)numbers[i];
        if (at % (1000 * f->batch) == 0 && memory_of() > most) most = memory_of();
    }
    printf("{\"records\": %lld, \"rss_in_order\": %lld, \"rss_shuffled\": %lld, \"seconds\": %.4g, "
           "\"sum\": %.17g, \"is_whole\": %s}\n",
           (long long)records, (long long)before, (long long)most, seconds, sum,
           sum == (double)records * (double)(records - 1) / 2 ? "true" : "false");
    return WEFT_OK;
}

/* ---- seek ------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static weft_status do_seek(feed *f, char **words, weft_error *error)
{
    enum { MOST = 100000 };
    static double seconds[MOST];
    const int times = atoi(words[2]) < MOST ? atoi(words[2]) : MOST;
    f->batch = 1;
    WEFT_TRY(open_tokens(f, words[0], atoll(words[1]), error));
    WEFT_TRY(weft_dataset_next(f->data, f->program, error));
    const int64_t samples = weft_dataset_samples(f->data);
    for (int i = 0; i < times; i++) {
        const int64_t to = bench_index(7, (uint64_t)i, samples);
        const double begin = bench_now();
        weft_dataset_seek(f->data, to);
        WEFT_TRY(weft_dataset_next(f->data, f->program, error));
        seconds[i] = bench_now() - begin;
    }
    qsort(seconds, (size_t)times, sizeof *seconds, by_size);
    printf("{\"windows\": %lld, \"times\": %d, \"median\": %.4g, \"p99\": %.4g, \"most\": %.4g}\n",
           (long long)samples, times, seconds[times / 2], seconds[times * 99 / 100],
           seconds[times - 1]);
    return WEFT_OK;
}

static const struct {
    const char *name;
    int least, most; /* words behind it */
    weft_status (*run)(feed *f, char **words, weft_error *error);
} commands[] = {{"tokens", 4, 4, do_tokens},
                {"chain", 5, 6, do_chain},
                {"records", 3, 4, do_records},
                {"order", 1, 1, do_order},
                {"seek", 3, 3, do_seek}};

int main(int n, char **words)
{
    feed f = {.n = 0};
    weft_error error = {0};
    for (size_t i = 0; n > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(words[1], commands[i].name) != 0 || n - 2 < commands[i].least ||
            n - 2 > commands[i].most)
            continue;
        if (commands[i].run(&f, words + 2, &error) != WEFT_OK)
            fprintf(stderr, "data: %s\n", error.message);
        weft_dataset_close(&f.data);
        weft_program_destroy(&f.program);
        weft_graph_destroy(&f.graph);
        weft_layout_destroy(&f.layout);
        weft_mesh_destroy(&f.mesh);
        return error.status != WEFT_OK;
    }
    fprintf(stderr,
            "data tokens FILE SEQ BATCH BATCHES, chain PATH FIELDS BATCH BATCHES THREADS "
            "[shuffle], records PATH FIELD RECORDS [shuffle], order RECORDS, or seek FILE SEQ "
            "TIMES\n");
    return 2;
}
