/* gpt: train a transformer over bytes, or words, on any mesh under any layout, and let it write.
 *
 * Alone, the ranks of the mesh are threads of this process; under mpirun or srun every process is
 * one rank.
 */
#include "../feed.h"
#include "../metrics.h"
#include "../plan.h"
#include "../advise.h"
#include "../rate.h"
#include "../serve/host.h"
#include "held_text.h"
#include "search.h"

#include <string.h>

static const option options[] = {
    {"data", OPTION_TEXT, "", "FILES", "Data",
     "text to learn, read as bytes; 'books/*.txt', or with weights a.txt:0.7,b.jsonl:0.3; without "
     "it, "
     "Weft's own sources"},
    {"field", OPTION_TEXT, "", "NAME", "Data",
     "of JSON lines, CSV and Parquet: the field with the text; without it, text, or the only one"},
    {"pack", OPTION_FLAG, "no", "", "Data",
     "records are documents, of which windows hold several; none is cut that fits into a window, "
     "and none attends to another"},
    {"index", OPTION_TEXT, "", "DIR", "Data",
     "folder where --pack keeps which document is in which window, and --tokens how many words "
     "each has, for the next start; without it, nowhere"},
    {"tokens", OPTION_TEXT, "", "DIR", "Data",
     "words instead of bytes: a vocabulary; texts are encoded as they are read, unless they are "
     "what weft tokens encode made with it"},
    APP_HELD_OPTIONS("Data", "FILES",
                     "such a text that nothing is learned from; its loss is told at the end"),
    {"seed", OPTION_COUNT, "1", "N", "Data",
     "of initial weights, dropout, order of samples, sampling"},

    {"mesh", OPTION_TEXT, "", "AXES", "Where it runs",
     "named axes of ranks, as data:2,model:2; without it, data:N for N processes"},
    {"layout", OPTION_TEXT, "", "RULES", "Where it runs",
     "what splits over what, as batch:data,hidden:model; dims are batch seq embed heads group "
     "kv hidden vocab stage experts"},
    {"zero", OPTION_CHOICE, "0", "STAGE", "Where it runs",
     "shard over the axes that split batch: 1 optimizer state, 2 sums of gradients too "
     "(--accumulate), 3 parameters too",
     "0 1 2 3"},
    {"strict", OPTION_FLAG, "no", "", "Where it runs",
     "a rule that does not apply somewhere is an error"},
    {"synchronous", OPTION_FLAG, "no", "", "Where it runs",
     "finish each exchange before the next step, in place of computing meanwhile"},
    {"link", OPTION_TEXT, "", "SPEEDS", "Where it runs",
     "bytes a second of a rank's link, and latency: 1GB+50us, data:125MB,model:10GB; or measured: "
     "when the run begins, once"},
    APP_READERS_OPTION("Where it runs"),
    APP_EXTEND_OPTIONS("Where it runs"),

    {"layers", OPTION_COUNT, "4", "N", "Model", "transformer blocks", NULL, 1},
    {"width", OPTION_COUNT, "128", "N", "Model", "of the residual stream", NULL, 1},
    {"hidden", OPTION_COUNT, "0", "N", "Model", "of the MLP; 0: 4 times the width"},
    {"heads", OPTION_COUNT, "4", "N", "Model", "of attention; must divide width", NULL, 1},
    {"head-dim", OPTION_COUNT, "0", "N", "Model", "numbers of a head; 0: width / heads"},
    {"kv-heads", OPTION_COUNT, "0", "N", "Model",
     "of keys and values, each of which heads / N heads share; must divide heads; 0: as many as "
     "heads"},
    {"rope", OPTION_FLAG, "no", "", "Model", "rotary positions in place of learned ones"},
    {"rope-base", OPTION_REAL, "10000", "X", "Model",
     "how slowly the last of its pairs turns: by a place less than 1 / X"},
    {"rope-factor", OPTION_REAL, "1", "X", "Model",
     "pairs turn X times slower, for windows so much longer than those first learned from"},
    {"rope-rows", OPTION_REAL, "0", "N", "Model",
     "N tokens in such a first window: pairs that turn more than --rope-high times in it stay as "
     "they are; 0: all turn slower"},
    {"rope-low", OPTION_REAL, "1", "X", "Model",
     "pairs that turn less in --rope-rows turn slower, and those between are mixed"},
    {"rope-high", OPTION_REAL, "4", "X", "Model", "see --rope-rows"},
    {"norm", OPTION_CHOICE, "layer", "KIND", "Model",
     "of what enters attention, MLPs and the head: layer, by mean and deviation, or rms, by the "
     "root of the mean square, without biases",
     "layer rms"},
    {"epsilon", OPTION_REAL, "1e-5", "X", "Model",
     "what norms add to the variance, or to the mean square"},
    {"activation", OPTION_CHOICE, "gelu", "NAME", "Model",
     "of the MLP: gelu is its tanh form, gelu_erf gelu itself",
     "gelu gelu_erf silu relu tanh sigmoid"},
    {"gated", OPTION_FLAG, "no", "", "Model",
     "the MLP's first layer times a second one, which alone has the activation; with silu SwiGLU"},
    {"biases", OPTION_CHOICE, "mlp", "WHERE", "Model",
     "which layers have them: those of the MLP, all, attention's too, or none", "mlp all none"},
    {"vocab", OPTION_COUNT, "0", "N", "Model",
     "rows of the table of tokens, where it has more than there are words; 0: as many"},
    {"tie", OPTION_FLAG, "no", "", "Model", "one table for tokens that are read and for the head"},
    {"seq", OPTION_COUNT, "64", "N", "Model", "bytes in a window, or words", NULL, 1},
    {"experts", OPTION_COUNT, "1", "N", "Model",
     "N MLPs in each block, of which each token goes through few; experts:data in --layout splits "
     "them",
     NULL, 1},
    {"top-k", OPTION_COUNT, "1", "K", "Model",
     "experts that each token goes through, their gates adding up to 1", NULL, 1},
    {"capacity", OPTION_REAL, "1.25", "X", "Model",
     "places of an expert in each window, 1 for an even share of its tokens; who finds none is "
     "dropped; 0: every expert computes every token"},
    {"route", OPTION_CHOICE, "tokens", "WHO", "Model",
     "who chooses: tokens their experts, or experts their tokens, later ones of the window too",
     "tokens experts"},
    {"balance", OPTION_REAL, "0.01", "X", "Model",
     "weight of what is least where experts have even loads, in the loss"},
    {"dropout", OPTION_REAL, "0.1", "X", "Model", "probability of dropping a number"},
    {"dtype", OPTION_CHOICE, "f32", "TYPE", "Model",
     "numbers to compute in; with bf16 and f16, weights, their updates, sums and the loss are f32",
     "f32 f64 bf16 f16"},
    {"precision", OPTION_CHOICE, "f32", "TYPE", "Model",
     "what products of f32 are computed with, where the device is faster with less: cuda has all",
     "f32 tf32 bf16"},

    {"steps", OPTION_COUNT, "200", "N", "Training", "length of training and of the rate's schedule",
     NULL, 1},
    {"until", OPTION_COUNT, "0", "N", "Training",
     "stop after this step, the schedule unchanged; 0: at the end"},
    {"batch", OPTION_COUNT, "16", "N", "Training", "windows a step, over all ranks", NULL, 1},
    {"optimizer", OPTION_TEXT, "adamw", "NAME", "Training",
     "sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw, adamax, adafactor, "
     "lamb, lion, shampoo or muon"},
    {"groups", OPTION_TEXT, "", "GROUPS", "Training",
     "weights that go otherwise, by patterns of their names: *.bias:decay=0;bytes:rate=0.3, and "
     "optimizer=NAME; the first that matches counts"},
    {"rate", OPTION_REAL, "1e-3", "X", "Training", "highest learning rate"},
    APP_RATE_OPTIONS("Training", "20", "0.1"),
    {"accumulate", OPTION_COUNT, "1", "N", "Training",
     "go through a step's windows in N micro-batches: the memory of one, the numbers of all", NULL,
     1},
    {"recompute", OPTION_FLAG, "no", "", "Training",
     "compute each block again on the way back, in place of keeping its values"},
    {"scan-layers", OPTION_FLAG, "no", "", "Training",
     "compile one block, which goes through the weights of all: a plan as long for 96 layers as "
     "for 4"},
    {"stages", OPTION_COUNT, "1", "N", "Training",
     "layers in N stages, which micro-batches go through one behind the other; stage:pipe in "
     "--layout splits them",
     NULL, 1},
    {"micro", OPTION_COUNT, "1", "N", "Training",
     "micro-batches of a step's windows that go through the stages", NULL, 1},
    {"halves", OPTION_FLAG, "no", "", "Training",
     "micro-batches go through the stages in halves, in turn: one goes on while the other "
     "computes"},
    {"clip", OPTION_REAL, "1.0", "X", "Training", "largest norm of the gradient; 0: any"},
    {"clip-by", OPTION_TEXT, "global_norm", "KIND", "Training",
     "what --clip is of: global_norm, norm (each weight's), value or adaptive"},
    {"average", OPTION_REAL, "0", "X", "Training",
     "keep means of the weights, X of themselves at each step (0.999), and write text by them; "
     "0: none"},

    APP_RUN_OPTIONS,

    {"run", OPTION_TEXT, "runs/gpt", "DIR", "Output",
     "folder for run.json, log.txt, metrics.jsonl and checkpoints"},
    APP_METRICS_OPTION("Output"),
    {"every", OPTION_COUNT, "10", "N", "Output", "steps between two lines of progress", NULL, 1},
    APP_TRACE_OPTION("Output"),
    {"quiet", OPTION_FLAG, "no", "", "Output", "no settings and no progress on stderr"},
    {"sample", OPTION_COUNT, "0", "N", "Output",
     "bytes of text to write, or words; gpt sample: 500"},
    {"prompt", OPTION_TEXT, "", "TEXT", "Output", "what that text begins with"},
    {"logits", OPTION_TEXT, "", "FILE", "Output",
     "gpt sample: write what the model says of each token of the prompt, as .npy of f32"},
    {"temperature", OPTION_REAL, "0.8", "X", "Output",
     "below 1 the text is safer, above it wilder; 0: always the likeliest"},
    APP_PLAN_OPTIONS("Output"),
    APP_ADVICE_OPTION("Output"),
    APP_SEARCH_OPTIONS("Search"),
    {"dump", OPTION_TEXT, "", "PASS", "Output",
     "print what a pass made of the program: place, fuse, schedule or another one"},
    {"config", OPTION_TEXT, "", "FILE", "Output", "read settings from here first"},

    {"slots", OPTION_COUNT, "8", "N", "Serving", "texts that go on at once", NULL, 1, 1024},
    {"chunk", OPTION_COUNT, "8", "N", "Serving",
     "tokens of a prompt that go through the layers together", NULL, 1, 4096},
    SERVE_OPTIONS("Serving"),
};

