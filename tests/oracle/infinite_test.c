/* RANKS: 2 */
/* infinite_test: with infinities among an operand's elements, programs that are told of them give on every mesh, under every
 * placement, what they give on one rank: an infinity, or no number.
 *
 *     infinite_test [--all] [--say] [NAME]
 */
#include "op_cases.h"

#include "test.h"

static weft_oracle oracle;
static const char *only = "";

typedef struct infinite {
    const op_case *what;
    weft_dtype dtype;
    int operand; /* which is infinite here and there */
} infinite;

/* Of the operand one element in eight or so is infinite. */
static weft_value give(weft_oracle_build *b, weft_dtype dtype, weft_shape shape, double low,
                       double high)
{
    const infinite *c = b->giver;
    b->give = NULL;
    const bool is_it = b->n_arguments == c->operand && weft_dtype_is_float(dtype);
    weft_value x = weft_oracle_input(b, dtype, shape, low, high);
    if (is_it) {
        const weft_value edge =
            weft_constant(b->graph, dtype, WEFT_SCALAR, high - 0.125 * (high - low));
        const weft_value top = weft_constant(b->graph, dtype, WEFT_SCALAR, (double)INFINITY);
        x = weft_oracle_made(b, weft_where(weft_greater(x, edge), top, x));
    }
    b->give = give;
    return x;
}

static void build(weft_oracle_build *b)
{
    infinite c = *(const infinite *)b->argument;
    b->giver = &c, b->give = give;
    const weft_value y = c.what->build(b, c.dtype);
    b->give = NULL, b->giver = NULL;
    weft_oracle_output(b, y);
    for (int k = 0; k < b->n_others; k++)
        weft_oracle_output(b, b->others[k]);
}

static void visit(const op_group *group, const op_case *what, void *argument)
{
    (void)group, (void)argument;
    static const weft_compile_options options = {.infinities = true};
    const int n_processes = oracle.world.n_processes;
    if (!(what->dtypes & OP_F64) || what->alone) return;
    for (int k = 0; k < 3; k++) {
        if (!weft_oracle_takes(&oracle)) continue;
        const infinite c = {what, WEFT_F64, k};
        const weft_oracle_case swept = {
            .name = what->name, .build = build, .argument = &c, .options = &options};
        weft_oracle_sweep(&oracle, &swept, n_processes > 1 ? 1 : 20);
    }
}

static void test_an_infinity_is_one_in_every_layout(void)
{
    op_cases_each(only, visit, NULL);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        if (!op_cases_options(argc, argv, &oracle, &only)) return 2;
        RUN(test_an_infinity_is_one_in_every_layout);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
