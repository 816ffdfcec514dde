/* mesh_test: texts that are meshes and texts that are not; ranks, coordinates, groups; the local
 * ranks. */
#include "weft/mesh.h"

#include <stdlib.h>

#include "test.h"

static const weft_world alone = {
    .n_processes = 1, .process = 0, .n_host_processes = 1, .launcher = "alone"};

static void test_a_text_becomes_axes(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan(" data:2 , model : 4,_x9:3", &mesh, &error), error);
    CHECK(strcmp(weft_mesh_text(mesh), "data:2,model:4,_x9:3") == 0);
    CHECK_EQ_INT(weft_mesh_n_axes(mesh), 3);
    CHECK(strcmp(weft_mesh_axis_name(mesh, 1), "model") == 0);
    CHECK_EQ_INT(weft_mesh_axis_size(mesh, 1), 4);
    CHECK_EQ_INT(weft_mesh_find_axis(mesh, "_x9"), 2);
    CHECK_EQ_INT(weft_mesh_find_axis(mesh, "mode"), -1);
    CHECK_EQ_INT(weft_mesh_n_ranks(mesh), 24);
    CHECK_EQ_INT(weft_mesh_n_local(mesh), 0);
    weft_mesh_destroy(&mesh);
    CHECK(mesh == NULL);
    weft_mesh_destroy(&mesh);
}

static void test_no_text_is_data(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan(NULL, &mesh, &error), error);
    CHECK(strcmp(weft_mesh_text(mesh), "data:1") == 0);
    weft_mesh_destroy(&mesh);
    weft_world four = {.n_processes = 4, .process = 2, .n_host_processes = 4, .launcher = "mpirun"};
    CHECK_OK(weft_mesh_create(&four, "", &mesh, &error), error);
    CHECK(strcmp(weft_mesh_text(mesh), "data:4") == 0);
    CHECK_EQ_INT(weft_mesh_n_local(mesh), 1);
    CHECK_EQ_INT(weft_mesh_first_local(mesh), 2);
    CHECK(!weft_mesh_is_root(mesh));
    weft_mesh_destroy(&mesh);
}

static const struct {
    const char *text, *sentence;
} wrong[] = {
    {"data", "column 5: \":\" and a size expected, but found \"the text ends\""},
    {"data:", "column 6: a size expected"},
    {"data:2,", "column 8: an axis name expected"},
    {"data:2,,model:2", "column 8: an axis name expected, but found \",model:2\""},
    {"data:2;model:2", "column 7: \",\" or the end expected, but found \";model:2\""},
    {"2:data", "column 1: an axis name expected"},
    {"data:-2", "column 6: a size expected"},
    {"data:2,data:3", "column 8: axis data is there twice"},
    {"data:0", "column 6: axis data has size 0"},
    {"data:1048577", "axis data has size 1048577"},
    {"data:9223372036854775808", "axis data has size 9223372036854775808"},
    {"data:99999999999999999999999999999999999999999", "axis data has size 99999999999999"},
    {"a:1024,b:1024,c:2", "has 2097152 ranks or more, and the most is 1048576"},
    {"a:1,b:1,c:1,d:1,e:1,f:1,g:1", "column 25: this would be axis number 7"},
    {"a234567890123456789012345678901234567890123456789012345678901234:2", "64 letters"},
    {"  ", "column 3: an axis name expected"},
};

static void test_a_wrong_text_is_refused_with_its_place(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weft_error error = {0};
        weft_mesh *mesh;
        CHECK_EQ_INT(weft_mesh_plan(wrong[i].text, &mesh, &error), WEFT_USAGE);
        CHECK(mesh == NULL);
        CHECK_TEXT(error.message, wrong[i].sentence);
    }
}

static void test_a_mesh_of_another_size_than_the_world_is_refused(void)
{
    weft_world three = {
        .n_processes = 3, .process = 0, .n_host_processes = 3, .launcher = "mpirun"};
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_EQ_INT(weft_mesh_create(&three, "data:2,model:2", &mesh, &error), WEFT_USAGE);
    CHECK(mesh == NULL);
    CHECK_TEXT(error.message,
               "mesh data:2,model:2 has 4 ranks but mpirun started 3 processes; start "
               "4, or change the mesh");
}

