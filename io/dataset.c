/* dataset: the part all kinds share: the global order of samples, boxes, prefetch, agreement on
 * failure.
 *
 * A thread reads the next batch into staging memory while the program runs on the last one: that
 * staging copy and the program's own inputs are the two buffers. Every process reads only the boxes
 * of its ranks, a box that several of them hold once. Position and order are pure functions of
 * (seed, sample number), so no rank tells another anything but whether it failed.
 */
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

/* ---- reading ----------------------------------------------------------------------------------
 */

static int64_t element_of(const weft_dataset *dataset, int64_t sample)
{
    const int64_t n = dataset->n, epoch = sample / n, first = dataset->first;
    if (!dataset->found.shuffled) return first + sample % n;
    return first +
           weft_permute(dataset->found.seed + (uint64_t)epoch * 0xD6E8FEB86659FD93u, n, sample % n);
}

static weft_status read_part(const weft_dataset *dataset, const weft_dataset_part *p,
                             int64_t sample, weft_error *error)
{
    const weft_bound *bound = &dataset->bounds[p->field];
    const weft_bound_source from = weft_dataset_numbers(dataset, p->field);
    weft_want want = {.field = p->field, .dtype = p->dtype, .begin = p->begin, .end = p->end};
    if (!p->memory) return WEFT_OK;
    for (int64_t row = p->row_begin; row < p->row_end; row++) {
        void *to = p->memory + (size_t)(row - p->row_begin) * p->row_bytes;
        want.sample = element_of(dataset, sample + row);
        WEFT_TRY(dataset->kind->read(dataset->source, &want, to, error));
        WEFT_TRY(weft_bound_check(bound, &from, &want, to, error));
    }
    return WEFT_OK;
}

static weft_status read_batch(const weft_dataset *dataset, int64_t sample, weft_error *error)
{
    for (int i = 0; i < dataset->n_parts; i++)
        WEFT_TRY(read_part(dataset, &dataset->parts[i], sample, error));
    return WEFT_OK;
}

static void *reader_main(void *argument)
{
    weft_dataset *dataset = argument;
    weft_lock_take(&dataset->lock);
    while (!dataset->is_ending) {
        const int64_t sample = dataset->wanted;
        if (dataset->staged == sample) {
            weft_condition_wait(&dataset->changed, &dataset->lock, "a batch to be wanted");
            continue;
        }
        weft_error error = {.rank = -1};
        dataset->staged = -1;
        dataset->is_failed = false;
        weft_lock_give(&dataset->lock);
        const weft_status status = read_batch(dataset, sample, &error);
        weft_lock_take(&dataset->lock);
        dataset->error = error;
        dataset->is_failed = status != WEFT_OK;
        dataset->staged = sample;
        weft_condition_tell(&dataset->changed);
    }
    weft_lock_give(&dataset->lock);
    return NULL;
}

/* Ask the reader for the batch that begins at `sample`. */
static void want(weft_dataset *dataset, int64_t sample)
{
    weft_lock_take(&dataset->lock);
    dataset->wanted = sample;
    weft_condition_tell(&dataset->changed);
    weft_lock_give(&dataset->lock);
}

/* ---- binding ----------------------------------------------------------------------------------
 */

static void unbind(weft_dataset *dataset)
{
    if (dataset->has_reader) {
        weft_lock_take(&dataset->lock);
        dataset->is_ending = true;
        weft_condition_tell(&dataset->changed);
        weft_lock_give(&dataset->lock);
        weft_thread_join(dataset->reader);
    }
    for (int i = 0; i < dataset->n_parts; i++)
        free(dataset->parts[i].memory);
    free(dataset->parts);
    dataset->parts = NULL;
    dataset->n_parts = 0;
    dataset->program = NULL;
    dataset->batch = 0;
    dataset->has_reader = dataset->is_ending = dataset->is_failed = dataset->has_agreed = false;
    dataset->staged = -1;
}

/* "i32, i64 or u8" */
static void list_dtypes(uint32_t dtypes, char *text, size_t bytes)
{
    size_t used = 0;
    for (int d = 0; d < WEFT_DTYPES && used < bytes; d++) {
        if (!(dtypes >> d & 1)) continue;
        const char *between = used == 0 ? "" : dtypes >> (d + 1) != 0 ? ", " : " or ";
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", between,
                                 weft_dtype_name((weft_dtype)d));
    }
}

