/* predict_test: seconds by hand. On a machine with round numbers small programs take what can be worked out with a pencil:
 * work, exchanges beside it, ranks that come late, trips of scans, levels of links; and a machine file says where it is wrong.
 */
#include "ops/round_machine.h"
#include "ops/run/program.h"
#include "test.h"

static void test_work_takes_its_flops(void)
{
    planned p;
    open_planned(&p, "data:1", "");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 10, 20, 5)));
    const weft_prediction t = predict(&p, plain_machine("0"), NULL);
    CHECK_CLOSE(t.seconds, 2000e-9, 1e-12);
    CHECK_CLOSE(t.work_seconds, 2000e-9, 1e-12);
    CHECK_CLOSE(t.phase_seconds[WEFT_FORWARD], 2000e-9, 1e-12);
    CHECK_CLOSE(t.source_seconds[WEFT_TIME_RATES], 2000e-9, 1e-12);
    CHECK(t.exchange_seconds == 0 && t.exposed_seconds == 0 && t.n_kinds == 1);
    close_planned(&p);
}

/* 4 x 10 x 6 products on each of two ranks; 240 bytes all-reduced send 240 through a link. */
static void test_an_exchange_takes_its_bytes_after_the_work(void)
{
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    const weft_prediction t = predict(&p, plain_machine("0"), NULL);
    CHECK_CLOSE(t.seconds, 480e-9 + 240e-6, 1e-12);
    CHECK_CLOSE(t.exchange_seconds, 240e-6, 1e-12);
    CHECK_CLOSE(t.exposed_seconds, 240e-6, 1e-12);
    CHECK(t.late_seconds == 0);
    close_planned(&p);
}

/* Of two ranks the first has 201 of 401 rows of 16 numbers: they are written first, whatever the plan does. */
static void test_a_run_takes_what_is_besides_its_steps(void)
{
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 401, 10, 6)));
    const double usual = predict(&p, plain_machine("0"), NULL).seconds;
    weft_machine_model *model = plain_machine("0");
    model->loads[0].run_seconds = 0.5;
    model->loads[0].input_bytes_per_second = 201 * 16 * 4 * 4;
    const weft_predict_options draws = {.draws = 9};
    const weft_prediction t = predict(&p, model, &draws);
    CHECK_CLOSE(t.besides_seconds, 0.75, 1e-12);
    CHECK_CLOSE(t.seconds, 0.75 + usual, 1e-12);
    CHECK_CLOSE(t.median_seconds, t.seconds, 1e-12);
    CHECK_CLOSE(t.phase_seconds[WEFT_FORWARD], usual, 1e-12);
    CHECK(predict(&p, plain_machine("0"), NULL).besides_seconds == 0);
    close_planned(&p);
}

/* Four ranks on two cores take twice as long, whether two were measured at once or four: the fastest of those had a core each. */
static void test_ranks_share_cores(void)
{
    planned p;
    open_planned(&p, "data:4", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 80, 20, 5)));
    for (int ranks = 1; ranks <= 8; ranks *= 2) {
        weft_machine_model *model = plain_machine("0");
        model->cores = 2;
        model->loads[0].ranks = ranks;
        model->loads[0].lanes = ranks == 1 ? 2 : 1;
        const double crowd = weft_load_crowd(model, &model->loads[0], 4);
        CHECK(crowd == (ranks == 1 ? 4 : 2));
        CHECK(weft_load_crowd(model, &model->loads[0], 1) == 1);
        CHECK_CLOSE(predict(&p, model, NULL).work_seconds, crowd * 4000e-9, 1e-12);
    }
    close_planned(&p);
}

/* Two products: the sum of the first is finished while the second, of 250 x 400 x 1000 on each rank, is computed. */
static void test_work_beside_an_exchange(void)
{
    static const struct {
        const char *cpu;
        double longer; /* what the exchange of 240 us adds to the work */
    } cases[] = {{"0", 0}, {"0.25", 60e-6}, {"1", 240e-6}};
    for (int c = 0; c < 3; c++) {
        planned p;
        plan_beside(&p);
        const weft_prediction t = predict(&p, plain_machine(cases[c].cpu), NULL);
        CHECK_CLOSE(t.work_seconds, 480e-9 + 0.2, 1e-12);
        CHECK_CLOSE(t.seconds, 480e-9 + 0.2 + cases[c].longer, 1e-9);
        CHECK_CLOSE(t.exposed_seconds, cases[c].longer, 1e-9);
        close_planned(&p);
    }
}

