/* name: the one rule for names, read by meshes, layouts and graphs. */
#include "weft/name.h"

#include <stdio.h>
#include <string.h>

/* Whatever the locale: names are the same everywhere. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int letters(const char *text)
{
    int n = 0;
    while (is_letter(text[n]) || is_digit(text[n]))
        n++;
    return n;
}

int weft_name_length(const char *text)
{
    return text != NULL && is_letter(*text) ? letters(text) : 0;
}

/* As it may stand in a sentence: foreign bytes, and what ends lines, as dots. */
static void printable(const char *name, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", name);
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '.';
}

static weft_status refuse(const char *what, const char *name, const char *rule, int most,
                          weft_error *error)
{
    char text[80];
    if (error == NULL) return WEFT_USAGE; /* nobody reads the sentence */
    if (name == NULL)
        return weft_fail(error, WEFT_USAGE, "%s: it has no name; everything needs one of its own",
                         what);
    printable(name, text, sizeof text);
    if ((int)strnlen(name, (size_t)most + 1) > most)
        return weft_fail(error, WEFT_USAGE,
                         "%s \"%s...\": the longest name has %d letters; shorten it", what, text,
                         most);
    return weft_fail(error, WEFT_USAGE, "%s \"%s\": %s", what, text, rule);
}

weft_status weft_name_check(const char *what, const char *name, weft_error *error)
{
    const int n = weft_name_length(name);
    if (n > 0 && n <= WEFT_MAX_NAME && name[n] == '\0') return WEFT_OK;
    return refuse(what, name,
                  "a name is letters, digits and _, and does not begin with a digit, so that a "
                  "layout can write it; choose another",
                  WEFT_MAX_NAME, error);
}

weft_status weft_path_check(const char *what, const char *name, weft_error *error)
{
    int at = weft_name_length(name);
    while (at > 0 && name[at] != '\0' && strchr("./-:", name[at]) != NULL) {
        const int n = letters(name + at + 1);
        at = n > 0 ? at + 1 + n : 0;
    }
    if (at > 0 && at <= WEFT_MAX_PATH && name[at] == '\0') return WEFT_OK;
    return refuse(what, name,
                  "a name is letters, digits and _, not beginning with a digit, and parts of it "
                  "may be joined by . / - or :; choose another",
                  WEFT_MAX_PATH, error);
}
