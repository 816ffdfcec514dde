/* called.h: a case of the table built as a graph, run on one rank, and given to its definition.
 *
 *     called c = called_build(what, dtype, weft_graph_create(CALLED_SEED), NULL);
 *     if (called_run(oracle.alone, &c, results, arguments, &error) == WEFT_OK) {
 *         reference_call call = called_as(what, &c, arguments);
 *         group->reference(&call);
 *         ...
 *         called_free(&call);
 *     }
 */
#ifndef WEFT_TESTS_ORACLE_CALLED_H
#define WEFT_TESTS_ORACLE_CALLED_H

#include "op_cases.h"

enum { CALLED_SEED = 77 };

typedef struct called {
    weft_oracle_build build;
    int n_results;
    weft_value results[REFERENCE_OUT];
} called;

/* In the graph, which stays the caller's; first: built in it before, whose inputs serve again, or NULL. */
called called_build(const op_case *what, weft_dtype dtype, weft_graph *graph,
                    const weft_oracle_build *first);
/* Its results [n_results] and its operands as it got them [build.n_arguments], to be freed, also after a failure. */
WEFT_MUST_CHECK weft_status called_run(weft_mesh *alone, const called *c, double **results,
                                       double **arguments, weft_error *error);
/* The call that it makes; data of operands are the caller's, results are zeros until called_free. */
reference_call called_as(const op_case *what, const called *c, double *const *arguments);
void called_free(reference_call *call);
/* As many zeros as the value has elements, to be freed. */
double *called_zeros(weft_value value);

#endif
