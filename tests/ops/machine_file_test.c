/* machine_file_test: what hands, disks and other machines make of a machine file. Each mistake gets one sentence with its place, what
 * stands there and what should; a file of another machine, or of other kernels, is told and used.
 */
#include "ops/predict/machine.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

/* A file without mistakes, in which a test changes one thing. */
static const char good[] =
    "{\"weft_machine\": 1, \"name\": \"round\", \"processor\": \"abacus\", \"made\": \"by hand\", "
    "\"weft\": \"weft 0.0.1, beads\", \"cores\": 64, \"spread\": 0.5, \"loads\": ["
    "{\"ranks\": 1, \"lanes\": 2, \"step_seconds\": 0.25, \"flops_per_second\": {\"f32\": [[1, "
    "1e9], [7, 2e9]]}, \"bytes_per_second\": [[3, 1e8], [30, 4e8]], \"act_seconds\": {\"exp\": "
    "0.125, \"other\": 0}, \"kernels\": [{\"name\": \"einsum\", \"dtype\": \"f32\", \"id\": "
    "\"1f\", \"flops\": 4000, \"bytes\": [800, 400], \"acts\": {\"tanh\": 5}, \"seconds\": 8e-6, "
    "\"spread\": 0.0625}]}, {\"ranks\": 4, \"lanes\": 1, \"step_seconds\": 0, "
    "\"flops_per_second\": {\"f32\": [[1, 1e9]]}, \"bytes_per_second\": [[1, 1e8]], "
    "\"act_seconds\": {\"other\": 0}, \"kernels\": []}],"
    "\"levels\": [{\"name\": \"near\", \"ranks\": 0, \"latency_seconds\": 0.75, "
    "\"bytes_per_second\": 1e6, \"cpu\": 1}], \"exchanges\": [{\"kind\": \"all_reduce\", "
    "\"level\": \"near\", \"ranks\": 2, \"seconds\": [[60, 1], [240, 2]]}, {\"kind\": "
    "\"all_gather\", \"level\": \"near\", \"ranks\": 2, \"seconds\": [[60, 1]]}], \"slows\": "
    "[{\"work\": \"loop\", "
    "\"by\": \"all_reduce\", \"level\": \"near\", \"cpu\": 0.875}]}";

static weft_status parse(const char *text, size_t bytes, weft_error *error)
{
    weft_machine_model *model = NULL;
    weft_error_clear(error);
    const weft_status status = weft_machine_model_parse(text, bytes, "round.json", &model, error);
    CHECK((status == WEFT_OK) == (model != NULL));
    weft_machine_model_destroy(&model);
    return status;
}

/* The good file, in which `was` is `is`. */
static void edit(const char *was, const char *is, char text[4000])
{
    const char *at = strstr(good, was);
    if (!CHECK(at != NULL)) return;
    snprintf(text, 4000, "%.*s%s%s", (int)(at - good), good, is, at + strlen(was));
}

