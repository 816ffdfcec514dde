/* called.h: a case of the table built as a graph, run on one rank, and given to its definition.
 *
 *     static bool is_right(const called_result *found, char *text, size_t bytes) { ... }
 *     called_check(oracle.alone, group, what, WEFT_F32, 0, "", is_right);
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
/* The call by its definition, and what was found: [n_out], of as many elements as the definition's results have. */
typedef struct called_result {
    const op_case *what;
    weft_dtype dtype;
    const reference_call *expected;
    double *const *found;
} called_result;

/* called_check - of the case on one rank, with inputs of such extremes (WEFT_ORACLE_ bits): a check of what `is_right` says, which
 * writes a sentence where it is not. mixture: of the extremes, for the test's own sentence. */
void called_check(weft_mesh *alone, const op_group *group, const op_case *what, weft_dtype dtype,
                  int extremes, const char *mixture,
                  bool (*is_right)(const called_result *result, char *text, size_t bytes));

/* As many zeros as the value has elements, to be freed. */
double *called_zeros(weft_value value);

#endif
