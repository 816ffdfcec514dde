/* training: a whole training program, made of a table of options, a loss and data. */
#include "training.h"

#include "advise.h"

#include <string.h>

int64_t app_training_last(const app_training *training)
{
    const int64_t steps = settings_count(training->settings, "steps"),
                  until = settings_count(training->settings, "until");
    return until > 0 && until < steps ? until : steps;
}

weft_dtype app_training_dtype(const app_training *training)
{
    return settings_is(training->settings, "dtype", "f64") ? WEFT_F64 : WEFT_F32;
}

static weft_status make_graph(app_training *training, int which, weft_error *error)
{
    const uint64_t seed = (uint64_t)settings_count(training->settings, "seed");
    training->graph[which] = weft_graph_create(seed);
    return training->graph[which] ? WEFT_OK : weft_fail_memory(error, 0);
}

weft_status app_training_graph(app_training *training, weft_error *error)
{
    (void)!make_graph(training, APP_LOOKS, error);
    return weft_world_agree(error);
}

weft_status app_training_check_heads(const app_training *training, weft_error *error)
{
    const settings *s = training->settings;
    const long long width = settings_count(s, "width"), heads = settings_count(s, "heads");
    if (width % heads == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--width %lld --heads %lld: heads must divide width; take one of its divisors",
                     width, heads);
}

weft_status app_training_check_data(const app_training *training, const char *what,
                                    weft_error *error)
{
    if (*settings_text(training->settings, "data") != '\0') return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "there is no %s; name one with --data FILE", what);
}

weft_status app_training_fact(app_training *training, const char *name, int64_t number,
                              weft_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return weft_dataset_fact(training->data[APP_LEARNS], name, text, error);
}

weft_status app_training_look(app_training *training, weft_values values, weft_error *error)
{
    const weft_compile_options shared = {.share = training->program[APP_LEARNS]};
    return weft_compile(training->mesh, training->layout, values, &shared,
                        &training->program[APP_LOOKS], error);
}

/* What a run does: the update, and what is beside it. */
static weft_value all_of(app_training *training, const app_training_parts *parts, weft_value update)
{
    const weft_value none = {NULL, 0}, beside = parts->beside ? parts->beside(training) : none;
    return beside.id == 0 ? update : weft_group(update.graph, WEFT_VALUES(update, beside));
}

static const weft_optimizer *find_rule(const app_training *training, weft_error *error)
{
    return weft_optimizer_find(settings_text(training->settings, "optimizer"), error);
}

/* What a training is made of, and what is read after each step. */
typedef struct made {
    weft_value loss, update, rate, norm; /* norm: the invalid value where no optimizer makes it */
} made;

/* The optimizer's token, by the options; the loss. */
static weft_status build(app_training *training, const app_training_parts *parts, made *m,
                         weft_error *error)
{
    const int64_t n_steps = settings_count(training->settings, "steps");
    const weft_optimizer *rule = find_rule(training, error);
    *m = (made){.loss = parts->loss(training)};
    const weft_dtype dtype = app_training_dtype(training);
    WEFT_TRY(app_rate(training->settings, training->graph[APP_LEARNS], dtype, n_steps + 1, &m->rate,
                      error));
    if (parts->update) m->update = parts->update(training, m->loss, m->rate);
    if (parts->update && m->update.id != 0) return WEFT_OK;
    const bool is_shown = app_board_is_wanted(training->settings);
    m->update = weft_at(
        rule->name, WEFT_HERE,
        rule->build(m->loss,
                    &(weft_optimizer_options){.rate_value = m->rate,
                                              .gradient_norm = is_shown ? &m->norm : NULL,
                                              .clip = settings_real(training->settings, "clip")}));
    return WEFT_OK;
}

/* An option that names nothing is told before data is looked for. */
static weft_status begin(app_training *training, const app_training_parts *parts, weft_error *error)
{
    if (!find_rule(training, error)) return error->status;
    if (make_graph(training, APP_LEARNS, error) == WEFT_OK && parts->begin)
        (void)!parts->begin(training, error);
    return weft_world_agree(error); /* a file may be missing on one host only */
}

/* What is read after a step: the loss, and for TensorBoard the rate and the norm of the gradient besides. */
static app_run_reads reads_of(const app_training *training, const made *m)
{
    app_run_reads reads = {.values = {m->loss}, .names = {"loss"}, .n = 1};
    if (!app_board_is_wanted(training->settings)) return reads;
    reads.values[reads.n] = m->rate;
    reads.names[reads.n++] = "rate";
    if (m->norm.id == 0) return reads;
    reads.values[reads.n] = m->norm;
    reads.names[reads.n++] = "grad_norm";
    return reads;
}

/* What a step's program is compiled for: what is read after it, and the update. Returns how many. */
static int values_of(app_training *training, const app_training_parts *parts, const made *m,
                     app_run_reads *reads, weft_value values[APP_MOST_READ + 1])
{
    *reads = reads_of(training, m);
    for (int i = 0; i < reads->n; i++)
        values[i] = reads->values[i];
    values[reads->n] = all_of(training, parts, m->update);
    return reads->n + 1;
}