/* The same, where it was measured what a product, and what a loop, lose beside it: half of both together is their mean. */
static void test_work_beside_an_exchange_as_it_was_measured(void)
{
    static const char slows[] =
        "], \"slows\": [{\"work\": \"product\", \"by\": \"all_reduce\", \"level\": "
        "\"near\", \"cpu\": 0.75}, {\"work\": \"loop\", \"by\": "
        "\"all_reduce\", \"level\": \"near\", \"cpu\": 0.25, \"exchange_factor\": 1}, "
        "{\"work\": \"loop\", \"by\": \"all_gather\", \"level\": \"near\", \"cpu\": 0, "
        "\"exchange_factor\": 1}";
    planned p;
    plan_beside(&p);
    const weft_prediction t = predict(&p, machine("", "0", "1", "", slows), NULL);
    CHECK_CLOSE(t.seconds, 480e-9 + 0.2 + 120e-6, 1e-9);
    CHECK_CLOSE(t.exposed_seconds, 120e-6, 1e-9);
    close_planned(&p);
}

/* Who waits longer than it takes to wake is woken; the late rank itself is awake. */
static void test_who_waits_for_a_late_rank_has_to_wake(void)
{
    static const struct {
        const char *level;
        double longer;
    } cases[] = {{"0, \"late_seconds\": 1e-7", 1e-7}, {"0, \"late_seconds\": 1e-3", 0}};
    for (int c = 0; c < 2; c++) {
        planned p;
        open_planned(&p, "data:4", "batch:data");
        plan(&p, WEFT_VALUES(product(&p, "x", "y", 16, 10, 6)));
        const weft_predict_options slow = {.slow_rank = 2, .slow_by = 3};
        const weft_prediction t = predict(&p, plain_machine(cases[c].level), &slow);
        CHECK_CLOSE(t.seconds, 3 * 480e-9 + 360e-6 + cases[c].longer, 1e-12);
        CHECK_CLOSE(t.late_seconds, 2 * 480e-9, 1e-12);
        CHECK_CLOSE(t.exposed_seconds, 2 * 480e-9 + 360e-6 + cases[c].longer, 1e-12);
        close_planned(&p);
    }
}

/* 4 ranks, whose exchange has to wake some of them where there are 2 cores, and none where there are 64. */
static void test_ranks_that_share_cores_have_to_wake(void)
{
    planned p;
    open_planned(&p, "data:4", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 16, 10, 6)));
    for (int cores = 2; cores <= 64; cores += 62) {
        weft_machine_model *model = plain_machine("0, \"crowded_seconds\": 1e-3");
        model->cores = cores;
        const double longer = cores == 2 ? 1e-3 : 0;
        CHECK_CLOSE(predict(&p, model, NULL).seconds, 480e-9 + 360e-6 + longer, 1e-12);
    }
    close_planned(&p);
}

static void test_all_wait_for_a_slow_rank(void)
{
    planned p;
    open_planned(&p, "data:4", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 16, 10, 6)));
    const weft_predict_options slow = {.slow_rank = 2, .slow_by = 3};
    const weft_prediction t = predict(&p, plain_machine("0"), &slow);
    CHECK_CLOSE(t.seconds, 3 * 480e-9 + 360e-6, 1e-12);
    CHECK_CLOSE(t.late_seconds, 2 * 480e-9, 1e-12);
    CHECK_CLOSE(t.exposed_seconds, 2 * 480e-9 + 360e-6, 1e-12);
    CHECK(t.n_kinds == 2);
    close_planned(&p);
}

/* 201 rows and 200: the first rank has more to do, and the other waits. */
static void test_ranks_with_blocks_of_two_sizes(void)
{
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 401, 10, 6)));
    const weft_prediction t = predict(&p, plain_machine("0"), NULL);
    CHECK_CLOSE(t.seconds, 201 * 120e-9 + 240e-6, 1e-12);
    CHECK(t.n_kinds == 2 && t.late_seconds == 0);
    close_planned(&p);
}

