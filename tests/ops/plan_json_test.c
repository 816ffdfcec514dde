/* plan_json_test: a plan as JSON has all that the plan has as data, or is refused. */
#include "plan_case.h"

#include <jansson.h>
#include <stdlib.h>

/* A queue's steps and bytes are those of the steps on it; JSON says of every step what the struct does. */
static void check_queues(const planned *p, const json_t *root)
{
    const json_t *steps = json_object_get(root, "step_list"),
                 *queues = json_object_get(root, "queues");
    const int n_queues = weft_plan_n_queues(p->program);
    CHECK(n_queues > 1);
    CHECK_EQ_INT(json_array_size(queues), n_queues);
    for (int q = 0; q < n_queues; q++) {
        weft_planned_queue queue;
        weft_error error = {0};
        int n = 0;
        int64_t bytes = 0;
        const json_t *name = json_object_get(json_array_get(queues, (size_t)q), "name");
        CHECK_OK(weft_plan_queue_at(p->program, q, 0, &queue, &error), error);
        for (int s = 0; s < weft_plan_n_steps(p->program); s++) {
            const json_t *its = json_array_get(steps, (size_t)s);
            weft_planned_step step;
            CHECK_OK(weft_plan_step_at(p->program, s, 0, &step, &error), error);
            if (step.queue != q) continue;
            CHECK(json_equal(json_object_get(its, "queue"), name));
            CHECK_EQ_INT(json_array_size(json_object_get(its, "waits")), step.n_waits);
            n++;
            bytes += step.wire_bytes;
        }
        CHECK(n > 0 && n == queue.n_steps);
        CHECK(bytes == queue.wire_bytes && queue.beside_bytes <= bytes && queue.n_beside <= n);
    }
}

static void test_json_has_all_of_it(void)
{
    planned p;
    weft_error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    if (!open_plan(&p, "data:2,model:2", "batch:data,hidden:model,digit:model", 1, true)) return;
    FILE *file = open_memstream(&text, &bytes);
    CHECK_OK(weft_plan_json(p.program, file, &error), error);
    fclose(file);
    json_t *root = json_loads(text, 0, NULL), *steps = json_object_get(root, "step_list");
    double wire = 0, listed = 0;
    CHECK_EQ_INT(json_array_size(steps), weft_plan_n_steps(p.program));
    CHECK_EQ_INT(json_integer_value(json_object_get(root, "steps")), weft_plan_n_steps(p.program));
    CHECK_EQ_INT(json_array_size(json_object_get(root, "versions")),
                 weft_plan_n_tensors(p.program));
    CHECK_EQ_INT(json_array_size(json_object_get(root, "decisions")),
                 weft_plan_n_decisions(p.program));
    CHECK_EQ_INT(json_array_size(json_object_get(root, "skipped")), weft_plan_n_skipped(p.program));
    for (size_t s = 0; s < json_array_size(steps); s++)
        wire += (double)json_integer_value(json_object_get(json_array_get(steps, s), "bytes"));
    json_t *moves = json_object_get(root, "collectives");
    for (size_t i = 0; i < json_array_size(moves); i++)
        listed += (double)json_integer_value(json_object_get(json_array_get(moves, i), "bytes"));
    CHECK(wire > 0 && wire == listed);
    check_queues(&p, root);
    json_t *way = json_array_get(
        json_object_get(json_array_get(json_object_get(root, "decisions"), 0), "ways"), 0);
    CHECK(json_is_real(json_object_get(way, "total")) &&
          json_is_string(json_object_get(way, "kind")));
    json_decref(root);
    free(text);
    close_plan(&p);
}

/* JSON is UTF-8, and the name of a source file need not be: the plan is refused, not left without its entries. */
static void test_json_lacks_no_entry_silently(void)
{
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_graph *g = weft_graph_create(1);
    const weft_dim row = {"row", 3};
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row));
    weft_value y = weft_at("neg", "\xff.c", 1, (weft_neg)(x));
    FILE *file = fopen("/dev/null", "w");
    CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
    CHECK_OK(weft_compile(mesh, NULL, WEFT_VALUES(y), NULL, &program, &error), error);
    CHECK_EQ_INT(weft_plan_json(program, file, &error), WEFT_MEMORY);
    CHECK_TEXT(error.message, "the name of a source file in it is not UTF-8");
    fclose(file);
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_mesh_destroy(&mesh);
}

int main(void)
{
    RUN(test_json_has_all_of_it);
    RUN(test_json_lacks_no_entry_silently);
    return weft_test_report();
}
