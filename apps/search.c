/* search: the quickest mesh, layout and options of a training on a machine. */
#include "search.h"

#include "predict.h"
#include "predict_notes.h"
#include "weft/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const own[] = {"ranks", "memory", "vary", "within", "plans", "measure"};
enum { N_OWN = sizeof own / sizeof *own };

weft_status app_search_check(const settings *s, bool is_search, weft_error *error)
{
    for (int i = 0; i < N_OWN && !is_search; i++)
        if (strcmp(settings_origin(s, own[i]), "default") != 0)
            return weft_fail(error, WEFT_USAGE,
                             "--%s is about a search; say search before the options, or leave it "
                             "away",
                             own[i]);
    if (!is_search) return WEFT_OK;
    if (settings_flag(s, "dry-run"))
        return weft_fail(error, WEFT_USAGE,
                         "search and --dry-run: a search prints no plan; leave --dry-run away, and "
                         "give it to the command that the search prints");
    if (settings_count(s, "ranks") == 0)
        return weft_fail(error, WEFT_USAGE,
                         "search wants to know how many ranks there are; give --ranks 64");
    if (*settings_text(s, "machine") == '\0')
        return weft_fail(error, WEFT_USAGE,
                         "search wants a machine: --machine FILE, which weft calibrate --out FILE "
                         "writes, or a nominal one, as --machine h100x8");
    return app_predict_check(s, error);
}

/* ---- what is asked ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double bytes;
} units[] = {{"", 1},      {"B", 1},      {"kB", 1e3},        {"MB", 1e6},          {"GB", 1e9},
             {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};

static weft_status read_bytes(const char *text, int64_t *bytes, weft_error *error)
{
    double number;
    const int letters = weft_number_read(text, &number);
    *bytes = 0;
    if (*text == '\0') return WEFT_OK;
    for (size_t i = 0; letters > 0 && i < sizeof units / sizeof *units; i++) {
        const double all = number * units[i].bytes;
        if (strcmp(text + letters, units[i].name) != 0 || !(all >= 1 && all < 9e18)) continue;
        *bytes = (int64_t)all;
        return WEFT_OK;
    }
    return weft_fail(
        error, WEFT_USAGE,
        "--memory %.80s: it takes a number and kB, MB, GB, TB, KiB, MiB or GiB, as 80GB", text);
}

void app_search_knob(app_search *search, const char *name, bool is_flag, const int64_t *values,
                     int n, int64_t most)
{
    static const int64_t both[] = {0, 1};
    weft_knob *knob = &search->knobs[search->n_knobs++];
    const int64_t set =
        is_flag ? settings_flag(search->settings, name) : settings_count(search->settings, name);
    *knob = (weft_knob){.name = name, .is_flag = is_flag, .n_values = 1, .values = {set}};
    if (is_flag) values = both, n = 2;
    for (int i = 0; i < n; i++)
        if (values[i] != set && (is_flag || (values[i] >= 1 && values[i] <= most)))
            knob->values[knob->n_values++] = values[i];
}

/* The word that is set is one of its own, as --dtype has it. */
void app_search_word_knob(app_search *search, const char *name, const char *const *words, int n)
{
    weft_knob *knob = &search->knobs[search->n_knobs];
    int set = -1;
    *knob = (weft_knob){.name = name, .is_asked = true, .words = words};
    for (int i = 0; i < n; i++)
        if (settings_is(search->settings, name, words[i])) set = i;
    if (set < 0) return;
    search->n_knobs++;
    knob->values[knob->n_values++] = set;
    for (int i = 0; i < n; i++)
        if (i != set) knob->values[knob->n_values++] = i;
}

