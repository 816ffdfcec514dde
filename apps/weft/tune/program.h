/* program.h: what options a program has, asked of itself. */
#ifndef WEFT_APPS_TUNE_PROGRAM_H
#define WEFT_APPS_TUNE_PROGRAM_H

#include "space.h"

/* program_check - whether the program of a command has all options that vary, and --run, and where `wants_until` --until. It is asked with
 * --help=all. Local. returns WEFT_USAGE with the nearest option, or where it cannot be started
 *
 * program  where it is
 * command  [n] its name, words before its options, and its options */
weft_status program_check(const char *program, char *const *command, int n, const space *s,
                          bool wants_until, weft_error *error);

#endif
