/* options: one table of settings, four sources, and a sentence for everything that does not fit. */
#include "options_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options_pages.h"
#include "service.h"
#include "text.h"
#include "weft/collectives.h"
#include "weft/number.h"

extern char **environ;

enum { MAX_OPTIONS = 128, MAX_NAME = 64 };

/* Who said it: a later origin wins over an earlier one. */
typedef enum origin {
    FROM_DEFAULT,
    FROM_RUN, /* settings_default */
    FROM_FILE,
    FROM_ENVIRONMENT,
    FROM_COMMAND_LINE
} origin;
static const char *const origin_names[] = {"default", "run.json", "file", "environment",
                                           "command line"};

struct settings {
    const option_table *table;
    char *values[MAX_OPTIONS];
    origin origins[MAX_OPTIONS];
};

/* ---- finding a name ----------------------------------------------------------------------------
 */

static int find(const option_table *table, const char *name)
{
    for (int i = 0; i < table->n_options; i++)
        if (strcmp(table->options[i].name, name) == 0) return i;
    return -1;
}

/* How one source writes the name of an option: "WEFT_GRAD_CLIP" for "grad-clip". */
static void variable_name(const char *name, char text[MAX_NAME])
{
    snprintf(text, MAX_NAME, "WEFT_%s", name);
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
}

static weft_status unknown(const option_table *table, const char *kind, const char *prefix,
                           const char *name, weft_error *error)
{
    const char *names[MAX_OPTIONS + 1] = {"help"};
    for (int i = 0; i < table->n_options; i++)
        names[i + 1] = table->options[i].name;
    const char *near = weft_nearest(name, names, table->n_options + 1);
    if (near)
        return weft_fail(error, WEFT_USAGE, "unknown %s %s%s; did you mean %s%s?", kind, prefix,
                         name, prefix, near);
    return weft_fail(error, WEFT_USAGE, "unknown %s %s%s; %s --help lists what there is", kind,
                     prefix, name, table->program);
}

static weft_status set(settings *s, int i, const char *value, origin from, const char *said,
                       weft_error *error)
{
    const option *o = &s->table->options[i];
    if (!(from == FROM_DEFAULT || (*value == '\0' && *o->initial == '\0')))
        WEFT_TRY(option_check(o, value, said, error));
    if (s->values[i] && from < s->origins[i]) return WEFT_OK;
    char *copy = strdup(value);
    if (!copy) return weft_fail_memory(error, strlen(value) + 1);
    free(s->values[i]);
    s->values[i] = copy;
    s->origins[i] = from;
    return WEFT_OK;
}

/* ---- the sources -------------------------------------------------------------------------------
 */

/* A word of the command line that begins with --: which option it names, and how. */
typedef struct spelling {
    int option; /* -1: none */
    bool is_no; /* --no-name */
    const char *equals;
    char name[MAX_NAME];
} spelling;

static bool is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 || strcmp(word, "-h") == 0;
}

static spelling spell(const option_table *table, const char *word)
{
    spelling w = {.equals = strchr(word, '=')};
    snprintf(w.name, sizeof w.name, "%.*s", w.equals ? (int)(w.equals - word - 2) : MAX_NAME,
             word + 2);
    w.option = find(table, w.name);
    w.is_no = w.option < 0 && strncmp(w.name, "no-", 3) == 0 && !w.equals;
    if (w.is_no) w.option = find(table, w.name + 3);
    if (w.is_no && w.option >= 0 && table->options[w.option].kind != OPTION_FLAG) w.option = -1;
    return w;
}

/* How many of the n words behind an option are its value. */
static int value_words(const option_table *table, const spelling *w, int n, char **words)
{
    if (w->option < 0 || w->equals || n == 0) return 0;
    const option_kind kind = table->options[w->option].kind;
    int used = kind != OPTION_FLAG;
    while (kind == OPTION_LIST && used < n && !is_option(words[used]) && strchr(words[used], '='))
        used++;
    return used;
}

