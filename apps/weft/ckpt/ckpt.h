/* ckpt.h: weft ckpt: looking at checkpoints on disk, and carrying them to and from other programs'
 * files (carry.h). */
#ifndef WEFT_APPS_CKPT_H
#define WEFT_APPS_CKPT_H

#include <jansson.h>

#include "../../app.h"
#include "weft/checkpoint.h"

/* ckpt_main - arguments [n]: from the subcommand on. returns the exit status. */
int ckpt_main(int n, char **arguments);
extern const option_table ckpt_table; /* of its options */

/* What a subcommand is given, and what it gives. */
typedef struct ckpt_call {
    const char *const *paths;
    const char *format;             /* --format */
    const char *dims, *map, *sizes; /* --dims, --map, --sizes; "": not said */
    json_t *json;                   /* the answer as data */
    bool is_json;                   /* else it prints for a person */
    int code;                       /* exit status when nothing failed */
} ckpt_call;

/* ckpt_diff - the subcommand; its exit status is 1 when they differ. Local. */
weft_status ckpt_diff(ckpt_call *c, weft_error *error);

#endif
