/* RANKS: 2 */
/* locale_test: what Weft reads and writes is the same under every locale that the program has set: a decimal comma changes no
 * link, schedule, plan, digest, sentence or line about a value; and ranks may have locales of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "comma.h"
#include "ops/graph/ir.h"
#include "oracle.h"
#include "test.h"
#include "weft/collectives.h"
#include "weft/number.h"
#include "weft/optim.h"
#include "weft/program.h"

static const weft_dim row = {"row", 6}, column = {"column", 4};
static weft_oracle oracle;

typedef struct net {
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    weft_value x, loss;
} net;

/* Numbers with fractions wherever a program has numbers, and a sentence with a letter that is one in Latin-1 alone. */
static bool open_net(net *n, weft_mesh *mesh, weft_error *error)
{
    static const weft_rate_piece pieces[] = {{2, 0.5}, {3, 0.125}};
    *n = (net){.graph = weft_graph_create(1)};
    weft_graph *g = n->graph;
    n->x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row, column));
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(column), weft_normal(0.5, 0.25));
    weft_value y = weft_dropout(weft_clamp(weft_scale(n->x, 1.5), -0.5, 2.5), 0.25);
    y = weft_elu(weft_mul(y, w), 1.75);
    n->loss = weft_mean(weft_square(y));
    const weft_value holds = weft_less(n->loss, weft_constant(g, WEFT_F32, WEFT_SCALAR, 1e9));
    n->loss = weft_require(n->loss, holds, n->loss,
                           "gr\xf6\xdf"
                           "er: {}");
    const weft_value rate = weft_schedule_rate(
        g, WEFT_F32, "piecewise",
        &(weft_schedule_options){.rate = 0.375, .warmup = 1, .total = 9, .pieces = {pieces, 2}});
    const weft_value update =
        weft_adam(n->loss, &(weft_optimizer_options){.rate_value = rate, .beta1 = 0.875});
    weft_name(n->loss, "loss");
    const weft_compile_options options = {.link = mesh == oracle.alone ? NULL : "d:0.5GB+1.5us",
                                          .explain = true};
    return weft_layout_create(mesh == oracle.alone ? "" : "row:d", &n->layout, error) == WEFT_OK &&
           weft_compile(mesh, n->layout, WEFT_VALUES(n->loss, update), &options, &n->program,
                        error) == WEFT_OK;
}

static void close_net(net *n)
{
    (void)!weft_program_destroy(&n->program);
    weft_layout_destroy(&n->layout);
    (void)!weft_graph_destroy(&n->graph);
}

/* Texts of one program, its numbers, and sentences about it, under a locale. To be freed. */
static char *said_under(bool has_comma, weft_mesh *mesh)
{
    static const float numbers[24] = {0.5, 1, -1.5, 0.25, 2};
    char *text = NULL, links[600];
    size_t bytes = 0;
    double loss = 0;
    net n;
    weft_error error = {0}, refused = {0};
    comma_set(has_comma);
    FILE *file = open_memstream(&text, &bytes);
    CHECK(open_net(&n, mesh, &error));
    CHECK_OK(error.status, error);
    weft_graph_print(n.graph, false, file);
    CHECK_OK(weft_plan_print(n.program, file, &error), error);
    CHECK_OK(weft_plan_json(n.program, file, &error), error);
    fprintf(file, "digest %llx\n", (unsigned long long)weft_program_digest(n.program));
    CHECK_OK(weft_write(n.program, n.x, WEFT_F32, numbers, sizeof numbers, &error), error);
    for (int run = 0; run < 3; run++)
        CHECK_OK(weft_run(n.program, &error), error);
    CHECK_OK(weft_print(n.program, n.loss, file, &error), error);
    CHECK_OK(weft_read_scalar(n.program, n.loss, &loss, &error), error);
    fprintf(file, "loss %lld\n", (long long)(loss * 0x1p40));
    weft_links_text(mesh, (weft_link_speed[WEFT_MAX_AXES]){{1.25e9, 1.5e-6, false}}, links,
                    sizeof links);
    weft_dropout(n.x, 1.5);
    fprintf(file, "%s\n%s\n", links, weft_graph_error(n.graph)->message);
    weft_fail(&refused, WEFT_USAGE, "a rate of %g", 0.5);
    fprintf(file, "%s\n", refused.message);
    fclose(file);
    close_net(&n);
    comma_set(false);
    return text;
}

