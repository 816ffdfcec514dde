/* mismatch_test: one rank that does not run the same as the others ends the job with status 73 and
 * a sentence that names both sides, and no rank is ever given a wrong number.
 *
 * 14 ways to differ, on threads and over MPI. mismatch_test --all: at each of 20 call sites, with a
 * table of figures.
 */
#include "jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

enum { SITES = 20, KINDS = 14, ENGINES = 3, BESIDE = 4 };

typedef struct engine {
    const char *name, *format; /* kind, site */
    bool has_processes;
} engine;

static const engine engines[ENGINES] = {
    {"4 threads", "timeout -k 1 600 " JOBS_MISBEHAVE " %s %d --threads 4 --patience 3 2>&1", false},
    {"2 processes", JOBS_MPIRUN "-n 2 " JOBS_MISBEHAVE " %s %d --patience 3 2>&1", true},
    {"4 processes", JOBS_MPIRUN "-n 4 " JOBS_MISBEHAVE " %s %d --patience 3 2>&1", true},
};

/* The last four ask for several processes: ranks that are threads share one program and one
 * command line. */
static const char *const kinds[KINDS] = {"op",     "count",  "dtype",   "combine", "axis",
                                         "order",  "skip",   "extra",   "behind",  "steps",
                                         "layout", "config", "program", "number"};
enum { OF_PROCESSES = 10 };

typedef struct figures {
    int n, n_reported, n_harmless, n_wrong, n_other;
    double slowest;
} figures;

/* ---- one run --------------------------------------------------------------------------------- */

static bool names_both(const char *report)
{
    return strstr(report, "rank 1") && (strstr(report, "rank 0") || strstr(report, "rank 2") ||
                                        strstr(report, "rank 3") || strstr(report, "ranks "));
}

/* Two calls of groups that have no rank in common with those that notice may be swapped: nothing is
 * wrong then, and all numbers are right. A rank that is a thread cannot leave; it does nothing. */
static bool is_as_expected(const job_run *job, const char *kind, const engine *e)
{
    const bool is_done = job->status == 0 && strstr(job->text, "misbehave: done");
    if (strcmp(kind, "order") == 0 && is_done) return true;
    if (strcmp(kind, "steps") == 0 && !e->has_processes)
        return job->status == 72 && names_both(job->report);
    return job->status == 73 && names_both(job->report);
}

