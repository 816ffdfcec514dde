/* gpt_test: the program as its user runs it: the same losses from threads and from processes, a
 * plan without ranks. */
#include "text_folder.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 20, TEXT = 2048 };

#define SMALL "--layers 2 --width 24 --heads 3 --batch 6 --seq 12 --steps 20 --dtype f64 --quiet "

/* Train with `arguments`, started by `launcher`; the losses of all steps. */
static void train(const char *launcher, const char *arguments, double losses[STEPS])
{
    static int n_runs = 0;
    char line[4 * TEXT], metrics[TEXT];
    snprintf(metrics, sizeof metrics, "%s/metrics%d.jsonl", folder, ++n_runs);
    snprintf(line, sizeof line,
             "%s " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/run%d %s --metrics %s %s",
             launcher, folder, folder, n_runs, SMALL, metrics, arguments);
    const command_result r = command_run(line);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    CHECK_EQ_INT(text_folder_losses(metrics, losses, STEPS), STEPS);
}

static void check_losses(const char *launcher, const char *arguments, const double expected[STEPS])
{
    double losses[STEPS] = {0};
    train(launcher, arguments, losses);
    for (int i = 0; i < STEPS; i++)
        CHECK_CLOSE(losses[i], expected[i], 1e-10);
}

static void test_threads_and_processes_give_the_same_losses(void)
{
    double alone[STEPS] = {0};
    train("", "", alone);
    CHECK(alone[STEPS - 1] < alone[0]);
    check_losses(
        "",
        "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 1",
        alone);
    check_losses("", "--mesh data:3 --layout batch:data --zero 3", alone);
    check_losses("", "--accumulate 2 --mesh data:3 --layout batch:data --zero 2 --recompute",
                 alone);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_losses(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "--layout batch:data --zero 3", alone);
    check_losses(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "--layout batch:data --accumulate 3",
                 alone);
    check_losses(WEFT_TEST_MPIEXEC " -n 4 --oversubscribe",
                 "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model",
                 alone);
}

static void check_refused(const char *arguments, const char *says)
{
    char line[TEXT];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt train --dry-run %s", arguments);
    const command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_EQ_INT(command_lines(r.text, "gpt: "), 1);
    CHECK_TEXT(r.text, says);
}

static void test_micro_batches_share_the_batch(void)
{
    check_refused("--batch 6 --accumulate 4", "batch 6 and accumulate 4");
    check_refused("--batch 6 --accumulate 4", "accumulate must divide batch");
    check_refused("--batch 6 --accumulate 3 --dtype f16", "take --dtype bf16, or f32");
}

/* Layers as stages, which a rule splits over ranks: the losses of the layers at once, by threads and by processes; text is
 * written by the same model. */
static void test_stages_give_the_losses_of_the_layers(void)
{
#define PLAIN "--layers 4 --dropout 0 "
    double alone[STEPS] = {0};
    train("", PLAIN, alone);
    check_losses("", PLAIN "--stages 2 --micro 3", alone);
    check_losses("", PLAIN "--stages 4 --micro 2 --mesh pipe:4 --layout stage:pipe --sample 20",
                 alone);
    check_losses("",
                 PLAIN "--stages 2 --micro 3 --mesh data:2,pipe:2 --layout "
                       "batch:data,stage:pipe --zero 1 --recompute",
                 alone);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_losses(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe",
                 PLAIN "--stages 2 --micro 3 --mesh pipe:2 --layout stage:pipe", alone);
    check_losses(WEFT_TEST_MPIEXEC " -n 4 --oversubscribe",
                 PLAIN "--stages 2 --micro 2 --mesh pipe:2,model:2 --layout "
                       "hidden:model,heads:model,vocab:model,stage:pipe",
                 alone);
#undef PLAIN
}

/* One block, through which a scan goes with the weights of each layer: the losses of the layers, by threads and by processes; text is
 * written by the same model. */
static void test_a_scan_through_the_layers_gives_their_losses(void)
{
#define PLAIN "--layers 3 --dropout 0 "
    double alone[STEPS] = {0};
    train("", PLAIN, alone);
    check_losses("", PLAIN "--scan-layers --sample 20", alone);
    check_losses("", PLAIN "--scan-layers --mesh data:2 --layout batch:data --zero 3 --recompute",
                 alone);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_losses(WEFT_TEST_MPIEXEC " -n 4 --oversubscribe",
                 PLAIN "--scan-layers --mesh data:2,model:2 --layout "
                       "batch:data,hidden:model,heads:model,vocab:model --zero 1",
                 alone);
#undef PLAIN
    check_refused("--layers 4 --stages 2 --scan-layers", "stages 2 and scan-layers");
}

