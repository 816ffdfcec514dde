/* boxes: copies and combinations of boxes, launched. */
#include "box.h"
#include "image.h"
#include "parts.h"

#include "collectives/combine_states.h"

_Static_assert((int)CUDA_BOX_LOOPS == (int)WEFT_BOX_LOOPS, "the kernels' boxes are the device's");

static cuda_kernel copies[] = {
    {"copy_box_1", NULL}, {"copy_box_2", NULL}, {"copy_box_4", NULL}, {"copy_box_8", NULL}};
enum { N_COPIES = sizeof copies / sizeof *copies };

/* By kind and dtype; without a name: there is none. */
static cuda_kernel combines[COMBINE_KINDS][COMBINE_DTYPES] = {
#define COMBINE_EACH(kind, suffix, T, expression, identity)                                        \
    [COMBINE_##kind][COMBINE_##suffix] = {"combine_" #kind "_" #suffix, NULL},
#define COMBINE_STATES(kind, suffix, T, width)                                                     \
    [COMBINE_##kind][COMBINE_##suffix] = {"combine_" #kind "_" #suffix, NULL},
#include "collectives/combine_list.inc"
#undef COMBINE_EACH
#undef COMBINE_STATES
};
static cuda_kernel identities[COMBINE_KINDS][COMBINE_DTYPES] = {
#define COMBINE_EACH(kind, suffix, T, expression, identity)                                        \
    [COMBINE_##kind][COMBINE_##suffix] = {"identity_" #kind "_" #suffix, NULL},
#define COMBINE_STATES(kind, suffix, T, width)                                                     \
    [COMBINE_##kind][COMBINE_##suffix] = {"identity_" #kind "_" #suffix, NULL},
#include "collectives/combine_list.inc"
#undef COMBINE_EACH
#undef COMBINE_STATES
};

weft_status cuda_boxes_open(weft_error *error)
{
    cuda_kernel *all[N_COPIES + 2 * COMBINE_KINDS * COMBINE_DTYPES];
    int n = 0;
    for (int i = 0; i < N_COPIES; i++)
        all[n++] = &copies[i];
    for (int k = 0; k < COMBINE_KINDS * COMBINE_DTYPES; k++) {
        const int kind = k / COMBINE_DTYPES, dtype = k % COMBINE_DTYPES;
        if (combines[kind][dtype].name == NULL) continue;
        all[n++] = &combines[kind][dtype];
        all[n++] = &identities[kind][dtype];
    }
    return cuda_load_image(cuda_image_box, all, n, error);
}

static int64_t count_of(const weft_box_copy *box)
{
    int64_t n = box->run;
    for (int l = 0; l < box->n_loops; l++)
        n *= box->count[l];
    return n;
}

/* In states of `width` numbers; of elements it is 1. */
static cuda_box box_of(void *to, const void *from, const weft_box_copy *box, int64_t width)
{
    cuda_box b = {.to = to,
                  .from = from,
                  .n = count_of(box) / width,
                  .from_at = box->from_at / width,
                  .to_at = box->to_at / width,
                  .run = box->run / width,
                  .n_loops = box->n_loops};
    for (int l = 0; l < box->n_loops; l++) {
        b.count[l] = box->count[l];
        b.from_stride[l] = box->from_stride[l] / width;
        b.to_stride[l] = box->to_stride[l] / width;
    }
    return b;
}

void cuda_copy_box(weft_stream *stream, int queue, void *to, const void *from,
                   const weft_box_copy *box, size_t element)
{
    if (box->n_loops == 0) {
        cuda_copy(stream, queue, (char *)to + (size_t)box->to_at * element,
                  (const char *)from + (size_t)box->from_at * element, (size_t)box->run * element);
        return;
    }
    int k = 0;
    while ((size_t)1 << k < element)
        k++;
    const cuda_box b = box_of(to, from, box, 1);
    cuda_launch(stream, queue, &copies[k], b.n, &b);
}

/* Combines from outside are functions of the host's. */
static const cuda_kernel *find(weft_stream *stream, cuda_kernel of[][COMBINE_DTYPES],
                               const weft_combining *rule)
{
    const bool is_own = rule->combine < COMBINE_KINDS && rule->dtype < COMBINE_DTYPES;
    if (is_own && of[rule->combine][rule->dtype].name != NULL)
        return &of[rule->combine][rule->dtype];
    weft_error error = {WEFT_OK, -1, ""};
    (void)!weft_fail(&error, WEFT_USAGE,
                     "combine number %d of dtype %d is not one that the device cuda knows; use the "
                     "device cpu for programs with combines from outside",
                     rule->combine, rule->dtype);
    cuda_fail(stream, &error);
    return NULL;
}

void cuda_combine_box(weft_stream *stream, int queue, void *to, const void *from,
                      const weft_box_copy *box, const weft_combining *rule)
{
    const cuda_kernel *kernel = find(stream, combines, rule);
    const cuda_box b = box_of(to, from, box, rule->width);
    if (kernel != NULL) cuda_launch(stream, queue, kernel, b.n, &b);
}

void cuda_identity(weft_stream *stream, int queue, void *into, int64_t n_states,
                   const weft_combining *rule)
{
    const cuda_kernel *kernel = find(stream, identities, rule);
    const cuda_box b = {.to = into, .n = n_states};
    if (kernel != NULL) cuda_launch(stream, queue, kernel, n_states, &b);
}
