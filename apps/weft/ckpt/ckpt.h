/* ckpt.h: weft ckpt: looking at checkpoints on disk, and carrying them to and from other programs'
 * files (carry.h). */
#ifndef WEFT_APPS_CKPT_H
#define WEFT_APPS_CKPT_H

#include <jansson.h>

#include "../../app.h"
#include "../carry/carry.h"
#include "weft/checkpoint.h"

/* ckpt_main - arguments [n]: from the subcommand on. returns the exit status. */
int ckpt_main(int n, char **arguments);
extern const option_table ckpt_table; /* of its options */

/* What a subcommand is given, and what it gives. */
typedef struct ckpt_call {
    const char *const *paths;
    const char *format;             /* --format */
    const char *dims, *map, *sizes; /* --dims, --map, --sizes; "": not said */
    bool has_names;                 /* --names hf */
    int64_t shard_bytes;            /* --shard-bytes; 0: one file */
    json_t *json;                   /* the answer as data */
    bool is_json;                   /* else it prints for a person */
    int code;                       /* exit status when nothing failed */
} ckpt_call;

/* ckpt_stored_json - what a checkpoint says of itself: yours. ckpt_bytes_of - of all its tensors. Local. */
json_t *ckpt_stored_json(const weft_stored *stored);
int64_t ckpt_bytes_of(const weft_stored *stored);

/* ckpt_export, ckpt_import - the subcommands. Local. */
weft_status ckpt_export(ckpt_call *c, weft_error *error);
weft_status ckpt_import(ckpt_call *c, weft_error *error);
/* ckpt_diff - the subcommand; its exit status is 1 when they differ. Local. */
weft_status ckpt_diff(ckpt_call *c, weft_error *error);

/* ckpt_check_map - whether --names and --map go together. ckpt_read_named - the map by its name, or that of the names which there
 * are. Local. */
weft_status ckpt_check_map(const ckpt_call *c, weft_error *error);
weft_status ckpt_read_named(const ckpt_call *c, const source *from, bool is_theirs,
                            const carry_said *said, carry_map **map, weft_error *error);
/* ckpt_copy_words - files of a vocabulary from one folder into another, which is made where there are any. n: out, how many. Local. */
weft_status ckpt_copy_words(const char *from, const char *to, int *n, weft_error *error);
bool ckpt_is_folder(const char *path);

#endif
