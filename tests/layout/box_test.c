/* box_test: boxes are nested ceil blocks; the boxes of all ranks hold every element equally often.
 */
#include "random_specs.h"

static weft_mesh *mesh_of(const char *text)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan(text, &mesh, &error), error);
    return mesh;
}

static void test_an_uneven_dim_is_cut_by_the_ceiling(void)
{
    weft_mesh *mesh = mesh_of("data:4");
    weft_shape shape = {1, {{"batch", 9}}};
    weft_spec spec = {.n_split = {1}, .split = {{0}}};
    const int64_t begins[] = {0, 3, 6, 9},
                  ends[] = {3, 6, 9, 9}; /* blocks of 3; the last is empty */
    for (int rank = 0; rank < 4; rank++) {
        weft_box box;
        weft_spec_box(&spec, mesh, &shape, rank, &box);
        CHECK_EQ_INT(box.begin[0], begins[rank]);
        CHECK_EQ_INT(box.end[0], ends[rank]);
    }
    weft_mesh_destroy(&mesh);
}

static void test_axes_nest_outermost_first(void)
{
    weft_mesh *mesh = mesh_of("a:2,b:3");
    weft_shape shape = {1, {{"batch", 10}}};
    weft_spec a_b = {.n_split = {2}, .split = {{0, 1}}}, b_a = {.n_split = {2}, .split = {{1, 0}}};
    const int64_t of_a_b[] = {0, 2, 4, 5, 7, 9}; /* 5 | 5, then 2 2 1 | 2 2 1 */
    const int64_t of_b_a[] = {0, 4, 8, 2, 6, 9}; /* 4 | 4 | 2, then 2 2 | 2 2 | 1 1 */
    for (int rank = 0; rank < 6; rank++) {
        weft_box box;
        weft_spec_box(&a_b, mesh, &shape, rank, &box);
        CHECK_EQ_INT(box.begin[0], of_a_b[rank]);
        weft_spec_box(&b_a, mesh, &shape, rank, &box);
        CHECK_EQ_INT(box.begin[0], of_b_a[rank]);
    }
    weft_mesh_destroy(&mesh);
}

static void test_boxes_of_all_ranks_hold_every_element_equally_often(void)
{
    static int counts[MAX_ELEMENTS];
    for (int trial = 0; trial < 1500; trial++) {
        weft_mesh *mesh = random_mesh();
        weft_shape shape = random_shape();
        weft_spec spec = random_spec(mesh, &shape, 5);
        int64_t n = weft_shape_count(&shape);
        memset(counts, 0, sizeof counts);
        for (int rank = 0; rank < weft_mesh_n_ranks(mesh); rank++) {
            weft_box box;
            weft_spec_box(&spec, mesh, &shape, rank, &box);
            bool is_inside = true;
            for (int d = 0; d < shape.n_dims; d++)
                is_inside = is_inside && 0 <= box.begin[d] && box.begin[d] <= box.end[d] &&
                            box.end[d] <= shape.dims[d].size;
            CHECK(is_inside);
            count_box(&shape, &box, counts);
        }
        uint32_t held_alike = 0;
        for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
            if (weft_spec_state(&spec, shape.n_dims, a) < 0) held_alike |= 1u << a;
        int n_wrong = 0;
        for (int64_t i = 0; i < n; i++)
            n_wrong += counts[i] != ranks_along(mesh, held_alike);
        CHECK_EQ_INT(n_wrong, 0);
        weft_mesh_destroy(&mesh);
    }
}

static void test_boxes_meet(void)
{
    weft_box a = {{0, 2}, {4, 6}}, b = {{3, 0}, {9, 3}}, far = {{7, 0}, {9, 3}}, common;
    CHECK_EQ_INT(weft_box_meet(&a, &b, 2, &common), 1);
    CHECK(common.begin[0] == 3 && common.end[0] == 4 && common.begin[1] == 2 && common.end[1] == 3);
    CHECK_EQ_INT(weft_box_meet(&a, &far, 2, &common), 0);
    CHECK_EQ_INT(weft_box_meet(&a, &far, 0, &common), 1); /* two scalars */
    CHECK_EQ_INT(weft_box_count(&a, 2), 16);
    CHECK_EQ_INT(weft_box_count(&a, 0), 1);
}

static void test_a_long_dim_does_not_overflow(void)
{
    weft_mesh *mesh = mesh_of("a:1048576");
    weft_shape shape = {1, {{"batch", ((int64_t)1 << 60) + 1}}};
    weft_spec spec = {.n_split = {1}, .split = {{0}}};
    weft_box box;
    weft_spec_box(&spec, mesh, &shape, 1048575, &box);
    CHECK_EQ_INT(box.end[0], shape.dims[0].size);
    CHECK(box.begin[0] < box.end[0]);
    weft_shape huge = {2, {{"i", (int64_t)1 << 40}, {"j", (int64_t)1 << 40}}};
    CHECK_EQ_INT(weft_shape_count(&huge), INT64_MAX);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    RUN(test_an_uneven_dim_is_cut_by_the_ceiling);
    RUN(test_axes_nest_outermost_first);
    RUN(test_boxes_of_all_ranks_hold_every_element_equally_often);
    RUN(test_boxes_meet);
    RUN(test_a_long_dim_does_not_overflow);
    return weft_test_report();
}
