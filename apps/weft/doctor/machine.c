/* machine: checks of processor, memory, kernel and limits of the process. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"
#include "weft/number.h"

#define MIB 1048576.0
#define GIB 1073741824.0

/* ---- what this is --------------------------------------------------------------------------- */

verdict doctor_version(const doctor *d, finding *f)
{
    (void)d;
    snprintf(f->fact, sizeof f->fact, "%s", WEFT_VERSION);
    return doctor_say(f, DOCTOR_OK, "weft %s", WEFT_VERSION);
}

verdict doctor_kernel(const doctor *d, finding *f)
{
    struct utsname u;
    (void)d;
    if (uname(&u) != 0) return doctor_say(f, DOCTOR_WARN, "uname does not answer");
    snprintf(f->fact, sizeof f->fact, "%.60s %.30s", u.release, u.machine);
    const verdict v = atoi(u.release) < 4 ? DOCTOR_WARN : DOCTOR_OK;
    return doctor_say(f, v, "Linux %.60s %.30s%s", u.release, u.machine,
                      v == DOCTOR_WARN ? "; Weft is tested on 5.10 and later" : "");
}

/* ---- processor ------------------------------------------------------------------------------ */

verdict doctor_cores(const doctor *d, finding *f)
{
    const weft_machine *m = weft_machine_info();
    char limit[64] = "", threads[64] = "";
    (void)d;
    if (m->cpu_quota > 0)
        snprintf(limit, sizeof limit, ", and time for %.3g of them", m->cpu_quota);
    if (m->n_threads > m->n_cores)
        snprintf(threads, sizeof threads, ", with %d hardware threads", m->n_threads);
    snprintf(f->fact, sizeof f->fact, "%d of %d%s", m->n_cores, m->host_cores, limit);
    if (m->cpu_quota > 0 && m->cpu_quota < 1)
        return doctor_say(f, DOCTOR_WARN, "%d of the host's %d%s; ask for at least one", m->n_cores,
                          m->host_cores, limit);
    return doctor_say(f, DOCTOR_OK, "%d of the host's %d%s%s", m->n_cores, m->host_cores, threads,
                      limit);
}

verdict doctor_binding(const doctor *d, finding *f)
{
    const weft_machine *m = weft_machine_info();
    if (strcmp(d->world.launcher, "alone") == 0) return DOCTOR_NONE;
    if (m->n_cores == m->host_cores) return doctor_say(f, DOCTOR_OK, "not bound to cores");
    return doctor_say(f, DOCTOR_OK, "bound to %d of %d cores", m->n_cores, m->host_cores);
}

/* What a run would do with these cores, and cannot do well. */
verdict doctor_lanes(const doctor *d, finding *f)
{
    if (d->no_world) return DOCTOR_NONE;
    if (*d->no_lanes) return doctor_say(f, DOCTOR_FAIL, "%.350s", d->no_lanes);
    if (*d->crowding) return doctor_say(f, DOCTOR_WARN, "%.350s", d->crowding);
    return doctor_say(f, DOCTOR_OK, "%d a rank, each with a core of its own", d->n_lanes);
}

verdict doctor_smt(const doctor *d, finding *f)
{
    double active;
    (void)d;
    if (!doctor_read_number("/sys/devices/system/cpu/smt/active", &active)) return DOCTOR_NONE;
    return doctor_say(f, DOCTOR_OK,
                      active > 0 ? "several threads share a core; Weft counts cores"
                                 : "off: one thread a core");
}

