/* rings: the files into which ranks have written what their steps did. */
#include "rings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tracing.h"

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static weft_status add_number(rings *r, int number, weft_error *error)
{
    int *numbers = realloc(r->numbers, (r->n + 1) * sizeof *numbers);
    if (!numbers) return weft_fail_memory(error, sizeof *numbers);
    numbers[r->n++] = number;
    r->numbers = numbers;
    return WEFT_OK;
}

weft_status rings_find(rings *r, const char *run, weft_error *error)
{
    weft_status status = WEFT_OK;
    app_trace_folder(run, r->folder, sizeof r->folder);
    DIR *listing = opendir(r->folder);
    if (!listing && errno != ENOENT && errno != ENOTDIR)
        return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot list %.300s: %s",
                         r->folder, strerror(errno));
    for (struct dirent *entry;
         listing && status == WEFT_OK && (entry = readdir(listing)) != NULL;) {
        int number, end = 0;
        if (sscanf(entry->d_name, "rank_%d.ring%n", &number, &end) == 1 && end > 0 &&
            entry->d_name[end] == '\0')
            status = add_number(r, number, error);
    }
    if (listing) closedir(listing);
    if (r->n > 0) qsort(r->numbers, r->n, sizeof *r->numbers, by_number);
    return status;
}

static weft_status make_room(rings *r, weft_error *error)
{
    if (r->traced || r->n == 0) return WEFT_OK;
    r->traced = calloc(r->n, sizeof *r->traced);
    return r->traced ? WEFT_OK : weft_fail_memory(error, r->n * sizeof *r->traced);
}

weft_status rings_open_next(rings *r, weft_error *error)
{
    char path[sizeof r->folder + 32];
    const size_t i = r->n_open;
    WEFT_TRY(make_room(r, error));
    snprintf(path, sizeof path, "%s/rank_%05d.ring", r->folder, r->numbers[i]);
    WEFT_TRY(weft_traced_open(path, &r->traced[i], error));
    r->n_open++;
    if (r->traced[i]->rank == r->numbers[i]) return WEFT_OK;
    return weft_fail(error, WEFT_CORRUPT,
                     "%.300s is the trace of rank %d, not %d; put each under its own name", path,
                     r->traced[i]->rank, r->numbers[i]);
}

void rings_close(rings *r)
{
    for (size_t i = 0; i < r->n_open; i++)
        weft_traced_close(&r->traced[i]);
    free(r->traced);
    free(r->numbers);
    *r = (rings){.n = 0};
}
