/* memory_acts.h: what is tried while memory is refused: programs, data, checkpoints; how each begins, and what holds of it
 * afterwards, refused or not. */
#ifndef TEST_MEMORY_ACTS_H
#define TEST_MEMORY_ACTS_H

/* memory_test: every allocation of compile, of runs, of a save and of a restore is refused once, and every one from the
 * n-th on. It ends in a sentence and WEFT_MEMORY, or was not needed; the process goes on: the same program is compiled
 * again and computes the same bits, and the checkpoints there before are as they were.
 *
 * A child does one try after the other, each after what the one before has left. So nothing may be left broken; and one
 * that crashes, or hangs, has told how far it was.
 */
#include "checkpoint_net.h"

#include <jansson.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <zlib.h>

#include "checkpoint/files.h"
#include "mesh/shortage.h"
#include "weft/autodiff.h"
#include "weft/io.h"

enum { STEPS = 3, SECONDS = 20, MOST = 40, TEXT = 2000, IMAGES = 12, SIDE = 4 };

/* ---- what is tried --------------------------------------------------------------------------- */

/* What lives from try to try; one a child. */
typedef struct bench {
    const place *where;
    net n;
    double losses[STEPS];
    weft_checkpoint_state state;
    uint64_t digest;
    weft_dataset *data;
} bench;

typedef struct act {
    const char *name;
    void (*before)(bench *b); /* makes what is not there yet */
    weft_status (*during)(bench *b, weft_error *error);
    void (*after)(bench *b, weft_status status);
    bool needs_hdf5;
    bool is_once; /* what a process does only once: each try in a process of its own */
} act;

/* What a child tells; shared memory. */
typedef struct progress {
    shortage_told told;
    atomic_llong at; /* under way */
    atomic_llong n_calls, n_tried, n_refused, n_spared[SHORTAGE_SPARED];
    double losses[STEPS]; /* what they are, and the state after STEPS and STEPS + 1 steps */
    char states[2][NET_BYTES];
    uint64_t digest; /* of the plan's text, or of a batch; 0: not known yet */
} progress;
static progress *shared;

static const net_options f64 = {.dtype = WEFT_F64};
static char root[64], folder[128];

static void must_open(bench *b)
{
    weft_error error = {0};
    if (b->n.program == NULL) CHECK_OK(net_open(b->where, &f64, &b->n, &error), error);
}

/* FNV-1a */
static uint64_t digest_of(const void *data, size_t bytes)
{
    uint64_t digest = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return digest;
}

/* All of it or none. */
static void check_digest(bench *b, weft_status status)
{
    if (status == WEFT_OK && shared->digest == 0) shared->digest = b->digest;
    if (status == WEFT_OK) CHECK(b->digest == shared->digest);
}

/* ---- programs -------------------------------------------------------------------------------- */

static weft_status open_it(bench *b, weft_error *error)
{
    return net_open(b->where, &f64, &b->n, error);
}

/* What was compiled although memory was refused computes what it should; if it was not, the next
 * one does. */
static void run_it(bench *b, weft_status status)
{
    weft_error error = {0};
    if (status != WEFT_OK) {
        CHECK(b->n.program == NULL);
        net_close(&b->n);
    }
    must_open(b);
    CHECK_OK(net_run(&b->n, 1, STEPS, b->losses, &error), error);
    CHECK(memcmp(b->losses, shared->losses, sizeof b->losses) == 0);
    net_close(&b->n);
}

static weft_status train(bench *b, weft_error *error)
{
    return net_run(&b->n, 1, STEPS, b->losses, error);
}

static void check_losses(bench *b, weft_status status)
{
    if (status == WEFT_OK) CHECK(memcmp(b->losses, shared->losses, sizeof b->losses) == 0);
    net_close(&b->n);
}

static void open_bare(bench *b)
{
    weft_error error = {0};
    const net_options bare = {.dtype = WEFT_F64, .is_bare = true};
    if (b->n.program == NULL) CHECK_OK(net_open(b->where, &bare, &b->n, &error), error);
}

