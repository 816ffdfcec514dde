/* device: the table of the CUDA device. */
#include "image.h"
#include "library.h"
#include "mesh/devices.h"
#include "parts.h"

#include <stdio.h>
#include <string.h>

static void touch(weft_stream *stream, void *memory, size_t bytes)
{
    (void)stream, (void)memory, (void)bytes; /* its pages are there */
}

static void describe(char *text, size_t room)
{
    const cuda_gpu *g = &cuda_gpu_here;
    /* of GiB; printed as integers, which no locale changes */
    const long long tenths = ((long long)cuda_gpu_room(NULL) * 10 + (1 << 29)) / (1 << 30);
    snprintf(text, room,
             "%.60s, number %d of %d, compute capability %d.%d, %lld.%lld GiB free, driver for "
             "CUDA %d.%d",
             g->name, g->ordinal, g->n_there, g->major, g->minor, tenths / 10, tenths % 10,
             g->driver / 1000, g->driver % 1000 / 10);
    cuda_library_tell(text + strlen(text), room - strlen(text));
}

static const weft_device table = {
    .name = "cuda",
    .engine = "nccl",
    .take = cuda_take,
    .take_zeroed = cuda_take_zeroed,
    .give = cuda_give,
    .room = cuda_room,
    .take_staging = cuda_take_staging,
    .give_staging = cuda_give_staging,
    .stream_create = cuda_stream_create,
    .seat = cuda_seat,
    .unit = cuda_unit,
    .stream_destroy = cuda_stream_destroy,
    .put = cuda_put_bytes,
    .get = cuda_get_bytes,
    .copy = cuda_copy,
    .copy_box = cuda_copy_box,
    .combine_box = cuda_combine_box,
    .identity = cuda_identity,
    .record = cuda_record,
    .follow = cuda_follow,
    .is_done = cuda_is_done,
    .wait = cuda_wait,
    .finish = cuda_finish,
    .done = cuda_done,
    .touch = touch,
    .meanwhile = cuda_meanwhile,
    .failed = cuda_failed,
    .keep_begin = cuda_keep_begin,
    .keep_end = cuda_keep_end,
    .keep_run = cuda_keep_run,
    .keep_drop = cuda_keep_drop,
    .describe = describe,
};

weft_status cuda_device_open(weft_device_kind *kind, weft_error *error)
{
    WEFT_TRY(cuda_driver_open(error));
    WEFT_TRY(cuda_boxes_open(error));
    return weft_device_add(&table, kind, error);
}
