/* RANKS: 2 3 4 */
/* initial_test: an element of an initial value is a function of the seed, the variable's name and its index alone: what
 * one element computed by itself says, whatever the mesh, the layout, the lanes and the box it is in; and normal numbers
 * are spread as normal numbers are.
 */
#include "ops/run/program.h"

#include "weft/collectives.h"
#include "weft/philox.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

/* ---- one element, by the definition ---------------------------------------------------------- */

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

static double unit_at(const weft_philox_key *key, int64_t index)
{
    uint32_t words[4];
    weft_philox(*key, (uint64_t)index / 4, words);
    return weft_philox_unit(words[index % 4]);
}

static double normal_at(const weft_philox_key *key, int64_t index)
{
    const int64_t even = index - index % 2;
    const double radius = sqrt(-2.0 * log(1.0 - unit_at(key, even)));
    const double angle = 2.0 * acos(-1.0) * unit_at(key, even + 1);
    return radius * (index % 2 == 0 ? cos(angle) : sin(angle));
}

static double defined_at(const weft_variable_attributes *variable, uint64_t seed, int64_t index)
{
    const weft_philox_key key = {.seed = seed, .stream = hash_of(variable->name)};
    const double a = variable->initial.a, b = variable->initial.b;
    if (variable->initial.kind == WEFT_INITIAL_CONSTANT) return a;
    if (variable->initial.kind == WEFT_INITIAL_NORMAL) return a + b * normal_at(&key, index);
    if (variable->initial.kind == WEFT_INITIAL_UNIFORM) return a + (b - a) * unit_at(&key, index);
    return a * cos(b * (double)index);
}

/* ---- boxes ------------------------------------------------------------------------------------ */

static const weft_initial initials[] = {
    {WEFT_INITIAL_CONSTANT, 0.0, 0.0}, {WEFT_INITIAL_CONSTANT, -0.0, 0.0},
    {WEFT_INITIAL_CONSTANT, 2.5, 0.0}, {WEFT_INITIAL_NORMAL, 0.25, 8.0},
    {WEFT_INITIAL_UNIFORM, -3.0, 5.0}, {WEFT_INITIAL_FORMULA, 3.0, 0.7}};
enum { N_INITIALS = sizeof initials / sizeof initials[0] };

static const weft_view boxes[] = {
    {.shape = {0}},
    {.shape = {1, {{"a", 1}}}, .box = {{0}, {1}}},
    {.shape = {1, {{"a", 70000}}}, .box = {{0}, {70000}}}, /* more than one lane's worth */
    {.shape = {1, {{"a", 70001}}}, .box = {{34999}, {70001}}},
    {.shape = {1, {{"a", 2000}}}, .box = {{1}, {2}}},
    {.shape = {1, {{"a", 2000}}}, .box = {{7}, {7}}}, /* empty */
    {.shape = {2, {{"a", 5}, {"b", 3}}}, .box = {{1, 0}, {4, 3}}},
    {.shape = {2, {{"a", 5}, {"b", 3}}}, .box = {{1, 1}, {5, 2}}},
    {.shape = {2, {{"a", 300}, {"b", 700}}}, .box = {{17, 513}, {300, 700}}},
    {.shape = {2, {{"a", 300}, {"b", 700}}}, .box = {{300, 0}, {300, 700}}}, /* empty */
    {.shape = {3, {{"a", 11}, {"b", 13}, {"c", 7}}}, .box = {{2, 3, 0}, {9, 12, 7}}},
    {.shape = {3, {{"a", 11}, {"b", 13}, {"c", 7}}}, .box = {{2, 0, 3}, {9, 13, 7}}},
    {.shape = {4, {{"a", 3}, {"b", 1}, {"c", 6}, {"d", 5}}}, .box = {{1, 0, 0, 2}, {3, 1, 6, 5}}},
    {.shape = {2, {{"a", 1 << 20}, {"b", 1 << 20}}}, /* indices past 2^32 */
     .box = {{(1 << 19) + 3, 1048001}, {(1 << 19) + 9, 1 << 20}}},
    {.shape = {2, {{"a", (int64_t)1 << 40}, {"b", 3}}},
     .box = {{((int64_t)1 << 40) - 5, 0}, {(int64_t)1 << 40, 3}}},
};
enum { N_BOXES = sizeof boxes / sizeof boxes[0] };

