/* judge_parts.h (private): what the files of the judge have in common. */
#ifndef WEFT_JUDGE_PARTS_H
#define WEFT_JUDGE_PARTS_H

#include "judge.h"

typedef struct weft_bench {
    const weft_rank_view *views;
    int n;
    double patience;
    weft_verdict *verdict;
    bool is_over; /* the job is: nobody will say anything himself */
} weft_bench;

/* What a program needs to come out of its work and say itself what was wrong, in seconds. */
#define WEFT_SPEAKING_S 1.0

/* ---- judge_words.c ------------------------------------------------------------------------------- */

void weft_verdict_add(char *text, size_t bytes, const char *format, ...) WEFT_FORMAT(3, 4);
#define SAY(b, ...) weft_verdict_add((b)->verdict->text, sizeof(b)->verdict->text, __VA_ARGS__)

/* "rank 2 (host n1, process 1792)"; where it is. */
void weft_say_rank(const weft_bench *b, const weft_rank_view *view);
void weft_say_place(const weft_bench *b, const weft_rank_view *view);
/* "ranks 0, 2 and 5 more" of all that the claim holds for. Returns how many. */
typedef bool (*weft_claim)(const weft_bench *b, const weft_rank_view *view,
                           const weft_rank_view *about);
int weft_say_ranks(const weft_bench *b, weft_claim holds, const weft_rank_view *about);
/* The verdict is complete. Returns true. */
bool weft_conclude(const weft_bench *b, int status, const weft_rank_view *at_fault);

/* ---- judge_waits.c ------------------------------------------------------------------------------- */

bool weft_waits_for(const weft_rank_view *waiter, const weft_rank_view *other);
/* The first that waits for a rank; the first that it waits for. NULL: there is none. */
const weft_rank_view *weft_waiter_of(const weft_bench *b, const weft_rank_view *view);
const weft_rank_view *weft_awaited_by(const weft_bench *b, const weft_rank_view *view);
/* The rank at the end of the chain of waiting that begins at `view`; *is_circle: it leads back. */
const weft_rank_view *weft_end_of_chain(const weft_bench *b, const weft_rank_view *view,
                                        bool *is_circle);
/* "; ranks 0, 1 wait for it, rank 0 in all_reduce 12"; nothing where nobody does. */
void weft_say_waiters(const weft_bench *b, const weft_rank_view *view);

/* ---- judge_sure.c: what needs no patience -------------------------------------------------------- */

bool weft_find_signalled(const weft_bench *b);
bool weft_find_dead(const weft_bench *b);
bool weft_find_diverged(const weft_bench *b);
bool weft_find_left(const weft_bench *b);
bool weft_find_failed(const weft_bench *b);
bool weft_find_circle(const weft_bench *b);

#endif
