/* save.c: a graph into a file: its head, scans, nodes and outputs, and a digest of all that.
 *
 * The file is made beside its place and renamed: who reads it finds the old one or the new one.
 */
#include "saved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"
#include "text.h"

static weft_status check(const weft_graph *graph, const char *path, const weft_saving *what,
                         weft_error *error)
{
    WEFT_GIVEN(graph, error);
    WEFT_GIVEN(path, error);
    WEFT_GIVEN(what, error);
    if (graph->error.status != WEFT_OK)
        return weft_fail(error, graph->error.status, "%s", graph->error.message);
    if (graph->scan != 0 || graph->part != 0)
        return weft_fail(error, WEFT_USAGE, "graph_save: a %s has not ended; end it before",
                         graph->scan != 0 ? "scan" : "part that is computed again");
    if (what->outputs.n_values < 1 || what->outputs.values == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "graph_save: no outputs; name what is to be read of the program");
    for (int i = 0; i < what->outputs.n_values; i++)
        if (what->outputs.values[i].graph != graph || !weft_is_value(what->outputs.values[i]))
            return weft_fail(error, WEFT_USAGE,
                             "graph_save: output %d is not a value of the graph; pass what its "
                             "builders returned",
                             i);
    return WEFT_OK;
}

static void put_default(const char *what, const char *text, FILE *file)
{
    if (text == NULL) return;
    fprintf(file, "%s ", what);
    weft_saved_put(text, file);
    fputc('\n', file);
}

static void put_head(const weft_graph *graph, const weft_saving *what, FILE *file)
{
    const weft_loss_scaling *s = &graph->loss_scale;
    fprintf(file, "weft program %d\n", WEFT_SAVED_VERSION);
    fprintf(file, "seed %llu\nrandom %u\n", (unsigned long long)graph->seed, graph->n_random);
    put_default("mesh", what->mesh, file);
    put_default("layout", what->layout, file);
    put_default("checkpoint", what->checkpoint, file);
    if (what->is_frozen) fputs("frozen\n", file);
    if (s->scale != 0 && !what->is_frozen)
        fprintf(file, "loss_scale %u %u %u %u %lld %d %u\n", s->scale, s->good, s->updates, s->step,
                (long long)s->growth, s->is_used ? 1 : 0, s->is_finite);
}

static weft_status put_numbered(const weft_graph *graph, const weft_saving *what,
                                const weft_saved_numbers *numbers, FILE *file, weft_error *error)
{
    put_head(graph, what, file);
    weft_saved_put_scans(graph, numbers, file);
    for (uint32_t n = 1; n < graph->n_nodes; n++)
        WEFT_TRY(weft_saved_put_node(graph, n, numbers, file, error));
    for (int i = 0; i < what->outputs.n_values; i++)
        fprintf(file, "output %%%u\n", numbers->values[what->outputs.values[i].id]);
    return WEFT_OK;
}

static weft_status put(const weft_graph *graph, const weft_saving *what, FILE *file,
                       weft_error *error)
{
    weft_saved_numbers numbers = {0};
    weft_status status = weft_saved_number(graph, what, &numbers, error);
    if (status == WEFT_OK) status = put_numbered(graph, what, &numbers, file, error);
    free(numbers.values);
    return status;
}

static weft_status fail_write(const char *path, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "graph_save: %.200s cannot be written: %s", path,
                     strerror(errno));
}

static weft_status write_file(const char *path, const char *beside, const char *text, size_t bytes,
                              weft_error *error)
{
    FILE *file = fopen(beside, "w");
    if (file == NULL) return fail_write(path, error);
    bool is_written = fwrite(text, 1, bytes, file) == bytes;
    is_written = is_written && fprintf(file, "digest %016llx\n",
                                       (unsigned long long)weft_digest(0, text, bytes)) > 0;
    is_written = fflush(file) == 0 && is_written && fsync(fileno(file)) == 0;
    is_written = fclose(file) == 0 && is_written;
    if (is_written && rename(beside, path) == 0) return WEFT_OK;
    const weft_status status = fail_write(path, error);
    (void)unlink(beside);
    return status;
}

weft_status weft_graph_save(const weft_graph *graph, const char *path, const weft_saving *what,
                            weft_error *error)
{
    char *text = NULL, *beside = NULL;
    size_t bytes = 0;
    WEFT_TRY(check(graph, path, what, error));
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL) return weft_fail_memory(error, 1 << 16);
    const locale_t before = weft_text_plain();
    weft_status status = put(graph, what, memory, error);
    weft_text_end(before);
    const bool is_whole = !ferror(memory);
    if ((fclose(memory) != 0 || !is_whole) && status == WEFT_OK)
        status = weft_fail_memory(error, bytes);
    if (status == WEFT_OK && (beside = malloc(strlen(path) + 32)) == NULL)
        status = weft_fail_memory(error, strlen(path) + 32);
    if (status == WEFT_OK) {
        sprintf(beside, "%s.%ld.new", path, (long)getpid());
        status = write_file(path, beside, text, bytes, error);
    }
    free(beside);
    free(text);
    return status;
}
