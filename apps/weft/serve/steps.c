/* steps: the root fills a step with requests; all ranks run it. A run that fails, because the program requires what an input has not
 * (weft_require), ends its program: another one goes on with its variables. (A condition is of all rows, so such a program's rows
 * are not apart, and the sentence is for one request.)
 */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

enum { HTTP_OK = 200, HTTP_WRONG = 400, HTTP_BUSY = 503 };
enum { RUNS = 1, ENDS = 2 }; /* what the root tells */

/* ---- which requests --------------------------------------------------------------------------------- */

static bool fits(void *context, const serve_request *base)
{
    const steps *s = context;
    const served_request *r = (const served_request *)base;
    if (s->n_taken == 0) return true;
    return s->n_rows + r->n_rows <= s->facts->rows;
}

/* In the order in which they came, as far as there is room: one that has to wait is not overtaken. */
static void take_requests(steps *s)
{
    serve_queue *queue = &s->host->queue;
    bool goes_on = true;
    s->n_taken = s->n_rows = 0;
    while (goes_on && queue->first && fits(s, queue->first)) {
        served_request *r = (served_request *)serve_queue_take(queue, fits, s);
        serve_times_add(&queue->counts.waits, app_seconds() - r->base.came);
        s->taken[s->n_taken++] = r;
        s->n_rows += r->n_rows;
        goes_on = s->facts->is_joined && s->n_rows < s->facts->rows;
    }
}

/* Rows that nobody asked for are zeros. */
static void fill_input(const steps *s, int i)
{
    const served_tensor *t = &s->facts->inputs[i];
    unsigned char *to = t->numbers;
    int64_t left = t->bytes;
    for (int64_t k = 0; k < s->n_taken; k++) {
        const int64_t bytes = t->has_rows ? s->taken[k]->n_rows * t->row_bytes : t->bytes;
        memcpy(to, s->taken[k]->inputs[i], (size_t)bytes);
        to += bytes, left -= bytes;
    }
    memset(to, 0, (size_t)left);
}

static void plan(steps *s, int64_t *does)
{
    serve_queue *queue = &s->host->queue;
    serve_host_look(s->host);
    pthread_mutex_lock(&queue->lock);
    if (queue->n_waiting == 0) serve_host_wait(s->host);
    serve_queue_drop_waiting(queue, app_seconds());
    take_requests(s);
    *does = s->n_taken > 0 ? RUNS : 0;
    if (s->n_taken == 0 && serve_host_is_over(s->host)) *does = ENDS;
    pthread_mutex_unlock(&queue->lock);
    for (int i = 0; s->n_taken > 0 && i < s->facts->n_inputs; i++)
        fill_input(s, i);
}

/* ---- what comes of it ------------------------------------------------------------------------------- */

static void answer_all(steps *s, double begun)
{
    serve_queue *queue = &s->host->queue;
    int64_t row = 0;
    for (int64_t k = 0; k < s->n_taken; k++) {
        served_request *r = s->taken[k];
        char *text = served_answer(s->facts, r, row);
        row += r->n_rows;
        pthread_mutex_lock(&queue->lock);
        serve_queue_answer(queue, &r->base, SERVE_DONE, HTTP_OK, text);
        pthread_mutex_unlock(&queue->lock);
    }
    pthread_mutex_lock(&queue->lock);
    s->facts->n_steps++;
    s->facts->n_rows += s->n_rows;
    serve_times_add(&s->facts->step_times, app_seconds() - begun);
    pthread_mutex_unlock(&queue->lock);
    s->n_taken = 0;
}

static void refuse_all(steps *s, const weft_error *why)
{
    serve_queue *queue = &s->host->queue;
    pthread_mutex_lock(&queue->lock);
    for (int64_t k = 0; k < s->n_taken; k++)
        serve_queue_refuse(queue, &s->taken[k]->base, SERVE_WRONG, HTTP_WRONG, why->message);
    pthread_mutex_unlock(&queue->lock);
    s->n_taken = 0;
}

/* ---- a step ----------------------------------------------------------------------------------------- */

static weft_status write_inputs(const steps *s, weft_error *error)
{
    for (int i = 0; i < s->facts->n_inputs; i++) {
        const served_tensor *t = &s->facts->inputs[i];
        WEFT_TRY(weft_write(s->runs, t->value, t->dtype, t->numbers, t->bytes, error));
    }
    return WEFT_OK;
}

