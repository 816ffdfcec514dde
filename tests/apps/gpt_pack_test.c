/* RANKS: 2 3 4 */
/* gpt_pack_test: a window of several documents has the losses and gradients of each document alone in a window of a model that knows nothing
 * of documents; every layout, the sequence's too, parts of a batch, scans and recomputation train as one rank does at once.
 */
#include <math.h>

#include "gpt_training.h"

enum { STEPS = 3, SEQ = 12, WINDOWS = 6, DOCUMENTS = 2 * WINDOWS, PLACES = DOCUMENTS * SEQ };

static weft_oracle oracle;

/* Two documents a window, the second one cut short by rows without any. */
typedef struct rows {
    double tokens[PLACES], targets[PLACES], segments[PLACES], positions[PLACES];
    int n_targets;
} rows;

static int length_of(int document)
{
    const int first = 3 + document / 2 % 5;
    return document % 2 == 0 ? first : SEQ - first - document / 2 % 3;
}

static void put_document(rows *r, int document, int at, int segment, int step)
{
    const int n = length_of(document);
    for (int i = 0; i < n; i++) {
        r->tokens[at + i] = (document * document + 7 * i + 3 * step) % TRAINED_VOCAB;
        r->targets[at + i] = i + 1 < n ? (document * 5 + i * i + step) % TRAINED_VOCAB : -1;
        r->segments[at + i] = segment;
        r->positions[at + i] = i;
        r->n_targets += i + 1 < n;
    }
}

/* Packed: [WINDOWS, SEQ]. Else each document has a window: [DOCUMENTS, SEQ]. */
static void make_rows(rows *r, bool is_packed, int step)
{
    *r = (rows){.n_targets = 0};
    for (int i = 0; i < PLACES; i++)
        r->targets[i] = -1;
    for (int d = 0; d < DOCUMENTS; d++) {
        const int behind = d % 2 == 0 ? 0 : length_of(d - 1);
        if (is_packed)
            put_document(r, d, d / 2 * SEQ + behind, 1 + d % 2, step);
        else
            put_document(r, d, d * SEQ, 1, step);
    }
}

static gpt_shape shape_of(bool is_packed)
{
    gpt_shape shape = trained_shape();
    shape.batch = is_packed ? WINDOWS : DOCUMENTS;
    shape.seq = SEQ;
    shape.layers = 2;
    shape.packs = is_packed;
    return shape;
}

static weft_status write_rows(const training *t, const rows *r, bool is_packed, weft_error *error)
{
    WEFT_TRY(weft_oracle_write(t->program, t->model.tokens, r->tokens, error));
    WEFT_TRY(weft_oracle_write(t->program, t->model.targets, r->targets, error));
    if (!is_packed) return WEFT_OK;
    WEFT_TRY(weft_oracle_write(t->program, t->model.documents.segments, r->segments, error));
    return weft_oracle_write(t->program, t->model.documents.positions, r->positions, error);
}

typedef struct outcome {
    double losses[STEPS], norms[STEPS];
    int n_targets; /* of the last step */
} outcome;

static weft_status run(weft_mesh *mesh, const gpt_shape *shape, const training_way *way, outcome *o,
                       weft_error *error)
{
    training t;
    rows r;
    weft_status status = open_training(mesh, shape, way, &t, error);
    for (int step = 0; step < STEPS && status == WEFT_OK; step++) {
        make_rows(&r, shape->packs, step);
        o->n_targets = r.n_targets;
        status = write_rows(&t, &r, shape->packs, error);
        if (status == WEFT_OK) status = weft_run(t.program, error);
        if (status == WEFT_OK)
            status = weft_read_scalar(t.program, t.loss, &o->losses[step], error);
        if (status == WEFT_OK) status = weft_read_scalar(t.program, t.norm, &o->norms[step], error);
    }
    close_training(&t);
    return status;
}

static const training_way plainly = {.layout = "", .parts = 1};

/* The plain model's mean is over all places, those without a target too. */
static void check_alone(gpt_shape packed, gpt_shape alone, double tolerance)
{
    weft_error error = {0};
    outcome p = {.n_targets = 0}, a = {.n_targets = 0};
    if (!CHECK_OK(run(oracle.alone, &packed, &plainly, &p, &error), error) ||
        !CHECK_OK(run(oracle.alone, &alone, &plainly, &a, &error), error))
        return;
    CHECK_EQ_INT(p.n_targets, a.n_targets);
    const double more = (double)PLACES / a.n_targets;
    CHECK_CLOSE(p.losses[0], more * a.losses[0], tolerance);
    CHECK_CLOSE(p.norms[0], more * a.norms[0], 10 * tolerance);
}

