/* neighbours_test: choices that differ from one in one thing. Each is there once: a mesh and a layout that Weft takes, of as many ranks.
 * A neighbour has the first one as its own. Each kind of change is among them.
 */
#include "ops/search/neighbours.h"

#include <stdlib.h>

#include "test.h"

static const weft_knob knobs[] = {
    {.name = "recompute", .is_flag = true, .n_values = 2, .values = {0, 1}},
    {.name = "accumulate", .n_values = 5, .values = {1, 2, 4, 8, 16}}};
static const weft_search_options options = {
    .n_knobs = 2, .knobs = knobs, .store_dim = "batch", .hints = "model=hidden+heads+vocab seq"};
static const char *const dims[] = {"batch", "hidden", "heads", "vocab", "seq"};
enum { N_DIMS = sizeof dims / sizeof *dims };

static weft_choice choice_of(const char *mesh, const char *layout, int zero, int64_t parts)
{
    weft_choice choice = {.zero = zero, .n_knobs = 2, .knobs = knobs, .values = {0, parts}};
    snprintf(choice.mesh, sizeof choice.mesh, "%s", mesh);
    snprintf(choice.layout, sizeof choice.layout, "%s", layout);
    return choice;
}

static search_neighbours *find(const weft_choice *from)
{
    search_neighbours *found = calloc(1, sizeof *found);
    if (!found) abort();
    weft_neighbours_find(&options, from, dims, N_DIMS, found);
    return found;
}

static const weft_choice starts[] = {
    {.mesh = "data:2", .layout = "batch:data"},
    {.mesh = "data:4,model:6", .layout = "batch:data,hidden:model,heads:model", .zero = 1},
    {.mesh = "pod:2,data:2,model:4", .layout = "batch:pod+data,seq:model?", .zero = 3},
    {.mesh = "data:1", .layout = ""},
};
enum { STARTS = sizeof starts / sizeof *starts };

static weft_choice start(int i)
{
    return choice_of(starts[i].mesh, starts[i].layout, starts[i].zero, 4);
}

static int ranks_of(const weft_choice *choice)
{
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_error error = WEFT_NO_ERROR;
    int ranks = 0;
    if (CHECK_OK(weft_mesh_plan(choice->mesh, &mesh, &error), error) &&
        CHECK_OK(weft_layout_create(choice->layout, &layout, &error), error) &&
        CHECK_OK(weft_layout_check(layout, mesh, dims, N_DIMS, &error), error))
        ranks = weft_mesh_n_ranks(mesh);
    weft_layout_destroy(&layout);
    (void)!weft_mesh_destroy(&mesh);
    return ranks;
}

static bool are_equal(const weft_choice *a, const weft_choice *b)
{
    return strcmp(a->mesh, b->mesh) == 0 && strcmp(a->layout, b->layout) == 0 &&
           a->zero == b->zero && a->values[0] == b->values[0] && a->values[1] == b->values[1];
}

static void test_each_is_good_and_there_once(void)
{
    for (int s = 0; s < STARTS; s++) {
        const weft_choice from = start(s);
        const int ranks = ranks_of(&from);
        search_neighbours *found = find(&from);
        CHECK(found->n >= 5);
        for (int i = 0; i < found->n; i++) {
            CHECK_EQ_INT(ranks_of(&found->list[i]), ranks);
            CHECK(!are_equal(&found->list[i], &from));
            for (int j = 0; j < i; j++)
                CHECK(!are_equal(&found->list[i], &found->list[j]));
        }
        free(found);
    }
}

/* What was one change is one change back: of order, stage and knobs. A rule that was taken away comes back behind the others. */
static void test_there_and_back(void)
{
    for (int s = 0; s < STARTS; s++) {
        const weft_choice from = start(s);
        search_neighbours *found = find(&from);
        for (int i = 0; i < found->n; i++) {
            if (strcmp(found->list[i].layout, from.layout) != 0 ||
                strlen(found->list[i].mesh) != strlen(from.mesh))
                continue;
            search_neighbours *back = find(&found->list[i]);
            int n = 0;
            for (int j = 0; j < back->n; j++)
                n += are_equal(&back->list[j], &from);
            CHECK_EQ_INT(n, 1);
            free(back);
        }
        free(found);
    }
}

