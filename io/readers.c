/* readers: some ranks read for all. Rows come from whoever has read them to whoever holds something of them, by one move an input.
 *
 * Readers are spread over the ranks, and so over hosts. Rows go to them in the order of the blocks that they hold themselves. So where
 * as many read as there are blocks, or more, none travels but to ranks that hold copies.
 */
#include "readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"
#include "weft/collectives.h"

/* ---- rows ----------------------------------------------------------------------------------------- */

typedef struct reader {
    int64_t row; /* the first that it holds */
    int rank;
} reader;

static int by_row(const void *a, const void *b)
{
    const reader *x = a, *y = b;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row)
                            : (x->rank > y->rank) - (x->rank < y->rank);
}

/* In blocks as those of layouts. */
static void give_rows(const reader *readers, int n, int64_t batch, weft_rows *rows)
{
    const int64_t block = (batch + n - 1) / n;
    for (int k = 0; k < n; k++) {
        const int64_t begin = k * block < batch ? k * block : batch;
        rows[readers[k].rank] = (weft_rows){begin, batch - begin < block ? batch : begin + block};
    }
}

weft_status weft_readers_rows(const weft_program *program, weft_value input, int n_readers,
                              weft_rows *rows, weft_error *error)
{
    const int n_ranks = weft_mesh_n_ranks(weft_program_mesh(program));
    reader *readers = malloc((size_t)n_readers * sizeof *readers);
    if (!readers) return weft_fail_memory(error, (size_t)n_readers * sizeof *readers);
    for (int k = 0; k < n_readers; k++) {
        weft_box held;
        const int rank = (int)((int64_t)k * n_ranks / n_readers);
        weft_box_of(program, input, rank, &held);
        readers[k] = (reader){held.begin[0], rank};
    }
    qsort(readers, (size_t)n_readers, sizeof *readers, by_row);
    memset(rows, 0, (size_t)n_ranks * sizeof *rows);
    give_rows(readers, n_readers, weft_shape_of(input)->dims[0].size, rows);
    free(readers);
    return WEFT_OK;
}

void weft_readers_box(weft_value input, const weft_rows *rows, weft_box *box)
{
    const weft_shape *shape = weft_shape_of(input);
    *box = (weft_box){.begin = {rows->begin}, .end = {rows->end}};
    for (int d = 1; d < shape->n_dims; d++)
        box->end[d] = shape->dims[d].size;
}

/* ---- ready to exchange ------------------------------------------------------------------------------ */

typedef struct brought {
    weft_value input;
    int64_t bytes; /* that the rank holds */
    weft_move *move;
    weft_flight *flight;
    void *scratch;
    void *held; /* [bytes], where the host does not see the program's; else NULL */
} brought;

struct weft_readers {
    weft_program *program;
    int rank;
    weft_comms *comms;
    int n;
    brought inputs[];
};

static weft_status take_memory(brought *b, bool is_open, weft_error *error)
{
    const size_t scratch = (size_t)weft_aligned(weft_move_scratch(b->move) + 1);
    const size_t bytes = (size_t)weft_aligned(b->bytes + 1);
    b->scratch = aligned_alloc(WEFT_ALIGNMENT, scratch);
    if (b->scratch == NULL) return weft_fail_memory(error, scratch);
    b->held = is_open ? NULL : aligned_alloc(WEFT_ALIGNMENT, bytes);
    return is_open || b->held != NULL ? WEFT_OK : weft_fail_memory(error, bytes);
}

/* from, to [ranks of the mesh]: room for boxes */
static weft_status make_input(const weft_readers *r, const weft_rows *rows, weft_box *from,
                              weft_box *to, brought *b, weft_error *error)
{
    const weft_mesh *mesh = weft_program_mesh(r->program);
    const weft_shape *shape = weft_shape_of(b->input);
    const weft_dtype dtype = weft_dtype_of(b->input);
    const uint32_t everybody = (1u << weft_mesh_n_axes(mesh)) - 1;
    char what[160];
    for (int rank = 0; rank < weft_mesh_n_ranks(mesh); rank++) {
        weft_readers_box(b->input, &rows[rank], &from[rank]);
        weft_box_of(r->program, b->input, rank, &to[rank]);
    }
    const weft_move_boxes boxes = {shape, dtype, from, to};
    b->bytes = weft_box_count(&to[r->rank], shape->n_dims) * (int64_t)weft_dtype_bytes(dtype);
    WEFT_TRY(weft_move_create_boxes(mesh, &boxes, r->rank, &b->move, error));
    WEFT_TRY(
        weft_flight_create(b->move, weft_comm_of(r->comms, r->rank, everybody), &b->flight, error));
    snprintf(what, sizeof what, "of %.80s, as it was read", weft_name_of(b->input));
    weft_flight_name(b->flight, weft_program_digest(r->program), what, "");
    return take_memory(b, weft_part_is_open(r->program), error);
}