static const option_table table = {
    .program = "gpt",
    .usage = "gpt train [options]    train a transformer on a text; again, to continue\n"
             "gpt sample [options]   print text by the model that was trained into --run DIR\n"
             "gpt serve [options]    answer requests by that model over HTTP\n"
             "gpt search [options]   find the quickest mesh, layout and options on a machine\n"
             "\n"
             "  gpt train --data book.txt --mesh data:2,model:2 \\\n"
             "      --layout batch:data,hidden:model,heads:model,vocab:model\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "train a transformer over bytes or words on any mesh, and let it write",
    .first = "data eval-data mesh layout zero layers width heads seq steps batch rate run sample "
             "dry-run config",
    .commands = "train sample serve search",
};

/* ---- the plan ----------------------------------------------------------------------------------
 */

/* What the plan cannot know: of its work, how much is done on nothing. */
static weft_status print_bubbles(const gpt_setup *setup, weft_error *error)
{
    const long long stages = setup->shape.stages, micro = setup->shape.micro;
    const long long ticks = stages + micro - 1;
    weft_usage usage;
    if (stages == 1) return WEFT_OK;
    WEFT_TRY(weft_plan_usage(setup->program, 0, &usage, error));
    printf("\nstages: %lld, through which %lld micro-batch%s in %lld ticks: bubbles are %.1f %%; "
           "rank 0 keeps %.1f MiB for the backward pass\n",
           stages, micro, micro == 1 ? " goes" : "es go", ticks,
           100.0 * (double)(stages - 1) / (double)ticks, (double)usage.kept_bytes / 1048576.0);
    return WEFT_OK;
}