verdict doctor_governor(const doctor *d, finding *f)
{
    char name[64];
    (void)d;
    if (!doctor_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", name, sizeof name))
        return DOCTOR_NONE;
    snprintf(f->fact, sizeof f->fact, "%s", name);
    if (strcmp(name, "powersave") == 0)
        return doctor_say(f, DOCTOR_WARN,
                          "powersave may keep the clock of the cores low: cpupower frequency-set "
                          "-g performance");
    return doctor_say(f, DOCTOR_OK, "%s", name);
}

verdict doctor_blas(const doctor *d, finding *f)
{
    static const char *const old[] = {"Prescott", "Core2",   "Penryn",    "Dunnington", "Nehalem",
                                      "Atom",     "Opteron", "Barcelona", "Sandybridge"};
    const weft_machine *m = weft_machine_info();
    (void)d;
    snprintf(f->fact, sizeof f->fact, "%.40s %.40s", m->blas, m->blas_kernel);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcasecmp(m->blas_kernel, old[i]) == 0 &&
            doctor_line_has("/proc/cpuinfo", "flags", " avx2"))
            return doctor_say(f, DOCTOR_WARN,
                              "%s runs its kernel for %s on %s, which could do twice as much: "
                              "unset OPENBLAS_CORETYPE, or set it to Haswell",
                              m->blas, m->blas_kernel, m->processor);
    return doctor_say(f, DOCTOR_OK, "%s, kernel %s, on %s", m->blas, m->blas_kernel, m->processor);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* A line "Name:  123 kB" of /proc/meminfo, in bytes. */
static double memory_line(const char *name)
{
    return doctor_line_number("/proc/meminfo", name) * 1024;
}

verdict doctor_memory(const doctor *d, finding *f)
{
    const double total = memory_line("MemTotal:"), free_now = memory_line("MemAvailable:");
    const double limit = (double)weft_machine_info()->memory_limit;
    const double most = limit > 0 && limit < total ? limit : total;
    char text[64] = "";
    (void)d;
    if (most < total) snprintf(text, sizeof text, "; this job may use %.1f GiB", most / GIB);
    snprintf(f->fact, sizeof f->fact, "%.0f GiB%s", total / GIB, text);
    const double usable = free_now < most ? free_now : most;
    if (usable < 64 * MIB)
        return doctor_say(f, DOCTOR_FAIL, "%.0f MiB of %.1f GiB are free%s; end other programs",
                          free_now / MIB, total / GIB, text);
    if (usable < 512 * MIB || free_now < 0.1 * total)
        return doctor_say(f, DOCTOR_WARN,
                          "only %.1f of %.1f GiB are free%s; gpt train --dry-run says what a run "
                          "needs",
                          free_now / GIB, total / GIB, text);
    return doctor_say(f, DOCTOR_OK, "%.1f of %.1f GiB are free%s", free_now / GIB, total / GIB,
                      text);
}

verdict doctor_overcommit(const doctor *d, finding *f)
{
    double kind;
    (void)d;
    if (!doctor_read_number("/proc/sys/vm/overcommit_memory", &kind)) return DOCTOR_NONE;
    if (kind < 2) return doctor_say(f, DOCTOR_OK, "not strict");
    return doctor_say(f, DOCTOR_WARN,
                      "strict: memory may be refused while it is free; sysctl "
                      "vm.overcommit_memory=0");
}

verdict doctor_huge_pages(const doctor *d, finding *f)
{
    char kind[64];
    (void)d;
    if (!doctor_read("/sys/kernel/mm/transparent_hugepage/enabled", kind, sizeof kind))
        return DOCTOR_NONE;
    if (!strstr(kind, "[never]")) return doctor_say(f, DOCTOR_OK, "%s", kind);
    return doctor_say(f, DOCTOR_WARN,
                      "never: large arrays are slower; echo madvise > "
                      "/sys/kernel/mm/transparent_hugepage/enabled");
}

verdict doctor_numa(const doctor *d, finding *f)
{
    double moving = 0;
    const bool has_nodes = access("/sys/devices/system/node/node1", F_OK) == 0;
    (void)d;
    (void)doctor_read_number("/proc/sys/kernel/numa_balancing", &moving);
    if (!has_nodes) return doctor_say(f, DOCTOR_OK, "one node");
    if (moving > 0)
        return doctor_say(f, DOCTOR_WARN,
                          "the kernel moves memory between nodes while steps run; steps take "
                          "steadier times with sysctl kernel.numa_balancing=0");
    return doctor_say(f, DOCTOR_OK, "several nodes, memory stays where it is");
}

/* Open MPI's ranks of one host exchange through files here. */
verdict doctor_shared_memory(const doctor *d, finding *f)
{
    struct statvfs facts;
    const int n = d->world.n_host_processes;
    const char *const way_out = "mount -o remount,size=1G /dev/shm (docker run --shm-size=1g), or "
                                "mpirun --mca btl self,tcp";
    if (statvfs("/dev/shm", &facts) != 0)
        return doctor_say(f, DOCTOR_WARN, "is not there: ranks of one host exchange by TCP");
    const double bytes = (double)facts.f_bavail * (double)facts.f_frsize;
    if (bytes < 8 * MIB * n)
        return doctor_say(f, n > 1 ? DOCTOR_FAIL : DOCTOR_WARN,
                          "has %.0f MiB free, and Open MPI wants about 8 MiB a process: %s",
                          bytes / MIB, way_out);
    return doctor_say(f, DOCTOR_OK, "%.0f MiB free", bytes / MIB);
}

/* ---- limits --------------------------------------------------------------------------------- */

typedef struct limit {
    int resource;
    char option;          /* of the shell's ulimit */
    double least, wanted; /* below the first it fails, below the second it warns */
    double unit;
    const char *unit_name, *what;
} limit;

static verdict check_limit(const limit *l, finding *f)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)l->resource, &now) != 0) return DOCTOR_NONE;
    if (now.rlim_cur == RLIM_INFINITY) return doctor_say(f, DOCTOR_OK, "no limit");
    const double is = (double)now.rlim_cur;
    const verdict v = is < l->least ? DOCTOR_FAIL : is < l->wanted ? DOCTOR_WARN : DOCTOR_OK;
    if (v == DOCTOR_OK) return doctor_say(f, v, "%.0f%s", is / l->unit, l->unit_name);
    return doctor_say(f, v, "%.0f%s %s; at least %.0f%s (ulimit -%c)%s", is / l->unit, l->unit_name,
                      l->what, l->wanted / l->unit, l->unit_name, l->option,
                      (double)now.rlim_max < l->wanted ? ", which an administrator has to allow"
                                                       : "");
}

