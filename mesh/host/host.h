/* host.h: what a host has and allows, and which part of it is a process's.
 *
 *     weft_cores_look(topology, mask, &cores);                         (cores.h)
 *     told[self] = weft_told_of(&cores, weft_quota("", &group), group);  the others' come by MPI
 *     share = weft_share_told(told, n, self);
 *     lanes = weft_share_lanes(share.cores, n_ranks);
 *
 * All but weft_cores_look are arithmetic, or read files under a root, so that tests can give another machine's. All
 * Local.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT_CORE_BITS = 2048, /* hardware threads that can be told apart, by the system's numbers */
    WEFT_CORE_WORDS = WEFT_CORE_BITS / 64,
    WEFT_CORE_KINDS = 8
};

/* ---- cores.c: the cores that a process may use, and what they are part of -------------------- */

typedef struct weft_cores {
    int n_cores, n_threads;          /* in the process's mask */
    int host_cores, host_threads;    /* that are there, whatever the mask */
    int n_nodes;                     /* of memory (NUMA) */
    int n_kinds;                     /* of cores in the mask; 1: all alike, or not known */
    int kind_cores[WEFT_CORE_KINDS]; /* slower kinds first */
    bool is_known;                   /* `bits` has every core of the mask */
    uint64_t bits[WEFT_CORE_WORDS];  /* of each core the number of its first hardware thread */
} weft_cores;

/* ---- groups.c: what control groups and the system allow -------------------------------------- */

typedef enum weft_limited {
    WEFT_LIMITED_CPU, /* cores: time for 1.5 of them, say */
    WEFT_LIMITED_THREADS,
    WEFT_LIMITED_MEMORY, /* bytes */
    WEFT_LIMITED
} weft_limited;

/* weft_read_text - the first bytes - 1 of a file, as a text. Without stdio: it is asked where memory may be short.
 * false: there is no such file, or nothing in it. */
bool weft_read_text(const char *path, char *text, size_t bytes);

/* weft_group_limit - the smallest limit of this process's control group and of those above it; 0: there is none.
 *
 * root   "", or the folder in which proc and sys of another machine are
 * group  which group it is of, the same number in all processes of the host; may be NULL
 */
double weft_group_limit(const char *root, weft_limited what, uint64_t *group);

/* weft_threads_allowed - how many threads this user, group and system may have at most, whatever there is of them
 * already; `what` gets the name of the smallest limit, for a sentence. 0: there is none. */
int64_t weft_threads_allowed(const char *root, const char **what);

/* ---- share.c: which part is a process's ------------------------------------------------------ */

/* What a process tells those of its host. Bytes for MPI: all of one build. */
typedef struct weft_told {
    uint64_t bits[WEFT_CORE_WORDS];
    int32_t is_known, n_cores, host_cores, quota; /* the quota in cores; 0: none */
    uint64_t group;                               /* whose quota */
} weft_told;

typedef struct weft_share {
    double cores;   /* this process's, even where it shares them */
    int n_sharing;  /* processes on the core of its that most are on, itself too */
    int n_used;     /* cores of the host that some process may use */
    int host_cores; /* that are there */
} weft_share;

/* weft_topology_told - of this process, once and for all (mesh/topology.c). */
const weft_told *weft_topology_told(void);
weft_told weft_told_of(const weft_cores *cores, double quota, uint64_t group);
/* Of what the n processes of a host have told, the part of process `self`; cores 0: not all of them know. */
weft_share weft_share_told(const weft_told *told, int n, int self);
/* The same where the others have told nothing. */
weft_share weft_share_guessed(const weft_told *own, int n);
/* A quota in whole cores; 0: none. */
int weft_quota_cores(double quota);
/* Lanes of each of n_ranks ranks in a process that has these cores. */
int weft_share_lanes(double cores, int n_ranks);

/* ---- crowd.c: what is wasteful in that, in words --------------------------------------------- */

typedef struct weft_crowd { /* the lanes of a host, and where they run */
    int n_processes;        /* of the job on this host */
    int n_ranks, n_lanes;   /* of each of them, of each rank */
    bool is_launched;       /* by mpirun or srun, which bind processes to cores */
    weft_share share;
} weft_crowd;

/* weft_crowd_text - one sentence; "": nothing is. */
void weft_crowd_text(const weft_crowd *crowd, char *text, size_t room);

#endif
