/* paths: the files that a name, a pattern or a folder stands for. They are sorted by their bytes: by no locale, so that all ranks
 * have them in one order. */
#include "paths.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void weft_paths_free(weft_paths *paths)
{
    for (int i = 0; i < paths->n; i++)
        free(paths->paths[i]);
    free(paths->paths);
    *paths = (weft_paths){NULL, 0};
}

static weft_status add(weft_paths *paths, const char *path, weft_error *error)
{
    if ((paths->n & (paths->n - 1)) == 0) { /* room for the next power of two */
        const size_t room = paths->n > 0 ? 2 * (size_t)paths->n : 1;
        char **grown = realloc(paths->paths, room * sizeof *grown);
        if (grown == NULL) return weft_fail_memory(error, room * sizeof *grown);
        paths->paths = grown;
    }
    paths->paths[paths->n] = strdup(path);
    if (paths->paths[paths->n] == NULL) return weft_fail_memory(error, strlen(path));
    paths->n++;
    return WEFT_OK;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Regular files alone, but for a file that was named itself: opening that says what it is. */
static weft_status add_matches(weft_paths *paths, const char *pattern, weft_error *error)
{
    glob_t found = {0};
    const int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    weft_status status = code == GLOB_NOSPACE ? weft_fail_memory(error, 0) : WEFT_OK;
    for (size_t i = 0; code == 0 && i < found.gl_pathc && status == WEFT_OK; i++)
        if (!is_folder(found.gl_pathv[i])) status = add(paths, found.gl_pathv[i], error);
    globfree(&found);
    return status;
}

/* A folder's name may have letters that mean something in patterns. */
static weft_status add_folder(weft_paths *paths, const char *folder, weft_error *error)
{
    static const char *const inner[] = {"/*", "/*/*"};
    char *pattern = malloc(2 * strlen(folder) + sizeof "/*/*");
    weft_status status = WEFT_OK;
    if (pattern == NULL) return weft_fail_memory(error, strlen(folder));
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        char *to = pattern;
        for (const char *c = folder; *c != '\0'; c++) {
            if (strchr("*?[\\", *c) != NULL) *to++ = '\\';
            *to++ = *c;
        }
        while (to > pattern && to[-1] == '/')
            to--;
        strcpy(to, inner[i]);
        status = add_matches(paths, pattern, error);
    }
    free(pattern);
    return status;
}

static weft_status find(const char *pattern, weft_paths *paths, weft_error *error)
{
    struct stat facts;
    if (is_folder(pattern)) return add_folder(paths, pattern, error);
    if (stat(pattern, &facts) == 0 || strpbrk(pattern, "*?[") == NULL)
        return add(paths, pattern, error);
    return add_matches(paths, pattern, error);
}

static void keep_part(weft_paths *paths, int part, int n_parts)
{
    int kept = 0;
    for (int i = 0; i < paths->n; i++)
        if (i % n_parts == part)
            paths->paths[kept++] = paths->paths[i];
        else
            free(paths->paths[i]);
    paths->n = kept;
}

weft_status weft_paths_find(const char *pattern, int part, int n_parts, weft_paths *paths,
                            weft_error *error)
{
    *paths = (weft_paths){NULL, 0};
    WEFT_TRY(find(pattern, paths, error));
    if (paths->n == 0)
        return weft_fail(error, WEFT_IO, "%.300s: %s", pattern,
                         is_folder(pattern)
                             ? "this folder has no file in it or in its folders; name another"
                             : "no file is called so; name files that are there");
    qsort(paths->paths, (size_t)paths->n, sizeof *paths->paths, by_name);
    if (n_parts > paths->n)
        return weft_fail(error, WEFT_USAGE,
                         "%.300s: %d files cannot be split over %d hosts; each needs one at least",
                         pattern, paths->n, n_parts);
    if (n_parts > 0) keep_part(paths, part, n_parts);
    return WEFT_OK;
}
