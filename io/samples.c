/* samples: a dataset whose samples a function of the program makes. */
#include "dataset.h"

#include <stdlib.h>
#include <string.h>

typedef struct samples {
    weft_dataset_kind kind;
    weft_sample_field fields[WEFT_MAX_FIELDS];
    weft_sample_read read;
    const void *argument;
    char *row; /* of the widest field: read on the reading thread alone */
} samples;

static void samples_close(void *source)
{
    samples *s = source;
    free(s->row);
    free(s);
}

static int64_t width_of(const weft_sample_field *field)
{
    return field->width.name != NULL ? field->width.size : 1;
}

/* A rank that has the whole row gets it where it is wanted. */
static weft_status samples_read(const void *source, const weft_want *want, void *to,
                                weft_error *error)
{
    const samples *s = source;
    const weft_sample_field *field = &s->fields[want->field];
    const size_t element = weft_dtype_bytes(field->dtype);
    const bool is_whole = want->begin == 0 && want->end == width_of(field);
    const weft_status status =
        s->read(s->argument, want->field, want->sample, is_whole ? to : s->row, error);
    if (status != WEFT_OK) /* what the function said stays */
        return weft_fail(
            error, status,
            "samples: %.100s of sample %lld cannot be read, and its function gave no reason",
            field->name, (long long)want->sample);
    if (!is_whole)
        memcpy(to, s->row + (size_t)want->begin * element,
               (size_t)(want->end - want->begin) * element);
    return WEFT_OK;
}

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
        s->kind.fields[i] = (weft_input_field){.name = f->name,
                                               .is_wide = f->width.name != NULL,
                                               .dtypes = 1u << f->dtype,
                                               .width_name = f->width.name,
                                               .width = f->width.size};
    }
}

static samples *take(const weft_samples_options *o)
{
    size_t row = 0, names = 0;
    for (int i = 0; i < o->n_fields; i++) {
        const weft_sample_field *f = &o->fields[i];
        const size_t bytes = (size_t)width_of(f) * weft_dtype_bytes(f->dtype);
        row = bytes > row ? bytes : row;
        names += strlen(f->name) + 1 + (f->width.name != NULL ? strlen(f->width.name) + 1 : 0);
    }
    samples *s = calloc(1, sizeof *s + names);
    if (s == NULL) return NULL;
    s->kind = (weft_dataset_kind){.read = samples_read, .close = samples_close};
    s->read = o->read, s->argument = o->argument;
    memcpy(s->fields, o->fields, (size_t)o->n_fields * sizeof *o->fields);
    take_names(s, (char *)(s + 1), o);
    s->row = malloc(row);
    if (s->row != NULL) return s;
    free(s);
    return NULL;
}

weft_status weft_samples_open(const weft_samples_options *options, weft_dataset **dataset,
                              weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_TRY(check(options, error));
    samples *s = take(options);
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    const weft_dataset_found found = {.samples = options->n_samples,
                                      .width = width_of(&options->fields[0]),
                                      .seed = options->seed,
                                      .shuffled = options->is_shuffled};
    WEFT_TRY(weft_dataset_make(&s->kind, s, &found, dataset, error));
    return weft_dataset_say_number(dataset, "samples", options->n_samples, error);
}
