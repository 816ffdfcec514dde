/* RANKS: 2 */
/* order_test: right calls at the wrong time: what others still use stays, what has not begun is not ended, and all of it
 * is said in a sentence; afterwards everything still works.
 */
#include <stdlib.h>
#include <unistd.h>

#include "weft.h"

#include "test.h"

static weft_world world;
static const weft_dim row = {"row", 5};

typedef struct parts {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
    weft_value x, w, y;
} parts;

static void make(parts *p)
{
    weft_error error = {0};
    CHECK_OK(weft_mesh_create(&world, NULL, &p->mesh, &error), error);
    CHECK_OK(weft_layout_create("row:data", &p->layout, &error), error);
    p->graph = weft_graph_create(1);
    p->x = weft_input(p->graph, "x", WEFT_F64, WEFT_DIMS(row));
    p->w = weft_variable(p->graph, "w", WEFT_F64, WEFT_DIMS(row), weft_constant_of(2));
    p->y = weft_sum(WEFT_SCALAR, weft_mul(p->x, p->w));
    CHECK_OK(weft_compile(p->mesh, p->layout, WEFT_VALUES(p->y), NULL, &p->program, &error), error);
}

/* It works: 2 * (1 + 1 + 1 + 1 + 1). */
static void check_works(parts *p)
{
    const double ones[5] = {1, 1, 1, 1, 1};
    double y = 0;
    weft_error error = {0};
    CHECK_OK(weft_write(p->program, p->x, WEFT_F64, ones, sizeof ones, &error), error);
    CHECK_OK(weft_run(p->program, &error), error);
    CHECK_OK(weft_read_scalar(p->program, p->y, &y, &error), error);
    CHECK_CLOSE(y, 10, 1e-15);
}

static void end(parts *p)
{
    CHECK_EQ_INT(weft_program_destroy(&p->program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&p->graph), WEFT_OK);
    CHECK_EQ_INT(weft_mesh_destroy(&p->mesh), WEFT_OK);
    weft_layout_destroy(&p->layout);
    CHECK(p->program == NULL && p->graph == NULL && p->mesh == NULL && p->layout == NULL);
}

static void test_what_a_program_uses_refuses_to_go_first(void)
{
    parts p;
    make(&p);
    CHECK_EQ_INT(weft_mesh_destroy(&p.mesh), WEFT_USAGE);
    CHECK_EQ_INT(weft_graph_destroy(&p.graph), WEFT_USAGE);
    if (!CHECK(p.mesh != NULL && p.graph != NULL)) return;
    weft_layout_destroy(&p.layout); /* was borrowed during the call */
    check_works(&p);
    end(&p);
}

static void test_a_parent_program_refuses_to_go_first(void)
{
    parts p;
    weft_error error = {0};
    weft_program *child = NULL;
    make(&p);
    const weft_compile_options options = {.share = p.program};
    CHECK_OK(weft_compile(p.mesh, p.layout, WEFT_VALUES(p.w), &options, &child, &error), error);
    CHECK_EQ_INT(weft_program_destroy(&p.program), WEFT_USAGE);
    if (!CHECK(p.program != NULL)) return;
    check_works(&p);
    CHECK_EQ_INT(weft_program_destroy(&child), WEFT_OK);
    end(&p);
}

/* A program that was not made holds nothing back. */
static void test_a_failed_compile_keeps_nothing(void)
{
    parts p;
    weft_error error = {0};
    weft_program *child = NULL;
    weft_layout *wrong = NULL;
    make(&p);
    const weft_compile_options options = {.share = p.program};
    CHECK_OK(weft_layout_create("rwo:data", &wrong, &error), error);
    CHECK_EQ_INT(weft_compile(p.mesh, wrong, WEFT_VALUES(p.w), &options, &child, &error),
                 WEFT_USAGE);
    CHECK(child == NULL);
    weft_layout_destroy(&wrong);
    end(&p);
}

static void test_communicators_keep_their_mesh(void)
{
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    weft_error error = {0};
    CHECK_OK(weft_mesh_create(&world, NULL, &mesh, &error), error);
    CHECK_OK(weft_comms_create(mesh, &comms, &error), error);
    CHECK_EQ_INT(weft_mesh_destroy(&mesh), WEFT_USAGE);
    weft_comms_destroy(&comms);
    CHECK_EQ_INT(weft_mesh_destroy(&mesh), WEFT_OK);
    weft_mesh_release(mesh); /* NULL by now */
}

