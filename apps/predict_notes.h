/* predict_notes.h: the machine that a prediction rests on, and kernels that its file lacks. */
#ifndef WEFT_APPS_PREDICT_NOTES_H
#define WEFT_APPS_PREDICT_NOTES_H

#include "weft/research/predict.h"

#include <stdio.h>

/* app_note_machine - one line where the model is of another machine, or of other kernels; runs_here as of
 * weft_machine_model_differs. Local. */
void app_note_machine(const weft_machine_model *model, bool runs_here, FILE *file);

/* app_note_kernels - one line: how many kernels of the program the model has not, which of them takes longest, and what is used
 * instead; nothing where it has all. Local.
 *
 * all  list each of them */
weft_status app_note_kernels(const weft_program *program, const weft_machine_model *model, bool all,
                             FILE *file, weft_error *error);

#endif