/* A product of 480 flops and a sum of 60. Trips that are all alike are not walked through one by one, and count all the same; so do trips in trips. */
static void test_trips_count(void)
{
    for (int64_t outer = 1; outer <= 50; outer += 49) {
        planned p;
        open_planned(&p, "data:2", "batch:data");
        const weft_value x =
            input(&p, "x", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"in", 10})));
        const weft_value y =
            input(&p, "y", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"out", 6})));
        const weft_value zero = weft_constant(
            p.graph, WEFT_F32, WEFT_DIMS(((weft_dim){"in", 10}), ((weft_dim){"out", 6})), 0);
        const weft_value turn = weft_scan_begin(p.graph, outer), held = weft_scan_carry(zero);
        const weft_value trip = weft_scan_begin(p.graph, 1000), sum = weft_scan_carry(held);
        const weft_value made =
            weft_einsum(WEFT_DIMS(((weft_dim){"in", 10}), ((weft_dim){"out", 6})), x,
                        weft_add(y, weft_mean(sum)));
        weft_scan_next(sum, weft_relu(made));
        weft_scan_end(trip);
        weft_scan_next(held, weft_scan_last(sum));
        weft_scan_end(turn);
        plan(&p, WEFT_VALUES(weft_scan_last(held)));
        const weft_prediction t = predict(&p, plain_machine("0"), NULL);
        const double trips = 1000 * (double)outer;
        CHECK_CLOSE(t.exchange_seconds, trips * 240e-6, 1e-9);
        CHECK_CLOSE(t.work_seconds, trips * 540e-9, 1e-8);
        CHECK_CLOSE(t.seconds, trips * (240e-6 + 540e-9), 1e-8);
        close_planned(&p);
    }
}

/* Exchanges of a body go on up to its end, whoever reads what they bring: as those do that bring something for the next trip. */
static int let_go_on_to_the_end(weft_plan *plan)
{
    uint32_t end = plan->n_steps;
    int n = 0;
    for (uint32_t s = plan->n_steps; s-- > 0;) {
        weft_step *step = &plan->steps[s];
        if (step->kind == WEFT_STEP_END) end = s;
        if (step->kind != WEFT_STEP_CONVERT || step->scan == 0) continue;
        step->until = end;
        n++;
    }
    return n;
}

/* A product of 480 ns, the exchange of 240 us, and 60 ns of other work at most: the next trip does not begin before the exchange is
 * over, though its queue would let it. */
static void test_what_begins_in_a_trip_is_over_at_its_end(void)
{
    planned p;
    open_planned(&p, "data:2", "batch:data");
    const weft_shape out = WEFT_DIMS(((weft_dim){"in", 10}), ((weft_dim){"out", 6}));
    const weft_value x =
        input(&p, "x", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"in", 10})));
    const weft_value y =
        input(&p, "y", WEFT_DIMS(((weft_dim){"batch", 8}), ((weft_dim){"out", 6})));
    const weft_value zero = weft_constant(p.graph, WEFT_F32, out, 0);
    const weft_value trip = weft_scan_begin(p.graph, 1000), sum = weft_scan_carry(zero);
    weft_scan_next(sum, weft_relu(weft_einsum(out, x, weft_add(y, weft_mean(sum)))));
    weft_scan_end(trip);
    plan(&p, WEFT_VALUES(weft_scan_last(sum)));
    CHECK_EQ_INT(let_go_on_to_the_end(p.program->plan), 1);
    const weft_prediction t = predict(&p, plain_machine("0"), NULL);
    CHECK(t.seconds > 0.999999 * 1000 * (240e-6 + 480e-9));
    CHECK(t.seconds < 1.000001 * 1000 * (240e-6 + 540e-9));
    close_planned(&p);
}

static void test_levels(void)
{
    static const char slow_net[] = ", {\"name\": \"far\", \"ranks\": 0, \"latency_seconds\": 0.5, "
                                   "\"bytes_per_second\": 1e3, \"cpu\": 0}";
    for (int far = 0; far < 2; far++) {
        planned p;
        open_planned(&p, "data:2,model:2", far ? "batch:data" : "batch:model");
        plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
        const weft_prediction t = predict(&p, machine("", "2", "0", slow_net, ""), NULL);
        CHECK_CLOSE(t.exchange_seconds, far ? 2 * 0.5 + 0.24 : 240e-6, 1e-12);
        close_planned(&p);
    }
}

/* Four ranks, two of which are near each other, add up 240 bytes: 240 of the 360 through a link come from the near one, and 120 from
 * afar, of what two have together. Where they are on hosts of three, the fourth is alone, and all of its bytes come from afar. */
