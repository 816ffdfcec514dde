/* attributes.c: the kinds of fields, the attributes that several ops share, and what is done with all of them alike. */
#include "attributes.h"

#include <math.h>
#include <string.h>

#include "ir.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

static bool take_name(weft_graph *graph, void *to, const void *from)
{
    const char *const *name = from;
    const char **taken = to;
    if (*name != NULL) *taken = weft_graph_intern(graph, *name);
    return (*name == NULL) == (*taken == NULL);
}

/* Bare where it reads well; in quotes, with what is not a letter escaped, where it could be read as something else. */
static void print_text(const char *text, FILE *file)
{
    bool is_plain = text[0] != 0;
    for (const char *c = text; *c != 0; c++)
        is_plain = is_plain && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_-./~'",
                                      *c) != NULL;
    if (is_plain) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (const char *c = text; *c != 0; c++)
        fprintf(file, *c < ' ' || *c == '"' || *c == '\\' ? "\\x%02x" : "%c", (unsigned char)*c);
    fputc('"', file);
}

static void print_name(const void *field, FILE *file)
{
    const char *name = *(const char *const *)field;
    if (name != NULL) print_text(name, file);
}

static void print_number(const void *field, FILE *file)
{
    const double number = *(const double *)field;
    const bool is_whole = number > -1e6 && number < 1e6 && number == trunc(number);
    if (is_whole && !(number == 0.0 && signbit(number)))
        weft_decimal_print((int64_t)number, file); /* as below */
    else
        fprintf(file, "%.17g", number);
}

static void print_bool(const void *field, FILE *file)
{
    fputs(*(const bool *)field ? "true" : "false", file);
}

static void print_int(const void *field, FILE *file)
{
    weft_decimal_print(*(const int *)field, file);
}

static void print_unsigned(const void *field, FILE *file)
{
    weft_decimal_print(*(const unsigned *)field, file);
}

static void print_int64(const void *field, FILE *file)
{
    weft_decimal_print(*(const int64_t *)field, file);
}

static bool take_shape(weft_graph *graph, void *to, const void *from)
{
    const weft_shape *shape = from;
    weft_shape *taken = to;
    taken->n_dims = shape->n_dims;
    for (int d = 0; d < shape->n_dims; d++) {
        taken->dims[d].size = shape->dims[d].size;
        if (!take_name(graph, &taken->dims[d].name, &shape->dims[d].name)) return false;
    }
    return true;
}

static void print_shape(const void *field, FILE *file)
{
    const weft_shape *shape = field;
    fputc('[', file);
    for (int d = 0; d < shape->n_dims; d++) {
        fputs(d > 0 ? ", " : "", file);
        print_text(shape->dims[d].name, file);
        fputc(':', file);
        weft_decimal_print(shape->dims[d].size, file);
    }
    fputc(']', file);
}

/* Member by member: a struct's padding is not copied. */
static bool take_initial(weft_graph *graph, void *to, const void *from)
{
    (void)graph;
    const weft_initial *initial = from;
    weft_initial *taken = to;
    taken->kind = initial->kind;
    taken->a = initial->a;
    taken->b = initial->b;
    return true;
}

static void print_initial(const void *field, FILE *file)
{
    static const char *const names[] = {"constant", "normal", "uniform", "formula"};
    const weft_initial *initial = field;
    const unsigned kind = initial->kind;
    if (kind < sizeof names / sizeof names[0])
        fputs(names[kind], file);
    else
        fprintf(file, "%u", kind);
    fprintf(file, "(%.17g, %.17g)", initial->a, initial->b);
}

const weft_field_kind weft_field_name = {sizeof(const char *), take_name, print_name};
const weft_field_kind weft_field_number = {sizeof(double), NULL, print_number};
const weft_field_kind weft_field_bool = {sizeof(bool), NULL, print_bool};
const weft_field_kind weft_field_int = {sizeof(int), NULL, print_int};
const weft_field_kind weft_field_unsigned = {sizeof(unsigned), NULL, print_unsigned};
const weft_field_kind weft_field_int64 = {sizeof(int64_t), NULL, print_int64};
const weft_field_kind weft_field_shape = {sizeof(weft_shape), take_shape, print_shape};
const weft_field_kind weft_field_initial = {sizeof(weft_initial), take_initial, print_initial};

/* ---- attributes that several ops share ------------------------------------------------------- */

#define SHARED(name, type, ...)                                                                    \
    static const weft_field name##_fields[] = {__VA_ARGS__};                                       \
    const weft_attributes weft_attributes_##name = WEFT_ATTRIBUTES(type, name##_fields);

