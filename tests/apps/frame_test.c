/* frame_test: what weft top shows of a hundred ranks: every rank is in one line, the rank that others wait for comes first, and any terminal has
 * room; steps and times make rates.
 */
#include "apps/weft/top/frame.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "recorder.h"

enum { RANKS = 100, LATE = 37 };
static const weft_call_facts reduce_8 = {
    .kind = WEFT_CALL_ALL_REDUCE, .combine = 1, .root = -1, .count = 8};
static char folder[] = "/tmp/weft-frame-XXXXXX";

/* All but one wait in their second call. */
static bool open_ranks(void)
{
    weft_error error = {.rank = -1};
    for (int rank = 0; rank < RANKS; rank++) {
        weft_recorder *r = weft_recorder_of(rank);
        if (!CHECK(r != NULL)) return false;
        const int channel = weft_recorder_channel(r, 1, 0, RANKS, "data");
        const weft_call_mark first = weft_recorder_begin(r, channel, &reduce_8);
        weft_recorder_end(r, &first);
        weft_recorder_run(r, 10);
        if (rank == LATE) continue;
        const weft_call_mark second = weft_recorder_begin(r, channel, &reduce_8);
        weft_recorder_wait(r, &second);
    }
    weft_watch_work(200, 64, "tokens");
    return CHECK_OK(weft_recorders_keep(folder, &error), error);
}

static char *printed(frame *f, int columns, int lines)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!CHECK(out != NULL)) exit(1);
    frame_print(f, &(frame_size){columns, lines}, out);
    fclose(out);
    return text;
}

/* Lines and columns of a frame; a letter of several bytes is one column. */
static void check_fits(const char *text, int columns, int lines)
{
    int n = 0, column = 0;
    for (; *text; text++) {
        column = *text == '\n' ? 0 : column + (((unsigned char)*text & 0xc0) != 0x80);
        n += *text == '\n';
        CHECK(column <= columns);
    }
    CHECK(n <= lines);
}

static void test_any_terminal_has_room(void)
{
    weft_live *live = NULL;
    weft_error error = {.rank = -1};
    CHECK_OK(weft_live_open(folder, &live, &error), error);
    frame *f = frame_create(live, "runs/x");
    frame_look(f);
    for (int lines = 0; lines < 130; lines++)
        for (int columns = 1; columns < 130; columns += 16) {
            char *text = printed(f, columns, lines);
            check_fits(text, columns, lines);
            free(text);
        }
    frame_destroy(&f);
    weft_live_close(&live);
}

/* Of lines such as "   32-39  ...": each rank once. */
static void check_ranks(const char *text, const char *first)
{
    int seen[RANKS] = {0};
    const char *line = strstr(text, "doing\n");
    if (!CHECK(line != NULL)) return;
    line += strlen("doing\n");
    CHECK(strncmp(line + strspn(line, " "), first, strlen(first)) == 0);
    while (*line) {
        int from, to;
        const int got = sscanf(line, "%d-%d", &from, &to);
        if (!CHECK(got >= 1)) return;
        for (int rank = from; rank <= (got == 2 ? to : from); rank++)
            seen[rank]++;
        line += strcspn(line, "\n") + 1;
    }
    for (int rank = 0; rank < RANKS; rank++)
        CHECK_EQ_INT(seen[rank], 1);
}

static void test_every_rank_is_in_one_line(void)
{
    weft_live *live = NULL;
    weft_error error = {.rank = -1};
    CHECK_OK(weft_live_open(folder, &live, &error), error);
    frame *f = frame_create(live, "runs/x");
    frame_look(f);
    char *text = printed(f, 80, 24);
    check_ranks(text, "35-39 ");
    CHECK_TEXT(text, "99 wait for it: ");
    CHECK_TEXT(text, "waits for 37: in all_reduce");
    CHECK_TEXT(text, "step 10 of 200, 100 ranks");
    free(text);
    text = printed(f, 80, 104);
    check_ranks(text, "37 ");
    free(text);
    frame_destroy(&f);
    CHECK(f == NULL);
    weft_live_close(&live);
}

/* A run more in a second look: seconds of a step, and items in them. */
static void test_steps_make_rates(void)
{
    weft_live *live = NULL;
    weft_error error = {.rank = -1};
    CHECK_OK(weft_live_open(folder, &live, &error), error);
    frame *f = frame_create(live, "runs/x");
    frame_look(f);
    double begun[RANKS], most = 0;
    for (int rank = 0; rank < RANKS; rank++)
        begun[rank] = weft_live_rank_at(live, rank)->begun;
    for (int rank = 0; rank < RANKS; rank++)
        weft_recorder_run(weft_recorder_of(rank), 12);
    frame_look(f);
    for (int rank = 0; rank < RANKS; rank++)
        most = fmax(most, (weft_live_rank_at(live, rank)->begun - begun[rank]) / 2);
    json_t *all = frame_json(f);
    const double seconds = json_number_value(json_object_get(all, "step_seconds"));
    CHECK(most > 0 && fabs(seconds - most) < 1e-9);
    CHECK(fabs(json_number_value(json_object_get(all, "items_per_s")) * seconds - 64) < 1e-6);
    CHECK_EQ_INT(json_integer_value(json_object_get(all, "step")), 12);
    CHECK_EQ_INT(json_array_size(json_object_get(all, "ranks")), RANKS);
    json_decref(all);
    frame_destroy(&f);
    weft_live_close(&live);
}

int main(void)
{
    char line[64];
    if (mkdtemp(folder) == NULL) return 1;
    if (open_ranks()) {
        RUN(test_any_terminal_has_room);
        RUN(test_every_rank_is_in_one_line);
        RUN(test_steps_make_rates);
    }
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(system(line), 0);
    return weft_test_report();
}