static const struct {
    const char *was, *is, *sentence;
} edits[] = {
    {"\"cores\": 64, ", "",
     "round.json: cores should be a number from 1 to 1.04858e+06, and is missing"},
    {"\"cores\": 64", "\"cores\": \"64\"",
     "cores should be a number from 1 to 1.04858e+06, and is \"64\""},
    {"\"cores\": 64", "\"cores\": 1.5", "cores should be a whole number, and is 1.5"},
    {"\"cores\": 64", "\"cores\": 0", "and is 0; `weft calibrate`"},
    {"\"cores\": 64", "\"cores\": 1e300", "and is 1e300"},
    {"\"cores\": 64", "\"cores\": 1e999", "is no JSON: real number overflow"},
    {"\"cores\": 64", "\"cores\": NaN", "is no JSON"},
    {"\"cores\": 64", "\"coers\": 64",
     "round.json: coers is no key that Weft knows there; did you mean cores?"},
    {"\"cores\": 64", "\"cores\": 64, \"cores\": 2", "duplicate object key"},
    {"\"weft_machine\": 1", "\"weft_machine\": 2", "it is of format 2, and this Weft reads 1"},
    {"\"name\": \"round\"", "\"name\": null", "name should be a text, and is null"},
    {"\"spread\": 0.5", "\"spread\": -1", "spread should be a number from 0 to 1e+06, and is -1"},
    {"\"step_seconds\": 0.25", "\"step_seconds\": 2",
     "loads[0].step_seconds should be a number from 0 to 1, and is 2"},
    {"\"step_seconds\": 0.25", "\"step_seconds\": 0.25, \"run_seconds\": -1",
     "loads[0].run_seconds should be a number from 0 to 100, and is -1"},
    {"\"step_seconds\": 0.25", "\"step_seconds\": 0.25, \"input_bytes_per_second\": \"8 GB\"",
     "loads[0].input_bytes_per_second should be a number from 0 to 1e+18, and is \"8 GB\""},
    {"\"lanes\": 2", "\"lanse\": 2",
     "loads[0].lanse is no key that Weft knows there; did you mean lanes?"},
    {"[7, 2e9]", "[7, \"2e9\"]",
     "loads[0].flops_per_second.f32[1] should be a pair of numbers above 0, with a larger "
     "first one than the entry before, and is [7,\"2e9\"]"},
    {"[7, 2e9]", "[7, 0]", "and is [7,0]"},
    {"[7, 2e9]", "[7, -2]", "and is [7,-2]"},
    {"[7, 2e9]", "[7, 1e200]", "and is [7,1e200]"},
    {"[7, 2e9]", "[0.5, 2e9]", "and is [0.5,2"},
    {"[7, 2e9]", "7", "and is 7"},
    {"[[1, 1e9], [7, 2e9]]", "[]", "f32 should be a list with at least one entry, and is []"},
    {"\"f32\": [[1, 1e9], [7", "\"f64\": [[1, 1e9], [7",
     "flops_per_second.f32 should be a list of points, and is missing"},
    {"\"exp\": 0.125", "\"exp\": \"fast\"",
     "act_seconds.exp should be a number from 0 to 1, and is \"fast\""},
    {"\"other\": 0}, \"kernels\": [{", "\"othre\": 0}, \"kernels\": [{",
     "act_seconds.other should be a number from 0 to 1, and is missing"},
    {"[800, 400]", "[800, \"400\"]",
     "loads[0].kernels[0].bytes should be a number from 0 to 1e30, and is \"400\""},
    {"[800, 400]", "[800, -400]", "and is -400"},
    {"[800, 400]", "[1,2,3,4,5,6,7,8,9,10,11,12,13]",
     "bytes should be a list of at most 12 numbers"},
    {"\"tanh\": 5", "\"tanh\": \"5\"", "acts should be a number from 0 to 1e30, and is \"5\""},
    {"\"id\": \"1f\"", "\"id\": \"1g\"",
     "id should be a hexadecimal number as a text, and is \"1g\""},
    {"\"seconds\": 8e-6", "\"seconds\": 0",
     "kernels[0].seconds should be a number from 1e-12 to 1e+06, and is 0"},
    {"\"seconds\": 8e-6", "\"secnods\": 8e-6", "did you mean seconds?"},
    {"\"ranks\": 4", "\"ranks\": 1",
     "loads[1].ranks should be more than those of the load before, and is 1"},
    {"\"latency_seconds\": 0.75", "\"latency_seconds\": -0.5",
     "levels[0].latency_seconds should be a number from 0 to 100, and is -0.5"},
    {"\"cpu\": 1", "\"cpu\": 1.5", "levels[0].cpu should be a number from 0 to 1, and is 1.5"},
    {"\"cpu\": 1", "\"cpu\": 1, \"gpu\": 1",
     "levels[0].gpu is no key that Weft knows there; did you mean cpu?"},
    {"all_gather", "all_reduce",
     "exchanges[1] should be of another kind, level or number of ranks than those before"},
    {"all_gather", "all_gatehr", "not \"all_gatehr\"; did you mean all_gather?"},
    {"\"work\": \"loop\"", "\"work\": \"scan\"",
     "slows[0].work should be product or loop, and is \"scan\""},
    {"\"cpu\": 0.875", "\"cpu\": \"all\"",
     "slows[0].cpu should be a number from 0 to 1, and is \"all\""},
    {"\"cpu\": 0.875", "\"cpu\": 0.875, \"exchange\": 3",
     "slows[0].exchange is no key that Weft knows there"},
    {"[{\"kind\"", "[3, {\"kind\"", "exchanges[0] should be an object, and is 3"},
};

static void test_edits(void)
{
    weft_error error = WEFT_NO_ERROR;
    CHECK_OK(parse(good, strlen(good), &error), error);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char text[4000];
        edit(edits[i].was, edits[i].is, text);
        CHECK_EQ_INT(parse(text, strlen(text), &error), WEFT_USAGE);
        CHECK_TEXT(error.message, edits[i].sentence);
    }
}

