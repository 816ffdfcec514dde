/* kernel_lanes.h: streams of one lane, two, and so on: for what has to have the same bits on any number of them. */
#ifndef TEST_KERNEL_LANES_H
#define TEST_KERNEL_LANES_H

#include "kernel_views.h"

enum { MOST_LANES = 5 };
static weft_stream *streams[MOST_LANES + 1]; /* by lanes */

static inline bool lanes_open(void)
{
    weft_error error = {0};
    for (int n = 1; n <= MOST_LANES; n++)
        if (!CHECK_OK(weft_devices[WEFT_CPU]->stream_create(n, &streams[n], &error), error))
            return false;
    return true;
}

static inline void lanes_close(void)
{
    for (int n = 1; n <= MOST_LANES; n++)
        weft_devices[WEFT_CPU]->stream_destroy(&streams[n]);
}

#endif
