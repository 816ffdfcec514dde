/* fake_device: see fake_device.h. */
#include "fake_device.h"

#include "mesh/devices.h"
#include "registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static fake_facts seen;
static _Atomic int planted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over facts and blocks */

static void note(int64_t *count, const char *what)
{
    pthread_mutex_lock(&lock);
    ++*count;
    if (seen.first[0] == '\0') snprintf(seen.first, sizeof seen.first, "%s", what);
    pthread_mutex_unlock(&lock);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const size_t ROOM = (size_t)1
                           << 38; /* of addresses; pages are there when they are written */
enum { GAP = 4096 };

typedef struct block {
    const char *begin;
    size_t bytes;
    bool is_taken;
} block;

static char *handed, *real; /* the two mappings */
static size_t used;
static block *blocks; /* of the device, by address, as they were taken */
static size_t n_blocks, room_blocks;

static char *map(int file, int protection)
{
    void *at = mmap(NULL, ROOM, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) perror("fake device: mmap"), exit(1);
    return at;
}

static void open_memory(void)
{
    const int file = memfd_create("fake device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)ROOM) != 0) perror("fake device: memory"), exit(1);
    handed = map(file, PROT_NONE);
    real = map(file, PROT_READ | PROT_WRITE);
    close(file);
}

static bool is_handed(const void *at)
{
    return (const char *)at >= handed && (const char *)at < handed + ROOM;
}

/* Where it can be touched. Staging is the host's, and stays where it is. */
static void *move(const void *at)
{
    return is_handed(at) ? real + ((const char *)at - handed) : (void *)(uintptr_t)at;
}

static weft_status take_filled(size_t bytes, int with, void **memory, weft_error *error)
{
    *memory = NULL;
    if (bytes > ROOM / 4) return weft_fail_memory(error, bytes);
    pthread_mutex_lock(&lock);
    if (n_blocks == room_blocks) {
        room_blocks = 2 * room_blocks + 64;
        blocks = realloc(blocks, room_blocks * sizeof *blocks);
    }
    char *at = handed + used;
    used += (bytes + 2 * GAP - 1) / GAP * GAP;
    if (used > ROOM || blocks == NULL) fputs("fake device: out of addresses\n", stderr), exit(1);
    blocks[n_blocks++] = (block){at, bytes, true};
    pthread_mutex_unlock(&lock);
    if (with != 0) memset(move(at), with, bytes);
    *memory = at;
    return WEFT_OK;
}

static weft_status take(size_t bytes, void **memory, weft_error *error)
{
    return take_filled(bytes, 0xFF, memory, error); /* NaN, whatever the dtype */
}

static weft_status take_zeroed(size_t bytes, void **memory, weft_error *error)
{
    return take_filled(bytes, 0, memory, error);
}

static block *block_of(const char *at)
{
    size_t low = 0, high = n_blocks;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (blocks[middle].begin <= at)
            low = middle;
        else
            high = middle;
    }
    return n_blocks > 0 && blocks[low].begin <= at ? &blocks[low] : NULL;
}

static void give(void *memory, size_t bytes)
{
    if (memory == NULL) return;
    pthread_mutex_lock(&lock);
    block *b = block_of(memory);
    const bool is_right = b != NULL && b->begin == memory && b->bytes == bytes && b->is_taken;
    if (is_right) b->is_taken = false;
    pthread_mutex_unlock(&lock);
    if (!is_right) note(&seen.n_dead, "memory was given back that is not taken, or not so much");
    madvise(move(memory), (bytes + GAP - 1) / GAP * GAP, MADV_REMOVE);
}

static bool is_alive(const char *at, int64_t bytes)
{
    if (!is_handed(at)) return true;
    pthread_mutex_lock(&lock);
    const block *b = block_of(at);
    const bool is = b != NULL && b->is_taken && at + bytes <= b->begin + b->bytes;
    pthread_mutex_unlock(&lock);
    return is;
}

static weft_status take_staging(size_t bytes, void **memory, weft_error *error)
{
    *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (*memory == NULL) return weft_fail_memory(error, bytes);
    memset(*memory, 0, bytes);
    return WEFT_OK;
}

static void give_staging(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

/* ---- commands -------------------------------------------------------------------------------- */

typedef struct stretch {
    const char *at;
    int64_t bytes;
    bool is_written;
} stretch;

typedef struct stream stream;
typedef struct command command;
struct command {
    void (*run)(stream *s, command *c);
    const char *what;
    int queue;
    uint64_t number, order;      /* on its queue; among all of the stream  */
    uint64_t clock[WEFT_QUEUES]; /* of each queue: what is done before it, up to this number */
    weft_event after;            /* follow */
    int n_stretches, room_stretches;
    stretch *stretches;
    void *to; /* as handed out */
    const void *from;
    size_t bytes; /* or of an element */
    weft_box_copy box;
    weft_combining rule;
    int64_t n_states;
    weft_launch launch;
    weft_call call;
    void *loop;
    uint64_t run_number;
};

typedef struct queue {
    command **all; /* since all queues were empty, oldest first */
    size_t n, room, done;
    uint64_t base;               /* the number of the newest before those */
    uint64_t clock[WEFT_QUEUES]; /* what the next command comes after */
} queue;

struct stream {
    pthread_mutex_t lock;
    weft_stream *lanes; /* the CPU's */
    queue queues[WEFT_QUEUES];
    uint64_t random, order, newest_done;
};

static stream *of(weft_stream *s)
{
    return (stream *)s;
}

static uint32_t random_below(stream *s, uint32_t n)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 33) % n;
}