static int64_t index_in(const weft_view *view, int64_t i)
{
    int64_t index = 0, weight = 1;
    for (int d = view->shape.n_dims - 1; d >= 0; d--) {
        const int64_t size = weft_view_size(view, d);
        index += weight * (view->box.begin[d] + i % size);
        weight *= view->shape.dims[d].size;
        i /= size;
    }
    return index;
}

static double rounded(weft_dtype dtype, double x)
{
    double memory = 0;
    weft_dtype_put(dtype, &memory, 0, x);
    return weft_dtype_get(dtype, &memory, 0);
}

/* Within the last digits of double, which libm leaves open; then rounded to the dtype. */
static bool is_defined(double found, double wanted, weft_dtype dtype)
{
    const double slack = 1e-13 * fmax(1.0, fabs(wanted));
    if (dtype == WEFT_F64) return fabs(found - wanted) <= slack;
    if (dtype == WEFT_F32)
        return found >= (float)(wanted - slack) && found <= (float)(wanted + slack);
    if (weft_dtype_is_float(dtype))
        return found >= rounded(dtype, wanted - slack) && found <= rounded(dtype, wanted + slack);
    if (dtype == WEFT_U8) wanted = fmin(fmax(wanted, 0), 255);
    return found >= trunc(wanted - slack) && found <= trunc(wanted + slack);
}

static void initialize(const weft_variable_attributes *variable, uint64_t seed,
                       const weft_view *view, weft_stream *stream)
{
    weft_error error = {0};
    CHECK_OK(weft_initialize(variable, seed, view, weft_devices[WEFT_CPU], stream, &error), error);
}

/* As filled at once on `stream`, and one element at a time: the same bits, and what is defined. */
static void check_box(const weft_variable_attributes *variable, const weft_view *box,
                      weft_dtype dtype, weft_stream *stream)
{
    const uint64_t seed = 0x123456789ABCDEFu;
    weft_view view = *box, one = *box;
    const int64_t count = weft_view_count(&view);
    const size_t bytes = weft_dtype_bytes(dtype);
    view.dtype = one.dtype = dtype;
    view.data = calloc((size_t)count + 1, bytes);
    for (size_t i = 0; i < bytes; i++)
        ((char *)view.data)[(size_t)count * bytes + i] = 'x'; /* the end of it */
    initialize(variable, seed, &view, stream);
    bool is_same = true, is_right = true;
    for (int64_t i = 0; i < count; i++) {
        double by_itself = 0.0;
        int64_t index = index_in(&view, i), rest = index;
        for (int d = view.shape.n_dims - 1; d >= 0; d--) {
            one.box.begin[d] = rest % view.shape.dims[d].size;
            one.box.end[d] = one.box.begin[d] + 1;
            rest /= view.shape.dims[d].size;
        }
        one.data = &by_itself;
        initialize(variable, seed, &one, NULL);
        is_same = is_same && memcmp(&by_itself, (char *)view.data + (size_t)i * bytes, bytes) == 0;
        is_right = is_right && is_defined(weft_dtype_get(dtype, view.data, i),
                                          defined_at(variable, seed, index), dtype);
    }
    CHECK(is_same);
    CHECK(is_right);
    for (size_t i = 0; i < bytes; i++)
        CHECK(((char *)view.data)[(size_t)count * bytes + i] == 'x');
    free(view.data);
}

static void test_a_box_holds_what_its_elements_are_by_themselves(void)
{
    weft_error error = {0};
    weft_stream *stream = NULL;
    CHECK_OK(weft_devices[WEFT_CPU]->stream_create(3, &stream, &error), error);
    for (int b = 0; b < N_BOXES; b++)
        for (int k = 0; k < N_INITIALS; k++)
            for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
                const weft_variable_attributes variable = {.name = "block0.query",
                                                           .initial = initials[k]};
                check_box(&variable, &boxes[b], (weft_dtype)dtype, k % 2 ? stream : NULL);
            }
    weft_devices[WEFT_CPU]->stream_destroy(&stream);
}

