/* limits_test: limits of control groups and of threads, from files as kernels write them.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "cores.h"
#include "test.h"

static char root[64];

/* A file of the other machine, its folders too. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    if (!CHECK(file != NULL)) return;
    fputs(text, file);
    fclose(file);
}

static void open_root(void)
{
    snprintf(root, sizeof root, "/tmp/weft_host_XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static void close_root(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -r %s", root);
    CHECK(system(line) == 0);
}

static void test_no_files_no_limit(void)
{
    const char *what = "";
    open_root();
    for (int i = 0; i < WEFT_LIMITED; i++)
        CHECK(weft_group_limit(root, (weft_limited)i, NULL) == 0);
    if (getuid() == 0) CHECK_EQ_INT(weft_threads_allowed(root, &what), 0);
    put("/proc/self/cgroup", "this is no list of groups\n::\n0:\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 0);
    close_root();
}

static void test_a_group_behind_a_line_of_any_length(void)
{
    static const int lengths[] = {4000, 8190, 8191, 8192, 16383, 100000};
    static char text[100100];
    open_root();
    put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++)
        for (int is_last = 0; is_last < 2; is_last++) {
            memset(text, 'x', (size_t)lengths[i]);
            snprintf(text + lengths[i], sizeof text - (size_t)lengths[i], ":/other\n0::/job%s",
                     is_last ? "" : "\n1:pids:/\n");
            put("/proc/self/cgroup", text);
            CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 1.5);
        }
    close_root();
}

static void test_newer_groups(void)
{
    uint64_t group = 0, other = 0;
    open_root();
    put("/proc/self/cgroup", "0::/user/job\n");
    put("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 0);
    put("/sys/fs/cgroup/user/cpu.max", "150000 100000\n"); /* the one above limits */
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, &group) == 1.5);
    put("/sys/fs/cgroup/user/job/cpu.max", "125000 50000\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, &other) == 1.5);
    CHECK(group != 0 && group == other);
    put("/sys/fs/cgroup/user/job/cpu.max", "50000 100000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, &other) == 0.5);
    CHECK(group != other);
    put("/sys/fs/cgroup/user/job/memory.max", "1073741824\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_MEMORY, NULL) == 1073741824.0);
    close_root();
}

static void test_older_groups(void)
{
    open_root();
    put("/proc/self/cgroup",
        "5:memory:/\n4:cpuset:/x\n3:cpuacct,cpu:/docker/abc\n1:name=systemd:/\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 0);
    put("/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "75000\n");
    put("/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "50000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 1.5);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    CHECK(weft_group_limit(root, WEFT_LIMITED_MEMORY, NULL) == 0);
    close_root();
}

/* In a container: the path is the host's, and the folder of the mount is the group's own. */
static void test_a_container(void)
{
    open_root();
    put("/proc/self/cgroup", "3:cpu:/docker/abc\n0::/docker/abc\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 3);
    put("/sys/fs/cgroup/unified/cpu.max", "200000 100000\n"); /* both kinds: the smaller */
    CHECK(weft_group_limit(root, WEFT_LIMITED_CPU, NULL) == 2);
    close_root();
}

static void test_threads(void)
{
    const char *what = "";
    open_root();
    put("/proc/sys/kernel/threads-max", "1000\n");
    put("/proc/sys/kernel/pid_max", "32768\n");
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/pids.max", "max\n");
    if (getuid() == 0) {
        CHECK_EQ_INT(weft_threads_allowed(root, &what), 1000);
        CHECK_TEXT(what, "threads-max");
    }
    put("/sys/fs/cgroup/a/pids.max", "50\n");
    CHECK_EQ_INT(weft_threads_allowed(root, &what), 50);
    CHECK_TEXT(what, "pids.max");
    close_root();
}

int main(void)
{
    RUN(test_no_files_no_limit);
    RUN(test_a_group_behind_a_line_of_any_length);
    RUN(test_newer_groups);
    RUN(test_older_groups);
    RUN(test_a_container);
    RUN(test_threads);
    return weft_test_report();
}
