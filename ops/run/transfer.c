/* transfer.c: whole tensors in and out of a program, and the parts that local ranks hold. */
#include "snapshot_guard.h"
#include "part.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* Between a box [contiguous] and the whole tensor it is a part of, both in the host's memory. */
static void copy_box(const weft_view *view, char *part, char *whole, bool into_whole)
{
    weft_box_copy box = {.run = 1};
    int64_t in_part = 1, in_whole = 1, at = 0;
    if (weft_view_count(view) == 0) return;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        weft_box_copy_add(&box, weft_view_size(view, d), into_whole ? in_part : in_whole,
                          into_whole ? in_whole : in_part);
        at += view->box.begin[d] * in_whole;
        in_part *= weft_view_size(view, d);
        in_whole *= view->shape.dims[d].size;
    }
    *(into_whole ? &box.to_at : &box.from_at) = at;
    weft_copy_box(into_whole ? whole : part, into_whole ? part : whole, &box,
                  weft_dtype_bytes(view->dtype));
}

static const char *label_of(weft_value value)
{
    const char *name = weft_name_of(value);
    return name ? name : "the value";
}

/* What the caller hands over, or wants filled. */
typedef struct buffer {
    const char *call; /* whose it is, for sentences */
    weft_dtype dtype;
    const void *data;
    int64_t bytes;
} buffer;

static weft_status check_buffer(const buffer *given, weft_value value, weft_error *error)
{
    const weft_shape *shape = weft_shape_of(value);
    const weft_dtype dtype = weft_dtype_of(value);
    const int64_t whole = weft_shape_count(shape) * (int64_t)weft_dtype_bytes(dtype);
    char text[240];
    weft_shape_print(shape, text, sizeof text);
    if ((unsigned)given->dtype >= WEFT_DTYPES || given->dtype != dtype)
        return weft_fail(error, WEFT_USAGE, "%s: %s is %s of %s, but the buffer is said to be %s",
                         given->call, label_of(value), text, weft_dtype_name(dtype),
                         weft_dtype_name(given->dtype));
    if (given->bytes != whole)
        return weft_fail(error, WEFT_USAGE,
                         "%s: %s is %s of %s, %lld bytes, but the buffer has %lld", given->call,
                         label_of(value), text, weft_dtype_name(dtype), (long long)whole,
                         (long long)given->bytes);
    return weft_check_given(given->data != NULL, given->call, "data", error);
}

static weft_status check(const weft_program *program, weft_value value, const buffer *given,
                         uint32_t *home, weft_error *error)
{
    const char *call = given->call;
    WEFT_TRY(weft_check_given(program != NULL, call, "program", error));
    *home = weft_home_of(program, value);
    if (!program->n_local)
        return weft_fail(error, WEFT_USAGE, "%s: the program was compiled on a plan without ranks",
                         call);
    if (!*home)
        return weft_fail(error, WEFT_USAGE,
                         "%s: %s is not kept by this program; name it in weft_compile's values",
                         call, label_of(value));
    return check_buffer(given, value, error);
}

/* The host's memory of a box: the rank's own where it may be seen, else some that end_box gives back. */
static weft_status begin_box(const weft_rank *rank, const weft_view *view, uint32_t home,
                             char **memory, weft_error *error)
{
    const size_t bytes = (size_t)weft_view_count(view) * weft_dtype_bytes(view->dtype);
    *memory = rank->memory[home];
    if (rank->device->is_open || bytes == 0) return WEFT_OK;
    *memory = malloc(bytes);
    return *memory ? WEFT_OK : weft_fail_memory(error, bytes);
}

/* What is put and got by a device that has failed is nothing's. */
static weft_status check_device(const weft_rank *rank, weft_error *error)
{
    return rank->device->failed ? rank->device->failed(rank->stream, error) : WEFT_OK;
}

static void end_box(const weft_rank *rank, uint32_t home, char *memory)
{
    if (memory != rank->memory[home]) free(memory);
}

static weft_status write_box(const weft_rank *rank, const weft_view *view, uint32_t home,
                             const void *whole, weft_error *error)
{
    char *box;
    WEFT_TRY(begin_box(rank, view, home, &box, error));
    copy_box(view, box, (char *)(uintptr_t)whole, false);
    if (box != rank->memory[home])
        rank->device->put(rank->stream, rank->memory[home], box,
                          (size_t)weft_view_count(view) * weft_dtype_bytes(view->dtype));
    end_box(rank, home, box);
    return check_device(rank, error);
}