static void use(command *c, const void *at, int64_t bytes, bool is_written)
{
    if (at == NULL || bytes <= 0) return;
    if (c->n_stretches == c->room_stretches) {
        c->room_stretches = 2 * c->room_stretches + 4;
        c->stretches = realloc(c->stretches, (size_t)c->room_stretches * sizeof *c->stretches);
    }
    c->stretches[c->n_stretches++] = (stretch){at, bytes, is_written};
}

static void free_command(command *c)
{
    free(c->stretches);
    free(c);
}

static bool has_met(const command *a, const command *b)
{
    for (int i = 0; i < a->n_stretches; i++)
        for (int k = 0; k < b->n_stretches; k++) {
            const stretch *x = &a->stretches[i], *y = &b->stretches[k];
            if ((x->is_written || y->is_written) && x->at < y->at + y->bytes &&
                y->at < x->at + x->bytes)
                return true;
        }
    return false;
}

/* Those of other queues that may be done before it or after it. */
static void look_for_races(const stream *s, const command *c)
{
    for (int q = 0; q < WEFT_QUEUES; q++) {
        const queue *other = &s->queues[q];
        for (size_t i = other->n; q != c->queue && i-- > 0;) {
            const command *earlier = other->all[i];
            char what[200];
            if (earlier->number <= c->clock[q]) break;
            if (!has_met(earlier, c)) continue;
            snprintf(what, sizeof what, "%s on queue %d and %s on queue %d have no order", c->what,
                     c->queue, earlier->what, q);
            note(&seen.n_races, what);
        }
    }
}

static uint64_t newest(const queue *q)
{
    return q->base + q->n;
}

static bool is_over(const stream *s, weft_event event)
{
    const queue *q = &s->queues[event.queue];
    return event.number <= q->base + q->done;
}

static void know(uint64_t *clock, const uint64_t *more)
{
    for (int q = 0; q < WEFT_QUEUES; q++)
        if (more[q] > clock[q]) clock[q] = more[q];
}

/* Whoever waits for the event comes after all that its last command came after, and after that one. */
static void know_event(const stream *s, uint64_t *clock, weft_event event)
{
    const queue *q = &s->queues[event.queue];
    if (event.number <= q->base) return;
    know(clock, q->all[event.number - q->base - 1]->clock);
    if (event.number > clock[event.queue]) clock[event.queue] = event.number;
}

static command *next_of(const queue *q)
{
    return q->done < q->n ? q->all[q->done] : NULL;
}

static bool may_run(const stream *s, const command *c)
{
    return c != NULL && (c->after.number == 0 || atomic_load(&planted) == FAKE_NO_FOLLOW ||
                         is_over(s, c->after));
}

static void execute(stream *s, command *c)
{
    for (int i = 0; i < c->n_stretches; i++)
        if (!is_alive(c->stretches[i].at, c->stretches[i].bytes)) {
            char what[200];
            snprintf(what, sizeof what, "%s uses memory that is not taken", c->what);
            note(&seen.n_dead, what);
            return;
        }
    if (c->run != NULL) c->run(s, c);
    pthread_mutex_lock(&lock);
    seen.n_commands++;
    seen.n_overtaken += c->order < s->newest_done;
    pthread_mutex_unlock(&lock);
    if (c->order > s->newest_done) s->newest_done = c->order;
}

