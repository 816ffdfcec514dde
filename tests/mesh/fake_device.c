/* fake_device: the table of the device, and copies; see fake_device.h. */
#include "fake_parts.h"

#include <unistd.h>

/* ---- copies ---------------------------------------------------------------------------------- */

static void run_copy(fake_stream *s, fake_command *c)
{
    (void)s;
    memcpy(fake_move(c->to), fake_move(c->from), c->bytes);
}

static void copy(weft_stream *handle, int queue, void *to, const void *from, size_t bytes)
{
    fake_command *c = fake_command_of("copy");
    c->run = run_copy;
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    fake_uses(c, from, (int64_t)bytes, false);
    fake_uses(c, to, (int64_t)bytes, true);
    fake_put_onto(handle, queue, c);
}

/* From its first element to its last: what lies between runs is of the same tensor. */
static void use_box(fake_command *c, const char *memory, int64_t at, const int64_t *stride,
                    int64_t element, bool is_written)
{
    int64_t count = c->box.run;
    for (int l = 0; l < c->box.n_loops; l++)
        count += (c->box.count[l] - 1) * stride[l];
    fake_uses(c, memory + at * element, count * element, is_written);
}

static fake_command *box_command(const char *what, void *to, const void *from,
                                 const weft_box_copy *box, int64_t element)
{
    fake_command *c = fake_command_of(what);
    c->to = to;
    c->from = from;
    c->box = *box;
    use_box(c, from, box->from_at, box->from_stride, element, false);
    use_box(c, to, box->to_at, box->to_stride, element, true);
    return c;
}

static void run_copy_box(fake_stream *s, fake_command *c)
{
    fake_cpu()->copy_box(s->lanes, WEFT_COMPUTE, fake_move(c->to), fake_move(c->from), &c->box,
                         c->bytes);
}

static void copy_box(weft_stream *handle, int queue, void *to, const void *from,
                     const weft_box_copy *box, size_t element)
{
    fake_command *c = box_command("copy_box", to, from, box, (int64_t)element);
    c->run = run_copy_box;
    c->bytes = element;
    fake_put_onto(handle, queue, c);
}

static void run_combine_box(fake_stream *s, fake_command *c)
{
    fake_note_combined();
    fake_cpu()->combine_box(s->lanes, WEFT_COMPUTE, fake_move(c->to), fake_move(c->from), &c->box,
                            &c->rule);
}

static void combine_box(weft_stream *handle, int queue, void *to, const void *from,
                        const weft_box_copy *box, const weft_combining *rule)
{
    fake_command *c = box_command("combine_box", to, from, box, rule->element);
    c->run = run_combine_box;
    c->rule = *rule;
    fake_put_onto(handle, queue, c);
}

static void run_identity(fake_stream *s, fake_command *c)
{
    fake_cpu()->identity(s->lanes, WEFT_COMPUTE, fake_move(c->to), c->n_states, &c->rule);
}

static void identity(weft_stream *handle, int queue, void *into, int64_t n_states,
                     const weft_combining *rule)
{
    fake_command *c = fake_command_of("identity");
    c->run = run_identity;
    c->to = into;
    c->n_states = n_states;
    c->rule = *rule;
    fake_uses(c, into, n_states * rule->width * rule->element, true);
    fake_put_onto(handle, queue, c);
}

static void host_copy(weft_stream *handle, void *to, const void *from, size_t bytes)
{
    fake_stream *s = fake_stream_of(handle);
    const void *device = fake_is_handed(to) ? to : from;
    if (bytes == 0) return;
    pthread_mutex_lock(&s->lock);
    fake_drain(s);
    if (!fake_is_handed(device) || !fake_is_alive(device, (int64_t)bytes))
        fake_note(FAKE_DEAD, "the host's bytes go to or from memory that is not taken");
    else
        memcpy(fake_move(to), fake_move(from), bytes);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the device ------------------------------------------------------------------------------ */

static void touch(weft_stream *handle, void *memory, size_t bytes)
{
    (void)handle, (void)memory, (void)bytes;
}

static void meanwhile(weft_stream *handle, void (*function)(void *argument), void *argument)
{
    (void)handle, (void)function, (void)argument; /* no thread of the host's is in its kernels */
}

static weft_status failed(weft_stream *handle, weft_error *error)
{
    (void)handle;
    return atomic_load(&fake_planted) == FAKE_BROKEN
               ? weft_fail(error, WEFT_IO, "the fake device is broken")
               : WEFT_OK;
}

static weft_device fake = {
    .name = "fake",
    .take = fake_take,
    .take_zeroed = fake_take_zeroed,
    .give = fake_give,
    .take_staging = fake_take_staging,
    .give_staging = fake_give_staging,
    .stream_create = fake_stream_create,
    .stream_destroy = fake_stream_destroy,
    .put = host_copy,
    .get = host_copy,
    .copy = copy,
    .copy_box = copy_box,
    .combine_box = combine_box,
    .identity = identity,
    .record = fake_record,
    .follow = fake_follow,
    .is_done = fake_is_done,
    .wait = fake_wait,
    .finish = fake_finish,
    .done = fake_done,
    .touch = touch,
    .meanwhile = meanwhile,
    .failed = failed,
};

static weft_device_kind kind;

static void install(void)
{
    weft_error error = {0};
    fake_open_memory();
    if (weft_device_add(&fake, &kind, &error) != WEFT_OK) puts(error.message), exit(1);
    fake_add_kernels(kind);
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
    atomic_store(&fake_planted, fault);
    fake.is_open = fault == FAKE_OPEN;
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
