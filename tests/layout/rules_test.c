/* rules_test: layout texts read, refused, checked against a mesh, and applied to tensors. */
#include "weft/layout.h"

#include "test.h"

static weft_mesh *mesh;

static weft_layout *layout_of(const char *text)
{
    weft_error error = {0};
    weft_layout *layout;
    CHECK_OK(weft_layout_create(text, &layout, &error), error);
    return layout;
}

/* Prints the spec that `text` gives `shape`, and what was skipped. */
static bool gives(const char *text, weft_shape shape, const char *expected, const char *skips)
{
    weft_layout *layout = layout_of(text);
    weft_spec spec;
    char found[200], skipped[200];
    int n = weft_layout_spec(layout, mesh, &shape, &spec, skipped, sizeof skipped);
    weft_spec again;
    CHECK_EQ_INT(weft_layout_spec(layout, mesh, &shape, &again, NULL, 0), n);
    CHECK((n == 0) == (skips[0] == '\0'));
    weft_spec_print(&spec, mesh, &shape, found, sizeof found);
    weft_layout_destroy(&layout);
    return CHECK_TEXT(found, expected) && strcmp(found, expected) == 0 &&
           strcmp(skipped, skips) == 0;
}

static void test_texts_have_one_form(void)
{
    static const char *const forms[][2] = {
        {" batch : data + model ,hidden:model", "batch:data+model,hidden:model"},
        {"", ""},
        {"  ", ""},
        {"batch:data,batch:model", "batch:data,batch:model"},
        {"batch:data ? + model,hidden:pod?", "batch:data?+model,hidden:pod?"},
    };
    for (int i = 0; i < 5; i++) {
        weft_layout *layout = layout_of(forms[i][0]);
        CHECK(strcmp(weft_layout_text(layout), forms[i][1]) == 0);
        weft_layout_destroy(&layout);
        CHECK(layout == NULL);
    }
    weft_layout *none = layout_of(NULL);
    CHECK(strcmp(weft_layout_store_dim(none), "") == 0);
    CHECK_EQ_INT(weft_layout_store(none, 0, "batch", NULL), WEFT_OK);
    CHECK(strcmp(weft_layout_store_dim(none), "") == 0);
    CHECK(strcmp(weft_layout_text(none), "") == 0);
    weft_layout_destroy(&none);
    weft_layout_destroy(&none);
}

static const struct {
    const char *text, *sentence;
} wrong[] = {
    {"batch", "column 6: \":\" and an axis name expected, but found \"the text ends\""},
    {"batch:", "column 7: an axis name expected"},
    {"batch:data,", "column 12: a dim name expected"},
    {"batch:data+", "column 12: an axis name expected"},
    {"batch=data", "column 6: \":\" and an axis name expected, but found \"=data\""},
    {"batch:data;hidden:model", "column 11: \",\", \"+\" or the end expected"},
    {",batch:data", "column 1: a dim name expected"},
    {"batch:data hidden:model", "column 12: \",\", \"+\" or the end expected"},
    {"batch:data+model+data", "column 18: the rule for batch names axis data twice"},
    {"batch:data?+data", "column 13: the rule for batch names axis data twice"},
    {"batch:data??", "column 12: \",\", \"+\" or the end expected, but found \"?\""},
    {"batch:?", "column 7: an axis name expected, but found \"?\""},
    {"batch?:data", "column 6: \":\" and an axis name expected, but found \"?:data\""},
    {"batch:a+b+c+d+e+f+g", "column 19: the rule for batch names 7 axes"},
    {"b234567890123456789012345678901234567890123456789012345678901234:data", "64 letters"},
};

static void test_a_wrong_text_is_refused_with_its_place(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weft_error error = {0};
        weft_layout *layout;
        CHECK_EQ_INT(weft_layout_create(wrong[i].text, &layout, &error), WEFT_USAGE);
        CHECK(layout == NULL);
        CHECK_TEXT(error.message, wrong[i].sentence);
    }
}

