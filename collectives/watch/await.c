/* await: waiting for a device in sight of the watch.
 *
 * The thread polls, yields the core, then sleeps for moments, longer ones the longer it takes: it must not look like
 * one that computes. A thread inside a device's own wait could neither say that the device goes on nor advance
 * exchanges between ranks.
 */
#include "await.h"

enum { LOOKS = 100, YIELDS = 100, SHORTEST_NS = 20000, LONGEST_NS = 1000000 };

void weft_rest(int64_t n)
{
    if (n < LOOKS) return;
    if (n < LOOKS + YIELDS) {
        weft_sync_yield();
        return;
    }
    weft_waiter waiter = {.what = "a device", .whom = WEFT_ANY};
    const int64_t ns = SHORTEST_NS + (n - LOOKS - YIELDS) * 1000;
    weft_waiter_nap(&waiter, ns < LONGEST_NS ? ns : LONGEST_NS);
}

static uint64_t done_by(const weft_device *device, weft_stream *stream)
{
    return device->done != NULL ? device->done(stream) : 0;
}

void weft_await(weft_recorder *recorder, const weft_device *device, weft_stream *stream,
                weft_event event, void (*meanwhile)(void *argument), void *argument)
{
    bool is_told = false;
    for (int64_t n = 0; !device->is_done(stream, event); n++) {
        const uint64_t done = done_by(device, stream);
        if (!is_told) weft_recorder_await(recorder, device->name, event.queue, event.number, done);
        is_told = true;
        weft_recorder_goes_on(recorder, done);
        if (meanwhile != NULL) meanwhile(argument);
        weft_rest(n);
    }
    device->wait(stream, event);
    if (is_told) weft_recorder_awaited(recorder);
}
