/* gpt_layouts.h: the gpt layouts that tests run (apps/gpt_layouts_test.c); their plans are guarded
 * (guards/plans.c). */
#ifndef TEST_GPT_LAYOUTS_H
#define TEST_GPT_LAYOUTS_H

typedef struct gpt_layout {
    const char *mesh, *layout;
    int zero;
} gpt_layout;

#define TWO_D "batch:data,hidden:model,heads:model,vocab:model"
static const gpt_layout gpt_layouts[] = {
    {"data:2", "", 0},
    {"data:2", "batch:data", 0},
    {"data:2", "batch:data", 1},
    {"data:2", "batch:data", 2},
    {"data:2", "batch:data", 3},
    {"model:2", "hidden:model,heads:model,vocab:model", 0},
    {"model:2", "seq:model", 0},
    {"model:2", "embed:model", 0},
    {"model:2", "kv:model", 0},
    {"data:3", "batch:data", 0},
    {"data:3", "batch:data", 3},
    {"model:3", "hidden:model,heads:model,vocab:model", 0},
    {"model:3", "seq:model", 0},
    {"model:3", "embed:model", 0},
    {"data:2,model:2", "", 0},
    {"data:2,model:2", TWO_D, 0},
    {"data:2,model:2", TWO_D, 1},
    {"data:2,model:2", TWO_D, 3},
    {"data:2,model:2", "batch:data+model", 0},
    {"data:2,model:2", "batch:data+model", 3},
    {"data:2,model:2", "batch:data,seq:model", 0},
    {"data:2,model:2", "batch:data,embed:model", 3},
    {"model:4", "hidden:model,heads:model,vocab:model", 0}, /* one rank without a head */
    {"data:8", "batch:data", 0},                            /* one rank without a sample */
    {"data:8", "batch:data", 3},
    {"data:2,model:2,seq:2", TWO_D ",seq:seq", 0},
    {"data:2,model:2,seq:2", TWO_D ",seq:seq", 3},
};
#undef TWO_D
enum { GPT_LAYOUTS = sizeof gpt_layouts / sizeof gpt_layouts[0] };

#endif
