/* values: which of the user's values a program keeps, by name and by number, and which part of one a rank has. */
#include "program.h"

uint32_t weft_home_of(const weft_program *program, weft_value value)
{
    if (!program) return 0;
    const weft_plan *plan = program->plan;
    if (value.graph != program->user || value.id == 0 || value.id >= plan->n_user_values) return 0;
    return plan->kept[plan->user_value[value.id]];
}

static bool keeps(const void *program, weft_value value)
{
    return weft_home_of(program, value) != 0;
}

static bool keeps_input(const void *program, weft_value value)
{
    return keeps(program, value) && weft_node_of(value.graph, value.id)->op == &weft_op_input;
}

static weft_value find(const weft_program *program, const char *name,
                       bool (*has)(const void *, weft_value), weft_error *error)
{
    const weft_search search = {.call = "weft_find",
                                .who = "this program",
                                .verb = "keeps",
                                .if_left_out =
                                    "the graph has one: name it in weft_compile's values",
                                .graph = (weft_graph *)(uintptr_t)program->user,
                                .has = has,
                                .context = program};
    return weft_search_name(&search, name, error);
}

weft_value weft_find(const weft_program *program, const char *name, weft_error *error)
{
    if (weft_check_given(program != NULL, __func__, "program", error) != WEFT_OK ||
        weft_check_given(name != NULL, __func__, "name", error) != WEFT_OK)
        return weft_no_value(NULL);
    return find(program, name, keeps, error);
}

weft_value weft_find_input(const weft_program *program, const char *name)
{
    if (program == NULL || name == NULL) return weft_no_value(NULL);
    return find(program, name, keeps_input, NULL);
}

weft_value weft_variable_at(const weft_program *program, int index)
{
    if (!program || index < 0) return (weft_value){NULL, 0};
    const bool is_there = (uint32_t)index < program->n_variables;
    return (weft_value){(weft_graph *)(uintptr_t)program->user,
                        is_there ? program->variables[index] : 0};
}

const char *weft_name_of(weft_value value)
{
    return weft_is_value(value) ? value.graph->tensors[value.id].name : NULL;
}

void weft_box_of(const weft_program *program, weft_value value, int rank, weft_box *box)
{
    if (!box) return;
    *box = (weft_box){0};
    uint32_t home = weft_home_of(program, value);
    if (!home || rank < 0 || rank >= weft_mesh_n_ranks(program->mesh)) return;
    const weft_placed *placed = &program->plan->placed[home];
    weft_spec_box(&placed->spec, program->mesh, &placed->type.shape, rank, box);
}

bool weft_is_slot(weft_value variable)
{
    if (!weft_is_value(variable)) return false;
    const weft_node *node = weft_node_of(variable.graph, variable.id);
    return node->op == &weft_op_variable &&
           ((const weft_variable_attributes *)node->attributes)->owner != 0;
}
