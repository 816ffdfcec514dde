/* data.h: chains of records: sources opened by name, and stages that shuffle, take, repeat, join, mix and map them.
 *
 *     WEFT_TRY(weft_chain_open("train-images.idx", NULL, &data, error));     inputs "image" [batch, pixel]
 *     WEFT_TRY(weft_chain_shuffle(&data, 0, seed, error));
 *     WEFT_TRY(weft_chain_map(&data, &augment, error));
 *     WEFT_TRY(weft_chain_dataset(&data, NULL, &dataset, error));            then as in io.h
 *
 * A chain is an endless sequence of records with named fields; weft_chain_records of them make a pass. Record i is a pure function of
 * the chain and i: on any mesh, with any number of threads, from any position on, it is the same. Order takes no memory.
 *
 * A stage takes a chain and puts a longer one in its place. When it fails, the chain is as it was. An error names its call. All
 * functions are Local.
 */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include "weft/io.h"
#include "weft/philox.h"

WEFT_BEGIN

typedef struct weft_chain weft_chain; /* opaque */

typedef struct weft_open_options {
    const char *format; /* "text", "tokens", "npy", ...; NULL: by the file's first bytes */
    const char *fields; /* the names of those to take, "image,label"; NULL: all that there are */
    /* of images: each is scaled to that many, by the mean of the area that a pixel covers; 0: they stay as they are */
    int64_t rows, columns;
} weft_open_options;

/* weft_chain_open - the records of a file, of those that a pattern names, or of a folder. options may be NULL. Images in folders within
 * one have a field "label" besides: the number of their folder by its name.
 * returns  WEFT_IO for a file that cannot be read; WEFT_USAGE for one that has no records, or is of no known format */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_open(const char *path,
                                                     const weft_open_options *options,
                                                     weft_chain **chain, weft_error *error);
WEFT_API void weft_chain_close(weft_chain **chain);

/* Records of a pass; 0 for NULL. */
WEFT_API int64_t weft_chain_records(const weft_chain *chain);
/* How many fields a record has, and the name, dtype and shape of each; of a ragged field the first dim has the largest size, 0 where
 * that is not known. For NULL or a field that is not there: 0, NULL, WEFT_DTYPES, NULL. */
WEFT_API int weft_chain_fields(const weft_chain *chain);
WEFT_API const char *weft_chain_field_name(const weft_chain *chain, int field);
WEFT_API weft_dtype weft_chain_field_dtype(const weft_chain *chain, int field);
WEFT_API const weft_shape *weft_chain_field_shape(const weft_chain *chain, int field);
/* Whether records have other sizes of the field's first dim. false for NULL or a field that is not there. */
WEFT_API bool weft_chain_is_ragged(const weft_chain *chain, int field);
/* How many classes a field's numbers are of, and what they are called; 0, NULL where they have no names. */
WEFT_API int weft_chain_labels(const weft_chain *chain, int field);
WEFT_API const char *weft_chain_label(const weft_chain *chain, int field, int label);
/* Of a source the format of its files, "csv"; of a stage its name, "shuffle"; "" for NULL. */
WEFT_API const char *weft_chain_format(const weft_chain *chain);
/* weft_chain_facts - what the chain is, in words, as the facts of a dataset of it: what each source and stage says, and the digest of all
 * that decides its records. Borrowed; "" for NULL, or where there is no memory. */
WEFT_API const char *weft_chain_facts(weft_chain *chain);

/* weft_text_options - how text is read: windows of seq + 1, as weft_text_open has them. */
typedef struct weft_text_options {
    int64_t seq; /* at least 1 */
    int64_t
        n_words; /* 0: bytes; else files are of tokens of so many words, 1 to 65536 (weft_tokens_open) */
    const char
        *field; /* of records: the one with the text; NULL: "text", or the only text there is */
} weft_text_options;
/* weft_chain_text - fields "tokens" and "targets" [seq]: of a text, of all texts that a pattern names, or of a text field of JSON lines,
 * CSV, Parquet, tar. Texts and records are joined, with a line break between two; files of tokens are not joined.
 * cost     8 bytes a record, and all of them read once
 * returns  WEFT_IO for a file that cannot be read; WEFT_USAGE for too little text, or a field that has none */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_text(const char *path,
                                                     const weft_text_options *options,
                                                     weft_chain **chain, weft_error *error);

