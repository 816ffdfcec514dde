/* options_complete: completion for bash and zsh: names of options, and their values where these are words, files or folders. */
#include "options_pages.h"

#include <string.h>

const char *options_command(const option_table *table)
{
    const char *blank = strchr(table->program, ' ');
    return blank ? blank + 1 : "";
}

typedef enum value_kind { VALUE_FREE, VALUE_WORDS, VALUE_FILE, VALUE_FOLDER } value_kind;

static value_kind value_of(const option *o)
{
    if (o->choices) return VALUE_WORDS;
    if (strncmp(o->unit, "FILE", 4) == 0) return VALUE_FILE;
    return strcmp(o->unit, "DIR") == 0 ? VALUE_FOLDER : VALUE_FREE;
}

static void put_identifier(const char *program, FILE *file)
{
    for (const char *c = program; *c; c++)
        fputc(*c == ' ' || *c == '-' ? '_' : *c, file);
}

static void put_names(const option_table *table, FILE *file)
{
    for (int i = 0; i < table->n_options; i++)
        if (table->options[i].kind == OPTION_FLAG && table->options[i].choices)
            fprintf(file, "--%s --%s=%s ", table->options[i].name, table->options[i].name,
                    table->options[i].choices);
        else
            fprintf(file, "--%s ", table->options[i].name);
    fputs("--help --help=all --version", file);
}

static void put_command_names(const option_family *family, FILE *file)
{
    for (int i = 0; i < family->n; i++)
        fprintf(file, "%s%s", i > 0 ? " " : "", options_command(family->tables[i]));
}

/* ---- bash ------------------------------------------------------------------------------------------ */

/* The options whose values are of a kind, as a pattern of `case`; words are told with each. */
static void put_bash_values(const option_table *table, value_kind kind, const char *action,
                            FILE *file)
{
    const char *between = "    ";
    for (int i = 0; i < table->n_options; i++) {
        const option *o = &table->options[i];
        if (o->kind == OPTION_FLAG || value_of(o) != kind) continue;
        fprintf(file, "%s--%s", between, o->name);
        between = " | ";
        if (kind != VALUE_WORDS) continue;
        fprintf(file, ") COMPREPLY=($(compgen -W '%s' -- \"$2\")) ;;\n", o->choices);
        between = "    ";
    }
    if (strcmp(between, " | ") == 0) fprintf(file, ") %s ;;\n", action);
}

/* A function of the word before, the word, and whether a command may stand here. */
static void put_bash_table(const option_table *table, FILE *file)
{
    fputs("_weft_values_", file);
    put_identifier(table->program, file);
    fputs("() {\n    case $1 in\n", file);
    put_bash_values(table, VALUE_WORDS, "", file);
    put_bash_values(table, VALUE_FILE, "COMPREPLY=($(compgen -f -- \"$2\"))", file);
    put_bash_values(table, VALUE_FOLDER, "COMPREPLY=($(compgen -d -- \"$2\"))", file);
    put_bash_values(table, VALUE_FREE, "COMPREPLY=()", file);
    fputs("    *)\n", file);
    if (table->commands)
        fprintf(file,
                "        if [ \"$3\" = yes ]; then COMPREPLY=($(compgen -W '%s' -- \"$2\")); fi\n",
                table->commands);
    fputs("        if [ ${#COMPREPLY[@]} = 0 ]; then COMPREPLY=($(compgen -W '", file);
    put_names(table, file);
    fputs("' -- \"$2\")); fi ;;\n    esac\n}\n", file);
}

static void put_bash_call(const option_table *table, int command_at, FILE *file)
{
    fputs("_weft_values_", file);
    put_identifier(table->program, file);
    fprintf(file, " \"$before\" \"$word\" \"$([ \"$COMP_CWORD\" = %d ] && echo yes)\"", command_at);
}

