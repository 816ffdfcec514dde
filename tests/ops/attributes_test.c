/* attributes_test: what an op describes of its attributes is all that there is of them, all of it is printed, and
 * equal ones are equal bytes. For every op of the table, whatever it is.
 */
#include "ops/graph/ir.h"

#include <stdlib.h>

#include "test.h"
#include "weft/ops.h"

enum { MAX_BYTES = 1024, VALUES = 2 };

/* ---- a field set to its first or second value ------------------------------------------------ */

/* Names in other memory each time, as users' are. */
static char names[4][8];

static void set_name(void *field, int value)
{
    static int at;
    char *name = names[at = (at + 1) % 4];
    snprintf(name, sizeof names[0], "%s", value == 0 ? "row" : "column");
    *(const char **)field = name;
}
static void set_number(void *field, int value)
{
    *(double *)field = value == 0 ? 0.1 : nextafter(0.1, 1.0);
}
static void set_bool(void *field, int value)
{
    *(bool *)field = value != 0;
}
static void set_int(void *field, int value)
{
    *(int *)field = value + 1;
}
static void set_unsigned(void *field, int value)
{
    *(unsigned *)field = (unsigned)value + 1;
}
static void set_int64(void *field, int value)
{
    *(int64_t *)field = ((int64_t)1 << 40) + value;
}
static void set_shape(void *field, int value)
{
    weft_shape *shape = field;
    shape->n_dims = 1;
    set_name(&shape->dims[0].name, 0);
    shape->dims[0].size = value + 1;
}
static void set_initial(void *field, int value)
{
    weft_initial *initial = field;
    initial->kind = WEFT_INITIAL_NORMAL;
    initial->a = 0.0;
    initial->b = value + 1.0;
}

static const struct setter {
    const weft_field_kind *kind;
    void (*set)(void *field, int value);
} setters[] = {
    {&weft_field_name, set_name},         {&weft_field_number, set_number},
    {&weft_field_bool, set_bool},         {&weft_field_int, set_int},
    {&weft_field_unsigned, set_unsigned}, {&weft_field_int64, set_int64},
    {&weft_field_shape, set_shape},       {&weft_field_initial, set_initial},
};

static void set(void *attributes, const weft_field *field, int value)
{
    for (size_t s = 0; s < sizeof setters / sizeof setters[0]; s++) {
        if (setters[s].kind != field->kind) continue;
        setters[s].set((char *)attributes + field->offset, value);
        return;
    }
    weft_test_check(false, __FILE__, __LINE__, "a kind of field that this test cannot set");
}

/* Its first value in every field; what no field names, padding too, is `filling`. */
static void fill(const weft_attributes *described, unsigned char filling, void *attributes)
{
    memset(attributes, filling, described->bytes);
    for (int f = 0; f < described->n_fields; f++)
        set(attributes, &described->fields[f], 0);
}

/* ---- for every op ---------------------------------------------------------------------------- */

static char *print(const weft_attributes *described, const void *attributes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    weft_attributes_print(described, attributes, file);
    fclose(file);
    return text;
}

static void test_every_field_is_printed(void)
{
    for (int i = 0; i < weft_n_ops; i++) {
        const weft_attributes *described = weft_op_attributes(weft_ops[i]);
        for (int f = 0; described != NULL && f < described->n_fields; f++) {
            _Alignas(16) char attributes[MAX_BYTES];
            fill(described, 0, attributes);
            char *first = print(described, attributes);
            set(attributes, &described->fields[f], 1);
            char *second = print(described, attributes);
            char what[160];
            snprintf(what, sizeof what, "%s: another %s is another text", weft_ops[i]->name,
                     described->fields[f].name);
            weft_test_check(strcmp(first, second) != 0, __FILE__, __LINE__, what);
            free(first);
            free(second);
        }
    }
}

/* Element ops may leave out the numbers that all of them have, and have zeros there. */
static void test_fields_cover_the_struct_and_have_a_key_each(void)
{
    for (int i = 0; i < weft_n_ops; i++) {
        const weft_attributes *described = weft_op_attributes(weft_ops[i]);
        size_t end = 0;
        for (int f = 0; described != NULL && f < described->n_fields; f++) {
            const weft_field *field = &described->fields[f];
            CHECK(field->offset >= end); /* and only padding lies between */
            CHECK(field->offset < end + sizeof(double) || weft_ops[i]->element != NULL);
            end = field->offset + field->kind->bytes;
            CHECK(end <= described->bytes && described->bytes <= MAX_BYTES);
            CHECK(f + 1 < described->n_fields || described->bytes < end + sizeof(double));
            for (int k = 0; k < f; k++) /* keys leave out what stands before the point */
                CHECK(strcmp(weft_field_key(field), weft_field_key(&described->fields[k])) != 0);
        }
    }
}

/* Not zeroed, with padding of anything, names anywhere: builders cannot make equal attributes differ. */
static void test_equal_fields_are_equal_bytes(void)
{
    weft_graph *g = weft_graph_create(1);
    for (int i = 0; i < weft_n_ops; i++) {
        const weft_attributes *described = weft_op_attributes(weft_ops[i]);
        if (described == NULL) continue;
        _Alignas(16) char one[MAX_BYTES], other[MAX_BYTES];
        fill(described, 0xAA, one);
        fill(described, 0x55, other);
        const void *a = weft_attributes_take(g, described, one);
        const void *b = weft_attributes_take(g, described, other);
        if (CHECK(a != NULL && b != NULL)) CHECK(memcmp(a, b, described->bytes) == 0);
    }
    weft_graph_destroy(&g);
}

/* ---- what an op does not describe ------------------------------------------------------------ */

static void test_attributes_that_no_table_describes_are_refused(void)
{
    static const weft_dim row = {"row", 3};
    for (int is_element = 0; is_element < 2; is_element++) {
        weft_graph *g = weft_graph_create(1);
        weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(row));
        const weft_op *op = is_element ? &weft_op_relu : &weft_op_copy;
        const weft_number_attributes number = {0.5};
        CHECK_EQ_INT(weft_emit(g, op, &x, 1, &number, sizeof number).id, 0);
        CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_INTERNAL);
        CHECK_TEXT(weft_graph_error(g)->message,
                   "attributes of 8 bytes, where its table describes");
        weft_graph_destroy(&g);
    }
}

static void test_odd_names_cannot_be_read_as_something_else(void)
{
    const weft_dim_attributes odd = {"a\", size=3\n", 4}, bare = {"a.b/c_1", 4};
    char *text = print(&weft_attributes_dim, &odd);
    CHECK(strcmp(text, "dim=\"a\\x22, size=3\\x0a\", size=4") == 0);
    free(text);
    text = print(&weft_attributes_dim, &bare);
    CHECK(strcmp(text, "dim=a.b/c_1, size=4") == 0);
    free(text);
}

int main(void)
{
    RUN(test_every_field_is_printed);
    RUN(test_fields_cover_the_struct_and_have_a_key_each);
    RUN(test_equal_fields_are_equal_bytes);
    RUN(test_attributes_that_no_table_describes_are_refused);
    RUN(test_odd_names_cannot_be_read_as_something_else);
    return weft_test_report();
}