static weft_status explain(bench *b, weft_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) return weft_fail_memory(error, bytes);
    weft_status status = weft_plan_print(b->n.program, file, error);
    if (status == WEFT_OK) status = weft_plan_json(b->n.program, file, error);
    if ((fclose(file) != 0 || text == NULL) && status == WEFT_OK)
        status = weft_fail_memory(error, bytes);
    b->digest = status == WEFT_OK ? digest_of(text, bytes) : 0;
    free(text);
    return status;
}

/* A graph by itself, larger than what it begins with, and gradients of gradients. */
static weft_status build(bench *b, weft_error *error)
{
    enum { LAYERS = 90 };
    weft_graph *g = weft_graph_create(5);
    const weft_dim row = {"row", 3}, column = {"column", 4};
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row, column), weft_normal(0, 1));
    weft_value y = x, slope, curve;
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "bias%d", i);
        weft_value bias = weft_variable(g, name, WEFT_F64, WEFT_DIMS(column), weft_constant_of(0));
        y = weft_name(weft_place(weft_tanh(weft_add(y, bias)), "row:data?"), name);
    }
    weft_gradients(weft_mean(weft_square(y)), WEFT_VALUES(x), &slope, 1);
    weft_gradients(weft_mean(weft_square(slope)), WEFT_VALUES(x), &curve, 1);
    const weft_error *first = weft_graph_error(g);
    b->digest = curve.id;
    const weft_status status =
        first->status == WEFT_OK ? WEFT_OK : weft_fail(error, first->status, "%s", first->message);
    weft_graph_destroy(&g);
    return status;
}

static weft_status find_machine(bench *b, weft_error *error)
{
    (void)b, (void)error;
    return weft_machine_info()->n_cores > 0 ? WEFT_OK : WEFT_INTERNAL;
}

static void check_nothing(bench *b, weft_status status)
{
    (void)b, (void)status;
}

/* ---- data ------------------------------------------------------------------------------------ */

static void write_data(void)
{
    char path[200];
    unsigned char image_head[16] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE},
                  label_head[8] = {0, 0, 8, 1, 0, 0, 0, IMAGES}, bytes[IMAGES * SIDE * SIDE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    snprintf(path, sizeof path, "%s/images.gz", root);
    gzFile images = gzopen(path, "wb");
    CHECK(gzwrite(images, image_head, 16) == 16 && gzwrite(images, bytes, sizeof bytes) > 0);
    CHECK_EQ_INT(gzclose(images), Z_OK);
    for (int i = 0; i < IMAGES; i++)
        bytes[i] = (unsigned char)(i % 10);
    snprintf(path, sizeof path, "%s/labels", root);
    FILE *file = fopen(path, "wb");
    CHECK(fwrite(label_head, 1, 8, file) == 8 && fwrite(bytes, 1, IMAGES, file) == IMAGES);
    CHECK_EQ_INT(fclose(file), 0);
    snprintf(path, sizeof path, "%s/text", root);
    file = fopen(path, "wb");
    for (int i = 0; i < TEXT; i++)
        fputc("a quick brown fox"[(i + i / 31) % 17], file);
    CHECK_EQ_INT(fclose(file), 0);
}

/* A program of nothing but inputs that a dataset fills, and their sums. */
static void open_inputs(bench *b, const weft_value *inputs, int n)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    weft_value sums[2] = {{0}};
    for (int i = 0; i < n; i++)
        sums[i] = weft_scale(weft_cast(inputs[i], WEFT_F64), 2.0);
    CHECK_OK(weft_mesh_create(&world, b->where->mesh, &b->n.mesh, &error), error);
    CHECK_OK(weft_layout_create("batch:data", &layout, &error), error);
    CHECK_OK(weft_compile(b->n.mesh, layout, (weft_values){sums, n}, NULL, &b->n.program, &error),
             error);
    weft_layout_destroy(&layout);
    b->n.image = inputs[0];
}