static void test_each_kind_of_change(void)
{
    static const char *const wanted[] = {
        "--mesh model:6,data:4",
        "--mesh data:2,model:12",
        "--mesh data:8,model:3",
        "--mesh data:12,model:2",
        "--layout hidden:model,heads:model",
        "--layout batch:data,heads:model",
        "--layout batch:data,hidden:model,heads:model,seq:model",
        "--layout batch:data,hidden:model,heads:model,vocab:data",
        "--layout batch:model,hidden:model,heads:model",
        "--layout batch:data+model,hidden:model,heads:model",
        "--layout batch:data+model",
        "--layout hidden:model+data,heads:model+data,vocab:data",
        "--zero 0",
        "--zero 2",
        "--recompute",
        "--accumulate 2",
        "--accumulate 8",
    };
    const weft_choice from = start(1);
    search_neighbours *found = find(&from);
    for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
        int n = 0;
        for (int i = 0; i < found->n; i++) {
            char text[800];
            weft_neighbours_tell(&from, &found->list[i], text, sizeof text);
            n += strcmp(text, wanted[w]) == 0;
        }
        if (!CHECK_EQ_INT(n, 1)) printf("  %s\n", wanted[w]);
    }
    free(found);
}

/* An axis whose last factor goes away goes itself, with its rules. */
static void test_an_axis_goes_with_its_rules(void)
{
    const weft_choice from =
        choice_of("data:2,model:2", "batch:data,seq:data+model,hidden:model", 0, 4);
    search_neighbours *found = find(&from);
    int n = 0;
    for (int i = 0; i < found->n; i++) {
        const weft_choice *choice = &found->list[i];
        n += strcmp(choice->mesh, "data:4") == 0 &&
             strcmp(choice->layout, "batch:data,seq:data") == 0;
        n += strcmp(choice->mesh, "model:4") == 0 &&
             strcmp(choice->layout, "seq:model,hidden:model") == 0;
    }
    CHECK_EQ_INT(n, 2);
    free(found);
}

static void test_flags_are_turned_back(void)
{
    char text[800];
    weft_choice from = start(0), to = from;
    from.values[0] = 1;
    weft_neighbours_tell(&from, &to, text, sizeof text);
    CHECK(strcmp(text, "--no-recompute") == 0);
    to.layout[0] = '\0';
    weft_neighbours_tell(&from, &to, text, sizeof text);
    CHECK(strcmp(text, "--layout \"\" --no-recompute") == 0);
}

/* A text is read and written as it is; one that is none, or too large, is refused. */
static void test_forms(void)
{
    static const char *const wrong[][2] = {
        {"data", ""},        {"data:", ""},
        {"data:0", ""},      {"data:2,", ""},
        {"data:x", ""},      {":2", ""},
        {"data:2", "batch"}, {"data:2", "batch:"},
        {"data:2", ":data"}, {"a:1,b:1,c:1,d:1,e:1,f:1,g:1", ""}};
    search_form form;
    for (int s = 0; s < STARTS; s++) {
        weft_choice choice = start(s);
        CHECK(weft_form_read(starts[s].mesh, starts[s].layout, &form));
        CHECK(weft_form_write(&form, &choice));
        CHECK(strcmp(choice.mesh, starts[s].mesh) == 0 &&
              strcmp(choice.layout, starts[s].layout) == 0);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!CHECK(!weft_form_read(wrong[i][0], wrong[i][1], &form) || i == 3))
            printf("  %s %s\n", wrong[i][0], wrong[i][1]);
    char rules[2000] = "";
    for (int r = 0; r <= WEFT_FORM_RULES; r++)
        snprintf(rules + strlen(rules), sizeof rules - strlen(rules), "%sd%d:a", r ? "," : "", r);
    CHECK(!weft_form_read("a:2", rules, &form));
    char name[200];
    memset(name, 'n', sizeof name);
    memcpy(name + 150, ":2", 3);
    CHECK(!weft_form_read(name, "", &form));
}

int main(void)
{
    RUN(test_each_is_good_and_there_once);
    RUN(test_there_and_back);
    RUN(test_each_kind_of_change);
    RUN(test_an_axis_goes_with_its_rules);
    RUN(test_flags_are_turned_back);
    RUN(test_forms);
    return weft_test_report();
}
