/* options.h: the settings of a program from one table: defaults, a file, the environment, the
 * command line.
 *
 *     static const option options[] = {
 *         {"batch", OPTION_COUNT, "16", "N", "training", "samples in one step, over all ranks"},
 *         ...
 *     settings *s = settings_read(&table, argc, argv, &error);
 *     int64_t batch = settings_count(s, "batch");
 *
 * Later sources win: default < --config FILE ("batch = 32", # comments) < WEFT_BATCH < --batch 32.
 * A name that no source may use is refused with the nearest one that it may.
 */
#ifndef WEFT_APPS_OPTIONS_H
#define WEFT_APPS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "weft/error.h"

enum { LINE_WIDTH = 80 }; /* of what is printed */

typedef enum option_kind {
    OPTION_TEXT,
    OPTION_LIST,   /* words like name=value, as many as there are: --dims a=x,y b=z */
    OPTION_COUNT,  /* an integer from `low` to `high` */
    OPTION_REAL,   /* a finite number from `low`    */
    OPTION_CHOICE, /* one of `choices`              */
    OPTION_FLAG,   /* --name, --no-name; of `choices` one too: --name=all */
    OPTION_TIME,   /* a number and s, m or h: 90s; 0s only where low is below 0 */
    OPTION_KINDS
} option_kind;

typedef struct option {
    const char *name;
    option_kind kind;
    const char *initial; /* the default, as it would be written; "" for none */
    const char *unit;    /* how --help calls the value: "N", "FILE" */
    const char *group;   /* the heading it stands under in --help */
    const char *help;
    const char *choices; /* "f32 f64" */
    double low, high;    /* high 0: 2^40 */
} option;

typedef struct option_table {
    const char *program; /* "gpt" */
    const char *usage;   /* what --help prints above the options, at most 80 columns */
    const option *options;
    int n_options;
    const char *about; /* what it does, in a line */
    /* the options that --help tells of: "data mesh"; NULL: all, as --help=all does */
    const char *first;
    const char *commands; /* the words that come before the options: "train sample"; NULL: none */
} option_table;

typedef struct settings settings; /* opaque */

/* options_operands - put the words that are neither an option nor its value in front, in their order; the options and
 * their values follow, as settings_read takes them. Local. returns how many operands there are. */
int options_operands(const option_table *table, int n, char **arguments, weft_error *error);

/* settings_read - all sources, checked. arguments [n]: without the program's name and subcommand.
 * Local. returns NULL and WEFT_USAGE with one sentence for the first setting that is wrong; NULL
 * and WEFT_OK after
 *         --help, -h, --help=all (options_pages.h) or --version, which it has answered. Own it: settings_destroy. */
settings *settings_read(const option_table *table, int n, char **arguments, weft_error *error);
void settings_destroy(settings **s);

/* settings_copy - the same again. Own it: settings_destroy. settings_say - as if it stood on the command line: "yes" and "no" of
 * flags. Local. */
settings *settings_copy(const settings *s, weft_error *error);
weft_status settings_say(settings *s, const char *name, const char *value, weft_error *error);

/* By name, which must be in the table. Texts are borrowed. */
const char *settings_text(const settings *s, const char *name);
int64_t settings_count(const settings *s, const char *name);
double settings_real(const settings *s, const char *name);
bool settings_flag(const settings *s, const char *name);
double settings_seconds(const settings *s, const char *name);
bool settings_is(const settings *s, const char *name, const char *text);
/* settings_default - another default: what was said keeps its value. Local. */
weft_status settings_default(settings *s, const char *name, const char *value, weft_error *error);
/* Where it came from: "default", "run.json", "file", "environment", "command line". */
const char *settings_origin(const settings *s, const char *name);
/* The i-th option of the table; NULL past the end. */
const option *settings_option(const settings *s, int i);

/* settings_print - as name=value those that somebody has said: what is not among them is a default. At most 80 columns, but for a
 * longer value. */
void settings_print(const settings *s, FILE *file);

#endif