/* A form of the model: one loss under all layouts, of them `layout` on model:2 and `by_processes` on data:2,model:2, in stages, and as
 * one scan; another loss than the plain model's. */
static void check_form(const char *form, const char *layout, const char *by_processes)
{
    char still[TEXT], line[2 * TEXT];
    double plain[STEPS] = {0}, alone[STEPS] = {0};
    train("", "", plain);
    train("", form, alone);
    CHECK(alone[STEPS - 1] < alone[0] && fabs(alone[1] - plain[1]) > 1e-4);
    snprintf(line, sizeof line,
             "%s --zero 3 --mesh data:2,model:2 --layout "
             "batch:data,hidden:model,heads:model,vocab:model",
             form);
    check_losses("", line, alone);
    snprintf(line, sizeof line, "%s --mesh model:2 --layout %s", form, layout);
    check_losses("", line, alone);
    if (weft_test_stride(2) > 1) return; /* the rest as in the tests above */
    snprintf(still, sizeof still, "%s --dropout 0",
             form); /* masks are others in stages, and in a scan */
    train("", still, alone);
    snprintf(line, sizeof line, "%s --stages 2 --micro 3 --mesh pipe:2 --layout stage:pipe", still);
    check_losses("", line, alone);
    snprintf(line, sizeof line, "%s --scan-layers --accumulate 2 --recompute", still);
    check_losses("", line, alone);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    snprintf(line, sizeof line, "%s --mesh data:2,model:2 --layout %s", still, by_processes);
    check_losses(WEFT_TEST_MPIEXEC " -n 4 --oversubscribe", line, alone);
}

static void test_shared_keys_and_rotary_positions_split_as_the_rest(void)
{
    check_form("--heads 4 --kv-heads 2 --rope", "group:model,seq:model",
               "batch:data,hidden:model,group:model,seq:model");
    check_refused("--heads 4 --kv-heads 3", "heads 4 and kv-heads 3");
    check_refused("--heads 4 --kv-heads 3", "kv-heads must divide heads");
    check_refused("--width 24 --heads 8 --rope", "a head has 3 numbers");
    check_refused("--width 24 --heads 8 --rope", "width / heads, or --head-dim, must be even");
}

/* Norms without biases, and one table for tokens and head. */
static void test_norms_of_mean_squares_and_a_tied_head_split_as_the_rest(void)
{
    check_form("--norm rms --tie", "embed:model", "batch:data,hidden:model,vocab:model");
    check_refused("--norm rsm", "did you mean rms?");
}

static void test_stages_and_micro_batches_divide(void)
{
    check_refused("--layers 6 --stages 4", "layers 6 and stages 4");
    check_refused("--layers 6 --stages 4", "stages must divide layers");
    check_refused("--batch 6 --stages 2 --micro 4", "batch 6 and micro 4");
    check_refused("--batch 6 --stages 2 --micro 4", "micro must divide batch");
    check_refused("--batch 6 --stages 2 --micro 3 --accumulate 3", "2 windows of a part");
    check_refused("--batch 6 --micro 3", "give --stages too");
    check_refused("--batch 6 --halves", "give --stages too");
    check_refused("--batch 6 --stages 2 --micro 2 --halves", "batch 6 and --halves of micro 2");
}

/* Bubbles are (stages - 1) of (stages + micro-batches - 1) ticks. */
static void test_plan_says_what_bubbles_are(void)
{
    const command_result r = command_run_all(
        WEFT_TEST_BIN "/gpt train --dry-run --stages 4 --micro 16 --mesh pipe:4 --layout "
                      "stage:pipe --width 32 --seq 8 2>&1");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text,
               "stages: 4, through which 16 micro-batches go in 19 ticks: bubbles are 15.8 %");
    CHECK_TEXT(r.text, "19 trips of ");
}

/* A plan says what blocks that are computed again spare, and what they cost. */
static void test_plan_says_what_is_computed_again(void)
{
    const command_result r = command_run_all(WEFT_TEST_BIN "/gpt train --dry-run --recompute 2>&1");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "computed again: ");
    CHECK_TEXT(r.text, "kept for the backward pass:");
}

