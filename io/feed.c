/* feed: the batches of a dataset into a program's inputs: binding, boxes, reading ahead, agreement on failure.
 *
 * Threads read the next batches into staging memory while the program runs on the last one (feed_read.c). Every process reads only the
 * boxes of its ranks, a box that several of them hold once; or, where some ranks read for all, its rows of the batch, whole, which are
 * exchanged as a batch is handed over (readers.c). A sample is a pure function of the chain and its number, so else no rank tells
 * another anything but whether it failed.
 */
#include "chain.h"
#include "dataset_open.h"
#include "facts.h"
#include "part.h"
#include "recorder.h"
#include "sync.h"
#include "weft/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- binding ----------------------------------------------------------------------------------
 */

void weft_feed_unbind(weft_dataset *dataset)
{
    weft_lock_take(&dataset->lock);
    dataset->is_ending = true;
    weft_condition_tell(&dataset->changed);
    weft_lock_give(&dataset->lock);
    for (int i = 0; i < dataset->n_started; i++)
        weft_thread_join(dataset->threads[i]);
    weft_readers_close(&dataset->readers);
    for (int i = 0; i < dataset->n_parts; i++)
        free(dataset->parts[i].memory);
    free(dataset->parts);
    free(dataset->scratch);
    free(dataset->rows);
    dataset->rows = NULL;
    dataset->parts = NULL;
    dataset->scratch = NULL;
    dataset->n_parts = dataset->n_started = dataset->n_taken = 0;
    dataset->program = NULL;
    dataset->batch = 0;
    dataset->is_ending = dataset->has_agreed = false;
    dataset->out = -1;
    for (int i = 0; i <= WEFT_FEED_BATCHES; i++)
        dataset->staged[i] = (weft_staged){.sample = -1, .failed_row = -1};
}

/* "i32, i64 or u8" */
static void list_dtypes(const weft_field *field, char *text, size_t bytes)
{
    size_t used = 0;
    int left = 0;
    for (int d = 0; d < WEFT_DTYPES; d++)
        left += weft_field_takes(field, (weft_dtype)d);
    for (int d = 0; d < WEFT_DTYPES && used < bytes; d++) {
        if (!weft_field_takes(field, (weft_dtype)d)) continue;
        const char *between = used == 0 ? "" : left > 1 ? ", " : " or ";
        left--;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", between,
                                 weft_dtype_name((weft_dtype)d));
    }
}

static bool has_dims_of(const weft_shape *shape, const weft_field *field)
{
    bool is_same =
        shape->n_dims == 1 + field->shape.n_dims && strcmp(shape->dims[0].name, "batch") == 0;
    for (int d = 0; is_same && d < field->shape.n_dims; d++)
        is_same =
            field->is_unnamed || strcmp(shape->dims[d + 1].name, field->shape.dims[d].name) == 0;
    return is_same;
}

/* ", seq" */
static void list_dims(const weft_field *field, char *text, size_t bytes)
{
    size_t used = 0;
    for (int d = 0; d < field->shape.n_dims && used < bytes; d++)
        used += (size_t)snprintf(text + used, bytes - used, ", %s", field->shape.dims[d].name);
}

static weft_status check_dims(const weft_field *f, const weft_shape *shape, weft_error *error)
{
    char text[256], dims[256] = "";
    weft_shape_print(shape, text, sizeof text);
    list_dims(f, dims, sizeof dims);
    if (!has_dims_of(shape, f))
        return weft_fail(error, WEFT_USAGE, "input %s is %s; the dataset fills [batch%s]", f->name,
                         text, dims);
    for (int d = 0; d < f->shape.n_dims; d++)
        if (shape->dims[d + 1].size != f->shape.dims[d].size)
            return weft_fail(
                error, WEFT_USAGE,
                "input %s is %s and a sample of the dataset has %s:%lld; make them equal", f->name,
                text, f->shape.dims[d].name, (long long)f->shape.dims[d].size);
    return WEFT_OK;
}

