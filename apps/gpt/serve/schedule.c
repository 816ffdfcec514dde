/* schedule: slots, the prompt that is read, and how requests end. */
#include "schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../serve/refusal.h"
#include "../../stop.h"
#include "answer.h"

enum { HTTP_OK = 200, HTTP_FAILED = 500, HTTP_BUSY = 503 };
static const char no_memory[] = "the server is out of memory; ask again later";
static const char no_numbers[] =
    "the model's scores are no numbers: it was trained to infinities, or computes in a dtype that "
    "is too narrow for it";

/* ---- how a request ends ---------------------------------------------------------------------------- */

/* With a sentence in place of an answer, or behind the part of it that was sent. */
static void fail(gpt_schedule *s, gpt_request *r, serve_end end, int status, const char *sentence)
{
    char *text = r->base.status != 0 ? gpt_answer_failure(status, sentence)
                                     : serve_refusal(status, sentence);
    serve_queue_answer(s->queue, &r->base, end, status, text);
}

/* why: NULL for vectors */
static void finish(gpt_schedule *s, gpt_request *r, const char *why)
{
    char *text = !r->kind->writes  ? gpt_answer_vectors(s->facts, r)
                 : r->base.streams ? gpt_answer_part(s->facts, r, r->tail.n - r->tail.told, why)
                                   : gpt_answer_text(s->facts, r, why);
    serve_queue_answer(s->queue, &r->base, SERVE_DONE, HTTP_OK, text);
}

/* The text leaves; its rows stay until the slot is emptied. */
static void leave(gpt_slot *slot)
{
    slot->request = NULL;
    slot->goes_on = false;
}

/* ---- whoever wants nothing any more ---------------------------------------------------------------- */

static void drop(gpt_schedule *s, gpt_request *r)
{
    if (!r->base.is_gone && r->n_words > 0)
        finish(s, r, "time");
    else
        serve_queue_drop(s->queue, &r->base);
}

static void drop_all(gpt_schedule *s, double now)
{
    serve_queue_drop_waiting(s->queue, now);
    for (int64_t i = 0; i < s->engine->options.slots; i++) {
        gpt_slot *slot = &s->slots[i];
        if (!slot->goes_on || !serve_request_is_over(&slot->request->base, now)) continue;
        drop(s, slot->request);
        leave(slot);
        if (s->joins == i) s->joins = -1;
    }
    if (s->reading == NULL || !serve_request_is_over(&s->reading->base, now)) return;
    drop(s, s->reading);
    if (s->slot >= 0) leave(&s->slots[s->slot]);
    s->reading = NULL, s->slot = -1;
    s->part = 0;
    s->is_dirty = true;
}

/* ---- what a tick does ------------------------------------------------------------------------------ */

static int free_slot(const gpt_schedule *s)
{
    for (int64_t i = 0; i < s->engine->options.slots; i++)
        if (s->slots[i].request == NULL) return (int)i;
    return -1;
}

static bool can_begin(void *context, const serve_request *r)
{
    return !((const gpt_request *)r)->kind->writes || *(const int *)context >= 0;
}

static void begin_next(gpt_schedule *s)
{
    int slot = free_slot(s);
    gpt_request *r = (gpt_request *)serve_queue_take(s->queue, can_begin, &slot);
    if (r == NULL) return;
    serve_times_add(&s->queue->counts.waits, s->begun - r->base.came);
    s->reading = r;
    s->slot = r->kind->writes ? slot : -1;
    if (s->slot >= 0) s->slots[slot].request = r;
}

