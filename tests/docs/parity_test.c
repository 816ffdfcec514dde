/* parity_test: docs/parity.md names tests that are there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static char *read_page(void)
{
    static char text[1 << 16];
    FILE *file = fopen(WEFT_TEST_DATA "/../docs/parity.md", "r");
    if (!CHECK(file != NULL)) return NULL;
    const size_t n = fread(text, 1, sizeof text - 1, file);
    CHECK(n > 0 && n < sizeof text - 1);
    fclose(file);
    text[n] = '\0';
    return text;
}

static void check_name(const char *name, size_t n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%.*s_test.c", WEFT_TEST_DATA, (int)n, name);
    weft_test_check(access(path, R_OK) == 0, __FILE__, __LINE__, path);
}

/* A test's name is in backquotes, of lower case with one stroke. */
static void test_named_tests_are_there(void)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    char *page = read_page();
    int n_named = 0;
    for (const char *at = page; at != NULL && (at = strchr(at, '`')) != NULL;) {
        const char *name = ++at, *end = strchr(name, '`');
        if (end == NULL) break;
        const size_t n = (size_t)(end - name), room = strspn(name, letters);
        if (room < n && name[room] == '/' && room + 1 + strspn(name + room + 1, letters) == n) {
            check_name(name, n);
            n_named++;
        }
        at = end + 1;
    }
    CHECK(n_named > 100);
}

int main(void)
{
    RUN(test_named_tests_are_there);
    return weft_test_report();
}
