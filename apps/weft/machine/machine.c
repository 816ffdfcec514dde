/* machine: what files of machines say: one, or two beside each other. */
#include "machine.h"

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
             "weft machine diff A B      two beside each other\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "what machines are known, and what their files say",
    .commands = "show diff",
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

static weft_status carry_out(const settings *s, int n, char **operands, weft_error *error)
{
    static const char *const names[] = {"show", "diff"};
    if (n == 0) return list(error);
    const bool whole = settings_flag(s, "json");
    const int command = app_find_command("weft machine", operands[0], names, 2, error);
    if (command < 0) return error->status;
    if (n != command + 2)
        return weft_fail(
            error, WEFT_USAGE, "weft machine %s takes %s; not %d of them", names[command],
            command == 0 ? "a file, or a name that weft machine lists" : "two files or names",
            n - 1);
    if (whole && command == 1)
        return weft_fail(
            error, WEFT_USAGE,
            "weft machine diff --json: --json shows one file; take weft machine show --json");
    return show((const char *const *)operands + 1, command + 1, whole, error);
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
