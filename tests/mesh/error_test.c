/* error_test: the first failure stays; the nearest name is near. */
#include "weft/error.h"

#include "test.h"

static void test_first_error_stays(void)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_fail(&error, WEFT_USAGE, "axis %s", "data"), WEFT_USAGE);
    CHECK_EQ_INT(weft_fail(&error, WEFT_IO, "later"), WEFT_IO);
    CHECK_EQ_INT(error.status, WEFT_USAGE);
    CHECK_EQ_INT(error.rank, -1);
    CHECK(strcmp(error.message, "axis data") == 0);
}

static void test_no_error_to_fill_is_fine(void)
{
    CHECK_EQ_INT(weft_fail(NULL, WEFT_COMM, "lost"), WEFT_COMM);
    CHECK_EQ_INT(weft_fail_memory(NULL, 7), WEFT_MEMORY);
}

static void test_a_long_sentence_is_cut(void)
{
    weft_error error = {0};
    weft_fail(&error, WEFT_USAGE, "%600s", "x");
    CHECK_EQ_INT(strlen(error.message), sizeof error.message - 1);
}

static void test_memory_names_the_bytes(void)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_fail_memory(&error, 123456), WEFT_MEMORY);
    CHECK_TEXT(error.message, "123456 bytes");
}

static const char *const names[] = {"batch", "seq", "embed", "heads", "kv", "hidden", "vocab"};

static bool nearest_is(const char *name, const char *expected)
{
    const char *found = weft_nearest(name, names, 7);
    return expected == NULL ? found == NULL : found != NULL && strcmp(found, expected) == 0;
}

static void test_nearest_finds_typos(void)
{
    CHECK(nearest_is("bacth", "batch"));
    CHECK(nearest_is("hiden", "hidden"));
    CHECK(nearest_is("vocabs", "vocab"));
    CHECK(nearest_is("seq", "seq"));
    CHECK(nearest_is("sqe", "seq"));
}

static void test_nearest_is_silent_when_none_is_near(void)
{
    CHECK(nearest_is("pipeline", NULL));
    CHECK(nearest_is("", NULL));
    CHECK(nearest_is("xy", NULL));
    CHECK(weft_nearest("batch", names, 0) == NULL);
}

static void test_nearest_takes_names_of_any_length(void)
{
    char name[300];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *const known[] = {name};
    CHECK(weft_nearest(name, known, 1) == name);
    CHECK(nearest_is(name, NULL));
}

int main(void)
{
    RUN(test_first_error_stays);
    RUN(test_no_error_to_fill_is_fine);
    RUN(test_a_long_sentence_is_cut);
    RUN(test_memory_names_the_bytes);
    RUN(test_nearest_finds_typos);
    RUN(test_nearest_is_silent_when_none_is_near);
    RUN(test_nearest_takes_names_of_any_length);
    return weft_test_report();
}