static void test_plan_for_512_ranks(void)
{
    char line[TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN
             "/gpt train --dry-run=all --mesh data:64,model:8 --batch 512 --zero 1 "
             "--layout batch:data,hidden:model,heads:model,vocab:model --heads 8 2>&1");
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK(r.seconds <= 2.0);
    CHECK_TEXT(r.text, "block0.up");
    CHECK_TEXT(r.text, "all_reduce");
    CHECK_TEXT(r.text, "model");
}

/* How many columns the widest line has. */
static int width_of(const char *text)
{
    int widest = 0, column = 0;
    for (; *text; text++) {
        column = *text == '\n' ? 0 : column + (((unsigned char)*text & 0xC0) != 0x80);
        if (column > widest) widest = column;
    }
    return widest;
}

/* However many layers; and it says where to read the rest. */
static void test_plan_fits_a_screen(void)
{
    const command_result r = command_run_all(
        WEFT_TEST_BIN
        "/gpt train --dry-run --layers 30 --width 8 --seq 8 --zero 1 --mesh "
        "data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model,embed:model 2>&1");
    CHECK_EQ_INT(r.status, 0);
    CHECK(command_lines(r.text, "") <= 40);
    CHECK_TEXT(r.text, "rules skipped");
    CHECK_TEXT(r.text, "optimizer slots");
    CHECK_TEXT(r.text, "all_reduce");
    CHECK_TEXT(r.text, "--dry-run=all");
    CHECK(strstr(r.text, "block0.up/m") == NULL && strstr(r.text, "advice") == NULL);
}

/* What is advised is what a plan by the advice says. */
static void test_plan_advises_where_memory_does_not_suffice(void)
{
    static const char *const large = "--layers 96 --width 12288 --heads 96 --seq 2048 --batch 512 "
                                     "--scan-layers --mesh data:8 --layout batch:data";
    char line[TEXT], other[TEXT] = "", *end;
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt train --dry-run %s 2>&1", large);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    const char *advice = strstr(r.text, "advice: "); /* of one rank, or of several of a host */
    if (advice && !strstr(advice, "a rank needs ")) advice = NULL;
    const char *with = advice ? strstr(advice, "with --") : NULL;
    const char *needs = with ? strstr(with, " it needs least, ") : NULL;
    if (!CHECK(needs != NULL)) return;
    CHECK_TEXT(with, "--recompute");
    snprintf(other, sizeof other, "%.*s", (int)(needs - with - 5), with + 5);
    const double told = strtod(needs + strlen(" it needs least, "), &end);
    CHECK_TEXT(end, " GiB: take more ranks, or a smaller model or batch");
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --dry-run %s %s | awk '/^  peak/ { print $2, $3; exit }'",
             large, other);
    const command_result planned = command_run_all(line);
    CHECK_CLOSE(strtod(planned.text, NULL), told, 1e-3 * told);
}

/* Settings that were said, each line within 120 columns, whatever the layout's length. */
static void test_what_a_run_tells_first(void)
{
    char line[4 * TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN
             "/gpt train --data %s/text.txt --run %s/told --layers 1 --width 8 --heads 2 "
             "--seq 8 --batch 4 --steps 2 --mesh data:2,model:2,sequence:1 --layout "
             "batch:data,hidden:model,heads:model,vocab:model,seq:sequence 2>&1",
             folder, folder);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK(width_of(r.text) <= 120);
    CHECK(command_lines(r.text, "") <= 16);
    CHECK_TEXT(r.text, " steps=2 batch=4 ");
    CHECK(strstr(r.text, "optimizer=") == NULL);
    CHECK_TEXT(r.text, "others have their defaults; ");
}

/* The losses that were measured of the text that is held out, into losses [2]; returns how many. */
static int held_losses(const char *launcher, const char *arguments, double losses[2])
{
    char line[4 * TEXT];
    snprintf(
        line, sizeof line,
        "rm -rf %s/held; %s " WEFT_TEST_BIN
        "/gpt train --data %s/text.txt --eval-data %s/text.txt --eval-every 15 --run %s/held " SMALL
        "%s && sed -n 's/.*\"held_out\":\\([^,}]*\\).*/\\1/p' %s/held/metrics.jsonl",
        folder, launcher, folder, folder, folder, arguments, folder);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    return sscanf(r.text, "%lf %lf", &losses[0], &losses[1]);
}

