/* columns.h (private): the arithmetic of a walk, on all columns at once. Each column's results depend on its own numbers alone, in whichever
 * way it is computed, and are never contracted: so they are the same bits on every machine. */
#ifndef WEFT_PREDICT_COLUMNS_H
#define WEFT_PREDICT_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

/* now += seconds */
void weft_columns_add(int n, double *now, const double *seconds);
/* The later of both: when a rank has come, and its queue is free. begin may be now. */
void weft_columns_later(int n, double *begin, const double *now, const double *over);
/* end = begin + seconds */
void weft_columns_end(int n, double *end, const double *begin, const double *seconds);
/* Goes on when an exchange is over: one that has slept for longer than it takes to wake is not awake at once. */
void weft_columns_await(int n, double *now, const double *begin, const double *end,
                        const double *late, const double *crowded);
/* What the head of a queue takes of the cores by now, added; and when that changes, if sooner. */
void weft_columns_look(int n, const double *now, const double *begin, const double *end,
                       const double *cpu, double *taken, double *until);
/* Works until all is done or what exchanges take changes; whether anything is left. */
bool weft_columns_work(int n, double *now, double *left, const double *taken, const double *until);
/* Whether any end has come. */
bool weft_columns_any(int n, const double *end, const double *now);

/* units[word * n + k] - the four numbers in [0, 1) of block `counter` of stream[k], draw[k]. */
void weft_columns_draw(int n, uint64_t seed, uint64_t counter, const uint32_t *stream,
                       const uint32_t *draw, double *units);
/* seconds = usual * (1 + twice * units) * slower */
void weft_columns_vary(int n, double *seconds, double usual, double twice, const double *units,
                       const double *slower);

#endif
