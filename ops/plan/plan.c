/* plan.c: the plan's small parts: appending, sizes, printing, the digest. */
#include "plan.h"

#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

/* Room for one entry more; false when out of memory, and then nothing has changed. */
static bool grow(void **entries, size_t bytes, uint32_t n, uint32_t *cap)
{
    if (n < *cap) return true;
    uint32_t more = *cap ? 2 * *cap : 256;
    void *grown = realloc(*entries, more * bytes);
    if (!grown) return false;
    *entries = grown;
    *cap = more;
    return true;
}

static int64_t bytes_in(const weft_placed *placed, const weft_box *box)
{
    return weft_box_count(box, placed->type.shape.n_dims) *
           (int64_t)weft_dtype_bytes(placed->type.dtype);
}

uint32_t weft_plan_place(weft_plan *plan, const weft_placed *placed, const weft_box *box)
{
    void *all = plan->placed;
    if (!grow(&all, sizeof *placed, plan->n_placed + 1, &plan->build.cap_placed)) return 0;
    plan->placed = all;
    if (plan->n_placed == 0) plan->placed[plan->n_placed++] = (weft_placed){0};
    weft_placed *p = &plan->placed[plan->n_placed];
    *p = *placed;
    if (box)
        p->box = *box;
    else
        weft_spec_box(&p->spec, plan->mesh, &p->type.shape, 0, &p->box);
    p->bytes = bytes_in(p, &p->box);
    return plan->n_placed++;
}

/* A list in the arena; false when out of memory. */
static bool keep_list(weft_arena *arena, const void **list, int n, size_t bytes)
{
    if (n == 0) return true;
    void *kept = weft_arena_take(arena, (size_t)n * bytes);
    if (!kept) return false;
    memcpy(kept, *list, (size_t)n * bytes);
    *list = kept;
    return true;
}

weft_step *weft_plan_step(weft_plan *plan, const weft_step *step)
{
    void *all = plan->steps;
    const void *in = step->in, *out = step->out, *links = step->links, *space = step->space;
    if (!grow(&all, sizeof *step, plan->n_steps, &plan->build.cap_steps)) return NULL;
    plan->steps = all;
    if (!keep_list(plan->arena, &in, step->n_in, sizeof *step->in) ||
        !keep_list(plan->arena, &out, step->n_out, sizeof *step->out) ||
        !keep_list(plan->arena, &links, step->n_links, sizeof *step->links) ||
        !keep_list(plan->arena, &space, step->n_segments, sizeof *step->space))
        return NULL;
    weft_step *kept = &plan->steps[plan->n_steps++];
    *kept = *step;
    kept->in = in, kept->out = out, kept->links = links, kept->space = space;
    return kept;
}

weft_planned_skip *weft_plan_skip(weft_plan *plan)
{
    void *all = plan->skips;
    if (!grow(&all, sizeof *plan->skips, plan->n_skips, &plan->build.cap_skips)) return NULL;
    plan->skips = all;
    return &plan->skips[plan->n_skips++];
}

weft_decision *weft_plan_decision(weft_plan *plan)
{
    void *all = plan->decisions;
    if (!grow(&all, sizeof *plan->decisions, plan->n_decisions, &plan->build.cap_decisions))
        return NULL;
    plan->decisions = all;
    return &plan->decisions[plan->n_decisions++];
}

uint32_t weft_placed_owner(const weft_plan *plan, uint32_t placed)
{
    while (plan->placed[placed].shares)
        placed = plan->placed[placed].shares;
    return placed;
}

void weft_placed_view(const weft_plan *plan, uint32_t placed, int rank, weft_view *view)
{
    const weft_placed *p = &plan->placed[placed];
    view->data = NULL;
    view->dtype = p->type.dtype;
    view->shape = p->type.shape;
    if (rank == 0)
        view->box = p->box;
    else
        weft_spec_box(&p->spec, plan->mesh, &p->type.shape, rank, &view->box);
}

int64_t weft_placed_bytes(const weft_plan *plan, uint32_t placed, int rank)
{
    const weft_placed *p = &plan->placed[placed];
    weft_box box;
    if (rank == 0) return p->bytes;
    weft_spec_box(&p->spec, plan->mesh, &p->type.shape, rank, &box);
    return bytes_in(p, &box);
}

int64_t weft_placed_room(const weft_plan *plan, uint32_t placed, int rank)
{
    return weft_aligned(weft_placed_bytes(plan, placed, rank));
}

