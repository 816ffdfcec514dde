/* await.h (private): waiting for a device in sight of the watch. */
#ifndef WEFT_AWAIT_H
#define WEFT_AWAIT_H

#include "recorder.h"
#include "weft/device.h"

/* weft_await - until an event is over. Meanwhile `meanwhile` is called now and again (NULL: nothing), and the recorder (NULL:
 * none) knows what is waited for and that the device goes on. Local, from the thread that owns the stream. */
void weft_await(weft_recorder *recorder, const weft_device *device, weft_stream *stream,
                weft_event event, void (*meanwhile)(void *argument), void *argument);

/* weft_rest - for a moment, longer the more often one has looked in vain (n, from 0), at first not at all. Local. */
void weft_rest(int64_t n);

#endif