static void test_too_many_ranks_in_one_process_are_refused(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_EQ_INT(weft_mesh_create(&alone, "data:1000000", &mesh, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "1000000 ranks, and one process runs at most");
}

static void test_ranks_are_row_major(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan("a:2,b:3,c:4", &mesh, &error), error);
    int rank = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++, rank++) {
                int at[WEFT_MAX_AXES];
                weft_mesh_coordinates(mesh, rank, at);
                CHECK(at[0] == a && at[1] == b && at[2] == c);
                CHECK_EQ_INT(weft_mesh_rank(mesh, at), rank);
            }
    weft_mesh_destroy(&mesh);
}

static void test_a_group_is_what_differs_along_its_axes(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    int ranks[24], self;
    CHECK_OK(weft_mesh_plan("a:2,b:3,c:4", &mesh, &error), error);
    CHECK_EQ_INT(weft_mesh_group(mesh, 5, 17, ranks, &self), 8); /* a and c of (1, 1, 1) */
    const int expected[] = {4, 5, 6, 7, 16, 17, 18, 19};
    CHECK(memcmp(ranks, expected, sizeof expected) == 0);
    CHECK_EQ_INT(self, 5);
    CHECK_EQ_INT(weft_mesh_group(mesh, 0, 17, ranks, &self), 1);
    CHECK(ranks[0] == 17 && self == 0);
    CHECK_EQ_INT(weft_mesh_group(mesh, 7, 3, NULL, NULL), 24);
    for (uint32_t axes = 0; axes < 8; axes++)
        for (int rank = 0; rank < 24; rank++) {
            int n = weft_mesh_group(mesh, axes, rank, ranks, &self);
            CHECK(self < n && ranks[self] == rank);
        }
    weft_mesh_destroy(&mesh);
}

typedef struct visits {
    int count[16];
    int64_t sum[16];
    weft_mesh *mesh;
} visits;

static void add_piece(void *argument, int64_t begin, int64_t end, int lane)
{
    int64_t *sums = argument;
    for (int64_t i = begin; i < end; i++)
        sums[lane] += i;
}

static void visit(void *argument, int rank)
{
    visits *v = argument;
    weft_stream *stream = weft_mesh_stream(v->mesh, rank);
    int64_t sums[64] = {0};
    v->count[rank]++;
    weft_parallel(stream, 1000, 10, add_piece, sums);
    for (int lane = 0; lane < weft_stream_lanes(stream); lane++)
        v->sum[rank] += sums[lane];
}

static void test_each_runs_every_local_rank_once_with_its_stream(void)
{
    weft_error error = {0};
    visits v = {{0}, {0}, NULL};
    weft_lanes_choose(2);
    CHECK_OK(weft_mesh_create(&alone, "data:3,model:2", &v.mesh, &error), error);
    weft_lanes_choose(0);
    CHECK_EQ_INT(weft_mesh_n_local(v.mesh), 6);
    CHECK_EQ_INT(weft_mesh_lanes(v.mesh), 2);
    CHECK(weft_mesh_is_root(v.mesh));
    for (int run = 0; run < 200; run++)
        weft_mesh_each(v.mesh, visit, &v);
    for (int rank = 0; rank < 6; rank++) {
        CHECK_EQ_INT(v.count[rank], 200);
        CHECK_EQ_INT(v.sum[rank], 200 * 499500);
    }
    weft_mesh_destroy(&v.mesh);
}

static void test_cores_are_shared_by_the_ranks(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    int n_cores = weft_machine_info()->n_cores;
    CHECK_OK(weft_mesh_create(&alone, "data:1", &mesh, &error), error);
    CHECK(weft_mesh_lanes(mesh) >= 1 && weft_mesh_lanes(mesh) <= n_cores);
    weft_mesh_destroy(&mesh);
    CHECK_OK(weft_mesh_create(&alone, "data:300", &mesh, &error), error);
    CHECK(weft_mesh_lanes(mesh) * 300 <= n_cores || weft_mesh_lanes(mesh) == 1);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    RUN(test_a_text_becomes_axes);
    RUN(test_no_text_is_data);
    RUN(test_a_wrong_text_is_refused_with_its_place);
    RUN(test_a_mesh_of_another_size_than_the_world_is_refused);
    RUN(test_too_many_ranks_in_one_process_are_refused);
    RUN(test_ranks_are_row_major);
    RUN(test_a_group_is_what_differs_along_its_axes);
    RUN(test_each_runs_every_local_rank_once_with_its_stream);
    RUN(test_cores_are_shared_by_the_ranks);
    return weft_test_report();
}