int options_operands(const option_table *table, int n, char **arguments, weft_error *error)
{
    char **rest = calloc((size_t)n + 1, sizeof *rest);
    int n_operands = 0, n_rest = 0;
    if (!rest) weft_fail_memory(error, (size_t)n * sizeof *rest);
    for (int i = 0; rest && i < n; i++) {
        if (!is_option(arguments[i])) {
            (void)!option_check_path("the operand", arguments[i], error);
            arguments[n_operands++] = arguments[i];
            continue;
        }
        const spelling w = spell(table, arguments[i]);
        int words = 1 + value_words(table, &w, n - i - 1, arguments + i + 1);
        for (; words > 0; words--)
            rest[n_rest++] = arguments[i++];
        i--;
    }
    if (rest) memcpy(arguments + n_operands, rest, (size_t)n_rest * sizeof *rest);
    free(rest);
    return n_operands;
}

/* The words of a list, one blank between two; NULL: no memory. */
static char *join(int n, char **words)
{
    size_t bytes = 1;
    for (int i = 0; i < n; i++)
        bytes += strlen(words[i]) + 1;
    char *joined = calloc(bytes, 1), *end = joined;
    for (int i = 0; joined && i < n; i++)
        end += sprintf(end, "%s%s", i > 0 ? " " : "", words[i]);
    return joined;
}

static weft_status read_argument(settings *s, int n, char **arguments, int *at, weft_error *error)
{
    char said[256];
    const char *argument = arguments[(*at)++];
    if (!is_option(argument) || argument[2] == '\0')
        return weft_fail(error, WEFT_USAGE,
                         "unexpected argument \"%s\"; options begin with --, see %s --help",
                         argument, s->table->program);
    const spelling w = spell(s->table, argument);
    if (w.option < 0) return unknown(s->table, "option", "--", w.name, error);
    const option *o = &s->table->options[w.option];
    const int n_words = value_words(s->table, &w, n - *at, arguments + *at);
    if (n_words == 0 && !w.equals && o->kind != OPTION_FLAG)
        return weft_fail(error, WEFT_USAGE, "--%s wants a value: --%s %s", w.name, w.name, o->unit);
    char *joined = join(n_words, arguments + *at);
    if (!joined) return weft_fail_memory(error, 1);
    const char *value = w.equals ? w.equals + 1 : n_words > 0 ? joined : w.is_no ? "no" : "yes";
    *at += n_words;
    snprintf(said, sizeof said, "--%s %s", w.name, value);
    const weft_status status = set(s, w.option, value, FROM_COMMAND_LINE, said, error);
    free(joined);
    return status;
}

