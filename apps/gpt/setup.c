/* setup: from settings to a program ready to run. */

#include "setup.h"

#include "../plan.h"
#include "../rate.h"
#include "heads.h"
#include "texts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LAYERS = GPT_MOST_STAGES };
/* Of gradients in f16: what it begins with, and after how many updates in a row it is doubled. */
enum { FIRST_SCALE = 65536, SCALE_GROWTH = 2000 };

static weft_status check_stages(const settings *s, weft_error *error)
{
    const long long layers = settings_count(s, "layers"), stages = settings_count(s, "stages");
    const long long batch = settings_count(s, "batch"), micro = settings_count(s, "micro");
    const long long parts = settings_count(s, "accumulate");
    const bool is_halved = settings_flag(s, "halves");
    if (layers % stages != 0)
        return weft_fail(error, WEFT_USAGE,
                         "layers %lld and stages %lld: stages have as many layers each, so stages "
                         "must divide layers",
                         layers, stages);
    if (stages == 1 && micro > 1)
        return weft_fail(error, WEFT_USAGE,
                         "micro %lld and stages 1: micro-batches go through stages; give --stages "
                         "too, or --accumulate %lld for a batch in parts",
                         micro, micro);
    if (stages > 1 && settings_flag(s, "scan-layers"))
        return weft_fail(
            error, WEFT_USAGE,
            "stages %lld and scan-layers: a scan goes through all layers, one after the "
            "other, and stages compute at once; leave one of the two away",
            stages);
    if (stages == 1 && is_halved)
        return weft_fail(
            error, WEFT_USAGE,
            "--halves and stages 1: halves of micro-batches go through stages in turn; "
            "give --stages too");
    if (batch % parts != 0) return WEFT_OK; /* has its own sentence */
    if (is_halved && batch / parts % (2 * micro) != 0)
        return weft_fail(error, WEFT_USAGE,
                         "batch %lld%s and --halves of micro %lld: %lld halves share the windows "
                         "equally, so twice micro must divide them",
                         batch / parts, parts > 1 ? " a part" : "", micro, 2 * micro);
    if (batch / parts % micro == 0) return WEFT_OK;
    if (parts > 1)
        return weft_fail(error, WEFT_USAGE,
                         "batch %lld in %lld parts and micro %lld: micro-batches share the %lld "
                         "windows of a part equally, so micro must divide them",
                         batch, parts, micro, batch / parts);
    return weft_fail(error, WEFT_USAGE,
                     "batch %lld and micro %lld: micro-batches share the windows of a step "
                     "equally, so micro must divide batch",
                     batch, micro);
}

static weft_status check_experts(const settings *s, weft_error *error)
{
    const long long experts = settings_count(s, "experts"), top_k = settings_count(s, "top-k");
    const long long stages = settings_count(s, "stages");
    const bool experts_choose = settings_is(s, "route", "experts");
    if (top_k > experts)
        return weft_fail(error, WEFT_USAGE,
                         "experts %lld and top-k %lld: a token goes through different experts, so "
                         "top-k is at most as many as there are; give --experts %lld, or more",
                         experts, top_k, top_k);
    if (experts > 1 && settings_flag(s, "gated"))
        return weft_fail(error, WEFT_USAGE,
                         "experts %lld and --gated: what is gated is the MLP that experts stand in "
                         "place of; leave one of the two away",
                         experts);
    if (experts == 1 && experts_choose)
        return weft_fail(error, WEFT_USAGE,
                         "--route experts and experts 1: there is nobody to choose; give --experts "
                         "too");
    if (experts > 1 && stages > 1)
        return weft_fail(
            error, WEFT_USAGE,
            "experts %lld and stages %lld: what stages compute on nothing, in bubbles, "
            "would count as load of the experts; leave one of the two away",
            experts, stages);
    if (experts_choose && settings_real(s, "capacity") == 0)
        return weft_fail(error, WEFT_USAGE,
                         "--route experts and capacity 0: experts take as many tokens as they have "
                         "places; give --capacity 1");
    return WEFT_OK;
}