/* Tokens of a text [bytes] into tokens [bytes + WEFT_ENCODE_MORE], and how many: *n. Pure, and called by several threads at once. */
enum { WEFT_ENCODE_MORE = 16 };
typedef weft_status (*weft_encode_function)(const void *argument, const unsigned char *text,
                                            int64_t bytes, int32_t *tokens, int64_t *n,
                                            weft_error *error);
typedef struct weft_encode_options {
    const char *
        name; /* of what encodes, one word: it stands for the function in the chain's digest, and where an index is looked for */
    const char *field; /* with the text; NULL: "text", or the only text there is */
    weft_encode_function function;
    const void *argument; /* handed to function; lives as long as the chain */
    const char *folder;   /* where the index is kept and looked for; NULL: nowhere */
    int n_threads;        /* that make the index, 1 to 64; 0: 1 */
} weft_encode_options;
/* weft_chain_encode - in place of a text its tokens: records with the field "tokens", i32, of any length. How many each has is an index,
 * built here. A record is encoded whole when a part of it is read.
 *
 * cost     all texts are read and encoded once, unless the index is found; 8 bytes a record
 * returns  WEFT_USAGE for options or a field that cannot be, a text of more than 64 MiB, for a chain whose passes differ; what the function
 *          returned, with the record; WEFT_IO */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_encode(weft_chain **chain,
                                                       const weft_encode_options *options,
                                                       weft_error *error);

typedef struct weft_windows_options {
    int64_t seq;     /* 1 to 2^30 */
    int64_t between; /* what is put between two records, a byte or a token; -1: nothing */
} weft_windows_options;
/* weft_chain_windows - records of one field, a text or a row of whole numbers, are joined and cut into windows: fields "tokens" and
 * "targets" [seq], one later. Windows go on from a record to the next (weft_chain_pack keeps documents apart).
 *
 * cost     8 bytes a record
 * returns  WEFT_USAGE for other fields, for a chain whose passes differ, for less than seq + 1 in all; WEFT_IO */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_windows(weft_chain **chain,
                                                        const weft_windows_options *options,
                                                        weft_error *error);

/* weft_pack_options - how documents become windows: several in one, and none cut that has room in a window. */
typedef struct weft_pack_options {
    int64_t seq; /* tokens of a window, 1 to 2^30 */
    /* with the tokens: a row of whole numbers, or a text, each byte a token; NULL: "text", "tokens", or the only such field */
    const char *field;
    /* the target of a document's last token, from 0 on; below 0: it has none, which is -1 */
    int64_t end;
    int64_t look_ahead; /* documents that are fitted together, 1 to 2^20; 0: 4096 */
    const char *folder; /* where the index is kept and looked for; NULL: nowhere */
    int n_threads;      /* that build it, 1 to 64; 0: 1 */
} weft_pack_options;
/* weft_chain_pack - in place of documents, a record each, windows of several: fields "tokens", "targets", "segments" and "positions"
 * [seq], i32. Each token of each document is in one window, and its target is the document's next one. A document longer than a window is
 * cut at multiples of seq; of what is left several share a window, best fit first. A window's first document has segment 1, the
 * next one 2; positions begin at 0 in each. Behind them all are 0, but targets, which are -1: a cross_entropy ignores them.
 *
 * Which document goes where is an index, built here by going through all records once. It depends on the records, seq and
 * look_ahead alone. Its hash is part of the chain's digest. In a folder it has a name by what it depends on.
 *
 * cost     16 bytes a piece of a document and 8 a window
 * returns  WEFT_USAGE for options or a field that cannot be, for a chain whose passes differ, and where there is no token; WEFT_IO for
 *          records that cannot be read, or an index that cannot be written */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_pack(weft_chain **chain,
                                                     const weft_pack_options *options,
                                                     weft_error *error);

typedef struct weft_bucket_options {
    int64_t values;    /* that a bucket has room for, 1 to 2^30 */
    const char *field; /* with rows of any length, one value or more; NULL: the only one that has */
    int64_t look_ahead; /* records that are fitted together, 1 to 2^20; 0: 4096 */
    const char *folder; /* where the index is kept and looked for; NULL: nowhere */
    int n_threads;      /* that build it, 1 to 64; 0: 1 */
} weft_bucket_options;
/* weft_chain_bucket - in place of records with rows of any length, buckets of several: the field [value: values] has the rows one behind the
 * other; "offsets" [end: rows + 1], i32, says that row r is [offsets[r], offsets[r + 1]). Other fields come as [row: rows] of theirs. No row
 * is cut, and there are as many rows as the fullest bucket has. Behind the last row numbers are 0, and offsets those of the end. How full
 * buckets are is told by weft_chain_facts.
 *
 * cost     as weft_chain_pack
 * returns  WEFT_USAGE for a row that has no room, with its record; for options or a field that cannot be, a chain whose passes differ; WEFT_IO */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_bucket(weft_chain **chain,
                                                       const weft_bucket_options *options,
                                                       weft_error *error);