/* The box as the host has it; end_box is to follow. */
static weft_status see_box(const weft_rank *rank, uint32_t home, char **box, weft_error *error)
{
    weft_view view;
    weft_placed_view(rank->program->plan, home, rank->rank, &view);
    WEFT_TRY(begin_box(rank, &view, home, box, error));
    if (*box == rank->memory[home]) return WEFT_OK;
    rank->device->get(rank->stream, *box, rank->memory[home],
                      (size_t)weft_view_count(&view) * weft_dtype_bytes(view.dtype));
    const weft_status status = check_device(rank, error);
    if (status == WEFT_OK) return WEFT_OK;
    end_box(rank, home, *box);
    *box = rank->memory[home];
    return status;
}

/* An input that nothing of this program depends on: simplify took it out. */
static bool is_unused_input(const weft_program *program, weft_value value)
{
    return value.graph == program->user && weft_is_value(value) && !weft_home_of(program, value) &&
           weft_node_of(value.graph, value.id)->op == &weft_op_input;
}

weft_status weft_write(weft_program *program, weft_value value, weft_dtype dtype, const void *data,
                       int64_t bytes, weft_error *error)
{
    uint32_t home;
    const buffer given = {"weft_write", dtype, data, bytes};
    if (program != NULL && is_unused_input(program, value))
        return check_buffer(&given, value, error);
    WEFT_TRY(check(program, value, &given, &home, error));
    if (program->plan->placed[home].home == WEFT_TEMPORARY)
        return weft_fail(error, WEFT_USAGE,
                         "weft_write: %s is computed; only inputs and variables can be written",
                         label_of(value));
    program->is_written[home] = true;
    if (program->plan->placed[home].home == WEFT_VARIABLE_HOME)
        weft_snapshot_guard_wait(program, NULL);
    for (int at = 0; at < program->n_local; at++) {
        weft_rank *rank = &program->ranks[at];
        weft_view view;
        /* Of processes each writes the same, when all have come: it is there when any goes on. */
        const bool is_held = weft_holder_of(program, home, rank->rank) != rank->rank;
        if (is_held && !weft_has_others(program)) continue;
        if (program->common[home]) weft_barrier_at_end(rank);
        weft_placed_view(program->plan, home, rank->rank, &view);
        WEFT_TRY(write_box(rank, &view, home, data, error));
    }
    return WEFT_OK;
}

/* What a process needs to read what lies on all of them. */
typedef struct far_read {
    int n;                     /* ranks */
    int64_t *counts, *offsets; /* [n] bytes */
    int64_t total;
    char *parts, *box;
    int64_t few_numbers[2 * 64]; /* counts and offsets of few ranks */
    char few_bytes[4096];        /* parts that are small, as a loss */
} far_read;

/* Only here can one process fail alone. */
static weft_status begin_far(weft_program *program, uint32_t home, far_read *f, weft_error *error)
{
    const int n = f->n = weft_mesh_n_ranks(program->mesh);
    const size_t bytes = 2 * (size_t)n * sizeof *f->counts;
    f->counts = bytes <= sizeof f->few_numbers ? f->few_numbers : malloc(bytes);
    if (!f->counts) return weft_fail_memory(error, bytes);
    f->offsets = f->counts + n;
    for (int r = 0; r < n; r++) {
        f->counts[r] = weft_placed_bytes(program->plan, home, r);
        f->offsets[r] = f->total;
        f->total += f->counts[r];
    }
    f->parts = f->total <= (int64_t)sizeof f->few_bytes ? f->few_bytes : malloc((size_t)f->total);
    if (!f->parts) return weft_fail_memory(error, (size_t)f->total);
    return see_box(&program->ranks[0], home, &f->box, error);
}

static void end_far(weft_program *program, uint32_t home, far_read *f)
{
    end_box(&program->ranks[0], home, f->box);
    if (f->parts != f->few_bytes) free(f->parts);
    if (f->counts != f->few_numbers) free(f->counts);
}

/* The same on all processes: whether any could have failed. */
static bool is_sure(const weft_program *program, const far_read *f)
{
    return program->ranks[0].device->is_open &&
           2 * (size_t)f->n * sizeof *f->counts <= sizeof f->few_numbers &&
           f->total <= (int64_t)sizeof f->few_bytes;
}

/* Every rank's box to every process. The one process's ranks are all here already. */
static weft_status gather(weft_program *program, const far_read *f, weft_error *error)
{
    const weft_rank *rank = &program->ranks[0];
    const uint32_t everybody = (1u << weft_mesh_n_axes(program->mesh)) - 1;
    weft_comm *comm = weft_comm_of(program->comms, rank->rank, everybody);
    weft_request request;
    WEFT_TRY(weft_all_gather_start(comm, f->box, f->counts[rank->rank], f->parts, f->counts,
                                   f->offsets, &request, error));
    return weft_wait(&request, error);
}