/* An input must be [batch:N] and the field's own dims. */
static weft_status check_input(const weft_dataset *dataset, int field, weft_value input,
                               weft_error *error)
{
    const weft_field *f = &dataset->chain->found.fields[field];
    const weft_shape *shape = weft_shape_of(input);
    char text[256], dtypes[80] = "";
    weft_shape_print(shape, text, sizeof text);
    list_dtypes(f, dtypes, sizeof dtypes);
    if (f->is_ragged)
        return weft_fail(error, WEFT_USAGE,
                         "input %s: samples of the dataset have different sizes of %s there; pack "
                         "them, or make windows or buckets of them first",
                         f->name, f->shape.dims[0].name);
    if (!weft_field_takes(f, weft_dtype_of(input)))
        return weft_fail(error, WEFT_USAGE,
                         "input %s is %s, which this dataset does not give; make it %s", f->name,
                         weft_dtype_name(weft_dtype_of(input)), dtypes);
    WEFT_TRY(check_dims(f, shape, error));
    if (dataset->batch != 0 && dataset->batch != shape->dims[0].size)
        return weft_fail(error, WEFT_USAGE,
                         "input %s is %s and another input of the dataset has batch:%lld; "
                         "make them equal",
                         f->name, text, (long long)dataset->batch);
    return WEFT_OK;
}

static bool same_box(const weft_dataset_part *a, const weft_dataset_part *b)
{
    return a->field == b->field && a->row_begin == b->row_begin && a->row_end == b->row_end &&
           memcmp(&a->box, &b->box, sizeof a->box) == 0;
}

/* From the first to the last number of the box. returns how many it has */
static int64_t span_of(weft_dataset_part *p, const weft_shape *shape)
{
    int64_t count = 1, last = 0;
    p->begin = 0;
    for (int d = 0; d < shape->n_dims; d++) {
        p->begin = p->begin * shape->dims[d].size + p->box.begin[d];
        last = last * shape->dims[d].size + p->box.end[d] - 1;
        count *= p->box.end[d] - p->box.begin[d];
    }
    p->end = last + 1;
    p->is_run = count == p->end - p->begin;
    return count;
}

static weft_status add_part(weft_dataset *dataset, int field, weft_value input, int rank,
                            weft_error *error)
{
    const weft_shape *shape = &dataset->chain->found.fields[field].shape;
    weft_box box = {{0}, {0}};
    int64_t count = 0;
    weft_dataset_part p = {
        .field = field, .rank = rank, .input = input, .dtype = weft_dtype_of(input), .same_as = -1};
    if (dataset->rows)
        weft_readers_box(input, &dataset->rows[rank], &box);
    else
        weft_box_of(dataset->program, input, rank, &box);
    if (weft_box_count(&box, weft_shape_of(input)->n_dims) > 0) {
        p.row_begin = box.begin[0];
        p.row_end = box.end[0];
        for (int d = 0; d < shape->n_dims; d++)
            p.box.begin[d] = box.begin[d + 1], p.box.end[d] = box.end[d + 1];
        count = span_of(&p, shape);
    }
    p.row_bytes = (size_t)count * weft_dtype_bytes(p.dtype);
    p.bytes = (size_t)(p.row_end - p.row_begin) * p.row_bytes;
    for (int i = 0; i < dataset->n_parts && p.same_as < 0; i++)
        if (same_box(&p, &dataset->parts[i])) p.same_as = i;
    if (p.bytes > 0 && p.same_as < 0) {
        p.memory = malloc(p.bytes * (size_t)(dataset->n_ahead + 1));
        if (!p.memory) return weft_fail_memory(error, p.bytes * (size_t)(dataset->n_ahead + 1));
        if (!p.is_run) dataset->scratch_bytes += (size_t)(p.end - p.begin) * sizeof(int64_t);
    }
    dataset->parts[dataset->n_parts++] = p;
    return WEFT_OK;
}

static weft_status fail_unbound(const weft_dataset *dataset, weft_error *error)
{
    char names[WEFT_MAX_FIELDS * 80] = "";
    size_t used = 0;
    for (int i = 0; i < dataset->chain->found.n_fields; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.70s", i > 0 ? " or " : "",
                                 dataset->chain->found.fields[i].name);
    return weft_fail(error, WEFT_USAGE,
                     "the program has no input named %s, which this dataset fills", names);
}

static weft_status check_readers(const weft_dataset *dataset, const weft_program *program,
                                 weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    const int n = weft_mesh_n_ranks(mesh);
    if (dataset->n_readers <= n) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%d readers on mesh %.200s, which has %d rank%s; give 1 to %d, or none: each "
                     "rank reads what it holds then",
                     dataset->n_readers, weft_mesh_text(mesh), n, n == 1 ? "" : "s", n);
}

