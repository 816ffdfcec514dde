/* errors_test: every user's mistake gets exit status 2 and one sentence with both facts, at once,
 * alone and on two ranks.
 *
 * The programs are run as a user runs them (a hang ends after 30 s and fails); mistakes of a C program are in the
 * last test.
 */
#include "command.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "test.h"

enum { TEXT = 2048 };
static char folder[64]; /* of files that are wrong */
static double slowest;  /* seconds until a sentence, alone: said at the end; a hang is what fails */

typedef struct mistake {
    const char *arguments; /* of gpt train; %s is the folder */
    const char *facts[3];  /* all in the sentence */
} mistake;

/* A good text and a small model, so that only the mistake can stop it. */
#define GOOD                                                                                       \
    "--data %s/good.txt --steps 1 --layers 1 --width 8 --heads 2 --seq 4 --batch 2 --run %s/run "
static const mistake mistakes[] = {
    {GOOD "--mesh data:2 --layout batch:dota", {"dota", "data"}},
    {GOOD "--mesh data:2 --layout bach:data", {"bach", "batch"}},
    {GOOD "--layrs 3", {"layrs", "layers"}},
    {GOOD "--optimizer adamm", {"adamm", "adam"}},
    {GOOD "--schedule cosin", {"no schedule cosin", "did you mean cosine?"}},
    {GOOD "--schedule piecewise", {"piecewise: there are no pieces"}},
    {GOOD "--schedule piecewise --pieces 9=x", {"\"9=x\" is no STEP=X", "1000=0.5,2000=0.1"}},
    {GOOD "--clip-by valu", {"no kind of clipping valu", "did you mean value?"}},
    {GOOD "--average 1", {"decay is 1", "below 1"}},
    {GOOD "--dtype fp16", {"fp16", "f16"}},
    {GOOD "--zero 4", {"zero", "4", "3"}},
    {GOOD "--mesh data:2,data:1", {"data", "twice"}},
    {GOOD "--mesh data:2,model", {"model", "data:2,model"}},
    {GOOD "--mesh data:0", {"data", "0"}},
    {GOOD "--mesh data:-1", {"data:-1"}},
    {GOOD "--mesh data:2 --layout batch", {"batch"}},
    {GOOD "--mesh data:2 --layout batch:data,,", {"batch:data,,"}},
    {GOOD "--mesh data:2 --layout batch:data+data", {"data"}},
    {GOOD "--mesh data:2 --layout :data", {":data"}},
    {GOOD "--mesh data:2 --layout batch:data,seq:data --strict", {"data", "seq", "--strict"}},
    {GOOD "--explain", {"--explain", "--dry-run"}},
    {GOOD "--batch 0", {"batch", "0"}},
    {GOOD "--seq 0", {"seq", "0"}},
    {GOOD "--batch 1099511627777", {"batch", "1099511627777"}},
    {GOOD "--batch many", {"batch", "many"}},
    {GOOD "--rate fast", {"rate", "fast"}},
    {GOOD "--width 30 --heads 4", {"30", "4"}},
    {GOOD "--steps", {"steps"}},
    {"--data %s/missing.txt --run %s/run", {"missing.txt", "No such file"}},
    {"--data %s --run %s/run", {"directory"}},
    {"--data %s/empty.txt --run %s/run", {"empty.txt", "empty"}},
    {"--data %s/short.txt --seq 64 --run %s/run", {"short.txt", "5", "65"}},
    {"--data %s/good.txt --steps 1 --run %s/good.txt/run", {"good.txt/run", "Not a directory"}},
};
enum { N_MISTAKES = sizeof mistakes / sizeof mistakes[0] };

static void write_file(const char *name, const char *text, size_t bytes)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return;
    fwrite(text, 1, bytes, file);
    fclose(file);
}

/* The arguments with the folder's name for every %s. */
static void print_arguments(char *line, size_t bytes, const char *arguments)
{
    size_t at = 0;
    for (const char *p = arguments; *p != '\0' && at + sizeof folder < bytes; p++) {
        if (p[0] == '%' && p[1] == 's') {
            at += (size_t)snprintf(line + at, bytes - at, "%s", folder);
            p++;
        } else {
            line[at++] = *p;
        }
    }
    line[at] = '\0';
}

static void check_that(bool passed, int line_number, const char *line, const command_result *r,
                       const char *what)
{
    char text[3 * TEXT];
    snprintf(text, sizeof text,
             "%s\n    %.1500s\n    gave status %d after %.2f s and said: %.1500s", what, line,
             r->status, r->seconds, r->text);
    weft_test_check(passed, __FILE__, line_number, text);
}

static void check_facts(const char *line, const command_result *r, const char *const *facts)
{
    for (int i = 0; i < 3 && facts[i] != NULL; i++)
        check_that(strstr(r->text, facts[i]) != NULL, __LINE__, line, r, facts[i]);
}

