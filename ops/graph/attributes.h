/* attributes.h: what an op's attributes are made of, field by field: how they are copied into a graph, and printed.
 *
 *     typedef struct slice_attributes { ... } slice_attributes;
 *     static const weft_field fields[] = {WEFT_FIELD(slice_attributes, slice.dim), WEFT_FIELD(slice_attributes, to)};
 *     static const weft_attributes described = WEFT_ATTRIBUTES(slice_attributes, fields);
 *     const weft_op weft_op_slice = {..., .attributes = &described};
 *
 * A field that is not named here does not exist: weft_emit takes the named ones over into zeroed memory, with names
 * interned, and leaves all else zero. So equal attributes are equal bytes, and what a kernel can see is what
 * the graph prints and the ranks compare (weft_plan_digest).
 */
#ifndef WEFT_ATTRIBUTES_H
#define WEFT_ATTRIBUTES_H

#include <stdio.h>

#include "kernel.h"
#include "weft/graph.h"

/* What a field can be. The kind follows from its C type. */
typedef struct weft_field_kind {
    size_t bytes;
    bool (*take)(weft_graph *graph, void *to,
                 const void *from); /* `to` is zeroed; false: no memory */
    void (*print)(const void *field, FILE *file);
} weft_field_kind;
extern const weft_field_kind weft_field_name, weft_field_number, weft_field_bool, weft_field_int,
    weft_field_unsigned, weft_field_int64, weft_field_shape, weft_field_initial;

typedef struct weft_field {
    /* as C writes it: "slice.begin"; printed without what stands before the last point */
    const char *name;
    size_t offset;
    const weft_field_kind *kind;
} weft_field;

/* Enumerations are ints or unsigned ints to a compiler. */
#define WEFT_FIELD(type, member)                                                                   \
    {                                                                                              \
#member, offsetof(type, member),                                                              \
     _Generic(((type *)0)->member,                                                                 \
         const char *: &weft_field_name,                                                           \
         double: &weft_field_number,                                                               \
         bool: &weft_field_bool,                                                                   \
         int: &weft_field_int,                                                                     \
         unsigned: &weft_field_unsigned,                                                           \
         int64_t: &weft_field_int64,                                                               \
         weft_shape: &weft_field_shape,                                                            \
         weft_initial: &weft_field_initial)    \
    }

typedef struct weft_attributes {
    size_t bytes;
    int n_fields;
    const weft_field *fields; /* [n_fields], in the struct's order */
} weft_attributes;
#define WEFT_ATTRIBUTES(type, fields)                                                              \
    {                                                                                              \
        sizeof(type), (int)(sizeof fields / sizeof fields[0]), fields                              \
    }

/* Of the structs that several ops share (kernel.h, op.h, ir.h). */
extern const weft_attributes weft_attributes_shape, weft_attributes_dim, weft_attributes_number,
    weft_attributes_element, weft_attributes_generator, weft_attributes_reduced,
    weft_attributes_attention, weft_attributes_variable;

/* weft_attributes_take - a copy in the graph's arena, as this file's head says; NULL: no memory. */
const void *weft_attributes_take(weft_graph *graph, const weft_attributes *attributes,
                                 const void *from);
/* weft_attributes_print - "begin=4, end=8, to=part": the fields that are not zero; numbers are exact. */
void weft_attributes_print(const weft_attributes *attributes, const void *values, FILE *file);
/* The key of a field in that text. */
const char *weft_field_key(const weft_field *field);

#endif
