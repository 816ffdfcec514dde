/* topology_test: of machines unlike this one, what lanes the ranks get, as threads of a process and as processes
 * bound as mpirun binds them; and what is told of a waste.
 */
#include "cores.h"
#include "test.h"

enum { MOST = 8 };

/* ---- machines -------------------------------------------------------------------------------- */

/* 8 cores of two threads and 8 slower ones of one, as of a hybrid processor. */
static void make_hybrid(hwloc_topology_t topology)
{
    hwloc_bitmap_t left = hwloc_bitmap_alloc(), fast = hwloc_bitmap_alloc(),
                   slow = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(fast, 0, 15);
    for (unsigned i = 16; i < 32; i += 2)
        hwloc_bitmap_set(slow, i);
    hwloc_bitmap_or(left, fast, slow);
    CHECK(hwloc_topology_restrict(topology, left, 0) == 0);
    CHECK(hwloc_cpukinds_register(topology, slow, 0, 0, NULL, 0) == 0);
    CHECK(hwloc_cpukinds_register(topology, fast, 1, 0, NULL, 0) == 0);
    hwloc_bitmap_free(left);
    hwloc_bitmap_free(fast);
    hwloc_bitmap_free(slow);
}

/* The control group leaves it the first 3 cores. */
static void make_smaller(hwloc_topology_t topology)
{
    hwloc_bitmap_t left = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(left, 0, 2);
    CHECK(hwloc_topology_restrict(topology, left, 0) == 0);
    hwloc_bitmap_free(left);
}

static const struct {
    const char *name, *synthetic;
    void (*change)(hwloc_topology_t);
} machines[] = {
    {"two sockets", "pack:2 numa:1 core:64 pu:2", NULL},
    {"hybrid", "pack:1 core:16 pu:2", make_hybrid},
    {"four nodes", "pack:1 group:4 numa:1 core:8 pu:2", NULL},
    {"sixteen", "pack:1 core:16 pu:1", NULL},
    {"three left", "pack:1 core:16 pu:1", make_smaller},
    {"single", "pack:1 core:1 pu:1", NULL},
    {"pu only", "pu:4", NULL},
};
enum { TWO_SOCKETS, HYBRID, FOUR_NODES, SIXTEEN, THREE_LEFT, SINGLE, PU_ONLY, MACHINES };
static hwloc_topology_t topologies[MACHINES];

static bool load(int machine)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0) return false;
    hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_set_synthetic(t, machines[machine].synthetic) != 0) return false;
    if (hwloc_topology_load(t) != 0) return false;
    if (machines[machine].change != NULL) machines[machine].change(t);
    topologies[machine] = t;
    return true;
}

/* ---- bindings -------------------------------------------------------------------------------- */

typedef enum binding {
    NONE,   /* --bind-to none */
    CORE,   /* --bind-to core: the next one for each process, and again from the first */
    SOCKET, /* --bind-to socket, as many on each as --map-by ppr:N:socket says */
    NODE,   /* --bind-to numa, in turn */
    THREAD, /* --bind-to hwthread */
    THREE,  /* all within cores 2, 5 and 11 */
    FIRST   /* all on the first core */
} binding;

static void bind(hwloc_topology_t t, binding how, int process, int n, hwloc_bitmap_t mask)
{
    static const hwloc_obj_type_t types[] = {[CORE] = HWLOC_OBJ_CORE,
                                             [SOCKET] = HWLOC_OBJ_PACKAGE,
                                             [NODE] = HWLOC_OBJ_NUMANODE,
                                             [THREAD] = HWLOC_OBJ_PU,
                                             [FIRST] = HWLOC_OBJ_CORE};
    hwloc_bitmap_copy(mask, hwloc_topology_get_allowed_cpuset(t));
    if (how == NONE) return;
    if (how == THREE) {
        hwloc_bitmap_zero(mask);
        hwloc_bitmap_set(mask, 2), hwloc_bitmap_set(mask, 5), hwloc_bitmap_set(mask, 11);
        return;
    }
    const int there = hwloc_get_nbobjs_by_type(t, types[how]);
    const int each = how == SOCKET ? (n + there - 1) / there : 1;
    const int at = how == FIRST ? 0 : process / each % there;
    hwloc_bitmap_copy(mask, hwloc_get_obj_by_type(t, types[how], (unsigned)at)->cpuset);
}