/* One program of ours that must refuse `line`; `ours` begins its sentence. */
static void check_refused(const char *line, const char *ours, const char *const *facts)
{
    const command_result r = command_run(line);
    if (r.seconds > slowest) slowest = r.seconds;
    check_that(r.status == 2, __LINE__, line, &r, "the exit status should be 2");
    check_that(command_lines(r.text, ours) == 1 && command_lines(r.text, "") == 1, __LINE__, line,
               &r, "one line was expected");
    check_facts(line, &r, facts);
}

static void test_gpt_refuses_alone(void)
{
    for (int i = 0; i < N_MISTAKES; i++) {
        char arguments[TEXT], line[4 * TEXT];
        print_arguments(arguments, sizeof arguments, mistakes[i].arguments);
        snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt train %s", arguments);
        check_refused(line, "gpt: ", mistakes[i].facts);
    }
}

static void test_unknown_environment_variable(void)
{
    const char *const facts[3] = {"WEFT_BACTH", "WEFT_BATCH"};
    char arguments[TEXT], line[4 * TEXT];
    print_arguments(arguments, sizeof arguments, GOOD);
    snprintf(line, sizeof line, "env WEFT_BACTH=3 " WEFT_TEST_BIN "/gpt train %s", arguments);
    check_refused(line, "gpt: ", facts);
}

/* In the pods of a cluster where a service is called weft: one line, and the program goes on. */
static void test_variables_about_a_service_are_ignored(void)
{
    static const char service[] =
        "env WEFT_PORT=tcp://10.0.0.1:80 WEFT_SERVICE_HOST=10.0.0.1 WEFT_SERVICE_PORT=80";
    static const char *const rights[] = {WEFT_TEST_BIN "/weft info --json",
                                         WEFT_TEST_BIN "/gpt train --dry-run"};
    for (int i = 0; i < 2; i++) {
        char line[TEXT];
        snprintf(line, sizeof line, "%s %s", service, rights[i]);
        const command_result r = command_run(line);
        check_that(r.status == 0, __LINE__, line, &r, "the exit status should be 0");
        check_that(strstr(r.text, ": ignored WEFT_") != NULL &&
                       strstr(r.text, " and 2 more") != NULL,
                   __LINE__, line, &r, "what was ignored should be said");
    }
}

/* ---- two ranks ------------------------------------------------------------------------------- */

/* Under mpirun, whose own lines about the exit status do not count. */
static void check_refused_mpi(const char *line, const char *const *facts)
{
    const command_result r = command_run(line);
    check_that(r.status == 2, __LINE__, line, &r, "the exit status should be 2");
    check_that(command_lines(r.text, "gpt: ") == 1, __LINE__, line, &r,
               "one line of ours was expected");
    check_facts(line, &r, facts);
}

/* One in three: what differs under mpirun is where a mistake is found, and every such place is
 * among them. */
static void test_gpt_refuses_on_two_ranks(void)
{
    for (int i = 2; i < N_MISTAKES; i += 3) {
        char arguments[TEXT], line[4 * TEXT];
        print_arguments(arguments, sizeof arguments, mistakes[i].arguments);
        snprintf(line, sizeof line,
                 WEFT_TEST_MPIEXEC " -n 2 --oversubscribe " WEFT_TEST_BIN "/gpt train %s",
                 arguments);
        check_refused_mpi(line, mistakes[i].facts);
    }
}

static void test_mesh_size_against_world_size(void)
{
    const char *const facts[3] = {"3", "2", "data:3"};
    char arguments[TEXT], line[4 * TEXT];
    print_arguments(arguments, sizeof arguments, GOOD "--mesh data:3");
    snprintf(line, sizeof line,
             WEFT_TEST_MPIEXEC " -n 2 --oversubscribe " WEFT_TEST_BIN "/gpt train %s", arguments);
    check_refused_mpi(line, facts);
}

static void test_one_rank_with_another_layout(void)
{
    const char *const facts[3] = {"rank 1"};
    char good[TEXT], line[4 * TEXT];
    print_arguments(good, sizeof good, GOOD "--mesh data:2");
    snprintf(line, sizeof line,
             WEFT_TEST_MPIEXEC " --oversubscribe -n 1 " WEFT_TEST_BIN
                               "/gpt train %s --layout batch:data : -n 1 " WEFT_TEST_BIN
                               "/gpt train %s --layout seq:data",
             good, good);
    check_refused_mpi(line, facts);
}

static void test_one_rank_with_a_typo(void)
{
    const char *const facts[3] = {"rank 1", "layrs", "layers"};
    char good[TEXT], line[4 * TEXT];
    print_arguments(good, sizeof good, GOOD "--mesh data:2");
    snprintf(line, sizeof line,
             WEFT_TEST_MPIEXEC " --oversubscribe -n 1 " WEFT_TEST_BIN
                               "/gpt train %s : -n 1 " WEFT_TEST_BIN "/gpt train %s --layrs 3",
             good, good);
    check_refused_mpi(line, facts);
}

static void test_one_rank_that_only_plans(void)
{
    const char *const facts[3] = {"--dry-run", "train"};
    char good[TEXT], line[4 * TEXT];
    print_arguments(good, sizeof good, GOOD "--mesh data:2");
    snprintf(line, sizeof line,
             WEFT_TEST_MPIEXEC " --oversubscribe -n 1 " WEFT_TEST_BIN
                               "/gpt train %s --dry-run : -n 1 " WEFT_TEST_BIN "/gpt train %s",
             good, good);
    check_refused_mpi(line, facts);
}