/* Of the text that is learned it falls with the loss; one number on any layout; and it changes nothing that is learned. */
static void test_held_out_loss(void)
{
    double alone[STEPS] = {0}, held[2], other[2];
    static const char *const layouts[] = {
        "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 3",
        "--accumulate 3 --recompute", "--mesh data:2 --layout batch:data"};
    if (!CHECK_EQ_INT(held_losses("", "", held), 2)) return;
    CHECK(held[1] < held[0] && held[0] < 6);
    for (int i = 0; i < 3; i++) {
        const bool is_mpi = i == 2;
        if (is_mpi && WEFT_TEST_MPIEXEC[0] == '\0') break;
        if (!CHECK_EQ_INT(held_losses(is_mpi ? WEFT_TEST_MPIEXEC " -n 2 --oversubscribe" : "",
                                      layouts[i], other),
                          2))
            return;
        CHECK_CLOSE(other[0], held[0],
                    i == 1 ? 1e-2 : 1e-10); /* in smaller batches fewer windows are left out */
        CHECK_CLOSE(other[1], held[1], i == 1 ? 1e-2 : 1e-10);
    }
    train("", "", alone);
    double with[STEPS] = {0};
    char more[TEXT];
    snprintf(more, sizeof more, "--eval-data %s/text.txt --eval-every 2", folder);
    train("", more, with);
    for (int i = 0; i < STEPS; i++)
        CHECK(with[i] == alone[i]);
    snprintf(more, sizeof more, "printf 'short, but a window' >%s/short", folder);
    CHECK_EQ_INT(system(more), 0);
    char line[TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --eval-data %s/short --run %s/no " SMALL,
             folder, folder, folder);
    const command_result r = command_run(line);
    CHECK_EQ_INT(r.status, 2);
    CHECK_TEXT(r.text, "1 samples, and a batch takes 6");
}

/* The bytes in brackets of a line of the plan; -1 where there is none. */
static int64_t bytes_of(const char *plan, const char *line)
{
    const char *at = strstr(plan, line), *bracket = at != NULL ? strchr(at, '(') : NULL;
    return bracket != NULL ? strtoll(bracket + 1, NULL, 10) : -1;
}

/* Layers as one scan, each computed again, over micro-batches: within a device of 80 GiB. */
static void test_plan_of_70_billion_parameters(void)
{
    const int64_t parameters = INT64_C(70000000000), GiB = INT64_C(1) << 30;
    const command_result r = command_run_all(
        WEFT_TEST_BIN "/gpt train --dry-run --mesh data:512 --layout batch:data --zero 3 "
                      "--layers 88 --width 8192 --heads 64 --seq 4096 --batch 2048 --accumulate 4 "
                      "--scan-layers --recompute --dtype bf16 | sed -n '/^memory of rank/,/^$/p'");
    CHECK_EQ_INT(r.status, 0);
    CHECK(bytes_of(r.text, "  parameters ") >= parameters * (int64_t)sizeof(float) / 512);
    CHECK(bytes_of(r.text, "  peak ") > 0);
    CHECK(bytes_of(r.text, "  peak ") <= 80 * GiB);
}

static void test_plan_as_json(void)
{
    char line[TEXT];
    snprintf(line, sizeof line,
             WEFT_TEST_BIN
             "/gpt train --dry-run --json --explain --mesh data:2 --layout batch:data "
             "| python3 -m json.tool 2>&1");
    if (system("python3 -c pass") != 0) return; /* no judge of JSON here */
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "block0.up");
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --dry-run --explain --layers 1 --mesh data:2,model:2 "
                           "--layout batch:data,hidden:model | grep -A99 'ways compared'");
    const command_result explained = command_run_all(line);
    CHECK_EQ_INT(explained.status, 0);
    CHECK_TEXT(explained.text, "einsum of dense at model.c:");
    CHECK_TEXT(explained.text, ", model: hidden of hidden ");
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "gpt"))) {
        RUN(test_threads_and_processes_give_the_same_losses);
        RUN(test_micro_batches_share_the_batch);
        RUN(test_stages_give_the_losses_of_the_layers);
        RUN(test_a_scan_through_the_layers_gives_their_losses);
        RUN(test_shared_keys_and_rotary_positions_split_as_the_rest);
        RUN(test_norms_of_mean_squares_and_a_tied_head_split_as_the_rest);
        RUN(test_stages_and_micro_batches_divide);
        RUN(test_plan_says_what_bubbles_are);
        RUN(test_plan_says_what_is_computed_again);
        RUN(test_held_out_loss);
        RUN(test_plan_fits_a_screen);
        RUN(test_plan_advises_where_memory_does_not_suffice);
        RUN(test_what_a_run_tells_first);
        RUN(test_plan_for_512_ranks);
        RUN(test_plan_of_70_billion_parameters);
        RUN(test_plan_as_json);
        text_folder_close();
    }
    return weft_test_report();
}