static void open_text_program(bench *b)
{
    if (b->n.program) return;
    b->n.graph = weft_graph_create(1);
    const weft_dim batch = {"batch", 4}, seq = {"seq", 6};
    const weft_value inputs[] = {
        weft_input(b->n.graph, "tokens", WEFT_I32, WEFT_DIMS(batch, seq)),
        weft_input(b->n.graph, "targets", WEFT_I32, WEFT_DIMS(batch, seq))};
    open_inputs(b, inputs, 2);
}

static void open_image_program(bench *b)
{
    if (b->n.program) return;
    b->n.graph = weft_graph_create(1);
    const weft_dim batch = {"batch", 4}, pixel = {"pixel", SIDE * SIDE};
    const weft_value inputs[] = {weft_input(b->n.graph, "image", WEFT_F32, WEFT_DIMS(batch, pixel)),
                                 weft_input(b->n.graph, "label", WEFT_I32, WEFT_DIMS(batch))};
    open_inputs(b, inputs, 2);
}

/* Two batches; what the second is, is kept. */
static weft_status read_batches(bench *b, weft_error *error)
{
    char bytes[4 * SIDE * SIDE * 4];
    const weft_value input = b->n.image;
    const int64_t n = weft_shape_count(weft_shape_of(input)) * 4;
    WEFT_TRY(weft_dataset_start(b->data, b->n.program, error));
    for (int i = 0; i < 2; i++) {
        WEFT_TRY(weft_dataset_next(b->data, b->n.program, error));
        WEFT_TRY(weft_run(b->n.program, error));
    }
    WEFT_TRY(weft_read(b->n.program, input, weft_dtype_of(input), bytes, n, error));
    b->digest = digest_of(bytes, (size_t)n);
    return WEFT_OK;
}

static weft_status read_text(bench *b, weft_error *error)
{
    char path[200];
    snprintf(path, sizeof path, "%s/text", root);
    weft_status status = weft_text_open(path, 6, 3, &b->data, error);
    if (status == WEFT_OK) status = read_batches(b, error);
    weft_dataset_close(&b->data);
    return status;
}