settings *app_search_settings(const app_search *search, const weft_choice *choice,
                              weft_error *error)
{
    char text[24];
    settings *s = settings_copy(search->settings, error);
    weft_status status = s ? WEFT_OK : WEFT_MEMORY;
    if (status == WEFT_OK) status = settings_say(s, "mesh", choice->mesh, error);
    if (status == WEFT_OK) status = settings_say(s, "layout", choice->layout, error);
    snprintf(text, sizeof text, "%d", choice->zero);
    if (status == WEFT_OK) status = settings_say(s, "zero", text, error);
    for (int k = 0; k < choice->n_knobs && status == WEFT_OK; k++) {
        const weft_knob *knob = &choice->knobs[k];
        snprintf(text, sizeof text, "%lld", (long long)choice->values[k]);
        status = settings_say(s, knob->name,
                              knob->words         ? knob->words[choice->values[k]]
                              : !knob->is_flag    ? text
                              : choice->values[k] ? "yes"
                                                  : "no",
                              error);
    }
    snprintf(text, sizeof text, "%lld", (long long)choice->layers);
    if (status == WEFT_OK && choice->layers > 0) status = settings_say(s, "layers", text, error);
    if (status != WEFT_OK && s) settings_destroy(&s);
    return s;
}

/* ---- the command ------------------------------------------------------------------------------------- */

static bool is_own(const char *name)
{
    static const char *const others[] = {"mesh",   "layout",  "zero",    "json",
                                         "config", "dry-run", "explain", "slow"};
    for (int i = 0; i < N_OWN; i++)
        if (strcmp(own[i], name) == 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], name) == 0) return true;
    return false;
}

/* A knob is said where it is not what it is unless asked. */
static bool is_turned(const weft_choice *choice, const char *name)
{
    for (int k = 0; k < choice->n_knobs; k++)
        if (strcmp(choice->knobs[k].name, name) == 0)
            return choice->values[k] != choice->knobs[k].values[0];
    return false;
}

/* A value as a shell takes it: quoted where it is empty or has more than plain letters. */
static size_t put_value(char *text, size_t room, const char *value)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/=@%";
    if (*value && value[strspn(value, plain)] == '\0')
        return (size_t)snprintf(text, room, " %s", value);
    size_t used = (size_t)snprintf(text, room, " '");
    for (; *value && used < room; value++) {
        const char letter[] = {*value, '\0'};
        used += (size_t)snprintf(text + used, room - used, "%s", *value == '\'' ? "'\\''" : letter);
    }
    if (used < room) used += (size_t)snprintf(text + used, room - used, "'");
    return used;
}

void app_search_command(const app_search *search, const weft_choice *choice, char *text,
                        size_t room)
{
    const settings *s = search->settings;
    const option *o;
    size_t used = (size_t)snprintf(text, room, "%s", search->command);
    for (int i = 0; (o = settings_option(s, i)) != NULL && used < room; i++) {
        const char *value = settings_text(s, o->name);
        if (strcmp(settings_origin(s, o->name), "default") == 0 || is_own(o->name) ||
            is_turned(choice, o->name))
            continue;
        if (o->kind == OPTION_FLAG && (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0))
            used += (size_t)snprintf(text + used, room - used, " --%s%s",
                                     *value == 'y' ? "" : "no-", o->name);
        else {
            used += (size_t)snprintf(text + used, room - used, " --%s", o->name);
            if (used < room) used += put_value(text + used, room - used, value);
        }
    }
    if (used + 1 >= room) return;
    text[used++] = ' ';
    if (weft_choice_print(choice, text + used, room - used) == 0) text[used - 1] = '\0';
}

/* ---- the search --------------------------------------------------------------------------------------- */

static void show(void *context, int64_t planned, int64_t of, double seconds)
{
    char text[WEFT_TIME_TEXT];
    (void)context;
    fprintf(stderr, "\r\033[K%lld of %lld choices planned", (long long)planned, (long long)of);
    if (seconds < 1e9) fprintf(stderr, ", the best %s", weft_time_text(seconds, text));
    fflush(stderr);
}