/* Tokens are bytes, or words of a vocabulary, in which the text is then written. */
static weft_status open_words(gpt_setup *setup, weft_error *error)
{
    const settings *s = setup->settings;
    const char *folder = settings_text(s, "tokens");
    const int64_t vocab = settings_count(s, "vocab");
    int64_t words = GPT_VOCAB;
    if (*folder) WEFT_TRY(bpe_open(folder, &setup->words, error));
    if (*folder) WEFT_TRY(gpt_encoder_open(folder, setup->words, &setup->encoder, error));
    if (setup->words) words = bpe_n_words(setup->words);
    setup->shape.vocab = vocab > 0 ? vocab : words;
    if (setup->shape.vocab >= words) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "vocab %lld, and %.200s has %lld words: the table has a row for each, so vocab is no "
        "less; 0 is as many as there are",
        (long long)vocab, *folder ? folder : "a text of bytes", (long long)words);
}

/* A model of words cannot write bytes. */
weft_status gpt_setup_words(const gpt_setup *setup, weft_error *error)
{
    if (setup->words || setup->shape.vocab == GPT_VOCAB) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "the model has %lld tokens, and without words it writes bytes, of which there "
                     "are %d; give its vocabulary: --tokens DIR",
                     (long long)setup->shape.vocab, GPT_VOCAB);
}

static weft_status check_parts(const settings *s, weft_error *error)
{
    const long long batch = settings_count(s, "batch"), parts = settings_count(s, "accumulate");
    if (batch % parts != 0)
        return weft_fail(error, WEFT_USAGE,
                         "batch %lld and accumulate %lld: micro-batches share the windows of a "
                         "step equally, so accumulate must divide batch",
                         batch, parts);
    if (parts > 1 && settings_is(s, "dtype", "f16"))
        return weft_fail(error, WEFT_USAGE,
                         "accumulate %lld and dtype f16: its loss scale is for gradients of a "
                         "whole batch; take --dtype bf16, or f32",
                         parts);
    return WEFT_OK;
}

static weft_status check_documents(const settings *s, weft_error *error)
{
    if (!settings_flag(s, "pack") && !*settings_text(s, "tokens") && *settings_text(s, "index"))
        return weft_fail(
            error, WEFT_USAGE,
            "--index %s and no --pack: only packing, and texts in words, have an index; give "
            "--pack or --tokens too",
            settings_text(s, "index"));
    return WEFT_OK;
}

static weft_status check_options(const settings *s, weft_error *error)
{
    const long long layers = settings_count(s, "layers");
    const double dropout = settings_real(s, "dropout");
    WEFT_TRY(gpt_heads_check(s, error));
    if (layers > MAX_LAYERS)
        return weft_fail(error, WEFT_USAGE, "layers %lld; at most %d make sense", layers,
                         MAX_LAYERS);
    WEFT_TRY(check_parts(s, error));
    WEFT_TRY(check_stages(s, error));
    WEFT_TRY(check_experts(s, error));
    WEFT_TRY(check_documents(s, error));
    if (dropout >= 1)
        return weft_fail(error, WEFT_USAGE, "dropout %g drops everything; it must be below 1",
                         dropout);
    return app_board_check(s, error);
}

static gpt_mixture mixture_of(const settings *s)
{
    return (gpt_mixture){.experts = settings_count(s, "experts"),
                         .top_k = settings_count(s, "top-k"),
                         .capacity = settings_real(s, "capacity"),
                         .experts_choose = settings_is(s, "route", "experts"),
                         .balance = settings_real(s, "balance")};
}

/* As many times the width as GPT-2 has, where nobody says. */
static int64_t hidden_of(const settings *s)
{
    const int64_t hidden = settings_count(s, "hidden");
    return hidden > 0 ? hidden : 4 * settings_count(s, "width");
}

static gpt_biases biases_of(const settings *s)
{
    if (settings_is(s, "biases", "none")) return GPT_BIASES_NONE;
    return settings_is(s, "biases", "all") ? GPT_BIASES_ALL : GPT_BIASES_MLP;
}