bool weft_same_dim(const weft_plan *plan, uint32_t a, int i, uint32_t b, int j)
{
    const weft_placed *p = &plan->placed[a], *q = &plan->placed[b];
    const weft_dim *x = &p->type.shape.dims[i], *y = &q->type.shape.dims[j];
    return x->size == y->size && strcmp(x->name, y->name) == 0 &&
           p->spec.n_split[i] == q->spec.n_split[j] &&
           memcmp(p->spec.split[i], q->spec.split[j], (size_t)p->spec.n_split[i]) == 0 &&
           weft_window_equal(&p->spec.window[i], &q->spec.window[j]);
}

bool weft_same_dims(const weft_plan *plan, uint32_t a, uint32_t b, int n)
{
    const weft_placed *p = &plan->placed[a], *q = &plan->placed[b];
    if (a == b) return true;
    if (p->type.shape.n_dims < n || q->type.shape.n_dims < n) return false;
    for (int d = 0; d < n; d++)
        if (!weft_same_dim(plan, a, d, b, d)) return false;
    return true;
}

bool weft_lie_alike(const weft_plan *plan, uint32_t a, uint32_t b)
{
    const weft_type *x = &plan->placed[a].type, *y = &plan->placed[b].type;
    return x->shape.n_dims == y->shape.n_dims &&
           weft_dtype_bytes(x->dtype) == weft_dtype_bytes(y->dtype) &&
           weft_same_dims(plan, a, b, x->shape.n_dims);
}

const weft_op *weft_link_op(const weft_plan *plan, const weft_fused_op *link)
{
    const weft_op *op = plan->graph->nodes[link->node].op;
    return !op->element && link->kind == WEFT_LOOP_ELEMENTS ? op->row->each : op;
}

/* The type with the sizes of one rank's part of `view`. */
static void make_local(weft_type *type, const weft_view *view)
{
    for (int d = 0; d < type->shape.n_dims; d++) {
        const int at = weft_shape_find(&view->shape, type->shape.dims[d].name);
        if (at >= 0) type->shape.dims[d].size = weft_view_size(view, at);
    }
}

static double kernel_flops(const weft_plan *plan, const weft_step *step, int rank)
{
    const weft_node *node = &plan->graph->nodes[step->node];
    weft_site site;
    weft_view view;
    weft_site_of(plan->graph, node, &site);
    for (int i = 0; i < node->n_in; i++) {
        weft_placed_view(plan, step->in[i], rank, &view);
        make_local(&site.in[i], &view);
    }
    for (int o = 0; o < node->n_out; o++) {
        weft_placed_view(plan, step->out[o], rank, &view);
        make_local(&site.out[o], &view);
    }
    return weft_site_flops(&site);
}

static double link_flops(const weft_plan *plan, const weft_fused_op *link, const weft_view *space)
{
    const weft_node *node = &plan->graph->nodes[link->node];
    weft_site site;
    weft_site_of(plan->graph, node, &site);
    if (weft_link_op(plan, link) != node->op) return 0; /* counted with the reduction */
    for (int i = 0; i < node->n_in; i++)
        make_local(&site.in[i], space);
    for (int o = 0; o < node->n_out; o++)
        make_local(&site.out[o], space);
    return weft_site_flops(&site);
}

/* all: of all nodes; else of those that repeat others. */
static double step_flops(const weft_plan *plan, const weft_step *step, int rank, bool all)
{
    const weft_node *nodes = plan->graph->nodes;
    double flops = 0;
    if (step->kind == WEFT_STEP_KERNEL)
        return all || nodes[step->node].repeats ? kernel_flops(plan, step, rank) : 0;
    for (int g = 0; g < step->n_segments; g++) {
        weft_view space;
        weft_placed_view(plan, step->space[g], rank, &space);
        for (int k = 0; k < step->n_links;
             k++) { /* nodes are those of the first; fuse_horizontal.c */
            if (!all && !nodes[step->links[k].node].repeats) continue;
            flops += g == 0 ? link_flops(plan, &step->links[k], &space)
                            : (double)weft_view_count(&space);
        }
    }
    return flops;
}

double weft_step_flops(const weft_plan *plan, const weft_step *step, int rank)
{
    return step_flops(plan, step, rank, true);
}

double weft_step_again_flops(const weft_plan *plan, const weft_step *step, int rank)
{
    return step_flops(plan, step, rank, false);
}

const char *weft_step_kind_name(weft_step_kind kind)
{
    static const char *const names[WEFT_STEPS] = {"kernel", "loop",  "convert", "copy",
                                                  "begin",  "guard", "end"};
    return (unsigned)kind < WEFT_STEPS ? names[kind] : "?";
}

