/* machine: what files of machines say: one, or two beside each other. */
#include "machine.h"

#include "../../whole_file.h"

#include <stdio.h>
#include <string.h>

#include "weft/research/predict.h"

static const option options[] = {
    {"json", OPTION_FLAG, "no", "", "Options", "the whole file"},
};

const option_table machine_table = {
    .program = "weft machine",
    .usage = "weft machine               the nominal machines\n"
             "weft machine show FILE     what a machine is, by its file or name\n"
             "weft machine diff A B      two beside each other\n"
             "weft machine merge A B     of two files of one machine the faster figures, into A\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "what machines are known, and what their files say",
    .commands = "show diff merge",
};

static weft_status list(weft_error *error)
{
    const char *name;
    for (int i = 0; (name = weft_machine_model_names(i)); i++) {
        weft_machine_model *model;
        WEFT_TRY(weft_machine_model_read(name, &model, error));
        printf("  %-10s %s\n", name, weft_machine_model_processor(model));
        weft_machine_model_destroy(&model);
    }
    return WEFT_OK;
}

static void print_beside(const weft_machine_rate *a, const weft_machine_rate *b)
{
    printf("  %-44s %12.4g", a->what, a->value);
    if (b) printf(" %12.4g %7.2f", b->value, b->value / a->value);
    printf(" %s\n", a->unit);
}

static const weft_machine_rate *find_rate(const weft_machine_rate *rates, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (strcmp(rates[i].what, what) == 0) return &rates[i];
    return NULL;
}

enum { MOST_RATES = 400 };

static weft_status show(const char *const *names, int n, bool whole, weft_error *error)
{
    static weft_machine_rate rates[2][MOST_RATES];
    weft_machine_model *models[2] = {NULL, NULL};
    int n_rates[2] = {0, 0};
    weft_status status = WEFT_OK;
    for (int m = 0; m < n && status == WEFT_OK; m++) {
        status = weft_machine_model_read(names[m], &models[m], error);
        if (status != WEFT_OK) break;
        n_rates[m] = weft_machine_model_rates(models[m], rates[m], MOST_RATES);
        if (!whole)
            printf("%s (%s), %s\n", weft_machine_model_name(models[m]),
                   weft_machine_model_processor(models[m]), weft_machine_model_made(models[m]));
    }
    if (status == WEFT_OK && whole) status = weft_machine_model_write(models[0], stdout, error);
    for (int i = 0; i < n_rates[0] && status == WEFT_OK && !whole; i++) {
        const weft_machine_rate *other =
            n == 2 ? find_rate(rates[1], n_rates[1], rates[0][i].what) : NULL;
        if (n == 1 || other) print_beside(&rates[0][i], other);
    }
    for (int m = 0; m < n; m++)
        weft_machine_model_destroy(&models[m]);
    return status;
}

/* A is there whole, with or without what B says. */
static weft_status write_whole(const char *path, const weft_machine_model *model, weft_error *error)
{
    app_whole_file file;
    weft_error own = WEFT_NO_ERROR;
    WEFT_TRY(app_whole_open(&file, path, error));
    const bool is_written = weft_machine_model_write(model, file.stream, &own) == WEFT_OK;
    WEFT_TRY(app_whole_close(&file, is_written, error));
    return is_written ? WEFT_OK : weft_fail(error, own.status, "%.300s: %.150s", path, own.message);
}

static weft_status merge(const char *const *names, weft_error *error)
{
    weft_machine_model *a = NULL, *b = NULL;
    if (!strpbrk(names[0], "./"))
        return weft_fail(error, WEFT_USAGE,
                         "weft machine merge %.80s: it is no file to be written; name one as "
                         "./%.80s",
                         names[0], names[0]);
    weft_status status = weft_machine_model_read(names[0], &a, error);
    if (status == WEFT_OK) status = weft_machine_model_read(names[1], &b, error);
    if (status == WEFT_OK) status = weft_machine_model_merge(a, b, error);
    if (status == WEFT_OK) status = write_whole(names[0], a, error);
    weft_machine_model_destroy(&a);
    weft_machine_model_destroy(&b);
    return status;
}

static const struct {
    const char *name, *takes;
    int n_files;
} commands[] = {{"show", "a file, or a name that weft machine lists", 1},
                {"diff", "two files or names", 2},
                {"merge", "two files", 2}};
enum { SHOW, DIFF, MERGE, COMMANDS };

static weft_status carry_out(const settings *s, int n, char **operands, weft_error *error)
{
    const char *names[COMMANDS];
    for (int c = 0; c < COMMANDS; c++)
        names[c] = commands[c].name;
    if (n == 0) return list(error);
    const bool whole = settings_flag(s, "json");
    const int command = app_find_command("weft machine", operands[0], names, COMMANDS, error);
    if (command < 0) return error->status;
    if (n != commands[command].n_files + 1)
        return weft_fail(error, WEFT_USAGE, "weft machine %s takes %s; not %d of them",
                         names[command], commands[command].takes, n - 1);
    if (whole && command != SHOW)
        return weft_fail(error, WEFT_USAGE,
                         "weft machine %s --json: --json shows one file; take weft machine show "
                         "--json",
                         names[command]);
    const char *const *files = (const char *const *)operands + 1;
    return command == MERGE ? merge(files, error) : show(files, n - 1, whole, error);
}

int machine_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int n_operands = options_operands(&machine_table, n, arguments, &error);
    settings *s = error.status == WEFT_OK ? settings_read(&machine_table, n - n_operands,
                                                          arguments + n_operands, &error)
                                          : NULL;
    if (s) (void)!carry_out(s, n_operands, arguments, &error);
    if (s && fflush(stdout) != 0) (void)!weft_fail(&error, WEFT_IO, "cannot write to stdout");
    settings_destroy(&s);
    return error.status == WEFT_OK ? 0 : app_leave("weft machine", APP_STARTING, &error);
}
