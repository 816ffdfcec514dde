/* options_help: the options of a program as --help prints them. */
#include "options.h"

#include <string.h>

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

static void print_option(const option *o, FILE *file)
{
    char left[HELP_COLUMN * 2], right[512];
    const int used =
        snprintf(left, sizeof left, "  --%s%s%s", o->name, o->kind == OPTION_FLAG ? "" : " ",
                 o->kind == OPTION_FLAG ? "" : o->unit);
    snprintf(right, sizeof right, "%s%s%s (%s)", o->help, o->choices ? ": " : "",
             o->choices ? o->choices : "", *o->initial ? o->initial : "none");
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

void options_help(const option_table *table, FILE *file)
{
    const char *group = "";
    fputs(table->usage, file);
    for (int i = 0; i < table->n_options; i++) {
        const option *o = &table->options[i];
        if (strcmp(group, o->group) != 0) fprintf(file, "\n%s\n", o->group);
        group = o->group;
        print_option(o, file);
    }
    fputs(has(table, "config")
              ? "\nEvery option can also be a line \"name = value\" of a --config file, or a "
                "variable\n"
                "of the environment: WEFT_BATCH=32 is --batch 32. The command line wins over the\n"
                "environment, that over the file, that over the defaults, which are in brackets.\n"
              : "\nEvery option can also be a variable of the environment: WEFT_RUN=DIR is --run "
                "DIR.\n"
                "The command line wins over it, and it over the defaults, which are in brackets.\n",
          file);
}