/* alone: no text waits for the tick */
static void plan_chunk(gpt_schedule *s, bool is_alone)
{
    const gpt_request *r = s->reading;
    const gpt_tick *tick = &s->engine->tick;
    const bpe_tokens *input = &r->inputs[r->input];
    const int64_t left = (int64_t)input->n - r->n_read, most = s->engine->options.chunk;
    s->n_chunk = (int)(left < most ? left : most);
    for (int i = 0; i < s->n_chunk; i++) {
        tick->chunk_tokens[i] = input->ids[r->n_read + i];
        tick->chunk_places[i] = (int32_t)(r->n_read + i);
    }
    *tick->last = s->n_chunk - 1;
    *tick->part = s->part;
    *tick->end = s->part = is_alone ? s->engine->n_reads : s->part + 1;
    *tick->does |= GPT_READS;
    if (!r->kind->writes && s->part == s->engine->n_reads) *tick->does |= GPT_LOOKS;
}

/* Returns how many go on. */
static int plan_slots(gpt_schedule *s)
{
    const gpt_tick *tick = &s->engine->tick;
    int n = 0;
    for (int64_t i = 0; i < s->engine->options.slots; i++) {
        const gpt_slot *slot = &s->slots[i];
        if (!slot->goes_on) continue;
        tick->slot_tokens[i] = slot->request->word;
        tick->slot_places[i] = slot->place;
        n++;
    }
    if (n > 0) *tick->does |= GPT_DECODES;
    return n;
}

static void plan_empty(gpt_schedule *s, int64_t i)
{
    gpt_slot *slot = &s->slots[i];
    *s->engine->tick.does |= slot->is_wrong ? GPT_WIPES : GPT_EMPTIES;
    *s->engine->tick.emptied = (int32_t)i;
    slot->is_used = slot->is_wrong = false;
}

/* A slot that was left, as others go on; false: there is none. */
static bool empty_one(gpt_schedule *s)
{
    for (int64_t i = 0; i < s->engine->options.slots; i++) {
        if (s->slots[i].goes_on || !s->slots[i].is_used) continue;
        plan_empty(s, i);
        return true;
    }
    return false;
}

static void plan_join(gpt_schedule *s)
{
    gpt_slot *slot = &s->slots[s->joins];
    if (slot->is_used) plan_empty(s, s->joins); /* there was no time for it yet */
    *s->engine->tick.does |= GPT_JOINS;
    *s->engine->tick.joined = s->joins;
    slot->is_used = true;
    s->joins = -1;
}

bool gpt_schedule_plan(gpt_schedule *s)
{
    const gpt_tick *tick = &s->engine->tick;
    gpt_engine_forget(s->engine);
    s->begun = app_seconds();
    drop_all(s, s->begun);
    const int n = plan_slots(s);
    const bool joins = s->joins >= 0;
    if (joins) plan_join(s);
    if (s->is_dirty) *tick->does |= GPT_CLEARS;
    s->is_dirty = false;
    if (s->reading == NULL) begin_next(s);
    const bool moves = joins || empty_one(s);
    /* a window that is moved is enough for a tick, where others go on meanwhile */
    if (s->reading && (!moves || n <= joins)) plan_chunk(s, n == 0);
    s->facts->counts.n_busy = n;
    return *tick->does != 0;
}

/* ---- what came of it ------------------------------------------------------------------------------- */

static const void *row_of(const gpt_engine *e, int64_t row)
{
    return (const char *)e->slot_logits +
           (size_t)(row * e->shape.vocab) * weft_dtype_bytes(e->dtype);
}

static bool tell_token(gpt_schedule *s, gpt_request *r, const void *logits)
{
    if (r->n_likely < 0) return true;
    if (r->n_told == r->told_room) {
        const size_t room = 2 * r->told_room + 16;
        gpt_told_token *more = realloc(r->told, room * sizeof *more);
        if (more == NULL) return false;
        r->told = more, r->told_room = room;
    }
    r->told[r->n_told++] =
        gpt_answer_token(s->facts, r->n_likely, s->engine->dtype, logits, r->word);
    return true;
}

