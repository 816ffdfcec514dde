/* damage.h: a file of a run that is damaged on purpose. */
#ifndef WEFT_TESTS_DAMAGE_H
#define WEFT_TESTS_DAMAGE_H

#include <stdio.h>

#include "test.h"

/* Change a byte in the middle of a file. */
static inline void damage_middle(const char *path)
{
    FILE *file = fopen(path, "r+b");
    if (!CHECK(file != NULL)) return;
    fseek(file, 0, SEEK_END);
    const long middle = ftell(file) / 2;
    fseek(file, middle, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, middle, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

#endif
