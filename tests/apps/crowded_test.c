/* crowded_test: far more ranks than cores, beside programs that never let go of a core: training goes on to its end,
 * with one rank's losses, and the watch blames nobody.
 *
 * crowded_test --many: 16 and 32 ranks, as processes too.
 */
#include "jobs.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"

enum { BUSY = 2, STEPS = 3 };
static pid_t busy[BUSY];

static void begin_busy_loops(void)
{
    for (int i = 0; i < BUSY; i++)
        if ((busy[i] = fork()) == 0)
            for (volatile unsigned turn = 0; getppid() != 1; turn++)
                continue;
}

static void end_busy_loops(void)
{
    for (int i = 0; i < BUSY; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
}

/* The last loss that a run prints; NaN: none. */
static double last_loss(const job_run *job)
{
    double loss = NAN, found;
    int step;
    for (const char *line = job->text; line != NULL && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "%d %lf", &step, &found) == 2 && step == STEPS) loss = found;
    }
    return loss;
}

static double train(const char *launcher, const char *mesh, const char *layout)
{
    static job_run job;
    snprintf(job.line, sizeof job.line,
             "%s " WEFT_TEST_BIN "/gpt train --layers 2 --width 48 --heads 4 --batch 32 --seq 16 "
             "--dropout 0 --steps 3 --every 1 --fresh --run /tmp/weft-crowded --lanes 1 "
             "--mesh %s --layout %s 2>&1",
             launcher, mesh, layout);
    jobs_run_one(&job);
    const double loss = last_loss(&job);
    CHECK_EQ_INT(job.status, 0);
    CHECK(strstr(job.text, "hangs") == NULL && strstr(job.text, "Exit status") == NULL);
    if (job.status != 0 || isnan(loss)) fprintf(stderr, "%s\n%s\n", job.line, job.text);
    return loss;
}

static void check_crowd(const char *launcher, int n, const char *layout)
{
    char mesh[32];
    const double one = train("", "data:1", "batch:data");
    begin_busy_loops();
    snprintf(mesh, sizeof mesh, "data:%d,model:2", n / 2);
    const double many = train(launcher, mesh, layout);
    end_busy_loops();
    CHECK_CLOSE(one, many, 1e-4);
}

static void test_16_ranks_of_one_process_beside_busy_programs(void)
{
    check_crowd("", 16, "batch:data,hidden:model,heads:model");
}

static void test_16_and_32_ranks_as_processes(void)
{
    check_crowd("", 32, "batch:data,hidden:model,heads:model,vocab:model");
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_crowd(JOBS_MPIRUN "-n 16", 16, "batch:data,hidden:model,heads:model");
    check_crowd(JOBS_MPIRUN "-n 32", 32, "batch:data,hidden:model,heads:model,vocab:model");
}

int main(int argc, char **argv)
{
    RUN(test_16_ranks_of_one_process_beside_busy_programs);
    if (argc > 1 && strcmp(argv[1], "--many") == 0) RUN(test_16_and_32_ranks_as_processes);
    return weft_test_report();
}
