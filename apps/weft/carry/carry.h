/* carry.h: checkpoints to and from other programs' files: one table of formats, one interface to
 * each.
 *
 * A file that comes in is not believed: what opens it checks what it says, and carry.c checks
 * names, sizes and doubles once more for all formats before a byte is written.
 */
#ifndef WEFT_APPS_CARRY_H
#define WEFT_APPS_CARRY_H

#include <jansson.h>

#include "weft/checkpoint.h"

enum { CARRY_MOST_TENSORS = 1 << 14 };

/* A tensor of a file. Texts belong to the source. */
typedef struct carried {
    const char *name, *dims; /* dims: names with one of `separators` between; NULL or "": none */
    weft_dtype dtype;
    int n_dims;
    int64_t sizes[WEFT_MAX_DIMS];
    bool is_slot;     /* when the format knows it */
    const char *type; /* in the file: "f16"; NULL: it is not in the file */
    /* Why it can only be left: "has the tensor w of BOOL, ...", behind the file's name; NULL: it can be taken. Then it has neither
     * dtype nor sizes that can be relied on. */
    const char *problem;
    bool is_damaged; /* by its problem */
} carried;

/* A file that is open to be taken from. */
typedef struct source {
    const char *path; /* borrowed */
    int n_tensors;
    carried *tensors; /* [n_tensors] in the order in which they must be read */
    const char *separators;
    bool knows_slots;     /* else "w/m" is a slot of w when they are of one shape */
    int64_t step, sample; /* 0: the file does not say */
    uint64_t seed;
    const char *data; /* what it has learned from; NULL or "": the file does not say */
    const char *kind; /* of a file that is written: whose metadata it has, "pt"; NULL: ours */
    json_t *left;     /* {"the causal mask": 12}: how many a map leaves, and why; NULL: none */
    void *file;       /* the format's own */
    /* Which tensors will be read, [n_tensors]; NULL: all. Once, before the first is read. NULL: it need not know. */
    weft_status (*choose)(struct source *from, const bool *wanted, weft_error *error);
    weft_status (*read)(struct source *from, int i, void *buffer, weft_error *error);
    weft_status (*finish)(struct source *from,
                          weft_error *error); /* after the last; NULL: nothing to do */
    void (*close)(struct source *from);
} source;

/* A format. All Local. */
typedef struct carry_format {
    const char *name;       /* as --format takes it */
    const char *endings[3]; /* of files, the first to be recommended; NULL ends */
    /* All tensors into the new file `path`, on the disk when this returns. */
    weft_status (*write)(const weft_stored *stored, const char *path, weft_error *error);
    /* The same, of any source that can be read in any order; NULL: it has our names alone. */
    weft_status (*write_source)(source *from, const char *path, weft_error *error);
    /* Open and check; on failure nothing is left open. */
    weft_status (*open)(const char *path, source *from, weft_error *error);
} carry_format;

extern const carry_format carry_safetensors, carry_hdf5;
weft_status safetensors_source_open(const char *path, source *from, weft_error *error);

/* carry_stored_source - a checkpoint's tensors, which may be read in any order. Borrows it. Local. */
weft_status carry_stored_source(const weft_stored *stored, source *from, weft_error *error);

/* carry_check_numbers - whether a tensor is one of numbers that can be taken, which is asked of none that a map leaves. Local.
 * returns WEFT_USAGE, or WEFT_CORRUPT for a damaged one, with what a map could do: leave_it */
weft_status carry_check_numbers(const source *from, const carried *tensor, const char *leave_it,
                                weft_error *error);

/* carry_format_of - by the name of the format ("auto": by the ending of the path). WEFT_USAGE names
 * what there is; is_there: and what the file is that has none of these endings. */
weft_status carry_format_of(const char *path, const char *name, bool is_there,
                            const carry_format **format, weft_error *error);
typedef struct carry_map carry_map;
/* carry_export - every tensor of a checkpoint into one file, which is replaced whole or not at all; by a map all but slots, under
 * another program's names, and into several files and an index where they are more than `most` bytes. map: NULL for none.
 * most: 0: any number. Local. */
weft_status carry_export(const weft_stored *stored, const carry_format *format, const char *path,
                         carry_map *map, int64_t most, weft_error *error);
/* carry_bytes_of - all elements of a tensor. carry_write - a source, as carry_export by a map. Local. */
int64_t carry_bytes_of(const carried *tensor);
weft_status carry_write(source *from, const carry_format *format, const char *path, int64_t most,
                        weft_error *error);
/* carry_fresh_name - where a file is written that then takes the place of `path`: carry_put does that, if status is WEFT_OK, or removes
 * it. Local. */
weft_status carry_fresh_name(const char *path, char *fresh, size_t bytes, weft_error *error);
weft_status carry_put(const char *fresh, const char *path, weft_status status, weft_error *error);
/* What is said beside a map: --sizes, and the folder of the file, whose config.json a map may read; NULL: none. */
typedef struct carry_said {
    const char *sizes, *folder;
} carry_said;
enum { CARRY_MAP_NAME = 32 };
/* A map (map.h): which tensors of a file are taken, what they and their dims are called. sizes: "heads=12 kv=64", of dims,
 * in the place of those of the map; "". All Local.
 *
 * carry_map_read     a JSON file, or the name of one that comes with Weft: gpt2
 * carry_map_for      the name of the one of these that has most of a source's names: theirs in a file, ours in a checkpoint
 * carry_map_options  options of gpt that the map, or config.json by it, says the model has: {"epsilon": "1e-6"}. Borrowed
 * carry_map_config   the config.json that the map has to such a checkpoint (before carry_map_turn), by options of gpt {"epsilon": "1e-6"}
 *                    that it was made with; NULL: none. Yours
 * carry_map_turn     as carry_map_lay, the other way: a checkpoint's source (carry_stored_source) as the other program has it
 * carry_map_of_dims  "w=pixel,hidden b=hidden": dims only; the other tensors stay as they are
 * carry_map_lay      the source becomes that of what the map makes of it. Borrows the map until the source is closed,
 *                    which it has to be, whatever this returns */
weft_status carry_map_read(const char *name, const carry_said *said, carry_map **map,
                           weft_error *error);
weft_status carry_map_of_dims(const char *text, const char *sizes, carry_map **map,
                              weft_error *error);
weft_status carry_map_for(const source *from, bool is_theirs, char name[CARRY_MAP_NAME],
                          weft_error *error);
const json_t *carry_map_options(const carry_map *map);
json_t *carry_map_config(const carry_map *map, const source *ours, const json_t *options);
weft_status carry_map_turn(carry_map *map, source *from, weft_error *error);
weft_status carry_map_lay(carry_map *map, source *from, weft_error *error);
void carry_map_destroy(carry_map **map);

/* carry_import - a file as a checkpoint in `directory`, by a map or, NULL, as it is. Where neither names dims, they are
 * called dim0, dim1 ...; where the file has no step, it is step 1. Local.
 *
 * facts    out: {"converted": {"f16": 3}, "left": {"the causal mask": 12}, "unnamed": 2}: types of the file that are none
 *          of ours, and how many tensors had them; what the map leaves and why; how many tensors have dims without
 *          names. Yours; NULL on failure
 * returns  WEFT_USAGE for a file that breaks a rule of its format, has what is not taken, or that the map does not fit;
 *          WEFT_CORRUPT for one that contradicts itself, or that broke the process that read it */
weft_status carry_import(const carry_format *format, const char *path, const char *directory,
                         carry_map *map, json_t **facts, weft_error *error);

#endif
