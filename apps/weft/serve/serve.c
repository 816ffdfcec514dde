/* serve: the command, and what it serves: a file, by steps; a folder, by the program whose run it is. */
#include "serve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../run.h"
#include "../../text.h"
#include "../beside.h"
#include "../saved/saved.h"
#include "steps.h"

static const option options[] = {
    {"name", OPTION_TEXT, "", "NAME", "Options",
     "how clients call the program; without it, as its file, without .weft"},
    {"input", OPTION_LIST, "", "NAME=FILE ...", "Options",
     "inputs and variables that no request fills: a file of NumPy, x=x.npy, or a number"},
    OPENED_OPTIONS("Options"),
    SERVE_OPTIONS("Serving"),
};
const option_table serve_table = {
    .program = "weft serve",
    .usage = "weft serve FILE [options]   a saved program's outputs, by HTTP\n"
             "weft serve RUN [options]    a run of gpt: gpt serve --run RUN [options]\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "a saved program, or a run of gpt, asked over HTTP",
    .first = "name input checkpoint mesh layout host port most-waiting most-body most-time "
             "client-time",
};

/* ---- a run ------------------------------------------------------------------------------------------ */

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* Its run.json says whose it is; an import has a model.json. */
static weft_status check_run(const char *folder, weft_error *error)
{
    char path[4200], checkpoints[4096];
    json_t *run = NULL;
    snprintf(path, sizeof path, "%.4000s/run.json", folder);
    if (access(path, F_OK) == 0) WEFT_TRY(app_json_read(path, "a run", &run, error));
    const char *program = json_string_value(json_object_get(run, "program"));
    const bool is_gpt = program && strcmp(program, "gpt") == 0;
    json_decref(run);
    app_checkpoint_folder(folder, checkpoints, sizeof checkpoints);
    snprintf(path, sizeof path, "%.4000s/%s", checkpoints, APP_MODEL_FILE);
    if (is_gpt || access(path, F_OK) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.300s is a folder, and no run of gpt, which alone is served as a run; of "
                     "another program save the graph (weft_graph_save, docs/saved.md) and serve "
                     "that file",
                     folder);
}

/* gpt in place of this program; returns only when that fails. */
static weft_status hand_over(const char *folder, int n, char **arguments, weft_error *error)
{
    char gpt[4200];
    WEFT_TRY(check_run(folder, error));
    char **words = calloc((size_t)n + 5, sizeof *words);
    if (words == NULL) return weft_fail_memory(error, (size_t)n * sizeof *words);
    find_program("gpt", gpt, sizeof gpt);
    words[0] = gpt, words[1] = (char *)"serve", words[2] = (char *)"--run";
    words[3] = (char *)folder;
    memcpy(words + 4, arguments, (size_t)n * sizeof *words);
    (void)execvp(gpt, words);
    free(words);
    return weft_fail(error, WEFT_IO, "%.300s is a run of gpt, and %.300s cannot be started", folder,
                     gpt);
}

/* ---- a program -------------------------------------------------------------------------------------- */

typedef struct serving {
    opened o;
    served_facts facts;
    serve_host host;
    steps steps;
    char paths[3][600];
    serve_route routes[4];
    int n_routes;
} serving;

static void lay_routes(serving *s)
{
    const char *name = s->facts.name;
    snprintf(s->paths[0], sizeof s->paths[0], "/v1/models/%s:predict", name);
    snprintf(s->paths[1], sizeof s->paths[1], "/v1/models/%s/metadata", name);
    snprintf(s->paths[2], sizeof s->paths[2], "/v1/models/%s", name);
    s->n_routes = s->facts.has_vectors ? 4 : 3;
    s->routes[3] = (serve_route){"/v1/embeddings", "POST", NULL, NULL, &served_vectors_kind};
    s->routes[0] = (serve_route){s->paths[0], "POST", NULL, NULL, &served_kind};
    s->routes[1] = (serve_route){s->paths[1], "GET", "application/json", served_metadata, NULL};
    s->routes[2] = (serve_route){s->paths[2], "GET", "application/json", served_status, NULL};
}

static weft_status open_root(serving *s, weft_error *error)
{
    const char *name = settings_text(s->o.s, "name");
    if (*name)
        snprintf(s->facts.name, sizeof s->facts.name, "%s", name);
    else
        serve_name(s->o.path, ".weft", s->facts.name, sizeof s->facts.name);
    lay_routes(s);
    const serve_service service = {s->routes, s->n_routes, served_refuse, served_count, &s->facts};
    return serve_host_open(&s->host, s->o.s, &service, error);
}

static weft_status open_all(serving *s, weft_error *error)
{
    weft_error own = {.rank = -1};
    (void)!served_open(&s->facts, &s->o, givens_names, &own);
    if (weft_world_agree(&own) == WEFT_OK)
        (void)!steps_open(&s->steps, &s->o, &s->facts, &s->host, &own);
    if (weft_world_agree(&own) == WEFT_OK && s->host.is_root) (void)!open_root(s, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static void tell_where(const serving *s)
{
    char inputs[400];
    const served_facts *f = &s->facts;
    if (!s->host.is_root) return;
    served_print(f->inputs, f->n_inputs, inputs, sizeof inputs);
    printf("weft serves %s at %s%s, by %s\n", f->name, serve_http_address(s->host.http),
           s->paths[0], f->n_inputs > 0 ? inputs : "no inputs");
    if (f->rows > 0)
        printf("a step has %lld rows, %s\n", (long long)f->rows,
               f->is_joined ? "of one request or several" : "of one request");
    fflush(stdout);
}

static weft_status serve(serving *s, weft_world *world, weft_error *error)
{
    WEFT_TRY(opened_begin(&s->o, false, world, error));
    WEFT_TRY(opened_restore(&s->o, error));
    WEFT_TRY(givens_write(s->o.s, s->o.program, error));
    serve_host_begin(&s->host, weft_mesh_is_root(s->o.mesh));
    weft_status status = open_all(s, error);
    if (status == WEFT_OK) {
        tell_where(s);
        status = steps_serve(&s->steps, error);
    }
    steps_close(&s->steps, status == WEFT_OK ? "the server is about to end; ask another one"
                                             : "the server failed; its own messages say why");
    serve_host_close(&s->host);
    served_close(&s->facts);
    return status;
}

static int close_all(serving *s, const weft_error *error)
{
    const app_phase phase = s->facts.name[0] ? APP_RUNNING : APP_STARTING;
    opened_end(&s->o);
    return app_close(&serve_table, &s->o.s, &s->o.mesh, &s->o.layout, phase, error);
}

/* The word that is no option, in front: a folder is gpt's, which has options of its own. */
int serve_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    weft_world world;
    serving s = {.o = {.command = "weft serve"}};
    int n_operands = n > 0 && is_folder(arguments[0]);
    if (n_operands == 0) n_operands = options_operands(&serve_table, n, arguments, &error);
    const char *path = n_operands > 0 ? arguments[0] : "";
    if (n_operands == 1 && is_folder(path))
        (void)!hand_over(path, n - 1, arguments + 1, &error);
    else if (error.status == WEFT_OK)
        s.o.s = settings_read(&serve_table, n - n_operands, arguments + n_operands, &error);
    s.o.path = path;
    if (s.o.s && n_operands != 1)
        (void)!weft_fail(&error, WEFT_USAGE,
                         "weft serve takes one saved program, or one run of gpt, and here %s; "
                         "write weft serve FILE",
                         n_operands == 0 ? "none is named" : "several are named");
    else if (s.o.s)
        (void)!serve(&s, &world, &error);
    return close_all(&s, &error);
}
