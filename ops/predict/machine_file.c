/* machine_file: a machine model by the name of its file, or by the name of a nominal machine. */
#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20 };

/* Made by the build from machines/: nominal.c. */
extern const struct weft_nominal {
    const char *name, *text;
} weft_nominal_machines[];
extern const int weft_n_nominal_machines;

const char *weft_machine_model_names(int index)
{
    return index >= 0 && index < weft_n_nominal_machines ? weft_nominal_machines[index].name : NULL;
}

static weft_status read_nominal(const char *name, weft_machine_model **model, weft_error *error)
{
    const char *names[64];
    for (int i = 0; i < weft_n_nominal_machines; i++) {
        const struct weft_nominal *nominal = &weft_nominal_machines[i];
        names[i] = nominal->name;
        if (strcmp(name, nominal->name) == 0)
            return weft_machine_model_parse(nominal->text, strlen(nominal->text), name, model,
                                            error);
    }
    const char *nearest = weft_nearest(name, names, weft_n_nominal_machines);
    return weft_fail(error, WEFT_USAGE,
                     "there is no machine \"%.80s\"%s%s%s `weft machine` lists those there are, "
                     "and a file's name has a point or a / in it",
                     name, nearest ? "; did you mean " : "", nearest ? nearest : "",
                     nearest ? "?" : ";");
}

/* Up to so much of a file; what has more is no machine file. */
static weft_status copy_all(FILE *file, FILE *whole, const char *path, weft_error *error)
{
    char piece[4096];
    size_t n, all = 0;
    while (all <= MOST_BYTES && (n = fread(piece, 1, sizeof piece, file)) > 0)
        all += fwrite(piece, 1, n, whole);
    if (ferror(file))
        return weft_fail(error, WEFT_IO, "cannot read the machine file %.200s: %s", path,
                         strerror(errno));
    if (all <= MOST_BYTES) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "the file %.200s is no machine file: it has more than %d MiB, and those that "
                     "`weft calibrate` writes have less than one",
                     path, MOST_BYTES >> 20);
}

static weft_status read_all(const char *path, char **text, size_t *bytes, weft_error *error)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return weft_fail(error, WEFT_IO, "cannot read the machine file %.200s: %s", path,
                         strerror(errno));
    FILE *whole = open_memstream(text, bytes);
    weft_status status =
        whole ? copy_all(file, whole, path, error) : weft_fail_memory(error, sizeof *whole);
    if (whole && fclose(whole) != 0 && status == WEFT_OK) status = weft_fail_memory(error, *bytes);
    fclose(file);
    return status;
}

weft_status weft_machine_model_read(const char *name, weft_machine_model **model, weft_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    WEFT_GIVEN(name, error);
    WEFT_GIVEN(model, error);
    *model = NULL;
    if (!strpbrk(name, "./")) return read_nominal(name, model, error);
    weft_status status = read_all(name, &text, &bytes, error);
    if (status == WEFT_OK) status = weft_machine_model_parse(text, bytes, name, model, error);
    free(text);
    return status;
}
