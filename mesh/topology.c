/* topology: the machine as found: processor, cores that this process may use, caches, memory, BLAS.
 */
#include "mesh_internal.h"

#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    bool is_read;
    weft_machine info;
    char processor[128];
    int on_machine; /* cores */
    int quota;      /* cores that the container's time limit amounts to; 0: none */
} machine = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Containers are often limited in time, not in cores: "200000 100000" is 2 cores, "max 100000" no
 * limit. */
static int read_quota(void)
{
    long long quota = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file != NULL) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2) quota = -1;
        fclose(file);
    } else {
        static const char *const paths[] = {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                                            "/sys/fs/cgroup/cpu/cpu.cfs_period_us"};
        long long *values[] = {&quota, &period};
        for (int i = 0; i < 2; i++) {
            file = fopen(paths[i], "r");
            if (file == NULL) return 0;
            if (fscanf(file, "%lld", values[i]) != 1) *values[i] = -1;
            fclose(file);
        }
    }
    if (quota <= 0 || period <= 0 || quota / period > 1 << 20) return 0;
    return (int)((quota + period - 1) / period);
}

/* Cores in a set of hardware threads: two threads of one core share its arithmetic. */
static int count_cores(hwloc_topology_t topology, hwloc_const_cpuset_t set)
{
    int cores = 0, n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    for (int i = 0; i < n; i++)
        cores += hwloc_bitmap_intersects(hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, i)->cpuset,
                                         set);
    return cores > 0 ? cores : hwloc_bitmap_weight(set);
}

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
        machine.info.n_cores = count_cores(topology, mask);
        machine.on_machine = count_cores(topology, all);
        machine.info.l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
        machine.info.l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
        read_processor(topology);
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(topology);
}

static void read_machine(void)
{
    weft_blas_start();
    snprintf(machine.processor, sizeof machine.processor, "unknown");
    machine.is_read = weft_has_room(HWLOC_ROOM);
    if (machine.is_read) read_topology();
    machine.quota = read_quota();
    /* Without a topology one core is certain; without room for it, until the next call. */
    if (machine.info.n_cores < 1) machine.info.n_cores = 1;
    if (machine.on_machine < machine.info.n_cores) machine.on_machine = machine.info.n_cores;
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

/* Processes of one host share its cores evenly. A process that the launcher bound has its share
 * already; to a part that others share (a socket), the even share of the machine is the smaller
 * number. */
int weft_cores_shared(int in_mask, int on_machine, int quota, int n_host_processes)
{
    int cores = in_mask, processes = n_host_processes > 1 ? n_host_processes : 1;
    if (on_machine / processes < cores) cores = on_machine / processes;
    if (quota > 0 && quota / processes < cores) cores = quota / processes;
    return cores > 1 ? cores : 1;
}

int weft_topology_cores(int n_host_processes)
{
    weft_machine_info();
    return weft_cores_shared(machine.info.n_cores, machine.on_machine, machine.quota,
                             n_host_processes);
}