verdict doctor_limit_memory(const doctor *d, finding *f)
{
    (void)d;
    return check_limit(&(limit){RLIMIT_AS, 'v', GIB, memory_line("MemTotal:"), MIB, " MiB",
                                "of address space is less than the machine's memory"},
                       f);
}

verdict doctor_limit_files(const doctor *d, finding *f)
{
    (void)d;
    return check_limit(&(limit){RLIMIT_NOFILE, 'n', 64, 1024, 1, "",
                                "open files are few: sockets to other ranks count too"},
                       f);
}

/* Of this user (not of root), this control group, or the system, the smallest. */
verdict doctor_limit_threads(const doctor *d, finding *f)
{
    const weft_machine *m = weft_machine_info();
    const int64_t is = m->threads_limit, lanes = (int64_t)m->host_cores + d->world.n_host_processes;
    const int64_t least = 32 + lanes, wanted = 512 + 2 * lanes;
    if (is == 0) return doctor_say(f, DOCTOR_OK, "no limit");
    if (is >= wanted)
        return doctor_say(f, DOCTOR_OK, "%lld (%s)", (long long)is, m->threads_limit_name);
    return doctor_say(f, is < least ? DOCTOR_FAIL : DOCTOR_WARN,
                      "%lld threads and processes (%s) are few; raise that to %lld at least",
                      (long long)is, m->threads_limit_name, (long long)wanted);
}

verdict doctor_limit_stack(const doctor *d, finding *f)
{
    (void)d;
    return check_limit(
        &(limit){RLIMIT_STACK, 's', 256 * 1024.0, 2 * MIB, 1024, " KiB", "of stack are few"}, f);
}

verdict doctor_limit_file_bytes(const doctor *d, finding *f)
{
    (void)d;
    return check_limit(&(limit){RLIMIT_FSIZE, 'f', 128 * MIB, 64 * GIB, MIB, " MiB",
                                "is the longest file that may be written, and checkpoints are "
                                "longer"},
                       f);
}

/* Only adapters that read memory by themselves want it locked. */
verdict doctor_limit_locked(const doctor *d, finding *f)
{
    (void)d;
    if (access("/sys/class/infiniband", F_OK) != 0) return DOCTOR_NONE;
    return check_limit(&(limit){RLIMIT_MEMLOCK, 'l', 0, 1024 * MIB, MIB, " MiB",
                                "may be locked, and InfiniBand wants what it sends locked"},
                       f);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

static int count_gpus(void)
{
    int n = 0;
    char path[64];
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += access(path, F_OK) == 0;
    }
    return n;
}

static void describe_cuda(char *text, size_t room)
{
    for (int d = 0; d < WEFT_DEVICES && weft_devices[d]; d++)
        if (strcmp(weft_devices[d]->name, "cuda") == 0 && weft_devices[d]->describe)
            weft_devices[d]->describe(text, room);
}

/* What weft_device_look says is wrong matters where there is a GPU, which stays idle then. */
verdict doctor_gpu(const doctor *d, finding *f)
{
    const int n = count_gpus();
    char text[240] = "";
    weft_error why = {.rank = -1};
    (void)d;
    const bool is_there = weft_device_look("cuda", &why) == WEFT_OK;
    if (is_there) describe_cuda(text, sizeof text);
    snprintf(f->fact, sizeof f->fact, "%d GPUs%.80s%s", n, *text ? ", " : "", text);
    if (is_there) return doctor_say(f, DOCTOR_OK, "%s", text);
    if (n == 0) return doctor_say(f, DOCTOR_OK, "none here, and none needed");
    return doctor_say(f, DOCTOR_WARN, "%d NVIDIA GPU%s, which stay%s idle: %.280s", n,
                      n == 1 ? "" : "s", n == 1 ? "s" : "", why.message);
}
