/* gpt_names_test: gpt's variables are called, and have the dims, that checkpoints have had since its blocks were written by hand. */
#include "apps/gpt/model.h"

#include <string.h>

#include "test.h"
#include "weft/program.h"

enum { MOST = 64, TEXT = 4000 };

static gpt_shape small_shape(void)
{
    return (gpt_shape){.batch = 4,
                       .seq = 6,
                       .layers = 2,
                       .width = 8,
                       .heads = 4,
                       .hidden = 10,
                       .vocab = 11,
                       .dtype = WEFT_F32};
}

static void put(weft_value variable, char *text)
{
    char dims[200];
    weft_shape_print(weft_shape_of(variable), dims, sizeof dims);
    const size_t at = strlen(text);
    snprintf(text + at, TEXT - at, "%s%s ", weft_name_of(variable), dims);
}

/* As a program that trains has them. */
static void names_of_program(const gpt_shape *shape, char *text)
{
    gpt_model model;
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_graph *graph = weft_graph_create(1);
    const weft_value loss = gpt_loss(shape, graph, &model);
    if (CHECK_OK(weft_mesh_plan("data:1", &mesh, &error), error) &&
        CHECK_OK(weft_layout_create(NULL, &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(loss), NULL, &program, &error), error))
        for (int i = 0; weft_variable_at(program, i).id != 0; i++)
            put(weft_variable_at(program, i), text);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
}

/* As gradients of parts of a batch are asked for. */
static void names_of_variables(const gpt_shape *shape, char *text)
{
    weft_value variables[MOST];
    weft_graph *graph = weft_graph_create(1);
    gpt_variables(shape, graph, variables);
    for (int i = 0; i < gpt_n_variables(shape); i++)
        put(variables[i], text);
    weft_graph_destroy(&graph);
}

static void check(const gpt_shape *shape, const char *expected)
{
    char of_program[TEXT] = "", of_variables[TEXT] = "";
    names_of_program(shape, of_program);
    names_of_variables(shape, of_variables);
    weft_test_check(strcmp(of_program, expected) == 0, __FILE__, __LINE__, of_program);
    weft_test_check(strcmp(of_variables, expected) == 0, __FILE__, __LINE__, of_variables);
}

#define BLOCK(n, up)                                                                               \
    "block" n ".norm1.gain[embed:8] block" n ".norm1.bias[embed:8] block" n                        \
    ".query[embed:8, heads:4, kv:2] block" n ".key[embed:8, heads:4, kv:2] block" n                \
    ".value[embed:8, heads:4, kv:2] block" n ".project[heads:4, kv:2, embed:8] block" n            \
    ".norm2.gain[embed:8] block" n ".norm2.bias[embed:8] " up
#define DENSE(n)                                                                                   \
    "block" n ".up[embed:8, hidden:10] block" n ".up.bias[hidden:10] block" n                      \
    ".down[hidden:10, embed:8] block" n ".down.bias[embed:8] "
#define EXPERTS(n)                                                                                 \
    "block" n ".router[embed:8, route:3] block" n ".up[experts:3, embed:8, hidden:10] block" n     \
    ".down[experts:3, hidden:10, embed:8] "
#define FIRST "bytes[vocab:11, embed:8] places[seq:6, embed:8] "
#define LAST  "norm.gain[embed:8] norm.bias[embed:8] head[embed:8, vocab:11] "

static void test_blocks_have_their_old_names(void)
{
    const gpt_shape shape = small_shape();
    check(&shape, FIRST BLOCK("0", DENSE("0")) BLOCK("1", DENSE("1")) LAST);
}

static void test_experts_have_their_old_names(void)
{
    gpt_shape shape = small_shape();
    shape.mixture = (gpt_mixture){.experts = 3, .top_k = 1, .capacity = 1.25};
    check(&shape, FIRST BLOCK("0", EXPERTS("0")) BLOCK("1", EXPERTS("1")) LAST);
}

static void test_rms_rotary_tied_and_grouped_have_their_old_names(void)
{
    gpt_shape shape = small_shape();
    shape.layers = 1, shape.kv_heads = 2, shape.ropes = shape.is_rms = shape.ties = true;
    check(&shape,
          "bytes[vocab:11, embed:8] block0.norm1.gain[embed:8] "
          "block0.query[embed:8, heads:2, group:2, kv:2] block0.key[embed:8, heads:2, kv:2] "
          "block0.value[embed:8, heads:2, kv:2] "
          "block0.project[heads:2, group:2, kv:2, embed:8] block0.norm2.gain[embed:8] " DENSE(
              "0") "norm.gain[embed:8] ");
}

static void check_leads(const gpt_shape *shape, const char *dim)
{
    char text[TEXT] = "", wanted[100];
    names_of_variables(shape, text);
    snprintf(wanted, sizeof wanted, "%s.block0.query[%s:2, embed:8, heads:4, kv:2] ", dim, dim);
    CHECK_TEXT(text, wanted);
    CHECK_TEXT(text, LAST);
}

static void test_stacked_layers_and_stages_have_their_old_names(void)
{
    gpt_shape shape = small_shape();
    shape.scans = true;
    check_leads(&shape, "layer");
    shape = small_shape(), shape.stages = shape.micro = 2;
    check_leads(&shape, "stage");
}

int main(void)
{
    RUN(test_blocks_have_their_old_names);
    RUN(test_experts_have_their_old_names);
    RUN(test_rms_rotary_tied_and_grouped_have_their_old_names);
    RUN(test_stacked_layers_and_stages_have_their_old_names);
    return weft_test_report();
}
