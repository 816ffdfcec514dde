/* RANKS: 2 3 4 8 */
/* ops_test: every op under every placement of its operands and results, against one rank.
 *
 *     ops_test [--all] [--say] [NAME]    --all: no limit on combinations; --say: print each
 *                                before it runs; NAME: only cases that begin so
 */
#include "op_cases.h"

#include <string.h>

#include "test.h"

typedef struct forward {
    const op_case *op;
    weft_dtype dtype;
} forward;

static weft_oracle oracle;
static const char *only = "";

static void build_forward(weft_oracle_build *build)
{
    const forward *f = build->argument;
    weft_oracle_output(build, f->op->build(build, f->dtype));
}

#ifdef WEFT_SANITIZE
enum { SHARE = 8 }; /* sanitizers look for other things, slowly: an eighth of the combinations */
#else
enum { SHARE = 1 };
#endif

/* Integers and float32 walk the same code with other element types: fewer combinations show it. */
static int most_combinations(weft_dtype dtype)
{
    const int n_processes = oracle.world.n_processes;
    int most = dtype == WEFT_F64 ? 250 : 12;
    if (n_processes > 1) most = dtype == WEFT_F64 ? 40 : 6;
    if (n_processes > 4) most = dtype == WEFT_F64 ? 12 : 2;
    return (most + SHARE - 1) / SHARE;
}

static void sweep_dtype(weft_dtype dtype)
{
    for (int i = 0; i < n_op_cases; i++) {
        const forward f = {&op_cases[i], dtype};
        if (!(f.op->dtypes >> dtype & 1) || strncmp(f.op->name, only, strlen(only)) != 0) continue;
        const weft_oracle_case what = {.name = f.op->name,
                                       .build = build_forward,
                                       .argument = &f,
                                       .is_f32 = dtype == WEFT_F32};
        weft_oracle_sweep(&oracle, &what, most_combinations(dtype));
    }
}

static void test_every_placement_in_f64(void)
{
    sweep_dtype(WEFT_F64);
}

static void test_placements_in_f32(void)
{
    sweep_dtype(WEFT_F32);
}

static void test_placements_in_i32(void)
{
    sweep_dtype(WEFT_I32);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {
        "data:2", "data:3", "data:4", "data:2,model:2", "data:3,model:2", "data:2,model:2,seq:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        for (int i = 1; i < argc; i++) {
            if (strcmp(argv[i], "--all") == 0)
                oracle.all = true;
            else if (strcmp(argv[i], "--say") == 0)
                oracle.says = true;
            else
                only = argv[i];
        }
        RUN(test_every_placement_in_f64);
        RUN(test_placements_in_f32);
        RUN(test_placements_in_i32);
        printf("%lld runs compared with one rank\n", (long long)oracle.n_compared);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