/* What n processes bound like that tell each other. */
static void tell(int machine, binding how, int n, double quota, weft_told *told)
{
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    for (int i = 0; i < n; i++) {
        weft_cores cores;
        bind(topologies[machine], how, i, n, mask);
        weft_cores_look(topologies[machine], mask, &cores);
        told[i] = weft_told_of(&cores, quota, 7);
    }
    hwloc_bitmap_free(mask);
}

/* ---- what is found --------------------------------------------------------------------------- */

static void test_cores_are_found(void)
{
    static const struct {
        int machine, cores, threads, host_cores, nodes, kinds;
    } expected[] = {
        {TWO_SOCKETS, 128, 256, 128, 2, 1}, {HYBRID, 16, 24, 16, 1, 2},
        {FOUR_NODES, 32, 64, 32, 4, 1},     {SIXTEEN, 16, 16, 16, 1, 1},
        {THREE_LEFT, 3, 3, 3, 1, 1},        {SINGLE, 1, 1, 1, 1, 1},
        {PU_ONLY, 4, 4, 4, 1, 1},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        weft_cores cores;
        hwloc_topology_t t = topologies[expected[i].machine];
        weft_cores_look(t, hwloc_topology_get_allowed_cpuset(t), &cores);
        CHECK_EQ_INT(cores.n_cores, expected[i].cores);
        CHECK_EQ_INT(cores.n_threads, expected[i].threads);
        CHECK_EQ_INT(cores.host_cores, expected[i].host_cores);
        CHECK_EQ_INT(cores.n_nodes, expected[i].nodes);
        CHECK_EQ_INT(cores.n_kinds, expected[i].kinds);
        CHECK(cores.is_known);
    }
    weft_cores cores;
    hwloc_topology_t t = topologies[HYBRID];
    weft_cores_look(t, hwloc_topology_get_allowed_cpuset(t), &cores);
    CHECK_EQ_INT(cores.kind_cores[0], 8);
    CHECK_EQ_INT(cores.kind_cores[1], 8);
}

static void test_a_mask_is_part_of_the_host(void)
{
    weft_told told[1];
    tell(SIXTEEN, THREE, 1, 0, told);
    CHECK_EQ_INT(told[0].n_cores, 3);
    CHECK_EQ_INT(told[0].host_cores, 16);
    tell(TWO_SOCKETS, THREAD, 1, 0, told); /* half a core is one */
    CHECK_EQ_INT(told[0].n_cores, 1);
}

/* ---- what is decided ------------------------------------------------------------------------- */

static const int counts[] = {1, 2, 3, 4, 8};
enum { COUNTS = sizeof counts / sizeof *counts };

