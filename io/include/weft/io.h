/* io.h: datasets: samples in one global order; every rank reads only its own boxes.
 *
 *     WEFT_TRY(weft_text_open("book.txt", 64, seed, &data, error));       inputs "tokens", "targets" [batch, seq]
 *     WEFT_TRY(weft_dataset_start(data, program, error));
 *     WEFT_TRY(weft_dataset_next(data, program, error));                  fills the inputs of all local ranks
 *
 * Sample number i of the run (step * batch + row) is element permute(i mod n) of the set, with a fresh keyed
 * permutation each epoch: any mesh sees the same samples at the same step, none repeated, none skipped.
 */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include "weft/program.h"

WEFT_BEGIN

typedef struct weft_dataset weft_dataset; /* opaque */

/* The kind of file that a reader wants. */
typedef enum weft_file_use {
    WEFT_FILE_TEXT, /* any bytes but those that are certainly no text: archives, UTF-16, formats of their own */
    WEFT_FILE_LINES, /* settings, pairs of words */
    WEFT_FILE_JSON,
    WEFT_FILE_TOKENS,
    WEFT_FILE_IDX, /* or one in gzip */
    WEFT_FILE_SAFETENSORS,
    WEFT_FILE_HDF5,
    WEFT_FILE_CHECKPOINT,
    WEFT_FILE_USES /* how many there are */
} weft_file_use;
/* weft_file_check - refuse a file that is of another kind than is wanted, by its first bytes: "model.safetensors is
 * no safetensors file: it is a pointer of Git LFS, not the file itself; git lfs pull fetches that". A file of no
 * known kind passes: its reader says what is wrong with it. weft_bytes_check - the same of the n bytes of a file that
 * was read or of its beginning, at most 2^40; bytes may be NULL when n is 0. Local. All readers here ask it before
 * they judge.
 * returns  WEFT_IO for a file that cannot be read or is no regular one; WEFT_USAGE for one of another kind */
WEFT_API WEFT_MUST_CHECK weft_status weft_file_check(const char *path, weft_file_use use,
                                                     weft_error *error);
WEFT_API WEFT_MUST_CHECK weft_status weft_bytes_check(const void *bytes, size_t n, const char *path,
                                                      weft_file_use use, weft_error *error);
/* weft_text_mark - bytes of UTF-8's byte order mark at the begin of a text [n]: 3, or 0. JSON and settings skip it. A
 * text to learn from keeps it: bytes stay unchanged. Local. */
WEFT_API size_t weft_text_mark(const void *bytes, size_t n);

/* weft_text_open - the bytes of a file as windows of seq + 1: tokens = bytes 0..seq-1, targets = bytes 1..seq. Local.
 * Windows begin at multiples of seq. returns WEFT_IO for a file that is missing, unreadable, or empty; WEFT_USAGE when it is shorter
 * than one window (with both sizes), is certainly no text (weft_file_check), or seq < 1. */
WEFT_API WEFT_MUST_CHECK weft_status weft_text_open(const char *path, int64_t seq, uint64_t seed,
                                                    weft_dataset **dataset, weft_error *error);
/* weft_tokens_open - the same for a file of tokens of n_words words, 1 to 65536, as `weft tokens encode` writes one.
 * It has llm.c's format, all little endian: WEFT_TOKENS_HEAD numbers of 32 bits (magic, version, how many tokens,
 * zeros), then the tokens, of 16 bits each. Inputs "tokens", "targets" are i32 or i64. Local. Besides what
 * weft_text_open returns: WEFT_USAGE or WEFT_IO for a file that is none of tokens; WEFT_USAGE for a token that is no
 * word, with its place: weft_dataset_bound is called. */
enum { WEFT_TOKENS_HEAD = 256, WEFT_TOKENS_MAGIC = 20240520, WEFT_TOKENS_VERSION = 1 };
WEFT_API WEFT_MUST_CHECK weft_status weft_tokens_open(const char *path, int64_t n_words,
                                                      int64_t seq, uint64_t seed,
                                                      weft_dataset **dataset, weft_error *error);
/* weft_idx_open - IDX images and labels, plain or .gz: inputs "image" [batch, pixel] floats in 0..1, "label" [batch].
 * images, labels: paths; where PATH is not there, PATH.gz is taken.
 * first, count: which samples of the file (count 0: to the end). Sizes in the headers are checked against the
 * files; a lie is WEFT_USAGE with both numbers. shuffled: else in the file's order. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_idx_open(const char *images, const char *labels,
                                                   int64_t first, int64_t count, bool shuffled,
                                                   uint64_t seed, weft_dataset **dataset,
                                                   weft_error *error);
/* weft_samples_open - samples that a function of the program makes: drawn, computed, or read from anywhere. Local.
 *
 *     static weft_status draw(const void *words, int field, int64_t sample, void *row, weft_error *error) { ... }
 *     const weft_sample_field fields[] = {{"source", {"letter", 8}, WEFT_I32}, {"label", {NULL, 0}, WEFT_I32}};
 *     weft_samples_open(&(weft_samples_options){fields, 2, 1000000, draw, words}, &data, error);
 *
 * Fields and their names are copied. returns WEFT_USAGE for options that cannot be. */