static void test_documents_learn_as_if_each_were_alone(void)
{
    gpt_shape packed = shape_of(true), alone = shape_of(false);
    check_alone(packed, alone, 1e-12);
    packed.ropes = alone.ropes = true;
    check_alone(packed, alone, 1e-12);
    packed.dtype = alone.dtype = WEFT_F32;
    check_alone(packed, alone, 1e-5);
    packed.computes = alone.computes = WEFT_BF16;
    check_alone(packed, alone, 2e-2);
}

/* A document that is another one changes nothing of its neighbour: segments that are all one do. */
static void test_segments_are_what_keeps_documents_apart(void)
{
    weft_error error = {0};
    const gpt_shape shape = shape_of(true);
    double losses[2] = {0};
    training t;
    rows r;
    if (CHECK_OK(open_training(oracle.alone, &shape, &plainly, &t, &error), error)) {
        make_rows(&r, true, 0);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(write_rows(&t, &r, true, &error), error);
            CHECK_OK(weft_run(t.program, &error), error);
            CHECK_OK(weft_read_scalar(t.program, t.loss, &losses[i], &error), error);
            for (int k = 0; k < WINDOWS * SEQ; k++)
                r.segments[k] = r.segments[k] > 0;
        }
    }
    CHECK(fabs(losses[0] - losses[1]) > 1e-6);
    close_training(&t);
}

static void check_way(weft_mesh *mesh, const gpt_shape *shape, const training_way *way,
                      const outcome *expected)
{
    weft_error error = {0};
    outcome found = {.n_targets = 0};
    if (!CHECK_OK(run(mesh, shape, way, &found, &error), error)) return;
    for (int step = 0; step < STEPS; step++) {
        CHECK_CLOSE(found.losses[step], expected->losses[step], 1e-10);
        CHECK_CLOSE(found.norms[step], expected->norms[step], 1e-8);
    }
}

static void test_layouts_and_parts_equal_one_rank(void)
{
    static const struct {
        const char *mesh;
        training_way way;
    } cases[] = {
        {"data:1", {.layout = "", .parts = 3}},
        {"data:2", {.layout = "batch:data", .zero = 3, .parts = 1}},
        {"data:2", {.layout = "batch:data", .zero = 2, .parts = 3}},
        {"model:2", {.layout = "heads:model,hidden:model,vocab:model", .parts = 1}},
        {"model:2", {.layout = "seq:model", .parts = 1}},
        {"data:3", {.layout = "seq:data", .parts = 2}},
        {"data:2,model:2", {.layout = "batch:data,seq:model", .zero = 1, .parts = 1}},
        {"data:2,model:2", {.layout = "seq:data,heads:model", .parts = 1}},
    };
    weft_error error = {0};
    outcome expected = {.n_targets = 0};
    gpt_shape shape = shape_of(true);
    if (!CHECK_OK(run(oracle.alone, &shape, &plainly, &expected, &error), error)) return;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        weft_mesh *mesh = trained_mesh(&oracle, cases[c].mesh);
        if (mesh == NULL) continue;
        for (int how = 0; how < 3; how++) {
            shape.recomputes = how == 1, shape.scans = how == 2;
            check_way(mesh, &shape, &cases[c].way, &expected);
        }
    }
}

/* What a place may see goes through stages with it, of halves in turn, too. */
static void test_stages_equal_layers_at_once(void)
{
    static const struct {
        const char *mesh;
        training_way way;
        int stages, micro, turns;
    } cases[] = {
        {"data:2", {.layout = "stage:data", .parts = 1}, 2, 3, 1},
        {"model:2", {.layout = "batch:model", .parts = 1}, 2, 1, 1},
        {"data:2,model:2", {.layout = "stage:data,batch:model", .zero = 1, .parts = 1}, 2, 3, 2},
        {"data:2,model:2", {.layout = "stage:data,seq:model", .parts = 2}, 2, 3, 1},
    };
    weft_error error = {0};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int ropes = 0; ropes < 2; ropes++) {
            outcome expected = {.n_targets = 0};
            gpt_shape shape = shape_of(true);
            shape.ropes = ropes;
            if (!CHECK_OK(run(oracle.alone, &shape, &plainly, &expected, &error), error)) return;
            shape.stages = cases[c].stages, shape.micro = cases[c].micro;
            shape.turns = cases[c].turns;
            check_way(oracle.alone, &shape, &plainly, &expected);
            weft_mesh *mesh = trained_mesh(&oracle, cases[c].mesh);
            if (mesh != NULL) check_way(mesh, &shape, &cases[c].way, &expected);
        }
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_documents_learn_as_if_each_were_alone);
        RUN(test_segments_are_what_keeps_documents_apart);
        RUN(test_layouts_and_parts_equal_one_rank);
        RUN(test_stages_equal_layers_at_once);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