static const weft_field shape_fields[] = {{"out", 0, &weft_field_shape}};
const weft_attributes weft_attributes_shape = {sizeof(weft_shape), 1, shape_fields};

SHARED(dim, weft_dim_attributes, WEFT_FIELD(weft_dim_attributes, dim),
       WEFT_FIELD(weft_dim_attributes, size))
SHARED(number, weft_number_attributes, WEFT_FIELD(weft_number_attributes, number))

#define ELEMENT_FIELDS(type, in)                                                                   \
    WEFT_FIELD(type, in number[0]), WEFT_FIELD(type, in number[1]),                                \
        WEFT_FIELD(type, in number[2]), WEFT_FIELD(type, in number[3]),                            \
        WEFT_FIELD(type, in random), WEFT_FIELD(type, in dim), WEFT_FIELD(type, in every),         \
        WEFT_FIELD(type, in from)
SHARED(element, weft_element_attributes, ELEMENT_FIELDS(weft_element_attributes, ))
SHARED(generator, weft_generator_attributes, ELEMENT_FIELDS(weft_generator_attributes, element.),
       WEFT_FIELD(weft_generator_attributes, type.dtype),
       WEFT_FIELD(weft_generator_attributes, type.shape))

SHARED(reduced, weft_reduced_attributes, WEFT_FIELD(weft_reduced_attributes, reduce.combine),
       WEFT_FIELD(weft_reduced_attributes, reduce.dim), WEFT_FIELD(weft_reduced_attributes, out))
SHARED(variable, weft_variable_attributes, WEFT_FIELD(weft_variable_attributes, name),
       WEFT_FIELD(weft_variable_attributes, rows), WEFT_FIELD(weft_variable_attributes, initial),
       WEFT_FIELD(weft_variable_attributes, owner),
       WEFT_FIELD(weft_variable_attributes, type.dtype),
       WEFT_FIELD(weft_variable_attributes, type.shape))

/* Of the ops of scans each has as much of the struct as it needs. */
static const weft_field scan_fields[] = {
    WEFT_FIELD(weft_scan_attributes, scan), WEFT_FIELD(weft_scan_attributes, is_reversed),
    WEFT_FIELD(weft_scan_attributes, dim.dim), WEFT_FIELD(weft_scan_attributes, dim.size)};
const weft_attributes weft_attributes_scan = {offsetof(weft_scan_attributes, ends), 1, scan_fields};
const weft_attributes weft_attributes_scan_trip = {offsetof(weft_scan_attributes, dim), 2,
                                                   scan_fields};
const weft_attributes weft_attributes_scan_dim = WEFT_ATTRIBUTES(weft_scan_attributes, scan_fields);
static const weft_field guard_fields[] = {WEFT_FIELD(weft_scan_attributes, scan),
                                          WEFT_FIELD(weft_scan_attributes, ends)};
const weft_attributes weft_attributes_scan_guard = {offsetof(weft_scan_attributes, dim), 2,
                                                    guard_fields};

/* ---- all alike ------------------------------------------------------------------------------- */

const void *weft_attributes_take(weft_graph *graph, const weft_attributes *attributes,
                                 const void *from)
{
    char *to = weft_arena_take(graph->arena, attributes->bytes);
    for (int f = 0; to != NULL && f < attributes->n_fields; f++) {
        const weft_field *field = &attributes->fields[f];
        const void *value = (const char *)from + field->offset;
        if (field->kind->take == NULL)
            memcpy(to + field->offset, value, field->kind->bytes);
        else if (!field->kind->take(graph, to + field->offset, value))
            return NULL;
    }
    return to;
}

const char *weft_field_key(const weft_field *field)
{
    const char *point = strrchr(field->name, '.');
    return point == NULL ? field->name : point + 1;
}

static bool is_zero(const void *value, size_t bytes)
{
    const unsigned char *byte = value;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i] != 0) return false;
    return true;
}

void weft_attributes_print(const weft_attributes *attributes, const void *values, FILE *file)
{
    const char *between = "";
    for (int f = 0; f < attributes->n_fields; f++) {
        const weft_field *field = &attributes->fields[f];
        const void *value = (const char *)values + field->offset;
        if (is_zero(value, field->kind->bytes)) continue;
        fputs(between, file);
        fputs(weft_field_key(field), file);
        fputc('=', file);
        field->kind->print(value, file);
        between = ", ";
    }
}