/* ---- IDX files, by mnist --------------------------------------------------------------------- */

/* A gzipped IDX file whose header promises n images of 28 x 28 (or n labels), with `bytes` bytes
 * after it. */
static void write_idx(const char *name, int n, bool is_image, unsigned bytes)
{
    static unsigned char data[784 * 64];
    char path[TEXT];
    const unsigned header = is_image ? 16 : 8;
    const unsigned char numbers[16] = {
        0, 0, 8, is_image ? 3 : 1, 0, 0, (unsigned char)(n >> 8), (unsigned char)n, 0, 0, 0, 28, 0,
        0, 0, 28};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile file = gzopen(path, "wb");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return;
    CHECK_EQ_INT(gzwrite(file, numbers, header), header);
    CHECK_EQ_INT(gzwrite(file, data, bytes), bytes);
    CHECK_EQ_INT(gzclose(file), Z_OK);
}

static void test_mnist_refuses_lying_files(void)
{
    char line[TEXT];
    const char *const truncated[3] = {"t10k-images-idx3-ubyte.gz", "64"}, *const unequal[3] = {
                                                                              "64", "60"};
    snprintf(line, sizeof line, WEFT_TEST_BIN "/mnist --data %s", folder);
    write_idx("t10k-images-idx3-ubyte.gz", 64, true, 784 * 40);
    write_idx("t10k-labels-idx1-ubyte.gz", 64, false, 64);
    check_refused(line, "mnist: ", truncated);
    write_idx("t10k-images-idx3-ubyte.gz", 64, true, 784 * 64);
    write_idx("t10k-labels-idx1-ubyte.gz", 60, false, 60);
    check_refused(line, "mnist: ", unequal);
}

/* ---- in a C program -------------------------------------------------------------------------- */

/* Compile `value` of `graph` and see that it is refused with the facts. */
static void check_graph_error(weft_graph *graph, weft_value value, const char *const *facts)
{
    const weft_world single = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_create(&single, "data:1", &mesh, &error), error);
    CHECK_OK(weft_layout_create("", &layout, &error), error);
    CHECK_EQ_INT(weft_compile(mesh, layout, WEFT_VALUES(value), NULL, &program, &error),
                 WEFT_USAGE);
    CHECK(program == NULL);
    for (int i = 0; i < 4 && facts[i] != NULL; i++)
        CHECK_TEXT(error.message, facts[i]);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
}

static void test_dims_of_one_name_and_two_sizes(void)
{
    const char *const facts[4] = {"einsum at errors_test.c:", "pixel:784", "pixel:512"};
    const weft_dim batch = {"batch", 32}, hidden = {"hidden", 64};
    const weft_dim pixel = {"pixel", 784}, other = {"pixel", 512};
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value w = weft_input(g, "w", WEFT_F32, WEFT_DIMS(other, hidden));
    check_graph_error(g, weft_relu(weft_einsum(WEFT_DIMS(batch, hidden), x, w)), facts);
}

static void test_einsum_output_without_source(void)
{
    const char *const facts[4] = {"einsum at errors_test.c:", "digit"};
    const weft_dim batch = {"batch", 32}, hidden = {"hidden", 64}, pixel = {"pixel", 784},
                   digit = {"digit", 10};
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, pixel));
    weft_value w = weft_input(g, "w", WEFT_F32, WEFT_DIMS(pixel, hidden));
    check_graph_error(g, weft_einsum(WEFT_DIMS(batch, digit), x, w), facts);
}

static void make_files(void)
{
    static char good[4096];
    for (size_t i = 0; i < sizeof good; i++)
        good[i] = (char)(' ' + i * i % 90);
    write_file("good.txt", good, sizeof good);
    write_file("short.txt", "hello", 5);
    write_file("empty.txt", "", 0);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/weft-errors-XXXXXX");
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    if (CHECK(mkdtemp(folder) != NULL)) {
        make_files();
        RUN(test_gpt_refuses_alone);
        RUN(test_unknown_environment_variable);
        RUN(test_variables_about_a_service_are_ignored);
        if (WEFT_TEST_MPIEXEC[0] != '\0') {
            RUN(test_gpt_refuses_on_two_ranks);
            RUN(test_mesh_size_against_world_size);
            RUN(test_one_rank_with_another_layout);
            RUN(test_one_rank_with_a_typo);
            RUN(test_one_rank_that_only_plans);
        }
        RUN(test_mnist_refuses_lying_files);
        RUN(test_dims_of_one_name_and_two_sizes);
        RUN(test_einsum_output_without_source);
        command_result removed;
        char line[TEXT];
        snprintf(line, sizeof line, "rm -r %s", folder);
        removed = command_run(line);
        CHECK_EQ_INT(removed.status, 0);
        printf("the slowest sentence took %.2f s\n", slowest);
    }
    return weft_test_report();
}