/* weft_chain_samples - records that a function makes, as weft_samples_open has them; several threads may call it, if the dataset has
 * several (weft_chain_dataset). */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_samples(const weft_samples_options *options,
                                                        weft_chain **chain, weft_error *error);

/* ---- order: arithmetic on the numbers of records, without memory ---- */

/* weft_chain_shuffle - a permutation of a pass, another one each pass. block 0: of all its records; above: blocks of so many come in any
 * order, and records within windows of block blocks, which suits a disk that does not like to jump: 1024 reads 2^20 records at a time. */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_shuffle(weft_chain **chain, int64_t block,
                                                        uint64_t seed, weft_error *error);
/* weft_chain_take - records [first, first + count) of each pass; count 0: to its end. returns WEFT_USAGE when there are fewer */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_take(weft_chain **chain, int64_t first,
                                                     int64_t count, weft_error *error);
/* weft_chain_repeat - a pass is so many passes of the chain: what is shuffled after it is shuffled across them. */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_repeat(weft_chain **chain, int64_t times,
                                                       weft_error *error);
/* weft_chain_freeze - each pass is the first one again: a permutation, or random numbers, that stay. A part that is taken
 * of it then has the same records in each pass: one to learn from, and one to look at. */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_freeze(weft_chain **chain, weft_error *error);
/* weft_chain_concat, _interleave, _mix - one chain of n, 1 to 4096, with the same fields. They are taken over, and chains [n] is
 * NULL then. concat: one behind the other. interleave: one of each in turn, of those that have some left. mix: as weights [n] say, each
 * above 0; their shares are taken to nine digits. In every stretch each has its share, to less than two records, and begins again when it is at its end. A pass has as many
 * records as all of them. returns WEFT_USAGE for other fields, a weight that is not above 0 or below 1/65536 of all */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_concat(weft_chain **chains, int n,
                                                       weft_chain **chain, weft_error *error);
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_interleave(weft_chain **chains, int n,
                                                           weft_chain **chain, weft_error *error);
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_mix(weft_chain **chains, const double *weights,
                                                    int n, weft_chain **chain, weft_error *error);

/* ---- map ---- */

/* Record i into out [a buffer a field], of what the chain has in its own dtypes, in [a buffer a field]: pure, and called at once by
 * the threads of a dataset and the one that waits for it. key: of random numbers of that record (philox.h), others each pass where the map is random. */
typedef weft_status (*weft_map_function)(const void *argument, int64_t i, const void *const *in,
                                         void *const *out, weft_philox_key key, weft_error *error);
typedef struct weft_map_options {
    const char
        *name; /* of what it does, one word: it stands for the function in the chain's digest */
    const weft_sample_field
        *fields; /* [n_fields], 1 to WEFT_MAX_FIELDS, of what it makes; copied */
    int n_fields;
    weft_map_function function;
    const void *argument; /* handed to function; lives as long as the chain */
    bool is_random;       /* a record is another one each pass */
    uint64_t seed;
} weft_map_options;
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_map(weft_chain **chain,
                                                    const weft_map_options *options,
                                                    weft_error *error);

typedef struct weft_split_options {
    int64_t token;      /* that ends a document: of a text 10 is the end of a line */
    const char *folder; /* where the index is kept and looked for; NULL: nowhere */
    int n_threads;      /* that look for it, 1 to 64; 0: 1 */
} weft_split_options;
/* weft_chain_split - records of one field, a text or a row of whole numbers, become documents: each goes up to and with the next such token,
 * or to the end of its record. Empty records are none. Files of tokens have <|endoftext|> between documents.
 *
 * cost     all tokens are read once, unless the index is found; 24 bytes a document
 * returns  WEFT_USAGE for other fields, for a chain whose passes differ, and where there is no token; WEFT_IO */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_split(weft_chain **chain,
                                                      const weft_split_options *options,
                                                      weft_error *error);

/* ---- filter ---- */

/* Whether record i stays: in [a buffer a field] as the chain has it, of a ragged field counts [a number a field] of its first dim. Pure, and
 * called by several threads at once, for each record once. */
