/* serve: the root listens and decides what a tick does; all ranks do it.
 *
 * Others wait for the root where it tells them, and it tells them twice a second that there is nothing to do: the watch would
 * take a longer silence for a rank that hangs.
 */
#include "engine.h"
#include "http.h"
#include "schedule.h"

#include <string.h>

static const double idle_time = 0.5, /* seconds without a tick */
    look_time = 0.1;                 /* between two looks at clients */

typedef struct serving {
    gpt_setup *setup;
    gpt_engine engine;
    gpt_server server; /* of the root, as the following */
    gpt_http *http;
    gpt_schedule schedule;
    stop_watch watch;
    double looked;
    bool is_root, has_server, is_ending;
} serving;

/* ---- what it serves --------------------------------------------------------------------------------- */

/* The last part of a path. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static size_t longest_word(const gpt_setup *setup)
{
    size_t most = 1, n;
    for (int i = 0; setup->words && i < bpe_n_words(setup->words); i++) {
        (void)bpe_word(setup->words, i, &n);
        if (n > most) most = n;
    }
    return most;
}

static gpt_facts_served facts_of(const gpt_setup *setup)
{
    const settings *s = setup->settings;
    return (gpt_facts_served){
        .model = name_of(settings_text(s, "run")),
        .words = setup->words,
        .seq = setup->shape.seq,
        .width = setup->shape.width,
        .n_words = setup->words ? bpe_n_words(setup->words) : GPT_VOCAB,
        .longest = longest_word(setup),
        .slots = settings_count(s, "slots"),
        .chunk = settings_count(s, "chunk"),
        .most_bytes = (size_t)settings_count(s, "most-body"),
        .most_wait = settings_count(s, "most-waiting"),
        .most_time = settings_seconds(s, "most-time"),
        .client_time = settings_seconds(s, "client-time"),
    };
}

static weft_status open_root(serving *s, weft_error *error)
{
    const settings *set = s->setup->settings;
    const gpt_facts_served facts = facts_of(s->setup);
    const gpt_http_options options = {settings_text(set, "host"), (int)settings_count(set, "port")};
    WEFT_TRY(gpt_server_open(&s->server, &facts, error));
    s->has_server = true;
    WEFT_TRY(gpt_schedule_open(&s->schedule, &s->engine, &s->server, error));
    return gpt_http_open(&s->http, &s->server, &options, error);
}

static weft_status open_all(serving *s, weft_error *error)
{
    const settings *set = s->setup->settings;
    const gpt_engine_options options = {settings_count(set, "slots"), settings_count(set, "chunk")};
    weft_error own = {.rank = -1};
    (void)gpt_setup_words(s->setup, &own);
    if (weft_world_agree(&own) == WEFT_OK)
        (void)!gpt_engine_open(&s->engine, s->setup, &options, &own);
    if (weft_world_agree(&own) == WEFT_OK && s->is_root) (void)!open_root(s, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static void tell_where(const serving *s)
{
    if (!s->is_root) return;
    printf("gpt serves %s at %s\n", s->server.facts.model, gpt_http_address(s->http));
    fflush(stdout);
}

/* ---- ticks ------------------------------------------------------------------------------------------- */

static void look(serving *s)
{
    const double now = app_seconds();
    if (now - s->looked < look_time) return;
    s->looked = now;
    gpt_http_look(s->http);
}

/* A signal that any rank got: no new requests; those that there are go on. */
static weft_status find_end(serving *s, weft_error *error)
{
    bool any;
    WEFT_TRY(weft_world_any(stop_watch_is_asked(), &any, error));
    if (!any || s->is_ending) return WEFT_OK;
    s->is_ending = true;
    if (s->is_root) gpt_http_refuse(s->http);
    return WEFT_OK;
}

static void plan(serving *s)
{
    look(s);
    pthread_mutex_lock(&s->server.lock);
    if (!s->is_ending && gpt_schedule_is_idle(&s->schedule) && !s->schedule.is_dirty)
        gpt_server_wait(&s->server, idle_time);
    (void)gpt_schedule_plan(&s->schedule);
    if (s->is_ending && gpt_schedule_is_idle(&s->schedule)) *s->engine.tick.does |= GPT_ENDS;
    pthread_mutex_unlock(&s->server.lock);
}

static weft_status serve(serving *s, weft_error *error)
{
    bool is_over = false;
    while (!is_over) {
        WEFT_TRY(find_end(s, error));
        if (s->is_root) plan(s);
        WEFT_TRY(gpt_engine_run(&s->engine, error));
        if (s->is_root && *s->engine.tick.does) gpt_schedule_take(&s->schedule);
        is_over = *s->engine.tick.does & GPT_ENDS;
    }
    return WEFT_OK;
}

static void close_all(serving *s, const weft_error *error)
{
    gpt_schedule_close(&s->schedule, error->status == WEFT_OK
                                         ? "the server is about to end; ask another one"
                                         : "the server failed; its own messages say why");
    gpt_http_close(&s->http, s->has_server ? s->server.facts.client_time : 0);
    if (s->has_server) gpt_server_close(&s->server);
    gpt_engine_close(&s->engine);
}

weft_status gpt_serve(gpt_setup *setup, weft_error *error)
{
    serving s = {.setup = setup, .is_root = weft_mesh_is_root(setup->mesh)};
    stop_survive_failed_writes();
    stop_watch_open(&s.watch, NULL, 0, 0);
    weft_status status = open_all(&s, error);
    if (status == WEFT_OK) {
        tell_where(&s);
        status = serve(&s, error);
    }
    close_all(&s, error);
    stop_watch_close();
    return status;
}
