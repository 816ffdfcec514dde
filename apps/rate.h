/* rate.h: --schedule and what belongs to it: the learning rate of a program, as a scalar of its graph. */
#ifndef WEFT_APPS_RATE_H
#define WEFT_APPS_RATE_H

#include "options.h"
#include "weft/optim.h"

/* The options it reads, for a program's table, besides "rate", which is the program's own. */
#define APP_RATE_OPTIONS(group, warmup, floor)                                                     \
    {"schedule",                                                                                   \
     OPTION_TEXT,                                                                                  \
     "cosine",                                                                                     \
     "NAME",                                                                                       \
     group,                                                                                        \
     "how the rate goes: constant, linear, inverse_sqrt, cosine, cosine_restarts, one_cycle or "   \
     "piecewise"},                                                                                 \
        {"warmup", OPTION_COUNT, warmup, "N", group, "steps until the rate is reached"},           \
        {"floor", OPTION_REAL, floor, "X", group, "part of the rate that it falls to"},            \
        {"period", OPTION_COUNT,                                                                   \
         "100",    "N",                                                                            \
         group,    "cosine_restarts: steps of the first cosine",                                   \
         NULL,     1},                                                                             \
        {"growth", OPTION_REAL,                                                                    \
         "1",      "X",                                                                            \
         group,    "cosine_restarts: each is so many times as long",                               \
         NULL,     1},                                                                             \
    {                                                                                              \
        "pieces", OPTION_TEXT, "", "STEP=X,...", group,                                            \
            "piecewise: from which step on what part of the rate, as 1000=0.5,2000=0.1"            \
    }

/* app_rate - what they say. Local.
 *
 * last   the step at which the rate has fallen; where warm-up lasts as long, the one after it */
weft_status app_rate(const settings *s, weft_graph *graph, weft_dtype dtype, int64_t last,
                     weft_value *rate, weft_error *error);

#endif
