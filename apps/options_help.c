/* options_help: the options of a program as --help prints them: those that most want, or all. */
#include "options_pages.h"

#include <string.h>

#include "weft/collectives.h"

enum { HELP_COLUMN = 25 };

/* Print `text` from column HELP_COLUMN on, broken between words. */
static void print_wrapped(const char *text, FILE *file)
{
    int column = HELP_COLUMN;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > LINE_WIDTH) {
            fprintf(file, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", word, text);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

/* is_brief: of what it is, the first part. */
static void print_option(const option *o, bool is_brief, FILE *file)
{
    char left[HELP_COLUMN * 2], right[512];
    const bool is_flag = o->kind == OPTION_FLAG, has_part = is_flag && o->choices;
    const int used = snprintf(left, sizeof left, "  --%s%s%s%s", o->name, is_flag ? "" : " ",
                              is_flag ? "" : o->unit, has_part ? o->unit : "");
    const int n_help = (int)(is_brief ? strcspn(o->help, ";") : strlen(o->help));
    snprintf(right, sizeof right, "%.*s%s%s (%s)", n_help, o->help,
             o->choices && !is_flag ? ": " : "", o->choices && !is_flag ? o->choices : "",
             *o->initial ? o->initial : "none");
    if (used >= HELP_COLUMN)
        fprintf(file, "%s\n%*s", left, HELP_COLUMN, "");
    else
        fprintf(file, "%-*s", HELP_COLUMN, left);
    print_wrapped(right, file);
}

static bool has(const option_table *table, const char *name)
{
    for (int i = 0; i < table->n_options; i++)
        if (strcmp(table->options[i].name, name) == 0) return true;
    return false;
}

/* Whether `name` is one of `words`; of no words, whatever it is. */
static bool is_among(const char *words, const char *name)
{
    const size_t n = strlen(name);
    if (!words) return true;
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

/* first: the names to tell of; NULL: all. returns how many there are besides. */
static int print_options(const option_table *table, const char *first, FILE *file)
{
    const char *group = "";
    int n_left = 0;
    for (int i = 0; i < table->n_options; i++) {
        const option *o = &table->options[i];
        if (!is_among(first, o->name)) {
            n_left++;
            continue;
        }
        if (strcmp(group, o->group) != 0) fprintf(file, "\n%s\n", o->group);
        group = o->group;
        print_option(o, first != NULL, file);
    }
    return n_left;
}

void options_help(const option_family *family, FILE *file)
{
    const option_table *table = family->tables[0];
    fputs(table->usage, file);
    const int n_left = print_options(table, table->first, file);
    if (n_left > 0)
        fprintf(file,
                "\nDefaults are in brackets. %d options more, and where they may stand besides:\n"
                "%s --help=all\n",
                n_left, table->program);
    else
        fputs("\nDefaults are in brackets. WEFT_NAME=X in the environment is --name X.\n", file);
}

void options_help_all(const option_family *family, FILE *file)
{
    const option_table *table = family->tables[0];
    fputs(table->usage, file);
    (void)print_options(table, NULL, file);
    fputs(has(table, "config")
              ? "\nEvery option can also be a line \"name = value\" of a --config file, or a "
                "variable\n"
                "of the environment: WEFT_BATCH=32 is --batch 32. The command line wins over the\n"
                "environment, that over the file, that over the defaults, which are in brackets.\n"
              : "\nEvery option can also be a variable of the environment: WEFT_RUN=DIR is\n"
                "--run DIR. The command line wins over it, and it over the defaults, which are\n"
                "in brackets.\n",
          file);
}

weft_status options_tell(const option_family *family, const char *kind, weft_error *error)
{
    static const struct {
        const char *name;
        void (*print)(const option_family *, FILE *);
    } kinds[] = {{"", options_help},
                 {"all", options_help_all},
                 {"man", options_man},
                 {"bash", options_bash},
                 {"zsh", options_zsh}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, kind) != 0) continue;
        if (weft_world_is_root()) kinds[i].print(family, stdout);
        return WEFT_OK;
    }
    return weft_fail(error, WEFT_USAGE,
                     "--help=%.60s: it can be --help, or one of all, man, bash, zsh", kind);
}
