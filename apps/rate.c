/* rate: --schedule. */
#include "rate.h"
#include "weft/number.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PIECES = 64 };

/* "1000=0.5,2000=0.1"; "" is none. */
static weft_status read_pieces(const char *text, weft_rate_piece pieces[MOST_PIECES], int *n,
                               weft_error *error)
{
    for (const char *at = text; *at != '\0'; at++) {
        char *equals;
        double scale = 0;
        const long long from = strtoll(at, &equals, 10);
        const int length = *equals == '=' ? weft_number_read(equals + 1, &scale) : 0;
        const char *end = equals + 1 + length;
        if (equals == at || length == 0 || (*end != '\0' && *end != ','))
            return weft_fail(error, WEFT_USAGE,
                             "pieces \"%.100s\": \"%.40s\" is no STEP=X; write pieces as "
                             "1000=0.5,2000=0.1",
                             text, at);
        if (*n == MOST_PIECES)
            return weft_fail(error, WEFT_USAGE, "pieces: there are more than %d", MOST_PIECES);
        pieces[(*n)++] = (weft_rate_piece){from, scale};
        at = end;
        if (*at == '\0') return WEFT_OK;
    }
    return WEFT_OK;
}

/* Options that one schedule alone has: of another they would do nothing. */
static weft_status check_own(const settings *s, weft_error *error)
{
    static const char *const own[][2] = {
        {"period", "cosine_restarts"}, {"growth", "cosine_restarts"}, {"pieces", "piecewise"}};
    const char *schedule = settings_text(s, "schedule");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const char *origin = settings_origin(s, own[i][0]);
        const bool is_said = strcmp(origin, "default") != 0 && strcmp(origin, "run.json") != 0;
        if (is_said && strcmp(schedule, own[i][1]) != 0)
            return weft_fail(error, WEFT_USAGE,
                             "%s %.60s and schedule %.40s: only %s has it; give --schedule %s, or "
                             "leave it out",
                             own[i][0], settings_text(s, own[i][0]), schedule, own[i][1],
                             own[i][1]);
    }
    return WEFT_OK;
}

weft_status app_rate(const settings *s, weft_graph *graph, weft_dtype dtype, int64_t last,
                     weft_value *rate, weft_error *error)
{
    weft_rate_piece pieces[MOST_PIECES];
    const char *schedule = settings_text(s, "schedule");
    const double top = settings_real(s, "rate");
    weft_schedule_options options = {
        .rate = top,
        .floor = settings_real(s, "floor") * top,
        .warmup = settings_count(s, "warmup"),
        .period = settings_count(s, "period"),
        .growth = settings_real(s, "growth"),
        .pieces = {pieces, 0},
    };
    options.total = last > options.warmup ? last : options.warmup + 1;
    WEFT_TRY(read_pieces(settings_text(s, "pieces"), pieces, &options.pieces.n_pieces, error));
    WEFT_TRY(weft_schedule_check(schedule, &options, error));
    WEFT_TRY(check_own(s, error));
    *rate = weft_schedule_rate(graph, dtype, schedule, &options);
    return WEFT_OK;
}
