/* options_man: the manual page of a program, or of a program of several commands, as man's macros take it. */
#include "options_pages.h"

#include <ctype.h>
#include <string.h>

/* Text as troff takes it: a hyphen stays one, a line that begins with . or ' is none of its commands. */
static void put(const char *text, FILE *file)
{
    bool is_first = true;
    for (; *text; text++) {
        if (is_first && (*text == '.' || *text == '\'')) fputs("\\&", file);
        if (*text == '-')
            fputs("\\-", file);
        else if (*text == '\\')
            fputs("\\e", file);
        else
            fputc(*text, file);
        is_first = *text == '\n';
    }
}

/* "weft-ckpt" of "weft ckpt": the page's name. */
static void page_name(const char *program, char *name, size_t bytes)
{
    snprintf(name, bytes, "%s", program);
    for (char *c = name; *c; c++)
        if (*c == ' ') *c = '-';
}

static void put_head(const char *program, const char *about, FILE *file)
{
    char name[64];
    page_name(program, name, sizeof name);
    fputs(".TH ", file);
    for (const char *c = name; *c; c++)
        fputc(toupper((unsigned char)*c), file);
    fprintf(file, " 1 \"\" \"weft %s\" \"Weft\"\n.SH NAME\n", WEFT_VERSION);
    put(name, file);
    fputs(" \\- ", file);
    put(about, file);
    fputs("\n.SH SYNOPSIS\n.nf\n", file);
}

static void put_option(const option *o, FILE *file)
{
    fputs(".TP\n\\fB", file);
    fputs("\\-\\-", file);
    put(o->name, file);
    fputs("\\fR", file);
    if (o->kind != OPTION_FLAG) {
        fputs(" \\fI", file);
        put(o->unit, file);
        fputs("\\fR", file);
    } else if (o->choices) {
        put(o->unit, file);
    }
    fputc('\n', file);
    put(o->help, file);
    if (o->choices && o->kind != OPTION_FLAG) {
        fputs(": ", file);
        put(o->choices, file);
    }
    fputs(" (", file);
    put(*o->initial ? o->initial : "none", file);
    fputs(")\n", file);
}

static void put_options(const option_table *table, FILE *file)
{
    const char *group = "";
    fputs(".SH OPTIONS\nDefaults are in brackets.\n", file);
    for (int i = 0; i < table->n_options; i++) {
        const option *o = &table->options[i];
        if (strcmp(group, o->group) != 0) fprintf(file, ".SS %s\n", o->group);
        group = o->group;
        put_option(o, file);
    }
    fputs(".TP\n\\fB\\-\\-help\\fR, \\fB\\-\\-help=all\\fR, \\fB\\-\\-version\\fR\n"
          "what most want to know; every option; which this is\n"
          ".SH ENVIRONMENT\nEvery option can be a variable: WEFT_RUN=DIR is \\-\\-run DIR. The "
          "command line wins over it.\n",
          file);
}

static void put_commands(const option_family *family, FILE *file)
{
    char name[64];
    fputs(".SH COMMANDS\n", file);
    for (int i = 0; i < family->n; i++) {
        fprintf(file, ".TP\n\\fB%s\\fR\n", options_command(family->tables[i]));
        put(family->tables[i]->about, file);
        fputc('\n', file);
    }
    fputs(".SH SEE ALSO\n", file);
    for (int i = 0; i < family->n; i++) {
        page_name(family->tables[i]->program, name, sizeof name);
        fputs(i > 0 ? ",\n.BR " : ".BR ", file);
        put(name, file);
        fprintf(file, " (1)");
    }
    fputc('\n', file);
}

void options_man(const option_family *family, FILE *file)
{
    put_head(family->program, family->about, file);
    if (family->n > 1) {
        fprintf(file, "%s COMMAND [options]\n.fi\n", family->program);
        put_commands(family, file);
        return;
    }
    put(family->tables[0]->usage, file);
    fputs(".fi\n", file);
    put_options(family->tables[0], file);
}
