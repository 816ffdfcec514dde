/* net: checks of MPI, the launcher, the clock and the network. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"

/* ---- MPI ------------------------------------------------------------------------------------ */

enum { FUNNELED = 1, MULTIPLE = 3, PATIENCE = 30 /* seconds */ };

static struct {
    bool is_asked, is_good;
    int level;
    char text[200]; /* the library, or what went wrong */
} mpi;

extern char **environ;

/* The child is no rank of the job: it must not be taken for one. */
static void leave_the_job(void)
{
    static const char *const of_launchers[] = {"OMPI_",  "PMIX_", "PMI_",
                                               "SLURM_", "ORTE_", "PRTE_"};
    for (int i = 0; environ[i];) {
        bool is_one = false;
        for (size_t k = 0; k < sizeof of_launchers / sizeof *of_launchers; k++)
            is_one = is_one || strncmp(environ[i], of_launchers[k], strlen(of_launchers[k])) == 0;
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (strncmp(name, "OMPI_MCA_", 9) == 0)
            is_one = strstr(name, "_ess") || strstr(name, "orte");
        if (is_one)
            unsetenv(name);
        else
            i++;
    }
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 1);
}

/* By name: programs do not link MPI, the library does. Prints the level and the library's name. */
static _Noreturn void be_the_child(int out)
{
    int level = -1, length = 0;
    char name[8192] = "";
    leave_the_job();
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    const __auto_type start =
        (int (*)(int *, char ***, int, int *))dlsym(RTLD_DEFAULT, "MPI_Init_thread");
    const __auto_type version =
        (int (*)(char *, int *))dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    const __auto_type end = (int (*)(void))dlsym(RTLD_DEFAULT, "MPI_Finalize");
    if (!start || !version || !end || start(NULL, NULL, MULTIPLE, &level) != 0) _exit(1);
    version(name, &length);
    name[strcspn(name, ",\n")] = '\0';
    dprintf(STDOUT_FILENO, "\nLEVEL %d %.150s\n", level, name);
    end();
    _exit(0);
}

/* What the child says, until it ends or for so long. */
static void listen_to(int in, char *text, size_t bytes)
{
    size_t used = 0;
    time_t end = time(NULL) + PATIENCE;
    for (time_t now = time(NULL); now < end; now = time(NULL)) {
        struct pollfd one = {.fd = in, .events = POLLIN};
        const int is_ready = poll(&one, 1, (int)(end - now) * 1000);
        if (is_ready < 0 && errno == EINTR) continue;
        const ssize_t n = is_ready > 0 ? read(in, text + used, bytes - 1 - used) : 0;
        if (n <= 0) break;
        used += (size_t)n;
    }
    text[used] = '\0';
}

/* The first line with words in it: launchers frame what they say. */
static void first_words(const char *text, char *line, size_t bytes)
{
    while (*text && strspn(text, "-\n ") > 0)
        text += strspn(text, "-\n ");
    snprintf(line, bytes, "%.*s", (int)strcspn(text, "\n"), text);
}

static void take_words(const char *text, int status)
{
    char words[120];
    const char *at = strstr(text, "\nLEVEL ");
    mpi.is_good = at && sscanf(at, "\nLEVEL %d %150[^\n]", &mpi.level, mpi.text) == 2;
    if (mpi.is_good) return;
    first_words(text, words, sizeof words);
    if (WIFSIGNALED(status))
        snprintf(mpi.text, sizeof mpi.text, "MPI_Init was ended by %s%s%s",
                 WTERMSIG(status) == SIGKILL ? "this check, as it hung"
                                             : strsignal(WTERMSIG(status)),
                 *words ? ": " : "", words);
    else
        snprintf(mpi.text, sizeof mpi.text, "MPI_Init failed%s%s", *words ? ": " : "", words);
}

void doctor_mpi_joined(void)
{
    int length = 0;
    char name[8192] = "";
    const __auto_type level = (int (*)(int *))dlsym(RTLD_DEFAULT, "MPI_Query_thread");
    const __auto_type version =
        (int (*)(char *, int *))dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    mpi.is_asked = level && version && level(&mpi.level) == 0 && version(name, &length) == 0;
    mpi.is_good = mpi.is_asked;
    snprintf(mpi.text, sizeof mpi.text, "%.*s", (int)strcspn(name, ",\n"), name);
}

void doctor_mpi_probe(void)
{
    static char text[65536];
    int ends[2], status = 0;
    mpi.is_asked = true;
    if (!WEFT_HAS_MPI || pipe2(ends, O_CLOEXEC) != 0) return;
    const pid_t child = fork();
    if (child == 0) be_the_child(ends[1]);
    close(ends[1]);
    listen_to(ends[0], text, sizeof text);
    close(ends[0]);
    if (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        /* it has closed its end, or it hangs: a moment for the first */
        for (int i = 0; i < 100 && waitpid(child, &status, WNOHANG) == 0; i++)
            usleep(20000);
        if (kill(child, 0) == 0 && kill(child, SIGKILL) == 0) waitpid(child, &status, 0);
    }
    take_words(text, status);
}

