/* measured_cases.h: runs do as plans say, of each case on each mesh. A test that includes it has `oracle`, `cases` and
 * N_CASES. */
#include "measured.h"

static void test_what_is_planned_is_measured(void)
{
    for (int c = 0; c < N_CASES; c++)
        for (int m = -1; m < oracle.n_meshes; m++) {
            weft_error error = {0};
            weft_program *program = NULL;
            weft_layout *layout = NULL;
            weft_oracle_build b = {.graph = weft_graph_create(3), .argument = cases[c].argument};
            cases[c].build(&b);
            const weft_values values = {b.outputs, b.n_outputs};
            weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
            CHECK_OK(weft_layout_create(cases[c].layout, &layout, &error), error);
            CHECK_OK(weft_compile(mesh, layout, values, NULL, &program, &error), error);
            for (int run = 0; program != NULL && run < 2; run++) {
                CHECK_OK(weft_oracle_fill(&b, program, &error), error);
                CHECK_OK(weft_run(program, &error), error);
                check_measured(program);
            }
            CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
            CHECK_EQ_INT(weft_graph_destroy(&b.graph), WEFT_OK);
            weft_layout_destroy(&layout);
        }
}