/* Cut at any letter, or with any letter changed, it is refused in a sentence of one line, or means something. */
static void test_cuts_and_letters(void)
{
    static const char letters[] = {'\0', '\x7f', '\xff', '"', '{', ']', '9', '-', '\n'};
    weft_error error = WEFT_NO_ERROR;
    char text[4000];
    for (size_t n = 0; n < strlen(good); n++) {
        CHECK_EQ_INT(parse(good, n, &error), WEFT_USAGE);
        CHECK(strlen(error.message) > 20 && strchr(error.message, '\n') == NULL);
    }
    for (size_t n = 0; n < strlen(good); n++)
        for (size_t l = 0; l < sizeof letters; l++) {
            memcpy(text, good, sizeof good);
            text[n] = letters[l];
            const weft_status status = parse(text, strlen(good), &error);
            CHECK(status == WEFT_OK || status == WEFT_USAGE);
            CHECK(strchr(error.message, '\n') == NULL);
        }
}

/* ---- files ------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/weft-machine-file-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *file_of(const char *name, const char *text, size_t bytes, off_t all)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    if (CHECK(file != NULL)) {
        CHECK(fwrite(text, 1, bytes, file) == bytes && fflush(file) == 0);
        if (all > 0) CHECK_EQ_INT(ftruncate(fileno(file), all), 0);
        fclose(file);
    }
    return path;
}

static void check_refused(const char *path, weft_status wanted, const char *sentence)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    CHECK_EQ_INT(weft_machine_model_read(path, &model, &error), wanted);
    CHECK(model == NULL);
    CHECK_TEXT(error.message, sentence);
}

static void test_files(void)
{
    check_refused(file_of("empty.json", "", 0, 0), WEFT_USAGE,
                  "/empty.json is empty; `weft calibrate`");
    check_refused(file_of("cut.json", good, 300, 0), WEFT_USAGE, "is no JSON");
    check_refused(file_of("binary.json",
                          "\x7f"
                          "ELF\2\1\1",
                          7, 0),
                  WEFT_USAGE, "is no JSON");
    check_refused(file_of("list.json", "[]", 2, 0), WEFT_USAGE, "should be an object, and is []");
    check_refused(file_of("large.json", good, strlen(good), (off_t)1 << 30), WEFT_USAGE,
                  "is no machine file: it has more than 64 MiB");
    check_refused(path_of(""), WEFT_IO, "Is a directory");
    check_refused(path_of("none.json"), WEFT_IO, "No such file or directory");
    if (geteuid() == 0) return; /* who may read all */
    const char *path = file_of("shut.json", good, strlen(good), 0);
    CHECK_EQ_INT(chmod(path, 0), 0);
    check_refused(path, WEFT_IO, "Permission denied");
}

/* ---- of another machine ------------------------------------------------------------------------------ */

static weft_machine_model *model_of(const char *processor, const char *library, int cores)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    CHECK_OK(weft_machine_model_parse(good, strlen(good), "round.json", &model, &error), error);
    model->processor = processor;
    model->library = library;
    model->cores = cores;
    return model;
}

static void check_differs(const char *processor, const char *library, int cores, bool runs_here,
                          const char *sentence)
{
    char text[480];
    weft_machine_model *model = model_of(processor, library, cores);
    CHECK(weft_machine_model_differs(model, runs_here, text, sizeof text) == (sentence != NULL));
    if (sentence) CHECK_TEXT(text, sentence);
    CHECK(sentence == NULL || strstr(text, "; predicted all the same") != NULL);
    CHECK(weft_machine_model_differs(model, runs_here, NULL, 0) == (sentence != NULL));
    weft_machine_model_destroy(&model);
}

static void test_of_another_machine(void)
{
    const weft_machine *here = weft_machine_info();
    const char *library = weft_machine_library(), *own = here->processor;
    check_differs(own, library, here->n_cores, true, NULL);
    check_differs("abacus", library, here->n_cores, false, NULL);
    check_differs("abacus", library, here->n_cores, true,
                  "machine round has another processor (abacus) than this one (");
    check_differs(own, library, here->n_cores + 1, true, "machine round has ");
    check_differs(own, "beads", here->n_cores, false,
                  "machine round was measured with the kernels of beads, and these are weft ");
    check_differs("abacus", "beads", 1, true, "; it was measured with the kernels of beads");
    check_differs("abacus", "", 1, true, NULL); /* the file does not say */
    CHECK(!weft_machine_model_differs(NULL, true, NULL, 0));
}

int main(void)
{
    if (!CHECK(mkdtemp(folder) != NULL)) return weft_test_report();
    RUN(test_edits);
    RUN(test_cuts_and_letters);
    RUN(test_files);
    RUN(test_of_another_machine);
    char line[100];
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(system(line), 0);
    return weft_test_report();
}
