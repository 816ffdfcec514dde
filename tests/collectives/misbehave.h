/* misbehave.h: what the files of misbehave have in common. */
#ifndef MISBEHAVE_H
#define MISBEHAVE_H

#include "weft/collectives.h"
#include "weft/graph.h"
#include "weft/program.h"

enum { ROUNDS = 3, BAD_ROUND = 1, SITES = 20, MOST_RANKS = 8, MOST = 40000, BATCH = 8, HIDDEN = 6 };

typedef enum action { REDUCE, GATHER, EXCHANGE, BROADCAST, AGREE, ANY, RUN, MOVE, ACTIONS } action;

typedef struct site {
    action action;
    uint32_t axes; /* bit 0: data, bit 1: model */
    int64_t count;
    weft_dtype dtype;
    weft_combine combine;
    int number; /* root of a broadcast; which program is run */
} site;

typedef struct misbehaviour misbehaviour;
struct misbehaviour {
    const char *name;
    uint32_t actions; /* set of those where it has a meaning */
    void (*alter)(site *);
    weft_status (*act)(int rank, int round, weft_error *error); /* in place of the call */
    bool by_all; /* act: all ranks do it, before the call; one of them does it wrongly */
};

typedef struct plan { /* of this run */
    const misbehaviour *kind;
    int site, rank, threads;
    double seconds, patience;
    const char *folder;
    weft_mesh *mesh;
    weft_comms *comms;
    weft_graph *graphs[2];
    weft_value inputs[2], results[2];
    weft_program *programs[2];
    weft_error errors[MOST_RANKS]; /* of each local rank */
    bool leaves_early;             /* of a process: its only rank has left the series */
} plan;
extern plan the;

/* ---- misbehave_calls.c: right calls, and what they give ------------------------------------------ */

/* What is called at a site of the series; all of it, the results checked. */
site site_here(int at);
weft_status perform(int rank, int round, int at, const site *s, weft_error *error);

/* ---- misbehave_kinds.c: what can be done wrongly -------------------------------------------------- */

const misbehaviour *find_misbehaviour(const char *name); /* NULL: there is none */
bool swaps_calls(const misbehaviour *kind);
void say_when(int rank);
/* Of one of the two programs: compiled, forgotten. */
weft_status compile(int p, const char *rules, double factor, weft_error *error);
void forget(int p);

#endif
