/* attributes.h: attributes field by field (weft/extend/op.h): how they are copied into a graph, and printed. */
#ifndef WEFT_ATTRIBUTES_H
#define WEFT_ATTRIBUTES_H

#include "weft/extend/op.h"

/* Of the structs that several ops share (kernel.h, op.h, ir.h). */
extern const weft_attributes weft_attributes_shape, weft_attributes_generator,
    weft_attributes_reduced, weft_attributes_attention, weft_attributes_variable,
    weft_attributes_scan, weft_attributes_scan_trip, weft_attributes_scan_dim,
    weft_attributes_scan_guard;

/* weft_attributes_take - a copy in the graph's arena, as this file's head says; NULL: no memory. */
const void *weft_attributes_take(weft_graph *graph, const weft_attributes *attributes,
                                 const void *from);
/* weft_attributes_print - "begin=4, end=8, to=part": the fields that are not zero; numbers are exact. */
void weft_attributes_print(const weft_attributes *attributes, const void *values, FILE *file);
/* The key of a field in that text. */
const char *weft_field_key(const weft_field *field);

#endif
