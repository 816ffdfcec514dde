/* training: a whole training program, made of a table of options, a loss and data. */
#include "training.h"

weft_dtype app_training_dtype(const app_training *task)
{
    return settings_is(task->settings, "dtype", "f64") ? WEFT_F64 : WEFT_F32;
}

static weft_status make_graph(app_training *task, int which, weft_error *error)
{
    const uint64_t seed = (uint64_t)settings_count(task->settings, "seed");
    task->graph[which] = weft_graph_create(seed);
    return task->graph[which] ? WEFT_OK : weft_fail_memory(error, 0);
}

weft_status app_training_graph(app_training *task, weft_error *error)
{
    (void)!make_graph(task, APP_LOOKS, error);
    return weft_world_agree(error);
}

weft_status app_training_check_heads(const app_training *task, weft_error *error)
{
    const settings *s = task->settings;
    const long long width = settings_count(s, "width"), heads = settings_count(s, "heads");
    if (width % heads == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--width %lld --heads %lld: heads must divide width; take one of its divisors",
                     width, heads);
}

weft_status app_training_check_data(const app_training *task, const char *what, weft_error *error)
{
    if (*settings_text(task->settings, "data") != '\0') return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "there is no %s; name one with --data FILE", what);
}

weft_status app_training_fact(app_training *task, const char *name, int64_t number,
                              weft_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return weft_dataset_fact(task->data[APP_LEARNS], name, text, error);
}

weft_status app_training_look(app_training *task, weft_values values, weft_error *error)
{
    const weft_compile_options shared = {.share = task->program[APP_LEARNS]};
    return weft_compile(task->mesh, task->layout, values, &shared, &task->program[APP_LOOKS],
                        error);
}

/* What a run does: the update, and what is beside it. */
static weft_value all_of(app_training *task, const app_training_parts *parts, weft_value update)
{
    const weft_value none = {NULL, 0}, beside = parts->beside ? parts->beside(task) : none;
    return beside.id == 0 ? update : weft_group(update.graph, WEFT_VALUES(update, beside));
}

static const weft_optimizer *find_rule(const app_training *task, weft_error *error)
{
    return weft_optimizer_find(settings_text(task->settings, "optimizer"), error);
}

/* The optimizer's token, by the options; the loss. */
static weft_status build(app_training *task, const app_training_parts *parts, weft_value *loss,
                         weft_value *update, weft_error *error)
{
    weft_value rate;
    const int64_t n_steps = settings_count(task->settings, "steps");
    const weft_optimizer *rule = find_rule(task, error);
    *loss = parts->loss(task);
    const weft_dtype dtype = app_training_dtype(task);
    WEFT_TRY(app_rate(task->settings, task->graph[APP_LEARNS], dtype, n_steps + 1, &rate, error));
    if (parts->update) *update = parts->update(task, *loss, rate);
    if (parts->update && update->id != 0) return WEFT_OK;
    *update = weft_at(
        rule->name, WEFT_HERE,
        rule->build(*loss, &(weft_optimizer_options){
                               .rate_value = rate, .clip = settings_real(task->settings, "clip")}));
    return WEFT_OK;
}

/* An option that names nothing is told before data is looked for. */
static weft_status begin(app_training *task, const app_training_parts *parts, weft_error *error)
{
    if (!find_rule(task, error)) return error->status;
    if (make_graph(task, APP_LEARNS, error) == WEFT_OK && parts->begin)
        (void)!parts->begin(task, error);
    return weft_world_agree(error); /* a file may be missing on one host only */
}

static weft_status learn(app_training *task, const app_training_parts *parts, weft_error *error)
{
    weft_value loss, update;
    weft_program **program = &task->program[APP_LEARNS];
    WEFT_TRY(begin(task, parts, error));
    WEFT_TRY(build(task, parts, &loss, &update, error));
    update = all_of(task, parts, update);
    WEFT_TRY(
        weft_compile(task->mesh, task->layout, WEFT_VALUES(loss, update), NULL, program, error));
    if (parts->open(task, error) == WEFT_OK)
        (void)!weft_dataset_start(task->data[APP_LEARNS], *program, error);
    WEFT_TRY(weft_world_agree(error));
    const app_run_setup setup = {task->settings, *program, task->data[APP_LEARNS],
                                 settings_count(task->settings, "steps"), task->mark};
    WEFT_TRY(app_run_all(&task->run, &setup, loss, error));
    return parts->look && !task->run.is_stopped ? parts->look(task, error) : WEFT_OK;
}

static void destroy(app_training *task)
{
    for (int i = APP_PROGRAMS - 1; i >= 0; i--) {
        weft_dataset_close(&task->data[i]);
        weft_program_destroy(&task->program[i]);
        weft_graph_destroy(&task->graph[i]);
    }
}

int app_training_main(const app_training_parts *parts, void *own, int n, char **arguments)
{
    weft_error error = {.rank = -1};
    app_training task = {.own = own};
    task.settings = settings_read(parts->table, n - 1, arguments + 1, &error);
    if (task.settings && app_open(task.settings, &task.mesh, &task.layout, &error) == WEFT_OK)
        (void)!learn(&task, parts, &error);
    app_run_settle(&task.run, &error);
    app_run_close(&task.run);
    destroy(&task);
    if (parts->close) parts->close(&task);
    const bool is_stopped = task.run.is_stopped;
    const app_phase phase = task.run.is_running ? APP_RUNNING : APP_STARTING;
    const int code =
        app_close(parts->table, &task.settings, &task.mesh, &task.layout, phase, &error);
    return code == 0 && is_stopped ? APP_STOPPED : code;
}
