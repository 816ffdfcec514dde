/* RANKS: 2 3 4 */
/* engine_test: engines from outside: what is refused, older and newer structs, the choice by name; an engine that stands on
 * an engine that stands on Weft's own; ranks that chose otherwise, or number combines otherwise. What an engine carries is
 * tested with exchanges, all_reduces and moves (stacked.h). */
#include "on_ranks.h"
#include "stacked.h"
#include "weft/extend/combine.h"
#include "weft/extend/size.h"

/* ---- what is refused --------------------------------------------------------------------------- */

static void check_refused(const weft_engine *engine, const char *sentence)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_extend_engine(engine, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
}

static void test_wrong_engines_are_refused(void)
{
    weft_engine good = stacked_engine, bad;
    good.name = "good";
    check_refused(NULL, "engine is NULL");
    bad = good, bad.size = 24;
    check_refused(&bad, "size is 24");
    bad = good, bad.name = "two words";
    check_refused(&bad, "two words");
    bad = good, bad.name = "threads";
    check_refused(&bad, "there is an engine threads already");
    bad = good, bad.name = "stacked";
    check_refused(&bad, "there is an engine stacked already");
    bad = good, bad.start = NULL;
    check_refused(&bad, "start is NULL");
    bad = good, bad.poll = NULL;
    check_refused(&bad, "poll is NULL");
    bad = good, bad.below = "nosuch";
    check_refused(&bad, "stands on nosuch, which is not known");
    bad = good, bad.below = NULL;
    check_refused(&bad, "below and takes are NULL");
    bad = good, bad.exchange_destroy = NULL;
    check_refused(&bad, "it has exchange_create and no exchange_destroy");
}

typedef struct newer_engine {
    weft_engine engine;
    void *more;
} newer_engine;

static void test_older_and_newer_structs_are_taken_as_far_as_they_are_known(void)
{
    static newer_engine newer;
    weft_error error = {0};
    newer.engine = stacked_engine;
    newer.engine.size = sizeof newer;
    newer.engine.name = "newer";
    newer.more = &newer;
    check_refused(&newer.engine, "was compiled for a newer Weft");
    newer.more = NULL;
    CHECK_OK(weft_extend_engine(&newer.engine, &error), error);
    /* What lies behind the last field that the first version had is not read. */
    memset(&newer, 0xff, sizeof newer);
    newer.engine = stacked_engine;
    newer.engine.size = WEFT_SIZE_TO(weft_engine, release);
    newer.engine.name = "older";
    CHECK_OK(weft_extend_engine(&newer.engine, &error), error);
}

/* ---- the choice -------------------------------------------------------------------------------- */

static void check_choice(const char *text, const char *sentence)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_engine_choose(text, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, sentence);
}

static weft_status set(const char *settings, weft_error *error)
{
    if (strcmp(settings, "quick") == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "tunable is quick, not \"%s\"", settings);
}

static void test_an_engine_is_chosen_by_name(void)
{
    weft_engine tunable = stacked_engine;
    weft_error error = {0};
    char longest[200];
    tunable.name = "tunable", tunable.set = set;
    CHECK_OK(weft_extend_engine(&tunable, &error), error);
    check_choice("thraeds", "there is no engine thraeds; did you mean threads?");
    check_choice("carrier_pigeon", "there is no engine carrier_pigeon; there are threads, ");
    check_choice("threads:fast", "engine threads has no settings, and was given \"fast\"");
    check_choice("tunable", "tunable is quick, not \"\"");
    check_choice("tunable:slow", "tunable is quick, not \"slow\"");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    check_choice(longest, "there is no engine xxx");
    CHECK_OK(weft_engine_choose("tunable:quick", &error), error);
    ranks all;
    if (open_ranks("", &all)) CHECK_TEXT(weft_comms_engine(all.comms), "tunable");
    close_ranks(&all);
    CHECK_OK(weft_engine_choose("", &error), error);
    if (open_ranks("", &all)) CHECK(strcmp(weft_comms_engine(all.comms), "tunable") != 0);
    close_ranks(&all);
}