static void test_a_group_on_several_hosts(void)
{
    static const char slow_net[] = ", {\"name\": \"far\", \"ranks\": 0, \"latency_seconds\": 0.5, "
                                   "\"bytes_per_second\": 1e3, \"cpu\": 0}";
    static const struct {
        const char *near;
        double seconds;
    } cases[] = {{"2", 240e-6 + 2 * 0.5 + 0.12},
                 {"1", 6 * 0.5 + 0.36},
                 {"3", 6 * 0.5 + 0.36},
                 {"4", 360e-6}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        planned p;
        open_planned(&p, "data:4", "batch:data");
        plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
        const weft_prediction t = predict(&p, machine("", cases[c].near, "0", slow_net, ""), NULL);
        CHECK_CLOSE(t.exchange_seconds, cases[c].seconds, 1e-12);
        close_planned(&p);
    }
}

/* What was measured itself counts as it is, what was measured of other sizes by how much slower than the rates it was. */
static void test_measured_kernels(void)
{
    static const char twice[] = "{\"name\": \"einsum\", \"dtype\": \"f32\", \"id\": \"1\", "
                                "\"flops\": 4000, \"bytes\": [800, 400, 800],"
                                "\"seconds\": 8e-6, \"spread\": 0}";
    planned p;
    open_planned(&p, "data:1", "");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 10, 20, 5)));
    const weft_prediction similar = predict(&p, machine(twice, "0", "0", "", ""), NULL);
    CHECK_CLOSE(similar.seconds, 2 * 2000e-9, 1e-12);
    CHECK_CLOSE(similar.source_seconds[WEFT_TIME_SIMILAR], similar.seconds, 1e-12);
    weft_workload work;
    char itself[300];
    weft_step_workload(p.program->plan, &p.program->plan->steps[0], 0, &work);
    snprintf(itself, sizeof itself,
             "%s, {\"name\": \"einsum\", \"dtype\": \"f32\", \"id\": \"%llx\", \"flops\": 2000, "
             "\"bytes\": [800, 200, 400],"
             "\"seconds\": 5e-6, \"spread\": 0}",
             twice, (unsigned long long)work.id);
    const weft_prediction measured = predict(&p, machine(itself, "0", "0", "", ""), NULL);
    CHECK_CLOSE(measured.seconds, 5e-6, 1e-12);
    CHECK_CLOSE(measured.source_seconds[WEFT_TIME_MEASURED], 5e-6, 1e-12);
    close_planned(&p);
}

static void test_measured_exchanges(void)
{
    static const char points[] = "{\"kind\": \"all_reduce\", \"level\": \"near\", \"ranks\": 2, "
                                 "\"seconds\": [[60, 1], [240, 2], [960, 8]]}";
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    CHECK_CLOSE(predict(&p, machine("", "0", "0", "", points), NULL).exchange_seconds, 2, 1e-12);
    close_planned(&p);
    open_planned(&p, "data:2",
                 "batch:data"); /* 480 bytes: between two points; 1,920: beyond the last */
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 800, 10, 12)));
    CHECK_CLOSE(predict(&p, machine("", "0", "0", "", points), NULL).exchange_seconds, 4, 1e-9);
    close_planned(&p);
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 800, 10, 48)));
    CHECK_CLOSE(predict(&p, machine("", "0", "0", "", points), NULL).exchange_seconds, 16, 1e-9);
    close_planned(&p);
}

/* Two shifts of 8 rows of 60 numbers on two ranks: of each, one rank sends a row of 240 bytes and the other gets it. The second
 * is ready later, so that they are not one exchange. */
static double seconds_of_shifts(int64_t first, int64_t second, const char *exchanges)
{
    const weft_dim row = {"row", 8}, column = {"column", 60}, k = {"k", 5};
    planned p;
    open_planned(&p, "data:2", "row:data");
    const weft_value x = input(&p, "x", WEFT_DIMS(row, column)),
                     y = weft_einsum(WEFT_DIMS(row, column), input(&p, "u", WEFT_DIMS(row, k)),
                                     input(&p, "v", WEFT_DIMS(k, column)));
    plan(&p, WEFT_VALUES(weft_shift_along(x, row, first), weft_shift_along(y, row, second)));
    const weft_prediction t = predict(&p, machine("", "0", "0", "", exchanges), NULL);
    close_planned(&p);
    return t.seconds;
}

