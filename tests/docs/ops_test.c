/* ops_test: docs/ops.md is what the table of ops, the headers, the kernels and the oracle's cases say; every builder of ops.h is an op of
 * the table or a composition that the oracle has cases of.
 *
 *     ops_test --update    writes docs/ops.md anew
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "left_open.h"
#include "op_cases.h"
#include "ops/graph/ir.h"
#include "ops/kernel/registry.h"

#include "test.h"

enum { MOST_BUILDERS = 256, CELL = 200 };

/* ---- builders, as the header has them ------------------------------------------------------------------ */

typedef struct builder {
    char name[64], call[CELL]; /* "pick"; "weft_pick(x, ids, dim)" */
} builder;

static builder builders[MOST_BUILDERS];
static int n_builders;

/* The whole of a file under the project's root; NULL when it cannot be read. */
static char *read_file(const char *name)
{
    char path[1024];
    size_t n, room = 1 << 20;
    char *text = calloc(1, room);
    snprintf(path, sizeof path, "%s/../%s", WEFT_TEST_DATA, name);
    FILE *file = fopen(path, "r");
    if (file == NULL || text == NULL) {
        free(text);
        if (file != NULL) fclose(file);
        return NULL;
    }
    n = fread(text, 1, room - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

/* Of each parameter its name, the last word of it. */
static void put_call(builder *b, const char *open, const char *close)
{
    char name[sizeof b
                  ->name]; /* a copy: gcc 12 takes a neighbour in the struct for the same memory */
    memcpy(name, b->name, sizeof name);
    int n = snprintf(b->call, sizeof b->call, "weft_%s(", name);
    for (const char *begin = open + 1; begin < close;) {
        const char *end = begin, *word;
        while (end < close && *end != ',')
            end++;
        for (word = end; word > begin && (isalnum((unsigned char)word[-1]) || word[-1] == '_');)
            word--;
        n += snprintf(b->call + n, sizeof b->call - (size_t)n, "%s%.*s",
                      begin == open + 1 ? "" : ", ", (int)(end - word), word);
        begin = end + 1;
    }
    snprintf(b->call + n, sizeof b->call - (size_t)n, ")");
}

static void read_builders(void)
{
    static const char prototype[] = "WEFT_API weft_value";
    char *header = read_file("ops/include/weft/ops.h");
    if (!CHECK(header != NULL)) return;
    for (char *at = header; (at = strstr(at, prototype)) != NULL && n_builders < MOST_BUILDERS;) {
        builder *b = &builders[n_builders++];
        at = strstr(at, "weft_value") + strlen("weft_value");
        const char *open = strchr(at, '('), *name = strstr(at, "weft_") + strlen("weft_");
        snprintf(b->name, sizeof b->name, "%.*s", (int)(open - name), name);
        put_call(b, open, strchr(open, ')'));
    }
    free(header);
}

/* Builders that are called otherwise than the op, or composition, that they make. */
static const char *const other_names[][2] = {{"attention_with", "attention"},
                                             {"broadcast_to", "broadcast"},
                                             {"cross_entropy_with", "cross_entropy"},
                                             {"max", "reduce_max"},
                                             {"prod", "reduce_prod"},
                                             {"rope_with", "rope"}};

static const char *made_by(const builder *b)
{
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(b->name, other_names[i][0]) == 0) return other_names[i][1];
    return b->name;
}

static void print_calls(const op_group *group, FILE *file)
{
    int n = 0;
    for (int i = 0; i < n_builders; i++)
        if (strcmp(made_by(&builders[i]), group->name) == 0)
            fprintf(file, "%s`%s`", n++ > 0 ? ", " : "", builders[i].call);
    if (n == 0) fprintf(file, "`%s`", group->name);
}

/* ---- one site, of the first case ----------------------------------------------------------------------- */

static void print_type(const weft_type *type, FILE *file)
{
    char text[CELL];
    weft_shape_print(&type->shape, text, sizeof text);
    const bool is_usual = type->dtype == WEFT_F64;
    fprintf(file, "%s%s", is_usual ? "" : weft_dtype_name(type->dtype), text);
}

static void print_types(const weft_site *site, FILE *file)
{
    for (int i = 0; i < site->n_in; i++) {
        fputs(i > 0 ? ", " : "", file);
        print_type(&site->in[i], file);
    }
    fputs(site->n_in > 0 ? " → " : "", file);
    for (int o = 0; o < site->n_out; o++) {
        fputs(o > 0 ? ", " : "", file);
        print_type(&site->out[o], file);
    }
}

/* The dim of the factor in the operands, and in the results where it is called otherwise there. */
static void print_factor(const weft_site *site, const weft_factors *factors, int f, FILE *file)
{
    const weft_factor *factor = &factors->factors[f];
    const char *in = NULL, *out = NULL;
    bool is_lacked = false, is_shown = false;
    for (int i = 0; i < site->n_in; i++) {
        if (in == NULL && factor->in[i] >= 0) in = site->in[i].shape.dims[factor->in[i]].name;
        is_shown |= factors->window[f][i].lead > 0;
    }
    for (int o = 0; o < site->n_out; o++)
        if (factor->out[o] >= 0)
            out = site->out[o].shape.dims[factor->out[o]].name;
        else
            is_lacked = true;
    if (in != NULL && out != NULL && strcmp(in, out) != 0) fprintf(file, "%s as ", in);
    fputs(out != NULL ? out : in != NULL ? in : "?", file);
    if (is_shown) fputs(" by a window", file);
    if (factor->even) fputs(" where it divides", file);
    if (is_lacked && factor->combine != WEFT_NOT_PARTIAL)
        fprintf(file, " **%s**", weft_combine_name((weft_combine)factor->combine));
}

static void print_factors(const weft_site *site, FILE *file)
{
    weft_factors factors = {0};
    for (int f = 0; f < WEFT_MAX_FACTORS; f++) {
        memset(factors.factors[f].in, -1, sizeof factors.factors[f].in);
        memset(factors.factors[f].out, -1, sizeof factors.factors[f].out);
    }
    site->op->factors(site, &factors);
    for (int f = 0; f < factors.n_factors; f++) {
        fputs(f > 0 ? ", " : "", file);
        print_factor(site, &factors, f, file);
    }
    if (factors.n_factors == 0) fputs("–", file);
}

/* ---- what the table says ------------------------------------------------------------------------------- */

static void print_operands(unsigned bits, const char *between, FILE *file)
{
    int n = 0;
    for (int i = 0; i < WEFT_MAX_IN; i++)
        if (bits >> i & 1) fprintf(file, "%s%d", n++ > 0 ? between : "", i + 1);
}

static void print_partial(const weft_op *op, FILE *file)
{
    print_operands(op->linear, " or ", file);
    if (op->linear != 0 && op->additive != 0) fputs("; ", file);
    if (op->additive != 0) {
        print_operands(op->additive, " and ", file);
        fputs(" together", file);
    }
    if (op->linear == 0 && op->additive == 0) fputs("–", file);
    if (op->selects) fputs("; in 16 bits too", file);
}

static bool has_kernel(const char *name)
{
    const char *op;
    for (int k = 0; weft_kernel_at(k, &op) != NULL; k++)
        if (strcmp(op, name) == 0) return true;
    return false;
}

/* Of which other devices make their loops. */
static bool has_texts(const weft_element *element)
{
    for (int i = 0; i < WEFT_DTYPE_ROOM; i++)
        for (int o = 0; o < WEFT_DTYPE_ROOM; o++)
            if (element->block[i][o] != NULL && element->text[i][o] == NULL) return false;
    return true;
}

static const char *kernels_of(const weft_op *op)
{
    if (op->expands) return "made of others";
    if (op->element != NULL) return has_texts(op->element) ? "loops" : "loops on cpu";
    if (!has_kernel(op->name)) return "–";
    return weft_oracle_lacks_on_cuda(op->name) ? "cpu" : "cpu, cuda";
}

static const char *gradient_of(const weft_op *op)
{
    return op->gradient != NULL ? "yes" : op->expand != NULL ? "of what it is made of" : "no";
}

/* ---- the page ------------------------------------------------------------------------------------------ */

static weft_dtype dtype_of(const op_case *what)
{
    static const weft_dtype first[] = {WEFT_F64, WEFT_F32, WEFT_I32, WEFT_I64};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (what->dtypes >> first[i] & 1) return first[i];
    return WEFT_U8;
}

/* Of the case's graph the first node of the op. */
static bool find_site(const weft_graph *graph, const weft_op *op, weft_site *site)
{
    for (uint32_t n = 1; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == op) {
            weft_site_of(graph, &graph->nodes[n], site);
            return true;
        }
    return false;
}

static void print_op(const op_group *group, FILE *file)
{
    const op_case *what = group->cases;
    weft_oracle_build build = {.graph = weft_graph_create(77)};
    weft_site site;
    fputs("| ", file);
    print_calls(group, file);
    fputs(" | ", file);
    if (what->name == NULL) {
        fprintf(file, "%s | | | %s | | |\n", what->why_none, gradient_of(group->op));
    } else {
        (void)what->build(&build, dtype_of(what));
        if (weft_test_check(find_site(build.graph, group->op, &site), __FILE__, __LINE__,
                            group->name)) {
            print_types(&site, file);
            fputs(" | ", file);
            print_factors(&site, file);
            fputs(" | ", file);
            print_partial(group->op, file);
            fprintf(file, " | %s | %s | %s |\n", gradient_of(group->op),
                    group->op->flops != NULL ? "its own" : "one an element", kernels_of(group->op));
        }
    }
    weft_graph_destroy(&build.graph);
}

static bool has_gradient(const op_group *group)
{
    for (const op_case *c = group->cases; c->name != NULL; c++)
        if (c->derivatives > 0) return true;
    return false;
}

static void print_composition(const op_group *group, FILE *file)
{
    const op_case *what = group->cases;
    weft_oracle_build build = {.graph = weft_graph_create(77)};
    const weft_value y = what->build(&build, dtype_of(what));
    fputs("| ", file);
    print_calls(group, file);
    fputs(" | ", file);
    weft_site site = {.n_in = build.n_arguments, .n_out = 1};
    for (int i = 0; i < site.n_in && i < WEFT_MAX_IN; i++)
        site.in[i] =
            (weft_type){weft_dtype_of(build.arguments[i]), *weft_shape_of(build.arguments[i])};
    site.out[0] = (weft_type){weft_dtype_of(y), *weft_shape_of(y)};
    print_types(&site, file);
    fprintf(file, " | %s |\n", has_gradient(group) ? "yes" : "no");
    weft_graph_destroy(&build.graph);
}

static void print_extremes(int extremes, FILE *file)
{
    static const char *const names[WEFT_ORACLE_EXTREMES] = {
        "0", "denormal", "least", "with a square that is too large", "largest", "infinite"};
    const char *comma = "";
    for (int e = 0; e < WEFT_ORACLE_EXTREMES; e++) {
        if (!(extremes >> e & 1)) continue;
        fprintf(file, "%s%s", comma, names[e]);
        comma = ", ";
    }
}

static void print_edges(FILE *file)
{
    fputs(
        "\n"
        "## Numbers at the edges\n"
        "\n"
        "An op or composition gives what its definition gives, also for zeros, denormal numbers, "
        "the "
        "least and largest of a dtype,\n"
        "numbers with a square that is too large, and infinities. A finite result is finite, an "
        "infinite one, or one past the dtype's\n"
        "range, is infinite, and an undefined one is NaN. The result is the same on every layout. "
        "The "
        "tests `oracle/extremes` and\n"
        "`oracle/random_ops` check that, except for the rows below. There the order of sums "
        "decides, "
        "so a layout or a kernel may give\n"
        "a number where another gives inf or NaN. NumPy and PyTorch leave the same open. A program "
        "with factors that may be infinite\n"
        "says so (`weft_compile_options.infinities`).\n"
        "\n"
        "| op or composition | of operands that are | because |\n"
        "| --- | --- | --- |\n",
        file);
    for (int i = 0; i < n_left_opens; i++) {
        const left_open *open = &left_opens[i], *next = open + 1;
        const bool goes_on = i + 1 < n_left_opens && next->extremes == open->extremes &&
                             strcmp(next->why, open->why) == 0;
        const bool begins =
            i == 0 || open[-1].extremes != open->extremes || strcmp(open[-1].why, open->why) != 0;
        fprintf(file, "%s`%s`", begins ? "| " : ", ", open->group);
        if (goes_on) continue;
        fputs(" | ", file);
        print_extremes(open->extremes, file);
        fprintf(file, " | %s |\n", open->why);
    }
}

static void print_kinks(FILE *file)
{
    fputs("\n"
          "## Where derivatives are chosen\n"
          "\n"
          "Everywhere else gradients are those of the function, at zeros and ties too, and so are "
          "gradients of gradients: second ones are\n"
          "symmetric. The test `autodiff/special_points` compares all ops with their values close "
          "by.\n"
          "\n"
          "| op | at | its gradient |\n"
          "| --- | --- | --- |\n",
          file);
#define KINK(op, where, what) fputs("| `" #op "` | " where " | " what " |\n", file);
#include "kinks.inc"
#undef KINK
    fputs("\n"
          "At 0 `pow` has the slopes of 0^b for b above 0, and 0 by both where b is 0. Slopes of "
          "`sigmoid` and `tanh` are read off their\n"
          "results, as PyTorch's and JAX's are: far out they are exact to a rounding of 1, not of "
          "themselves. At -0 `rsqrt` is\n"
          "-inf, as 1 / sqrt(x) is, and so is its slope of +inf, which is PyTorch's; JAX's is "
          "-inf.\n",
          file);
}

static void print_page(FILE *file)
{
    fputs(
        "# Ops\n"
        "\n"
        "This page has every op of the table (`ops/op/op_list.inc`), and every builder of "
        "`weft/ops.h` that is made of them. It is made\n"
        "from the table, the kernels and the oracle's cases. The test `docs/ops` fails where they "
        "differ; `test_docs_ops --update`, in the\n"
        "build's folder `tests`, writes it anew.\n"
        "\n"
        "- *example*: the operands and results of the first of its cases "
        "(`tests/oracle/cases_*.c`); f64 unless it says otherwise.\n"
        "- *cut along*: the directions in which its work can be split over ranks, "
        "[factors](ARCHITECTURE.md#factors), in that\n"
        "  example. In **bold** the partial state of results until they are finished. A dim that "
        "is not "
        "named is whole on every rank.\n"
        "- *partial*: operands, counted from 1, that may be sums that are not finished: one of "
        "them, or all together.\n"
        "- *gradient*: whether one flows; *flops*: whether it counts its own.\n"
        "- *kernels*: on which devices; *loops*: an element op, which a device compiles or runs "
        "together with its neighbours, on all.\n"
        "\n"
        "## The table\n"
        "\n"
        "| op | example | cut along | partial | gradient | flops | kernels |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n",
        file);
    for (int g = 0; g < n_op_groups; g++)
        if (op_groups[g].op != NULL) print_op(&op_groups[g], file);
    fputs("\n"
          "## Compositions\n"
          "\n"
          "| builder | example | gradient |\n"
          "| --- | --- | --- |\n",
          file);
    for (int g = 0; g < n_op_groups; g++)
        if (op_groups[g].op == NULL) print_composition(&op_groups[g], file);
    print_edges(file);
    print_kinks(file);
}

/* ---- the tests ----------------------------------------------------------------------------------------- */

static bool is_updated;

static void update(const char *page)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/../docs/ops.md", WEFT_TEST_DATA);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs(page, file);
    CHECK_EQ_INT(fclose(file), 0);
}

