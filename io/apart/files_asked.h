/* files_asked.h (private): what weft-read-files is asked, and answers.
 *
 * Its descriptor 0 is memory that both see, files_room bytes. The input lies at its begin, the result from `to` on. The answer is believed in nothing: a file may have taken the process over.
 *
 * With the argument "expand" its descriptor 0 is a compressed file: it sends what that holds as stream.h's BYTES, then END, or REFUSED. */
#ifndef WEFT_IO_FILES_ASKED_H
#define WEFT_IO_FILES_ASKED_H

#include <stdint.h>

enum {
    FILES_LARGEST = 1 << 28, /* bytes of an image or a block, packed or not */
    FILES_WHY = 200,
    FILES_PROCESSOR_S = 20 /* for one of them */
};
static const int64_t files_room = 2 * (int64_t)FILES_LARGEST + 4096;

typedef enum files_task { FILES_IMAGE, FILES_SNAPPY, FILES_ZSTD, FILES_TASKS } files_task;

typedef struct files_asked {
    uint32_t task, zero;
    int64_t n;     /* bytes of what is to be decoded */
    int64_t to;    /* where the result goes, behind them */
    int64_t bytes; /* of a block's result; of an image's at most */
} files_asked;

typedef struct files_answer {
    uint32_t is_good, zero;
    int64_t rows, columns,
        channels;        /* of an image: 1: grey; 2: with alpha; 3: colours; 4: with alpha */
    char why[FILES_WHY]; /* ended by 0 */
} files_answer;

#endif
