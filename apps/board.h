/* board.h: --tensorboard: what a training writes for TensorBoard: the numbers of each step, what was asked for, and the plan as a graph.
 *
 *     WEFT_TRY(app_board_open(&board, settings, &of, first, error));
 *     ... for each step, between weft_dataset_next and weft_run:
 *     WEFT_TRY(app_board_before(&board, step, error));
 *     ... and after it:
 *     app_board_line(&board, step, line);
 *     app_board_close(&board);
 *
 * The root writes. A disk that is full later ends the writing with one sentence, and not the training.
 */
#ifndef WEFT_APPS_BOARD_H
#define WEFT_APPS_BOARD_H

#include <jansson.h>

#include "events.h"
#include "histograms.h"
#include "options.h"

#define APP_BOARD_OPTIONS(group)                                                                   \
    {"tensorboard",                                                                                \
     OPTION_TEXT,                                                                                  \
     "",                                                                                           \
     "DIR",                                                                                        \
     group,                                                                                        \
     "write events for TensorBoard there: numbers of each step, settings, the plan as a graph"},   \
    {                                                                                              \
        "histograms", OPTION_COUNT, "0", "N", group,                                               \
            "with --tensorboard: steps between histograms of variables and gradients; 0: none"     \
    }

typedef struct app_board {
    events *
        events; /* NULL: nothing is written: it is not asked for, or not the root's, or the disk is full */
    histograms *histograms; /* NULL: none */
    int64_t every;          /* steps between two */
} app_board;

/* app_board_check - whether --histograms comes with --tensorboard. Local. */
weft_status app_board_check(const settings *s, weft_error *error);
/* app_board_is_wanted - whether --tensorboard names a folder. Local; pure. */
bool app_board_is_wanted(const settings *s);
/* app_board_open - the file, with the command, layout and plan; the program of histograms. Collective over the job.
 *
 * first  the step that the run goes on from; 0: a new one */
weft_status app_board_open(app_board *board, const settings *s, const histograms_of *of,
                           int64_t first, weft_error *error);
/* app_board_before - where histograms are due at this step: of the variables as it finds them, and of its gradients. Collective over the
 * mesh, all ranks with the same step. */
weft_status app_board_before(app_board *board, int64_t step, weft_error *error);
/* app_board_line - the numbers of a line of metrics, each by its name; null is no number. Local; board may be NULL. */
void app_board_line(app_board *board, int64_t step, const json_t *line);
void app_board_close(app_board *board);

#endif