enum { WEFT_MAX_FIELDS = 16 };
typedef struct weft_sample_field {
    const char *name; /* of the input that it fills */
    weft_dim width;   /* the input is [batch, width]; {NULL, 0}: [batch] */
    weft_dtype dtype; /* the input's, and of what is read */
} weft_sample_field;
/* Field number `field` of a sample into row [width]: the same numbers whenever and wherever it is called, on a thread of the
 * dataset's, which asks for rows that this process reads alone. A failure ends weft_dataset_next on all ranks. */
typedef weft_status (*weft_sample_read)(const void *argument, int field, int64_t sample, void *row,
                                        weft_error *error);
typedef struct weft_samples_options {
    const weft_sample_field *fields; /* [n_fields], 1 to WEFT_MAX_FIELDS */
    int n_fields;
    int64_t n_samples; /* of the set; then it begins again */
    weft_sample_read read;
    const void *argument; /* handed to read; lives as long as the dataset */
    bool is_shuffled;     /* a permutation each epoch, by the seed; else in order */
    uint64_t seed;
} weft_samples_options;
WEFT_API WEFT_MUST_CHECK weft_status weft_samples_open(const weft_samples_options *options,
                                                       weft_dataset **dataset, weft_error *error);
WEFT_API void weft_dataset_close(weft_dataset **dataset);
WEFT_API int64_t weft_dataset_samples(const weft_dataset *dataset);
/* weft_dataset_take - of its samples n from number `first` on, in the set's order before any permutation: the set has no others from
 * here on, and says so in its facts, unless these are all. Before weft_dataset_start. Local. returns WEFT_USAGE with both numbers */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_take(weft_dataset *dataset, int64_t first,
                                                       int64_t n, weft_error *error);
/* Elements of one sample ("image": pixels; "tokens": seq). */
WEFT_API int64_t weft_dataset_width(const weft_dataset *dataset);

/* weft_dataset_facts - what the samples are, in words: "text: 300000 bytes (hash 5e1f0c2b9a3d4e77); seq: 64". Two sets with the same
 * words have the same samples, in an order that the seed decides. For weft_checkpoint_options.data.
 *
 * A file is identified by its length and its bytes, wherever it is and whatever it is called, compressed or not. Up
 * to 64 MiB all of them are hashed when it is opened, of a longer one 64 blocks of 64 KiB, from its first to its last
 * byte: changes between them, without another length, are not noticed. For samples that a function makes only their
 * number is known; say more with weft_dataset_fact. Borrowed until the next fact; "" for NULL. Local. */
WEFT_API const char *weft_dataset_facts(const weft_dataset *dataset);
/* weft_dataset_fact - say one more, or another value of it: which words the tokens are of, what a function reads. Before the set
 * delivers. name without ": ", value without "; ". returns WEFT_USAGE where it cannot be written so, or there are more than 1023
 * bytes in all. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_fact(weft_dataset *dataset, const char *name,
                                                       const char *value, weft_error *error);
/* weft_dataset_fact_file - say what a file holds that a function reads, as sets of files say it. Local. Besides: WEFT_IO for a file
 * that cannot be read. */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_fact_file(weft_dataset *dataset, const char *name,
                                                            const char *path, weft_error *error);
/* weft_dataset_bound - the numbers of input `name` are ids, 0 to n - 1 (labels of n classes, words of a vocabulary), or `ignored`, a number
 * outside that may be there too (-1); 0: none. A graph does not complain: cross_entropy ignores a label that is no class, a gather
 * gives zeros. Before weft_dataset_start. Local.
 *
 * The ids of a file are checked now (beyond 64 MiB only the hashed blocks), and all again when they are read, where
 * weft_dataset_next fails. returns WEFT_USAGE with file, place, number and n */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_bound(weft_dataset *dataset, const char *name,
                                                        int64_t n, int64_t ignored,
                                                        weft_error *error);
/* weft_dataset_highest - the largest number of input `name` in all samples of the set, which are in a file: of labels one less than
 * there are classes. Local. returns -1 on failure; for a set that a function makes that is WEFT_USAGE. */
WEFT_API int64_t weft_dataset_highest(const weft_dataset *dataset, const char *name,
                                      weft_error *error);
/* weft_dataset_agree - whether all processes have the same facts; weft_dataset_next asks by itself, once after each start.
 * Collective over the mesh. returns WEFT_MISMATCH on all of them, with what differs, at which ranks */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_agree(weft_dataset *dataset,
                                                        weft_program *program, weft_error *error);

/* weft_dataset_start - bind to a program's inputs by name and start the reading thread. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_start(weft_dataset *dataset,
                                                        weft_program *program, weft_error *error);
/* weft_dataset_next - the next batch into the program's inputs. Collective over the mesh (agrees on failure). Where
 * processes have different sets, all get WEFT_MISMATCH from the first call. */
WEFT_API WEFT_MUST_CHECK weft_status weft_dataset_next(weft_dataset *dataset, weft_program *program,
                                                       weft_error *error);
/* The global number of the next sample to be delivered; set it to continue or restart. Local. */
WEFT_API int64_t weft_dataset_position(const weft_dataset *dataset);
WEFT_API void weft_dataset_seek(weft_dataset *dataset, int64_t sample);

/* weft_permute - a keyed bijection of [0, n): where element i goes; n is at most WEFT_MAX_SAMPLES. 0 for an i outside, or
 * another n. Local. A Feistel network with cycle walking. */
#define WEFT_MAX_SAMPLES ((int64_t)1 << 62)
WEFT_API int64_t weft_permute(uint64_t key, int64_t n, int64_t i);

WEFT_END

#endif