/* An input must be [batch:N] or [batch:N, <width>:W] with the set's own W. */
static weft_status check_input(const weft_dataset *dataset, int field, weft_value input,
                               weft_error *error)
{
    const weft_input_field *f = &dataset->kind->fields[field];
    const weft_shape *shape = weft_shape_of(input);
    const char *width_name = f->width_name ? f->width_name : dataset->kind->width_name;
    const int64_t width = f->width_name ? f->width : dataset->found.width;
    char text[256], dtypes[80] = "";
    weft_shape_print(shape, text, sizeof text);
    list_dtypes(f->dtypes, dtypes, sizeof dtypes);
    if (!(f->dtypes >> weft_dtype_of(input) & 1))
        return weft_fail(error, WEFT_USAGE,
                         "input %s is %s, which this dataset does not give; make it %s", f->name,
                         weft_dtype_name(weft_dtype_of(input)), dtypes);
    if (shape->n_dims != 1 + f->is_wide || strcmp(shape->dims[0].name, "batch") != 0 ||
        (f->is_wide && strcmp(shape->dims[1].name, width_name) != 0))
        return weft_fail(error, WEFT_USAGE, "input %s is %s; the dataset fills [batch%s%s]",
                         f->name, text, f->is_wide ? ", " : "", f->is_wide ? width_name : "");
    if (f->is_wide && shape->dims[1].size != width)
        return weft_fail(error, WEFT_USAGE,
                         "input %s is %s and a sample of the dataset has %s:%lld; make them equal",
                         f->name, text, width_name, (long long)width);
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
           a->begin == b->begin && a->end == b->end;
}

static weft_status add_part(weft_dataset *dataset, int field, weft_value input, int rank,
                            weft_error *error)
{
    weft_box box = {{0}, {0}};
    const bool is_wide = dataset->kind->fields[field].is_wide;
    weft_dataset_part p = {
        .field = field, .rank = rank, .input = input, .dtype = weft_dtype_of(input), .same_as = -1};
    weft_box_of(dataset->program, input, rank, &box);
    if (weft_box_count(&box, weft_shape_of(input)->n_dims) > 0) {
        p.row_begin = box.begin[0];
        p.row_end = box.end[0];
        p.begin = is_wide ? box.begin[1] : 0;
        p.end = is_wide ? box.end[1] : 1;
    }
    p.row_bytes = (size_t)(p.end - p.begin) * weft_dtype_bytes(p.dtype);
    p.bytes = (size_t)(p.row_end - p.row_begin) * p.row_bytes;
    for (int i = 0; i < dataset->n_parts && p.same_as < 0; i++)
        if (same_box(&p, &dataset->parts[i])) p.same_as = i;
    if (p.bytes > 0 && p.same_as < 0 && !(p.memory = malloc(p.bytes)))
        return weft_fail_memory(error, p.bytes);
    dataset->parts[dataset->n_parts++] = p;
    return WEFT_OK;
}

static weft_status fail_unbound(const weft_dataset *dataset, weft_error *error)
{
    char names[WEFT_MAX_FIELDS * 80] = "";
    size_t used = 0;
    for (int i = 0; i < WEFT_MAX_FIELDS && dataset->kind->fields[i].name; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.70s", i > 0 ? " or " : "",
                                 dataset->kind->fields[i].name);
    return weft_fail(error, WEFT_USAGE,
                     "the program has no input named %s, which this dataset fills", names);
}

static weft_status bind_inputs(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(program);
    const int n_local = weft_mesh_n_local(mesh), first = weft_mesh_first_local(mesh);
    const size_t room = (size_t)(n_local > 0 ? n_local : 1) * WEFT_MAX_FIELDS;
    if (n_local == 0)
        return weft_fail(error, WEFT_USAGE,
                         "this program is only a plan, without ranks; there is nothing to fill");
    dataset->program = program;
    dataset->parts = calloc(room, sizeof *dataset->parts);
    if (!dataset->parts) return weft_fail_memory(error, room * sizeof *dataset->parts);
    for (int field = 0; field < WEFT_MAX_FIELDS; field++) {
        const char *name = dataset->kind->fields[field].name;
        const weft_value input = name ? weft_find_input(program, name) : (weft_value){NULL, 0};
        if (input.id == 0) continue;
        WEFT_TRY(check_input(dataset, field, input, error));
        dataset->batch = weft_shape_of(input)->dims[0].size;
        for (int i = 0; i < n_local; i++)
            WEFT_TRY(add_part(dataset, field, input, first + i, error));
    }
    if (dataset->n_parts > 0) return WEFT_OK;
    return fail_unbound(dataset, error);
}

weft_status weft_dataset_start(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    WEFT_GIVEN(program, error);
    unbind(dataset);
    weft_status status = bind_inputs(dataset, program, error);
    if (status == WEFT_OK) {
        dataset->wanted = dataset->position;
        dataset->has_reader = weft_thread_start(&dataset->reader, reader_main, dataset) == 0;
        if (!dataset->has_reader)
            status = weft_fail(error, WEFT_MEMORY,
                               "cannot start the dataset's reading thread: out of memory, or of "
                               "threads (ulimit -u); end other programs");
    }
    if (status != WEFT_OK) unbind(dataset);
    return status;
}

/* ---- delivering -------------------------------------------------------------------------------
 */

