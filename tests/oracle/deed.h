/* deed.h: what a program does, in two numbers: to compare one that was built with one that comes from a file. */
#ifndef WEFT_TESTS_ORACLE_DEED_H
#define WEFT_TESTS_ORACLE_DEED_H

#include "oracle.h"

#include <stdlib.h>

#include "recorder.h"
#include "weft/extend/op.h"
#include "weft/program.h"

/* The digest of its plan, and one of all elements of its outputs, to the bit. */
typedef struct deed {
    unsigned long long plan, bits;
} deed;

static inline weft_status do_it(const weft_oracle_build *build, weft_values outputs,
                                weft_mesh *mesh, const char *rules, deed *done, weft_error *error)
{
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    *done = (deed){0};
    weft_status status = weft_layout_create(rules, &layout, error);
    if (status == WEFT_OK) status = weft_compile(mesh, layout, outputs, NULL, &program, error);
    if (status == WEFT_OK) status = weft_oracle_fill(build, program, error);
    if (status == WEFT_OK) status = weft_run(program, error);
    if (status == WEFT_OK) done->plan = weft_program_digest(program);
    for (int i = 0; status == WEFT_OK && i < outputs.n_values; i++) {
        double *data = NULL;
        status = weft_oracle_read(program, outputs.values[i], &data, error);
        const size_t n = (size_t)weft_count_of(weft_shape_of(outputs.values[i]));
        if (status == WEFT_OK) done->bits = weft_digest(done->bits, data, n * sizeof *data);
        free(data);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    return status;
}

#endif
