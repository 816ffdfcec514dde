/* device_names_test: the CPU is named in its own rooms only: mesh, and ops/kernel/cpu. Everything else finds devices in
 * their table, by the mesh that tensors live on, so that one more device is one more table.
 */
#include "source_lines.h"

#include <ctype.h>

static const char *const rooms[] = {"autodiff", "collectives", "extend", "io", "layout",
                                    "ops",      "optim",       "apps",   NULL};

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

static bool names_it_in_code(const char *line)
{
    return !is_comment(line) && names_the_cpu(line);
}

static bool is_of_the_cpu(const char *path)
{
    return strstr(path, "/ops/kernel/cpu/") != NULL;
}

static void test_the_cpu_is_named_in_its_own_rooms_only(void)
{
    check_sources(&(source_rule){rooms, is_of_the_cpu, names_it_in_code, "names the CPU"});
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
