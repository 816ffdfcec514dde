/* plans: what gpt's plans move and hold: one line of JSON for every layout of gpt_layouts.h at two sizes, in f32 and in bf16.
 * Nothing runs.
 *
 * Only weft.h is used, so that it compiles against the library of another commit, and their tables can be compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

#include "apps/gpt/model.h"
#include "gpt_layouts.h"

enum { TRAFFIC = 256 };

/* Where hardly anything divides, and where everything does. */
static const struct {
    const char *name;
    gpt_shape shape;
} sizes[] = {
    {"odd", {7, 12, 2, 24, 3, 40, 29, .dropout = 0.1, .dtype = WEFT_F32}},
    {"even", {16, 64, 4, 128, 4, 512, 256, .dropout = 0.1, .dtype = WEFT_F32}},
    {"odd, bf16", {7, 12, 2, 24, 3, 40, 29, 0.1, .dtype = WEFT_F32, .computes = WEFT_BF16}},
    {"even, bf16", {16, 64, 4, 128, 4, 512, 256, 0.1, .dtype = WEFT_F32, .computes = WEFT_BF16}},
};

/* Of all ranks: bytes moved and collectives; of the fullest: the arena. */
static weft_status print_plan(const weft_program *program, const char *size, const gpt_layout *c,
                              weft_error *error)
{
    long long bytes = 0, count = 0, arena = 0;
    int n_steps = 0;
    for (int rank = 0; rank < weft_mesh_n_ranks(weft_program_mesh(program)); rank++) {
        weft_traffic traffic[TRAFFIC];
        weft_usage usage = {0};
        const int n = weft_plan_traffic(program, rank, traffic, TRAFFIC);
        for (int i = 0; i < n && i < TRAFFIC; i++) {
            bytes += traffic[i].bytes;
            count += traffic[i].count;
        }
        WEFT_TRY(weft_plan_usage(program, rank, &usage, error));
        if (usage.arena_bytes > arena) arena = usage.arena_bytes;
        if (rank == 0) n_steps = usage.n_steps;
    }
    printf("{\"plan\": \"%s | %s | %s | %d\", \"bytes\": %lld, \"collectives\": %lld, \"arena\": "
           "%lld, "
           "\"steps\": %d, \"digest\": \"%016llx\"}\n",
           size, c->mesh, c->layout, c->zero, bytes, count, arena, n_steps,
           (unsigned long long)weft_program_digest(program));
    return WEFT_OK;
}

static weft_status plan(int size, const gpt_layout *c, weft_error *error)
{
    weft_graph *graph = weft_graph_create(1234);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model model;
    weft_value norm, loss = gpt_loss(&sizes[size].shape, graph, &model);
    weft_value update = weft_adamw(
        loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5, .gradient_norm = &norm});
    weft_status status = weft_mesh_plan(c->mesh, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create(c->layout, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, c->zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, norm, update), NULL, &program, error);
    if (status == WEFT_OK) status = print_plan(program, sizes[size].name, c, error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return status;
}

int main(void)
{
    for (int size = 0; size < (int)(sizeof sizes / sizeof *sizes); size++)
        for (int i = 0; i < GPT_LAYOUTS; i++) {
            weft_error error = {0};
            if (plan(size, &gpt_layouts[i], &error) == WEFT_OK) continue;
            fprintf(stderr, "plans: %s \"%s\" --zero %d: %s\n", gpt_layouts[i].mesh,
                    gpt_layouts[i].layout, gpt_layouts[i].zero, error.message);
            return EXIT_FAILURE;
        }
    return EXIT_SUCCESS;
}
