/* comma.h: a locale that the test makes itself: a decimal comma, and letters that are not ASCII's. */
#ifndef WEFT_TEST_COMMA_H
#define WEFT_TEST_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COMMA "de_DE"
static char comma_folder[] = "/tmp/weft-locale-XXXXXX";

/* comma_open - make it, and have this process, and those that it starts, find it. false: it cannot be made here. */
static inline bool comma_open(void)
{
    char line[256], text[16];
    if (mkdtemp(comma_folder) == NULL) return false;
    snprintf(line, sizeof line,
             "localedef -c -i " COMMA " -f ISO-8859-1 %s/" COMMA " >/dev/null 2>&1", comma_folder);
    if (system(line) == -1) return false;
    setenv("LOCPATH", comma_folder, 1);
    const bool is_there = setlocale(LC_ALL, COMMA) != NULL;
    snprintf(text, sizeof text, "%.1f", 0.5);
    const bool is_comma = is_there && text[1] == ',';
    setlocale(LC_ALL, "C");
    return is_comma;
}

static inline void comma_close(void)
{
    char line[64];
    setlocale(LC_ALL, "C");
    snprintf(line, sizeof line, "rm -rf %s", comma_folder);
    if (system(line) == -1) perror("rm");
}

/* comma_set - this process's locale: that one, or "C". */
static inline void comma_set(bool is_on)
{
    setlocale(LC_ALL, is_on ? COMMA : "C");
}

#endif
