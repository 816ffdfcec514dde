/* side.h: what `weft diff` compares: a plan, or a run, as one form. */
#ifndef WEFT_APPS_DIFF_SIDE_H
#define WEFT_APPS_DIFF_SIDE_H

#include <jansson.h>
#include <stdbool.h>

#include "weft/error.h"

/* A step of a plan, with numbers of all its times in a run, or of a traced one. Texts are borrowed from `owner`, or own. */
typedef struct diff_step {
    const char *place; /* "einsum of linear at model.c:61" */
    const char *phase; /* "forward"; "": not known */
    /* what it is matched by beside its place: the kind of exchange; "copy"; "work" of kernels and loops */
    const char *what;
    const char *axes;   /* over which it exchanges; "": it does not */
    const char *spec;   /* of its first result */
    const char *kernel; /* that does it; "": none, or not known */
    const char *reason;
    double times;
    double seconds; /* NAN: not known. Of an exchange what it makes the run longer */
    double bytes;   /* through a link */
    double flops;
} diff_step;

typedef struct diff_side {
    const char *path;
    const char *kind; /* "plan", "run" */
    double seconds;   /* of a step of the training; NAN: not known */
    char from[120];   /* whence these are: "predicted for laptop" */
    char note[400];   /* what of it is left out, and why; "": nothing */
    json_t *facts;    /* name: text, in order; mesh, layout and ranks where they are known */
    int n_steps;      /* 0: its steps are not known */
    diff_step *steps; /* [n_steps] */
    bool has_seconds; /* of steps */
    bool has_phases;
    void *owner; /* of their texts */
    void (*free_owner)(void *owner);
} diff_side;

/* diff_side_open - of a file it is the plan that --dry-run --json wrote, of a folder the run. Local. On failure there is nothing to
 * close.
 * returns  WEFT_USAGE for another file, with what it is where that is known; WEFT_IO where it cannot be read */
weft_status diff_side_open(const char *path, diff_side *side, weft_error *error);
void diff_side_close(diff_side *side);

/* side_plan.c, side_run.c: the two kinds. The caller closes, also after a failure. */
weft_status diff_plan_open(const char *path, diff_side *side, weft_error *error);
weft_status diff_run_open(const char *folder, diff_side *side, weft_error *error);

/* The places of the two: "mesh", "layout", "ranks", of which each side may or may not know its own. */
enum { DIFF_PLACES = 3 };
typedef struct diff_apart {
    int n;
    const char *differ[DIFF_PLACES]; /* [n] those that differ */
    const char *unknown; /* the path of a side whose mesh nobody knows; NULL: there is none */
} diff_apart;
/* diff_apart_of - where the two are laid out otherwise: asked before their steps are matched. Local; pure. */
diff_apart diff_apart_of(const diff_side sides[2]);

/* A fact as text. Local. */
void diff_fact(diff_side *side, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
