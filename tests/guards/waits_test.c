/* waits_test: threads wait for each other in sight. Futexes, yields, conditions and atomics are named in mesh/sync
 * alone, so that each wait names its partner and each order is tried (tests/sync). Elsewhere only tables that are
 * written once and then read have atomics and locks of their own.
 */
#include "source_lines.h"

static const char *const rooms[] = {"mesh",  "layout", "collectives", "ops", "autodiff",
                                    "optim", "io",     "extend",      NULL};
/* What is registered, chosen or looked up, by any thread. And what is cuda's, whose queues wait by the driver. */
static const char *const tables[] = {"/mesh/sync/",
                                     "/mesh/devices.c",
                                     "/mesh/device_find.c",
                                     "/mesh/topology.c",
                                     "/mesh/blas.c",
                                     "/layout/combine.c",
                                     "/collectives/engines.c",
                                     "/collectives/flight.c",
                                     "/collectives/move.c",
                                     "/ops/graph/outside.c",
                                     "/ops/kernel/registry.c",
                                     "/optim/find.c",
                                     "/io/checkpoint/libhdf5.c",
                                     "/cuda/",
                                     NULL};
static const char *const words[] = {"atomic_load",    "atomic_store",      "atomic_fetch",
                                    "atomic_compare", "atomic_exchange",   "sched_yield",
                                    "SYS_futex",      "pthread_cond_wait", "pthread_mutex_lock",
                                    "pthread_create", "pthread_join",      NULL};

static bool is_table(const char *path)
{
    for (int i = 0; tables[i] != NULL; i++)
        if (strstr(path, tables[i]) != NULL) return true;
    return false;
}

static bool waits(const char *line)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strstr(line, words[i]) != NULL) return true;
    return false;
}

static void test_threads_wait_by_one_header(void)
{
    check_sources(
        &(source_rule){rooms, is_table, waits, "waits by itself; mesh/sync/sync.h has how"});
}

static void test_what_waits_by_itself_is_seen(void)
{
    CHECK(waits("    while (atomic_load(&flag) == 0)"));
    CHECK(waits("        sched_yield();"));
    CHECK(!waits("    while (weft_sync_load(&flag) == 0)"));
}

int main(void)
{
    RUN(test_threads_wait_by_one_header);
    RUN(test_what_waits_by_itself_is_seen);
    return weft_test_report();
}
