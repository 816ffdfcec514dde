/* sequence: which steps have to come after which. See sequence.h. */
#include "regions.h"
#include "sequence.h"

typedef struct finding {
    const weft_plan *plan;
    weft_sequence *found;
    uint32_t n_edges;
    uint32_t *seen; /* [n_placed] the stamp of the step that was looked at last */
    uint32_t stamp;
    uint32_t since; /* the last fence; 0: none yet */
} finding;

static void add_edge(finding *f, uint32_t *list, uint32_t step)
{
    f->found->edges[f->n_edges] = (weft_edge){step, *list};
    *list = ++f->n_edges;
}

static void order_pair(finding *f, uint32_t before, uint32_t after)
{
    if (before == after) return;
    add_edge(f, &f->found->needs[after], before);
    add_edge(f, &f->found->serves[before], after);
    f->found->n_needs[after]++;
}

static void look_at_reads(finding *f, uint32_t s)
{
    const weft_step *step = &f->plan->steps[s];
    f->stamp++;
    for (int i = 0; i < step->n_in; i++) {
        const uint32_t owner = weft_placed_owner(f->plan, step->in[i]);
        if (!weft_is_first(&f->seen[owner], f->stamp)) continue;
        f->found->n_readers[owner]++;
        if (f->found->writer[owner]) order_pair(f, f->found->writer[owner] - 1, s);
        add_edge(f, &f->found->reads[owner], s);
    }
}

static void look_at_writes(finding *f, uint32_t s)
{
    const weft_step *step = &f->plan->steps[s];
    f->stamp++;
    for (int o = 0; o < step->n_out; o++) {
        const uint32_t owner = weft_placed_owner(f->plan, step->out[o]);
        if (!weft_is_first(&f->seen[owner], f->stamp)) continue;
        if (f->found->writer[owner]) order_pair(f, f->found->writer[owner] - 1, s);
        for (uint32_t e = f->found->reads[owner]; e; e = f->found->edges[e - 1].next)
            order_pair(f, f->found->edges[e - 1].step, s);
        f->found->reads[owner] = 0;
        f->found->writer[owner] = s + 1;
    }
}

/* A step comes after the last fence, and a fence after all steps since then. */
static void look_at_fences(finding *f, uint32_t s)
{
    const weft_step *steps = f->plan->steps;
    for (uint32_t before = f->since; weft_is_fence(&steps[s]) && before < s; before++)
        order_pair(f, before, s);
    if (weft_is_fence(&steps[s]))
        f->since = s;
    else if (weft_is_fence(&steps[f->since]))
        order_pair(f, f->since, s);
}

weft_status weft_find_sequence(const weft_plan *plan, weft_sequence *sequence, weft_error *error)
{
    finding f = {.plan = plan, .found = sequence};
    const size_t n_steps = plan->n_steps + 1, n_placed = plan->n_placed + 1;
    size_t n_edges = 1;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        n_edges += 5 * (size_t)plan->steps[s].n_in + 2 * (size_t)plan->steps[s].n_out + 4;
    const struct {
        uint32_t **list;
        size_t n;
    } lists[] = {{&sequence->needs, n_steps},
                 {&sequence->serves, n_steps},
                 {&sequence->n_needs, n_steps},
                 {&sequence->reads, n_placed},
                 {&sequence->n_readers, n_placed},
                 {&sequence->writer, n_placed},
                 {&f.seen, n_placed}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!(*lists[i].list = weft_arena_take(plan->arena, lists[i].n * sizeof(uint32_t))))
            return weft_fail_memory(error, lists[i].n * sizeof(uint32_t));
    sequence->edges = weft_arena_take(plan->arena, n_edges * sizeof *sequence->edges);
    if (!sequence->edges) return weft_fail_memory(error, n_edges * sizeof *sequence->edges);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        look_at_reads(&f, s);
        look_at_writes(&f, s);
        look_at_fences(&f, s);
    }
    return WEFT_OK;
}