static void check_mesh(weft_mesh *mesh)
{
    char *plain = said_under(false, mesh), *other = said_under(true, mesh);
    CHECK_TEXT(other, "0.25");
    CHECK_TEXT(other, "a rate of 0.5");
    CHECK_TEXT(other, "the rate is 1.5");
    if (!CHECK(plain != NULL && other != NULL && strcmp(plain, other) == 0) && plain && other) {
        size_t at = 0;
        while (plain[at] == other[at])
            at++;
        at = at > 40 ? at - 40 : 0;
        fprintf(stderr, "%.80s\n---- and with a comma\n%.80s\n", plain + at, other + at);
    }
    free(plain);
    free(other);
}

static void test_all_that_is_written_is_the_same(void)
{
    check_mesh(oracle.alone);
    for (int m = 0; m < oracle.n_meshes; m++)
        check_mesh(oracle.meshes[m]);
}

/* Of one job some have a comma: they compile one program, and no rank is refused. */
static void test_ranks_may_have_locales_of_their_own(void)
{
    weft_mesh *mesh = oracle.n_meshes > 0 ? oracle.meshes[0] : oracle.alone;
    weft_error error = {0};
    net n;
    comma_set(!weft_mesh_is_root(mesh));
    CHECK(open_net(&n, mesh, &error));
    CHECK_OK(error.status, error);
    close_net(&n);
    comma_set(false);
}

static void test_numbers_are_read_with_a_point(void)
{
    static const struct {
        const char *text;
        double number;
        int length;
    } rows[] = {{"0.5", 0.5, 3},
                {"-1.25e-2x", -0.0125, 8},
                {" 7,5", 7, 2},
                {",5", 0, 0},
                {"0x1.8p1", 3, 7},
                {"inf", INFINITY, 3},
                {"", 0, 0},
                {"x", 0, 0},
                {"1e999", INFINITY, 5},
                {NULL, 0, 0}};
    for (int has_comma = 0; has_comma < 2; has_comma++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            double number = 7;
            comma_set(has_comma);
            const int length = weft_number_read(rows[i].text, &number);
            comma_set(false);
            CHECK_EQ_INT(length, rows[i].length);
            CHECK_EQ_INT(weft_number_read(rows[i].text, NULL), rows[i].length);
            CHECK(number == rows[i].number);
        }
}

static void test_times_are_written_with_a_point(void)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        {1.5, "1.5 s"}, {0.0123, "12.3 ms"}, {4.5e-6, "4.5 us"}, {0, "0 us"}, {-2, "-2e+06 us"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[WEFT_TIME_TEXT];
        comma_set(true);
        const char *told = weft_time_text(rows[i].seconds, text);
        comma_set(false);
        CHECK(told == text && strcmp(text, rows[i].text) == 0);
    }
    CHECK(weft_time_text(1, NULL)[0] == '\0');
}

/* The program's own locale is as it was, whatever was called. */
static void test_the_programs_locale_stays(void)
{
    char text[16];
    double number;
    comma_set(true);
    weft_number_read("0.5", &number);
    weft_error error = {0};
    weft_fail(&error, WEFT_USAGE, "%g", 0.5);
    snprintf(text, sizeof text, "%.1f", 0.5);
    comma_set(false);
    CHECK_TEXT(text, "0,5");
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:3"};
    weft_error error = {0};
    if (!comma_open())
        weft_test_skip("localedef cannot make " COMMA " here (Debian: locales)");
    else if (CHECK_OK(weft_oracle_open(&oracle, meshes, 2, &error), error)) {
        RUN(test_times_are_written_with_a_point);
        RUN(test_numbers_are_read_with_a_point);
        RUN(test_the_programs_locale_stays);
        RUN(test_all_that_is_written_is_the_same);
        RUN(test_ranks_may_have_locales_of_their_own);
        weft_oracle_close(&oracle);
    }
    comma_close();
    return weft_test_report();
}