/* One command, any that may be next. */
static void step(stream *s)
{
    int which[WEFT_QUEUES], n = 0;
    for (int q = 0; q < WEFT_QUEUES; q++)
        if (may_run(s, next_of(&s->queues[q]))) which[n++] = q;
    if (n == 0) fputs("fake device: the queues wait for each other\n", stderr), abort();
    queue *q = &s->queues[which[random_below(s, (uint32_t)n)]];
    execute(s, next_of(q));
    q->done++;
}

static bool is_empty(const stream *s)
{
    for (int q = 0; q < WEFT_QUEUES; q++)
        if (next_of(&s->queues[q]) != NULL) return false;
    return true;
}

/* All is done, and everything to come is after it. */
static void drain(stream *s)
{
    while (!is_empty(s))
        step(s);
    for (int q = 0; q < WEFT_QUEUES; q++) {
        queue *empty = &s->queues[q];
        for (size_t i = 0; i < empty->n; i++)
            free_command(empty->all[i]);
        empty->base += empty->n;
        empty->n = empty->done = 0;
    }
}

static command *new_command(const char *what)
{
    command *c = calloc(1, sizeof *c);
    if (c == NULL) perror("fake device"), exit(1);
    c->what = what;
    return c;
}

/* Now and then something is done at once: the device does not sleep until somebody waits. */
static void put_onto(weft_stream *handle, int number, command *c)
{
    stream *s = of(handle);
    pthread_mutex_lock(&s->lock);
    queue *q = &s->queues[number];
    if (q->n == q->room) {
        q->room = 2 * q->room + 64;
        q->all = realloc(q->all, q->room * sizeof(command *));
    }
    c->queue = number;
    c->number = newest(q) + 1;
    c->order = ++s->order;
    if (c->after.number > 0) know_event(s, q->clock, c->after);
    memcpy(c->clock, q->clock, sizeof c->clock);
    c->clock[number] = c->number;
    look_for_races(s, c);
    q->all[q->n++] = c;
    q->clock[number] = c->number;
    for (uint32_t n = random_below(s, 4) == 0 ? random_below(s, 3) : 0; n > 0 && !is_empty(s); n--)
        step(s);
    pthread_mutex_unlock(&s->lock);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void run_copy(stream *s, command *c)
{
    (void)s;
    memcpy(move(c->to), move(c->from), c->bytes);
}

static void copy(weft_stream *handle, int queue, void *to, const void *from, size_t bytes)
{
    command *c = new_command("copy");
    c->run = run_copy;
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    use(c, from, (int64_t)bytes, false);
    use(c, to, (int64_t)bytes, true);
    put_onto(handle, queue, c);
}

/* From its first element to its last: what lies between runs is of the same tensor. */
static void use_box(command *c, const char *memory, int64_t at, const int64_t *stride,
                    int64_t element, bool is_written)
{
    int64_t count = c->box.run;
    for (int l = 0; l < c->box.n_loops; l++)
        count += (c->box.count[l] - 1) * stride[l];
    use(c, memory + at * element, count * element, is_written);
}

static command *box_command(const char *what, void *to, const void *from, const weft_box_copy *box,
                            int64_t element)
{
    command *c = new_command(what);
    c->to = to;
    c->from = from;
    c->box = *box;
    use_box(c, from, box->from_at, box->from_stride, element, false);
    use_box(c, to, box->to_at, box->to_stride, element, true);
    return c;
}

static const weft_device *cpu(void)
{
    return weft_devices[WEFT_CPU];
}

static void run_copy_box(stream *s, command *c)
{
    cpu()->copy_box(s->lanes, WEFT_COMPUTE, move(c->to), move(c->from), &c->box, c->bytes);
}

static void copy_box(weft_stream *handle, int queue, void *to, const void *from,
                     const weft_box_copy *box, size_t element)
{
    command *c = box_command("copy_box", to, from, box, (int64_t)element);
    c->run = run_copy_box;
    c->bytes = element;
    put_onto(handle, queue, c);
}

static void run_combine_box(stream *s, command *c)
{
    cpu()->combine_box(s->lanes, WEFT_COMPUTE, move(c->to), move(c->from), &c->box, &c->rule);
}

static void combine_box(weft_stream *handle, int queue, void *to, const void *from,
                        const weft_box_copy *box, const weft_combining *rule)
{
    command *c = box_command("combine_box", to, from, box, rule->element);
    c->run = run_combine_box;
    c->rule = *rule;
    put_onto(handle, queue, c);
}

static void run_identity(stream *s, command *c)
{
    cpu()->identity(s->lanes, WEFT_COMPUTE, move(c->to), c->n_states, &c->rule);
}

static void identity(weft_stream *handle, int queue, void *into, int64_t n_states,
                     const weft_combining *rule)
{
    command *c = new_command("identity");
    c->run = run_identity;
    c->to = into;
    c->n_states = n_states;
    c->rule = *rule;
    use(c, into, n_states * rule->width * rule->element, true);
    put_onto(handle, queue, c);
}

static void host_copy(weft_stream *handle, void *to, const void *from, size_t bytes)
{
    stream *s = of(handle);
    const void *device = is_handed(to) ? to : from;
    if (bytes == 0) return;
    pthread_mutex_lock(&s->lock);
    drain(s);
    if (!is_handed(device) || !is_alive(device, (int64_t)bytes))
        note(&seen.n_dead, "the host's bytes go to or from memory that is not taken");
    else
        memcpy(move(to), move(from), bytes);
    pthread_mutex_unlock(&s->lock);
}

/* ---- events ---------------------------------------------------------------------------------- */

static weft_event record(weft_stream *handle, int number)
{
    stream *s = of(handle);
    pthread_mutex_lock(&s->lock);
    const weft_event event = {number, newest(&s->queues[number])};
    pthread_mutex_unlock(&s->lock);
    return event;
}

static void follow(weft_stream *handle, int number, weft_event event)
{
    command *c = new_command("follow");
    if (atomic_load(&planted) != FAKE_NO_FOLLOW) c->after = event;
    put_onto(handle, number, c);
}

static bool is_done(weft_stream *handle, weft_event event)
{
    stream *s = of(handle);
    pthread_mutex_lock(&s->lock);
    if (!is_over(s, event)) step(s);
    const bool is = is_over(s, event);
    pthread_mutex_unlock(&s->lock);
    return is;
}

static void wait(weft_stream *handle, weft_event event)
{
    stream *s = of(handle);
    if (atomic_load(&planted) == FAKE_NO_WAIT) return;
    pthread_mutex_lock(&s->lock);
    while (!is_over(s, event))
        step(s);
    for (int q = 0; q < WEFT_QUEUES; q++)
        know_event(s, s->queues[q].clock, event); /* what the host does next is after it */
    pthread_mutex_unlock(&s->lock);
}

static void finish(weft_stream *handle)
{
    stream *s = of(handle);
    pthread_mutex_lock(&s->lock);
    drain(s);
    pthread_mutex_unlock(&s->lock);
}

/* ---- streams --------------------------------------------------------------------------------- */

static weft_status stream_create(int n_lanes, weft_stream **handle, weft_error *error)
{
    static _Atomic uint64_t seed = 1;
    stream *s = calloc(1, sizeof *s);
    *handle = (weft_stream *)s;
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    s->random = atomic_fetch_add(&seed, 1) * 0x9E3779B97F4A7C15u;
    pthread_mutex_init(&s->lock, NULL);
    const weft_status status = cpu()->stream_create(n_lanes, &s->lanes, error);
    if (status == WEFT_OK) return WEFT_OK;
    free(s);
    *handle = NULL;
    return status;
}

static void stream_destroy(weft_stream **handle)
{
    stream *s = of(*handle);
    if (s == NULL) return;
    drain(s);
    for (int q = 0; q < WEFT_QUEUES; q++)
        free(s->queues[q].all);
    cpu()->stream_destroy(&s->lanes);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *handle = NULL;
}

static void touch(weft_stream *handle, void *memory, size_t bytes)
{
    (void)handle, (void)memory, (void)bytes;
}

static void meanwhile(weft_stream *handle, void (*function)(void *argument), void *argument)
{
    (void)handle, (void)function, (void)argument; /* no thread of the host's is in its kernels */
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void move_call(weft_call *call, weft_stream *lanes)
{
    call->stream = lanes;
    for (int i = 0; i < call->n_in; i++)
        call->in[i].data = move(call->in[i].data);
    for (int o = 0; o < call->n_out; o++)
        call->out[o].data = move(call->out[o].data);
    call->scratch = move(call->scratch);
}

static void run_launch(stream *s, command *c)
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
    command *c = new_command(kernel->name);
    c->run = run_launch;
    c->launch = kernel->launch;
    c->call = *call;
    for (int i = 0; i < call->n_in; i++)
        use(c, call->in[i].data, view_bytes(&call->in[i]), false);
    for (int o = 0; o < call->n_out; o++)
        use(c, call->out[o].data, view_bytes(&call->out[o]), true);
    if (kernel->scratch != NULL) use(c, call->scratch, kernel->scratch(call), true);
    put_onto(call->stream, WEFT_COMPUTE, c);
}

static weft_status prepare(const weft_kernel *kernel, const weft_call *call, weft_arena *arena,
                           void **prepared, weft_error *error)
{
    weft_call moved = *call;
    move_call(&moved, of(call->stream)->lanes);
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
    command uses;
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

static void use_and_move(const weft_loop *loop, weft_loop_segment *g, command *uses)
{
    for (int i = 0; i < loop->n_in; i++) {
        use(uses, g->in[i].data, operand_bytes(loop, g, i), false);
        g->in[i].data = move(g->in[i].data);
    }
    for (int o = 0; o < loop->n_out; o++) {
        use(uses, g->out[o], result_bytes(loop, g, o), true);
        g->out[o] = move(g->out[o]);
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
    stretch *kept = weft_arena_copy(arena, b->uses.stretches, bytes);
    free(b->uses.stretches);
    b->uses.stretches = kept;
    return host_loops()->bind(loop, part, of(handle)->lanes, arena, &b->loop, error);
}

static void run_bound(stream *s, command *c)
{
    (void)s;
    host_loops()->run(c->loop, c->run_number);
}

static void run_loop(void *bound, uint64_t run)
{
    const bound_loop *b = bound;
    command *c = new_command("loop");
    c->run = run_bound;
    c->loop = b->loop;
    c->run_number = run;
    for (int i = 0; i < b->uses.n_stretches; i++)
        use(c, b->uses.stretches[i].at, b->uses.stretches[i].bytes,
            b->uses.stretches[i].is_written);
    put_onto(b->handle, WEFT_COMPUTE, c);
}

/* ---- the device ------------------------------------------------------------------------------ */

static weft_device fake = {
    .name = "fake",
    .take = take,
    .take_zeroed = take_zeroed,
    .give = give,
    .take_staging = take_staging,
    .give_staging = give_staging,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .put = host_copy,
    .get = host_copy,
    .copy = copy,
    .copy_box = copy_box,
    .combine_box = combine_box,
    .identity = identity,
    .record = record,
    .follow = follow,
    .is_done = is_done,
    .wait = wait,
    .finish = finish,
    .touch = touch,
    .meanwhile = meanwhile,
};

static weft_device_kind kind;

static void install(void)
{
    static weft_loop_driver loops = {.bind = bind_loop, .run = run_loop};
    weft_error error = {0};
    open_memory();
    if (weft_device_add(&fake, &kind, &error) != WEFT_OK) puts(error.message), exit(1);
#define WEFT_KERNEL(op, table)                                                                     \
    add_kernel(kind, #op, &weft_kernel_##table, launch_##op##_##table, prepare_##op##_##table);
#include "kernel_list.inc"
#undef WEFT_KERNEL
    loops.device = kind;
    if (weft_loop_driver_add(&loops, &error) != WEFT_OK) puts(error.message), exit(1);
}

weft_device_kind fake_device(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return kind;
}

void fake_use(bool is_used)
{
    weft_mesh_use_device(is_used ? fake_device() : WEFT_CPU);
}

void fake_plant(fake_fault fault)
{
    atomic_store(&planted, fault);
    fake.is_open = fault == FAKE_OPEN;
}

fake_facts fake_seen(void)
{
    pthread_mutex_lock(&lock);
    const fake_facts facts = seen;
    pthread_mutex_unlock(&lock);
    return facts;
}

void fake_forget(void)
{
    pthread_mutex_lock(&lock);
    seen = (fake_facts){0};
    pthread_mutex_unlock(&lock);
}

/* ---- programs that know nothing of it -------------------------------------------------------- */

static bool is_asked_for(void)
{
    const char *device = getenv("TEST_DEVICE");
    return device != NULL && strcmp(device, "fake") == 0;
}

__attribute__((constructor)) static void begin(void)
{
    if (is_asked_for()) fake_use(true);
}

__attribute__((destructor)) static void end(void)
{
    const fake_facts facts = fake_seen();
    if (!is_asked_for()) return;
    fprintf(stderr, "fake device: %lld commands, %lld of them overtaken\n",
            (long long)facts.n_commands, (long long)facts.n_overtaken);
    if (facts.n_races + facts.n_dead == 0 && facts.n_commands > 0) return;
    fprintf(stderr, "fake device: %lld races, %lld uses of what is not taken; the first: %s\n",
            (long long)facts.n_races, (long long)facts.n_dead, facts.first);
    _exit(1);
}
