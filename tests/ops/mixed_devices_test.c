/* RANKS: 2 3 */
/* mixed_devices_test: where processes have their ranks on different devices, all of them return one sentence that names two,
 * and go on with what is right. In one process all ranks of a mesh are on the mesh's device.
 */
#include "mesh/fake_device.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <string.h>

#include "test.h"

static weft_world world;

static weft_status compile(bool is_fake, weft_error *error)
{
    static const weft_dim row = {"row", 6};
    char text[20];
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_variable(graph, "x", WEFT_F32, WEFT_DIMS(row), weft_normal(0, 1));
    weft_value sum = weft_sum(WEFT_SCALAR, weft_square(x));
    fake_use(is_fake);
    snprintf(text, sizeof text, "data:%d", world.n_processes);
    weft_status status = weft_mesh_create(&world, text, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create("row:data", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(sum), NULL, &program, error);
    if (status == WEFT_OK) status = weft_run(program, error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    fake_use(false);
    return status;
}

/* The last one is elsewhere; the others are where rank 0 is. */
static void test_ranks_on_several_devices_get_one_sentence(void)
{
    const int last = world.n_processes - 1;
    char sentence[120];
    weft_error error = {0};
    snprintf(sentence, sizeof sentence,
             "rank %d is on device fake, but rank 0 on device cpu; give all ranks the same", last);
    CHECK_EQ_INT(compile(world.process == last, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, sentence);
}

static void test_then_all_are_on_one(void)
{
    weft_error here = {0}, there = {0};
    CHECK_OK(compile(false, &here), here);
    CHECK_OK(compile(true, &there), there);
    CHECK_EQ_INT(fake_seen().n_races + fake_seen().n_dead, 0);
}

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return 1;
    if (world.n_processes > 1) RUN(test_ranks_on_several_devices_get_one_sentence);
    RUN(test_then_all_are_on_one);
    weft_world_close();
    return weft_test_report();
}
