/* postmortem.h: weft postmortem: what ended a job. */
#ifndef WEFT_APPS_POSTMORTEM_H
#define WEFT_APPS_POSTMORTEM_H

#include "../app.h"

/* postmortem_main - arguments [n]: after the subcommand. returns the exit status. */
int postmortem_main(int n, char **arguments);
extern const option_table postmortem_table; /* of its options */

#endif
