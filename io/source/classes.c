/* classes: files of classes, each in the folder of its class. Paths are sorted, so files of one folder are neighbours, but "a-b/1" comes
 * before "a/1": the names of folders are sorted by themselves.
 */
#include "classes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of a path up to the slash before its last name; 0: there is none. */
static size_t folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

/* The folder that was named, which tells nothing about its files: its bytes; -1: every folder was left open. */
static int64_t named_folder(const char *pattern)
{
    struct stat facts;
    size_t n = strlen(pattern);
    if (stat(pattern, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        while (n > 0 && pattern[n - 1] == '/')
            n--;
        return (int64_t)n;
    }
    n = folder_of(pattern);
    for (size_t i = 0; i < n; i++)
        if (strchr("*?[", pattern[i]) != NULL) return -1;
    return (int64_t)n;
}

static bool are_all_inside(const weft_paths *paths, int64_t named)
{
    for (int i = 0; i < paths->n; i++)
        if (folder_of(paths->paths[i]) == 0 || (int64_t)folder_of(paths->paths[i]) == named)
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The last name of each path's folder, one behind the other. */
static void take_names(const weft_paths *paths, weft_classes *c)
{
    char *to = c->text;
    for (int i = 0; i < paths->n; i++) {
        const char *path = paths->paths[i];
        const size_t n = folder_of(path);
        size_t begin = n;
        while (begin > 0 && path[begin - 1] != '/')
            begin--;
        memcpy(to, path + begin, n - begin);
        to[n - begin] = '\0';
        c->names[i] = to;
        to += n - begin + 1;
    }
}

static int find(const weft_classes *c, const char *name)
{
    const char **found = bsearch(&name, c->names, (size_t)c->n, sizeof *c->names, by_name);
    return (int)(found - c->names);
}

static weft_status number(const weft_paths *paths, weft_classes *c, weft_error *error)
{
    const size_t n = (size_t)paths->n;
    const char **own = malloc(n * sizeof *own); /* the name of each file's */
    if (own == NULL) return weft_fail_memory(error, n * sizeof *own);
    memcpy(own, c->names, n * sizeof *own);
    qsort(c->names, n, sizeof *c->names, by_name);
    for (size_t i = 0; i < n; i++)
        if (c->n == 0 || strcmp(c->names[c->n - 1], c->names[i]) != 0)
            c->names[c->n++] = c->names[i];
    for (size_t i = 0; i < n; i++)
        c->of[i] = find(c, own[i]);
    free(own);
    return WEFT_OK;
}

weft_status weft_classes_find(const weft_paths *paths, const char *pattern, weft_classes *classes,
                              weft_error *error)
{
    const size_t n = paths->n > 0 ? (size_t)paths->n : 0;
    size_t bytes = 0;
    *classes = (weft_classes){.n = 0};
    if (n == 0 || !are_all_inside(paths, named_folder(pattern))) return WEFT_OK;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(paths->paths[i]) + 1;
    classes->names = calloc(n, sizeof *classes->names);
    classes->of = calloc(n, sizeof *classes->of);
    classes->text = malloc(bytes);
    if (classes->names == NULL || classes->of == NULL || classes->text == NULL)
        return weft_fail_memory(error, bytes);
    take_names(paths, classes);
    return number(paths, classes, error);
}

void weft_classes_free(weft_classes *classes)
{
    free(classes->names);
    free(classes->of);
    free(classes->text);
    *classes = (weft_classes){.n = 0};
}
