/* told: what a chain says of itself: what each source and stage says, and the digest of all of it.
 *
 * A manifest has room for so much. Facts without room are counted and hashed. So two chains say the same only if they are the same,
 * however many files they have.
 */
#include "chain.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a manifest's room, so that there is some left for what a program says. */
enum { LONGEST_VALUE = 300, ALL_VALUES = 640 };

enum { LONGEST_RUN = 4096, LONGEST_NAME = 200 };

typedef struct telling {
    char *facts;
    size_t used;
    int n_more; /* facts that had no room */
    weft_hashing more;
    weft_error *error;
} telling;

static weft_status put(telling *t, const char *name, const char *said)
{
    char value[LONGEST_VALUE];
    weft_facts_shorten(said, value, sizeof value);
    const size_t bytes = strlen(name) + strlen(value) + strlen("; : ");
    if (t->used + bytes <= ALL_VALUES) {
        t->used += bytes;
        return weft_facts_set(&t->facts, name, value, t->error);
    }
    t->n_more++;
    weft_hash_add(&t->more, name, strlen(name) + 1);
    weft_hash_add(&t->more, said, strlen(said) + 1);
    return WEFT_OK;
}

/* Where a run of stages begins: at a source, or where several chains come together. */
static const weft_chain *begin_of(const weft_chain *chain, int *n_stages)
{
    for (*n_stages = 0; chain->n_operands == 1; (*n_stages)++)
        chain = chain->operands[0];
    return chain;
}

/* "csv: 120 bytes (hash ...), then shuffle seed 7, block 0": of a source what it says, of a stage its name and setting. */
static void print_run(const weft_chain *chain, char *text, size_t bytes)
{
    int n;
    const weft_chain *begin = begin_of(chain, &n);
    size_t used = (size_t)snprintf(
        text, bytes, "%s%s%s", begin->facts ? begin->facts : begin->kind->name,
        begin->setting && *begin->setting ? " " : "", begin->setting ? begin->setting : "");
    for (; n > 0; n--) {
        const weft_chain *stage = chain;
        for (int above = 1; above < n; above++)
            stage = stage->operands[0];
        if (used < bytes && !stage->kind->is_same)
            used += (size_t)snprintf(text + used, bytes - used, ", then %s%s%s", stage->kind->name,
                                     *stage->setting ? " " : "", stage->setting);
    }
}

/* data, and where chains come together data.1, data.2, ...: so another file changes one fact, and not the names of all behind it. */
static weft_status tell(telling *t, const weft_chain *chain, const char *name)
{
    char text[LONGEST_RUN], below[LONGEST_NAME];
    int n_stages;
    print_run(chain, text, sizeof text);
    WEFT_TRY(put(t, name, text));
    const weft_chain *begin = begin_of(chain, &n_stages);
    for (int i = 0; i < begin->n_operands; i++) {
        snprintf(below, sizeof below, "%.180s.%d", name, i + 1);
        WEFT_TRY(tell(t, begin->operands[i], below));
    }
    return WEFT_OK;
}

static weft_status tell_rest(telling *t, const weft_chain *chain)
{
    char digits[WEFT_HASH_DIGITS + 1], text[WEFT_HASH_DIGITS + 60];
    if (t->n_more > 0) {
        const weft_hash more = weft_hash_end(&t->more);
        weft_hash_print(&more, digits);
        snprintf(text, sizeof text, "%d of these (hash %s)", t->n_more, digits);
        WEFT_TRY(weft_facts_set(&t->facts, "more", text, t->error));
    }
    const weft_hash hash = weft_chain_digest(chain);
    weft_hash_print(&hash, digits);
    return weft_facts_set(&t->facts, "chain", digits, t->error);
}

weft_status weft_chain_tell(const weft_chain *chain, char **facts, weft_error *error)
{
    telling t = {.error = error};
    weft_hash_begin(&t.more);
    weft_status status = tell(&t, chain, "data");
    if (status == WEFT_OK) status = tell_rest(&t, chain);
    if (status == WEFT_OK) *facts = t.facts;
    if (status != WEFT_OK) free(t.facts);
    return status;
}
