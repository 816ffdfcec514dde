/* RANKS: 2 3 4 8 */
/* ops_test: every op under every placement of its operands and results, against one rank.
 *
 *     ops_test [--all] [--say] [NAME]    --all: no limit on combinations; --say: print each
 *                                before it runs; NAME: only cases that begin so (at least one)
 */
#include "op_cases.h"

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
    for (int k = 0; k < build->n_others; k++)
        weft_oracle_output(build, build->others[k]);
}

/* The others walk the same code with other element types: fewer combinations show it. */
static int most_combinations(weft_dtype dtype)
{
    const int n_processes = oracle.world.n_processes;
    const bool is_further = dtype > WEFT_I32;
    int most = dtype == WEFT_F64 ? 120 : is_further ? 6 : 12;
    if (n_processes > 1) most = dtype == WEFT_F64 ? 40 : is_further ? 2 : 6;
    if (n_processes > 4) most = dtype == WEFT_F64 ? 12 : is_further ? 1 : 2;
    return most;
}

static void sweep_case(const op_group *group, const op_case *what, void *dtype)
{
    const forward f = {what, *(weft_dtype *)dtype};
    const weft_oracle_case swept = {.name = what->name,
                                    .build = build_forward,
                                    .argument = &f,
                                    .within = weft_oracle_tolerance[f.dtype]};
    (void)group;
    if (!what->alone && what->dtypes >> f.dtype & 1 && weft_oracle_takes(&oracle))
        weft_oracle_sweep(&oracle, &swept, most_combinations(f.dtype));
}

static void sweep_dtype(weft_dtype dtype)
{
    op_cases_each(only, sweep_case, &dtype);
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

static void test_placements_in_bf16(void)
{
    sweep_dtype(WEFT_BF16);
}

static void test_placements_in_f16(void)
{
    sweep_dtype(WEFT_F16);
}

static void test_placements_in_i64(void)
{
    sweep_dtype(WEFT_I64);
}

static void test_placements_in_u8(void)
{
    sweep_dtype(WEFT_U8);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {
        "data:2", "data:3", "data:4", "data:2,model:2", "data:3,model:2", "data:2,model:2,seq:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        if (!op_cases_options(argc, argv, &oracle, &only)) return 2;
        RUN(test_every_placement_in_f64);
        RUN(test_placements_in_f32);
        RUN(test_placements_in_i32);
        RUN(test_placements_in_bf16);
        RUN(test_placements_in_f16);
        RUN(test_placements_in_i64);
        RUN(test_placements_in_u8);
        printf("%lld runs compared with one rank\n", (long long)oracle.n_compared);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
