/* rounded_test: where values rounded to 16 bits are, and what they cost to send: in gpt's training under each of its
 * layouts, and for values with a plain right place. Nothing runs.
 */
#include "apps/gpt/model.h"
#include "gpt_layouts.h"
#include "weft.h"
#include "weft/research/plan.h"

#include "test.h"

enum { KINDS = 64 };

typedef struct sent {
    int64_t bytes, count;
} sent;

static sent sent_by(const weft_program *program)
{
    sent s = {0};
    for (int rank = 0; rank < weft_mesh_n_ranks(weft_program_mesh(program)); rank++) {
        weft_traffic traffic[KINDS];
        const int n = weft_plan_traffic(program, rank, traffic, KINDS);
        CHECK(n <= KINDS);
        for (int i = 0; i < n && i < KINDS; i++)
            s.bytes += traffic[i].bytes, s.count += traffic[i].count;
    }
    return s;
}

/* The plan of a graph for ranks that there are not. */
static weft_program *plan(const char *mesh_text, const char *rules, int zero, weft_values outputs)
{
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    CHECK_OK(weft_mesh_plan(mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_layout_store(layout, zero, "batch", &error), error);
    CHECK_OK(weft_compile(mesh, layout, outputs, NULL, &program, &error), error);
    weft_layout_destroy(&layout);
    return program;
}

static void close_plan(weft_program **program, weft_graph **graph)
{
    weft_mesh *mesh = (weft_mesh *)weft_program_mesh(*program);
    weft_program_destroy(program);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(graph);
}

/* ---- gpt ------------------------------------------------------------------------------------- */

static sent sent_by_gpt(const gpt_shape *shape, weft_dtype computes, const gpt_layout *at)
{
    weft_graph *graph = weft_graph_create(1234);
    gpt_shape its = *shape;
    gpt_model model;
    its.computes = computes;
    weft_value loss = gpt_loss(&its, graph, &model);
    weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5});
    weft_program *program = plan(at->mesh, at->layout, at->zero, WEFT_VALUES(loss, update));
    const sent s = sent_by(program);
    close_plan(&program, &graph);
    return s;
}

static void test_no_layout_of_gpt_sends_more_in_16_bits(void)
{
    static const gpt_shape shapes[] = {
        {7, 12, 2, 24, 3, 40, 29, .dropout = 0.1, .dtype = WEFT_F32},
        {16, 64, 4, 128, 4, 512, 256, .dropout = 0.1, .dtype = WEFT_F32},
        {32, 128, 2, 512, 8, 2048, 256, .dtype = WEFT_F32},
    };
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < GPT_LAYOUTS; i++) {
            const gpt_layout *at = &gpt_layouts[i];
            const sent whole = sent_by_gpt(&shapes[s], WEFT_F32, at);
            const sent half = sent_by_gpt(&shapes[s], WEFT_BF16, at);
            if (!CHECK(half.bytes <= whole.bytes))
                printf("  %s, %s, ZeRO %d, size %d: f32 %lld bytes, bf16 %lld\n", at->mesh,
                       at->layout, at->zero, s, (long long)whole.bytes, (long long)half.bytes);
        }
}

/* Of ZeRO 3 almost all that is sent is weights, once as they are rounded where f32 sends them twice. */
static void test_weights_are_sent_as_they_are_rounded(void)
{
    const gpt_shape shape = {32, 128, 2, 512, 8, 2048, 256, .dtype = WEFT_F32};
    const gpt_layout at = {"data:4", "batch:data", 3};
    CHECK(sent_by_gpt(&shape, WEFT_BF16, &at).bytes <
          0.55 * sent_by_gpt(&shape, WEFT_F32, &at).bytes);
}

/* ---- single values --------------------------------------------------------------------------- */

static const weft_dim batch = {"batch", 48}, row = {"row", 32}, wide = {"wide", 48},
                      wider = {"wider", 960};

/* How many axes split `value` where it was made. */
static int axes_of(const weft_program *program, weft_value value)
{
    weft_error error = {0};
    weft_planned_tensor tensor = {0};
    const uint32_t id = weft_plan_tensor_of(program, value);
    int n_axes = 0;
    if (!CHECK(id != 0)) return -1;
    CHECK_OK(weft_plan_tensor_at(program, id, 0, &tensor, &error), error);
    for (int d = 0; d < tensor.shape->n_dims; d++)
        n_axes += tensor.spec.n_split[d];
    return n_axes;
}

/* Whole where its operand is whole, though its names would have it split: whoever needs it whole finds it so. */
static void test_what_is_rounded_lies_where_it_was(void)
{
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, row));
    weft_value w =
        weft_variable(graph, "w", WEFT_BF16, WEFT_DIMS(batch, wide), weft_constant_of(1));
    weft_value narrow = weft_cast(weft_place(x, ""), WEFT_BF16);
    weft_value y = weft_einsum(WEFT_DIMS(row, wide), narrow, weft_place(w, ""));
    weft_program *program = plan("model:2", "row:model", 0, WEFT_VALUES(y, narrow));
    CHECK_EQ_INT(axes_of(program, narrow), 0);
    close_plan(&program, &graph);
}

/* What becomes wider is brought to where it is needed while it is narrow. */
static void test_what_is_widened_was_sent_before(void)
{
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_BF16, WEFT_DIMS(batch, row));
    weft_value w = weft_input(graph, "w", WEFT_F32, WEFT_DIMS(batch, wider));
    weft_value y = weft_einsum(WEFT_DIMS(row, wider), weft_cast(x, WEFT_F32), w);
    weft_program *program = plan("model:2", "row:model", 0, WEFT_VALUES(weft_place(y, "")));
    CHECK_EQ_INT(sent_by(program).bytes, 2 * 48 * 32 * 2);
    close_plan(&program, &graph);
}

/* An axis more makes an all_reduce dearer by less than one over that axis alone would be, and gathering the operands costs
 * something between the two. */
static void test_an_axis_costs_what_it_adds_to_an_all_reduce(void)
{
    weft_graph *graph = weft_graph_create(1);
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, row));
    weft_value y = weft_input(graph, "y", WEFT_F32, WEFT_DIMS(batch, wide));
    weft_value z = weft_einsum(WEFT_DIMS(row, wide), x, y);
    weft_program *program = plan("data:2,model:2", "batch:data+model", 0, WEFT_VALUES(z));
    weft_traffic traffic[KINDS];
    if (CHECK_EQ_INT(weft_plan_traffic(program, 0, traffic, KINDS), 1)) {
        CHECK_EQ_INT(traffic[0].kind, WEFT_ALL_REDUCE);
        CHECK_EQ_INT(traffic[0].axes, 1 | 2);
        CHECK_EQ_INT(traffic[0].count, 1);
    }
    close_plan(&program, &graph);
}

int main(void)
{
    RUN(test_no_layout_of_gpt_sends_more_in_16_bits);
    RUN(test_weights_are_sent_as_they_are_rounded);
    RUN(test_what_is_rounded_lies_where_it_was);
    RUN(test_what_is_widened_was_sent_before);
    RUN(test_an_axis_costs_what_it_adds_to_an_all_reduce);
    return weft_test_report();
}
