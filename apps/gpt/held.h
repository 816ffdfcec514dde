/* held.h: the loss of a text that nothing is learned from (--held-out FILE). */
#ifndef WEFT_APPS_GPT_HELD_H
#define WEFT_APPS_GPT_HELD_H

#include "setup.h"

/* gpt_held_open - the text and a forward program over the variables that are trained; nothing where there is no --held-out.
 * Collective over the job; agrees on failure. */
weft_status gpt_held_open(gpt_setup *setup, weft_error *error);
/* gpt_held_is_due - whether it is measured after a step: the last one, and each of --look-every. Local. */
bool gpt_held_is_due(const gpt_setup *setup, int64_t step);
/* gpt_held_loss - the mean loss of its windows, the same ones each time, without dropout. Collective over the mesh. */
weft_status gpt_held_loss(gpt_setup *setup, double *loss, weft_error *error);
void gpt_held_close(gpt_setup *setup);

#endif
