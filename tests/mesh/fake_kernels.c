/* fake_kernels: the CPU's kernels and loops, copied when they are launched and moved to where memory can be touched. */
#include "fake_parts.h"

#include "weft/extend/op.h"

/* ---- kernels --------------------------------------------------------------------------------- */

static void move_call(weft_call *call, weft_stream *lanes)
{
    call->stream = lanes;
    for (int i = 0; i < call->n_in; i++)
        call->in[i].data = fake_move(call->in[i].data);
    for (int o = 0; o < call->n_out; o++)
        call->out[o].data = fake_move(call->out[o].data);
    call->scratch = fake_move(call->scratch);
}

static void run_launch(fake_stream *s, fake_command *c)
{
    move_call(&c->call, s->lanes);
    c->launch(&c->call);
}

static int64_t view_bytes(const weft_view *view)
{
    return weft_view_count(view) * (int64_t)weft_dtype_bytes(view->dtype);
}

static void launch(const weft_kernel *kernel, const weft_call *call)
{
    fake_command *c = fake_command_of(kernel->name);
    c->run = run_launch;
    c->launch = kernel->launch;
    c->call = *call;
    for (int i = 0; i < call->n_in; i++)
        fake_uses(c, call->in[i].data, view_bytes(&call->in[i]), false);
    for (int o = 0; o < call->n_out; o++)
        fake_uses(c, call->out[o].data, view_bytes(&call->out[o]), true);
    if (kernel->scratch != NULL) fake_uses(c, call->scratch, kernel->scratch(call), true);
    fake_put_onto(call->stream, WEFT_COMPUTE, c);
}

static weft_status prepare(const weft_kernel *kernel, const weft_call *call, weft_arena *arena,
                           void **prepared, weft_error *error)
{
    weft_call moved = *call;
    move_call(&moved, fake_stream_of(call->stream)->lanes);
    return kernel->prepare(&moved, arena, prepared, error);
}

#define WEFT_KERNEL(op, table)                                                                     \
    extern const weft_kernel weft_kernel_##table;                                                  \
    static void launch_##op##_##table(const weft_call *call)                                       \
    {                                                                                              \
        launch(&weft_kernel_##table, call);                                                        \
    }                                                                                              \
    static weft_status prepare_##op##_##table(const weft_call *call, weft_arena *arena,            \
                                              void **prepared, weft_error *error)                  \
    {                                                                                              \
        return prepare(&weft_kernel_##table, call, arena, prepared, error);                        \
    }
#include "kernel_list.inc"
#undef WEFT_KERNEL

static void
add_kernel(weft_device_kind device, const char *op, const weft_kernel *as, weft_launch launch_as,
           weft_status (*prepare_as)(const weft_call *, weft_arena *, void **, weft_error *))
{
    weft_error error = {0};
    weft_kernel kernel = *as;
    kernel.device = device;
    kernel.launch = launch_as;
    if (kernel.prepare != NULL) kernel.prepare = prepare_as;
    if (weft_kernel_add(op, &kernel, &error) != WEFT_OK) puts(error.message), exit(1);
}

/* ---- loops ----------------------------------------------------------------------------------- */

typedef struct bound_loop {
    weft_stream *handle;
    void *loop; /* the CPU's, moved */
    fake_command uses;
} bound_loop;

static int64_t operand_bytes(const weft_loop *loop, const weft_loop_segment *g, int i)
{
    int64_t last = 0;
    for (int d = 0; d < g->n_dims; d++) {
        if (g->size[d] == 0) return 0;
        last += (g->size[d] - 1) * g->in[i].stride[d];
    }
    return (last + loop->in[i].width) * loop->in[i].bytes;
}

static const weft_loop_op *maker_of(const weft_loop *loop, int slot)
{
    for (int k = 0, next = loop->n_in; k < loop->n_ops; k++) {
        next += loop->op[k].n_out;
        if (slot < next) return &loop->op[k];
    }
    return NULL;
}

static int64_t result_bytes(const weft_loop *loop, const weft_loop_segment *g, int o)
{
    const weft_loop_op *op = maker_of(loop, loop->out[o]);
    const bool is_of_rows = op->kind != WEFT_LOOP_ELEMENTS;
    int64_t count = op->kind == WEFT_LOOP_REDUCE ? weft_combine_width(op->combine) : 1;
    for (int d = 0; d < g->n_dims - (is_of_rows ? g->n_row_dims : 0); d++)
        count *= g->size[d];
    return count * op->bytes;
}

static void use_and_move(const weft_loop *loop, weft_loop_segment *g, fake_command *uses)
{
    for (int i = 0; i < loop->n_in; i++) {
        fake_uses(uses, g->in[i].data, operand_bytes(loop, g, i), false);
        g->in[i].data = fake_move(g->in[i].data);
    }
    for (int o = 0; o < loop->n_out; o++) {
        fake_uses(uses, g->out[o], result_bytes(loop, g, o), true);
        g->out[o] = fake_move(g->out[o]);
    }
}

static const weft_loop_driver *host_loops(void)
{
    const weft_loop_driver *driver = NULL;
    if (weft_loop_driver_of(WEFT_CPU, &driver, NULL) != WEFT_OK) exit(1);
    return driver;
}

/* The plan gives the loop away: it is moved where it is. */
static weft_status bind_loop(const weft_loop *loop, weft_loop_part part, weft_stream *handle,
                             weft_arena *arena, void **bound, weft_error *error)
{
    bound_loop *b = *bound = weft_arena_take(arena, sizeof *b);
    if (b == NULL) return weft_fail_memory(error, sizeof *b);
    b->handle = handle;
    for (int g = 0; g < loop->n_segments; g++)
        use_and_move(loop, &loop->segment[g], &b->uses);
    const size_t bytes = (size_t)b->uses.n_stretches * sizeof *b->uses.stretches;
    fake_stretch *kept = weft_arena_copy(arena, b->uses.stretches, bytes);
    free(b->uses.stretches);
    b->uses.stretches = kept;
    return host_loops()->bind(loop, part, fake_stream_of(handle)->lanes, arena, &b->loop, error);
}

static void run_bound(fake_stream *s, fake_command *c)
{
    (void)s;
    host_loops()->run(c->loop, c->run_number, c->trip);
}

static void run_loop(void *bound, uint64_t run, int64_t trip)
{
    const bound_loop *b = bound;
    fake_command *c = fake_command_of("loop");
    c->run = run_bound;
    c->loop = b->loop;
    c->run_number = run;
    c->trip = trip;
    for (int i = 0; i < b->uses.n_stretches; i++)
        fake_uses(c, b->uses.stretches[i].at, b->uses.stretches[i].bytes,
                  b->uses.stretches[i].is_written);
    fake_put_onto(b->handle, WEFT_COMPUTE, c);
}

void fake_add_kernels(weft_device_kind kind)
{
    const weft_loop_driver loops = {sizeof loops, kind, bind_loop, run_loop};
    weft_error error = {0};
#define WEFT_KERNEL(op, table)                                                                     \
    add_kernel(kind, #op, &weft_kernel_##table, launch_##op##_##table, prepare_##op##_##table);
#include "kernel_list.inc"
#undef WEFT_KERNEL
    if (weft_extend_loops(&loops, &error) != WEFT_OK) puts(error.message), exit(1);
}