/* But for the vocabulary. */
static gpt_shape shape_of(const settings *s)
{
    const weft_dtype dtype = weft_dtype_find(settings_text(s, "dtype"));
    return (gpt_shape){
        .batch = settings_count(s, "batch"),
        .seq = settings_count(s, "seq"),
        .layers = settings_count(s, "layers"),
        .width = settings_count(s, "width"),
        .heads = settings_count(s, "heads"),
        .head_dim = settings_count(s, "head-dim"),
        .hidden = hidden_of(s),
        .dropout = settings_real(s, "dropout"),
        .stages = settings_count(s, "stages"),
        .micro = settings_count(s, "micro"),
        .turns = settings_flag(s, "halves") ? 2 : 1,
        .recomputes = settings_flag(s, "recompute"),
        .scans = settings_flag(s, "scan-layers"),
        .mixture = mixture_of(s),
        .kv_heads = settings_count(s, "kv-heads"),
        .ropes = settings_flag(s, "rope"),
        .is_rms = settings_is(s, "norm", "rms"),
        .packs = settings_flag(s, "pack"),
        .ties = settings_flag(s, "tie"),
        .biases = biases_of(s),
        .is_gated = settings_flag(s, "gated"),
        .activation = settings_text(s, "activation"),
        .epsilon = settings_real(s, "epsilon"),
        .rotary = gpt_rotary_of(s),
        .dtype = weft_dtype_computes(dtype), /* f32 for bf16 and f16 */
        .computes = dtype,
    };
}

weft_status gpt_setup_check(gpt_setup *setup, weft_error *error)
{
    WEFT_TRY(gpt_setup_read(setup, error));
    WEFT_TRY(app_held_check(setup->settings, error));
    return app_plan_check(setup->settings, error);
}

weft_status gpt_setup_read(gpt_setup *setup, weft_error *error)
{
    const settings *s = setup->settings;
    const int64_t until = settings_count(s, "until");
    WEFT_TRY(check_options(s, error));
    setup->shape = shape_of(s);
    WEFT_TRY(open_words(setup, error));
    WEFT_TRY(gpt_groups_read(settings_text(s, "groups"), &setup->groups, error));
    setup->parts = settings_count(s, "accumulate");
    setup->zero = (int)settings_count(s, "zero");
    setup->steps = settings_count(s, "steps");
    setup->until = until > 0 && until < setup->steps ? until : setup->steps;
    return WEFT_OK;
}

static weft_status build_update(gpt_setup *setup, weft_error *error)
{
    const settings *s = setup->settings;
    const weft_optimizer *optimizer = weft_optimizer_find(settings_text(s, "optimizer"), error);
    if (!optimizer) return error->status;
    if (setup->shape.computes == WEFT_F16)
        (void)weft_loss_scale(setup->graph, FIRST_SCALE, SCALE_GROWTH);
    const int n = setup->variables ? gpt_n_variables(&setup->shape) : 0;
    WEFT_TRY(app_rate(s, setup->graph, setup->shape.dtype, setup->steps, &setup->rate, error));
    setup->update =
        weft_at(optimizer->name, WEFT_HERE,
                optimizer->build(setup->loss, &(weft_optimizer_options){
                                                  .rate_value = setup->rate,
                                                  .clip = settings_real(s, "clip"),
                                                  .clip_by = settings_text(s, "clip-by"),
                                                  .gradient_norm = &setup->norm,
                                                  .variables = {setup->variables, n},
                                                  .gradients = {setup->gradients, n},
                                                  .groups = {setup->groups.list, setup->groups.n},
                                              }));
    const weft_average_options average = {.decay = settings_real(s, "average")};
    if (average.decay > 0) setup->update = weft_average(setup->update, &average);
    return WEFT_OK;
}

weft_status gpt_setup_layout(gpt_setup *setup, weft_error *error)
{
    const settings *s = setup->settings;
    WEFT_TRY(weft_layout_create(settings_text(s, "layout"), &setup->layout, error));
    WEFT_TRY(weft_layout_store(setup->layout, setup->zero, "batch", error));
    return weft_layout_check(setup->layout, setup->mesh, gpt_dims, GPT_N_DIMS, error);
}

