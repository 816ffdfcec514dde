/* samples: a dataset whose samples a function of the program makes. */
#include "chain.h"
#include "dataset.h"

#include <stdlib.h>
#include <string.h>

typedef struct samples {
    weft_sample_field fields[WEFT_MAX_FIELDS];
    weft_sample_read read;
    const void *argument;
} samples;

static int64_t width_of(const weft_sample_field *field)
{
    return field->width.name != NULL ? field->width.size : 1;
}

/* A rank that has the whole row gets it where it is wanted. */
static weft_status read_one(const samples *s, int64_t sample, const weft_want *want, char *row,
                            weft_error *error)
{
    const weft_sample_field *field = &s->fields[want->field];
    const size_t element = weft_dtype_bytes(field->dtype);
    const bool is_whole = want->begin == 0 && want->end == width_of(field);
    const weft_status status =
        s->read(s->argument, want->field, sample, is_whole ? want->to : row, error);
    if (status != WEFT_OK) /* what the function said stays */
        return weft_fail(
            error, status,
            "samples: %.100s of sample %lld cannot be read, and its function gave no reason",
            field->name, (long long)sample);
    if (!is_whole)
        memcpy(want->to, row + (size_t)want->begin * element,
               (size_t)(want->end - want->begin) * element);
    return WEFT_OK;
}

static weft_status samples_read(const void *source, int64_t sample, const weft_want *wants,
                                int n_wants, void *scratch, weft_error *error)
{
    for (int i = 0; i < n_wants; i++)
        WEFT_TRY(read_one(source, sample, &wants[i], scratch, error));
    return WEFT_OK;
}

static const weft_chain_kind samples_kind = {
    .name = "samples", .read = samples_read, .close = free, .is_called = true};

static weft_status check_field(const weft_sample_field *field, weft_error *error)
{
    if (weft_path_check("samples: a field", field->name, error) != WEFT_OK) return WEFT_USAGE;
    if ((unsigned)field->dtype >= WEFT_DTYPES)
        return weft_fail(error, WEFT_USAGE, "samples: the dtype of %.100s is none; there are %s",
                         field->name, weft_dtype_names());
    if (field->width.name == NULL) return WEFT_OK;
    WEFT_TRY(weft_name_check("samples: a width", field->width.name, error));
    if (field->width.size >= 1 && field->width.size <= INT64_C(1) << 30) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "samples: %.100s is %s:%lld wide; 1 to 2^30 can be",
                     field->name, field->width.name, (long long)field->width.size);
}

static weft_status check(const weft_samples_options *o, weft_error *error)
{
    WEFT_GIVEN(o, error);
    if (o->read == NULL || o->fields == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "weft_samples_open: read and fields are to be said, and %s is NULL",
                         o->read == NULL ? "read" : "fields");
    if (o->n_fields < 1 || o->n_fields > WEFT_MAX_FIELDS)
        return weft_fail(error, WEFT_USAGE, "weft_samples_open: %d fields; there can be 1 to %d",
                         o->n_fields, WEFT_MAX_FIELDS);
    if (o->n_samples < 1 || o->n_samples > WEFT_MAX_SAMPLES)
        return weft_fail(error, WEFT_USAGE,
                         "weft_samples_open: %lld samples; there can be 1 to 2^62",
                         (long long)o->n_samples);
    for (int i = 0; i < o->n_fields; i++)
        WEFT_TRY(check_field(&o->fields[i], error));
    return WEFT_OK;
}

/* Names are the source's own: those of the call may be gone when the dataset is started. */
static void take_names(samples *s, char *text, const weft_samples_options *o)
{
    for (int i = 0; i < o->n_fields; i++) {
        weft_sample_field *f = &s->fields[i];
        const char *names[] = {f->name, f->width.name};
        const char *kept[] = {NULL, NULL};
        for (int k = 0; k < 2; k++) {
            if (names[k] == NULL) continue;
            kept[k] = strcpy(text, names[k]);
            text += strlen(text) + 1;
        }
        f->name = kept[0], f->width.name = kept[1];
    }
}

/* *row: bytes of the widest field. */
static samples *take(const weft_samples_options *o, size_t *row)
{
    size_t names = 0;
    *row = 0;
    for (int i = 0; i < o->n_fields; i++) {
        const weft_sample_field *f = &o->fields[i];
        const size_t bytes = (size_t)width_of(f) * weft_dtype_bytes(f->dtype);
        *row = bytes > *row ? bytes : *row;
        names += strlen(f->name) + 1 + (f->width.name != NULL ? strlen(f->width.name) + 1 : 0);
    }
    samples *s = calloc(1, sizeof *s + names);
    if (s == NULL) return NULL;
    s->read = o->read, s->argument = o->argument;
    memcpy(s->fields, o->fields, (size_t)o->n_fields * sizeof *o->fields);
    take_names(s, (char *)(s + 1), o);
    return s;
}

weft_status weft_chain_samples(const weft_samples_options *options, weft_chain **chain,
                               weft_error *error)
{
    size_t row;
    WEFT_GIVEN(chain, error);
    *chain = NULL;
    WEFT_TRY(check(options, error));
    samples *s = take(options, &row);
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    weft_chain_found found = {
        .records = options->n_samples, .n_fields = options->n_fields, .scratch_bytes = row};
    for (int i = 0; i < options->n_fields; i++) {
        const weft_sample_field *f = &s->fields[i];
        found.fields[i] =
            (weft_field){.name = f->name, .dtype = f->dtype, .dtypes = 1u << f->dtype};
        if (f->width.name != NULL) found.fields[i].shape = (weft_shape){1, {f->width}};
    }
    WEFT_TRY(weft_chain_make(&samples_kind, s, &found, chain, error));
    WEFT_TRY(weft_chain_say_number(chain, "samples", options->n_samples, error));
    return options->is_shuffled ? weft_chain_shuffle(chain, 0, options->seed, error) : WEFT_OK;
}

weft_status weft_samples_open(const weft_samples_options *options, weft_dataset **dataset,
                              weft_error *error)
{
    weft_chain *chain = NULL;
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_TRY(check(options, error));
    weft_samples_options in_order = *options;
    in_order.is_shuffled = false;
    WEFT_TRY(weft_chain_samples(&in_order, &chain, error));
    return weft_dataset_make(&chain, options->is_shuffled, options->seed, dataset, error);
}
