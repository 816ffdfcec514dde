/* shortage.h: memory that is refused at a call of one's choice.
 *
 *     shortage_start(7, false);
 *     status = weft_compile(...);      the 7th allocation that Weft makes, or a library for it, returns NULL
 *     shortage_stop();
 *
 * weft_shortage has functions of the names of libc's allocators, of mmap and of pthread_create. A test links it, or a
 * program is run with it in LD_PRELOAD and the plan in the environment. A call counts when Weft made it, or a library
 * that Weft called (shortage.c has the lists). Open MPI's own memory goes straight through, and so do requests that
 * no program can survive being refused: `shortage_spared` counts them.
 */
#ifndef WEFT_TESTS_SHORTAGE_H
#define WEFT_TESTS_SHORTAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHORTAGE_FRAMES = 16, SHORTAGE_SPARED = 4 };

/* What a plan has come to. It may lie in memory that other processes see. */
typedef struct shortage_told {
    atomic_llong seen; /* calls that counted */
    atomic_bool has_struck;
    atomic_llong spared[SHORTAGE_SPARED]; /* by entry of the list in shortage.c */
    char where[SHORTAGE_FRAMES][64]; /* of the call that was refused: callers as "object+0x12" */
} shortage_told;

/* at          which call, from 1; 0: only count
 * is_for_good and all that come after */
void shortage_start(int64_t at, bool is_for_good);
void shortage_stop(void);
/* From now on `told` is written; the caller keeps it. */
void shortage_tell(shortage_told *told);
/* Why calls of one kind are never refused; NULL past the end. */
const char *shortage_spared_reason(int kind);

/* In a program's environment: "at is_for_good program path": the program's name, what starts it is let alone; and a file
 * of sizeof(shortage_told) zeros that is written. The process's own number from a launcher must be SHORTAGE_RANK, where that is set. */
#define SHORTAGE_VARIABLE      "TEST_SHORTAGE"
#define SHORTAGE_RANK_VARIABLE "TEST_SHORTAGE_RANK"

#endif
