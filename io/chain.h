/* chain.h (private): a chain: an endless sequence of records, which a source gives or a stage makes of other chains.
 *
 * A record has up to WEFT_MAX_FIELDS named fields, and record i is a pure function of (chain, i), on any thread. `records` of them
 * are a pass; record i belongs to pass i / records. A source has one pass: it is asked for record i % records. A stage may make
 * passes that differ (`varies`): another permutation, other random numbers. So order costs no memory, and a position is a number.
 *
 * A source is one file: its kind, a function that opens it by path, and a row in sources.c. It says what it holds by facts
 * (weft_chain_say): these are its digest, so a fingerprint of the bytes (fingerprint.h) belongs to them.
 *
 *     static const weft_chain_kind npy = {.name = "npy", .read = npy_read, .close = npy_close};
 *     ...
 *     const weft_chain_found found = {.records = n, .n_fields = 1, .fields = {{.name = "x", .dtype = WEFT_F32, ...}}};
 *     WEFT_TRY(weft_chain_make(&npy, self, &found, chain, error));
 *     return weft_chain_say(chain, "npy", print, error);
 */
#ifndef WEFT_IO_CHAIN_H
#define WEFT_IO_CHAIN_H

#include "checkpoint/hash.h"
#include "weft/data.h"

/* One tensor of a record, which fills the program's input of the same name. */
typedef struct weft_field {
    const char *name; /* it and the dims' live as long as the chain */
    weft_dtype dtype; /* of its numbers */
    /* bit d: `read` writes weft_dtype d by itself; 0: `dtype` alone. What else an input may have is converted (weft_convert) */
    uint32_t native;
    uint32_t dtypes;  /* those that an input may have; 0: all that convert (weft_converts) */
    weft_shape shape; /* of one record; no dims: a number */
    /* records have other sizes of dims[0], which kind->count tells; the size here is the largest, or 0 where it is not known */
    bool is_ragged;
    /* the file does not name dims: an input may call them as it likes */
    bool is_unnamed;
    /* where its numbers are ids: of what, and the way out of one that is none; NULL: nothing particular */
    const char *ids, *mend;
    /* its numbers are those of the first field, so many later; 0: they are others */
    int64_t later;
    /* where its numbers are of classes: their names [n_labels], which live as long as the chain; NULL: they have none */
    const char *const *labels;
    int n_labels;
} weft_field;

/* Numbers [begin, end) of one field of a record, row-major. */
typedef struct weft_want {
    int field;
    weft_dtype dtype;
    int64_t begin, end;
    void *to; /* [end - begin] of dtype */
} weft_want;

typedef struct weft_chain_kind {
    const char *name; /* "text", "shuffle" */
    /* Several pieces of one record, so that what is decoded is decoded once. Pure; many threads call it. scratch: the bytes that the
     * source asked for, of this thread, aligned to 16; it holds anything. */
    weft_status (*read)(const void *self, int64_t record, const weft_want *wants, int n_wants,
                        void *scratch, weft_error *error);
    void (*close)(void *self); /* not the operands; NULL: there is nothing */
    /* how many of dims[0] a ragged field has in a record; NULL: no field is ragged */
    weft_status (*count)(const void *self, int64_t record, int field, void *scratch, int64_t *n,
                         weft_error *error);
    /* ---- what follows may be NULL ---- */
    /* n numbers of a field from number `at` of all records' on, each of number_bytes where they lie; NULL: there are too many */
    weft_status (*numbers)(const void *self, int field, int64_t at, int64_t n, int64_t *to,
                           weft_error *error);
    int64_t number_bytes;
    /* where what it holds can grow: the fact that tells it, and what that says of its first units; NULL: it cannot */
    const char *fact;
    weft_status (*print_first)(const void *self, int64_t units, char *print, weft_error *error);
    /* where a number stands: "FILE: label 17"; NULL: it is told by record and field */
    void (*place)(const void *self, int field, int64_t record, int64_t number, char *text,
                  size_t bytes);
    /* a stage: it is asked for any record, not for those of one pass */
    bool is_stage;
    /* it calls a function of the program's, which is promised threads of the dataset's */
    bool is_called;
    /* it gives its operand's records as they are, in their order: the digest is the operand's */
    bool is_same;
    /* its records are those of its one operand, each at most once a pass, in whatever order */
    bool is_order;
} weft_chain_kind;

/* What an open function found out, and what a stage makes. */
typedef struct weft_chain_found {
    int64_t records; /* of one pass, 1 to WEFT_MAX_SAMPLES */
    int n_fields;
    weft_field fields[WEFT_MAX_FIELDS];
    size_t scratch_bytes; /* that a call of read needs, with those of the operands */
    bool varies;          /* passes are not all the same */
} weft_chain_found;