/* Nobody waits for a process that has no room for what comes: then all return its sentence. */
static weft_status read_far(weft_program *program, uint32_t home, char *whole, weft_error *error)
{
    far_read f = {0};
    weft_error own = {.rank = -1};
    (void)!begin_far(program, home, &f, &own);
    if (!is_sure(program, &f)) (void)weft_world_agree(&own);
    if (own.status == WEFT_OK) (void)!gather(program, &f, &own);
    for (int r = 0; r < f.n && own.status == WEFT_OK; r++) {
        weft_view view;
        weft_placed_view(program->plan, home, r, &view);
        copy_box(&view, f.parts + f.offsets[r], whole, true);
    }
    end_far(program, home, &f);
    if (own.status == WEFT_OK) return WEFT_OK;
    const weft_status status = weft_fail(error, own.status, "%s", own.message);
    if (error) error->rank = own.rank;
    return status;
}

/* Zeros that nobody computed are no result. */
static weft_status check_is_there(const weft_program *program, weft_value value, uint32_t home,
                                  weft_error *error)
{
    const weft_home kind = program->plan->placed[home].home;
    if (kind == WEFT_TEMPORARY && !program->has_run)
        return weft_fail(error, WEFT_USAGE,
                         "weft_read: %s is computed by a run, and %s; weft_run the program first",
                         label_of(value),
                         program->was_stopped ? "the last one was stopped" : "none has been done");
    if (kind == WEFT_INPUT_HOME && !program->is_written[home])
        return weft_fail(error, WEFT_USAGE,
                         "weft_read: input %s has not been written; weft_write it first",
                         label_of(value));
    return WEFT_OK;
}

weft_status weft_read(weft_program *program, weft_value value, weft_dtype dtype, void *data,
                      int64_t bytes, weft_error *error)
{
    uint32_t home;
    const buffer given = {"weft_read", dtype, data, bytes};
    WEFT_TRY(check(program, value, &given, &home, error));
    WEFT_TRY(check_is_there(program, value, home, error));
    if (program->n_local != weft_mesh_n_ranks(program->mesh))
        return read_far(program, home, data, error);
    for (int at = 0; at < program->n_local; at++) {
        weft_rank *rank = &program->ranks[at];
        weft_view view;
        char *box;
        weft_placed_view(program->plan, home, rank->rank, &view);
        WEFT_TRY(see_box(rank, home, &box, error));
        copy_box(&view, box, data, true);
        end_box(rank, home, box);
    }
    return WEFT_OK;
}

weft_status weft_read_scalar(weft_program *program, weft_value value, double *number,
                             weft_error *error)
{
    int64_t memory = 0; /* of any dtype */
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(number, error);
    const weft_dtype dtype = weft_dtype_of(value);
    if (weft_home_of(program, value) && weft_shape_of(value)->n_dims > 0) {
        char text[240];
        weft_shape_print(weft_shape_of(value), text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "weft_read_scalar: %s is %s and no scalar; weft_read it", label_of(value),
                         text);
    }
    WEFT_TRY(weft_read(program, value, dtype, &memory, (int64_t)weft_dtype_bytes(dtype), error));
    *number = weft_dtype_get(dtype, &memory, 0);
    return WEFT_OK;
}

void *weft_local(weft_program *program, weft_value value, int rank, weft_box *box)
{
    if (box) *box = (weft_box){0};
    uint32_t home = weft_home_of(program, value);
    weft_rank *self = program ? weft_rank_of(program, rank) : NULL;
    if (!home || !self || !box || program->plan->placed[home].home == WEFT_TEMPORARY) return NULL;
    const weft_placed *placed = &program->plan->placed[home];
    if (placed->home == WEFT_INPUT_HOME) program->is_written[home] = true;
    weft_spec_box(&placed->spec, program->mesh, &placed->type.shape, rank, box);
    if (!self->device->is_open) return NULL;
    return weft_box_count(box, placed->type.shape.n_dims) ? self->memory[home] : NULL;
}

bool weft_part_is_open(const weft_program *program)
{
    return weft_devices[weft_mesh_device(program->mesh)]->is_open;
}

void weft_part_put(weft_program *program, weft_value value, int rank, int64_t at, const void *from,
                   int64_t bytes)
{
    const uint32_t home = weft_home_of(program, value);
    weft_rank *self = weft_rank_of(program, rank);
    program->is_written[home] = true;
    if (bytes > 0)
        self->device->put(self->stream, (char *)self->memory[home] + at, from, (size_t)bytes);
}

weft_status weft_part_get(const weft_program *program, weft_value value, int rank, int64_t at,
                          void *to, int64_t bytes, weft_error *error)
{
    const uint32_t home = weft_home_of(program, value);
    const weft_rank *self = weft_rank_of(program, rank);
    if (bytes > 0)
        self->device->get(self->stream, to, (const char *)self->memory[home] + at, (size_t)bytes);
    return check_device(self, error);
}