/* The word at which texts end, of those that were learned with one. */
static bool ends_text(const gpt_schedule *s, int32_t word)
{
    static const char end[] = "<|endoftext|>";
    size_t n, at;
    bpe *words = s->facts->words;
    if (!words) return false;
    const unsigned char *bytes = bpe_word(words, word, &n);
    return n == sizeof end - 1 && memcmp(bytes, end, n) == 0 &&
           bpe_find_special(words, bytes, n, &at) == word;
}

static bool add_word(gpt_schedule *s, gpt_request *r)
{
    size_t n = 1;
    const unsigned char byte = (unsigned char)r->word;
    bpe *words = s->facts->words;
    const unsigned char *bytes = words ? bpe_word(words, r->word, &n) : &byte;
    return gpt_tail_add(&r->tail, &r->stops, bytes, n, NULL) == WEFT_OK;
}

static void send_part(gpt_schedule *s, gpt_request *r)
{
    const size_t n = gpt_tail_ready(&r->tail, &r->stops, false);
    if (!r->base.streams || n == 0) return;
    serve_request_say(&r->base, gpt_answer_part(s->facts, r, n, NULL));
    r->tail.told += n;
    r->n_told = 0;
    if (r->base.status == 0) r->base.status = HTTP_OK;
    serve_request_wake(&r->base);
}

static void count_word(gpt_schedule *s, gpt_request *r)
{
    const double now = app_seconds();
    gpt_counts *counts = &s->facts->counts;
    if (r->n_words == 1)
        serve_times_add(&counts->firsts, now - r->base.came);
    else
        serve_times_add(&counts->gaps, now - r->last);
    r->last = now;
    counts->written++;
}

/* Scores may be -inf: such a token is never drawn. */
static bool are_numbers(const gpt_schedule *s, const void *logits)
{
    bool any = false;
    for (int64_t t = 0; t < s->facts->n_words; t++) {
        const double score = weft_dtype_get(s->engine->dtype, logits, t);
        if (isnan(score) || (isinf(score) && score > 0)) return false;
        any = any || isfinite(score);
    }
    return any;
}

/* A token more, by its scores. returns whether the text goes on; else the request is over */
static bool go_on(gpt_schedule *s, gpt_request *r, const void *logits)
{
    if (!are_numbers(s, logits)) {
        fail(s, r, SERVE_FAILED, HTTP_FAILED, no_numbers);
        return false;
    }
    r->word = gpt_draw(&r->drawing, s->engine->dtype, logits, s->weights, (uint64_t)r->n_words++);
    count_word(s, r);
    if (ends_text(s, r->word)) {
        finish(s, r, "stop");
        return false;
    }
    if (!tell_token(s, r, logits) || !add_word(s, r)) {
        fail(s, r, SERVE_FAILED, HTTP_FAILED, no_memory);
        return false;
    }
    if (r->tail.is_stopped || r->n_words == r->most) {
        finish(s, r, r->tail.is_stopped ? "stop" : "length");
        return false;
    }
    send_part(s, r);
    return true;
}

static void take_slots(gpt_schedule *s)
{
    for (int64_t i = 0; i < s->engine->options.slots; i++) {
        gpt_slot *slot = &s->slots[i];
        if (!slot->goes_on) continue;
        slot->place++;
        slot->is_wrong = !are_numbers(s, row_of(s->engine, i));
        if (!go_on(s, slot->request, row_of(s->engine, i))) leave(slot);
    }
}

/* The prompt went through: its last row says the first token. */
static void end_prompt(gpt_schedule *s)
{
    gpt_request *r = s->reading;
    gpt_slot *slot = &s->slots[s->slot];
    s->is_dirty = true;
    if (go_on(s, r, s->engine->chunk_logits)) {
        slot->goes_on = true, slot->place = (int32_t)r->inputs[0].n;
        s->joins = s->slot;
    } else {
        leave(slot);
    }
    s->reading = NULL, s->slot = -1;
}

/* ---- vectors: the mean of what the head would read ------------------------------------------------- */