static void test_i32_keeps_to_its_range(void)
{
    int32_t numbers[3] = {0};
    const weft_view view = {
        .data = numbers, .dtype = WEFT_I32, .shape = {1, {{"a", 3}}}, .box = {{0}, {3}}};
    const weft_variable_attributes variable = {.name = "n", .initial = {.a = 1e300}};
    initialize(&variable, 1, &view, NULL);
    CHECK_EQ_INT(numbers[2], INT32_MAX);
}

/* A variable that stands for several, of which a box has the last two without their first rows of a. */
static void test_rows_begin_as_variables_of_their_names(void)
{
    static const char *const names[] = {"x.w", "block11.w", "z"};
    enum { ROW = 5 * 5 };
    for (int k = 0; k < N_INITIALS; k++) {
        double all[2 * ROW] = {0}, one[ROW] = {0};
        const weft_view view = {.data = all,
                                .dtype = WEFT_F64,
                                .shape = {3, {{"row", 3}, {"a", 7}, {"b", 5}}},
                                .box = {{1, 2, 0}, {3, 7, 5}}};
        const weft_variable_attributes rows = {
            .name = "rows", .rows = "x.w block11.w z", .initial = initials[k]};
        initialize(&rows, 3, &view, NULL);
        for (int row = 1; row < 3; row++) {
            const weft_view part = {.data = one,
                                    .dtype = WEFT_F64,
                                    .shape = {2, {{"a", 7}, {"b", 5}}},
                                    .box = {{2, 0}, {7, 5}}};
            const weft_variable_attributes by_name = {.name = names[row], .initial = initials[k]};
            memset(one, 0, sizeof one);
            initialize(&by_name, 3, &part, NULL);
            CHECK(memcmp(one, all + (row - 1) * ROW, sizeof one) == 0);
        }
    }
}

/* What is not as many names as rows has its sentence. */
static void test_names_of_rows_are_looked_at(void)
{
    static const struct {
        const char *rows, *says;
    } wrong[] = {{"a b", "2 names for 3 rows"},
                 {"a b c d", "4 names for 3 rows"},
                 {"a  b", "a name is letters"},
                 {"a b c/", "a name is letters"},
                 {NULL, "no names of rows"}};
    const weft_dim row = {"row", 3};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_graph *graph = weft_graph_create(1);
        (void)weft_variable_of_rows(graph, "w", WEFT_F32, WEFT_DIMS(row), weft_normal(0, 1),
                                    wrong[i].rows);
        CHECK(strstr(weft_graph_error(graph)->message, wrong[i].says) != NULL);
        weft_graph_destroy(&graph);
    }
}

/* ---- meshes and layouts ---------------------------------------------------------------------- */

enum { N_VARIABLES = 4, A = 13, B = 21, C = 10 };

/* The variables' bytes, whole, in one mesh and layout. */
static void read_all(weft_mesh *mesh, const char *rules, int stage, float *out)
{
    const weft_dim a = {"a", A}, b = {"b", B}, c = {"c", C};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_layout *layout = NULL;
    weft_graph *graph = weft_graph_create(5);
    weft_value all[N_VARIABLES + 1];
    for (int k = 0; k < N_VARIABLES; k++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", k);
        all[k] = weft_variable(graph, name, WEFT_F32, WEFT_DIMS(a, b, c), initials[k + 2]);
    }
    all[N_VARIABLES] = weft_assign(all[0], weft_scale(all[1], 2.0));
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_layout_store(layout, stage, "a", &error), error);
    CHECK_OK(
        weft_compile(mesh, layout, (weft_values){all, N_VARIABLES + 1}, NULL, &program, &error),
        error);
    for (int k = 0; k < N_VARIABLES && program; k++)
        CHECK_OK(weft_read(program, all[k], WEFT_F32, out + k * A * B * C,
                           A * B * C * (int64_t)sizeof *out, &error),
                 error);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
}

