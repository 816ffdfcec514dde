/* metrics: a line a step, appended and handed to the system at once, so that a run which dies has all before it. */
#include "metrics.h"

#include <errno.h>
#include <string.h>

weft_status app_open_file(const char *path, const char *mode, FILE **file, weft_error *error)
{
    *file = fopen(path, mode);
    if (*file) return WEFT_OK;
    return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO,
                     "cannot write %s: %s; name another place with --run DIR or --metrics FILE",
                     path, strerror(errno));
}

weft_status app_close_file(FILE **file, const char *what, weft_error *error)
{
    FILE *f = *file;
    *file = NULL;
    if (!f) return WEFT_OK;
    const int failed = ferror(f);
    if (fclose(f) == 0 && !failed) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write %s to its end: %s", what, strerror(errno));
}

weft_status app_metrics_open(app_metrics *metrics, const settings *s, weft_error *error)
{
    enum { MAX_PATH = 4096 };
    const char *named = settings_text(s, "metrics");
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%.4000s/metrics.jsonl", settings_text(s, "run"));
    return app_open_file(*named ? named : path, "ae", &metrics->file, error);
}

json_t *app_metrics_line(int64_t step)
{
    return json_pack("{s:I}", "step", (json_int_t)step);
}

weft_status app_metrics_write(app_metrics *metrics, int64_t step, json_t *line, weft_error *error)
{
    if (!line) return weft_fail_memory(error, 0);
    app_board_line(metrics->board, step, line);
    const int failed = json_dumpf(line, metrics->file, JSON_COMPACT | JSON_PRESERVE_ORDER) != 0;
    json_decref(line);
    WEFT_TRY(app_json_status(error));
    if (!failed && fputc('\n', metrics->file) != EOF && fflush(metrics->file) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write the metrics of step %lld: %s", (long long)step,
                     strerror(errno));
}

weft_status app_metrics_close(app_metrics *metrics, weft_error *error)
{
    return app_close_file(&metrics->file, "the metrics", error);
}
