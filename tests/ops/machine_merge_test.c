/* machine_merge_test: two measurements of one machine give the faster figures, and keep those of one alone; two machines are
 * refused.
 */
#include "weft/research/predict.h"

#include "ops/predict/machine.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_error error = WEFT_NO_ERROR;

static weft_machine_model *make(const char *processor, int cores, const char *level)
{
    weft_machine_model *model = NULL;
    const weft_level near = {
        .name = level, .latency_seconds = 2e-6, .bytes_per_second = 1e9, .cpu = 1};
    CHECK_OK(weft_machine_model_make("made", processor, "today", cores, &model, &error), error);
    if (level) CHECK_OK(weft_machine_add_level(model, &near, &error), error);
    return model;
}

static weft_workload product(uint64_t id)
{
    return (weft_workload){
        .name = "einsum", .dtype = WEFT_F32, .id = id, .flops = 8, .n_sizes = 1, .sizes = {4}};
}

/* Each figure at `speed`: twice that is half the seconds. */
static weft_load *add_load(weft_machine_model *model, int ranks, uint64_t kernel, double speed)
{
    weft_load *load;
    const weft_workload work = product(kernel);
    CHECK_OK(weft_machine_add_load(model, ranks, 1, &load, &error), error);
    load->step_seconds = 1e-6 / speed;
    load->other_act = 1e-9 / speed;
    CHECK_OK(weft_curve_add(model->arena, &load->byte_rate, 4096, 1e9 * speed, &error), error);
    CHECK_OK(weft_curve_add(model->arena, &load->flop_rate[WEFT_F32], 100, 1e8 * speed, &error),
             error);
    CHECK_OK(weft_machine_add_act(model, load, "exp", 5e-9 / speed, &error), error);
    CHECK_OK(weft_machine_add_sample(model, load, &work, 1e-3 / speed, 0, &error), error);
    return load;
}

static void add_exchange(weft_machine_model *model, int ranks, double bytes, double seconds)
{
    weft_exchange_curve *curve;
    CHECK_OK(weft_machine_add_exchange(model, WEFT_ALL_REDUCE, 0, ranks, &curve, &error), error);
    CHECK_OK(weft_curve_add(model->arena, &curve->seconds, bytes, seconds, &error), error);
    const weft_slow slow = {.work = "loop", .kind = WEFT_ALL_REDUCE, .cpu = seconds * 1e5};
    CHECK_OK(weft_machine_add_slow(model, &slow, &error), error);
}

static void check_load(const weft_load *load, double speed)
{
    CHECK_CLOSE(load->step_seconds, 1e-6 / speed, 1e-9);
    CHECK_CLOSE(load->other_act, 1e-9 / speed, 1e-9);
    CHECK_CLOSE(load->byte_rate.value[0], 1e9 * speed, 1e-9);
    CHECK_CLOSE(load->flop_rate[WEFT_F32].value[0], 1e8 * speed, 1e-9);
    CHECK_CLOSE(load->acts[0].elements, 5e-9 / speed, 1e-9);
    CHECK_CLOSE(load->samples[0].seconds, 1e-3 / speed, 1e-9);
}

static void test_the_faster_figure_counts_whichever_comes_first(void)
{
    for (int first = 0; first < 2; first++) {
        weft_machine_model *a = make("abacus", 2, "near"), *b = make("abacus", 2, "near");
        add_load(a, 1, 7, first == 0 ? 4 : 1);
        add_load(b, 1, 7, first == 0 ? 1 : 4);
        b->loads[0].byte_rate.size[0] *= 1 + 1e-6; /* as a file rounds it */
        add_exchange(a, 2, 64, first == 0 ? 1e-6 : 3e-6);
        add_exchange(b, 2, 64, first == 0 ? 3e-6 : 1e-6);
        CHECK_OK(weft_machine_model_merge(a, b, &error), error);
        CHECK_EQ_INT(a->n_loads, 1);
        CHECK_EQ_INT(a->loads[0].n_samples, 1);
        CHECK_EQ_INT(a->loads[0].byte_rate.n, 1);
        check_load(&a->loads[0], 4);
        CHECK_EQ_INT(a->n_exchanges, 1);
        CHECK_CLOSE(a->exchanges[0].seconds.value[0], 1e-6, 1e-9);
        CHECK_EQ_INT(a->n_slows, 1);
        CHECK_CLOSE(a->slows[0].cpu, 0.1, 1e-9);
        /* 0.25 ms and 1 ms: the mean is 0.625, 1.5 times as much again as the shorter one. */
        CHECK_CLOSE(a->loads[0].samples[0].spread, 1.5, 1e-9);
        weft_machine_model_destroy(&a);
        weft_machine_model_destroy(&b);
    }
}

