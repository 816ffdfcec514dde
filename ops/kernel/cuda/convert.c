/* convert: see convert.h. */
#include "convert.h"

#include "images.h"
#include "kernels.h"

static cuda_kernel narrow = {"bf16_of_f32", NULL}, widen = {"f32_of_bf16", NULL};

weft_status cuda_conversions_open(weft_device_kind device, weft_error *error)
{
    cuda_kernel *all[] = {&narrow, &widen};
    (void)device;
    return cuda_load_image(cuda_image_convert, all, 2, error);
}

int64_t cuda_narrow_bytes(const weft_view *view)
{
    return view->dtype == WEFT_BF16 ? 0 : weft_aligned(2 * weft_view_count(view));
}

void *cuda_narrow_at(const weft_view *view, void *scratch)
{
    return view->dtype == WEFT_BF16 ? view->data : scratch;
}

static void convert(const weft_call *call, const cuda_kernel *kernel, const weft_view *as, void *to,
                    const void *from)
{
    const cuda_conversion work = {to, from, weft_view_count(as)};
    if (as->dtype != WEFT_BF16) cuda_launch(call->stream, WEFT_COMPUTE, kernel, work.n, &work);
}

void cuda_narrow(const weft_call *call, const weft_view *from, void *to)
{
    convert(call, &narrow, from, to, from->data);
}

void cuda_widen(const weft_call *call, const void *from, const weft_view *to)
{
    convert(call, &widen, to, to->data, from);
}