static weft_status read_outputs(const steps *s, weft_error *error)
{
    for (int i = 0; i < s->facts->n_outputs; i++) {
        const served_tensor *t = &s->facts->outputs[i];
        WEFT_TRY(weft_read(s->runs, t->value, t->dtype, t->numbers, t->bytes, error));
    }
    return WEFT_OK;
}

/* Numbers of inputs that --input gave stay: the old program has them. */
static weft_status copy_fixed(const steps *s, weft_program *to, weft_error *error)
{
    for (int i = 0; i < s->o->saved->inputs.n_values; i++) {
        const weft_value value = s->o->saved->inputs.values[i];
        bool is_asked = weft_find_input(s->runs, weft_name_of(value)).id == 0;
        for (int k = 0; k < s->facts->n_inputs; k++)
            is_asked = is_asked || s->facts->inputs[k].value.id == value.id;
        if (is_asked) continue;
        const weft_dtype dtype = weft_dtype_of(value);
        const int64_t bytes =
            weft_shape_count(weft_shape_of(value)) * (int64_t)weft_dtype_bytes(dtype);
        void *numbers = malloc((size_t)bytes + 1);
        weft_status status = numbers ? weft_read(s->runs, value, dtype, numbers, bytes, error)
                                     : weft_fail_memory(error, (size_t)bytes);
        if (status == WEFT_OK) status = weft_write(to, value, dtype, numbers, bytes, error);
        free(numbers);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status begin_again(steps *s, weft_error *error)
{
    const weft_compile_options options = {.share = s->o->program};
    weft_program *next = NULL;
    WEFT_TRY(weft_compile(s->o->mesh, s->o->layout, s->o->saved->outputs, &options, &next, error));
    const weft_status status = copy_fixed(s, next, error);
    if (s->runs != s->o->program) (void)!weft_program_destroy(&s->runs);
    s->runs = next;
    return status;
}

/* What a program requires ends its run on every rank, with one sentence. Any other failure ends the server. */
static weft_status run(steps *s, weft_error *why, weft_error *error)
{
    WEFT_TRY(write_inputs(s, error));
    *why = (weft_error){.rank = -1};
    if (weft_run(s->runs, why) == WEFT_OK) return read_outputs(s, error);
    if (why->status == WEFT_USAGE) return begin_again(s, error);
    *error = *why;
    return why->status;
}

static weft_status step(steps *s, weft_error *error)
{
    const double begun = app_seconds();
    weft_error why;
    WEFT_TRY(serve_told_send(&s->ranks, s->facts->memory, s->facts->in_bytes, error));
    WEFT_TRY(run(s, &why, error));
    if (!s->host->is_root) return WEFT_OK;
    if (why.status == WEFT_OK)
        answer_all(s, begun);
    else
        refuse_all(s, &why);
    return WEFT_OK;
}

weft_status steps_serve(steps *s, weft_error *error)
{
    int64_t does = 0;
    while (does != ENDS) {
        WEFT_TRY(serve_host_find_end(s->host, error));
        if (s->host->is_root) plan(s, &does);
        WEFT_TRY(serve_told_send(&s->ranks, &does, sizeof does, error));
        if (does == RUNS) WEFT_TRY(step(s, error));
    }
    return WEFT_OK;
}

/* ---- life ------------------------------------------------------------------------------------------- */

weft_status steps_open(steps *s, opened *o, served_facts *facts, serve_host *host,
                       weft_error *error)
{
    const size_t most = facts->rows > 0 ? (size_t)facts->rows : 1;
    *s = (steps){.o = o, .facts = facts, .host = host, .runs = o->program};
    s->taken = calloc(most, sizeof *s->taken);
    weft_error own = {.rank = -1};
    if (s->taken == NULL) (void)!weft_fail_memory(&own, most * sizeof *s->taken);
    if (weft_world_agree(&own) != WEFT_OK) {
        *error = own;
        return own.status;
    }
    return serve_told_open(&s->ranks, o->mesh, error);
}

void steps_close(steps *s, const char *sentence)
{
    serve_queue *queue = s->host ? &s->host->queue : NULL;
    if (queue && s->host->has_queue) {
        pthread_mutex_lock(&queue->lock);
        for (int64_t k = 0; k < s->n_taken; k++)
            serve_queue_refuse(queue, &s->taken[k]->base, SERVE_FAILED, HTTP_BUSY, sentence);
        serve_queue_refuse_waiting(queue, sentence);
        pthread_mutex_unlock(&queue->lock);
    }
    if (s->runs && s->runs != s->o->program) (void)!weft_program_destroy(&s->runs);
    serve_told_close(&s->ranks);
    free(s->taken);
    *s = (steps){NULL};
}