static weft_status build_loss(gpt_setup *setup, weft_error *error)
{
    if (setup->parts == 1) {
        setup->loss = gpt_loss(&setup->shape, setup->graph, &setup->model);
        return WEFT_OK;
    }
    const size_t n = (size_t)gpt_n_variables(&setup->shape);
    const bool is_stored = setup->zero >= 2;
    setup->variables = calloc(2 * n, sizeof *setup->variables);
    if (!setup->variables) return weft_fail_memory(error, 2 * n * sizeof *setup->variables);
    setup->gradients = setup->variables + n;
    setup->loss = gpt_accumulate(&setup->shape, setup->parts, is_stored, setup->graph,
                                 &setup->model, setup->variables, setup->gradients);
    if (setup->loss.id == 0 && weft_graph_error(setup->graph)->status == WEFT_OK)
        return weft_fail_memory(error, n * sizeof *setup->variables);
    return WEFT_OK;
}

weft_status gpt_setup_graph(gpt_setup *setup, weft_error *error)
{
    setup->graph = weft_graph_create((uint64_t)settings_count(setup->settings, "seed"));
    if (!setup->graph) return weft_fail_memory(error, 0);
    WEFT_TRY(build_loss(setup, error));
    return build_update(setup, error);
}

weft_status gpt_setup_build(gpt_setup *setup, weft_error *error)
{
    WEFT_TRY(gpt_setup_layout(setup, error));
    return gpt_setup_graph(setup, error);
}

int gpt_setup_values(const gpt_setup *setup, weft_value values[GPT_MOST_VALUES])
{
    const gpt_facts *facts = &setup->model.facts;
    const weft_value all[GPT_MOST_VALUES] = {setup->loss,   setup->norm,    setup->rate,
                                             setup->update, facts->balance, facts->dropped};
    memcpy(values, all, sizeof all);
    return setup->shape.mixture.experts > 1 ? 6 : 4;
}

weft_compile_options gpt_setup_options(const gpt_setup *setup, const settings *s)
{
    const char *dump = settings_text(s, "dump");
    return (weft_compile_options){
        .strict = settings_flag(s, "strict"),
        .dump = *dump ? dump : NULL,
        .synchronous = settings_flag(s, "synchronous"),
        .precision = weft_precision_find(settings_text(s, "precision")),
        .unroll = setup->shape.scans ? 1 : 0, /* of few layers too the body is compiled once */
        .explain = settings_flag(s, "explain")};
}

static weft_status compile(gpt_setup *setup, const weft_machine_model *machine, weft_error *error)
{
    weft_value values[GPT_MOST_VALUES];
    const int n = gpt_setup_values(setup, values);
    weft_compile_options options = gpt_setup_options(setup, setup->settings);
    WEFT_TRY(app_links(setup->settings, setup->mesh, &setup->link, error));
    options.link = setup->link.text;
    options.machine = machine;
    setup->compiled = options;
    setup->compiled.machine = NULL; /* which lives as long as this call */
    return weft_compile(setup->mesh, setup->layout, (weft_values){values, n}, &options,
                        &setup->program, error);
}

weft_status gpt_setup_compile(gpt_setup *setup, weft_error *error)
{
    weft_machine_model *machine;
    WEFT_TRY(app_machine(setup->settings, setup->mesh, &machine, error));
    const weft_status status = compile(setup, machine, error);
    setup->machine_hash = weft_machine_model_hash(machine);
    weft_machine_model_destroy(&machine);
    return status;
}

void gpt_setup_close(gpt_setup *setup)
{
    app_run_close(&setup->run);
    app_held_close(&setup->held);
    weft_dataset_close(&setup->data);
    gpt_encoder_close(&setup->encoder);
    bpe_close(&setup->words);
    free(setup->variables);
    weft_program_destroy(&setup->program);
    weft_graph_destroy(&setup->graph);
    weft_layout_destroy(&setup->layout);
    weft_mesh_destroy(&setup->mesh);
}

app_pipe gpt_setup_pipe(const gpt_setup *setup)
{
    const int64_t stages = setup->shape.stages, ticks = stages + setup->shape.micro - 1;
    if (stages == 1) return (app_pipe){0};
    return (app_pipe){"stage", stages, (double)(stages - 1) / (double)ticks};
}