static void test_first_rule_wins(void)
{
    weft_shape shape = {3, {{"batch", 8}, {"hidden", 6}, {"vocab", 5}}};
    CHECK(gives("batch:data,hidden:model", shape, "[batch:8/data, hidden:6/model, vocab:5]", ""));
    CHECK(gives("vocab:model,hidden:model", shape, "[batch:8, hidden:6, vocab:5/model]",
                "hidden: model is taken by vocab"));
    CHECK(gives("batch:model+data,hidden:data+pod,vocab:model", shape,
                "[batch:8/model+data, hidden:6/pod, vocab:5]",
                "hidden: data is taken by batch; vocab: model is taken by batch"));
    CHECK(gives("seq:data", shape, "[batch:8, hidden:6, vocab:5]", ""));
    CHECK(gives("", shape, "[batch:8, hidden:6, vocab:5]", ""));
    CHECK(gives("batch:data,batch:pod", shape, "[batch:8/data+pod, hidden:6, vocab:5]", ""));
    CHECK(gives("batch:data", (weft_shape){0}, "[]", ""));
}

static void test_an_optional_axis_holds_where_the_mesh_has_it(void)
{
    weft_shape shape = {2, {{"batch", 8}, {"hidden", 6}}};
    weft_error error = {0};
    CHECK(gives("batch:data?,hidden:model?", shape, "[batch:8/data, hidden:6/model]", ""));
    CHECK(gives("batch:expert?+data,hidden:stage?", shape, "[batch:8/data, hidden:6]", ""));
    CHECK(gives("batch:stage?,batch:pod", shape, "[batch:8/pod, hidden:6]", ""));
    CHECK(gives("batch:data?,hidden:data?", shape, "[batch:8/data, hidden:6]",
                "hidden: data is taken by batch"));
    weft_layout *layout = layout_of("batch:expert?+data,hidden:stage?");
    CHECK_OK(weft_layout_check(layout, mesh, NULL, 0, &error), error);
    weft_layout_destroy(&layout);
    layout = layout_of("batch:data?+expert"); /* the mark is of one axis only */
    CHECK_EQ_INT(weft_layout_check(layout, mesh, NULL, 0, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "has no axis expert");
    weft_layout_destroy(&layout);
    int8_t order[WEFT_MAX_AXES];
    layout = layout_of("batch:stage?+pod?,batch:data");
    CHECK_EQ_INT(weft_layout_order(layout, mesh, "batch", 5, order), 2);
    CHECK(order[0] == 2 && order[1] == 0);
    weft_layout_destroy(&layout);
}

/* A text of `n` letters that layouts are made of, and some that they are not. */
static void draw_text(uint64_t *state, int n, char *text)
{
    static const char letters[] = "abd_0 ::::,,,++??\t;=-";
    for (int i = 0; i < n; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        text[i] = letters[(*state >> 33) % (sizeof letters - 1)];
    }
    text[n] = '\0';
}

/* Either it is refused with a column that lies in it, or it has a form that is its own form. */
static void test_any_text_is_refused_or_has_one_form(void)
{
    uint64_t state = 12;
    int n_read = 0;
    for (int i = 0; i < 60000; i++) {
        char text[32];
        const int n = i % 25;
        weft_error error = {0};
        weft_layout *layout = NULL, *again = NULL;
        draw_text(&state, n, text);
        if (weft_layout_create(text, &layout, &error) != WEFT_OK) {
            const char *column = strstr(error.message, "column ");
            int at = 0;
            CHECK(layout == NULL && column != NULL && sscanf(column, "column %d", &at) == 1);
            CHECK(at >= 1 && at <= n + 1);
            continue;
        }
        n_read++;
        CHECK_OK(weft_layout_create(weft_layout_text(layout), &again, &error), error);
        CHECK(again != NULL && strcmp(weft_layout_text(again), weft_layout_text(layout)) == 0);
        CHECK((strchr(text, '?') != NULL) == (strchr(weft_layout_text(layout), '?') != NULL));
        weft_layout_destroy(&again);
        weft_layout_destroy(&layout);
    }
    CHECK(n_read > 300);
}

static void test_check_names_the_nearest(void)
{
    static const char *const dims[] = {"batch", "hidden"};
    weft_error error = {0};
    weft_layout *layout = layout_of("batch:dta,hidden:model");
    CHECK_EQ_INT(weft_layout_check(layout, mesh, NULL, 0, &error), WEFT_USAGE);
    CHECK_TEXT(error.message,
               "layout batch:dta,hidden:model: mesh data:2,model:2,pod:3 has no axis "
               "dta; did you mean data?");
    weft_layout_destroy(&layout);
    error = (weft_error){0};
    layout = layout_of("batch:data,hiden:model");
    CHECK_EQ_INT(weft_layout_check(layout, mesh, NULL, 0, &error), WEFT_OK);
    CHECK_EQ_INT(weft_layout_check(layout, mesh, dims, 2, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "no tensor has a dim hiden; did you mean hidden?");
    weft_layout_destroy(&layout);
    error = (weft_error){0};
    layout = layout_of("batch:pipeline");
    CHECK_EQ_INT(weft_layout_check(layout, mesh, dims, 2, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "has no axis pipeline; use one of: data, model, pod");
    weft_layout_destroy(&layout);
}

static bool stores(const char *text, const char *dim, weft_shape shape, const char *expected)
{
    weft_layout *layout = layout_of(text);
    CHECK_EQ_INT(weft_layout_store(layout, 3, dim, NULL), WEFT_OK);
    CHECK_EQ_INT(weft_layout_stage(layout), 3);
    CHECK(strcmp(weft_layout_store_dim(layout), dim) == 0);
    weft_spec compute, storage;
    char found[200];
    weft_layout_spec(layout, mesh, &shape, &compute, NULL, 0);
    weft_layout_storage(layout, mesh, &shape, &compute, &storage);
    weft_spec_print(&storage, mesh, &shape, found, sizeof found);
    weft_layout_destroy(&layout);
    return CHECK_TEXT(found, expected);
}

/* It takes its part in the rules, and is in no spec, wherever it stands. */
static void test_an_axis_of_one_rank_is_in_no_spec(void)
{
    static const char *const layouts[][3] = {
        {"batch:one", "[batch:8, hidden:6]", ""},
        {"batch:one+data", "[batch:8/data, hidden:6]", ""},
        {"batch:data+one+model", "[batch:8/data+model, hidden:6]", ""},
        {"batch:one,hidden:one+model", "[batch:8, hidden:6/model]",
         "hidden: one is taken by batch"},
    };
    weft_error error = {0};
    weft_mesh *with_one = NULL;
    const weft_shape shape = {2, {{"batch", 8}, {"hidden", 6}}};
    CHECK_OK(weft_mesh_plan("data:2,one:1,model:3", &with_one, &error), error);
    for (int i = 0; i < 4; i++) {
        char found[200], skipped[200];
        weft_layout *layout = layout_of(layouts[i][0]);
        weft_spec spec, storage;
        weft_layout_spec(layout, with_one, &shape, &spec, skipped, sizeof skipped);
        weft_spec_print(&spec, with_one, &shape, found, sizeof found);
        CHECK(strcmp(found, layouts[i][1]) == 0);
        CHECK(strcmp(skipped, layouts[i][2]) == 0);
        CHECK(weft_spec_is_valid(&spec, with_one, &shape));
        CHECK_OK(weft_layout_store(layout, 1, "batch", &error), error);
        weft_layout_storage(layout, with_one, &shape, &spec, &storage);
        CHECK(weft_spec_equal(&spec, &storage, 2));
        weft_layout_destroy(&layout);
    }
    weft_mesh_destroy(&with_one);
}

static void test_storage_takes_the_axes_of_its_dim(void)
{
    const char *text = "batch:data,hidden:model";
    weft_shape weight = {2, {{"embed", 4}, {"hidden", 16}}}, bias = {1, {{"hidden", 16}}};
    CHECK(stores(text, "batch", weight, "[embed:4/data, hidden:16/model]"));
    CHECK(stores(text, "batch", bias, "[hidden:16/model+data]"));
    CHECK(stores(text, "batch", (weft_shape){0}, "[]"));
    CHECK(stores(text, "seq", weight, "[embed:4, hidden:16/model]"));
    CHECK(stores("batch:pod+data", "batch", weight, "[embed:4/data, hidden:16/pod]"));
    CHECK(stores("batch:pod+data", "batch", bias, "[hidden:16/pod+data]"));
    weft_shape square = {2, {{"i", 9}, {"j", 9}}};
    CHECK(stores("batch:data", "batch", square, "[i:9/data, j:9]"));
    weft_shape activation = {2, {{"batch", 8}, {"embed", 9}}}; /* data is taken already */
    CHECK(stores("batch:data", "batch", activation, "[batch:8/data, embed:9]"));
}

static void test_storage_that_no_rule_could_name_is_refused(void)
{
    static const struct {
        int stage;
        const char *dim, *sentence;
    } cases[] = {
        {3, "a_name_of_more_letters_than_a_layout_may_have_for_any_of_its_many_dims",
         "the longest"},
        {1, NULL, "it has no name"},
        {2, "two words", "a name is letters, digits and _"},
        {4, "batch", "stage is 4; it is from 0 to 3"},
        {-1, "batch", "stage is -1; it is from 0 to 3"},
    };
    weft_layout *layout = layout_of("batch:data");
    CHECK_EQ_INT(weft_layout_store(layout, 1, "batch", NULL), WEFT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weft_error error = {0};
        CHECK_EQ_INT(weft_layout_store(layout, cases[i].stage, cases[i].dim, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, cases[i].sentence);
        CHECK_EQ_INT(weft_layout_stage(layout), 1); /* as it was */
        CHECK(strcmp(weft_layout_store_dim(layout), "batch") == 0);
    }
    weft_error error = {0};
    const char *dims[] = {"batch", "hidden"};
    CHECK_EQ_INT(weft_layout_store(layout, 3, "bacth", &error), WEFT_OK);
    CHECK_EQ_INT(weft_layout_check(layout, mesh, dims, 2, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "sharded by a dim that no tensor has, bacth; did you mean batch?");
    weft_layout_destroy(&layout);
}

static void test_order_follows_the_rules_then_the_mesh(void)
{
    weft_layout *layout = layout_of("batch:pod,hidden:model,batch:data");
    int8_t order[WEFT_MAX_AXES];
    CHECK_EQ_INT(weft_layout_order(layout, mesh, "batch", 7, order), 3);
    CHECK(order[0] == 2 && order[1] == 0 && order[2] == 1);
    CHECK_EQ_INT(weft_layout_order(layout, mesh, "hidden", 5, order), 2);
    CHECK(order[0] == 0 && order[1] == 2);
    CHECK_EQ_INT(weft_layout_order(layout, mesh, "seq", 0, order), 0);
    weft_layout_destroy(&layout);
}

int main(void)
{
    weft_error error = {0};
    CHECK_OK(weft_mesh_plan("data:2,model:2,pod:3", &mesh, &error), error);
    RUN(test_texts_have_one_form);
    RUN(test_a_wrong_text_is_refused_with_its_place);
    RUN(test_first_rule_wins);
    RUN(test_an_optional_axis_holds_where_the_mesh_has_it);
    RUN(test_any_text_is_refused_or_has_one_form);
    RUN(test_check_names_the_nearest);
    RUN(test_an_axis_of_one_rank_is_in_no_spec);
    RUN(test_storage_takes_the_axes_of_its_dim);
    RUN(test_storage_that_no_rule_could_name_is_refused);
    RUN(test_order_follows_the_rules_then_the_mesh);
    weft_mesh_destroy(&mesh);
    return weft_test_report();
}