verdict doctor_mpi(const doctor *d, finding *f)
{
    static const char *const levels[] = {"SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE"};
    (void)d;
    if (!WEFT_HAS_MPI)
        return doctor_say(
            f, DOCTOR_WARN,
            "this Weft was built without it: one process a run; install libopenmpi-dev "
            "and build again");
    if (!mpi.is_asked) return DOCTOR_NONE;
    if (!mpi.is_good)
        return doctor_say(f, DOCTOR_FAIL, "%s; reinstall MPI, or look at OMPI_MCA_ variables",
                          mpi.text);
    snprintf(f->fact, sizeof f->fact, "%.90s", mpi.text);
    if (mpi.level < FUNNELED || mpi.level > MULTIPLE)
        return doctor_say(f, DOCTOR_FAIL,
                          "%s grants thread level %d, and Weft needs MPI_THREAD_FUNNELED; use an "
                          "MPI built with threads",
                          mpi.text, mpi.level);
    return doctor_say(f, DOCTOR_OK, "%s, MPI_THREAD_%s", mpi.text, levels[mpi.level]);
}

/* ---- the launcher --------------------------------------------------------------------------- */

verdict doctor_launcher(const doctor *d, finding *f)
{
    const char *job = getenv("SLURM_JOB_ID");
    if (d->no_world) return doctor_say(f, DOCTOR_FAIL, "%s", d->no_world);
    if (d->world.n_processes > 1)
        return doctor_say(f, DOCTOR_OK, "%s: %d processes, %d on this host", d->world.launcher,
                          d->world.n_processes, d->world.n_host_processes);
    if (job && !getenv("SLURM_STEP_ID"))
        return doctor_say(f, DOCTOR_OK,
                          "one process in the script of Slurm job %.20s; for ranks on its nodes: "
                          "srun --mpi=pmix",
                          job);
    return doctor_say(f, DOCTOR_OK, "one process; ranks are its threads");
}

/* ---- clock and network ---------------------------------------------------------------------- */

verdict doctor_clock(const doctor *d, finding *f)
{
    struct timex t = {0};
    (void)d;
    const int state = adjtimex(&t);
    if (state < 0) return DOCTOR_NONE; /* not ours to ask, as in some containers */
    if (state == TIME_ERROR || (t.status & STA_UNSYNC))
        return doctor_say(f, DOCTOR_WARN,
                          "follows no time server: times in logs of several hosts will not fit; "
                          "run chrony or systemd-timesyncd");
    return doctor_say(f, DOCTOR_OK, "synchronised, within %.1f ms", 1e-3 * (double)t.maxerror);
}

verdict doctor_host_name(const doctor *d, finding *f)
{
    char name[256] = "";
    struct addrinfo *found = NULL;
    (void)d;
    gethostname(name, sizeof name - 1);
    const int failure = getaddrinfo(name, NULL, NULL, &found);
    if (found) freeaddrinfo(found);
    if (failure == 0) return doctor_say(f, DOCTOR_OK, "%.100s has an address", name);
    return doctor_say(f, DOCTOR_WARN,
                      "%.100s has no address (%s), and other hosts may not find it; put it into "
                      "/etc/hosts or the name server",
                      name, gai_strerror(failure));
}

static bool is_bridge_of_containers(const char *name)
{
    return strncmp(name, "docker", 6) == 0 || strncmp(name, "virbr", 5) == 0 ||
           strncmp(name, "podman", 6) == 0;
}

verdict doctor_network(const doctor *d, finding *f)
{
    char list[200] = "", bridge[IF_NAMESIZE] = "";
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return DOCTOR_NONE;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char address[64];
        const size_t used = strlen(list);
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
        if (!(i->ifa_flags & IFF_RUNNING) || (i->ifa_flags & IFF_LOOPBACK)) continue;
        getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), address, sizeof address, NULL, 0,
                    NI_NUMERICHOST);
        snprintf(list + used, sizeof list - used, "%s%s %s", used ? ", " : "", i->ifa_name,
                 address);
        if (is_bridge_of_containers(i->ifa_name))
            snprintf(bridge, sizeof bridge, "%.15s", i->ifa_name);
    }
    freeifaddrs(all);
    if (!*list)
        return doctor_say(
            f, d->world.n_processes > d->world.n_host_processes ? DOCTOR_FAIL : DOCTOR_OK,
            "no interface is up but the loopback");
    if (*bridge)
        return doctor_say(f, DOCTOR_WARN,
                          "%s; %s has the same address on every host: mpirun --mca "
                          "btl_tcp_if_exclude lo,%s",
                          list, bridge, bridge);
    return doctor_say(f, DOCTOR_OK, "%s", list);
}

/* ---- between processes ---------------------------------------------------------------------- */

verdict doctor_near_memory(const doctor *d, finding *f)
{
    if (!d->apart || d->world.n_host_processes < 2) return DOCTOR_NONE;
    if (!*d->apart) return doctor_say(f, DOCTOR_OK, "the processes of this host see each other's");
    return doctor_say(f, DOCTOR_WARN,
                      "%s, so each process keeps copies of its own; limits are kernel.shmmax and "
                      "kernel.shmall",
                      d->apart);
}

verdict doctor_links(const doctor *d, finding *f)
{
    if (!(d->link.bytes_per_s > 0)) return DOCTOR_NONE;
    return doctor_say(f, DOCTOR_OK,
                      "%s, all ranks on one axis: --link %s (weft info --links: by axis)",
                      d->link.is_between_hosts ? "between hosts" : "within a host", d->link_text);
}
