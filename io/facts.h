/* facts.h (private): what data is, in words: "text: 300000 bytes (hash 5e1f0c2b9a3d4e77); seq: 64". Names before ": ", values behind
 * it, "; " between them. Two texts say the same when each name has the same value in both, in whatever order.
 */
#ifndef WEFT_IO_FACTS_H
#define WEFT_IO_FACTS_H

#include <stdbool.h>

#include "weft/mesh.h"

/* of such a text, with its end; and of one that says besides how the data is read */
enum { WEFT_FACTS_BYTES = 1024, WEFT_FACTS_MOST = WEFT_FACTS_BYTES + 32 };

/* weft_facts_set - say a fact, or another value of it; room for it is made in *facts [WEFT_FACTS_BYTES], NULL before the first. Local.
 * returns WEFT_USAGE for what cannot be written so. */
weft_status weft_facts_set(char **facts, const char *name, const char *value, weft_error *error);
/* weft_facts_check - whether a text is one that a manifest can hold. Local. */
weft_status weft_facts_check(const char *facts, weft_error *error);
/* weft_facts_value - the value of a fact; false: it is not said, or has no room. Local. */
bool weft_facts_value(const char *facts, const char *name, char *value, size_t bytes);
/* weft_facts_shorten - a value that may be too long, or have a "; " in it: so many of its bytes, and where there are more, how many, and
 * a hash of all. text [bytes], of at least 80. Local. */
void weft_facts_shorten(const char *value, char *text, size_t bytes);
/* How a difference is told: "seq was 64 and is 32", "seq is 64 at rank 0 and 32 at rank 1". */
typedef struct weft_facts_words {
    const char *before, *after_first, *between, *after_second;
} weft_facts_words;
/* weft_facts_differ - whether a fact differs: each that does into text, by these words. Local. */
bool weft_facts_differ(const char *first, const char *second, const weft_facts_words *words,
                       char *text, size_t bytes);
/* weft_facts_agree - whether all processes of a mesh say the same, in less than WEFT_FACTS_MOST bytes. Collective over it. returns WEFT_MISMATCH with both on all of them */
weft_status weft_facts_agree(weft_mesh *mesh, const char *facts, weft_error *error);

#endif
