/* recorded.h: a call as ranks record it. */
#ifndef TESTS_COLLECTIVES_RECORDED_H
#define TESTS_COLLECTIVES_RECORDED_H

#include "watch/recorder.h"

static const weft_call_facts reduce_8 = {.kind = WEFT_CALL_ALL_REDUCE,
                                         .dtype = 0 /* f32 */,
                                         .combine = 1 /* sum */,
                                         .root = -1,
                                         .count = 8};

static inline weft_call_mark call_once(weft_recorder *r, int channel, const weft_call_facts *call)
{
    const weft_call_mark mark = weft_recorder_begin(r, channel, call);
    weft_recorder_wait(r, &mark);
    weft_recorder_end(r, &mark);
    return mark;
}

#endif
