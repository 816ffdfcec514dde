/* initial.c: initial values, a pure function of (seed, variable's name, element index): the same
 * bits on every mesh, layout, launcher and processor.
 *
 * They are the numbers of the ops that make such numbers, in the stream of the variable's name and of no run, in double
 * and then cast. All lanes write, each its part of the box, and nothing is written that is there: taken memory is zero.
 */
#include "program.h"

#include "weft/ops.h"

#include <math.h>
#include <string.h>

/* FNV-1a: the Philox stream of a name, which ends where a space is. */
static uint32_t stream_of(const char *name)
{
    uint32_t hash = 0x811C9DC5u;
    for (; *name && *name != ' '; name++)
        hash = (hash ^ (unsigned char)*name) * 0x01000193u;
    return hash;
}

static void formula(int64_t n, void *out, const void *const *in, const weft_block_env *env)
{
    double *numbers = out;
    (void)in;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = env->number[0] * cos(env->number[1] * (double)(env->index + i));
}
static const weft_element formula_element = {.size = sizeof(weft_element),
                                             .block[WEFT_F64][WEFT_F64] = formula};
static const weft_op formula_op = {.name = "formula", .element = &formula_element};

/* Those whose numbers are what weft_initial says of a and b. */
static const weft_op *const makers[] = {[WEFT_INITIAL_CONSTANT] = &weft_op_constant,
                                        [WEFT_INITIAL_NORMAL] = &weft_op_random_normal,
                                        [WEFT_INITIAL_UNIFORM] = &weft_op_random_uniform,
                                        [WEFT_INITIAL_FORMULA] = &formula_op};

typedef struct filling {
    const weft_view *view;
    char *to; /* element `first` of the box */
    int64_t first;
    weft_block make, cast; /* cast NULL: the numbers are doubles */
    weft_block_env env;    /* all but the index */
    int outer; /* dims up to this one are gone through one by one; those after it are whole, ... */
    /* ... so that as many elements follow each other in the tensor as well           */
    int64_t run;
} filling;

/* Dims from the last: as long as a dim is whole, what stands before it goes on behind it. */
static void find_run(filling *f)
{
    const weft_view *view = f->view;
    f->outer = view->shape.n_dims;
    f->run = 1;
    while (f->outer > 0) {
        const int64_t size = weft_view_size(view, --f->outer);
        f->run *= size;
        if (size != view->shape.dims[f->outer].size) return;
    }
}

/* The index in the whole tensor of element `run * f->run` of the box. */
static int64_t index_of(const filling *f, int64_t run)
{
    const weft_view *view = f->view;
    int64_t index = 0, weight = 1;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        int64_t at = 0;
        if (d < f->outer) {
            at = run % weft_view_size(view, d);
            run /= weft_view_size(view, d);
        }
        index += weight * (view->box.begin[d] + at);
        weight *= view->shape.dims[d].size;
    }
    return index;
}

/* Elements `first` + [begin, end) of the box. */
static void fill(void *argument, int64_t begin, int64_t end, int lane)
{
    (void)lane;
    const filling *f = argument;
    begin += f->first;
    end += f->first;
    const size_t bytes = weft_dtype_bytes(f->view->dtype);
    double numbers[WEFT_BLOCK];
    weft_block_env env = f->env;
    for (int64_t i = begin, n; i < end; i += n) {
        const int64_t in_run = i % f->run;
        n = f->run - in_run < end - i ? f->run - in_run : end - i;
        n = n < WEFT_BLOCK ? n : WEFT_BLOCK;
        env.index = index_of(f, i / f->run) + in_run;
        void *to = f->to + (size_t)(i - f->first) * bytes;
        f->make(n, f->cast ? numbers : to, NULL, &env);
        if (f->cast) f->cast(n, to, (const void *[]){numbers}, &env);
    }
}

/* Where the host does not see the memory, they are made in staging, a stretch at a time. */
static weft_status fill_through(filling *f, const weft_device *device, weft_stream *stream,
                                weft_error *error)
{
    enum { STRETCH = 1 << 20 }; /* elements */
    const int64_t count = weft_view_count(f->view);
    const size_t element = weft_dtype_bytes(f->view->dtype);
    const size_t room = (size_t)(count < STRETCH ? count : STRETCH) * element;
    void *memory = NULL;
    WEFT_TRY(device->take_staging(room, &memory, error));
    f->to = memory;
    for (f->first = 0; f->first < count; f->first += STRETCH) {
        const int64_t left = count - f->first, n = left < STRETCH ? left : STRETCH;
        fill(f, 0, n, 0);
        device->put(stream, (char *)f->view->data + (size_t)f->first * element, f->to,
                    (size_t)n * element);
    }
    device->give_staging(memory, room);
    return WEFT_OK;
}

/* What `name` has in `view`. */
static weft_status initialize(const weft_variable_attributes *variable, const char *name,
                              uint64_t seed, const weft_view *view, const weft_device *device,
                              weft_stream *stream, weft_error *error)
{
    enum { GRAIN = 16 << 10 }; /* elements: some 60 microseconds */
    const weft_initial *initial = &variable->initial;
    filling f = {.view = view,
                 .to = view->data,
                 .make = makers[initial->kind]->element->block[WEFT_F64][WEFT_F64],
                 .cast = weft_op_cast.element->block[WEFT_F64][view->dtype],
                 .env = {.number = {initial->a, initial->b},
                         .seed = seed,
                         .random = stream_of(name),
                         .stride = 1}};
    find_run(&f);
    if (!device->is_open) return fill_through(&f, device, stream, error);
    weft_parallel(stream, weft_view_count(view), GRAIN, fill, &f);
    return WEFT_OK;
}

/* Element `row` of the first dim, without that dim. */
static weft_view row_of(const weft_view *view, int64_t row)
{
    weft_view one = *view;
    const int64_t n = weft_view_size(view, 0);
    const int64_t each = n > 0 ? weft_view_count(view) / n : 0;
    one.data = (char *)view->data +
               (size_t)((row - view->box.begin[0]) * each) * weft_dtype_bytes(view->dtype);
    one.shape.n_dims--;
    for (int d = 0; d < one.shape.n_dims; d++) {
        one.shape.dims[d] = view->shape.dims[d + 1];
        one.box.begin[d] = view->box.begin[d + 1];
        one.box.end[d] = view->box.end[d + 1];
    }
    return one;
}

weft_status weft_initialize(const weft_variable_attributes *variable, uint64_t seed,
                            const weft_view *view, const weft_device *device, weft_stream *stream,
                            weft_error *error)
{
    const weft_initial *initial = &variable->initial;
    const char *name = variable->rows;
    if (initial->kind == WEFT_INITIAL_CONSTANT && initial->a == 0.0 && !signbit(initial->a))
        return WEFT_OK;
    if (name == NULL)
        return initialize(variable, variable->name, seed, view, device, stream, error);
    for (int64_t row = 0; row < view->box.end[0]; row++) {
        const weft_view one = row_of(view, row);
        if (row >= view->box.begin[0])
            WEFT_TRY(initialize(variable, name, seed, &one, device, stream, error));
        name += strcspn(name, " ") + 1;
    }
    return WEFT_OK;
}