static bool add_rows(gpt_schedule *s, gpt_request *r)
{
    const gpt_engine *e = s->engine;
    const int64_t width = e->shape.width;
    if (r->sums == NULL) r->sums = calloc((size_t)width, sizeof *r->sums);
    if (r->vectors == NULL)
        r->vectors = calloc((size_t)r->n_inputs * (size_t)width, sizeof *r->vectors);
    for (int64_t i = 0; r->sums && r->vectors && i < s->n_chunk * width; i++)
        r->sums[i % width] += weft_dtype_get(e->normed_dtype, e->normed, i);
    return r->sums && r->vectors;
}

static void end_input(gpt_schedule *s)
{
    gpt_request *r = s->reading;
    const int64_t width = s->engine->shape.width;
    float *vector = r->vectors + r->input * width;
    for (int64_t i = 0; i < width; i++)
        vector[i] = (float)(r->sums[i] / (double)r->inputs[r->input].n);
    memset(r->sums, 0, (size_t)width * sizeof *r->sums);
    s->is_dirty = true;
    r->n_read = 0;
    if (++r->input < r->n_inputs) return;
    finish(s, r, NULL);
    s->reading = NULL;
}

static void take_chunk(gpt_schedule *s)
{
    gpt_request *r = s->reading;
    if (s->part < s->engine->n_reads) return;
    s->part = 0;
    r->n_read += s->n_chunk;
    s->facts->counts.read += s->n_chunk;
    const bool is_end = r->n_read == (int64_t)r->inputs[r->input].n;
    if (r->kind->writes) {
        if (is_end) end_prompt(s);
        return;
    }
    if (!add_rows(s, r)) {
        fail(s, r, SERVE_FAILED, HTTP_FAILED, no_memory);
        s->reading = NULL, s->is_dirty = true;
    } else if (is_end) {
        end_input(s);
    }
}

void gpt_schedule_take(gpt_schedule *s)
{
    const int32_t does = *s->engine->tick.does;
    pthread_mutex_lock(&s->queue->lock);
    if (does & GPT_DECODES) take_slots(s);
    if (does & GPT_READS) take_chunk(s);
    serve_times_add(&s->facts->counts.ticks, app_seconds() - s->begun);
    pthread_mutex_unlock(&s->queue->lock);
}

/* ---- life ------------------------------------------------------------------------------------------- */

bool gpt_schedule_is_idle(const gpt_schedule *s)
{
    bool is_idle = s->reading == NULL && s->queue->n_waiting == 0;
    for (int64_t i = 0; i < s->engine->options.slots; i++)
        is_idle = is_idle && s->slots[i].request == NULL;
    return is_idle;
}

weft_status gpt_schedule_open(gpt_schedule *s, gpt_engine *engine, serve_queue *queue,
                              gpt_facts_served *facts, weft_error *error)
{
    const size_t slots = (size_t)engine->options.slots, words = (size_t)facts->n_words;
    *s = (gpt_schedule){.engine = engine, .queue = queue, .facts = facts, .slot = -1, .joins = -1};
    s->slots = calloc(slots, sizeof *s->slots);
    s->weights = malloc(words * sizeof *s->weights);
    facts->counts.n_slots = engine->options.slots;
    if (s->slots && s->weights) return WEFT_OK;
    return weft_fail_memory(error, words * sizeof *s->weights);
}

void gpt_schedule_close(gpt_schedule *s, const char *sentence)
{
    if (s->queue == NULL) return;
    pthread_mutex_lock(&s->queue->lock);
    serve_queue_refuse_waiting(s->queue, sentence);
    for (int64_t i = 0; s->slots && i < s->engine->options.slots; i++)
        if (s->slots[i].goes_on) fail(s, s->slots[i].request, SERVE_FAILED, HTTP_BUSY, sentence);
    if (s->reading) fail(s, s->reading, SERVE_FAILED, HTTP_BUSY, sentence);
    pthread_mutex_unlock(&s->queue->lock);
    free(s->slots);
    free(s->weights);
    *s = (gpt_schedule){0};
}