static void test_an_engine_that_cannot_carry_a_mesh_says_so(void)
{
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    weft_error error = {0};
    const bool is_alone = world_now.n_processes == 1;
    CHECK_OK(weft_mesh_create(&world_now, is_alone ? "data:2" : "", &mesh, &error), error);
    const weft_status there = weft_engine_choose(is_alone ? "mpi" : "threads", &error);
    if (there == WEFT_OK) {
        CHECK_EQ_INT(weft_comms_create(mesh, &comms, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, is_alone ? "engine mpi carries ranks that are processes"
                                           : "engine threads carries ranks of one process");
    } else {
        CHECK_TEXT(error.message, "there is no engine mpi"); /* built without it */
    }
    weft_comms_destroy(&comms);
    weft_mesh_destroy(&mesh);
    CHECK_OK(weft_engine_choose(NULL, &error), error);
}

/* ---- engines on engines -------------------------------------------------------------------------- */

static void sum_on_rank(const ranks *all, int rank)
{
    weft_comm *comm = weft_comm_of(all->comms, rank, everybody(all));
    const int n = weft_comm_n_ranks(comm);
    double own[600], sum[600];
    weft_error error = {0};
    const int64_t bytes = weft_all_reduce_scratch(comm, WEFT_SUM, WEFT_F64, 600);
    char *scratch = aligned_alloc(64, bytes > 0 ? (size_t)bytes : 64);
    for (int i = 0; i < 600; i++)
        own[i] = rank + i;
    CHECK_OK(weft_all_reduce(comm, WEFT_SUM, WEFT_F64, own, sum, 600, scratch, &error), error);
    for (int i = 0; i < 600; i++)
        CHECK_EQ_INT(sum[i], n * (n - 1) / 2 + n * i);
    free(scratch);
    CHECK_EQ_INT(weft_comm_rank(comm), rank);
    CHECK_EQ_INT(weft_comm_rank(weft_comm_below(comm)), rank);
    CHECK(weft_comm_below(weft_comm_below(comm)) != NULL);
    CHECK(weft_comm_below(weft_comm_below(weft_comm_below(comm))) == NULL);
}

static void test_engines_stand_on_engines(void)
{
    weft_engine higher = stacked_engine;
    weft_error error = {0};
    higher.name = "higher", higher.below = "stacked";
    CHECK_OK(weft_extend_engine(&higher, &error), error);
    CHECK_OK(weft_engine_choose("higher", &error), error);
    on_meshes(sum_on_rank);
    CHECK_OK(weft_engine_choose(NULL, &error), error);
}

/* ---- several processes --------------------------------------------------------------------------- */

static void check_groups_refused(const char *sentence)
{
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_create(&world_now, "", &mesh, &error), error);
    CHECK_OK(weft_comms_create(mesh, &comms, &error), error);
    CHECK_EQ_INT(weft_comms_prepare(comms, 1, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, sentence);
    weft_comms_destroy(&comms);
    weft_mesh_destroy(&mesh);
}

static void test_ranks_that_chose_otherwise_are_told_so(void)
{
    weft_error error = {0};
    if (world_now.n_processes == 1) return;
    if (world_now.process == 1) CHECK_OK(weft_engine_choose("stacked", &error), error);
    check_groups_refused("rank 1 exchanges by engine stacked, but rank 0 by mpi; choose the same");
    CHECK_OK(weft_engine_choose(NULL, &error), error);
}

static void no_combination(void *out, const void *a, const void *b, int64_t n)
{
    (void)b;
    memmove(out, a, (size_t)n * sizeof(double));
}
static void no_identity(void *into, int64_t n)
{
    memset(into, 0, (size_t)n * sizeof(double));
}

static void test_ranks_that_number_combines_otherwise_are_told_so(void)
{
    static const char *const names[][2] = {{"left", "right"}, {"right", "left"}};
    weft_error error = {0};
    if (world_now.n_processes == 1) return;
    for (int i = 0; i < 2; i++) {
        const weft_combine_rule rule = {
            sizeof rule, names[world_now.process == 1][i], 1,
            false,       {[WEFT_F64] = no_combination},    {[WEFT_F64] = no_identity}};
        weft_combine kind;
        CHECK_OK(weft_extend_combine(&rule, &kind, &error), error);
    }
    check_groups_refused("rank 1 has these combines from outside: right, left; rank 0 has: left, "
                         "right; register the same ones in the same order");
}

int main(void)
{
    weft_error error = {0};
    if (open_world()) {
        CHECK_OK(weft_extend_engine(&stacked_engine, &error), error);
        RUN(test_wrong_engines_are_refused);
        RUN(test_older_and_newer_structs_are_taken_as_far_as_they_are_known);
        RUN(test_an_engine_is_chosen_by_name);
        RUN(test_an_engine_that_cannot_carry_a_mesh_says_so);
        RUN(test_engines_stand_on_engines);
        RUN(test_ranks_that_chose_otherwise_are_told_so);
        RUN(test_ranks_that_number_combines_otherwise_are_told_so);
    }
    weft_world_close();
    return weft_test_report();
}