typedef weft_status (*weft_filter_function)(const void *argument, int64_t i, const void *const *in,
                                            const int64_t *counts, bool *stays, weft_error *error);
typedef struct weft_filter_options {
    const char *
        name; /* of what it keeps, one word: it stands for the function where an index is looked for */
    weft_filter_function function;
    const void *argument; /* handed to function, here alone */
    const char *folder;   /* where the index is kept and looked for; NULL: nowhere */
    int n_threads;        /* that ask the function, 1 to 64; 0: 1 */
} weft_filter_options;
/* weft_chain_filter - the records that stay, in their order. Which they are is an index. It is built here, and its hash is part of the
 * chain's digest. An index in a folder is found by the chain and the name: another function needs another name.
 *
 * cost     all records are read once, unless the index is found; 8 bytes for each that stays
 * returns  WEFT_USAGE where none stays, for a chain whose passes differ; what the function returned, with the record; WEFT_IO */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_filter(weft_chain **chain,
                                                       const weft_filter_options *options,
                                                       weft_error *error);

/* ---- what is kept ---- */

typedef struct weft_snapshot_options {
    const char *folder; /* where the file is, and is looked for */
    int n_threads;      /* that write it, 1 to 64; 0: 1 */
} weft_snapshot_options;
/* weft_chain_snapshot - a pass of the chain is written into a file, and read from there, now and in later runs. The file is found by the
 * chain's digest, so another file, setting or order below is another snapshot; the digest stays the chain's. Every part of about
 * 1 MiB has a hash, and is compared with it when it is first read. Of the processes of a host one writes.
 *
 * cost     when the file is not there, all records are read once, and written; 8 bytes a record and ragged field
 * returns  WEFT_IO for a disk that is full, or a folder that cannot be written: there is nothing of the file then; WEFT_USAGE for a chain
 *          whose passes differ. Reading a file that was damaged is WEFT_CORRUPT */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_snapshot(weft_chain **chain,
                                                         const weft_snapshot_options *options,
                                                         weft_error *error);
/* weft_chain_cache - keeps records in memory when they have been read, the first so many of a pass that there is room for in `bytes`, at least 1;
 * others are read as before. The digest stays the chain's. returns WEFT_USAGE for ragged fields, and for a chain whose passes differ */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_cache(weft_chain **chain, int64_t bytes,
                                                      weft_error *error);

/* ---- reading without a program ---- */

/* weft_chain_lengths - how many of its first dim a field has in records [first, first + n): others in each only where it is ragged.
 * lengths [n] out. weft_chain_read - its numbers of these records, in its dtype, record behind record, into to [bytes]; several
 * threads may read one chain. returns WEFT_USAGE for records or a field that are none, or more than there is room for */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_lengths(const weft_chain *chain, int64_t first,
                                                        int64_t n, int field, int64_t *lengths,
                                                        weft_error *error);
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_read(const weft_chain *chain, int64_t first,
                                                     int64_t n, int field, void *to, int64_t bytes,
                                                     weft_error *error);

/* ---- end ---- */

typedef struct weft_feed_options {
    /* that read, 1 to 64; 0: 1. The thread that waits for a batch helps, unless a function makes the samples (weft_chain_samples) */
    int n_threads;
    int n_ahead; /* batches that are read before they are wanted, 1 to 64; 0: 1 */
    /* ranks that read, at most those of the mesh: each record is read by one of them, and the others get their parts of it from there.
     * 0: each rank reads its own parts, so several may read one record. Ranks of one process count as one here: they have in common
     * what it reads. All processes say the same */
    int n_readers;
} weft_feed_options;
/* weft_chain_dataset - the records in their order as a set that fills a program's inputs. Takes the chain over; it is NULL then. The
 * facts of the set have the chain's digest and what each source and stage says. options may be NULL. */
WEFT_API WEFT_MUST_CHECK weft_status weft_chain_dataset(weft_chain **chain,
                                                        const weft_feed_options *options,
                                                        weft_dataset **dataset, weft_error *error);
/* weft_dataset_feed - how a set is read, whatever it was made of. Before weft_dataset_start. Local. returns WEFT_USAGE for numbers that
 * cannot be, and for a set that has been started.
 *
 * Of N readers on R ranks number k is rank k R / N, rounded down, and each reads as many rows of a batch, its own ones as far as
 * possible. Rows are read ahead, and exchanged by weft_dataset_next: so the time of the exchange is added to that of a step. */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_feed(weft_dataset *dataset,
                                                       const weft_feed_options *options,
                                                       weft_error *error);

WEFT_END

#endif