/* What the library reads itself, whatever the program. */
static bool is_librarys(const char *name)
{
    static const char *const names[] = {"WEFT_SHARE_GPU", "WEFT_CUDA_GRAPHS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* The option that an environment variable is of; -1: none. */
static int find_variable(const option_table *table, const char *name)
{
    char mine[MAX_NAME];
    for (int i = 0; i < table->n_options; i++) {
        variable_name(table->options[i].name, mine);
        if (strcmp(name, mine) == 0) return i;
    }
    return -1;
}

static weft_status unknown_variable(const option_table *table, const char *name, weft_error *error)
{
    const char *known[MAX_OPTIONS];
    char texts[MAX_OPTIONS][MAX_NAME];
    for (int i = 0; i < table->n_options; i++) {
        variable_name(table->options[i].name, texts[i]);
        known[i] = texts[i];
    }
    const char *near = weft_nearest(name, known, table->n_options);
    return weft_fail(error, WEFT_USAGE, "unknown environment variable %s%s%s%s unset it", name,
                     near ? "; did you mean " : "", near ? near : "", near ? "? Else" : ";");
}

/* *is_ignored: it looked like one of ours, and is a cluster's (service.h). */
static weft_status read_variable(settings *s, const char *text, bool *is_ignored, weft_error *error)
{
    char name[MAX_NAME], said[256];
    const char *equals = strchr(text, '=');
    *is_ignored = false;
    if (strncmp(text, "WEFT_", 5) != 0 || !equals) return WEFT_OK;
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    snprintf(said, sizeof said, "environment variable %s", text);
    const int i = find_variable(s->table, name);
    *is_ignored =
        service_link(text); /* also of an option's name: a cluster's WEFT_PORT is no number */
    if (i >= 0 && !*is_ignored) return set(s, i, equals + 1, FROM_ENVIRONMENT, said, error);
    return *is_ignored || is_librarys(name) ? WEFT_OK : unknown_variable(s->table, name, error);
}

/* One line of rank 0's for all that was ignored: who did mean an option finds it there. */
static void say_ignored(const settings *s, const char *first, int n)
{
    char more[32] = "";
    if (n == 0 || !weft_world_is_root()) return;
    if (n > 1) snprintf(more, sizeof more, " and %d more", n - 1);
    fprintf(stderr,
            "%s: ignored %.*s%s of the environment: about a service, not meant as an option\n",
            s->table->program, (int)strcspn(first, "="), first, more);
}

static weft_status read_environment(settings *s, weft_error *error)
{
    const char *first = NULL;
    int n_ignored = 0;
    for (char **variable = environ; *variable; variable++) {
        bool is_ignored;
        WEFT_TRY(read_variable(s, *variable, &is_ignored, error));
        if (is_ignored && n_ignored++ == 0) first = *variable;
    }
    say_ignored(s, first, n_ignored);
    return WEFT_OK;
}

static bool is_blank(char c) /* whatever the locale */
{
    return c != '\0' && strchr(" \t\r\n\v\f", c) != NULL;
}

static char *trim(char *text)
{
    while (is_blank(*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && is_blank(end[-1]))
        *--end = '\0';
    return text;
}

static weft_status read_line(settings *s, const char *path, int number, char *line,
                             weft_error *error)
{
    char said[512], kind[300];
    char *comment = strchr(line, '#');
    if (comment && (comment == line || is_blank(comment[-1]))) *comment = '\0';
    line = trim(line);
    if (*line == '\0') return WEFT_OK;
    char *equals = strchr(line, '=');
    if (!equals)
        return weft_fail(error, WEFT_USAGE, "%.250s:%d: \"%.100s\" is not of the form key = value",
                         path, number, line);
    *equals = '\0';
    const char *name = trim(line), *value = trim(equals + 1);
    const int i = find(s->table, name);
    snprintf(kind, sizeof kind, "key at %.250s:%d:", path, number);
    if (i < 0 || strcmp(name, "config") == 0) return unknown(s->table, kind, "", name, error);
    snprintf(said, sizeof said, "%.250s:%d: %s = %s", path, number, name, value);
    return set(s, i, value, FROM_FILE, said, error);
}

static weft_status read_file(settings *s, const char *path, weft_error *error)
{
    app_text text;
    weft_status status = WEFT_OK;
    char *line, *at = NULL;
    WEFT_TRY(app_text_read(path, "configuration file", WEFT_FILE_LINES, &text, error));
    for (int number = 1; status == WEFT_OK && (line = app_text_line(&text, &at)) != NULL; number++)
        status = read_line(s, path, number, line, error);
    free(text.bytes);
    return status;
}

static weft_status read_all(settings *s, int n, char **arguments, weft_error *error)
{
    for (int i = 0; i < s->table->n_options; i++)
        WEFT_TRY(set(s, i, s->table->options[i].initial, FROM_DEFAULT, "", error));
    for (int at = 0; at < n;)
        WEFT_TRY(read_argument(s, n, arguments, &at, error));
    WEFT_TRY(read_environment(s, error));
    const int config = find(s->table, "config");
    if (config >= 0 && *s->values[config]) WEFT_TRY(read_file(s, s->values[config], error));
    return WEFT_OK;
}

/* Questions about the program itself; true when one was answered, or refused. */
static bool answer(const option_table *table, int n, char **arguments, weft_error *error)
{
    const option_family alone = {table->program, table->about, &table, 1};
    for (int i = 0; i < n; i++) {
        const char *word = arguments[i];
        if (strcmp(word, "--version") == 0) {
            if (weft_world_is_root()) printf("%s (weft %s)\n", table->program, WEFT_VERSION);
            return true;
        }
        const bool is_plain = strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
        if (!is_plain && strncmp(word, "--help=", strlen("--help=")) != 0) continue;
        (void)!options_tell(&alone, is_plain ? "" : word + strlen("--help="), error);
        return true;
    }
    return false;
}

settings *settings_read(const option_table *table, int n, char **arguments, weft_error *error)
{
    if (answer(table, n, arguments, error)) return NULL;
    settings *s = calloc(1, sizeof *s);
    if (!s) {
        weft_fail_memory(error, sizeof *s);
        return NULL;
    }
    s->table = table;
    if (table->n_options > MAX_OPTIONS)
        weft_fail(error, WEFT_INTERNAL, "%s has %d options, more than %d", table->program,
                  table->n_options, MAX_OPTIONS);
    else if (read_all(s, n, arguments, error) == WEFT_OK)
        return s;
    settings_destroy(&s);
    return NULL;
}

void settings_destroy(settings **s)
{
    if (!*s) return;
    for (int i = 0; i < MAX_OPTIONS; i++)
        free((*s)->values[i]);
    free(*s);
    *s = NULL;
}

settings *settings_copy(const settings *s, weft_error *error)
{
    settings *copy = calloc(1, sizeof *copy);
    if (!copy) {
        weft_fail_memory(error, sizeof *copy);
        return NULL;
    }
    copy->table = s->table;
    memcpy(copy->origins, s->origins, sizeof copy->origins);
    for (int i = 0; i < s->table->n_options; i++) {
        copy->values[i] = strdup(s->values[i]);
        if (copy->values[i]) continue;
        weft_fail_memory(error, strlen(s->values[i]) + 1);
        settings_destroy(&copy);
        return NULL;
    }
    return copy;
}

weft_status settings_say(settings *s, const char *name, const char *value, weft_error *error)
{
    char said[256];
    const int i = find(s->table, name);
    if (i < 0) return unknown(s->table, "option", "--", name, error);
    snprintf(said, sizeof said, "--%s %s", name, value);
    return set(s, i, value, FROM_COMMAND_LINE, said, error);
}

/* ---- asking ------------------------------------------------------------------------------------
 */

const char *settings_text(const settings *s, const char *name)
{
    const int i = find(s->table, name);
    return i < 0 ? "" : s->values[i];
}

int64_t settings_count(const settings *s, const char *name)
{
    return strtoll(settings_text(s, name), NULL, 10);
}

double settings_real(const settings *s, const char *name)
{
    double number;
    (void)weft_number_read(settings_text(s, name), &number);
    return number;
}

bool settings_is(const settings *s, const char *name, const char *text)
{
    return strcmp(settings_text(s, name), text) == 0;
}

bool settings_flag(const settings *s, const char *name)
{
    return *settings_text(s, name) != '\0' && !settings_is(s, name, "no"); /* yes, or a choice */
}

double settings_seconds(const settings *s, const char *name)
{
    const double seconds = option_seconds(settings_text(s, name));
    return seconds > 0 ? seconds : 0;
}

weft_status settings_default(settings *s, const char *name, const char *value, weft_error *error)
{
    char said[256];
    const int i = find(s->table, name);
    if (i < 0) return WEFT_OK;
    snprintf(said, sizeof said, "run.json: %s %s", name, value);
    return set(s, i, value, FROM_RUN, said, error);
}

const char *settings_origin(const settings *s, const char *name)
{
    const int i = find(s->table, name);
    return origin_names[i < 0 ? FROM_DEFAULT : s->origins[i]];
}

const option *settings_option(const settings *s, int i)
{
    return i < s->table->n_options ? &s->table->options[i] : NULL;
}

/* ---- printing ----------------------------------------------------------------------------------
 */

void settings_print(const settings *s, FILE *file)
{
    int column = fprintf(file, "settings:"), n = 0;
    for (int i = 0; i < s->table->n_options; i++) {
        char text[1024];
        if (s->origins[i] == FROM_DEFAULT) continue;
        const int used = snprintf(text, sizeof text, "%s=%s", s->table->options[i].name,
                                  *s->values[i] ? s->values[i] : "none");
        if (column + 1 + used > LINE_WIDTH) column = fprintf(file, "\n ") - 1;
        column += fprintf(file, " %s", text);
        n++;
    }
    fprintf(file, "%s\n", n > 0 ? "" : " all defaults");
}
