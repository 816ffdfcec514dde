/* device_names_test: the CPU is named in its own rooms only: mesh, and ops/kernel/cpu. Everything else finds devices in
 * their table, by the mesh that tensors live on, so that one more device is one more table.
 */
#include <ftw.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const char root[] = WEFT_TEST_DATA "/..";
static const char *const rooms[] = {"autodiff", "collectives", "extend", "io", "layout",
                                    "ops",      "optim",       "apps",   NULL};
static int n_files;

static bool is_source(const char *path)
{
    const char *end = strrchr(path, '.');
    return end != NULL && (strcmp(end, ".c") == 0 || strcmp(end, ".h") == 0);
}

/* Comments tell readers of the CPU where they want; lines of code that begin in a comment do not exist here. */
static bool is_comment(const char *line)
{
    while (isspace((unsigned char)*line))
        line++;
    return strncmp(line, "/*", 2) == 0 || *line == '*';
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* WEFT_CPU, weft_x_cpu. */
static bool names_the_cpu(const char *line)
{
    for (const char *at = line; (at = strstr(at, "WEFT_CPU")) != NULL; at++)
        if (!is_word(at[strlen("WEFT_CPU")])) return true;
    for (const char *at = line; (at = strstr(at, "_cpu")) != NULL; at++) {
        const char *begin = at;
        while (begin > line && is_word(begin[-1]))
            begin--;
        if (!is_word(at[strlen("_cpu")]) && strncmp(begin, "weft_", 5) == 0) return true;
    }
    return false;
}

static int look(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    char line[1000];
    (void)facts, (void)place;
    if (kind != FTW_F || !is_source(path) || strstr(path, "/ops/kernel/cpu/") != NULL) return 0;
    FILE *file = fopen(path, "r");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return 0;
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        char text[1200];
        snprintf(text, sizeof text, "%s:%d names the CPU", path, number);
        weft_test_check(is_comment(line) || !names_the_cpu(line), __FILE__, __LINE__, text);
    }
    fclose(file);
    n_files++;
    return 0;
}

static void test_the_cpu_is_named_in_its_own_rooms_only(void)
{
    for (int r = 0; rooms[r] != NULL; r++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/%s", root, rooms[r]);
        CHECK_EQ_INT(nftw(path, look, 16, FTW_PHYS), 0);
    }
    CHECK(n_files > 200);
}

static void test_what_names_it_is_seen(void)
{
    CHECK(names_the_cpu("    weft_devices[WEFT_CPU]->take(bytes);"));
    CHECK(names_the_cpu("void weft_slice_cpu(const weft_call *call);"));
    CHECK(!names_the_cpu("    WEFT_CPUS, my_cpu, weft_cpu_of"));
    CHECK(is_comment(" * WEFT_CPU") && is_comment("/* WEFT_CPU */") &&
          !is_comment("  x = WEFT_CPU"));
}

int main(void)
{
    RUN(test_what_names_it_is_seen);
    RUN(test_the_cpu_is_named_in_its_own_rooms_only);
    return weft_test_report();
}
