/* spec_test: states, equality, and the texts of shapes and specs. */
#include "weft/layout.h"

#include "test.h"

static const weft_shape shape = {2, {{"batch", 32}, {"hidden", 64}}};

static weft_spec spec_2d(void) /* [batch/data, hidden/pod+model] */
{
    return (weft_spec){.n_split = {1, 2}, .split = {{0}, {2, 1}}};
}

static void test_each_axis_has_one_state(void)
{
    weft_spec spec = spec_2d();
    spec.partial = 1 << 3;
    spec.combine = WEFT_SUM;
    CHECK_EQ_INT(weft_spec_state(&spec, 2, 0), 0);
    CHECK_EQ_INT(weft_spec_state(&spec, 2, 1), 1);
    CHECK_EQ_INT(weft_spec_state(&spec, 2, 2), 1);
    CHECK_EQ_INT(weft_spec_state(&spec, 2, 3), WEFT_PARTIAL);
    CHECK_EQ_INT(weft_spec_state(&spec, 2, 4), WEFT_REPLICATED);
}

static void test_equality_sees_order_and_combine_but_not_what_is_unused(void)
{
    weft_spec a = spec_2d(), b = a;
    b.split[0][3] = 5; /* beyond n_split */
    b.combine = WEFT_MAX;
    CHECK(weft_spec_equal(&a, &b, 2)); /* nothing is partial: the combine says nothing */
    a.partial = b.partial = 1 << 3;
    CHECK(!weft_spec_equal(&a, &b, 2));
    b = a;
    b.split[1][0] = 1, b.split[1][1] = 2;
    CHECK(!weft_spec_equal(&a, &b, 2));
    CHECK(weft_spec_equal(&a, &b, 1));
}

static void test_texts(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan("data:2,model:2,pod:2,x:2", &mesh, &error), error);
    char text[100];
    weft_spec spec = spec_2d();
    weft_spec_print(&spec, mesh, &shape, text, sizeof text);
    CHECK(strcmp(text, "[batch:32/data, hidden:64/pod+model]") == 0);
    spec = (weft_spec){.n_split = {1}, .split = {{0}}, .partial = 10, .combine = WEFT_SUM};
    int length = weft_spec_print(&spec, mesh, &shape, text, sizeof text);
    CHECK(strcmp(text, "[batch:32/data, hidden:64] sum over model+x") == 0);
    CHECK_EQ_INT(length, strlen(text));
    CHECK_EQ_INT(weft_spec_print(&spec, mesh, &shape, text, 10), length);
    CHECK(strcmp(text, "[batch:32") == 0);
    CHECK_EQ_INT(weft_spec_print(&spec, mesh, &shape, NULL, 0), length);
    weft_shape_print(&shape, text, sizeof text);
    CHECK(strcmp(text, "[batch:32, hidden:64]") == 0);
    weft_shape scalar = {0};
    weft_shape_print(&scalar, text, sizeof text);
    CHECK(strcmp(text, "[]") == 0);
    weft_mesh_destroy(&mesh);
}

static void test_shapes(void)
{
    weft_shape scalar = {0};
    CHECK_EQ_INT(weft_shape_count(&shape), 2048);
    CHECK_EQ_INT(weft_shape_count(&scalar), 1);
    CHECK_EQ_INT(weft_shape_find(&shape, "hidden"), 1);
    CHECK_EQ_INT(weft_shape_find(&shape, "hid"), -1);
}

static void test_combines(void)
{
    CHECK(strcmp(weft_combine_name(WEFT_LSE), "lse") == 0);
    CHECK_EQ_INT(weft_combine_width(WEFT_SUM), 1);
    CHECK_EQ_INT(weft_combine_width(WEFT_LSE), 2);
    CHECK_EQ_INT(weft_combine_width(WEFT_ARGMAX), 2);
    CHECK_EQ_INT(weft_combine_width(WEFT_MOMENTS), 3);
}

int main(void)
{
    RUN(test_each_axis_has_one_state);
    RUN(test_equality_sees_order_and_combine_but_not_what_is_unused);
    RUN(test_texts);
    RUN(test_shapes);
    RUN(test_combines);
    return weft_test_report();
}