static weft_status read_images(bench *b, weft_error *error)
{
    char images[200], labels[200];
    snprintf(images, sizeof images, "%s/images.gz", root);
    snprintf(labels, sizeof labels, "%s/labels", root);
    weft_status status = weft_idx_open(images, labels, 0, 0, true, 3, &b->data, error);
    if (status == WEFT_OK) status = read_batches(b, error);
    weft_dataset_close(&b->data);
    return status;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void remove_step(int64_t step)
{
    char path[200];
    weft_error error = {0};
    snprintf(path, sizeof path, "%s/step_%08lld", folder, (long long)step);
    CHECK_OK(weft_directory_remove(path, &error), error);
}

static bool is_state(bench *b, int64_t step)
{
    char values[NET_BYTES];
    net_read(&b->n, values);
    return memcmp(values, shared->states[step - STEPS], NET_BYTES) == 0;
}

/* The newest is of that step, to the bit, and nothing is marked as damaged. Leaves it in the
 * program. */
static void check_newest(bench *b, int64_t step)
{
    weft_error error = {0};
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state = {0};
    if (CHECK_OK(weft_checkpoints_open(folder, NULL, &c, &error), error) &&
        CHECK_OK(weft_checkpoints_restore(c, b->n.program, WEFT_NEWEST, &state, &error), error)) {
        CHECK_EQ_INT(state.step, step);
        CHECK(state.step < STEPS || is_state(b, state.step));
        CHECK(weft_checkpoints_skipped(c)[0] == 0);
    }
    weft_checkpoints_close(&c);
}

/* Step STEPS is saved; the program is one step further. */
static void train_and_save(bench *b)
{
    weft_error error = {0};
    if (b->n.program) return;
    must_open(b);
    CHECK_OK(net_run(&b->n, 1, STEPS, NULL, &error), error);
    CHECK_OK(net_save(&b->n, folder, &error), error);
    CHECK_OK(net_run(&b->n, STEPS + 1, STEPS + 1, NULL, &error), error);
}

static weft_status save(bench *b, weft_error *error)
{
    return net_save(&b->n, folder, error);
}

/* What was refused goes now. */
static void check_saved(bench *b, weft_status status)
{
    weft_error error = {0};
    CHECK(is_state(b, STEPS + 1));
    if (status != WEFT_OK) {
        bench other = {.where = b->where};
        must_open(&other);
        check_newest(&other, STEPS);
        net_close(&other.n);
        CHECK_OK(net_save(&b->n, folder, &error), error);
    }
    check_newest(b, STEPS + 1);
    remove_step(STEPS + 1);
}

static void train_only(bench *b)
{
    weft_error error = {0};
    must_open(b);
    CHECK_OK(net_run(&b->n, 1, STEPS, NULL, &error), error);
}

static void check_first(bench *b, weft_status status)
{
    weft_error error = {0};
    if (status != WEFT_OK) CHECK_OK(net_save(&b->n, folder, &error), error);
    check_newest(b, STEPS);
    remove_step(STEPS);
    net_close(&b->n);
}

/* The second save of one opening does without HDF5; then what is replicated is compared. */
static weft_status save_twice(bench *b, weft_error *error)
{
    weft_checkpoints *c = NULL;
    weft_checkpoint_state state = net_state(&b->n);
    WEFT_TRY(weft_checkpoints_open(folder, NULL, &c, error));
    weft_status status = WEFT_OK;
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        status = weft_checkpoints_save(c, b->n.program, &state, error);
        if (status == WEFT_OK) status = weft_checkpoints_wait(c, error);
    }
    if (status == WEFT_OK) status = weft_check_replicas(b->n.program, error);
    weft_checkpoints_close(&c);
    return status;
}

static void check_saved_twice(bench *b, weft_status status)
{
    (void)status; /* the first of the two may be there */
    const bool is_new = weft_stored_steps(folder, NULL, 0) == 2;
    check_newest(b, is_new ? STEPS + 1 : STEPS);
    if (is_new) remove_step(STEPS + 1);
    net_close(&b->n);
}

static weft_status restore(bench *b, weft_error *error)
{
    return net_restore(&b->n, folder, WEFT_NEWEST, &b->state, error);
}

static void check_restored(bench *b, weft_status status)
{
    if (status == WEFT_OK) CHECK(b->state.step == STEPS && is_state(b, STEPS));
    check_newest(b, STEPS);
}

static weft_status look(bench *b, weft_error *error)
{
    weft_stored *stored = NULL;
    char values[NET_BYTES];
    (void)b;
    WEFT_TRY(weft_stored_open(folder, &stored, error));
    weft_status status = weft_stored_read(stored, 0, values, error);
    if (status == WEFT_OK) status = weft_stored_verify(stored, error);
    weft_stored_close(&stored);
    return status;
}

static void check_looked(bench *b, weft_status status)
{
    (void)status;
    check_newest(b, STEPS);
}

static const act acts[] = {
    {"finding the machine", NULL, find_machine, check_nothing, false, true},
    {"building a graph", NULL, build, check_digest},
    {"building and compiling", NULL, open_it, run_it},
    {"three runs", must_open, train, check_losses},
    {"explaining", open_bare, explain, check_digest},
    {"a text", open_text_program, read_text, check_digest},
    {"images", open_image_program, read_images, check_digest},
    {"the first save", train_only, save, check_first, true, true},
    {"a save", train_and_save, save, check_saved, true},
    {"two saves of one opening", train_and_save, save_twice, check_saved_twice, true},
    {"a restore", train_and_save, restore, check_restored, true},
    {"looking at a checkpoint", train_and_save, look, check_looked, true},
};
enum { N_ACTS = sizeof acts / sizeof *acts };

#endif
