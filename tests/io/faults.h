/* faults.h: a disk that fails, a process that dies, at a call of one's choice; and a record of all
 * calls.
 *
 *     faults_start(&(fault_plan){.folder = dir, .calls = FAULT_CHANGES, .at = 7,
 *                                .action = FAULT_CRASH_BEFORE});
 *     ... the 7th call that changes something below dir does not happen: the process is killed
 *
 * The library weft_faults has functions of the names of libc's file calls, so it sees what Weft and
 * HDF5 do alike. A test links it, or a program is run with it in LD_PRELOAD and the plan in the
 * environment. Calls outside the folder go straight through.
 */
#ifndef WEFT_TESTS_FAULTS_H
#define WEFT_TESTS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of calls. */
typedef enum fault_call {
    FAULT_MAKE,     /* open that makes a file or empties it */
    FAULT_WRITE,    /* write, pwrite, writev, pwritev       */
    FAULT_TRUNCATE, /* ftruncate, fallocate                 */
    FAULT_SYNC,     /* fsync, fdatasync                     */
    FAULT_RENAME,
    FAULT_EXCHANGE, /* renameat2 with RENAME_EXCHANGE       */
    FAULT_MKDIR,
    FAULT_UNLINK, /* unlink, rmdir                        */
    FAULT_CLOSE,
    FAULT_READ, /* read, pread, open for reading        */
    FAULT_MARK, /* faults_mark: in the record only      */
} fault_call;

enum {
    FAULT_CHANGES = (1 << FAULT_READ) - 1, /* every kind that changes something, and close */
    FAULT_WRITES = 1 << FAULT_MAKE | 1 << FAULT_WRITE | 1 << FAULT_TRUNCATE | 1 << FAULT_MKDIR
};

typedef enum fault_action {
    FAULT_NOTHING, /* only count */
    FAULT_CRASH_BEFORE,
    FAULT_CRASH_AFTER,
    FAULT_CRASH_HALF, /* a write ends in its middle; other calls: after */
    FAULT_FAIL,       /* the call does nothing and returns `error`      */
    FAULT_SHORT       /* a write takes half of its bytes                */
} fault_action;

typedef struct fault_plan {
    const char *folder; /* absolute; calls on what is below it */
    unsigned calls;     /* 1 << kind: those that count        */
    int64_t at;         /* which of them, from 1              */
    fault_action action;
    int error;
    bool is_for_good;     /* and all that come after            */
    bool has_no_exchange; /* a file system that cannot exchange names */
    bool is_unsynced;     /* fsync returns at once: tests of many states are faster */
    int log;              /* descriptor that records are written to; 0: none */
} fault_plan;

#define FAULTS_API __attribute__((visibility("default")))

FAULTS_API void faults_start(const fault_plan *plan);
FAULTS_API void faults_stop(void);
/* Calls of the plan's kinds since the start; whether the action has happened; bytes read. */
FAULTS_API int64_t faults_seen(void);
FAULTS_API bool faults_struck(void);
FAULTS_API int64_t faults_bytes_read(void);
/* A note in the record. */
FAULTS_API void faults_mark(int64_t what, int64_t number);

/* In a program's environment: "calls at action error has_no_exchange folder". The process's own
 * number from a launcher must be FAULTS_RANK, where that is set. */
#define FAULTS_VARIABLE      "TEST_FAULTS"
#define FAULTS_RANK_VARIABLE "TEST_FAULTS_RANK"

/* One record; then the two paths below the folder, without a zero, then the data. */
typedef struct fault_record {
    int32_t call;
    int32_t path_bytes, other_bytes;
    int64_t at, bytes; /* of a write; at: new length of a truncate; both of a mark */
    int64_t data_bytes;
    int64_t number; /* of the calls that count */
} fault_record;

#endif
