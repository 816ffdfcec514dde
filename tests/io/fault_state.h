/* fault_state.h (private to weft_faults): what every wrapper of a call asks and tells. */
#ifndef WEFT_TESTS_FAULT_STATE_H
#define WEFT_TESTS_FAULT_STATE_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "faults.h"

enum { FAULT_PATH = 4400 };

typedef struct fault_state {
    fault_plan plan;
    char folder[FAULT_PATH];
    atomic_bool is_on;
    atomic_bool has_struck;
    atomic_llong seen, bytes_read;
    pthread_mutex_t mutex; /* a call and its record are one */
} fault_state;

extern fault_state fault_now;

/* libc's own function, or a sanitizer's on the way to it. */
#define FAULT_REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Where a call goes. */
typedef struct fault_place {
    char path[FAULT_PATH]; /* absolute */
    bool is_inside;
} fault_place;

/* Nowhere while there is no plan. */
void fault_place_of_file(int file, fault_place *place);
void fault_place_of_path(int directory, const char *path, fault_place *place);

void fault_record_call(fault_call call, const fault_place *place, const fault_place *other,
                       int64_t at, int64_t bytes, const void *data);

/* What happens to a call. */
typedef enum fault_verdict {
    PASS, /* not ours */
    GO,
    REFUSE,
    HALF,
    HALF_AND_DIE,
    GO_AND_DIE
} fault_verdict;

/* Every wrapper: begin, the call unless REFUSE, end. */
fault_verdict fault_begin(fault_call call, bool is_inside);
void fault_end(fault_verdict verdict);
/* -1, with the plan's error. */
int fault_refuse(void);

#endif
