/* merge_test: what two ranks have written down, by clocks that are known, becomes these slices, and no other. */
#include "perfetto_read.h"
#include "weft/trace/merge.h"

/* A program of a step, a scan of a step and an exchange that goes on, and an exchange at once. */
static const weft_traced_step steps[] = {
    {"einsum", "einsum", "einsum at mlp.c:1", "[row:8]", "[row:8]", "the op's own work",
     WEFT_STEP_KERNEL, 0, 0, 0, 100},
    {"begin scan", "scan", "scan at mlp.c:2", "", "", "", WEFT_STEP_BEGIN, 0, 1, 0, 100},
    {"all_reduce x", "einsum", "einsum at mlp.c:3", "[row:8]", "P -> R", "partial",
     WEFT_STEP_CONVERT, 1, 1, 64, 300},
    {"add", "add", "add at mlp.c:4", "[row:8]", "[row:8]", "", WEFT_STEP_LOOP, 0, 1, 0, 300},
    {"end scan", "scan", "scan at mlp.c:2", "", "", "", WEFT_STEP_END, 0, 1, 0, 200},
    {"all_gather y", "mul", "mul at mlp.c:5", "[row:8]", "S -> R", "operand", WEFT_STEP_CONVERT, 1,
     0, 32, 100}};
enum { EINSUM, BEGIN, REDUCE, ADD, END, GATHER, N_STEPS };
static const weft_traced_program program = {"train", 77, N_STEPS, steps};

enum { ROOM = 64, TRIPS = 2 };
typedef struct writer {
    weft_traced_event events[ROOM];
    int n;
    int64_t at;     /* by rank 0's clock */
    int64_t behind; /* so much this rank's clock is */
} writer;

static void put(writer *w, int kind, uint32_t step, uint32_t trip, int64_t takes, int64_t arrived)
{
    const int64_t at = w->at - w->behind;
    w->events[w->n++] = (weft_traced_event){.begin = at,
                                            .end = at + takes,
                                            .arrived = arrived ? arrived - w->behind : 0,
                                            .step = step,
                                            .trip = trip,
                                            .kind = (uint16_t)kind};
    w->at += takes;
}

/* A run: each exchange of the scan arrives 30 after it was put, during the step behind it. */
static void write_run(writer *w, uint32_t number)
{
    const int run = w->n;
    put(w, WEFT_TRACED_RUN, number, 0, 0, 0);
    put(w, WEFT_TRACED_STEP, EINSUM, 0, 100, 0);
    put(w, WEFT_TRACED_STEP, BEGIN, 0, 1, 0);
    for (uint32_t trip = 0; trip < TRIPS; trip++) {
        const int64_t begun = w->at;
        put(w, WEFT_TRACED_STEP, REDUCE, trip, 10, 0);
        put(w, WEFT_TRACED_STEP, ADD, trip, 50, 0);
        put(w, WEFT_TRACED_FINISH, REDUCE, trip, 5, begun + 30);
        put(w, WEFT_TRACED_STEP, END, trip, 1, 0);
    }
    put(w, WEFT_TRACED_STEP, GATHER, 0, 40, w->at + 35);
    w->events[run].end = w->at - w->behind;
}

static weft_traced traced_of(const writer *w, int rank, int64_t first, int64_t last)
{
    return (weft_traced){.rank = rank,
                         .n_ranks = 2,
                         .mesh = "data:2",
                         .host = "here",
                         .job = 5,
                         .is_sealed = true,
                         .clocks = {{first, w->behind, 3}, {last, w->behind, 2}},
                         .n_programs = 1,
                         .programs = &program,
                         .n_events = w->n,
                         .events = w->events};
}

static read_trace *merge_all(const weft_traced *traced, int n, merge_counts *counts)
{
    perfetto *p = perfetto_create();
    merge *m = merge_create(p);
    weft_error error = {0};
    for (int i = 0; i < n; i++)
        CHECK_OK(merge_add(m, &traced[i], &error), error);
    CHECK_OK(merge_finish(m, counts, &error), error);
    read_trace *t = read_back(p);
    merge_destroy(&m);
    perfetto_destroy(&p);
    return t;
}

