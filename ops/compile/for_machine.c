/* for_machine: the plan of a program that is for a machine.
 *
 * No single price is right: prices leave out what a timeline knows, as waiting for late ranks and cores that exchanges take. So plans are
 * made by several prices, each is predicted on the machine, and the quickest is taken. That by the usual prices is the first, so
 * none is taken that is predicted to be slower. Those of the same links are one plan up to the passes that go by seconds.
 */
#include "clock.h"
#include "passes.h"
#include "timeline.h"

#include <string.h>

enum { ROOM_DIVISOR = 4 }; /* of the first one's memory another one may take so much more */

static const struct {
    const char *name;
    bool has_links, has_seconds; /* of the machine, in place of the usual */
} tries[WEFT_PRICINGS] = {
    {"usual prices", false, false},
    {"its links", true, false},
    {"its seconds", false, true},
    {"its links and seconds", true, true},
};

typedef struct trial {
    const weft_plan_request *request;
    const weft_machine_model *machine;
    char links[WEFT_LINKS_BYTES]; /* of the machine */
    double flops_per_byte;        /* of the machine */
    weft_planned_pricing pricings[WEFT_PRICINGS];
    int n, best;
    weft_plan *begun[2]; /* by has_links: for the next try of these links; NULL: none */
} trial;

static weft_pricing pricing_of(const trial *t, int which)
{
    const bool has_links = tries[which].has_links;
    return (weft_pricing){.links = has_links ? t->links : t->request->options->link,
                          .flops_per_byte = has_links ? t->flops_per_byte : 0,
                          .machine = tries[which].has_seconds ? t->machine : NULL};
}

/* Links that were stated are not taken from the machine. */
static bool is_tried(const trial *t, int which)
{
    const char *stated = t->request->options->link;
    return !tries[which].has_links || !stated || !*stated;
}

static bool is_better(const trial *t, const weft_planned_pricing *pricing)
{
    return pricing->is_allowed && pricing->seconds < t->pricings[t->best].seconds * (1 - 1e-9);
}

static weft_status judge(trial *t, int which, const weft_plan *plan, bool *is_taken,
                         weft_error *error)
{
    static const weft_predict_options none;
    weft_prediction prediction;
    WEFT_TRY(weft_timeline(plan, t->machine, &none, &prediction, NULL, error));
    weft_planned_pricing *pricing = &t->pricings[t->n];
    const int64_t first = t->n ? t->pricings[0].arena_bytes : plan->packed.arena_bytes;
    *pricing = (weft_planned_pricing){.name = tries[which].name,
                                      .seconds = prediction.seconds,
                                      .arena_bytes = plan->packed.arena_bytes,
                                      .is_allowed =
                                          plan->packed.arena_bytes <= first + first / ROOM_DIVISOR};
    *is_taken = t->n == 0 || is_better(t, pricing);
    if (*is_taken) t->best = t->n;
    t->n++;
    return WEFT_OK;
}

/* Whether a later try has the same links. */
static bool has_next(int which)
{
    for (int later = which + 1; later < WEFT_PRICINGS; later++)
        if (tries[later].has_links == tries[which].has_links) return true;
    return false;
}

/* A plan of these links that has begun, and another one for the next try. */
static weft_status begin(trial *t, int which, const weft_pricing *pricing, weft_plan **plan,
                         weft_error *error)
{
    weft_plan **next = &t->begun[tries[which].has_links];
    *plan = *next;
    *next = NULL;
    if (!*plan) WEFT_TRY(weft_plan_begin(t->request, pricing, plan, error));
    if (!has_next(which)) return WEFT_OK;
    *next = weft_plan_fork(*plan);
    if (*next) return WEFT_OK;
    weft_plan_destroy(plan);
    return weft_fail_memory(error, sizeof **plan);
}

static weft_status try_one(trial *t, int which, weft_plan **best, weft_error *error)
{
    weft_plan *plan;
    bool is_taken = false;
    const weft_pricing pricing = pricing_of(t, which);
    WEFT_TRY(begin(t, which, &pricing, &plan, error));
    weft_status status = weft_plan_end(plan, &pricing, t->begun[tries[which].has_links], error);
    if (status == WEFT_OK) status = judge(t, which, plan, &is_taken, error);
    if (!is_taken) {
        weft_plan_destroy(&plan);
        return status;
    }
    weft_plan_destroy(best);
    *best = plan;
    return status;
}

/* Where ranks exchange nothing all prices come to one plan: a queue is for computing alone. */
static weft_status try_all(trial *t, weft_plan **best, weft_error *error)
{
    weft_status status = try_one(t, 0, best, error);
    for (int which = 1; which < WEFT_PRICINGS && status == WEFT_OK && (*best)->n_queues > 1;
         which++)
        if (is_tried(t, which)) status = try_one(t, which, best, error);
    for (int links = 0; links < 2; links++)
        weft_plan_destroy(&t->begun[links]);
    return status;
}

static int find_try(const char *name)
{
    int which = 0;
    while (strcmp(tries[which].name, name) != 0)
        which++;
    return which;
}

/* Only of the plan that was taken anything is printed, so it is made once more. */
static weft_status print_passes(const trial *t, weft_plan **plan, weft_error *error)
{
    if (!t->request->options->dump) return WEFT_OK;
    weft_pricing pricing = pricing_of(t, find_try(t->pricings[t->best].name));
    pricing.dump = t->request->options->dump;
    weft_plan_destroy(plan);
    return weft_plan_make(t->request, &pricing, plan, error);
}

static weft_status keep_facts(trial *t, weft_plan *plan, weft_error *error)
{
    const char *name = weft_machine_model_name(t->machine);
    t->pricings[t->best].is_taken = true;
    memcpy(plan->pricings, t->pricings, sizeof t->pricings);
    plan->n_pricings = t->n;
    plan->machine_hash = weft_machine_model_hash(t->machine);
    plan->machine_name = weft_arena_intern(plan->arena, name);
    return plan->machine_name ? WEFT_OK : weft_fail_memory(error, strlen(name));
}

weft_status weft_plan_for_machine(const weft_plan_request *request, weft_plan **plan,
                                  weft_error *error)
{
    trial t = {.request = request, .machine = request->options->machine};
    *plan = NULL;
    weft_clock_links(request->mesh, t.machine, t.links);
    if (request->values.n_values > 0 && request->values.values[0].graph)
        t.flops_per_byte =
            weft_clock_work(request->mesh, t.machine, request->values.values[0].graph);
    weft_status status = try_all(&t, plan, error);
    if (status == WEFT_OK) status = print_passes(&t, plan, error);
    if (status == WEFT_OK) status = keep_facts(&t, *plan, error);
    if (status != WEFT_OK) weft_plan_destroy(plan);
    return status;
}
