/* machine_fields.h (private): single fields of a machine file, each checked when it is read, so that a mistake is told with its
 * place: "loads[1].bytes_per_second[3]".
 */
#ifndef WEFT_PREDICT_MACHINE_FIELDS_H
#define WEFT_PREDICT_MACHINE_FIELDS_H

#include "machine.h"

typedef struct weft_reading {
    const char *path;
    weft_machine_model *model;
    weft_error *error;
    char place[160]; /* in the file */
} weft_reading;

/* weft_json_into - "kernels[3]." is where fields are from now on. returns what weft_json_out takes back. */
size_t weft_json_into(weft_reading *r, const char *format, const char *key, size_t index);
void weft_json_out(weft_reading *r, size_t was);

/* weft_json_refuse - the sentence about `key`: what should be there, and what is; found NULL: nothing is. */
weft_status weft_json_refuse(const weft_reading *r, const json_t *found, const char *key,
                             const char *wanted);

/* weft_json_take - memory of the model's. */
weft_status weft_json_take(weft_reading *r, size_t bytes, void *memory);

/* weft_json_known - `in` is an object without other keys than these; else the nearest of them is told.
 *
 * keys  NULL at the end */
weft_status weft_json_known(weft_reading *r, json_t *in, const char *const *keys);

weft_status weft_json_number(weft_reading *r, const json_t *in, const char *key, double low,
                             double high, double *number);
weft_status weft_json_count(weft_reading *r, const json_t *in, const char *key, int low,
                            int *count);
weft_status weft_json_text(weft_reading *r, const json_t *in, const char *key, const char **text);
weft_status weft_json_list(weft_reading *r, const json_t *in, const char *key, size_t least,
                           const json_t **list);
/* weft_json_name - the number of a name of a dtype, of a conversion: one that `name_of` has. */
weft_status weft_json_name(weft_reading *r, const char *key, const char *text,
                           const char *(*name_of)(int), int n, int *found);
/* weft_json_amount - an entry of a list or of an object: a number from 0 to 1e30. */
weft_status weft_json_amount(const weft_reading *r, const json_t *found, const char *key,
                             double *number);
/* weft_json_curve - points of a size and a value, ascending. */
weft_status weft_json_curve(weft_reading *r, const json_t *in, const char *key, weft_curve *curve);

#endif