static void test_what_a_rank_sends_passes_what_it_gets(void)
{
    const double work = 2 * 4 * 5 * 60 * 1e-9;
    CHECK_CLOSE(seconds_of_shifts(1, 1, ""), 480e-6 + work, 1e-9);
    CHECK_CLOSE(seconds_of_shifts(1, -1, ""), 240e-6 + work, 1e-9);
    CHECK_CLOSE(seconds_of_shifts(-1, 1, ""), 240e-6 + work, 1e-9);
}

static void test_a_border_takes_what_a_move_takes(void)
{
    static const char points[] = "{\"kind\": \"move\", \"level\": \"near\", \"ranks\": 2, "
                                 "\"seconds\": [[60, 0.75], [240, 3], [960, 12]]}";
    CHECK_CLOSE(seconds_of_shifts(1, 1, points), 6, 1e-5);
}

static void test_a_machine_file_says_where_it_is_wrong(void)
{
    static const struct {
        const char *kernels, *ranks, *cpu, *levels, *exchanges, *sentence;
    } wrong[] = {
        {"", "0", "2", "", "", "round.json: levels[0].cpu should be a number from 0 to 1"},
        {"", "-1", "0", "", "", "levels[0].ranks should be a number from 0"},
        {"", "0.5", "0", "", "", "levels[0].ranks should be a whole number"},
        {"", "0", "0", ", {}", "",
         "levels[0].ranks should be more than those of the level before; 0, all, in the last "
         "alone"},
        {"", "2", "0", ", {}", "", "levels[1].name should be a text"},
        {"{}", "0", "0", "", "", "loads[0].kernels[0].name should be a text"},
        {"{\"name\": \"einsum\", \"dtype\": \"f23\"}", "0", "0", "", "",
         "loads[0].kernels[0].dtype should be a name that Weft has, not \"f23\"; did you mean "
         "f32?"},
        {"", "0", "0", "", "{\"kind\": \"all_reduce\", \"level\": \"nere\"}",
         "exchanges[0].level should be the name of one of the levels"},
        {"", "0", "0", "",
         "{\"kind\": \"all_reduce\", \"level\": \"near\", \"ranks\": 2, \"seconds\": [[2, 1], [1, "
         "1]]}",
         "exchanges[0].seconds[1] should be a pair of numbers above 0, with a larger first one "
         "than the entry before"},
        {"", "0", "0", "", "{", "is no JSON"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[4000];
        weft_error error = WEFT_NO_ERROR;
        weft_machine_model *model = NULL;
        snprintf(text, sizeof text, machine_text, wrong[i].kernels, wrong[i].ranks, wrong[i].cpu,
                 wrong[i].levels, wrong[i].exchanges);
        CHECK_EQ_INT(weft_machine_model_parse(text, strlen(text), "round.json", &model, &error),
                     WEFT_USAGE);
        CHECK(model == NULL);
        CHECK_TEXT(error.message, wrong[i].sentence);
    }
}

/* A model in letters, to be freed. */
static char *written(const weft_machine_model *model)
{
    char *text = NULL;
    size_t bytes = 0;
    weft_error error = WEFT_NO_ERROR;
    FILE *file = open_memstream(&text, &bytes);
    CHECK_OK(weft_machine_model_write(model, file, &error), error);
    fclose(file);
    return text;
}

static void test_every_nominal_machine_is_read_and_written(void)
{
    const char *name;
    for (int i = 0; (name = weft_machine_model_names(i)); i++) {
        weft_error error = WEFT_NO_ERROR;
        weft_machine_model *model = NULL, *again = NULL;
        if (!CHECK_OK(weft_machine_model_read(name, &model, &error), error)) continue;
        CHECK(strcmp(weft_machine_model_name(model), name) == 0 &&
              *weft_machine_model_processor(model));
        char *text = written(model);
        CHECK_OK(weft_machine_model_parse(text, strlen(text), "again.json", &again, &error), error);
        char *twice = written(again);
        CHECK(strcmp(text, twice) == 0);
        free(text);
        free(twice);
        weft_machine_model_destroy(&model);
        weft_machine_model_destroy(&again);
    }
    CHECK(weft_machine_model_names(0) != NULL && weft_machine_model_names(-1) == NULL);
}

static void test_names_and_files_that_are_not_there(void)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    CHECK_EQ_INT(weft_machine_model_read("h100x9", &model, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "there is no machine \"h100x9\"; did you mean h100x8?");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_machine_model_read("/nowhere/epyc.json", &model, &error), WEFT_IO);
    CHECK_TEXT(error.message,
               "cannot read the machine file /nowhere/epyc.json: No such file or directory");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_machine_model_read("/", &model, &error), WEFT_IO);
}

