/* neighbours.h (private): choices that differ from another one in one thing. */
#ifndef WEFT_SEARCH_NEIGHBOURS_H
#define WEFT_SEARCH_NEIGHBOURS_H

#include "form.h"

enum { WEFT_NEIGHBOURS = 256 };

typedef struct search_neighbours {
    int n;
    weft_choice
        list[WEFT_NEIGHBOURS]; /* [n] each once, and none is the one they are neighbours of */
} search_neighbours;

/* weft_neighbours_find - in an order that depends on the choice alone.
 *
 * dims  [n_dims] names that a rule may be about. Local; pure. */
void weft_neighbours_find(const weft_search_options *options, const weft_choice *from,
                          const char *const *dims, int n_dims, search_neighbours *neighbours);
/* The options of `to` that are not those of `from`, as a command line has them. Local; pure. */
void weft_neighbours_tell(const weft_choice *from, const weft_choice *to, char *text, size_t room);

#endif