/* Ranks of one process have what it reads, whoever does. */
static weft_status share_out(weft_dataset *dataset, weft_value input, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(dataset->program);
    const size_t n_ranks = (size_t)weft_mesh_n_ranks(mesh);
    const bool is_alone = weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh);
    if (is_alone || dataset->n_readers == 0 || dataset->rows) return WEFT_OK;
    dataset->rows = calloc(n_ranks, sizeof *dataset->rows);
    if (!dataset->rows) return weft_fail_memory(error, n_ranks * sizeof *dataset->rows);
    return weft_readers_rows(dataset->program, input, dataset->n_readers, dataset->rows, error);
}

static weft_status bind_inputs(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    const int n_local = weft_mesh_n_local(mesh), first = weft_mesh_first_local(mesh);
    const size_t room = (size_t)(n_local > 0 ? n_local : 1) * WEFT_MAX_FIELDS;
    if (n_local == 0)
        return weft_fail(error, WEFT_USAGE,
                         "this program is only a plan, without ranks; there is nothing to fill");
    WEFT_TRY(check_readers(dataset, program, error));
    dataset->program = program;
    dataset->parts = calloc(room, sizeof *dataset->parts);
    if (!dataset->parts) return weft_fail_memory(error, room * sizeof *dataset->parts);
    dataset->scratch_bytes = dataset->chain->found.scratch_bytes;
    for (int field = 0; field < dataset->chain->found.n_fields; field++) {
        const weft_value input = weft_find_input(program, dataset->chain->found.fields[field].name);
        if (input.id == 0) continue;
        WEFT_TRY(check_input(dataset, field, input, error));
        dataset->batch = weft_shape_of(input)->dims[0].size;
        WEFT_TRY(share_out(dataset, input, error));
        for (int i = 0; i < n_local; i++)
            WEFT_TRY(add_part(dataset, field, input, first + i, error));
    }
    return dataset->n_parts > 0 ? WEFT_OK : fail_unbound(dataset, error);
}

static weft_status start_threads(weft_dataset *dataset, weft_error *error)
{
    dataset->scratch_bytes = (dataset->scratch_bytes + 63) / 64 * 64;
    const size_t bytes = (size_t)(dataset->n_threads + 1) * dataset->scratch_bytes;
    dataset->helps = weft_feed_may_help(dataset->chain);
    dataset->wanted = dataset->position;
    dataset->scratch = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
    if (bytes > 0 && dataset->scratch == NULL) return weft_fail_memory(error, bytes);
    for (int i = 0; i < dataset->n_threads; i++, dataset->n_started++)
        if (weft_thread_start(&dataset->threads[i], weft_feed_reader, dataset) != 0)
            return weft_fail(error, WEFT_MEMORY,
                             "cannot start the dataset's reading thread: out of memory, or of "
                             "threads (ulimit -u); end other programs");
    return WEFT_OK;
}

weft_status weft_dataset_start(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    WEFT_GIVEN(program, error);
    weft_feed_unbind(dataset);
    weft_status status = bind_inputs(dataset, program, error);
    if (status == WEFT_OK) status = start_threads(dataset, error);
    if (status != WEFT_OK) weft_feed_unbind(dataset);
    return status;
}

/* ---- delivering -------------------------------------------------------------------------------
 */

static weft_staged *find_staged(weft_dataset *dataset, int64_t sample)
{
    for (int i = 0; i <= dataset->n_ahead; i++)
        if (dataset->staged[i].sample == sample) return &dataset->staged[i];
    return NULL;
}

/* Wait until the batch at `position` is staged, and where. Threads leave that memory alone, and go on with the next one, until it is `out`
 * no more. */
static weft_status await(weft_dataset *dataset, int *slot, weft_error *error)
{
    weft_lock_take(&dataset->lock);
    weft_staged *s = find_staged(dataset, dataset->position);
    if (s && s->failed_row >= 0 && s->n_row == dataset->batch)
        s->sample = -1; /* of an earlier call: try again */
    dataset->wanted = dataset->position;
    weft_condition_tell(&dataset->changed);
    while ((s = find_staged(dataset, dataset->position)) == NULL || s->n_row != dataset->batch)
        if (!weft_feed_help(dataset))
            weft_condition_wait(&dataset->changed, &dataset->lock, "the batch to be read");
    *slot = (int)(s - dataset->staged);
    if (s->failed_row >= 0) {
        *error = s->error;
    } else {
        dataset->out = *slot;
        dataset->wanted += dataset->batch;
        weft_condition_tell(&dataset->changed);
    }
    weft_lock_give(&dataset->lock);
    return error->status;
}