/* Loads stay ascending; kernels, sizes and links that only one has are kept. */
static void test_what_one_alone_has_is_kept(void)
{
    weft_machine_model *a = make("abacus", 8, NULL), *b = make("abacus", 8, "near");
    add_load(a, 1, 7, 1);
    add_load(a, 8, 7, 1);
    add_load(b, 2, 9, 1);
    weft_load *eight = add_load(b, 8, 9, 1);
    CHECK_OK(weft_curve_add(b->arena, &eight->byte_rate, 64, 5, &error), error);
    add_exchange(b, 2, 64, 1e-6);
    CHECK_OK(weft_machine_model_merge(a, b, &error), error);
    CHECK_EQ_INT(a->n_loads, 3);
    CHECK_EQ_INT(a->loads[1].ranks, 2);
    CHECK_EQ_INT(a->loads[2].ranks, 8);
    CHECK_EQ_INT(a->loads[2].n_samples, 2);
    CHECK_EQ_INT(a->loads[2].byte_rate.n, 2);
    CHECK_CLOSE(a->loads[2].byte_rate.size[0], 64, 1e-9);
    CHECK_EQ_INT(a->n_levels, 1);
    CHECK_EQ_INT(a->n_exchanges, 1);
    weft_machine_model_destroy(&b);
    CHECK(strcmp(a->levels[0].name, "near") == 0);
    CHECK(strcmp(a->loads[1].samples[0].work.name, "einsum") == 0);
    weft_machine_model_destroy(&a);
}

/* Lists of 3 and 5 entries, read from a file, have room for others all the same. */
static void test_what_was_read_grows(void)
{
    char *text = NULL;
    size_t bytes = 0;
    weft_machine_model *a = make("abacus", 8, "near"), *b = make("abacus", 8, "near"), *read = NULL;
    FILE *file = open_memstream(&text, &bytes);
    for (int ranks = 1; ranks <= 3; ranks++) {
        weft_load *load = add_load(a, ranks, 1, 1);
        for (uint64_t kernel = 2; kernel <= 5; kernel++) {
            const weft_workload work = product(kernel);
            CHECK_OK(weft_machine_add_sample(a, load, &work, 1, 0, &error), error);
        }
        add_exchange(a, 2 * ranks, 64, 1e-6);
    }
    for (int ranks = 3; ranks <= 9; ranks++)
        add_load(b, ranks, 100 + (uint64_t)ranks, 1), add_exchange(b, 2 * ranks, 64, 1e-6);
    CHECK_OK(weft_machine_model_write(a, file, &error), error);
    fclose(file);
    CHECK_OK(weft_machine_model_parse(text, bytes, "read.json", &read, &error), error);
    CHECK_OK(weft_machine_model_merge(read, b, &error), error);
    CHECK_EQ_INT(read->n_loads, 9);
    CHECK_EQ_INT(read->n_exchanges, 9);
    CHECK_EQ_INT(read->loads[2].n_samples, 6);
    CHECK_EQ_INT(read->loads[2].samples[4].work.id, 5);
    weft_machine_model_destroy(&read);
    weft_machine_model_destroy(&a);
    weft_machine_model_destroy(&b);
    free(text);
}

static void check_refused(weft_machine_model *other, const char *sentence)
{
    weft_machine_model *a = make("abacus", 2, "near");
    weft_error refused = WEFT_NO_ERROR;
    CHECK_EQ_INT(weft_machine_model_merge(a, other, &refused), WEFT_USAGE);
    CHECK_TEXT(refused.message, sentence);
    weft_machine_model_destroy(&a);
    weft_machine_model_destroy(&other);
}

static void test_two_machines_are_not_one(void)
{
    check_refused(make("abacus", 4, "near"),
                  "they are of two machines: made has 2 cores of abacus, "
                  "and made has 4 of abacus");
    check_refused(make("slide rule", 2, "near"), "of slide rule");
    check_refused(make("abacus", 2, "far"), "level 0 is near in made and far in made");
    check_refused(NULL, "from");
}

int main(void)
{
    RUN(test_the_faster_figure_counts_whichever_comes_first);
    RUN(test_what_one_alone_has_is_kept);
    RUN(test_what_was_read_grows);
    RUN(test_two_machines_are_not_one);
    return weft_test_report();
}
