/* hold: keep a program's variables as they are until somebody has read them, while it goes on. */
#include "hold.h"

#include "program.h"

/* Programs may share variables, so what holds one holds all that it takes variables from. */
void weft_hold_start(weft_hold *hold, weft_program *program)
{
    hold->program = program;
    for (weft_program *p = program; p; p = p->share) {
        if (p->hold) {
            p->hold->wait(p->hold);
            weft_hold_end(p->hold);
        }
        p->hold = hold;
    }
}

void weft_hold_end(weft_hold *hold)
{
    for (weft_program *p = hold->program; p; p = p->share)
        if (p->hold == hold) p->hold = NULL;
    hold->program = NULL;
}

void weft_hold_wait(const weft_program *program)
{
    for (const weft_program *p = program; p; p = p->share)
        if (p->hold) p->hold->wait(p->hold);
}