/* The one change that would help most. */
static weft_status print_advice(const gpt_setup *setup, weft_error *error)
{
    char text[APP_ADVICE_BYTES];
    app_search search;
    gpt_search_open(setup->settings, &search);
    WEFT_TRY(app_advise_line(&search, setup->program, 0, text, error));
    if (*text) printf("\n%s\n", text);
    return WEFT_OK;
}

static weft_status plan(gpt_setup *setup, const weft_world *world, weft_error *error)
{
    const char *mesh = settings_text(setup->settings, "mesh");
    WEFT_TRY(weft_mesh_plan(mesh, &setup->mesh, error));
    WEFT_TRY(gpt_setup_build(setup, error));
    WEFT_TRY(gpt_setup_compile(setup, error));
    app_search search;
    gpt_search_open(setup->settings, &search);
    app_advising advising = {&search, setup->program};
    WEFT_TRY(gpt_held_compile(setup, error));
    const app_plan_asked asked = {gpt_setup_pipe(setup), app_advise_list, &advising, &setup->held};
    WEFT_TRY(app_plan(setup->settings, world, setup->program, &asked, error));
    const bool is_text =
        settings_flag(setup->settings, "dry-run") && !settings_flag(setup->settings, "json");
    if (!weft_world_is_root() || !is_text) return WEFT_OK;
    WEFT_TRY(print_bubbles(setup, error));
    WEFT_TRY(app_held_plan(&setup->held, setup->settings, error));
    return print_advice(setup, error);
}