static void test_options_that_make_no_sense(void)
{
    static const struct {
        weft_predict_options options;
        const char *sentence;
    } wrong[] = {{{.slow_by = -1}, "slow_by is -1"},
                 {{.slow_by = NAN}, "slow_by is"},
                 {{.slow_by = 2, .slow_rank = 7}, "slow_rank"},
                 {{.host_ranks = -3}, "host_ranks is -3"},
                 {{.draws = -1}, "draws"},
                 {{.pipe_dim = "stage", .pipe_idle = 1.5}, "pipe_idle is 1.5"}};
    planned p;
    open_planned(&p, "data:2", "batch:data");
    plan(&p, WEFT_VALUES(product(&p, "x", "y", 8, 10, 6)));
    weft_machine_model *model = plain_machine("0");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_error error = WEFT_NO_ERROR;
        weft_prediction prediction;
        CHECK_EQ_INT(weft_plan_predict(p.program, model, &wrong[i].options, &prediction, &error),
                     WEFT_USAGE);
        CHECK_TEXT(error.message, wrong[i].sentence);
    }
    weft_machine_model_destroy(&model);
    close_planned(&p);
}

/* Of loops over 1,000 elements exp was 8 times slower than its rate, and relu twice: exp over 2,000 is an octave in elements, in what
 * is read and in what is written from the first, and 4 octaves more from the other. The nearer counts by the square. */
static void test_a_loop_is_as_slow_as_one_of_the_same_ops(void)
{
    static const char loops[] =
        "{\"name\": \"loop\", \"dtype\": \"f32\", \"id\": \"1\", \"flops\": 0, \"bytes\": [4000, "
        "4000], \"acts\": {\"exp\": 1000}, \"seconds\": 8e-6, \"spread\": 0}, {\"name\": \"loop\", "
        "\"dtype\": \"f32\", \"id\": \"2\", \"flops\": 0, \"bytes\": [4000, 4000], \"acts\": "
        "{\"relu\": 1000}, \"seconds\": 2e-6, \"spread\": 0}";
    planned p;
    open_planned(&p, "data:1", "");
    plan(&p, WEFT_VALUES(weft_exp(input(&p, "x", WEFT_DIMS(((weft_dim){"n", 2000}))))));
    weft_machine_model *model = machine(loops, "0", "0", "", "");
    model->loads[0].other_act = 1e-9;
    const double near = 1 / (3.0 * 3), far = 1 / (19.0 * 19);
    const double factor = exp((near * log(8) + far * log(2)) / (near + far));
    CHECK_CLOSE(predict(&p, model, NULL).seconds, factor * 2e-6, 1e-3);
    close_planned(&p);
}

int main(void)
{
    RUN(test_work_takes_its_flops);
    RUN(test_an_exchange_takes_its_bytes_after_the_work);
    RUN(test_a_run_takes_what_is_besides_its_steps);
    RUN(test_ranks_share_cores);
    RUN(test_a_loop_is_as_slow_as_one_of_the_same_ops);
    RUN(test_work_beside_an_exchange);
    RUN(test_work_beside_an_exchange_as_it_was_measured);
    RUN(test_who_waits_for_a_late_rank_has_to_wake);
    RUN(test_ranks_that_share_cores_have_to_wake);
    RUN(test_all_wait_for_a_slow_rank);
    RUN(test_ranks_with_blocks_of_two_sizes);
    RUN(test_trips_count);
    RUN(test_what_begins_in_a_trip_is_over_at_its_end);
    RUN(test_levels);
    RUN(test_a_group_on_several_hosts);
    RUN(test_measured_kernels);
    RUN(test_measured_exchanges);
    RUN(test_what_a_rank_sends_passes_what_it_gets);
    RUN(test_a_border_takes_what_a_move_takes);
    RUN(test_a_machine_file_says_where_it_is_wrong);
    RUN(test_every_nominal_machine_is_read_and_written);
    RUN(test_names_and_files_that_are_not_there);
    RUN(test_options_that_make_no_sense);
    return weft_test_report();
}
