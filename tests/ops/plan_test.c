/* plan_test: the plan as data agrees with itself and with what is summed up of it, for every rank; on meshes without ranks.
 */
#include "plan_case.h"

#include <stdlib.h>

static const struct {
    const char *mesh, *layout;
    int stage;
} cases[] = {
    {"data:1", "", 0},
    {"data:3", "batch:data", 1},
    {"data:2,model:3", "batch:data,hidden:model", 3},
    {"data:2,model:2", "pixel:data,hidden:model,digit:data", 0},
    {"a:2,b:2,c:2", "batch:a+b,pixel:c,hidden:b", 2},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

/* Every case, every rank. */
static void each_rank(void (*check)(const planned *p, int rank))
{
    for (int c = 0; c < N_CASES; c++) {
        planned p;
        if (open_plan(&p, cases[c].mesh, cases[c].layout, cases[c].stage, false))
            for (int rank = 0; rank < weft_mesh_n_ranks(p.mesh); rank++)
                check(&p, rank);
        close_plan(&p);
    }
}

static weft_planned_step step_at(const planned *p, int s, int rank)
{
    weft_planned_step step = {0};
    weft_error error = {0};
    CHECK_OK(weft_plan_step_at(p->program, s, rank, &step, &error), error);
    return step;
}

static weft_planned_tensor tensor_at(const planned *p, uint32_t id, int rank)
{
    weft_planned_tensor tensor = {0};
    weft_error error = {0};
    CHECK_OK(weft_plan_tensor_at(p->program, id, rank, &tensor, &error), error);
    return tensor;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void check_sums(const planned *p, int rank)
{
    enum { room = 32 };
    weft_traffic traffic[room];
    weft_usage usage = {0};
    weft_error error = {0};
    double flops = 0;
    CHECK_OK(weft_plan_usage(p->program, rank, &usage, &error), error);
    const int n = weft_plan_traffic(p->program, rank, traffic, room);
    CHECK(n <= room && weft_plan_traffic(p->program, rank, NULL, 0) == n);
    CHECK_EQ_INT(weft_plan_n_steps(p->program), usage.n_steps);
    for (int s = 0; s < weft_plan_n_steps(p->program); s++) {
        const weft_planned_step step = step_at(p, s, rank);
        flops += step.flops;
        int found = 0;
        for (int i = 0; i < n && step.kind == WEFT_STEP_CONVERT && step.axes; i++) {
            if (traffic[i].axes != step.axes || traffic[i].kind != step.collective) continue;
            traffic[i].count--;
            traffic[i].bytes -= step.wire_bytes;
            found++;
        }
        CHECK_EQ_INT(found, step.kind == WEFT_STEP_CONVERT && step.axes != 0);
    }
    CHECK_CLOSE(flops, usage.flops, 1e-12);
    for (int i = 0; i < n; i++)
        CHECK(traffic[i].count == 0 && traffic[i].bytes == 0);
}

static void test_steps_add_up_to_the_usage(void)
{
    each_rank(check_sums);
}

/* The reasons that the kinds of steps have. */
static void check_reason(const weft_planned_step *step)
{
    static const unsigned allowed[WEFT_STEPS] = {
        [WEFT_STEP_KERNEL] = 1u << WEFT_BECAUSE_OP,
        [WEFT_STEP_LOOP] = 1u << WEFT_BECAUSE_OP,
        [WEFT_STEP_CONVERT] = 1u << WEFT_BECAUSE_PARTIAL | 1u << WEFT_BECAUSE_OPERAND |
                              1u << WEFT_BECAUSE_OUTPUT | 1u << WEFT_BECAUSE_STORE,
        [WEFT_STEP_COPY] =
            1u << WEFT_BECAUSE_STORE | 1u << WEFT_BECAUSE_OLD | 1u << WEFT_BECAUSE_OP,
        [WEFT_STEP_BEGIN] = 1u << WEFT_BECAUSE_OP,
        [WEFT_STEP_GUARD] = 1u << WEFT_BECAUSE_OP,
        [WEFT_STEP_END] = 1u << WEFT_BECAUSE_OP,
    };
    CHECK(allowed[step->kind] >> step->why & 1);
    CHECK(step->reason && step->reason[0]);
    if (step->why == WEFT_BECAUSE_PARTIAL) CHECK_TEXT(step->reason, "is contracted and split over");
    if (step->why == WEFT_BECAUSE_OPERAND) CHECK_TEXT(step->reason, " needs it as [");
}

static void check_order(const planned *p, int rank)
{
    const int n = weft_plan_n_tensors(p->program);
    bool *is_made = calloc((size_t)n + 1, sizeof *is_made);
    for (int s = 0; s < weft_plan_n_steps(p->program); s++) {
        const weft_planned_step step = step_at(p, s, rank);
        int64_t in_bytes = 0, out_bytes = 0;
        int n_written = 0, n_slots = step.n_links ? step.n_in / step.n_segments : 0;
        check_reason(&step);
        CHECK(step.op && step.builder && strcmp(step.file, "plan_case.h") == 0 && step.line > 0);
        if (strcmp(step.op, "lse_state") == 0) CHECK_TEXT(step.builder, "cross_entropy");
        for (int i = 0; i < step.n_in; i++) {
            const weft_planned_tensor t = tensor_at(p, step.in[i], rank);
            CHECK(t.kind != WEFT_TENSOR_TEMPORARY || is_made[t.id] || t.shares);
            CHECK(t.first_step < s && t.last_step >= s);
            in_bytes += t.bytes;
        }
        for (int o = 0; o < step.n_out; o++) {
            const weft_planned_tensor t = tensor_at(p, step.out[o], rank);
            CHECK(t.kind != WEFT_TENSOR_TEMPORARY || t.first_step == s);
            is_made[t.id] = true;
            out_bytes += t.bytes;
        }
        CHECK_EQ_INT(in_bytes, step.in_bytes);
        CHECK_EQ_INT(out_bytes, step.out_bytes);
        for (int k = 0; k < step.n_links; k++) {
            weft_planned_link link = {0};
            weft_error error = {0};
            CHECK_OK(weft_plan_link_at(p->program, s, k, &link, &error), error);
            CHECK(link.op && link.builder && link.file && link.line > 0);
            for (int i = 0; i < link.n_in; i++)
                CHECK(link.in[i] >= 0 && link.in[i] < n_slots);
            n_slots += link.n_out;
            for (int o = 0; o < link.n_out; o++) {
                CHECK(link.out[o] >= -1 && link.out[o] < step.n_out / step.n_segments);
                n_written += link.out[o] >= 0;
            }
        }
        CHECK_EQ_INT(n_written, step.n_links > 0 ? step.n_out / step.n_segments
                                                 : 0); /* each result by one link */
        CHECK_EQ_INT(step.n_links > 0, step.kind == WEFT_STEP_LOOP);
    }
    free(is_made);
}

static void test_steps_read_what_was_made(void)
{
    each_rank(check_order);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void check_box(const weft_planned_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->shape->n_dims; d++) {
        CHECK(t->box.begin[d] >= 0 && t->box.begin[d] <= t->box.end[d]);
        CHECK(t->box.end[d] <= t->shape->dims[d].size);
        count *= t->box.end[d] - t->box.begin[d];
    }
    CHECK_EQ_INT(t->bytes, count * (int64_t)weft_dtype_bytes(t->dtype));
}

static void check_tensors(const planned *p, int rank)
{
    weft_usage usage = {0};
    weft_error error = {0};
    int64_t bytes[WEFT_TENSOR_KINDS] = {0};
    CHECK_OK(weft_plan_usage(p->program, rank, &usage, &error), error);
    for (int id = 1; id <= weft_plan_n_tensors(p->program); id++) {
        const weft_planned_tensor t = tensor_at(p, (uint32_t)id, rank);
        CHECK_EQ_INT(t.id, id);
        check_box(&t);
        bytes[t.kind] += t.bytes;
        if (t.next) {
            const weft_planned_tensor next = tensor_at(p, t.next, rank);
            CHECK(next.id > t.id && next.value == t.value);
        }
        if (t.kind == WEFT_TENSOR_PARAMETER || t.kind == WEFT_TENSOR_SLOT)
            CHECK(weft_spec_equal(&t.spec, &t.storage, t.shape->n_dims));
        else
            CHECK(!t.wanted.partial);
        if (t.kind != WEFT_TENSOR_TEMPORARY) CHECK(t.first_step == -1 && t.name != NULL);
    }
    CHECK_EQ_INT(bytes[WEFT_TENSOR_INPUT], usage.input_bytes);
    CHECK_EQ_INT(bytes[WEFT_TENSOR_PARAMETER], usage.variable_bytes);
    CHECK_EQ_INT(bytes[WEFT_TENSOR_SLOT], usage.slot_bytes);
}

static void test_tensors_add_up_to_the_usage(void)
{
    each_rank(check_tensors);
}

/* Two that are alive over a common step boundary lie apart, unless one is in the other's memory. */
static void check_apart(const planned *p, int rank)
{
    const int n = weft_plan_n_tensors(p->program);
    int64_t *offsets = calloc((size_t)n + 1, sizeof *offsets);
    weft_planned_tensor *tensors = calloc((size_t)n + 1, sizeof *tensors);
    weft_usage usage = {0};
    weft_error error = {0};
    int n_pairs = 0;
    CHECK_OK(weft_plan_usage(p->program, rank, &usage, &error), error);
    CHECK_OK(weft_plan_offsets(p->program, rank, offsets, n + 1, &error), error);
    for (int id = 1; id <= n; id++)
        tensors[id] = tensor_at(p, (uint32_t)id, rank);
    for (int i = 1; i <= n; i++) {
        const weft_planned_tensor *a = &tensors[i];
        if (offsets[i] < 0 || a->shares || a->first_step < 0) continue;
        CHECK(offsets[i] + a->bytes <= usage.arena_bytes);
        for (int j = 1; j < i; j++) {
            const weft_planned_tensor *b = &tensors[j];
            if (offsets[j] < 0 || b->shares || b->first_step < 0) continue;
            if (a->first_step >= b->last_step || b->first_step >= a->last_step) continue;
            CHECK(offsets[i] + a->bytes <= offsets[j] || offsets[j] + b->bytes <= offsets[i]);
            n_pairs++;
        }
    }
    CHECK(n_pairs > 0);
    free(offsets);
    free(tensors);
}

static void test_tensors_alive_together_lie_apart(void)
{
    each_rank(check_apart);
}

/* ZeRO-3 keeps a parameter sharded, gathers it for the forward pass and again for the backward pass: all are versions
 * of one value, which is the user's. */
static void test_versions_of_a_parameter(void)
{
    planned p;
    char spec[100], storage[100];
    int n_versions = 0;
    if (!open_plan(&p, "data:2", "batch:data", 3, false)) return;
    const uint32_t first = weft_plan_tensor_of(p.program, p.w1);
    for (uint32_t id = first; id; n_versions++) {
        const weft_planned_tensor t = tensor_at(&p, id, 1);
        CHECK(t.user.id == p.w1.id && t.user.graph == p.graph);
        CHECK(strcmp(t.name, "w1") == 0 && strcmp(t.op, "variable") == 0);
        weft_spec_print(&t.wanted, p.mesh, t.shape, spec, sizeof spec);
        weft_spec_print(&t.storage, p.mesh, t.shape, storage, sizeof storage);
        CHECK_TEXT(spec, "[pixel:29, hidden:31]");
        CHECK_TEXT(storage, "[pixel:29, hidden:31/data]");
        CHECK_EQ_INT(t.kind, id == first ? WEFT_TENSOR_PARAMETER : WEFT_TENSOR_TEMPORARY);
        id = t.next;
    }
    CHECK(n_versions >= 2);
    CHECK_EQ_INT(weft_plan_tensor_of(p.program, p.update), 0); /* a token is no tensor */
    close_plan(&p);
}

static void test_a_contracted_dim_says_why(void)
{
    planned p;
    int n_found = 0;
    if (!open_plan(&p, "data:2,model:2", "batch:data,hidden:model", 0, false)) return;
    for (int s = 0; s < weft_plan_n_steps(p.program); s++) {
        const weft_planned_step step = step_at(&p, s, 0);
        if (step.phase != WEFT_FORWARD || step.collective != WEFT_ALL_REDUCE ||
            strcmp(step.op, "einsum") != 0)
            continue;
        const weft_planned_tensor in = tensor_at(&p, step.in[0], 0),
                                  out = tensor_at(&p, step.out[0], 0);
        CHECK_TEXT(step.reason, "hidden is contracted and split over model");
        CHECK_EQ_INT(step.why, WEFT_BECAUSE_PARTIAL);
        CHECK_EQ_INT(step.axes, 2);
        CHECK(in.value == out.value && in.spec.partial == 2 && out.spec.partial == 0);
        n_found++;
    }
    CHECK_EQ_INT(n_found, 1);
    close_plan(&p);
}

/* ---- rules and decisions --------------------------------------------------------------------- */

/* Three sums are partial for two reasons. */
static void test_a_reason_is_said_once(void)
{
    const weft_dim row = {"row", 8}, rows = {"rows", 6};
    planned p = {.graph = weft_graph_create(1)};
    weft_error error = {0};
    weft_value a = weft_input(p.graph, "a", WEFT_F32, WEFT_DIMS(row));
    weft_value b = weft_input(p.graph, "b", WEFT_F32, WEFT_DIMS(rows));
    weft_value of_row = weft_einsum(WEFT_SCALAR, a, a), of_rows = weft_einsum(WEFT_SCALAR, b, b);
    weft_value again = weft_einsum(WEFT_SCALAR, a, weft_exp(a));
    p.loss = weft_add(weft_add(of_rows, of_row), again);
    CHECK_OK(weft_mesh_plan("data:2", &p.mesh, &error), error);
    CHECK_OK(weft_layout_create("row:data,rows:data", &p.layout, &error), error);
    CHECK_OK(weft_compile(p.mesh, p.layout, WEFT_VALUES(p.loss), NULL, &p.program, &error), error);
    int n_found = 0;
    for (int s = 0; s < weft_plan_n_steps(p.program); s++) {
        const weft_planned_step step = step_at(&p, s, 0);
        if (step.collective != WEFT_ALL_REDUCE || !step.axes) continue;
        CHECK_TEXT(step.reason, "rows is contracted and split over data");
        CHECK_EQ_INT(strlen(step.reason), strlen("rows is contracted and split over data, row is "
                                                 "contracted and split over data"));
        n_found++;
    }
    CHECK_EQ_INT(n_found, 1);
    close_plan(&p);
}

static void test_skipped_rules_are_data(void)
{
    planned p;
    weft_planned_skip skip = {0};
    weft_error error = {0};
    int n_w1 = 0;
    if (!open_plan(&p, "data:2,model:2", "pixel:data,hidden:data+model,digit:model", 0, false))
        return;
    for (int i = 0; i < weft_plan_n_skipped(p.program); i++) {
        CHECK_OK(weft_plan_skipped_at(p.program, i, &skip, &error), error);
        CHECK(skip.value > 0 && skip.shape->n_dims > 1);
        if (strcmp(skip.name, "w1") != 0) continue;
        CHECK(strcmp(skip.dim, "hidden") == 0 && skip.axis == 0 &&
              strcmp(skip.taken_by, "pixel") == 0);
        n_w1++;
    }
    CHECK_EQ_INT(n_w1, 1);
    close_plan(&p);
}

static void test_decisions_are_kept_when_asked_for(void)
{
    planned p, plain;
    if (!open_plan(&p, "data:2,model:3", "batch:data,hidden:model", 3, true)) return;
    if (!open_plan(&plain, "data:2,model:3", "batch:data,hidden:model", 3, false)) return;
    CHECK_EQ_INT(weft_plan_n_decisions(plain.program), 0);
    CHECK(weft_program_digest(p.program) == weft_program_digest(plain.program));
    const int n = weft_plan_n_decisions(p.program);
    CHECK(n > 0 && n % 2 == 0); /* two axes */
    for (int i = 0; i < n; i++) {
        const weft_decision *d = weft_plan_decision_at(p.program, i);
        CHECK_EQ_INT(d->axis, i % 2);
        CHECK_EQ_INT(d->n_ranks, 2 + i % 2);
        CHECK(d->mesh == p.mesh && d->n_ways > 0 && d->picked == d->cheapest);
        CHECK(d->op && d->builder && d->file && d->line > 0);
        for (int w = 0; w < d->n_ways; w++) {
            const weft_way *way = &d->ways[w];
            CHECK((way->dim != NULL) == (way->kind == WEFT_WAY_CUT));
            CHECK(!way->is_usual || way->price.total >= d->ways[d->picked].price.total);
            for (int k = 0; k < d->n_in; k++)
                CHECK(way->need[k] >= WEFT_PARTIAL && way->need[k] < d->in[k].shape->n_dims);
            for (int k = 0; k < d->n_out; k++)
                CHECK(way->make[k] >= WEFT_PARTIAL && way->make[k] < d->out[k].shape->n_dims);
        }
        for (int a = 0; a < d->axis; a++) {
            const weft_decision *before = weft_plan_decision_at(p.program, i - d->axis + a);
            CHECK(before->node == d->node &&
                  before->ways[before->picked].kind == d->before[a].kind);
        }
    }
    CHECK(weft_plan_decision_at(p.program, n) == NULL &&
          weft_plan_decision_at(p.program, -1) == NULL);
    close_plan(&p);
    close_plan(&plain);
}

/* ---- calls that are wrong -------------------------------------------------------------------- */

static void test_wrong_calls_get_sentences(void)
{
    planned p;
    weft_planned_step step;
    weft_planned_tensor tensor;
    weft_planned_link link;
    weft_planned_skip skip;
    weft_planned_cost cost;
    int64_t offsets[2];
    if (!open_plan(&p, "data:2", "batch:data", 0, false)) return;
    const weft_program *program = p.program;
    const int n = weft_plan_n_steps(program);
#define REFUSED(call, sentence)                                                                    \
    do {                                                                                           \
        weft_error error = {0};                                                                    \
        CHECK_EQ_INT((call), WEFT_USAGE);                                                          \
        CHECK_TEXT(error.message, sentence);                                                       \
    } while (0)
    REFUSED(weft_plan_step_at(NULL, 0, 0, &step, &error), "weft_plan_step_at: program is NULL");
    REFUSED(weft_plan_step_at(program, 0, 0, NULL, &error), "step is NULL");
    REFUSED(weft_plan_step_at(program, n, 0, &step, &error), "there is no step");
    REFUSED(weft_plan_step_at(program, -1, 0, &step, &error), "there is no step -1");
    REFUSED(weft_plan_step_at(program, 0, 2, &step, &error), "rank is 2");
    REFUSED(weft_plan_tensor_at(program, 0, 0, &tensor, &error), "id is 0");
    REFUSED(weft_plan_tensor_at(program, UINT32_MAX, 0, &tensor, &error), "id is");
    REFUSED(weft_plan_tensor_at(program, 1, -1, &tensor, &error), "rank is -1");
    REFUSED(weft_plan_link_at(program, 0, 99, &link, &error), "there is no op of that loop 99");
    REFUSED(weft_plan_skipped_at(program, 0, &skip, &error), "there is no skipped rule 0");
    REFUSED(weft_plan_offsets(program, 0, offsets, 2, &error), "room is 2");
    REFUSED(weft_plan_cost(program, 7, NULL, &cost, &error), "rank is 7");
    CHECK(weft_plan_n_steps(NULL) == 0 && weft_plan_n_tensors(NULL) == 0);
    CHECK(weft_plan_n_skipped(NULL) == 0 && weft_plan_n_decisions(NULL) == 0);
    CHECK(weft_plan_tensor_of(NULL, p.loss) == 0 && weft_plan_layout(NULL) == NULL);
    CHECK(weft_plan_traffic(NULL, 0, NULL, 0) == 0 && weft_plan_traffic(program, 2, NULL, 9) == 0);
    CHECK(strcmp(weft_step_kind_name((weft_step_kind)99), "?") == 0);
    CHECK(strcmp(weft_way_kind_name((weft_way_kind)-1), "?") == 0);
    CHECK(strcmp(weft_step_reason_name(WEFT_REASONS), "?") == 0);
    CHECK(strcmp(weft_tensor_kind_name(WEFT_TENSOR_KINDS), "?") == 0);
    close_plan(&p);
}

int main(void)
{
    RUN(test_steps_add_up_to_the_usage);
    RUN(test_steps_read_what_was_made);
    RUN(test_tensors_add_up_to_the_usage);
    RUN(test_tensors_alive_together_lie_apart);
    RUN(test_versions_of_a_parameter);
    RUN(test_a_contracted_dim_says_why);
    RUN(test_a_reason_is_said_once);
    RUN(test_skipped_rules_are_data);
    RUN(test_decisions_are_kept_when_asked_for);
    RUN(test_wrong_calls_get_sentences);
    return weft_test_report();
}