static weft_status nothing_fits(const weft_found *found, const weft_search_options *options,
                                weft_error *error)
{
    char choice[800];
    if (found->n_planned == 0 && found->left_out.illegal > 0)
        return weft_fail(error, WEFT_USAGE,
                         "all of %lld choices that were tried are refused: %.360s",
                         (long long)found->left_out.illegal, found->left_out.sentence);
    if (found->out_of_time)
        return weft_fail(error, WEFT_USAGE,
                         "--within %g s: time was over when %lld of %lld choices had been planned, "
                         "none of them whole that fits; give it longer, as --within %.0fs",
                         options->seconds, (long long)found->n_planned, (long long)found->n_choices,
                         fmax(10, 10 * options->seconds));
    if (found->smallest.choice.mesh[0] == '\0' && found->n_planned == 0)
        return weft_fail(
            error, WEFT_USAGE,
            "no choice fits into --memory: variables, their optimizer state and inputs "
            "alone need more than %.3g GB a rank under each of %lld; take more ranks, "
            "or a smaller model",
            (double)options->memory / 1e9, (long long)found->n_choices);
    (void)weft_choice_print(&found->smallest.choice, choice, sizeof choice);
    return weft_fail(error, WEFT_USAGE,
                     "no choice fits into --memory %.3g GB: of those planned the smallest needs "
                     "%.3g GB a rank: %.200s; take more ranks, or a smaller model or batch",
                     (double)options->memory / 1e9, (double)found->smallest.bytes / 1e9, choice);
}

static weft_status tell(const app_search *search, const app_search_result *result,
                        weft_error *error)
{
    if (settings_flag(search->settings, "json")) return app_search_json(search, result, error);
    app_search_print(search, result);
    if (fflush(stdout) != 0) return weft_fail(error, WEFT_IO, "cannot write to stdout");
    return WEFT_OK;
}

static weft_status find(const app_search *search, app_search_result *result, weft_error *error)
{
    weft_found *found = &result->found;
    const weft_search_options *options = result->options;
    const int n = (int)settings_count(search->settings, "measure");
    WEFT_TRY(weft_search_best(search->build, search->context, options, found, error));
    if (options->progress) fputs("\r\033[K", stderr);
    if (found->n == 0) return nothing_fits(found, options, error);
    if (n > 0) WEFT_TRY(app_search_measure(search, n, result, error));
    if (found->n > 1 && !(options->seconds > 0 && found->seconds > options->seconds) &&
        /* of measured ones the second may be predicted to be the quicker one */
        found->best[0].prediction.seconds < found->best[1].prediction.seconds)
        WEFT_TRY(weft_search_turns(search->build, search->context, options, &found->best[0].choice,
                                   &found->best[1].choice, result->turns, &result->n_turns, error));
    return tell(search, result, error);
}

weft_status app_search_run(const app_search *search, weft_error *error)
{
    const settings *s = search->settings;
    weft_machine_model *machine;
    weft_search_options options = {.ranks = (int)settings_count(s, "ranks"),
                                   .seconds = settings_seconds(s, "within"),
                                   .most = (int)settings_count(s, "plans"),
                                   .vary = settings_text(s, "vary"),
                                   .n_knobs = search->n_knobs,
                                   .knobs = search->knobs,
                                   .store_dim = "batch",
                                   .layers = search->layers,
                                   .layers_knob = search->layers_knob,
                                   .batch_knob = "batch",
                                   .hints = search->hints,
                                   .mesh = settings_text(s, "mesh"),
                                   .layout = settings_text(s, "layout"),
                                   .zero = (int)settings_count(s, "zero")};
    WEFT_TRY(read_bytes(settings_text(s, "memory"), &options.memory, error));
    if (settings_count(s, "measure") > 0)
        WEFT_TRY(app_search_measure_check(search, options.ranks, error));
    WEFT_TRY(weft_machine_model_read(settings_text(s, "machine"), &machine, error));
    options.machine = machine;
    if (strpbrk(settings_text(s, "machine"), "./")) app_note_machine(machine, false, stderr);
    if (isatty(STDERR_FILENO)) options.progress = show;
    app_search_result *result = calloc(1, sizeof *result);
    if (result) result->options = &options;
    weft_status status =
        result ? find(search, result, error) : weft_fail_memory(error, sizeof *result);
    free(result);
    weft_machine_model_destroy(&machine);
    return status;
}
