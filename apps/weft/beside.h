/* beside.h: programs that stand beside this one. */
#ifndef WEFT_APPS_BESIDE_H
#define WEFT_APPS_BESIDE_H

#include <stddef.h>

/* find_program - where `name` is: a name without a slash is of a program beside this one, or else of one in PATH. Local. */
void find_program(const char *name, char *path, size_t room);

#endif
