/* cores: the cores of a mask. Two hardware threads of one core share its arithmetic, so cores are counted; a core
 * with threads in two masks is in both.
 *
 * On a processor with fast and slow cores, all count. Evenly cut loops take as long on the 8 fast cores of 8 fast and
 * 8 slow ones of half the speed as on all 16. Products of matrices are half as fast again on all, since their lanes
 * take work from each other (weft_stream_take).
 */
#include "cores.h"

#include <string.h>

/* A topology without cores, as of some virtual machines, has hardware threads. */
static hwloc_obj_type_t type_of_core(hwloc_topology_t topology)
{
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

static int count(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_cpuset_t set)
{
    int count = 0;
    const int n = hwloc_get_nbobjs_by_type(topology, type);
    for (int i = 0; i < n; i++)
        count += hwloc_bitmap_intersects(hwloc_get_obj_by_type(topology, type, (unsigned)i)->cpuset,
                                         set);
    return count;
}

/* By the first thread that the core has on the machine: of one that this process may not use, too, so processes in
 * other control groups say the same number. */
static void set_bits(hwloc_topology_t topology, hwloc_const_cpuset_t mask, weft_cores *cores)
{
    const hwloc_obj_type_t type = type_of_core(topology);
    const int n = hwloc_get_nbobjs_by_type(topology, type);
    cores->is_known = true;
    for (int i = 0; i < n; i++) {
        const hwloc_obj_t core = hwloc_get_obj_by_type(topology, type, (unsigned)i);
        if (!hwloc_bitmap_intersects(core->cpuset, mask)) continue;
        const int bit = hwloc_bitmap_first(core->complete_cpuset);
        if (bit >= 0 && bit < WEFT_CORE_BITS)
            cores->bits[bit / 64] |= UINT64_C(1) << bit % 64;
        else
            cores->is_known = false;
    }
}

static void set_kinds(hwloc_topology_t topology, hwloc_const_cpuset_t mask, weft_cores *cores)
{
    const int n = hwloc_cpukinds_get_nr(topology, 0);
    hwloc_bitmap_t kind = hwloc_bitmap_alloc();
    cores->n_kinds = 0;
    for (int i = 0; kind != NULL && i < n && cores->n_kinds < WEFT_CORE_KINDS; i++) {
        if (hwloc_cpukinds_get_info(topology, (unsigned)i, kind, NULL, NULL, NULL, 0) != 0)
            continue;
        hwloc_bitmap_and(kind, kind, mask);
        const int n_cores = count(topology, type_of_core(topology), kind);
        if (n_cores > 0) cores->kind_cores[cores->n_kinds++] = n_cores;
    }
    hwloc_bitmap_free(kind);
    if (cores->n_kinds > 0) return;
    cores->n_kinds = 1;
    cores->kind_cores[0] = cores->n_cores;
}

void weft_cores_look(hwloc_topology_t topology, hwloc_const_cpuset_t mask, weft_cores *cores)
{
    const hwloc_obj_type_t type = type_of_core(topology);
    hwloc_const_cpuset_t all = hwloc_topology_get_allowed_cpuset(topology);
    memset(cores, 0, sizeof *cores);
    cores->n_cores = count(topology, type, mask);
    cores->n_threads = count(topology, HWLOC_OBJ_PU, mask);
    cores->host_cores = count(topology, type, all);
    cores->host_threads = count(topology, HWLOC_OBJ_PU, all);
    cores->n_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    set_bits(topology, mask, cores);
    set_kinds(topology, mask, cores);
}
