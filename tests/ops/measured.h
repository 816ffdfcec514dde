/* measured.h: what a plan says of bytes, exchanges and steps is what a run has done. */
#ifndef TEST_MEASURED_H
#define TEST_MEASURED_H

#include "test.h"
#include "weft/program.h"

/* Of all ranks of this process, after a run. */
static inline void check_measured(const weft_program *program)
{
    weft_traffic planned[64], measured[64];
    weft_usage plan, run;
    weft_error error = {0};
    const weft_mesh *mesh = weft_program_mesh(program);
    const int first = weft_mesh_first_local(mesh);
    for (int rank = first; rank < first + weft_mesh_n_local(mesh); rank++) {
        const int n = weft_plan_traffic(program, rank, planned, 64);
        CHECK_EQ_INT(weft_measured_traffic(program, rank, measured, 64), n);
        for (int i = 0; i < n; i++) {
            CHECK_EQ_INT(planned[i].count, measured[i].count);
            CHECK_EQ_INT(planned[i].bytes, measured[i].bytes);
        }
        CHECK_OK(weft_plan_usage(program, rank, &plan, &error), error);
        weft_measured_usage(program, rank, &run);
        CHECK_EQ_INT(plan.n_steps, run.n_steps);
        CHECK_EQ_INT(plan.arena_bytes, run.arena_bytes);
    }
}

#endif
