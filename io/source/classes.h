/* classes.h (private): files of classes: each in the folder of its class, as train/cat/1.jpg. */
#ifndef WEFT_IO_CLASSES_H
#define WEFT_IO_CLASSES_H

#include "paths.h"

typedef struct weft_classes {
    int n;              /* 0: files are of none */
    const char **names; /* [n] of folders, by their bytes */
    int *of;            /* [files] the class of each */
    char *text;         /* of the names */
} weft_classes;

/* weft_classes_find - by folders: where a folder was named, those within; of a pattern those whose names it leaves open.
 * Files beside such folders are of no class, and then none is. Local. weft_classes_free - of any state. */
weft_status weft_classes_find(const weft_paths *paths, const char *pattern, weft_classes *classes,
                              weft_error *error);
void weft_classes_free(weft_classes *classes);

#endif
