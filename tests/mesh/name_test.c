/* name_test.c: the one rule for names. */
#include "weft/name.h"

#include <string.h>

#include "test.h"

static void test_names_are_what_layouts_write(void)
{
    static const char *const good[] = {"a", "_", "batch_2", "A1"};
    static const char *const bad[] = {"",    "2a",  "a b",      "a.b", "a'",  "~",
                                      "a/b", "a\n", "\xc3\xa9", "a:b", "a+b", "a,b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_EQ_INT(weft_name_check("dim", good[i], NULL), WEFT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_error error = {0};
        CHECK_EQ_INT(weft_name_check("dim", bad[i], &error), WEFT_USAGE);
        CHECK(strchr(error.message, '\n') == NULL && strncmp(error.message, "dim \"", 5) == 0);
    }
}

static void test_paths_join_names(void)
{
    static const char *const good[] = {"w", "block0.query", "h.0.attn", "w/m", "layer-1:0/kernel"};
    static const char *const bad[] = {"", ".", "w.", "w..b", "/w", "w b", "0w", "w/%", "w\x80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_EQ_INT(weft_path_check("input", good[i], NULL), WEFT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ_INT(weft_path_check("input", bad[i], NULL), WEFT_USAGE);
}

static void test_lengths(void)
{
    char name[WEFT_MAX_PATH + 2];
    weft_error error = {0};
    memset(name, 'n', sizeof name);
    name[WEFT_MAX_NAME] = '\0';
    CHECK_EQ_INT(weft_name_check("dim", name, NULL), WEFT_OK);
    name[WEFT_MAX_NAME] = 'n';
    name[WEFT_MAX_PATH] = '\0';
    CHECK_EQ_INT(weft_name_check("dim", name, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "the longest name has 63 letters; shorten it");
    CHECK_EQ_INT(weft_path_check("input", name, NULL), WEFT_OK);
    name[WEFT_MAX_PATH] = 'n';
    name[WEFT_MAX_PATH + 1] = '\0';
    CHECK_EQ_INT(weft_path_check("input", name, NULL), WEFT_USAGE);
    error = (weft_error){0};
    CHECK_EQ_INT(weft_name_check("dim", NULL, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "dim: it has no name");
    CHECK_EQ_INT(weft_name_length("ab.c"), 2);
    CHECK_EQ_INT(weft_name_length("1ab") + weft_name_length("") + weft_name_length(NULL), 0);
}

int main(void)
{
    RUN(test_names_are_what_layouts_write);
    RUN(test_paths_join_names);
    RUN(test_lengths);
    return weft_test_report();
}
