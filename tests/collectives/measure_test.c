/* measure_test: measured links are the same on all ranks, serve as stated links, and have no entry for an axis of one
 * rank. Two digits of any speed and time are printed so that they can be read again.
 */
/* RANKS: 2 4 */
#include "weft/collectives.h"

#include <math.h>
#include <string.h>

#include "test.h"

static weft_world world;

static void test_all_ranks_are_told_the_same(const char *text)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    weft_link_speed speeds[WEFT_MAX_AXES], all[8];
    CHECK_OK(weft_mesh_create(&world, text, &mesh, &error), error);
    CHECK_OK(weft_comms_create(mesh, &comms, &error), error);
    if (!CHECK_OK(weft_comms_measure(comms, speeds, &error), error)) return;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        const bool has_links = weft_mesh_axis_size(mesh, a) > 1;
        CHECK(has_links ? speeds[a].bytes_per_s > 1e3 && speeds[a].latency_s > 0
                        : speeds[a].bytes_per_s == 0 && speeds[a].latency_s == 0);
        CHECK(speeds[a].latency_s < 10 && isfinite(speeds[a].bytes_per_s));
        CHECK(!speeds[a].is_between_hosts);
    }
    if (world.n_processes > 1) {
        const uint32_t axes = (1u << weft_mesh_n_axes(mesh)) - 1;
        int64_t bytes[8], at[8];
        weft_request request;
        for (int r = 0; r < world.n_processes; r++) {
            bytes[r] = sizeof *speeds;
            at[r] = r * (int64_t)sizeof *speeds;
        }
        CHECK_OK(weft_comms_prepare(comms, axes, &error), error);
        CHECK_OK(weft_all_gather_start(weft_comm_of(comms, world.process, axes), speeds,
                                       sizeof *speeds, all, bytes, at, &request, &error),
                 error);
        CHECK_OK(weft_wait(&request, &error), error);
        for (int r = 0; r < world.n_processes; r++)
            CHECK(all[r].bytes_per_s == speeds[0].bytes_per_s &&
                  all[r].latency_s == speeds[0].latency_s);
    }
    weft_comms_destroy(&comms);
    CHECK_OK(weft_mesh_destroy(&mesh), error);
}

static void test_every_mesh(void)
{
    char text[64];
    const int n = world.n_processes;
    if (n == 1) {
        test_all_ranks_are_told_the_same("data:1");
        test_all_ranks_are_told_the_same("data:3");
        test_all_ranks_are_told_the_same("data:2,one:1,model:2");
        return;
    }
    snprintf(text, sizeof text, "data:%d", n);
    test_all_ranks_are_told_the_same(text);
    snprintf(text, sizeof text, "data:%d,one:1,model:2", n / 2);
    test_all_ranks_are_told_the_same(text);
}

static void check_text(double bytes_per_s, double latency_s, const char *expected)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    char text[100];
    const weft_link_speed speeds[WEFT_MAX_AXES] = {{bytes_per_s, latency_s, false}};
    CHECK_OK(weft_mesh_plan("data:2,model:3", &mesh, &error), error);
    weft_links_text(mesh, speeds, text, sizeof text);
    if (!CHECK(strcmp(text, expected) == 0)) printf("\"%s\", not \"%s\"\n", text, expected);
    CHECK_OK(weft_mesh_destroy(&mesh), error);
}

static void test_speeds_are_printed_with_two_digits(void)
{
    check_text(47.83e6, 1.13e-3, "data:48MB+1.1ms");
    check_text(5.249e9, 4.4e-6, "data:5.2GB+4.4us");
    check_text(999.7e6, 999.6e-6, "data:1GB+1ms");
    check_text(123456, 0.25, "data:120kB+250ms");
    check_text(1, 2, "data:1B+2s");
    check_text(3e14, 1e-12, "data:300TB+1ns");
    check_text(0, 1e-3, "");
    check_text(NAN, 1e-3, "");
    check_text(INFINITY, 1e-3, "");
}

static void test_text_never_leaves_its_room(void)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    char text[20] = "untouched";
    const weft_link_speed speeds[WEFT_MAX_AXES] = {{5e9, 1e-6, false}, {4e9, 1e-6, false}};
    CHECK_OK(weft_mesh_plan("data:2,model:3", &mesh, &error), error);
    weft_links_text(mesh, speeds, text, sizeof text);
    CHECK(strlen(text) < sizeof text);
    weft_links_text(mesh, speeds, NULL, 5);
    weft_links_text(NULL, speeds, text, sizeof text);
    CHECK(*text == '\0');
    weft_links_text(mesh, NULL, text, sizeof text);
    CHECK(*text == '\0');
    CHECK_OK(weft_mesh_destroy(&mesh), error);
}

int main(void)
{
    weft_error error = {0};
    weft_lanes_choose(1);
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    RUN(test_every_mesh);
    RUN(test_speeds_are_printed_with_two_digits);
    RUN(test_text_never_leaves_its_room);
    weft_world_close();
    return weft_test_report();
}