static int count(const read_trace *t, const char *category)
{
    int n = 0;
    for (int i = 0; i < t->n_slices; i++)
        n += strcmp(t->slices[i].category, category) == 0;
    return n;
}

/* Rank 1's clock is an hour behind, and its run begins 7 later. */
static writer writers[2];
static read_trace *merge_two(merge_counts *counts)
{
    writers[0] = (writer){.at = 1000};
    writers[1] = (writer){.at = 1007, .behind = -3600000000000};
    weft_traced traced[2];
    for (int r = 0; r < 2; r++) {
        for (uint32_t run = 5; run < 7; run++)
            write_run(&writers[r], run);
        traced[r] = traced_of(&writers[r], r, 500 - writers[r].behind, 9000 - writers[r].behind);
    }
    return merge_all(traced, 2, counts);
}

static void test_slices_are_the_events_by_rank_0s_clock(void)
{
    merge_counts counts;
    read_trace *t = merge_two(&counts);
    CHECK(counts.n_ranks == 2 && counts.n_runs == 2 && counts.n_wrong == 0 &&
          counts.clock_error == 3);
    CHECK_EQ_INT(count(t, "run"), 4);
    CHECK_EQ_INT(count(t, "trip"), 4 * TRIPS);
    CHECK_EQ_INT(count(t, "step"), 4 * (2 + 2 * TRIPS));
    CHECK_EQ_INT(count(t, "put"), 4 * (TRIPS + 1));
    CHECK_EQ_INT(count(t, "wait"), 4 * TRIPS);
    CHECK_EQ_INT(count(t, "exchange"), 4 * (TRIPS + 1));
    int from = 0;
    const read_slice *run = read_slice_of(t, "run", "compute", &from);
    CHECK(run->begin == 1000 && run->end == 1273 && run->depth == 0);
    CHECK(strcmp(run->name, "train 5") == 0);
    run = read_slice_of(t, "run", "compute", &from);
    CHECK(run->begin == 1007 && run->end == 1280); /* rank 1's */
    from = 0;
    const read_slice *trip = read_slice_of(t, "trip", "compute", &from);
    CHECK(trip->begin == 1101 && trip->end == 1167 && trip->depth == 1);
    CHECK(strcmp(trip->name, "trip 0") == 0);
    from = 0;
    const read_slice *step = read_slice_of(t, "step", "compute", &from);
    CHECK(step->begin == 1000 && step->end == 1100 && step->depth == 1);
    CHECK(strcmp(step->note_names[1], "place") == 0);
    CHECK(strcmp(step->note_texts[1], "einsum at mlp.c:1") == 0);
    read_close(t);
}

static void test_an_exchange_lasts_from_put_to_arrival(void)
{
    merge_counts counts;
    read_trace *t = merge_two(&counts);
    int from = 0;
    static const int64_t begin[] = {1101, 1108, 1167, 1174, 1233, 1240},
                         end[] = {1131, 1138, 1197, 1204, 1268, 1275};
    uint64_t last = 0;
    for (int i = 0; i < 6; i++) {
        const read_slice *x = read_slice_of(t, "exchange", "data", &from);
        if (!CHECK(x != NULL)) break;
        CHECK_EQ_INT(x->begin, begin[i]);
        CHECK_EQ_INT(x->end, end[i]);
        CHECK_EQ_INT(x->n_flows, 1); /* two ranks: one arrow from the one to the other */
        CHECK((i % 2 == 1) == (x->flows[0] == last)); /* the pair's, and no other's */
        last = x->flows[0];
    }
    from = 0;
    const read_slice *a = read_slice_of(t, "exchange", "data", &from),
                     *b = read_slice_of(t, "exchange", "data", &from);
    CHECK(a->flows[0] == b->flows[0] && a->track != b->track);
    read_close(t);
}

