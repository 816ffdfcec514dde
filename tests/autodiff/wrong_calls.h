/* wrong_calls.h: builders called wrongly, each on a graph of its own, and what the graph's error says. */
#ifndef TEST_WRONG_CALLS_H
#define TEST_WRONG_CALLS_H

#include "test.h"
#include "weft/program.h"

typedef struct wrong_call {
    void (*call)(weft_graph *graph);
    const char *says;
} wrong_call;

static const weft_dim small_batch = {"batch", 5};

static inline weft_value small(weft_graph *graph)
{
    return weft_variable(graph, "v", WEFT_F32, WEFT_DIMS(small_batch), weft_constant_of(1.0));
}

/* `file`: the test's own, whose line every sentence names. */
static inline void check_wrong_calls(const wrong_call *calls, size_t n, const char *file)
{
    char at[80];
    snprintf(at, sizeof at, " at %s:", file);
    for (size_t i = 0; i < n; i++) {
        weft_graph *graph = weft_graph_create(1);
        calls[i].call(graph);
        CHECK_EQ_INT(weft_graph_error(graph)->status, WEFT_USAGE);
        CHECK_TEXT(weft_graph_error(graph)->message, calls[i].says);
        CHECK_TEXT(weft_graph_error(graph)->message, at);
        CHECK_EQ_INT(weft_graph_destroy(&graph), WEFT_OK);
    }
}

/* A value that cannot be compiled, and why. */
static inline void check_not_compiled(weft_value value, const char *says)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    if (!CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error)) return;
    CHECK_EQ_INT(weft_compile(mesh, NULL, WEFT_VALUES(value), NULL, &program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, says);
    weft_mesh_destroy(&mesh);
}

#endif
