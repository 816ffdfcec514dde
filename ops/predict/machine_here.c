/* machine_here: whether a machine model is of the machine that this process is on. */
#include "machine.h"

#include "weft/version.h"

#include <string.h>

const char *weft_machine_library(void)
{
    static char text[160];
    const weft_machine *here = weft_machine_info();
    if (text[0] == '\0')
        snprintf(text, sizeof text, "weft %s, %s %s", weft_version(), here->blas,
                 here->blas_kernel);
    return text;
}

static int add(char *text, size_t room, int used, const char *format, ...) WEFT_FORMAT(4, 5);

static int add(char *text, size_t room, int used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const size_t at = (size_t)used < room ? (size_t)used : room;
    const int n = vsnprintf(room > at ? text + at : NULL, room - at, format, arguments);
    va_end(arguments);
    return used + (n > 0 ? n : 0);
}

bool weft_machine_model_differs(const weft_machine_model *model, bool runs_here, char *text,
                                size_t room)
{
    const weft_machine *here = weft_machine_info();
    int n = 0;
    if (!text) room = 0;
    if (room > 0) text[0] = '\0';
    if (!model || *model->library == '\0') return false;
    if (runs_here && strcmp(model->processor, here->processor) != 0)
        n = add(text, room, n, "machine %.60s has another processor (%.60s) than this one (%.60s)",
                model->name, model->processor, here->processor);
    else if (runs_here && model->cores != here->n_cores)
        n = add(text, room, n, "machine %.60s has %d cores, and this one %d", model->name,
                model->cores, here->n_cores);
    if (strcmp(model->library, weft_machine_library()) != 0)
        n = add(
            text, room, n, "%s%.60s was measured with the kernels of %.80s, and these are %.80s",
            n ? "; " : "machine ", n ? "it" : model->name, model->library, weft_machine_library());
    if (n == 0) return false;
    add(text, room, n, "; predicted all the same: weft calibrate measures this one");
    return true;
}
