/* map: a stage whose records a function of the program makes of a chain's: augmented images, other labels, chosen columns.
 *
 * Both records lie in the scratch of the thread that asks: nothing is allocated, and a record is made once for all the pieces that
 * ranks of a process hold of it.
 */
#include "chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct map {
    const weft_chain *operand;
    weft_map_function function;
    const void *argument;
    uint64_t seed;
    bool is_random;
    int64_t records;
    weft_field fields[WEFT_MAX_FIELDS]; /* of what is made */
    int n_fields;
    size_t in[WEFT_MAX_FIELDS], out[WEFT_MAX_FIELDS]; /* where fields lie in the scratch */
    size_t bytes;                                     /* then the operand's scratch begins */
    char names[];
} map;

static size_t bytes_of(const weft_field *field)
{
    return ((size_t)weft_field_count(field) * weft_dtype_bytes(field->dtype) + 15) / 16 * 16;
}

static weft_status map_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                            void *scratch, weft_error *error)
{
    const map *m = self;
    const weft_chain_found *from = &m->operand->found;
    weft_want whole[WEFT_MAX_FIELDS];
    const void *in[WEFT_MAX_FIELDS] = {NULL};
    void *out[WEFT_MAX_FIELDS] = {NULL};
    const int64_t record = m->is_random ? i : i % m->records;
    const weft_philox_key key = {m->seed, (uint32_t)record, (uint32_t)(record >> 32)};
    for (int f = 0; f < from->n_fields; f++) {
        const weft_field *field = &from->fields[f];
        whole[f] =
            (weft_want){f, field->dtype, 0, weft_field_count(field), (char *)scratch + m->in[f]};
        in[f] = whole[f].to;
    }
    for (int f = 0; f < m->n_fields; f++)
        out[f] = (char *)scratch + m->out[f];
    WEFT_TRY(
        weft_chain_ask(m->operand, i, whole, from->n_fields, (char *)scratch + m->bytes, error));
    const weft_status status = m->function(m->argument, record, in, out, key, error);
    if (status != WEFT_OK) /* what the function said stays */
        return weft_fail(error, status,
                         "map: record %lld cannot be made, and its function gave no reason",
                         (long long)record);
    for (const weft_want *w = wants; w < wants + n_wants; w++) {
        const size_t element = weft_dtype_bytes(w->dtype);
        memcpy(w->to, (const char *)out[w->field] + (size_t)w->begin * element,
               (size_t)(w->end - w->begin) * element);
    }
    return WEFT_OK;
}

static const weft_chain_kind map_kind = {
    .name = "map", .read = map_read, .close = free, .is_stage = true};

static weft_status check_field(const weft_sample_field *field, weft_error *error)
{
    WEFT_TRY(weft_path_check("weft_chain_map: a field", field->name, error));
    if ((unsigned)field->dtype >= WEFT_DTYPES)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_map: the dtype of %.100s is none; there are %s", field->name,
                         weft_dtype_names());
    if (field->width.name == NULL) return WEFT_OK;
    WEFT_TRY(weft_name_check("weft_chain_map: a width", field->width.name, error));
    if (field->width.size >= 1 && field->width.size <= INT64_C(1) << 30) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "weft_chain_map: %.100s is %s:%lld wide; 1 to 2^30 can be",
                     field->name, field->width.name, (long long)field->width.size);
}

static weft_status check(const weft_chain *chain, const weft_map_options *o, weft_error *error)
{
    if (o->function == NULL || o->fields == NULL || o->name == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_map: name, function and fields are to be said, and %s is NULL",
                         o->name == NULL       ? "name"
                         : o->function == NULL ? "function"
                                               : "fields");
    WEFT_TRY(weft_name_check("weft_chain_map: name", o->name, error));
    if (o->n_fields < 1 || o->n_fields > WEFT_MAX_FIELDS)
        return weft_fail(error, WEFT_USAGE, "weft_chain_map: %d fields; there can be 1 to %d",
                         o->n_fields, WEFT_MAX_FIELDS);
    for (int f = 0; f < o->n_fields; f++)
        WEFT_TRY(check_field(&o->fields[f], error));
    for (int f = 0; f < chain->found.n_fields; f++)
        if (chain->found.fields[f].is_ragged)
            return weft_fail(error, WEFT_USAGE,
                             "weft_chain_map: records have different sizes of %.80s; make them of "
                             "one size first",
                             chain->found.fields[f].name);
    return WEFT_OK;
}

static void lay_out(map *m)
{
    for (int f = 0; f < m->operand->found.n_fields; f++)
        m->in[f] = m->bytes, m->bytes += bytes_of(&m->operand->found.fields[f]);
    for (int f = 0; f < m->n_fields; f++)
        m->out[f] = m->bytes, m->bytes += bytes_of(&m->fields[f]);
}

static char *keep_name(char **room, const char *name)
{
    char *kept = strcpy(*room, name);
    *room += strlen(name) + 1;
    return kept;
}

static map *create(const weft_chain *chain, const weft_map_options *o)
{
    size_t names = 0;
    for (int f = 0; f < o->n_fields; f++)
        names += strlen(o->fields[f].name) + 2 +
                 (o->fields[f].width.name ? strlen(o->fields[f].width.name) : 0);
    map *m = calloc(1, sizeof *m + names);
    if (m == NULL) return NULL;
    char *room = m->names;
    m->operand = chain, m->function = o->function, m->argument = o->argument;
    m->seed = o->seed, m->is_random = o->is_random || chain->found.varies;
    m->records = chain->found.records;
    m->n_fields = o->n_fields;
    for (int f = 0; f < o->n_fields; f++) {
        const weft_sample_field *said = &o->fields[f];
        m->fields[f] = (weft_field){.name = keep_name(&room, said->name), .dtype = said->dtype};
        if (said->width.name)
            m->fields[f].shape =
                (weft_shape){1, {{keep_name(&room, said->width.name), said->width.size}}};
    }
    lay_out(m);
    return m;
}

weft_status weft_chain_map(weft_chain **chain, const weft_map_options *options, weft_error *error)
{
    char setting[120];
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(*chain, options, error));
    map *m = create(*chain, options);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    weft_chain_found found = {.records = m->records,
                              .n_fields = m->n_fields,
                              .scratch_bytes = m->bytes + (*chain)->found.scratch_bytes,
                              .varies = m->is_random};
    memcpy(found.fields, m->fields, sizeof found.fields);
    snprintf(setting, sizeof setting, "%.63s, seed %llu%s", options->name,
             (unsigned long long)options->seed, options->is_random ? ", random" : "");
    return weft_stage_make(&map_kind, m, &found, setting, chain, 1, chain, error);
}
