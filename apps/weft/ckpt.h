/* ckpt.h: weft ckpt: looking at checkpoints on disk, and carrying them to and from other programs'
 * files (carry.h). */
#ifndef WEFT_APPS_CKPT_H
#define WEFT_APPS_CKPT_H

#include "../app.h"
#include "weft/checkpoint.h"

/* ckpt_main - arguments [n]: from the subcommand on. returns the exit status. */
int ckpt_main(int n, char **arguments);

#endif
