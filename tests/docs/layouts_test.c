/* layouts_test: the ways to be parallel in docs/layouts.md, each with what a step sends, as plans say it.
 *
 * A row that is not on the page is told as it would stand there.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/gpt_training.h"
#include "weft/layers.h"

typedef struct way {
    const char *name, *mesh, *layout;
    int batch, seq, zero, stages, micro, experts; /* seq 0: 32 */
    bool is_image;
} way;

static const way ways[] = {
    {"data", "data:4", "batch:data"},
    {"tensor", "model:4", "heads:model,hidden:model,vocab:model"},
    {"2D", "data:2,model:2", "batch:data,heads:model,hidden:model,vocab:model"},
    {"ZeRO 1", "data:4", "batch:data", .zero = 1},
    {"ZeRO 3", "data:4", "batch:data", .zero = 3},
    {"sequence", "rows:4", "seq:rows"},
    {"ring", "rows:8", "seq:rows", .batch = 2, .seq = 4096},
    {"expert", "data:4", "experts:data,batch:data", .experts = 8},
    {"pipeline", "pipe:4", "stage:pipe", .stages = 4, .micro = 4},
    {"spatial", "space:4", "row:space", .is_image = true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

/* ---- programs ---------------------------------------------------------------------------------------- */

static weft_value transformer_loss(weft_graph *graph, const way *w)
{
    gpt_model model;
    const gpt_shape shape = {.batch = w->batch > 0 ? w->batch : 16,
                             .seq = w->seq > 0 ? w->seq : 32,
                             .layers = 4,
                             .width = 64,
                             .heads = 4,
                             .hidden = 256,
                             .vocab = 256,
                             .stages = w->stages,
                             .micro = w->micro,
                             .mixture = {.experts = w->experts, .top_k = 1, .capacity = 1.25},
                             .dtype = WEFT_F32};
    return gpt_loss(&shape, graph, &model);
}

/* Two filters of 3 by 3 over an image, a number for each of its channels. */
static weft_value image_loss(weft_graph *graph)
{
    static const char *const names[] = {"first", "second"};
    const weft_dim batch = {"batch", 16}, row = {"row", 64}, column = {"column", 64};
    const weft_dim down = {"down", 3}, right = {"right", 3};
    weft_dim channel = {"channel", 8};
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, row, column, channel));
    for (int i = 0; i < 2; i++) {
        const weft_dim features = {i == 0 ? "features" : "channel", 8};
        const weft_spatial rows = weft_spatial_same(row, down, "row", 1, 1),
                           columns = weft_spatial_same(column, right, "column", 1, 1);
        x = weft_convolution(x, &(weft_convolution_options){.name = names[i],
                                                            .spatial = WEFT_SPATIAL(rows, columns),
                                                            .channel = channel,
                                                            .features = features,
                                                            .activation = "relu"});
        channel = features;
    }
    return weft_mean(weft_square(x));
}

/* ---- what a step sends --------------------------------------------------------------------------------- */

static weft_status compile(const way *w, weft_graph *graph, weft_mesh *mesh, weft_program **program,
                           weft_error *error)
{
    weft_layout *layout = NULL;
    const weft_value loss = w->is_image ? image_loss(graph) : transformer_loss(graph, w);
    const weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3});
    weft_status status = weft_layout_create(w->layout, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, w->zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, program, error);
    weft_layout_destroy(&layout);
    return status;
}

/* "6 all_reduce over data of 229.4 KiB, ..", of the plan's lines. */
static void read_traffic(FILE *plan, char *text, size_t bytes)
{
    char line[600], axes[100], collective[40];
    long long n, sent;
    size_t at = 0;
    text[0] = '\0';
    while (fgets(line, sizeof line, plan) && strncmp(line, "traffic of rank 0", 17) != 0)
        ;
    while (fgets(line, sizeof line, plan) && line[0] == ' ' && at < bytes) {
        const char *exactly = strchr(line, '(');
        if (exactly == NULL || sscanf(line, "%99s %39s %lld", axes, collective, &n) != 3 ||
            sscanf(exactly, "(%lld", &sent) != 1)
            continue;
        at += (size_t)snprintf(text + at, bytes - at, "%s%lld %s over %s, %lld B",
                               at > 0 ? "; " : "", n, collective, axes, sent);
    }
}

static weft_status row_of(const way *w, char *row, size_t bytes, weft_error *error)
{
    char traffic[600] = "", option[40] = "";
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(1);
    FILE *plan = tmpfile();
    weft_status status = weft_mesh_plan(w->mesh, &mesh, error);
    if (status == WEFT_OK) status = compile(w, graph, mesh, &program, error);
    if (status == WEFT_OK && CHECK(plan != NULL)) {
        status = weft_plan_print(program, plan, error);
        rewind(plan);
        read_traffic(plan, traffic, sizeof traffic);
    }
    if (w->zero > 0) snprintf(option, sizeof option, ", `--zero %d`", w->zero);
    if (w->seq > 0) snprintf(option, sizeof option, ", `--batch %d --seq %d`", w->batch, w->seq);
    snprintf(row, bytes, "| %s | `%s` | `%s`%s | %s |", w->name, w->mesh, w->layout, option,
             traffic);
    if (plan != NULL) fclose(plan);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    return status;
}

static void test_every_way_sends_what_the_page_says(void)
{
    static char page[1 << 17];
    FILE *file = fopen(WEFT_TEST_DATA "/../docs/layouts.md", "r");
    if (!CHECK(file != NULL)) return;
    const size_t n = fread(page, 1, sizeof page - 1, file);
    fclose(file);
    CHECK(n > 0 && n < sizeof page - 1);
    for (int i = 0; i < N_WAYS; i++) {
        char row[1000] = "";
        weft_error error = {0};
        if (CHECK_OK(row_of(&ways[i], row, sizeof row, &error), error))
            weft_test_check(strstr(page, row) != NULL, __FILE__, __LINE__, row);
    }
}

int main(void)
{
    RUN(test_every_way_sends_what_the_page_says);
    return weft_test_report();
}
