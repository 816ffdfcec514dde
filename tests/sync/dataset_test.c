/* dataset_test: in all orders, the batch that is wanted is read, whatever becomes of the one that was read when
 * another came to be wanted; by the reading thread, and by both where the one that waits helps.
 */
#include <stdlib.h>
#include <unistd.h>

#include "weft/data.h"
#include "weft/ops.h"
#include "weft/program.h"

#include "explored.h"

enum { BATCH = 2, SAMPLES = 100, FIRST = '!' };

typedef struct feed {
    weft_graph *graph;
    weft_mesh *mesh;
    weft_value x;
    weft_program *program;
    const char *path; /* of a text; NULL: samples of a function */
    bool fails;       /* sample 0 cannot be read */
} feed;

static weft_status read_row(const void *argument, int field, int64_t sample, void *row,
                            weft_error *error)
{
    const feed *f = argument;
    (void)field;
    if (f->fails && sample == 0) return weft_fail(error, WEFT_IO, "sample 0 is not there");
    *(int32_t *)row = (int32_t)sample;
    return WEFT_OK;
}

static void check_next(feed *f, weft_dataset *data, int64_t wanted, weft_status expected)
{
    const int32_t first = (int32_t)wanted + (f->path ? FIRST : 0);
    int32_t x[BATCH];
    weft_error error = {0};
    const weft_status status = weft_dataset_next(data, f->program, &error);
    if (status != expected) schedule_fail("batch at %d: %s", (int)wanted, error.message);
    if (status == WEFT_OK &&
        (weft_read(f->program, f->x, WEFT_I32, x, sizeof x, &error) != WEFT_OK || x[0] != first))
        schedule_fail("the batch at %d begins with %d", (int)wanted, x[0]);
}

static weft_status open_data(feed *f, weft_dataset **data, weft_error *error)
{
    const weft_sample_field field = {"tokens", {"seq", 1}, WEFT_I32};
    weft_chain *chain = NULL;
    if (f->path == NULL)
        return weft_samples_open(&(weft_samples_options){&field, 1, SAMPLES, read_row, f, false, 0},
                                 data, error);
    WEFT_TRY(weft_chain_text(f->path, &(weft_text_options){.seq = 1}, &chain, error));
    return weft_chain_dataset(&chain, NULL, data, error);
}

static void seek_and_read(void *state)
{
    feed *f = state;
    weft_error error = {0};
    weft_dataset *data = NULL;
    if (open_data(f, &data, &error) != WEFT_OK ||
        weft_dataset_start(data, f->program, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
    weft_dataset_seek(data, 6);
    check_next(f, data, 6, WEFT_OK);
    check_next(f, data, 8, WEFT_OK);
    weft_dataset_seek(data, 0);
    check_next(f, data, 0, f->fails ? WEFT_IO : WEFT_OK);
    weft_dataset_seek(data, 1);
    check_next(f, data, 1, WEFT_OK);
    weft_dataset_close(&data);
}

static void test_the_batch_that_is_wanted_is_read(void)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    char path[] = "/tmp/weft-text-XXXXXX", bytes[SAMPLES + 1];
    weft_error error = {0};
    feed f = {.graph = weft_graph_create(1)};
    const int file = mkstemp(path);
    for (int i = 0; i <= SAMPLES; i++)
        bytes[i] = (char)(FIRST + i % 90);
    CHECK(file >= 0 && write(file, bytes, sizeof bytes) == sizeof bytes && close(file) == 0);
    f.x = weft_input(f.graph, "tokens", WEFT_I32, WEFT_DIMS({"batch", BATCH}, {"seq", 1}));
    weft_lanes_choose(1); /* the rank's own thread alone */
    if (CHECK_OK(weft_mesh_create(&alone, "d:1", &f.mesh, &error), error) &&
        CHECK_OK(weft_compile(f.mesh, NULL, WEFT_VALUES(weft_sum(WEFT_SCALAR, f.x)), NULL,
                              &f.program, &error),
                 error)) {
        explore("all samples can be read", seek_and_read, &f,
                (schedule_options){.n_preemptions = 2});
        f.path = path;
        explore("who waits helps", seek_and_read, &f, (schedule_options){.n_preemptions = 2});
        f.path = NULL, f.fails = true;
        explore("the first cannot", seek_and_read, &f, (schedule_options){.n_preemptions = 2});
    }
    unlink(path);
    (void)!weft_program_destroy(&f.program);
    (void)!weft_mesh_destroy(&f.mesh);
    (void)!weft_graph_destroy(&f.graph);
}

int main(void)
{
    RUN(test_the_batch_that_is_wanted_is_read);
    return weft_test_report();
}