static void test_ranks_that_are_threads(void)
{
    static const struct {
        int machine;
        binding how;
        double quota;
        int lanes[COUNTS];
    } expected[] = {
        {TWO_SOCKETS, NONE, 0, {128, 64, 42, 32, 16}},
        {TWO_SOCKETS, SOCKET, 0, {64, 32, 21, 16, 8}},
        {HYBRID, NONE, 0, {16, 8, 5, 4, 2}},
        {FOUR_NODES, NONE, 0, {32, 16, 10, 8, 4}},
        {FOUR_NODES, NODE, 0, {8, 4, 2, 2, 1}},
        {SIXTEEN, THREE, 0, {3, 1, 1, 1, 1}},
        {THREE_LEFT, NONE, 0, {3, 1, 1, 1, 1}},
        {SIXTEEN, NONE, 1.5, {2, 1, 1, 1, 1}},
        {SIXTEEN, NONE, 1.1, {1, 1, 1, 1, 1}},
        {SIXTEEN, NONE, 0.3, {1, 1, 1, 1, 1}},
        {SIXTEEN, NONE, 6, {6, 3, 2, 1, 1}},
        {SIXTEEN, THREE, 6, {3, 1, 1, 1, 1}},
        {SINGLE, NONE, 0, {1, 1, 1, 1, 1}},
        {SIXTEEN, CORE, 0, {1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        for (int k = 0; k < COUNTS; k++) {
            weft_told told[1];
            tell(expected[i].machine, expected[i].how, 1, expected[i].quota, told);
            const weft_share share = weft_share_told(told, 1, 0);
            CHECK_EQ_INT(weft_share_lanes(share.cores, counts[k]), expected[i].lanes[k]);
            CHECK_EQ_INT(share.n_sharing, 1);
        }
}

typedef struct decision {
    int machine;
    binding how;
    double quota;
    int n, lanes[MOST]; /* of each process; of the last ones as of the last that is said */
    int n_sharing, n_used;
} decision;

static const decision decisions[] = {
    {TWO_SOCKETS, NONE, 0, 1, {128}, 1, 128},
    {TWO_SOCKETS, NONE, 0, 2, {64, 64}, 2, 128},
    {TWO_SOCKETS, NONE, 0, 3, {42, 42, 42}, 3, 128},
    {TWO_SOCKETS, NONE, 0, 4, {32, 32, 32, 32}, 4, 128},
    {TWO_SOCKETS, NONE, 0, 8, {16, 16, 16, 16, 16, 16, 16, 16}, 8, 128},
    {TWO_SOCKETS, CORE, 0, 1, {1}, 1, 1},
    {TWO_SOCKETS, CORE, 0, 2, {1, 1}, 1, 2},
    {TWO_SOCKETS, CORE, 0, 3, {1, 1, 1}, 1, 3},
    {TWO_SOCKETS, CORE, 0, 4, {1, 1, 1, 1}, 1, 4},
    {TWO_SOCKETS, CORE, 0, 8, {1, 1, 1, 1, 1, 1, 1, 1}, 1, 8},
    {TWO_SOCKETS, SOCKET, 0, 1, {64}, 1, 64},
    {TWO_SOCKETS, SOCKET, 0, 2, {64, 64}, 1, 128},
    {TWO_SOCKETS, SOCKET, 0, 3, {32, 32, 64}, 2, 128},
    {TWO_SOCKETS, SOCKET, 0, 4, {32, 32, 32, 32}, 2, 128},
    {TWO_SOCKETS, SOCKET, 0, 8, {16, 16, 16, 16, 16, 16, 16, 16}, 4, 128},
    {TWO_SOCKETS, THREAD, 0, 2, {1, 1}, 2, 1}, /* two threads of one core */
    {TWO_SOCKETS, FIRST, 0, 2, {1, 1}, 2, 1},
    {HYBRID, NONE, 0, 1, {16}, 1, 16},
    {HYBRID, NONE, 0, 2, {8, 8}, 2, 16},
    {HYBRID, NONE, 0, 3, {5, 5, 5}, 3, 16},
    {HYBRID, SOCKET, 0, 4, {4, 4, 4, 4}, 4, 16},
    {HYBRID, CORE, 0, 8, {1, 1, 1, 1, 1, 1, 1, 1}, 1, 8},
    {FOUR_NODES, NODE, 0, 1, {8}, 1, 8},
    {FOUR_NODES, NODE, 0, 2, {8, 8}, 1, 16},
    {FOUR_NODES, NODE, 0, 3, {8, 8, 8}, 1, 24},
    {FOUR_NODES, NODE, 0, 4, {8, 8, 8, 8}, 1, 32},
    {FOUR_NODES, NODE, 0, 8, {4, 4, 4, 4, 4, 4, 4, 4}, 2, 32},
    {FOUR_NODES, NONE, 0, 3, {10, 10, 10}, 3, 32},
    {SIXTEEN, THREE, 0, 1, {3}, 1, 3},
    {SIXTEEN, THREE, 0, 2, {1, 1}, 2, 3},
    {SIXTEEN, THREE, 0, 3, {1, 1, 1}, 3, 3},
    {SIXTEEN, THREE, 0, 8, {1, 1, 1, 1, 1, 1, 1, 1}, 8, 3},
    {THREE_LEFT, NONE, 0, 2, {1, 1}, 2, 3},
    {THREE_LEFT, CORE, 0, 4, {1, 1, 1, 1}, 2, 3},
    {SIXTEEN, NONE, 1.5, 1, {2}, 1, 16},
    {SIXTEEN, NONE, 1.5, 2, {1, 1}, 2, 16},
    {SIXTEEN, NONE, 1.5, 8, {1, 1, 1, 1, 1, 1, 1, 1}, 8, 16},
    {SIXTEEN, NONE, 8, 3, {2, 2, 2}, 3, 16},
    {SIXTEEN, CORE, 8, 4, {1, 1, 1, 1}, 1, 4},
    {SINGLE, NONE, 0, 1, {1}, 1, 1},
    {SINGLE, NONE, 0, 4, {1, 1, 1, 1}, 4, 1},
    {SINGLE, CORE, 0, 2, {1, 1}, 2, 1},
};

static void test_ranks_that_are_processes(void)
{
    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        const decision *d = &decisions[i];
        weft_told told[MOST];
        int most = 0;
        tell(d->machine, d->how, d->n, d->quota, told);
        for (int p = 0; p < d->n; p++) {
            const weft_share share = weft_share_told(told, d->n, p);
            if (share.n_sharing > most) most = share.n_sharing;
            if (weft_share_lanes(share.cores, 1) != d->lanes[p] || share.n_used != d->n_used)
                fprintf(stderr, "%s, binding %d, %d processes, process %d:\n",
                        machines[d->machine].name, (int)d->how, d->n, p);
            CHECK_EQ_INT(weft_share_lanes(share.cores, 1), d->lanes[p]);
            CHECK_EQ_INT(share.n_used, d->n_used);
        }
        CHECK_EQ_INT(most, d->n_sharing);
    }
}

/* Core 0 is of both, the other 15 of one. */
static void test_masks_that_overlap_in_part(void)
{
    weft_told told[2], one[1];
    tell(SIXTEEN, NONE, 1, 0, told);
    tell(SIXTEEN, FIRST, 1, 0, one);
    told[1] = one[0];
    weft_share share = weft_share_told(told, 2, 0);
    CHECK(fabs(share.cores - 15.5) < 1e-9);
    CHECK_EQ_INT(weft_share_lanes(share.cores, 1), 15);
    share = weft_share_told(told, 2, 1);
    CHECK(fabs(share.cores - 0.5) < 1e-9);
    CHECK_EQ_INT(share.n_sharing, 2);
}

/* Whatever the masks, the parts of all processes are the cores that some process may use, no more and no less. */
static void test_parts_add_up(void)
{
    uint64_t number = 88172645463325252u;
    for (int run = 0; run < weft_test_cases(200); run++) {
        weft_told told[MOST];
        const int n = 1 + run % MOST;
        double sum = 0;
        tell(TWO_SOCKETS, NONE, n, 0, told);
        for (int p = 0; p < n; p++)
            for (int w = 0; w < WEFT_CORE_WORDS; w++) {
                number ^= number << 13, number ^= number >> 7, number ^= number << 17;
                told[p].bits[w] &= number | (w == 0);
            }
        for (int p = 0; p < n; p++)
            sum += weft_share_told(told, n, p).cores;
        CHECK(fabs(sum - weft_share_told(told, n, 0).n_used) < 1e-6);
    }
}

static void test_other_groups_have_quotas_of_their_own(void)
{
    weft_told told[2];
    tell(SIXTEEN, NONE, 2, 4, told);
    CHECK_EQ_INT(weft_share_lanes(weft_share_told(told, 2, 0).cores, 1), 2);
    told[1].group = 8;
    CHECK_EQ_INT(weft_share_lanes(weft_share_told(told, 2, 0).cores, 1), 4);
}

static void test_nothing_told(void)
{
    static const struct {
        int in_mask, on_host, quota, n, lanes;
    } expected[] = {
        {8, 8, 0, 1, 8},                                       /* alone */
        {8, 8, 0, 4, 2},                                       /* unbound */
        {1, 8, 0, 4, 1},                                       /* bound to a core */
        {32, 64, 0, 4, 16},                                    /* bound to one socket of two */
        {8, 8, 2, 1, 2},    {8, 8, 3, 2, 1}, {2, 2, 0, 16, 1}, /* a container's time */
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const weft_cores cores = {.n_cores = expected[i].in_mask,
                                  .host_cores = expected[i].on_host};
        const weft_told own = weft_told_of(&cores, expected[i].quota, 1);
        CHECK(!own.is_known);
        CHECK(weft_share_told(&own, 1, 0).cores == 0);
        const weft_share share = weft_share_guessed(&own, expected[i].n);
        CHECK_EQ_INT(weft_share_lanes(share.cores, 1), expected[i].lanes);
    }
    const weft_cores nothing = {0};
    const weft_told own = weft_told_of(&nothing, 0, 0);
    CHECK_EQ_INT(weft_share_lanes(weft_share_guessed(&own, 0).cores, 1), 1);
}

static void test_one_that_does_not_know_is_enough(void)
{
    weft_told told[2];
    tell(SIXTEEN, NONE, 2, 0, told);
    told[1].is_known = 0;
    CHECK(weft_share_told(told, 2, 0).cores == 0);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void check_told(int machine, binding how, int n, int n_ranks, int n_lanes, const char *text)
{
    weft_told told[MOST];
    char found[400];
    tell(machine, how, n, 0, told);
    const weft_share share = weft_share_told(told, n, 0);
    const weft_crowd crowd = {.n_processes = n,
                              .n_ranks = n_ranks,
                              .n_lanes =
                                  n_lanes > 0 ? n_lanes : weft_share_lanes(share.cores, n_ranks),
                              .is_launched = n > 1,
                              .share = share};
    weft_crowd_text(&crowd, found, sizeof found);
    if (*text == '\0')
        CHECK(strcmp(found, "") == 0);
    else
        CHECK_TEXT(found, text);
}

static void test_wastes_are_told(void)
{
    check_told(TWO_SOCKETS, NONE, 2, 1, 0, "");
    check_told(TWO_SOCKETS, SOCKET, 2, 1, 0, "");
    check_told(SINGLE, NONE, 1, 1, 0, "");
    check_told(SIXTEEN, THREE, 1, 3, 0, "");
    check_told(THREE_LEFT, CORE, 3, 1, 0, "");
    check_told(SIXTEEN, FIRST, 2, 1, 0,
               "2 processes are bound to one core, while 15 of this host's 16 cores have none");
    check_told(TWO_SOCKETS, THREAD, 2, 1, 0, "2 processes are bound to one core, while 127");
    check_told(SIXTEEN, CORE, 2, 1, 0, "2 processes here may use 2 of the host's 16 cores");
    check_told(SIXTEEN, NONE, 1, 1, 17, "17 threads (1 rank of 17 lanes) share 16 cores");
    check_told(SIXTEEN, NONE, 4, 1, 8, "32 threads (4 ranks of 8 lanes) share 16 cores");
    check_told(SINGLE, NONE, 1, 4, 0, "4 threads (4 ranks of 1 lane) share 1 core, and");
    check_told(SINGLE, NONE, 1, 4, 0, "fewer ranks are faster");
}

int main(void)
{
    for (int i = 0; i < MACHINES; i++)
        if (!CHECK(load(i))) return weft_test_report();
    RUN(test_cores_are_found);
    RUN(test_a_mask_is_part_of_the_host);
    RUN(test_ranks_that_are_threads);
    RUN(test_ranks_that_are_processes);
    RUN(test_masks_that_overlap_in_part);
    RUN(test_parts_add_up);
    RUN(test_other_groups_have_quotas_of_their_own);
    RUN(test_nothing_told);
    RUN(test_one_that_does_not_know_is_enough);
    RUN(test_wastes_are_told);
    for (int i = 0; i < MACHINES; i++)
        hwloc_topology_destroy(topologies[i]);
    return weft_test_report();
}