static weft_status make_inputs(weft_readers *r, const weft_rows *rows, weft_error *error)
{
    const size_t n_ranks = (size_t)weft_mesh_n_ranks(weft_program_mesh(r->program));
    weft_box *boxes = calloc(2 * n_ranks, sizeof *boxes);
    if (boxes == NULL) return weft_fail_memory(error, 2 * n_ranks * sizeof *boxes);
    weft_status status = WEFT_OK;
    for (int i = 0; i < r->n && status == WEFT_OK; i++)
        status = make_input(r, rows, boxes, boxes + n_ranks, &r->inputs[i], error);
    free(boxes);
    return status;
}

/* Each step that only some may fail in is agreed on: nobody goes on to one in which that one would be waited for. */
static weft_status make(weft_readers **readers, weft_program *program, const weft_value *inputs,
                        int n, weft_error *own)
{
    const size_t bytes = sizeof **readers + (size_t)n * sizeof(brought);
    weft_mesh *mesh = weft_program_mesh(program);
    weft_readers *r = *readers = calloc(1, bytes);
    if (r == NULL) (void)weft_fail_memory(own, bytes);
    if (r != NULL) {
        r->program = program;
        r->rank = weft_mesh_first_local(mesh);
        r->n = n;
        for (int i = 0; i < n; i++)
            r->inputs[i].input = inputs[i];
        (void)!weft_comms_create(mesh, &r->comms, own);
    }
    WEFT_TRY(weft_world_agree(own));
    return weft_comms_prepare(r->comms, (1u << weft_mesh_n_axes(mesh)) - 1, own);
}

weft_status weft_readers_open(weft_program *program, const weft_rows *rows,
                              const weft_value *inputs, int n, weft_readers **readers,
                              weft_error *error)
{
    weft_error own = {.rank = -1};
    if (make(readers, program, inputs, n, &own) == WEFT_OK) {
        (void)!make_inputs(*readers, rows, &own);
        (void)weft_world_agree(&own);
    }
    if (own.status == WEFT_OK) return WEFT_OK;
    weft_readers_close(readers);
    *error = own;
    return own.status;
}

void weft_readers_close(weft_readers **readers)
{
    weft_readers *r = *readers;
    if (r == NULL) return;
    for (int i = 0; i < r->n; i++) {
        weft_flight_destroy(&r->inputs[i].flight);
        weft_move_destroy(&r->inputs[i].move);
        free(r->inputs[i].scratch);
        free(r->inputs[i].held);
    }
    weft_comms_destroy(&r->comms);
    free(r);
    *readers = NULL;
}

/* ---- exchanging ------------------------------------------------------------------------------------- */

/* All are under way at once. Where the host sees the program's memory they go right there. */
static weft_status start(const weft_readers *r, const brought *b, const void *read,
                         weft_error *error)
{
    weft_box box;
    void *to = b->held ? b->held : weft_local(r->program, b->input, r->rank, &box);
    return weft_flight_start(b->flight, read, to, b->scratch, error);
}

static weft_status finish(const weft_readers *r, const brought *b, weft_error *error)
{
    if (!weft_flight_is_started(b->flight)) return error->status;
    const weft_status status = weft_flight_finish(b->flight, error);
    if (status == WEFT_OK && b->held)
        weft_part_put(r->program, b->input, r->rank, 0, b->held, b->bytes);
    return status;
}

weft_status weft_readers_exchange(weft_readers *readers, const void *const *read, weft_error *error)
{
    weft_status status = WEFT_OK;
    for (int i = 0; i < readers->n && status == WEFT_OK; i++)
        status = start(readers, &readers->inputs[i], read[i], error);
    for (int i = 0; i < readers->n; i++)
        if (finish(readers, &readers->inputs[i], error) != WEFT_OK) status = error->status;
    return status;
}