struct weft_chain {
    const weft_chain_kind *kind;
    void *self;
    weft_chain_found found;
    const char *format;    /* a source's, of files of records: "csv"; NULL: the kind's name */
    char *facts;           /* a source's, in words (facts.h); NULL: none */
    char *setting;         /* a stage's, in words: "seed 7"; NULL: none */
    char *told;            /* all that it says (weft_chain_facts); NULL: nobody has asked */
    weft_chain **operands; /* [n_operands] of a stage, which owns them */
    int n_operands;
};

/* weft_chain_make - takes over `self`, also on failure (closes it then). Local. */
weft_status weft_chain_make(const weft_chain_kind *kind, void *self, const weft_chain_found *found,
                            weft_chain **chain, weft_error *error);
/* weft_chain_say - a fact of a source that is being opened; on failure it is closed. weft_chain_say_number - one that is a number. Local. */
weft_status weft_chain_say(weft_chain **chain, const char *name, const char *value,
                           weft_error *error);
weft_status weft_chain_say_number(weft_chain **chain, const char *name, int64_t number,
                                  weft_error *error);
/* weft_chain_ask - pieces of record i, 0 to WEFT_MAX_SAMPLES, of any pass. scratch [found.scratch_bytes]. Local. */
weft_status weft_chain_ask(const weft_chain *chain, int64_t i, const weft_want *wants, int n_wants,
                           void *scratch, weft_error *error);
/* weft_chain_count - how many of dims[0] a field has in record i: the size in its shape where it is not ragged, 1 of a number. Local. */
weft_status weft_chain_count(const weft_chain *chain, int64_t i, int field, void *scratch,
                             int64_t *n, weft_error *error);
/* weft_chain_take_unshuffled - weft_chain_take below permutations: records are taken first and shuffled then. Local. */
weft_status weft_chain_take_unshuffled(weft_chain **chain, int64_t first, int64_t count,
                                       weft_error *error);
/* The number that the first record of a part has in the source below shuffles and parts; 0: of a source. Local. */
int64_t weft_chain_first(const weft_chain *chain);
/* The chain below stages that choose among its records and order them. Local. */
const weft_chain *weft_chain_base(const weft_chain *chain);
/* weft_stage_make - a stage over operands, each of which it takes over and leaves NULL; on failure it closes `self` alone. setting:
 * what it was asked for, in words. Local. */
weft_status weft_stage_make(const weft_chain_kind *kind, void *self, const weft_chain_found *found,
                            const char *setting, weft_chain **operands, int n_operands,
                            weft_chain **chain, weft_error *error);
/* weft_chain_place - where a number stands: "FILE: label 17", or by record and field. Local. */
void weft_chain_place(const weft_chain *chain, int field, int64_t i, int64_t number, char *text,
                      size_t bytes);
/* Numbers of a field in a record, of a ragged one those of one row of dims[0]. Local. */
int64_t weft_field_count(const weft_field *field);
/* weft_field_takes - whether an input may have that dtype. Local. */
bool weft_field_takes(const weft_field *field, weft_dtype dtype);
/* The field of that name; -1: there is none. Local. */
int weft_chain_field(const weft_chain *chain, const char *name);
/* For a stage that keeps something of one pass: refuses a chain whose passes differ. kept: what it keeps, as "an index is of one"; way_out:
 * "pack first and shuffle then". Local. */
weft_status weft_chain_check_fixed(const weft_chain *chain, const char *call, const char *kept,
                                   const char *way_out, weft_error *error);
/* weft_chain_digest - of all that decides its records: kinds, settings, facts. Equal digests, equal records. Local. */
weft_hash weft_chain_digest(const weft_chain *chain);

/* weft_chain_tell - its digest, and what each source and stage says, as facts of a set (facts.h), of which there is room for more. Own
 * *facts: free. Local. */
weft_status weft_chain_tell(const weft_chain *chain, char **facts, weft_error *error);

/* weft_converts - whether numbers of one dtype can be another's: floats among themselves; integers among themselves, where each must
 * fit; bytes and integers to floats. Local. */
bool weft_converts(weft_dtype from, weft_dtype to);
/* weft_convert - n numbers. `from` may end where `to` does, when its numbers are not wider. Local. returns WEFT_USAGE for an integer
 * that does not fit */
weft_status weft_convert(weft_dtype from, const void *numbers, weft_dtype dtype, void *to,
                         int64_t n, weft_error *error);

/* How a file is opened as a source (sources.c): `format` is the name that a row of kinds.c gives to what the file is. */
typedef struct weft_source_format {
    const char *format; /* "npy" */
    weft_status (*open)(const char *path, const weft_open_options *options, weft_chain **chain,
                        weft_error *error);
} weft_source_format;
/* kinds.c: the format of an open file of `bytes`; NULL: of none that is known. *what: what it is, in words ("an HDF5 file"). Local. */
weft_status weft_kind_format(int file, const char *path, int64_t bytes, const char **format,
                             const char **what, weft_error *error);

#endif
