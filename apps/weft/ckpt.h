/* ckpt.h: weft ckpt: looking at checkpoints on disk, and carrying them to and from other programs'
 * files. */
#ifndef WEFT_APPS_CKPT_H
#define WEFT_APPS_CKPT_H

#include "../app.h"
#include "weft/checkpoint.h"

/* ckpt_main - arguments [n]: from the subcommand on. returns the exit status. */
int ckpt_main(int n, char **arguments);

/* ckpt_export - every tensor of a checkpoint into one safetensors file, which is replaced whole or
 * not at all. Dims, step, sample and seed go into its metadata. Local. */
weft_status ckpt_export(const weft_stored *stored, const char *path, weft_error *error);
/* ckpt_import - a safetensors file as a checkpoint in `directory`. Where its metadata has no dims,
 * they are called dim0, dim1 ...; where it has no step, it is step 1. Local. returns WEFT_USAGE for
 * a file that breaks a rule of the format, with the rule */
weft_status ckpt_import(const char *path, const char *directory, weft_error *error);

#endif
