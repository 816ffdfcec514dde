/* disk.h: a model of a disk that loses power: what of a record of calls is on it afterwards.
 *
 * Written bytes are certain only after fsync of that file, and a name only after fsync of its directory. Before, each
 * write and each change of a name may be there or not, alone or after those before it; of a write, some sectors of
 * 512 bytes; of a file, a length whose bytes have not come.
 */
#ifndef WEFT_TESTS_DISK_H
#define WEFT_TESTS_DISK_H

#include "faults.h"

typedef struct disk_record {
    fault_record call;
    char *path, *other;
    const char *data;
} disk_record;

typedef struct disk_log {
    disk_record *records;
    int n;
    char *bytes;
} disk_log;

/* disk_load - the record in the descriptor, from its beginning. False when it is none. */
bool disk_load(int file, disk_log *log);
void disk_unload(disk_log *log);

typedef struct power_loss {
    int n;           /* records before it                                  */
    double kept;     /* of what is not for certain, how much, from 0 to 1   */
    bool is_ordered; /* what is kept of a directory or file is its beginning */
    bool is_torn;
    uint64_t seed;
} power_loss;

/* disk_after - make `folder` as the disk is after the loss. False when the record makes no sense. */
bool disk_after(const disk_log *log, const power_loss *loss, const char *folder);

/* A number in [0, 1) out of `seed`, which goes on. */
double disk_random(uint64_t *seed);

#endif
