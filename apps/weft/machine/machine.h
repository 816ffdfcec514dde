/* machine.h: weft calibrate, how fast this machine is; weft machine, what files of that say. */
#ifndef WEFT_APPS_MACHINE_H
#define WEFT_APPS_MACHINE_H

#include "../../app.h"

/* calibrate_main, machine_main - arguments [n]: after the subcommand. return the exit status. */
int calibrate_main(int n, char **arguments);
int machine_main(int n, char **arguments);
extern const option_table calibrate_table, machine_table; /* of their options */

#endif
