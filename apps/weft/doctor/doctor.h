/* doctor.h: weft doctor: whether a node can do what Weft needs, and what to do where it cannot. */
#ifndef WEFT_APPS_DOCTOR_H
#define WEFT_APPS_DOCTOR_H

#include "../../app.h"

/* doctor_main - arguments [n]: the options. returns the exit status: 0, or 2 when a check fails. */
int doctor_main(int n, char **arguments);
extern const option_table doctor_table; /* of its options */

typedef enum verdict {
    DOCTOR_NONE, /* does not apply here: no line */
    DOCTOR_OK,
    DOCTOR_WARN, /* slower, or a trap; it works */
    DOCTOR_FAIL,
    DOCTOR_VERDICTS
} verdict;

typedef struct doctor { /* what checks may ask */
    const char *given;  /* --run as said */
    char folder[4096];  /* that, or its parent while it is not there; "": neither is */
    weft_world world;
    int n_lanes;          /* that a rank would get */
    char crowding[360];   /* what is wasteful in where they run; "": nothing */
    char no_lanes[360];   /* why they cannot be started; "": they can */
    const char *no_world; /* why the others cannot be joined; NULL: joined, or alone */
    int n_hosts;
    /* why processes of this host do not see each other's memory; "": they do; NULL: not asked */
    const char *apart;
    weft_link_speed link; /* between all processes; 0: not measured */
    char link_text[64];   /* as --link takes it */
    bool is_shared;       /* a file that the root has written into the folder is seen here */
} doctor;

typedef struct finding {
    verdict verdict;
    char text[360]; /* what was found; where that is not good, the way out */
    char fact[96];  /* has to be the same on all hosts; "": need not */
} finding;

/* doctor_say - the finding; returns its verdict, so that a check can end with it. Local. */
verdict doctor_say(finding *f, verdict v, const char *format, ...) WEFT_FORMAT(3, 4);
/* doctor_read - the first line of a small file, as in /proc and /sys; false: it cannot be read. */
bool doctor_read(const char *path, char *text, size_t bytes);
/* The same as a number, of two the quotient; false also where it is "max". */
bool doctor_read_number(const char *path, double *number);
/* doctor_mount_options - the mount options of a device's file system by a file as /proc/self/mountinfo; the last mount of a device
 * is the one seen; "": it has none. */
void doctor_mount_options(const char *mounts, unsigned int major, unsigned int minor, char *options,
                          size_t bytes);
/* doctor_line_has - whether a line that begins so has the word. doctor_line_number - the number behind the beginning of the first such
 * line, 0: there is none. */
bool doctor_line_has(const char *path, const char *begin, const char *word);
double doctor_line_number(const char *path, const char *begin);
/* doctor_mpi_probe - start MPI in a child process and note how that went, for the check. */
void doctor_mpi_probe(void);
/* doctor_mpi_joined - note what MPI is like that this process is in. */
void doctor_mpi_joined(void);
/* doctor_probe_path - the name of a file of this process in the folder. */
void doctor_probe_path(const doctor *d, const char *name, char *path, size_t bytes);

/* Whose findings are told: a host's first process's, or each that has it worse, too. */
typedef enum doctor_scope { DOCTOR_HOST, DOCTOR_EACH } doctor_scope;

typedef struct doctor_check {
    const char *name;
    verdict (*check)(const doctor *d, finding *f);
    doctor_scope scope;
} doctor_check;

#define DOCTOR_CHECK(name, function, scope) verdict doctor_##function(const doctor *d, finding *f);
#include "list.inc"
#undef DOCTOR_CHECK
enum {
    DOCTOR_CHECKS = 0
#define DOCTOR_CHECK(name, function, scope) +1
#include "list.inc"
#undef DOCTOR_CHECK
};
extern const doctor_check doctor_checks[DOCTOR_CHECKS];
extern const char *const doctor_words[DOCTOR_VERDICTS]; /* of verdicts */

#endif