/* Line by line, so that the first that differs is told. */
static void compare(const char *page, const char *kept)
{
    char text[1200];
    while (*page != '\0' || *kept != '\0') {
        const size_t n = strcspn(page, "\n"), m = strcspn(kept, "\n");
        snprintf(text, sizeof text,
                 "docs/ops.md: \"%.*s\", and now \"%.*s\"; see test_docs_ops --update",
                 (int)(m < 500 ? m : 500), kept, (int)(n < 500 ? n : 500), page);
        if (!weft_test_check(n == m && memcmp(page, kept, n) == 0, __FILE__, __LINE__, text))
            return;
        page += n + (page[n] == '\n'), kept += m + (kept[m] == '\n');
    }
}

static void test_page_is_what_the_tables_say(void)
{
    char *page = NULL, *kept = read_file("docs/ops.md");
    size_t bytes = 0;
    FILE *file = open_memstream(&page, &bytes);
    if (!CHECK(file != NULL)) return;
    print_page(file);
    fclose(file);
    if (is_updated)
        update(page);
    else if (CHECK(kept != NULL))
        compare(page, kept);
    free(page);
    free(kept);
}

static void test_every_builder_has_cases(void)
{
    CHECK(n_builders > 100 && n_builders < MOST_BUILDERS);
    for (int i = 0; i < n_builders; i++) {
        bool is_there = false;
        for (int g = 0; g < n_op_groups; g++)
            is_there |= strcmp(op_groups[g].name, made_by(&builders[i])) == 0;
        weft_test_check(is_there, __FILE__, __LINE__, builders[i].name);
    }
}

/* An op without a case does not link; one with an empty list says why. */
static void test_every_op_has_a_case_or_says_why_not(void)
{
    for (int g = 0; g < n_op_groups; g++)
        weft_test_check(op_groups[g].cases->name != NULL || op_groups[g].cases->why_none != NULL,
                        __FILE__, __LINE__, op_groups[g].name);
}

int main(int argc, char **argv)
{
    is_updated = argc == 2 && strcmp(argv[1], "--update") == 0;
    read_builders();
    RUN(test_page_is_what_the_tables_say);
    RUN(test_every_builder_has_cases);
    RUN(test_every_op_has_a_case_or_says_why_not);
    return weft_test_report();
}
