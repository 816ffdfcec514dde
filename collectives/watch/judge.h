/* judge.h (private): from what is known of all ranks to who is at fault, and the paragraph that says so. Pure: the watch
 * asks while a job runs, the post-mortem when it is over.
 */
#ifndef WEFT_JUDGE_H
#define WEFT_JUDGE_H

#include "view.h"

/* Exit statuses of a job that the watch ends. */
enum { WEFT_ENDS_LOST = 71, WEFT_ENDS_HUNG = 72, WEFT_ENDS_MISMATCH = 73 };

typedef struct weft_verdict {
    int status; /* 0: the job can go on */
    int rank;   /* at fault, as far as can be told */
    int linger; /* seconds that processes stay after it is said */
    char text[WEFT_VERDICT_BYTES];
} weft_verdict;

/* Since when a rank has been in a call where all have arrived. */
typedef struct weft_judge_held {
    uint64_t call; /* which, and how many the rank has begun; 0: it is in no such call */
    double since;
} weft_judge_held;

/* weft_judge_hold - fill `stalled` of all views. Views are taken at different moments: one that is a second old still says
 * "waits" of a call that has ended, so only what is seen for long counts. holds [n], at first 0; kept between calls. */
void weft_judge_hold(weft_rank_view *views, int n, double now, weft_judge_held *holds);

/* weft_judge - patience: seconds; infinite to end only what can never go on. Returns whether there is a verdict. */
bool weft_judge(const weft_rank_view *views, int n, double patience, weft_verdict *verdict);

/* weft_judge_remains - the same for a job that is over, where nobody waits, computes or answers any more. `silent`: how long
 * before the last of all ranks each was heard last. */
bool weft_judge_remains(const weft_rank_view *views, int n, weft_verdict *verdict);

/* weft_judge_slow - a rank at work that others wait for longer than `patience`: worth a word, no more. -1: none.
 * text [bytes] */
int weft_judge_slow(const weft_rank_view *views, int n, double patience, char *text, size_t bytes);

#endif
