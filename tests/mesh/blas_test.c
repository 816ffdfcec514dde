/* blas_test: which kernel is wanted; a kernel changed at run time computes right; the user's choice
 * stays. */
#include "mesh_internal.h"

#include <cblas.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "again.h"
#include "test.h"

static bool wants(const char *found, bool has_avx2, bool has_avx512, const char *expected)
{
    const char *wanted = weft_blas_kernel_wanted(found, has_avx2, has_avx512);
    return expected == NULL ? wanted == NULL : wanted != NULL && strcmp(wanted, expected) == 0;
}

static void test_an_old_kernel_on_a_new_processor_is_changed(void)
{
    CHECK(wants("Prescott", true, true, "SkylakeX"));
    CHECK(wants("Prescott", true, false, "Haswell"));
    CHECK(wants("Prescott", false, false, NULL));
    CHECK(wants("Nehalem", true, true, "SkylakeX"));
    CHECK(wants("Sandybridge", true, false, "Haswell"));
    CHECK(wants("generic", true, false, "Haswell"));
}

static void test_a_kernel_that_fits_is_kept(void)
{
    CHECK(wants("SkylakeX", true, true, NULL));
    CHECK(wants("Cooperlake", true, true, NULL));
    CHECK(wants("Zen", true, true, NULL));
    CHECK(wants("Haswell", true, false, NULL));
    CHECK(wants("", true, true, NULL));
}

static void check_gemm(void)
{
    enum { M = 37, N = 41, K = 53 };
    static float a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i % 5 - 2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1, a, K, b, N, 0, c, N);
    int n_wrong = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0; /* small whole numbers: exact in any order */
            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * N + j];
            n_wrong += sum != c[i * N + j];
        }
    CHECK_EQ_INT(n_wrong, 0);
}

static void test_the_start_leaves_a_kernel_that_fits(void)
{
    weft_blas_start();
    weft_blas_start();
    const weft_machine *machine = weft_machine_info();
    CHECK(machine->n_cores >= 1);
    CHECK(machine->memory_bytes > 0);
    CHECK_TEXT(machine->blas, "OpenBLAS");
    CHECK(machine->blas_kernel[0] != '\0' && machine->blas_kernel_found[0] != '\0');
#if defined(__x86_64__)
    if (getenv("OPENBLAS_CORETYPE") == NULL)
        CHECK(weft_blas_kernel_wanted(machine->blas_kernel, __builtin_cpu_supports("avx2") != 0,
                                      false) == NULL);
#endif
    check_gemm();
}

/* Those that this processor has the instructions for. */
#if defined(__x86_64__)
static const char *const kernels[] = {"Prescott", "Haswell", "SkylakeX", "Haswell"};
static bool can_run(int i)
{
    if (i > 0 && !__builtin_cpu_supports("avx2")) return false;
    return i != 2 || __builtin_cpu_supports("avx512vl");
}
#define OTHER_KERNEL "Nehalem"
#elif defined(__aarch64__)
static const char *const kernels[] = {"ARMV8", "CORTEXA57", "NEOVERSEN1", "CORTEXA57"};
static bool can_run(int i)
{
    (void)i;
    return true;
}
#define OTHER_KERNEL "CORTEXA53"
#endif

static void test_a_changed_kernel_computes_right(void)
{
    const char *before = weft_blas_kernel();
    for (int i = 0; i < 4; i++) {
        if (!can_run(i) || !weft_blas_use_kernel(kernels[i])) continue; /* or built without it */
        CHECK(strcasecmp(weft_blas_kernel(), kernels[i]) == 0);
        check_gemm();
    }
    CHECK(weft_blas_use_kernel(before));
}

static void test_a_kernel_that_is_none_changes_nothing(void)
{
    const char *before = weft_blas_kernel();
    CHECK(!weft_blas_use_kernel("Abacus"));
    CHECK(strcmp(weft_blas_kernel(), before) == 0);
    check_gemm();
}

/* Runs this program again as `child`, where OPENBLAS_CORETYPE names a kernel. */
static void test_the_users_choice_stays(void)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("OPENBLAS_CORETYPE", OTHER_KERNEL, 1);
        weft_test_again("child", NULL);
        _exit(9);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int main_of_child(void)
{
    const weft_machine *machine = weft_machine_info();
    bool is_kept = strcmp(machine->blas_kernel, machine->blas_kernel_found) == 0;
    return is_kept && (strcasecmp(machine->blas_kernel, OTHER_KERNEL) == 0) ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "child") == 0) return main_of_child();
    RUN(test_an_old_kernel_on_a_new_processor_is_changed);
    RUN(test_a_kernel_that_fits_is_kept);
    RUN(test_the_start_leaves_a_kernel_that_fits);
    RUN(test_a_changed_kernel_computes_right);
    RUN(test_a_kernel_that_is_none_changes_nothing);
    RUN(test_the_users_choice_stays);
    return weft_test_report();
}