static void test_what_has_been_destroyed_is_refused(void)
{
    parts p;
    weft_error error = {0};
    double y;
    make(&p);
    end(&p);
    CHECK_EQ_INT(weft_run(p.program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "weft_run: program is NULL");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_read_scalar(p.program, (weft_value){NULL, 1}, &y, &error), WEFT_USAGE);
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_compile(p.mesh, NULL, (weft_values){NULL, 0}, NULL, &p.program, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "weft_compile: mesh is NULL");
    weft_program_destroy(&p.program); /* again: fine */
    weft_mesh_destroy(&p.mesh);
    weft_graph_destroy(&p.graph);
}

static void test_a_dataset_that_was_not_started(void)
{
    parts p;
    weft_error error = {0};
    weft_dataset *data = NULL;
    char path[] = "/tmp/weft_order_XXXXXX";
    const int file = mkstemp(path);
    make(&p);
    if (CHECK(file >= 0 && write(file, "0123456789abcdef", 16) == 16) &&
        CHECK_OK(weft_text_open(path, 4, 1, &data, &error), error)) {
        CHECK_EQ_INT(weft_dataset_next(data, p.program, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "call weft_dataset_start first");
        weft_error_clear(&error);
        CHECK_EQ_INT(weft_dataset_next(data, NULL, &error), WEFT_USAGE);
    }
    weft_dataset_close(&data);
    close(file);
    unlink(path);
    check_works(&p);
    end(&p);
}

static void test_a_move_that_was_not_started(void)
{
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    weft_move *move = NULL;
    weft_flight *flight = NULL;
    weft_error error = {0};
    weft_shape shape = {1, {{"row", 5}}};
    weft_convert_step step = {.kind = WEFT_SLICE};
    double from[5] = {0}, to[5];
    step.to.n_split[0] = 1;
    CHECK_OK(weft_mesh_create(&world, NULL, &mesh, &error), error);
    const int rank = weft_mesh_first_local(mesh);
    CHECK_OK(weft_move_create(mesh, &shape, WEFT_F64, &step, rank, &move, &error), error);
    CHECK_OK(weft_flight_create(move, NULL, &flight, &error), error);
    CHECK_EQ_INT(weft_flight_finish(flight, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "has not been started");
    weft_error_clear(&error);
    CHECK_OK(weft_flight_start(flight, from, to, NULL, &error), error);
    CHECK_EQ_INT(weft_flight_start(flight, from, to, NULL, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "finish it first");
    weft_error_clear(&error);
    weft_move_destroy(&move); /* in use: refused */
    weft_flight_destroy(&flight);
    CHECK(move != NULL && flight != NULL);
    CHECK_OK(weft_flight_finish(flight, &error), error);
    weft_flight_destroy(&flight);
    CHECK(flight == NULL);
    weft_request request = {0};
    CHECK_OK(weft_wait(&request, &error), error); /* never begun: nothing to wait for */
    weft_move_destroy(&move);
    weft_comms_destroy(&comms);
    weft_mesh_destroy(&mesh);
}

static void test_an_error_is_cleared_and_used_again(void)
{
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    CHECK_EQ_INT(weft_mesh_plan("data", &mesh, &error), WEFT_USAGE);
    char first[sizeof error.message];
    snprintf(first, sizeof first, "%s", error.message);
    CHECK_EQ_INT(weft_mesh_plan("model:0", &mesh, &error), WEFT_USAGE);
    CHECK(strcmp(error.message, first) == 0); /* the first stays */
    weft_error_clear(&error);
    CHECK(error.status == WEFT_OK && error.message[0] == '\0' && error.rank == -1);
    CHECK_EQ_INT(weft_mesh_plan("model:0", &mesh, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "axis model has size 0");
    weft_error_clear(NULL);
}

int main(void)
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    RUN(test_what_a_program_uses_refuses_to_go_first);
    RUN(test_a_parent_program_refuses_to_go_first);
    RUN(test_a_failed_compile_keeps_nothing);
    RUN(test_communicators_keep_their_mesh);
    RUN(test_what_has_been_destroyed_is_refused);
    RUN(test_a_dataset_that_was_not_started);
    RUN(test_a_move_that_was_not_started);
    RUN(test_an_error_is_cleared_and_used_again);
    weft_world_close();
    return weft_test_report();
}
