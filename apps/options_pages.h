/* options_pages.h: what is made from tables of options: help, manual pages, completion for shells.
 *
 *     gpt --help, --help=all     for a person
 *     gpt --help=man             the page gpt.1
 *     gpt --help=bash, =zsh      completion; the build writes each into a file, which is installed
 */
#ifndef WEFT_APPS_OPTIONS_PAGES_H
#define WEFT_APPS_OPTIONS_PAGES_H

#include "options.h"

/* A program of one table; or of several, each of a command of it, whose program is "weft ckpt". */
typedef struct option_family {
    const char *program; /* "weft" */
    const char *about;   /* a line */
    const option_table *const *tables;
    int n;
} option_family;

/* options_tell - print what --help=KIND asks for to stdout; "": --help, of the first table. Local. returns WEFT_USAGE for another
 * kind */
weft_status options_tell(const option_family *family, const char *kind, weft_error *error);

/* The kinds. Local. */
void options_help(const option_family *family,
                  FILE *file); /* what most want, at most 40 lines of 80 columns */
void options_help_all(const option_family *family, FILE *file);
void options_man(const option_family *family, FILE *file);
void options_bash(const option_family *family, FILE *file);
void options_zsh(const option_family *family, FILE *file);

/* options_command - "ckpt" of "weft ckpt"; "" of "gpt". Local. */
const char *options_command(const option_table *table);

#endif