static weft_status compile(app_training *training, const app_training_parts *parts,
                           app_run_reads *reads, weft_error *error)
{
    const settings *s = training->settings;
    weft_machine_model *machine;
    weft_value values[APP_MOST_READ + 1];
    made m;
    WEFT_TRY(begin(training, parts, error));
    WEFT_TRY(build(training, parts, &m, error));
    const int n = values_of(training, parts, &m, reads, values);
    WEFT_TRY(app_machine(s, training->mesh, &machine, error));
    const weft_compile_options options = {.machine = machine,
                                          .explain = settings_flag(s, "explain")};
    const weft_status status =
        weft_compile(training->mesh, training->layout, (weft_values){values, n}, &options,
                     &training->program[APP_LEARNS], error);
    weft_machine_model_destroy(&machine);
    return status;
}

/* ---- other choices ---------------------------------------------------------------------------------- */

typedef struct looking {
    const app_training *training;
    const app_training_parts *parts;
    app_search search;
} looking;

/* The graph alone: what begin has made is there once for all. */
static weft_status build_choice(void *context, const weft_choice *choice, weft_built_graph *built,
                                weft_error *error)
{
    const looking *l = context;
    app_training other = {.own = l->training->own};
    app_run_reads reads;
    made m;
    other.settings = app_search_settings(&l->search, choice, error);
    if (!other.settings) return error->status;
    weft_status status = make_graph(&other, APP_LEARNS, error);
    if (status == WEFT_OK) status = build(&other, l->parts, &m, error);
    if (status == WEFT_OK) {
        built->n_values = values_of(&other, l->parts, &m, &reads, built->values);
        const weft_error *first = weft_graph_error(other.graph[APP_LEARNS]);
        if (first->status != WEFT_OK)
            status = weft_fail(error, first->status, "%s", first->message);
    }
    built->graph = other.graph[APP_LEARNS];
    settings_destroy(&other.settings);
    return status;
}

/* `l` stays where it is. */
static void look_around(const app_training *training, const app_training_parts *parts, looking *l)
{
    *l = (looking){.training = training, .parts = parts};
    l->search = (app_search){.settings = training->settings,
                             .command = parts->table->program,
                             .build = build_choice,
                             .context = l,
                             .hints = parts->hints,
                             .layers = settings_count(training->settings, "layers")};
    static const char *const dtypes[] = {"f32", "f64"};
    app_search_word_knob(&l->search, "dtype", dtypes, sizeof dtypes / sizeof *dtypes);
    app_search_knob(&l->search, "batch", false, NULL, 0, 0);
}

/* The one change that would help most. */
static void tell_advice(const looking *l, const weft_program *program)
{
    char text[APP_ADVICE_BYTES];
    weft_error error = {.rank = -1};
    (void)!app_advise_line(&l->search, program, 0, text, &error);
    if (error.status != WEFT_OK) fprintf(stderr, "%s\n", error.message);
    if (*text) printf("\n%s\n", text);
}

/* The same at the end, from the root, while the other processes wait. */
static void tell_end(const app_training *training, const app_training_parts *parts)
{
    char text[APP_ADVICE_BYTES];
    weft_error error = {.rank = -1};
    looking l;
    if (!weft_mesh_is_root(training->mesh)) return;
    look_around(training, parts, &l);
    (void)!app_advise_end(&l.search, training->program[APP_LEARNS], &training->run.spent,
                          training->run.step, text, &error);
    if (*text) puts(text);
    if (error.status != WEFT_OK) fprintf(stderr, "%s\n", error.message);
}

/* ---- held-out data ---------------------------------------------------------------------------------- */

static weft_status compile_held(app_training *training, weft_error *error)
{
    const weft_compile_options shared = {.share = training->program[APP_LEARNS]};
    return app_held_compile(&training->held, training->mesh, training->layout, &shared, error);
}

static weft_status make_held(app_training *training, const app_training_parts *parts, bool has_data,
                             weft_error *error)
{
    app_held *held = &training->held;
    held->graph = weft_graph_create((uint64_t)settings_count(training->settings, "seed"));
    if (!held->graph) return weft_fail_memory(error, 0);
    WEFT_TRY(parts->hold(training, has_data, error));
    if (has_data) WEFT_TRY(app_feed(training->settings, training->mesh, held->data, error));
    return has_data ? app_held_count(held, training->settings, error) : WEFT_OK;
}

static weft_status hold(app_training *training, const app_training_parts *parts, weft_error *error)
{
    if (!app_held_is_wanted(training->settings)) return WEFT_OK;
    (void)!make_held(training, parts, true, error);
    WEFT_TRY(weft_world_agree(error)); /* a file may be missing on one host only */
    return compile_held(training, error);
}

