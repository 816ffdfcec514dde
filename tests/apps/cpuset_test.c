/* cpuset_test: the control group of a training gives it fewer cores while it runs. It goes on with what is left, and its
 * numbers stay the same. A program that is started there then has as many lanes as cores are left.
 */
#include "training.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>

#define INFO WEFT_TEST_BIN "/weft info --json"

static char group[128]; /* the folder of a control group of our own */
static char why[400];   /* there is none */

static bool put(const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", group, file);
    FILE *to = fopen(path, "we");
    if (to == NULL) return false;
    const bool is_written = fputs(text, to) >= 0;
    return fclose(to) == 0 && is_written;
}

static void leave_group(void)
{
    for (int i = 0; i < 200 && group[0] && rmdir(group) != 0 && errno == EBUSY; i++)
        usleep(10000); /* a process that has ended may still be in it */
}

/* In the group of all cores at `mount`. The older kind wants to be told of memory first; the newer has its files only where the
 * group above hands cores out. */
static bool make_at(const char *mount, const char *cores)
{
    snprintf(group, sizeof group, "%s/weft-cpuset-%d", mount, (int)getpid());
    if (mkdir(group, 0755) != 0) {
        snprintf(why, sizeof why, "no group can be made in %s: %s", mount, strerror(errno));
        group[0] = '\0';
        return false;
    }
    (void)!put("cpuset.mems", "0");
    if (put("cpuset.cpus", cores)) return true;
    snprintf(why, sizeof why, "a group in %s has no cpuset that can be written", mount);
    leave_group();
    group[0] = '\0';
    return false;
}

/* The first two cores that we may use: all, and the one that is left. */
static bool make_group(char *all, char *one, size_t bytes)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/unified",
                                         "/sys/fs/cgroup"};
    cpu_set_t cores;
    int n = 0;
    CPU_ZERO(&cores);
    for (int i = 0; sched_getaffinity(0, sizeof cores, &cores) == 0 && i < CPU_SETSIZE && n < 2;
         i++) {
        if (!CPU_ISSET(i, &cores)) continue;
        const size_t used = n++ > 0 ? strlen(all) : 0;
        snprintf(all + used, bytes - used, "%s%d", n > 1 ? "," : "", i);
        if (n == 1) snprintf(one, bytes, "%d", i);
    }
    snprintf(why, sizeof why, "there is one core");
    for (size_t i = 0; n == 2 && i < sizeof mounts / sizeof *mounts; i++)
        if (make_at(mounts[i], all)) return true;
    return false;
}

static int n_cores_of(pid_t process)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return sched_getaffinity(process, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : -1;
}

static bool join(pid_t process)
{
    char text[24];
    snprintf(text, sizeof text, "%d", (int)process);
    return put("cgroup.procs", text);
}

/* Another training, on the one core alone, has the same numbers; both are at an end in time. */
static void check_that_it_goes_on(const char *all, const char *one, const char *launcher,
                                  const char *name, int n_before)
{
    char text[64], there[TRAINING_TEXT], path[160];
    CHECK(put("cpuset.cpus", all));
    const pid_t child = training_start(launcher, name, "--steps 60");
    CHECK(join(child));
    CHECK(training_await(name, 3));
    CHECK_EQ_INT(n_cores_of(child), n_before);
    CHECK(put("cpuset.cpus", one));
    CHECK_EQ_INT(n_cores_of(child), 1);
    CHECK_EQ_INT(training_wait(child), 0);
    snprintf(text, sizeof text, "alone-%s", name);
    CHECK_EQ_INT(training_run("", text, "--steps 60 --lanes 1")->status, 0);
    CHECK(training_check(name, text, 60));
    /* It has nothing to complain of, and a program that begins there finds one core. */
    snprintf(path, sizeof path, "%s/%s.txt", folder, name);
    snprintf(there, sizeof there, "cat %s; echo $$ >%s/cgroup.procs && exec " INFO, path, group);
    snprintf(path, sizeof path, "%s/line.sh", folder);
    FILE *file = fopen(path, "we");
    if (CHECK(file != NULL)) CHECK(fputs(there, file) >= 0 && fclose(file) == 0);
    snprintf(there, sizeof there, "sh %s", path);
    const command_result r = command_run_all(there);
    CHECK_EQ_INT(r.status, 0);
    CHECK(strstr(r.text, "hangs") == NULL && strstr(r.text, "rank 0 (") == NULL);
    CHECK_TEXT(r.text, "\"cores\": 1");
    CHECK_TEXT(r.text, "\"lanes\": 1");
}

static void test_a_training_goes_on_with_fewer_cores(void)
{
    char all[32] = "", one[32] = "";
    if (!make_group(all, one, sizeof all)) {
        weft_test_skip(why);
        return;
    }
    check_that_it_goes_on(all, one, "", "found", 2);
    check_that_it_goes_on(all, one, "WEFT_LANES=4", "four", 2);
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "cpuset"))) {
        RUN(test_a_training_goes_on_with_fewer_cores);
        leave_group();
        text_folder_close();
    }
    return weft_test_report();
}
