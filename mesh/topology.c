/* topology: the machine as found: processor, cores that this process may use, caches, memory, BLAS.
 */
#include "mesh_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cores.h"

static struct {
    pthread_mutex_t mutex;
    bool is_read;
    weft_machine info;
    char processor[128];
    weft_cores cores;
    weft_told told;
} machine = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
    return cache != NULL && cache->attr != NULL ? (int64_t)cache->attr->cache.size : 0;
}

static void read_processor(hwloc_topology_t topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    snprintf(machine.processor, sizeof machine.processor, "%s", model != NULL ? model : "unknown");
}

/* hwloc crashes at about every fifth allocation that is refused to it, so it is asked only when it
 * has what it takes. */
enum { HWLOC_ROOM = 16 << 20 };

/* hwloc's plugins find GPUs, displays and what is on the PCI bus, and bring forty libraries with them (X11, OpenCL,
 * ICU): 3 of the 5 ms that a small program takes to start. They are left out, unless the user says where they are. */
static int init_without_plugins(hwloc_topology_t *topology)
{
    static const char path[] = "HWLOC_PLUGINS_PATH";
    /* not setenv, which loses its copy where memory is refused */
    static char nowhere[] = "HWLOC_PLUGINS_PATH=";
    const bool is_set = getenv(path) != NULL || putenv(nowhere) != 0;
    const int failure = hwloc_topology_init(topology);
    if (!is_set) unsetenv(path);
    return failure;
}

static void read_topology(void)
{
    hwloc_topology_t topology;
    if (init_without_plugins(&topology) != 0) return;
    hwloc_cpuset_t mask = hwloc_bitmap_alloc();
    if (mask != NULL && hwloc_topology_load(topology) == 0) {
        hwloc_const_cpuset_t all = hwloc_topology_get_allowed_cpuset(topology);
        if (hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_PROCESS) != 0)
            hwloc_bitmap_copy(mask, all);
        weft_cores_look(topology, mask, &machine.cores);
        machine.info.l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
        machine.info.l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
        read_processor(topology);
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(topology);
}

/* Without a topology one core is certain; without room for it, until the next call. */
static void read_limits(void)
{
    weft_machine *m = &machine.info;
    const weft_cores *cores = &machine.cores;
    uint64_t group;
    m->cpu_quota = weft_group_limit("", WEFT_LIMITED_CPU, &group);
    m->memory_limit = (int64_t)weft_group_limit("", WEFT_LIMITED_MEMORY, NULL);
    m->threads_limit = weft_threads_allowed("", &m->threads_limit_name);
    machine.told = weft_told_of(cores, m->cpu_quota, group);
    m->n_cores = machine.told.n_cores;
    m->host_cores = machine.told.host_cores;
    m->n_threads = cores->n_threads > m->n_cores ? cores->n_threads : m->n_cores;
    m->host_threads = cores->host_threads > m->host_cores ? cores->host_threads : m->host_cores;
    m->n_nodes = cores->n_nodes > 1 ? cores->n_nodes : 1;
    m->n_kinds = cores->n_kinds > 1 ? cores->n_kinds : 1;
    memcpy(m->kind_cores, cores->kind_cores, sizeof m->kind_cores);
    if (m->n_kinds == 1) m->kind_cores[0] = m->n_cores;
}

static void read_machine(void)
{
    weft_blas_start();
    snprintf(machine.processor, sizeof machine.processor, "unknown");
    machine.is_read = weft_has_free_memory(HWLOC_ROOM);
    if (machine.is_read) read_topology();
    read_limits();
    machine.info.processor = machine.processor;
    machine.info.memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    machine.info.blas = weft_blas_name();
    machine.info.blas_kernel = weft_blas_kernel();
    machine.info.blas_kernel_found = weft_blas_kernel_found();
}

const weft_machine *weft_machine_info(void)
{
    pthread_mutex_lock(&machine.mutex);
    if (!machine.is_read) read_machine();
    pthread_mutex_unlock(&machine.mutex);
    return &machine.info;
}

int64_t weft_machine_memory(void)
{
    const weft_machine *m = weft_machine_info();
    return m->memory_limit > 0 && m->memory_limit < m->memory_bytes ? m->memory_limit
                                                                    : m->memory_bytes;
}

const weft_told *weft_topology_told(void)
{
    weft_machine_info();
    return &machine.told;
}