/* For the plan of a step: data need not be there. */
static weft_status compile_held_plan(app_training *training, const app_training_parts *parts,
                                     weft_error *error)
{
    if (!app_held_is_wanted(training->settings)) return WEFT_OK;
    WEFT_TRY(make_held(training, parts, false, error));
    return compile_held(training, error);
}

/* The plan of a step, in place of all that would follow. All processes come to the same. */
static weft_status plan(app_training *training, const app_training_parts *parts,
                        const weft_world *world, weft_error *error)
{
    app_run_reads reads;
    const settings *s = training->settings;
    looking l;
    weft_status status = compile(training, parts, &reads, error);
    look_around(training, parts, &l);
    app_advising advising = {&l.search, training->program[APP_LEARNS]};
    const app_plan_asked asked = {
        .advise = app_advise_list, .context = &advising, .held = &training->held};
    if (status == WEFT_OK) status = compile_held_plan(training, parts, error);
    if (status == WEFT_OK) status = app_plan(s, world, advising.program, &asked, error);
    const bool is_text = settings_flag(s, "dry-run") && !settings_flag(s, "json");
    if (status == WEFT_OK && is_text && weft_world_is_root())
        status = app_held_plan(&training->held, s, error);
    if (status == WEFT_OK && is_text && weft_world_is_root()) tell_advice(&l, advising.program);
    return weft_world_agree(error);
}

static weft_status open_data(app_training *training, const app_training_parts *parts,
                             weft_error *error)
{
    WEFT_TRY(parts->open(training, error));
    for (int i = 0; i < APP_PROGRAMS; i++)
        WEFT_TRY(app_feed(training->settings, training->mesh, training->data[i], error));
    return WEFT_OK;
}

static weft_status learn(app_training *training, const app_training_parts *parts, weft_error *error)
{
    app_run_reads reads;
    weft_program **program = &training->program[APP_LEARNS];
    WEFT_TRY(compile(training, parts, &reads, error));
    if (open_data(training, parts, error) == WEFT_OK)
        (void)!weft_dataset_start(training->data[APP_LEARNS], *program, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(hold(training, parts, error));
    const app_run_setup setup = {
        .settings = training->settings,
        .program = *program,
        .data = training->data[APP_LEARNS],
        .last = app_training_last(training),
        .mark = training->mark,
        .of = {.loss = reads.values[0]},
        .items = (double)settings_count(training->settings, "batch"),
        .unit = "samples",
        .looks = {training->held.program, "held-out", training->held.n_batches},
        .held = &training->held};
    WEFT_TRY(app_run_all(&training->run, &setup, &reads, error));
    tell_end(training, parts);
    return parts->look && !training->run.is_stopped ? parts->look(training, error) : WEFT_OK;
}

static weft_status search(app_training *training, const app_training_parts *parts,
                          const weft_world *world, weft_error *error)
{
    looking l;
    look_around(training, parts, &l);
    l.search.world = world;
    WEFT_TRY(begin(training, parts, error));
    if (weft_world_is_root()) (void)!app_search_run(&l.search, error);
    return weft_world_agree(error);
}

static weft_status work(app_training *training, const app_training_parts *parts, bool is_search,
                        weft_error *error)
{
    weft_world world;
    const bool is_plan = is_search || app_only_plans(training->settings);
    WEFT_TRY(
        app_open(training->settings, is_plan, &world, &training->mesh, &training->layout, error));
    if (is_search) return search(training, parts, &world, error);
    return is_plan ? plan(training, parts, &world, error) : learn(training, parts, error);
}

static void destroy(app_training *training)
{
    app_held_close(&training->held);
    for (int i = APP_PROGRAMS - 1; i >= 0; i--) {
        weft_dataset_close(&training->data[i]);
        weft_program_destroy(&training->program[i]);
        weft_graph_destroy(&training->graph[i]);
    }
}

int app_training_main(const app_training_parts *parts, void *own, int n, char **arguments)
{
    weft_error error = {.rank = -1};
    app_training training = {.own = own};
    const bool is_search = n > 1 && strcmp(arguments[1], "search") == 0;
    const int words = 1 + is_search;
    training.settings = settings_read(parts->table, n - words, arguments + words, &error);
    if (training.settings && app_search_check(training.settings, is_search, &error) == WEFT_OK &&
        app_plan_check(training.settings, &error) == WEFT_OK &&
        app_board_check(training.settings, &error) == WEFT_OK &&
        app_held_check(training.settings, &error) == WEFT_OK)
        (void)!work(&training, parts, is_search, &error);
    app_run_settle(&training.run, &error);
    app_run_close(&training.run);
    destroy(&training);
    if (parts->close) parts->close(&training);
    const bool is_stopped = training.run.is_stopped;
    const app_phase phase = training.run.is_running ? APP_RUNNING : APP_STARTING;
    const int code = app_close(parts->table, &training.settings, &training.mesh, &training.layout,
                               phase, &error);
    return code == 0 && is_stopped ? APP_STOPPED : code;
}