/* Wait until the batch at `position` is staged; afterwards the reader leaves the staging memory
 * alone. */
static weft_status await(weft_dataset *dataset, weft_error *error)
{
    weft_lock_take(&dataset->lock);
    if (dataset->is_failed) dataset->staged = -1; /* of an earlier call: try again */
    dataset->wanted = dataset->position;
    weft_condition_tell(&dataset->changed);
    while (dataset->staged != dataset->position)
        weft_condition_wait(&dataset->changed, &dataset->lock, "the batch to be read");
    if (dataset->is_failed) *error = dataset->error;
    weft_lock_give(&dataset->lock);
    return error->status;
}

static void deliver(weft_dataset *dataset)
{
    for (int i = 0; i < dataset->n_parts; i++) {
        const weft_dataset_part *p = &dataset->parts[i];
        const char *from = p->same_as >= 0 ? dataset->parts[p->same_as].memory : p->memory;
        weft_part_put(dataset->program, p->input, p->rank, 0, from, (int64_t)p->bytes);
    }
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

/* After all have come so far without a failure: ranks whose files are not the same would train on. */
static weft_status agree_once(weft_dataset *dataset, weft_error *own)
{
    WEFT_TRY(weft_world_agree(own));
    if (!dataset->has_agreed)
        WEFT_TRY(weft_facts_agree(weft_program_mesh(dataset->program), weft_dataset_facts(dataset),
                                  own));
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

weft_status weft_dataset_next(weft_dataset *dataset, weft_program *program, weft_error *error)
{
    weft_error own = {.rank = -1};
    const int64_t begun = weft_clock_ns();
    if (check_bound(dataset, program, __func__, &own) == WEFT_OK && await(dataset, &own) == WEFT_OK)
        deliver(dataset);
    weft_recorders_input(weft_clock_ns() - begun);
    if (agree_once(dataset, &own) != WEFT_OK) return report(&own, error);
    dataset->position += dataset->batch;
    want(dataset, dataset->position);
    return WEFT_OK;
}

/* ---- life -------------------------------------------------------------------------------------
 */

weft_status weft_dataset_make(const weft_dataset_kind *kind, void *source,
                              const weft_dataset_found *found, weft_dataset **dataset,
                              weft_error *error)
{
    *dataset = calloc(1, sizeof **dataset);
    if (!*dataset) {
        kind->close(source);
        return weft_fail_memory(error, sizeof **dataset);
    }
    (*dataset)->kind = kind;
    (*dataset)->source = source;
    (*dataset)->found = *found;
    (*dataset)->n = found->samples;
    (*dataset)->staged = -1;
    pthread_mutex_init(&(*dataset)->lock, NULL);
    pthread_cond_init(&(*dataset)->changed, NULL);
    return WEFT_OK;
}

void weft_dataset_close(weft_dataset **dataset)
{
    weft_dataset *d = dataset ? *dataset : NULL;
    if (!d) return;
    unbind(d);
    d->kind->close(d->source);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    free(d->facts);
    free(d);
    *dataset = NULL;
}

weft_status weft_dataset_say(weft_dataset **dataset, const char *name, const char *value,
                             weft_error *error)
{
    const weft_status status = weft_facts_set(&(*dataset)->facts, name, value, error);
    if (status != WEFT_OK) weft_dataset_close(dataset);
    return status;
}

weft_status weft_dataset_say_number(weft_dataset **dataset, const char *name, int64_t number,
                                    weft_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return weft_dataset_say(dataset, name, text, error);
}

int64_t weft_dataset_samples(const weft_dataset *dataset)
{
    return dataset ? dataset->n : 0;
}

weft_status weft_dataset_take(weft_dataset *dataset, int64_t first, int64_t n, weft_error *error)
{
    char text[80];
    WEFT_GIVEN(dataset, error);
    const int64_t there = dataset->n;
    if (dataset->program)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_take: the dataset has been started, and reads already; say "
                         "it before");
    if (first < 0 || n < 1 || first > there || n > there - first)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_take: %lld samples from sample %lld on, of a set of %lld",
                         (long long)n, (long long)first, (long long)there);
    if (n == there) return WEFT_OK;
    dataset->first += first;
    dataset->n = n;
    snprintf(text, sizeof text, "%lld from %lld on", (long long)n, (long long)dataset->first);
    return weft_dataset_fact(dataset, "part", text, error);
}

int64_t weft_dataset_width(const weft_dataset *dataset)
{
    return dataset ? dataset->found.width : 0;
}

int64_t weft_dataset_position(const weft_dataset *dataset)
{
    return dataset ? dataset->position : 0;
}

void weft_dataset_seek(weft_dataset *dataset, int64_t sample)
{
    if (!dataset) return;
    const int64_t last = WEFT_MAX_SAMPLES - 1;
    dataset->position = sample < 0 ? 0 : sample < last ? sample : last;
    want(dataset, dataset->position);
}