static void test_every_mesh_and_layout_begins_with_the_same_bits(void)
{
    static const char *const in_one_process[] = {"x:1", "x:2,y:3", "x:16", "x:5,y:4", NULL};
    static const char *const in_many[][2] = {{"x:2", NULL}, {"x:3", NULL}, {"x:2,y:2", NULL}};
    static const char *const rules[] = {"", "a:x", "b:x", "c:x", "a:x,b:y?", "c:y?,a:x", "b:x+y?"};
    enum { N_RULES = sizeof rules / sizeof rules[0], COUNT = N_VARIABLES * A * B * C };
    static float first[COUNT], other[COUNT];
    weft_world world;
    weft_error error = {0};
    bool has_first = false;
    if (weft_world_open(&world, &error) != WEFT_OK) CHECK_OK(error.status, error);
    const char *const *meshes =
        world.n_processes == 1 ? in_one_process : in_many[world.n_processes - 2];
    for (int m = 0; meshes[m]; m++) {
        weft_mesh *mesh = NULL;
        CHECK_OK(weft_mesh_create(&world, meshes[m], &mesh, &error), error);
        for (int r = 0; r < N_RULES; r++)
            for (int stage = 0; stage <= 3; stage += 3) {
                read_all(mesh, rules[r], stage, has_first ? other : first);
                if (has_first) CHECK(memcmp(first, other, sizeof first) == 0);
                has_first = true;
            }
        weft_mesh_destroy(&mesh);
    }
    for (int k = 0; k < N_VARIABLES; k++) { /* and on any number of processes */
        char name[8];
        snprintf(name, sizeof name, "v%d", k);
        const weft_variable_attributes variable = {.name = name, .initial = initials[k + 2]};
        for (int64_t i = 0; i < A * B * C; i++)
            if (!is_defined(first[k * A * B * C + i], defined_at(&variable, 5, i), WEFT_F32))
                CHECK(is_defined(first[k * A * B * C + i], defined_at(&variable, 5, i), WEFT_F32));
    }
    weft_world_close();
}

/* ---- how they are spread --------------------------------------------------------------------- */

/* Moments to their own deviations, and as many beyond 1, 2, 3, 4, 5 deviations as there should be. */
static void test_normal_numbers_are_spread_as_normal_numbers_are(void)
{
    enum { N = 1 << 22, N_TAILS = 5 };
    double *x = calloc(N, sizeof *x), sum[5] = {0}, beside = 0.0, n = N;
    int64_t beyond[N_TAILS] = {0};
    const weft_view view = {
        .data = x, .dtype = WEFT_F64, .shape = {1, {{"a", N}}}, .box = {{0}, {N}}};
    const weft_variable_attributes variable = {.name = "w", .initial = weft_normal(0.0, 1.0)};
    initialize(&variable, 1, &view, NULL);
    for (int64_t i = 0; i < N; i++) {
        double power = 1.0;
        for (int k = 1; k <= 4; k++)
            sum[k] += power *= x[i];
        if (i > 0) beside += x[i] * x[i - 1];
        for (int t = 0; t < N_TAILS; t++)
            beyond[t] += fabs(x[i]) > t + 1;
    }
    CHECK(fabs(sum[1] / n) < 4.0 * sqrt(1.0 / n));
    CHECK(fabs(sum[2] / n - 1.0) < 4.0 * sqrt(2.0 / n));
    CHECK(fabs(sum[3] / n) < 4.0 * sqrt(15.0 / n));
    CHECK(fabs(sum[4] / n - 3.0) < 4.0 * sqrt(96.0 / n));
    CHECK(fabs(beside / n) < 4.0 * sqrt(1.0 / n));
    for (int t = 0; t < N_TAILS; t++) {
        const double expected = n * erfc((t + 1) / sqrt(2.0));
        CHECK(fabs((double)beyond[t] - expected) < 4.0 * sqrt(expected) + 1.0);
    }
    free(x);
}

int main(void)
{
    RUN(test_every_mesh_and_layout_begins_with_the_same_bits);
    RUN(test_a_box_holds_what_its_elements_are_by_themselves);
    RUN(test_i32_keeps_to_its_range);
    RUN(test_rows_begin_as_variables_of_their_names);
    RUN(test_names_of_rows_are_looked_at);
    RUN(test_normal_numbers_are_spread_as_normal_numbers_are);
    return weft_test_report();
}
