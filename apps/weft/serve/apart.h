/* apart.h: whether rows of a batch have nothing to do with each other: asked of a plan. */
#ifndef WEFT_APPS_APART_H
#define WEFT_APPS_APART_H

#include "weft/graph.h"

enum { APART_MOST_ROWS = 4096 };

/* rows_are_apart - whether it is sure that each row of the dim `batch`, of `rows` rows, of every value depends on that row alone, and not
 * on its place. Local.
 *
 * The program is planned for a mesh of as many ranks as there are rows, each of which has one. If no rank then sends anything, or takes
 * its part of what others have too, rows are apart: nobody else's row was there. The plan is the proof, and no op is known here.
 *
 * cost  a plan */
bool rows_are_apart(weft_values outputs, int64_t rows);

#endif
