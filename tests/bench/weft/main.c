/* bench_weft: Weft's worker of the benchmark.
 *
 *     bench_weft [--mesh data:2] [--layout batch:data] [--zero 1]     answers bench.py (protocol.h)
 *     bench_weft --device cuda [--dtype bf16] [--precision bf16]      the same there (device.py); its trainings in bf16
 *     bench_weft --first ROW                                          from nothing to the first loss, and out
 *     bench_weft --dry ROW                                            compiles ROW as a plan, and out
 *
 * It uses only what weft.h promises, so that it compiles against the library of another commit too (bench.py --also).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static const bench_row *find(const char *name)
{
    const bench_row *const tables[] = {bench_op_rows,   bench_conv_rows,   bench_family_rows,
                                       bench_gpt2_rows, bench_rank_rows,   bench_recurrent_rows,
                                       bench_net_rows,  bench_resnet_rows, bench_sequence_rows};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const bench_row *row = tables[t]; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

/* A failed call's sentence; what failed without one has no memory. */
static const char *sentence(bench *b, weft_status status)
{
    if (status == WEFT_OK) return NULL;
    return b->error.message[0] ? b->error.message : "out of memory";
}

static const char *about(void *state)
{
    static char text[512];
    const weft_machine *machine = weft_machine_info();
    (void)state;
    snprintf(text, sizeof text,
             "{\"weft\": \"%s\", \"blas\": \"%s\", \"blas kernel\": \"%s\", \"processor\": \"%s\", "
             "\"cores\": %d}",
             weft_version(), machine->blas, machine->blas_kernel, machine->processor,
             machine->n_cores);
    return text;
}

static void close_row(void *state)
{
    bench *b = state;
    if (b->row != NULL) b->row->kind->close(b);
    b->row = NULL;
}

static const char *open_row(void *state, const char *name)
{
    bench *b = state;
    close_row(b);
    b->error = (weft_error){0};
    b->row = find(name);
    if (b->row == NULL) return "Weft's worker has no row of this name";
    return sentence(b, b->row->kind->open(b, &b->error));
}

static const char *run(void *state, int64_t calls)
{
    bench *b = state;
    return sentence(b, b->row->kind->run(b, calls, &b->error));
}

static const char *look(void *state, int64_t steps, double *numbers, int *n)
{
    bench *b = state;
    return sentence(b, b->row->kind->look(b, steps, numbers, n, &b->error));
}

/* ---- lines for all processes ------------------------------------------------------------------ */

/* The job as a mesh of its own, over which what process 0 reads goes to the others. */
typedef struct job {
    bench bench;
    weft_mesh *mesh;
    weft_comms *comms;
} job;

static void share(void *state, void *data, size_t bytes)
{
    job *j = state;
    weft_error error = {0};
    weft_comm *comm = weft_comm_of(j->comms, weft_mesh_first_local(j->mesh), 1);
    if (weft_broadcast(comm, 0, data, (int64_t)bytes, &error) != WEFT_OK)
        memset(data, 0, bytes); /* which ends the lines */
}

static weft_status join(job *j, weft_error *error)
{
    char text[32];
    if (j->bench.world.n_processes < 2) return WEFT_OK;
    weft_watch_patience(0); /* it will be stopped while others are measured */
    snprintf(text, sizeof text, "all:%d", j->bench.world.n_processes);
    WEFT_TRY(weft_mesh_create(&j->bench.world, text, &j->mesh, error));
    WEFT_TRY(weft_comms_create(j->mesh, &j->comms, error));
    return weft_comms_prepare(j->comms, 1, error);
}

static int serve(job *j)
{
    if (join(j, &j->bench.error) != WEFT_OK) {
        fprintf(stderr, "bench_weft: %s\n", j->bench.error.message);
        return EXIT_FAILURE;
    }
    const bench_worker worker = {
        j, about, open_row, run, look, close_row, j->comms ? share : NULL, weft_world_is_root()};
    const int status = bench_serve(&worker);
    close_row(j);
    weft_comms_destroy(&j->comms);
    weft_mesh_destroy(&j->mesh);
    return status;
}

/* ---- from nothing ----------------------------------------------------------------------------- */

static int begin(bench *b, const char *name)
{
    double loss[BENCH_NUMBERS] = {0};
    int n = 0;
    b->is_random = true;
    const char *wrong = open_row(b, name);
    if (wrong == NULL && !b->is_dry) wrong = look(b, 1, loss, &n);
    if (wrong != NULL)
        fprintf(stderr, "bench_weft: %s\n", wrong);
    else
        printf("{\"loss\": %.9g}\n", loss[0]);
    fflush(stdout);
    close_row(b);
    return wrong == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* f32 for what is not known: the options are those that bench.py and device.py give. */
static weft_precision precision_of(const char *name)
{
    return strcmp(name, "bf16") == 0   ? WEFT_PRECISION_BF16
           : strcmp(name, "tf32") == 0 ? WEFT_PRECISION_TF32
                                       : WEFT_PRECISION_F32;
}

int main(int n, char **arguments)
{
    job j = {.bench = {.mesh_text = "data:1", .layout_text = "", .computes = WEFT_F32}};
    bench *b = &j.bench; /* at the job's beginning: both are the worker's state */
    const char *first = NULL, *zero = "0", *device = "cpu";
    for (int i = 1; i < n; i++) {
        const char *value = i + 1 < n ? arguments[i + 1] : "";
        if (strcmp(arguments[i], "--mesh") == 0)
            b->mesh_text = value, i++;
        else if (strcmp(arguments[i], "--layout") == 0)
            b->layout_text = value, i++;
        else if (strcmp(arguments[i], "--zero") == 0)
            zero = value, i++;
        else if (strcmp(arguments[i], "--device") == 0)
            device = value, i++;
        else if (strcmp(arguments[i], "--dtype") == 0)
            b->computes = strcmp(value, "bf16") == 0 ? WEFT_BF16 : WEFT_F32, i++;
        else if (strcmp(arguments[i], "--precision") == 0)
            b->precision = precision_of(value), i++;
        else if (strcmp(arguments[i], "--first") == 0)
            first = value, i++;
        else if (strcmp(arguments[i], "--dry") == 0)
            first = value, b->is_dry = true, i++;
        else
            return fprintf(stderr, "bench_weft: no such option: %s\n", arguments[i]), 2;
    }
    b->zero = atoi(zero);
    if (weft_device_choose(device, &b->error) != WEFT_OK ||
        weft_world_open(&b->world, &b->error) != WEFT_OK) {
        fprintf(stderr, "bench_weft: %s\n", b->error.message);
        return EXIT_FAILURE;
    }
    const int status = first != NULL ? begin(b, first) : serve(&j);
    weft_world_close();
    return status;
}
