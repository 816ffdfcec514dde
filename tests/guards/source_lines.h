/* source_lines.h: every line of the rooms' sources is looked at, for what may stand in some of them alone. */
#ifndef WEFT_TEST_SOURCE_LINES_H
#define WEFT_TEST_SOURCE_LINES_H

#include <ftw.h>
#include <string.h>

#include "test.h"

typedef struct source_rule {
    const char *const *rooms;            /* folders of the project, ended by NULL */
    bool (*is_exempt)(const char *path); /* files that may have it */
    bool (*is_wrong)(const char *line);
    const char *what; /* "names the CPU" */
} source_rule;

static const source_rule *source_rule_now;
static int n_sources_seen;

static inline bool source_is_c(const char *path)
{
    const char *end = strrchr(path, '.');
    return end != NULL && (strcmp(end, ".c") == 0 || strcmp(end, ".h") == 0);
}

static inline int source_look(const char *path, const struct stat *facts, int kind,
                              struct FTW *place)
{
    char line[1000];
    (void)facts, (void)place;
    if (kind != FTW_F || !source_is_c(path) || source_rule_now->is_exempt(path)) return 0;
    FILE *file = fopen(path, "r");
    if (!weft_test_check(file != NULL, __FILE__, __LINE__, path)) return 0;
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        char text[1200];
        snprintf(text, sizeof text, "%s:%d %s", path, number, source_rule_now->what);
        weft_test_check(!source_rule_now->is_wrong(line), __FILE__, __LINE__, text);
    }
    fclose(file);
    n_sources_seen++;
    return 0;
}

/* A check for each line of each file; and there have to be many files. */
static inline void check_sources(const source_rule *rule)
{
    source_rule_now = rule;
    n_sources_seen = 0;
    for (int r = 0; rule->rooms[r] != NULL; r++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/../%s", WEFT_TEST_DATA, rule->rooms[r]);
        CHECK_EQ_INT(nftw(path, source_look, 16, FTW_PHYS), 0);
    }
    CHECK(n_sources_seen > 200);
}

#endif