/* ---- training ----------------------------------------------------------------------------------
 */

static weft_status train_and_sample(gpt_setup *setup, weft_error *error)
{
    const int64_t bytes = settings_count(setup->settings, "sample");
    WEFT_TRY(gpt_train(setup, error));
    return bytes > 0 && !setup->run.is_stopped ? gpt_sample(setup, bytes, error) : WEFT_OK;
}

static weft_status sample(gpt_setup *setup, weft_error *error)
{
    return gpt_sample(setup, settings_count(setup->settings, "sample"), error);
}

typedef weft_status (*phase)(gpt_setup *, weft_error *);
enum { MAX_PHASES = 6 };
static const phase training[MAX_PHASES] = {gpt_setup_build, gpt_setup_compile, gpt_setup_data,
                                           gpt_held_open, train_and_sample};
static const phase sampling[MAX_PHASES] = {gpt_stored_check, gpt_setup_layout, sample};
static const phase serving[MAX_PHASES] = {gpt_stored_check, gpt_setup_layout, gpt_serve};

/* Whatever one process meets, all leave after the same phase. */
static weft_status run(gpt_setup *setup, const phase *phases, const weft_world *world,
                       weft_error *error)
{
    (void)!weft_mesh_create(world, settings_text(setup->settings, "mesh"), &setup->mesh, error);
    WEFT_TRY(weft_world_agree(error));
    for (int i = 0; phases[i]; i++) {
        phases[i](setup, error);
        WEFT_TRY(weft_world_agree(error));
    }
    return WEFT_OK;
}

/* Ranks that do different things would wait for each other for ever. */
static weft_status agree_on_work(const settings *s, const phase *phases, weft_error *error)
{
    const bool is_plan = app_only_plans(s);
    const bool mine[] = {is_plan, !is_plan && phases == training, !is_plan && phases == sampling,
                         !is_plan && phases == serving};
    int n = 0;
    WEFT_TRY(weft_world_agree(error));
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        bool any;
        WEFT_TRY(weft_world_any(mine[i], &any, error));
        n += any;
    }
    if (n == 1) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "some ranks were started to train and others to sample, to serve or with --dry-run; "
        "give all ranks the same command");
}

