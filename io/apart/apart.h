/* apart.h (private): images and compressed data of files of others, decoded by weft-read-files: a process apart, which a file may crash,
 * fill or take over without harm to this one.
 *
 *     WEFT_TRY(weft_apart_take(path, "an image", key, n, &apart, error));
 *     if (!apart->has_it) ... the n bytes into apart->from, then weft_apart_image(apart, place, error)
 *     memcpy(to, apart->to, ...);
 *     weft_apart_give(apart);
 *
 * There are as many processes as threads have ever decoded at once, and they stay. The last result of each is still there: a key finds
 * it again, so pieces of one image cost one decoding. All functions are Local, and several threads may call them.
 */
#ifndef WEFT_IO_APART_H
#define WEFT_IO_APART_H

#include "files_asked.h"
#include "pool.h"
#include "programs.h"

typedef struct weft_apart {
    weft_process process; /* pool.h */
    char *from;           /* [n] of weft_apart_take: what is to be decoded */
    const char
        *to;     /* what was decoded: a process that a file took over may change it at any time */
    bool has_it; /* `to` and `answer` are those of the key */
    files_answer answer;
    /* ---- private ---- */
    char program[WEFT_PROGRAM_PATH], *arguments[2];
    weft_apart_key wanted; /* of what is being decoded */
    int64_t n, used;       /* bytes; of the room */
    char *room;            /* [files_room] that both see */
    int file;              /* of the room */
} weft_apart;

/* weft_apart_take - a process that is free, one that has the key's if there is one, for this thread alone until weft_apart_give.
 *
 * path, need  whose file, and what it is, for sentences
 * n           bytes that are to be decoded
 * returns     WEFT_USAGE where there is no weft-read-files, or more than 256 MiB; WEFT_IO where it cannot be started */
weft_status weft_apart_take(const char *path, const char *need, weft_apart_key key, int64_t n,
                            weft_apart **apart, weft_error *error);
void weft_apart_give(weft_apart *apart);
/* weft_apart_image - decode an image: apart->answer has its sizes, apart->to [rows, columns, channels] its pixels.
 *
 * place     "FILE: the image at byte 512", for sentences
 * returns   WEFT_USAGE where it cannot be decoded, with the reason */
weft_status weft_apart_image(weft_apart *apart, const char *place, weft_error *error);
/* weft_apart_block - n bytes of snappy or zstd into exactly `bytes` of them. place, returns: as above. */
weft_status weft_apart_block(files_task task, const char *path, const char *place, const void *from,
                             int64_t n, void *to, int64_t bytes, weft_error *error);
/* weft_apart_expand - what a compressed file holds, from where it stands, by and by to `write`. */
weft_status weft_apart_expand(const char *path, const char *need, int file,
                              weft_status (*write)(const void *argument, const char *bytes,
                                                   size_t n, weft_error *error),
                              const void *argument, weft_error *error);

#endif