/* What this process has read of the batch in a slot for a part; NULL: nothing. */
static const char *read_of(const weft_dataset *dataset, const weft_dataset_part *p, int slot)
{
    const char *memory = p->same_as >= 0 ? dataset->parts[p->same_as].memory : p->memory;
    return memory ? memory + (size_t)slot * p->bytes : NULL;
}

static void put_parts(weft_dataset *dataset, int slot)
{
    for (int i = 0; i < dataset->n_parts; i++) {
        const weft_dataset_part *p = &dataset->parts[i];
        weft_part_put(dataset->program, p->input, p->rank, 0, read_of(dataset, p, slot),
                      (int64_t)p->bytes);
    }
}

static weft_status open_readers(weft_dataset *dataset, weft_error *error)
{
    weft_value inputs[WEFT_MAX_FIELDS];
    for (int i = 0; i < dataset->n_parts; i++) /* of the one rank of this process */
        inputs[i] = dataset->parts[i].input;
    return weft_readers_open(dataset->program, dataset->rows, inputs, dataset->n_parts,
                             &dataset->readers, error);
}

static weft_status exchange(weft_dataset *dataset, int slot, weft_error *error)
{
    const void *read[WEFT_MAX_FIELDS];
    if (!dataset->readers) WEFT_TRY(open_readers(dataset, error));
    for (int i = 0; i < dataset->n_parts; i++)
        read[i] = read_of(dataset, &dataset->parts[i], slot);
    return weft_readers_exchange(dataset->readers, read, error);
}

/* All have the batch, and come here together. */
static void deliver(weft_dataset *dataset, int slot, weft_error *own)
{
    if (own->status == WEFT_OK && dataset->rows)
        (void)exchange(dataset, slot, own);
    else if (own->status == WEFT_OK)
        put_parts(dataset, slot);
    weft_lock_take(&dataset->lock);
    dataset->out = -1;
    weft_lock_give(&dataset->lock);
}

static weft_status check_bound(const weft_dataset *dataset, const weft_program *program,
                               const char *call, weft_error *error)
{
    if (dataset == NULL || program == NULL)
        return weft_fail(error, WEFT_USAGE, "%s: %s is NULL; it has to be given", call,
                         dataset == NULL ? "dataset" : "program");
    if (dataset->program == program) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "the dataset is not bound to this program; call weft_dataset_start first");
}

/* What all must say: the set's facts, and who reads. */
static weft_status agree_on_facts(const weft_dataset *dataset, weft_error *own)
{
    char text[WEFT_FACTS_MOST] = "";
    const char *facts = weft_dataset_facts(dataset);
    if (dataset->n_readers > 0)
        snprintf(text, sizeof text, "readers: %d%s", dataset->n_readers, *facts ? "; " : "");
    strcat(text, facts);
    return weft_facts_agree(weft_program_mesh(dataset->program), text, own);
}

/* After all have come so far without a failure: ranks whose files are not the same would train on. */
static weft_status agree_once(weft_dataset *dataset, weft_error *own)
{
    WEFT_TRY(weft_world_agree(own));
    if (!dataset->has_agreed) WEFT_TRY(agree_on_facts(dataset, own));
    dataset->has_agreed = true;
    return WEFT_OK;
}

static weft_status report(const weft_error *own, weft_error *error)
{
    if (own->status != WEFT_OK && error && error->status == WEFT_OK) *error = *own;
    return own->status;
}

weft_status weft_dataset_agree(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    weft_error own = {.rank = -1};
    (void)check_bound(dataset, program, __func__, &own);
    (void)agree_once(dataset, &own);
    return report(&own, error);
}

/* The time is that in which this rank reads, copies and exchanges, without the one in which it waits for others to have read. */
weft_status weft_dataset_next(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    weft_error own = {.rank = -1};
    int slot = -1;
    int64_t begun = weft_clock_ns(), spent;
    if (check_bound(dataset, program, __func__, &own) == WEFT_OK) (void)await(dataset, &slot, &own);
    spent = weft_clock_ns() - begun;
    (void)agree_once(dataset, &own);
    begun = weft_clock_ns();
    if (slot >= 0) deliver(dataset, slot, &own);
    weft_recorders_input(spent + weft_clock_ns() - begun);
    if (own.status != WEFT_OK) return report(&own, error);
    dataset->position += dataset->batch;
    return WEFT_OK;
}
