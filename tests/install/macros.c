/* macros: what the public headers define as macros, used in a program that is C99 to C23 and C++17 alike. */
#include <stdio.h>
#include <string.h>
#include <weft.h>

#ifdef __cplusplus
/* An op's macro takes no name from a class but its own, weft_relu. */
struct layer {
    weft_value in;
    weft_value relu() const
    {
        return weft_relu(in);
    }
};
static weft_value activate(weft_value x)
{
    return layer{x}.relu();
}
#else
static weft_value activate(weft_value x)
{
    return weft_relu(x);
}
#endif

static weft_status build(weft_graph *graph, weft_mesh *mesh, weft_error *error)
{
    weft_dim batch = {"batch", 4}, in = {"in", 3}, out = {"out", 2};
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, in));
    weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0.0, 0.1));
    weft_value y = activate(weft_einsum(WEFT_DIMS(batch, out), x, w));
    weft_value loss = weft_sum(WEFT_SCALAR, y);
    weft_value gradient, update;
    weft_gradients(loss, WEFT_VALUES(w), &gradient, 0);
    update = weft_assign(w, weft_sub(w, gradient));
    if (weft_shape_of(gradient)->n_dims != 2 || weft_shape_of(loss)->n_dims != 0)
        return weft_fail(error, WEFT_INTERNAL, "shapes are not what was written");

    weft_program *program = NULL;
    WEFT_TRY(weft_compile(mesh, NULL, WEFT_VALUES(loss, update), NULL, &program, error));
    weft_program_destroy(&program);

    /* A mistake on purpose: its sentence must know this file. */
    (void)weft_add(x, weft_input(graph, "z", WEFT_I32, WEFT_DIMS(batch, in)));
    return WEFT_OK;
}

int main(void)
{
    weft_error error = WEFT_NO_ERROR;
    weft_mesh *mesh = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_status status = weft_mesh_plan("data:2", &mesh, &error);
    if (status == WEFT_OK) status = build(graph, mesh, &error);
    if (status != WEFT_OK) printf("%s\n", error.message);
    const weft_error *first = weft_graph_error(graph);
    if (first->status != WEFT_USAGE || strstr(first->message, "macros.c:") == NULL) {
        printf("the place of a call is lost: %s\n", first->message);
        status = WEFT_INTERNAL;
    }
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    return status != WEFT_OK || strcmp(weft_version(), "") == 0;
}