static void count_run(const job_run *job, const char *kind, const engine *e, figures *f)
{
    const bool is_good = is_as_expected(job, kind, e);
    f->n++;
    f->n_wrong += strstr(job->text, "WRONG") != NULL;
    f->n_other += !is_good;
    f->n_harmless += job->status == 0;
    f->n_reported += is_good && job->status != 0;
    if (job->said > f->slowest) f->slowest = job->said;
    if (is_good && !strstr(job->text, "WRONG")) return;
    fprintf(stderr, "%s: status %d after %.1f s\n%.3000s\n", job->line, job->status, job->seconds,
            job->text);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int kinds_of(const engine *e)
{
    return e->has_processes ? KINDS : OF_PROCESSES;
}

/* n sites of every kind, from `first` on. */
static void run_engine(const engine *e, int n_sites, bool is_printed)
{
    job_run *jobs = calloc((size_t)KINDS * SITES, sizeof *jobs);
    const int n_kinds = kinds_of(e);
    if (!CHECK(jobs != NULL)) return;
    for (int k = 0; k < n_kinds; k++)
        for (int s = 0; s < n_sites; s++)
            snprintf(jobs[k * n_sites + s].line, sizeof jobs->line, e->format, kinds[k],
                     n_sites == SITES ? s : 3 * k % SITES);
    jobs_run(jobs, n_kinds * n_sites, BESIDE);
    for (int k = 0; k < n_kinds; k++) {
        figures f = {0};
        for (int s = 0; s < n_sites; s++)
            count_run(&jobs[k * n_sites + s], kinds[k], e, &f);
        CHECK_EQ_INT(f.n_other, 0);
        CHECK_EQ_INT(f.n_wrong, 0);
        if (is_printed)
            printf(
                "%-12s %-8s %3d tried %3d reported %3d without effect %3d other %3d wrong numbers  "
                "slowest %.2f s\n",
                e->name, kinds[k], f.n, f.n_reported, f.n_harmless, f.n_other, f.n_wrong,
                f.slowest);
    }
    free(jobs);
}

static void test_ranks_that_are_threads(void)
{
    run_engine(&engines[0], 1, false);
}

static void test_ranks_that_are_processes(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    run_engine(&engines[1], 1, false);
    run_engine(&engines[2], 1, false);
}

static void test_at_every_call_site(void)
{
    for (int e = 0; e < ENGINES; e++)
        if (!engines[e].has_processes || WEFT_TEST_MPIEXEC[0] != '\0')
            run_engine(&engines[e], SITES, true);
}

/* ---- another build --------------------------------------------------------------------------- */

/* The linker's mark: a note with name "GNU" of 4 bytes, 20 bytes of data, type 3. */
static char *find_mark(char *image, size_t bytes)
{
    static const char head[16] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    char *found = memmem(image, bytes, head, sizeof head);
    return found ? found + sizeof head : NULL;
}

static bool copy_with_other_mark(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char *image = NULL, *mark = NULL;
    long bytes = 0;
    if (in && fseek(in, 0, SEEK_END) == 0) bytes = ftell(in);
    if (bytes > 0) image = malloc((size_t)bytes);
    if (image) rewind(in);
    if (image && fread(image, 1, (size_t)bytes, in) == (size_t)bytes)
        mark = find_mark(image, (size_t)bytes);
    if (mark) mark[7] ^= 1;
    const bool is_written = mark && out && fwrite(image, 1, (size_t)bytes, out) == (size_t)bytes;
    free(image);
    if (in) fclose(in);
    if (out) fclose(out);
    return is_written && chmod(to, 0755) == 0;
}

static void test_another_build_is_refused(void)
{
    static job_run job;
    char folder[] = "/tmp/weft-mismatch-XXXXXX", copy[64];
    if (WEFT_TEST_MPIEXEC[0] == '\0' || !CHECK(mkdtemp(folder) != NULL)) return;
    snprintf(copy, sizeof copy, "%s/misbehave", folder);
    if (CHECK(copy_with_other_mark(JOBS_MISBEHAVE, copy))) {
        snprintf(job.line, sizeof job.line,
                 JOBS_MPIRUN "-n 1 " JOBS_MISBEHAVE " none 0 : -n 1 %s none 0 2>&1", copy);
        jobs_run_one(&job);
        CHECK_EQ_INT(job.status, 2);
        CHECK_TEXT(job.text, "rank 1 on host ");
        CHECK_TEXT(job.text, "runs another build of Weft");
    }
    unlink(copy);
    rmdir(folder);
}

/* The program itself is right when nobody misbehaves. */
static void test_nobody_misbehaves(void)
{
    for (int e = 0; e < ENGINES; e++) {
        static job_run job;
        if (engines[e].has_processes && WEFT_TEST_MPIEXEC[0] == '\0') continue;
        snprintf(job.line, sizeof job.line, engines[e].format, "none", 0);
        jobs_run_one(&job);
        CHECK_EQ_INT(job.status, 0);
        CHECK_TEXT(job.text, "misbehave: done");
        CHECK(strstr(job.text, "WRONG") == NULL && strstr(job.text, "weft:") == NULL);
    }
}

int main(int n, char **arguments)
{
    jobs_prepare_mpi();
    if (n > 1 && strcmp(arguments[1], "--all") == 0) {
        RUN(test_at_every_call_site);
        return weft_test_report();
    }
    RUN(test_nobody_misbehaves);
    RUN(test_another_build_is_refused);
    RUN(test_ranks_that_are_threads);
    RUN(test_ranks_that_are_processes);
    return weft_test_report();
}
