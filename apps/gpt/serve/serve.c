/* serve: the root listens and decides what a tick does; all ranks do it. */
#include "../../serve/host.h"
#include "../../serve/refusal.h"
#include "engine.h"
#include "schedule.h"

typedef struct serving {
    gpt_setup *setup;
    gpt_engine engine;
    serve_host host;
    gpt_facts_served facts; /* of the root, as the following */
    gpt_schedule schedule;
} serving;

/* ---- what it serves --------------------------------------------------------------------------------- */

static const serve_route routes[] = {
    {"/v1/completions", "POST", NULL, NULL, &gpt_texts_kind.base},
    {"/v1/embeddings", "POST", NULL, NULL, &gpt_vectors_kind.base},
};

static size_t longest_word(const gpt_setup *setup)
{
    size_t most = 1, n;
    for (int i = 0; setup->words && i < bpe_n_words(setup->words); i++) {
        (void)bpe_word(setup->words, i, &n);
        if (n > most) most = n;
    }
    return most;
}

static void find_facts(gpt_facts_served *facts, const gpt_setup *setup)
{
    *facts = (gpt_facts_served){
        .words = setup->words,
        .seq = setup->shape.seq,
        .width = setup->shape.width,
        .n_words = setup->words ? bpe_n_words(setup->words) : GPT_VOCAB,
        .longest = longest_word(setup),
    };
    serve_name(settings_text(setup->settings, "run"), "", facts->model, sizeof facts->model);
}

static weft_status open_root(serving *s, weft_error *error)
{
    const serve_service service = {routes, sizeof routes / sizeof *routes, serve_refusal,
                                   gpt_counts_write, &s->facts};
    find_facts(&s->facts, s->setup);
    WEFT_TRY(gpt_schedule_open(&s->schedule, &s->engine, &s->host.queue, &s->facts, error));
    return serve_host_open(&s->host, s->setup->settings, &service, error);
}

static weft_status open_all(serving *s, weft_error *error)
{
    const settings *set = s->setup->settings;
    const gpt_engine_options options = {settings_count(set, "slots"), settings_count(set, "chunk")};
    weft_error own = {.rank = -1};
    (void)gpt_setup_words(s->setup, &own);
    if (weft_world_agree(&own) == WEFT_OK)
        (void)!gpt_engine_open(&s->engine, s->setup, &options, &own);
    if (weft_world_agree(&own) == WEFT_OK && s->host.is_root) (void)!open_root(s, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static void tell_where(const serving *s)
{
    if (!s->host.is_root) return;
    printf("gpt serves %s at %s\n", s->facts.model, serve_http_address(s->host.http));
    fflush(stdout);
}

/* ---- ticks ------------------------------------------------------------------------------------------- */

static void plan(serving *s)
{
    serve_host_look(&s->host);
    pthread_mutex_lock(&s->host.queue.lock);
    if (gpt_schedule_is_idle(&s->schedule) && !s->schedule.is_dirty) serve_host_wait(&s->host);
    (void)gpt_schedule_plan(&s->schedule);
    if (gpt_schedule_is_idle(&s->schedule) && serve_host_is_over(&s->host))
        *s->engine.tick.does |= GPT_ENDS;
    pthread_mutex_unlock(&s->host.queue.lock);
}

static weft_status serve(serving *s, weft_error *error)
{
    bool is_over = false;
    while (!is_over) {
        WEFT_TRY(serve_host_find_end(&s->host, error));
        if (s->host.is_root) plan(s);
        WEFT_TRY(gpt_engine_run(&s->engine, error));
        if (s->host.is_root && *s->engine.tick.does) gpt_schedule_take(&s->schedule);
        is_over = *s->engine.tick.does & GPT_ENDS;
    }
    return WEFT_OK;
}

static void close_all(serving *s, const weft_error *error)
{
    gpt_schedule_close(&s->schedule, error->status == WEFT_OK
                                         ? "the server is about to end; ask another one"
                                         : "the server failed; its own messages say why");
    serve_host_close(&s->host);
    gpt_engine_close(&s->engine);
}

weft_status gpt_serve(gpt_setup *setup, weft_error *error)
{
    serving s = {.setup = setup};
    serve_host_begin(&s.host, weft_mesh_is_root(setup->mesh));
    weft_status status = open_all(&s, error);
    if (status == WEFT_OK) {
        tell_where(&s);
        status = serve(&s, error);
    }
    close_all(&s, error);
    return status;
}