/* An exchange that is put while another of its queue is under way begins behind it. */
static void test_exchanges_of_a_queue_do_not_overlap(void)
{
    writer w = {.at = 1000};
    merge_counts counts;
    put(&w, WEFT_TRACED_RUN, 1, 0, 500, 0);
    w.at = 1000;
    put(&w, WEFT_TRACED_STEP, REDUCE, 0, 10, 0);
    put(&w, WEFT_TRACED_STEP, GATHER, 0, 10, 1200);
    put(&w, WEFT_TRACED_FINISH, REDUCE, 0, 10, 1100);
    const weft_traced traced = traced_of(&w, 0, 1, 2);
    read_trace *t = merge_all(&traced, 1, &counts);
    int from = 0;
    const read_slice *a = read_slice_of(t, "exchange", "data", &from),
                     *b = read_slice_of(t, "exchange", "data", &from);
    CHECK(a->begin == 1000 && a->end == 1100 && b->begin == 1100 && b->end == 1200);
    CHECK(a->n_flows == 0 && b->n_flows == 0); /* the other rank is not there */
    CHECK_EQ_INT(b->note_numbers[7], 90);      /* so long it was behind the other */
    read_close(t);
}

static void test_a_clock_that_goes_back_is_counted(void)
{
    merge_counts counts;
    writer w = {.at = 1000};
    write_run(&w, 1);
    w.events[1].end = w.events[1].begin - 50;
    w.events[6].end = w.events[6].begin - 1; /* the end of the first trip */
    const weft_traced traced = traced_of(&w, 0, 1, 2);
    read_trace *t = merge_all(&traced, 1, &counts);
    CHECK_EQ_INT(counts.n_wrong, 2);
    CHECK_EQ_INT(count(t, "step"), 2 + 2 * TRIPS - 2);
    CHECK_EQ_INT(count(t, "trip"), TRIPS); /* it ends all the same */
    for (int i = 0; i < t->n_slices; i++)
        CHECK(t->slices[i].end >= t->slices[i].begin);
    read_close(t);
}

/* The job was killed in the second trip: what is open ends with the last that is there. */
static void test_a_trace_that_breaks_off_is_whole(void)
{
    merge_counts counts;
    writer w = {.at = 1000};
    write_run(&w, 1);
    weft_traced traced = traced_of(&w, 0, 1, 2);
    w.events[0].end = 0;
    traced.n_events = 9;
    traced.is_sealed = false;
    read_trace *t = merge_all(&traced, 1, &counts);
    CHECK(counts.n_unended == 1 && counts.n_wrong == 0);
    CHECK(count(t, "run") == 1 && count(t, "trip") == 2 && count(t, "exchange") == 2);
    CHECK_EQ_INT(t->slices[0].end, 1227);
    read_close(t);
}

static void test_ranks_of_other_jobs_are_refused(void)
{
    weft_error error = {0};
    writer w = {.at = 1000};
    write_run(&w, 1);
    weft_traced first = traced_of(&w, 0, 1, 2), second = traced_of(&w, 1, 1, 2);
    weft_traced_program other = program;
    perfetto *p = perfetto_create();
    merge *m = merge_create(p);
    CHECK_OK(merge_add(m, &first, &error), error);
    second.job = 6;
    CHECK_EQ_INT(merge_add(m, &second, &error), WEFT_CORRUPT);
    CHECK_TEXT(error.message, "the trace of rank 1 is of another job, or of another program, than");
    second.job = 5;
    other.digest = 78;
    second.programs = &other;
    CHECK_EQ_INT(merge_add(m, &second, NULL), WEFT_CORRUPT);
    second.programs = &program;
    CHECK_EQ_INT(merge_add(m, &second, NULL), WEFT_OK);
    merge_destroy(&m);
    perfetto_destroy(&p);
}

int main(void)
{
    RUN(test_slices_are_the_events_by_rank_0s_clock);
    RUN(test_an_exchange_lasts_from_put_to_arrival);
    RUN(test_exchanges_of_a_queue_do_not_overlap);
    RUN(test_a_clock_that_goes_back_is_counted);
    RUN(test_a_trace_that_breaks_off_is_whole);
    RUN(test_ranks_of_other_jobs_are_refused);
    return weft_test_report();
}
