/* programs: where weft-read-files and weft-read-hdf5 are. */
#include "programs.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the library (or program) that this is part of, "" or with a slash at its end. */
static void find_folder(char folder[WEFT_PROGRAM_PATH])
{
    Dl_info here;
    const char *own =
        dladdr((void *)(uintptr_t)find_folder, &here) && here.dli_fname ? here.dli_fname : "";
    const char *slash = strrchr(own, '/');
    snprintf(folder, WEFT_PROGRAM_PATH, "%.*s", slash ? (int)(slash - own + 1) : 0, own);
}

weft_status weft_program_find(const char *name, const char *package, const char *path,
                              const char *need, char program[WEFT_PROGRAM_PATH], weft_error *error)
{
    static const char *const others[] = {"", "../bin/", WEFT_PROGRAMS_FROM_LIBRARY "/"};
    const char *said = getenv("WEFT_FILES_PATH");
    char folder[WEFT_PROGRAM_PATH];
    if (said != NULL && said[0] != '\0') {
        if (snprintf(program, WEFT_PROGRAM_PATH, "%s/%s", said, name) < WEFT_PROGRAM_PATH &&
            access(program, X_OK) == 0)
            return WEFT_OK;
        snprintf(folder, sizeof folder, "%s", said);
    } else {
        find_folder(folder);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (snprintf(program, WEFT_PROGRAM_PATH, "%s%s%s", folder, others[i], name) <
                    WEFT_PROGRAM_PATH &&
                access(program, X_OK) == 0)
                return WEFT_OK;
    }
    return weft_fail(error, WEFT_USAGE,
                     "%.140s is %s, which %s reads, and that is not to be found from %.140s on; "
                     "install the package %s, or name its folder by WEFT_FILES_PATH",
                     path, need, name, folder, package);
}