void options_bash(const option_family *family, FILE *file)
{
    fprintf(file, "# bash completion for %s, made from its options\n", family->program);
    for (int i = 0; i < family->n; i++)
        put_bash_table(family->tables[i], file);
    fprintf(file,
            "_weft_complete_%s() {\n"
            "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
            "    COMPREPLY=()\n"
            "    if [ \"$word\" = = ]; then word=\n" /* bash takes --zero=1 for three words */
            "    elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n    ",
            family->program);
    if (family->n == 1) {
        put_bash_call(family->tables[0], 1, file);
    } else {
        fputs("if [ \"$COMP_CWORD\" = 1 ]; then COMPREPLY=($(compgen -W '", file);
        put_command_names(family, file);
        fputs(" help' -- \"$word\")); return; fi\n    case ${COMP_WORDS[1]} in\n", file);
        for (int i = 0; i < family->n; i++) {
            fprintf(file, "    %s) ", options_command(family->tables[i]));
            put_bash_call(family->tables[i], 2, file);
            fputs(" ;;\n", file);
        }
        fputs("    esac", file);
    }
    fprintf(file, "\n}\ncomplete -o default -F _weft_complete_%s %s\n", family->program,
            family->program);
}

/* ---- zsh ------------------------------------------------------------------------------------------- */

/* Within '...' and within [...] of _arguments; in words of _describe. */
static void put_zsh_text(const char *text, FILE *file)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", file);
        else if (strchr("[]:\\", *text))
            fprintf(file, "\\%c", *text);
        else
            fputc(*text, file);
    }
}

static void put_zsh_option(const option *o, FILE *file)
{
    const bool has_part = o->kind == OPTION_FLAG && o->choices;
    fprintf(file, " \\\n    '--%s%s[", o->name,
            has_part                 ? "=-"
            : o->kind == OPTION_FLAG ? ""
                                     : "=");
    put_zsh_text(o->help, file);
    fputc(']', file);
    if (has_part) fprintf(file, "::more:(%s)", o->choices);
    if (o->kind != OPTION_FLAG) {
        fputc(':', file);
        put_zsh_text(o->unit, file);
        fputc(':', file);
        const value_kind kind = value_of(o);
        if (kind == VALUE_WORDS) fprintf(file, "(%s)", o->choices);
        if (kind == VALUE_FILE) fputs("_files", file);
        if (kind == VALUE_FOLDER) fputs("_files -/", file);
    }
    fputc('\'', file);
}

static void put_zsh_table(const option_table *table, FILE *file)
{
    fputs("_weft_values_", file);
    put_identifier(table->program, file);
    fputs("() {\n  _arguments", file);
    if (table->commands) fprintf(file, " \\\n    '1:command:(%s)'", table->commands);
    for (int i = 0; i < table->n_options; i++)
        put_zsh_option(&table->options[i], file);
    fputs(" \\\n    '--help[what most want to know; --help=all\\: every option]'"
          " \\\n    '--version[which this is]' \\\n    '*:file:_files'\n}\n",
          file);
}

void options_zsh(const option_family *family, FILE *file)
{
    fprintf(file, "#compdef %s\n# made from its options\n", family->program);
    for (int i = 0; i < family->n; i++)
        put_zsh_table(family->tables[i], file);
    if (family->n == 1) {
        fputs("_weft_values_", file);
        put_identifier(family->program, file);
        fputs(" \"$@\"\n", file);
        return;
    }
    fputs("if (( CURRENT == 2 )); then\n  local -a commands=(", file);
    for (int i = 0; i < family->n; i++) {
        fprintf(file, "\n    '%s:", options_command(family->tables[i]));
        put_zsh_text(family->tables[i]->about, file);
        fputc('\'', file);
    }
    fputs(")\n  _describe command commands\nelse\n  local command=$words[2]\n  shift words\n"
          "  (( CURRENT-- ))\n  case $command in\n",
          file);
    for (int i = 0; i < family->n; i++) {
        fprintf(file, "  %s) _weft_values_", options_command(family->tables[i]));
        put_identifier(family->tables[i]->program, file);
        fputs(" ;;\n", file);
    }
    fputs("  esac\nfi\n", file);
}