static void print_placed(const weft_plan *plan, uint32_t id, FILE *file)
{
    const weft_placed *placed = &plan->placed[id];
    char spec[240];
    weft_spec_print(&placed->spec, plan->mesh, &placed->type.shape, spec, sizeof spec);
    weft_id_print(id, file);
    fputs(placed->home == WEFT_TEMPORARY ? " " : "! ", file);
    fputs(spec, file);
    if (placed->shares) {
        fputs(" in ", file);
        weft_id_print(placed->shares, file);
    }
}

static void print_padded(const char *text, int width, FILE *file)
{
    fputs(text, file);
    for (int n = (int)strlen(text); n < width; n++)
        fputc(' ', file);
}

static void print_step(const weft_plan *plan, const weft_step *step, FILE *file)
{
    const bool is_kernel = step->kind == WEFT_STEP_KERNEL;
    print_padded(weft_phase_name(step->phase), 9, file);
    print_padded(weft_step_kind_name(step->kind), 7, file);
    for (int o = 0; o < step->n_out; o++) {
        fputs(o ? ", " : " ", file);
        print_placed(plan, step->out[o], file);
    }
    fputs(" <-", file);
    for (int i = 0; i < step->n_in; i++) {
        fputc(' ', file);
        weft_id_print(step->in[i], file);
    }
    if (step->kind == WEFT_STEP_CONVERT && step->convert.is_lowered)
        fprintf(file, "  %s", weft_convert_name(step->convert.kind));
    const uint32_t s = (uint32_t)(step - plan->steps), n_beside = weft_step_end(step, s) - s;
    if (n_beside) fprintf(file, " beside %u", n_beside);
    if (step->is_ahead) fputs(" ahead", file);
    if (step->kind == WEFT_STEP_BEGIN)
        fprintf(file, " %lld trips", (long long)plan->graph->scans[step->scan].trips);
    if (step->kind == WEFT_STEP_GUARD)
        fputs(weft_scan_of(&plan->graph->nodes[step->node])->ends ? " ends" : " skips", file);
    fputs(is_kernel ? "  " : "", file);
    fputs(is_kernel ? plan->graph->nodes[step->node].op->name : "", file);
    fputs(weft_step_accumulates(plan, step) ? " accumulates" : "", file);
    for (int k = 0; k < step->n_links; k++) {
        const weft_fused_op *link = &step->links[k];
        fputs(k ? " " : "  ", file);
        fputs(weft_link_op(plan, link)->name, file);
        for (int o = 0; o < link->n_out && step->n_out > 1; o++) {
            if (link->out[o] < 0) continue;
            fputc(o ? ',' : '=', file);
            weft_id_print(step->out[link->out[o]], file);
        }
    }
}

void weft_plan_dump(const weft_plan *plan, FILE *file)
{
    if (!plan->n_steps) weft_graph_print(plan->graph, true, file);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        char origin[160];
        weft_origin_print(&plan->graph->nodes[plan->steps[s].node], origin, sizeof origin);
        print_step(plan, &plan->steps[s], file);
        fprintf(file, "  | %s\n", origin);
    }
}

/* FNV-1a over the text of the plan: what is to be computed, where, and how; not which lines of the program asked for it.
 */
typedef struct hashing {
    uint64_t hash;
} hashing;

static ssize_t hash_write(void *cookie, const char *text, size_t bytes)
{
    hashing *h = cookie;
    for (size_t i = 0; i < bytes; i++)
        h->hash = (h->hash ^ (unsigned char)text[i]) * 0x100000001B3u;
    return (ssize_t)bytes;
}

uint64_t weft_plan_digest(const weft_plan *plan)
{
    hashing h = {0xCBF29CE484222325u};
    FILE *file = fopencookie(&h, "w", (cookie_io_functions_t){.write = hash_write});
    if (!file) return 0;
    __fsetlocking(file, FSETLOCKING_BYCALLER); /* nobody else has it: no lock for each word */
    const char *store_dim = weft_layout_store_dim(plan->layout);
    fprintf(file, "%s %s %d %s %llu\n", weft_mesh_text(plan->mesh), weft_layout_text(plan->layout),
            weft_layout_stage(plan->layout), store_dim != NULL ? store_dim : "",
            (unsigned long long)plan->graph->seed);
    if (plan->precision != WEFT_PRECISION_F32)
        fprintf(file, "products in %s\n", weft_precision_name(plan->precision));
    if (plan->machine_name)
        fprintf(file, "for machine %016llx\n", (unsigned long long)plan->machine_hash);
    weft_graph_print(plan->graph, false, file);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        print_step(plan, &plan->steps[s], file);
        fputc('\n', file);
    }
    fclose(file);
    return h.hash;
}
