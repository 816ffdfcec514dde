/* single_axis_test: an axis of one rank splits nothing. So a mesh that has one more, and rules on it, has the same steps, bytes
 * and arena, and the same numbers to the bit: of gpt's training under each of its layouts.
 */
#include "apps/gpt/model.h"
#include "gpt_layouts.h"
#include "weft.h"
#include "weft/research/plan.h"

#include <stdlib.h>

#include "test.h"

enum { BATCH = 7, SEQ = 12, VOCAB = 29, RUNS = 2, KINDS = 64 };

/* Where the axis stands in the mesh, and what the layout says of it, before its own rules and behind the last. */
static const struct {
    const char *mesh_before, *mesh_behind, *before, *behind;
} additions[] = {
    {"", ",one:1", "", ""},
    {"", ",one:1", "batch:one", ""},
    {"one:1,", "", "hidden:one,heads:one,vocab:one", ""},
    {"one:1,", "", "", "+one"},
    {"", ",one:1", "embed:one", ""},
    {"one:1,", ",two:1", "batch:two,seq:one", "+two+one"},
};
enum { ADDITIONS = sizeof additions / sizeof *additions };

typedef struct found {
    int64_t bytes, count, arena, homes;
    int n_steps;
    double loss[RUNS], norm[RUNS];
} found;

static weft_status count_plan(const weft_program *program, found *f, weft_error *error)
{
    for (int rank = 0; rank < weft_mesh_n_ranks(weft_program_mesh(program)); rank++) {
        weft_traffic traffic[KINDS];
        weft_usage usage = {0};
        const int n = weft_plan_traffic(program, rank, traffic, KINDS);
        for (int i = 0; i < n && i < KINDS; i++)
            f->bytes += traffic[i].bytes, f->count += traffic[i].count;
        WEFT_TRY(weft_plan_usage(program, rank, &usage, error));
        f->arena += usage.arena_bytes;
        f->homes += usage.variable_bytes + usage.slot_bytes;
        f->n_steps = usage.n_steps;
    }
    return WEFT_OK;
}

static weft_status train(weft_program *program, const gpt_model *model, weft_value loss,
                         weft_value norm, found *f, weft_error *error)
{
    int32_t data[BATCH * SEQ];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < BATCH * SEQ; i++)
            data[i] = (i * 7 + k) % VOCAB;
        WEFT_TRY(weft_write(program, k ? model->targets : model->tokens, WEFT_I32, data,
                            sizeof data, error));
    }
    for (int run = 0; run < RUNS; run++) {
        WEFT_TRY(weft_run(program, error));
        WEFT_TRY(weft_read_scalar(program, loss, &f->loss[run], error));
        WEFT_TRY(weft_read_scalar(program, norm, &f->norm[run], error));
    }
    return WEFT_OK;
}

static weft_status find(const char *mesh_text, const char *layout_text, int zero, found *f,
                        weft_error *error)
{
    const gpt_shape shape = {BATCH, SEQ, 2, 24, 3, 40, VOCAB, .dropout = 0.1, .dtype = WEFT_F32};
    const weft_world world = {.n_processes = 1};
    weft_graph *graph = weft_graph_create(1234);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model model;
    weft_value norm, loss = gpt_loss(&shape, graph, &model);
    const weft_value update = weft_adamw(
        loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5, .gradient_norm = &norm});
    *f = (found){0};
    weft_status status = weft_mesh_create(&world, mesh_text, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create(layout_text, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, norm, update), NULL, &program, error);
    if (status == WEFT_OK) status = count_plan(program, f, error);
    if (status == WEFT_OK) status = train(program, &model, loss, norm, f, error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return status;
}

static void check_added(const gpt_layout *c, const found *own, int a)
{
    char mesh[120], layout[300], text[500];
    weft_error error = {0};
    found f;
    const char *between = *additions[a].before && *c->layout ? "," : "";
    snprintf(mesh, sizeof mesh, "%s%s%s", additions[a].mesh_before, c->mesh,
             additions[a].mesh_behind);
    snprintf(layout, sizeof layout, "%s%s%s%s", additions[a].before, between, c->layout,
             *c->layout ? additions[a].behind : "");
    const bool is_same =
        find(mesh, layout, c->zero, &f, &error) == WEFT_OK && memcmp(&f, own, sizeof f) == 0;
    snprintf(text, sizeof text,
             "%s \"%s\" ZeRO %d: %lld bytes, %lld exchanges, %d steps, arena %lld, homes %lld; "
             "without: %lld, %lld, %d, %lld, %lld; losses %.9g, %.9g %s",
             mesh, layout, c->zero, (long long)f.bytes, (long long)f.count, f.n_steps,
             (long long)f.arena, (long long)f.homes, (long long)own->bytes, (long long)own->count,
             own->n_steps, (long long)own->arena, (long long)own->homes, f.loss[1], own->loss[1],
             error.message);
    weft_test_check(is_same, __FILE__, __LINE__, text);
}

static void test_an_axis_of_one_rank_changes_nothing(void)
{
    const int every = weft_test_stride(2);
    for (int i = 0; i < GPT_LAYOUTS; i += weft_test_stride(3)) { /* apps/gpt_layouts has all */
        found own;
        weft_error error = {0};
        CHECK_OK(
            find(gpt_layouts[i].mesh, gpt_layouts[i].layout, gpt_layouts[i].zero, &own, &error),
            error);
        CHECK(own.bytes > 0 || *gpt_layouts[i].layout == '\0');
        for (int a = i % every; a < ADDITIONS; a += every)
            check_added(&gpt_layouts[i], &own, a);
    }
}

int main(void)
{
    RUN(test_an_axis_of_one_rank_changes_nothing);
    return weft_test_report();
}