static weft_status work(gpt_setup *setup, const phase *phases, weft_error *error)
{
    weft_world world;
    WEFT_TRY(gpt_setup_check(setup, error));
    WEFT_TRY(app_join(&world, error));
    (void)!app_extend(setup->settings, error);
    WEFT_TRY(agree_on_work(setup->settings, phases, error));
    if (!app_only_plans(setup->settings)) return run(setup, phases, &world, error);
    if (weft_world_is_root() || *settings_text(setup->settings, "calibrate"))
        (void)!plan(setup, &world, error);
    return weft_world_agree(error);
}

/* The library speaks of its functions and fields; here options stand for them. */
static void name_options(weft_error *error)
{
    static const char *const names[][2] = {
        {"strict of the compile options", "; here strict is --strict"},
        {"weft_mesh_plan", "; here that is --dry-run"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(error->message, names[i][0]))
            strncat(error->message, names[i][1],
                    sizeof error->message - strlen(error->message) - 1);
}

/* Looking for a layout is the root's work alone. */
static int look_for(const settings *s)
{
    weft_error error = {.rank = -1};
    weft_world world;
    if (app_join(&world, &error) == WEFT_OK && app_extend(s, &error) == WEFT_OK &&
        weft_world_is_root())
        (void)!gpt_search(s, &world, &error);
    return app_leave(table.program, APP_STARTING, &error);
}

static int carry_out(const settings *s, const phase *phases)
{
    weft_error error = {.rank = -1};
    gpt_setup setup = {.settings = s};
    (void)!work(&setup, phases, &error);
    name_options(&error);
    gpt_setup_close(&setup);
    const int code =
        app_leave(table.program, setup.run.is_running ? APP_RUNNING : APP_STARTING, &error);
    return code == 0 && setup.run.is_stopped ? APP_STOPPED : code;
}

/* ---- the command line --------------------------------------------------------------------------
 */

typedef struct command {
    const char *name;
    weft_status (*defaults)(settings *, weft_error *); /* other than the table's; NULL: none */
    const phase *phases;                               /* NULL: it only plans */
} command;

static const command commands[] = {{"train", gpt_model_defaults, training},
                                   {"sample", gpt_stored_defaults, sampling},
                                   {"serve", gpt_stored_defaults, serving},
                                   {"search", NULL, NULL}};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const command *find_command(const char *name, weft_error *error)
{
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
        names[i] = commands[i].name;
    }
    const char *near = weft_nearest(name, names, N_COMMANDS);
    weft_fail(error, WEFT_USAGE, "unknown command \"%s\"; %s%s%s", name,
              near ? "did you mean "
                   : "there are train, "
                     "sample, serve and search",
              near ? near : "", near ? "?" : "; see gpt --help");
    return NULL;
}

static int run_command(const command *c, int n, char **arguments, weft_error *error)
{
    settings *s = settings_read(&table, n, arguments, error);
    if (!s) return app_leave(table.program, APP_STARTING, error);
    bool is_good = !c->defaults || c->defaults(s, error) == WEFT_OK;
    if (is_good && c->phases) is_good = app_search_check(s, false, error) == WEFT_OK;
    const int code = !is_good    ? app_leave(table.program, APP_STARTING, error)
                     : c->phases ? carry_out(s, c->phases)
                                 : look_for(s);
    settings_destroy(&s);
    return code;
}

int main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    char help[] = "--help";
    if (n >= 2 && strcmp(arguments[1], "help") == 0) arguments[1] = help;
    if (n >= 2 && arguments[1][0] != '-') {
        const command *c = find_command(arguments[1], &error);
        return c ? run_command(c, n - 2, arguments + 2, &error)
                 : app_leave(table.program, APP_STARTING, &error);
    }
    settings *s = settings_read(&table, n - 1, arguments + 1, &error); /* answers --help */
    if (s)
        weft_fail(&error, WEFT_USAGE, "what to do? gpt train trains; gpt --help shows everything");
    settings_destroy(&s);
    return app_leave(table.program, APP_STARTING, &error);
}
