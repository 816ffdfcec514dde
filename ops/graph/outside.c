/* outside.c: ops from outside: which address is which op.
 *
 * Nothing is ever taken out, so readers need no lock: an entry is written before the count that lets them see it.
 */
#include "outside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct entry {
    const weft_op *given;
    weft_op op;
} entry;
static entry entries[WEFT_MAX_OUTSIDE_OPS];
static atomic_int n_entries;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

const weft_op *weft_op_outside(const weft_op *given)
{
    const int n = atomic_load(&n_entries);
    for (int i = 0; i < n; i++)
        if (entries[i].given == given) return &entries[i].op;
    return NULL;
}

const weft_op *weft_op_outside_at(int index)
{
    return index >= 0 && index < atomic_load(&n_entries) ? &entries[index].op : NULL;
}

static weft_status add(const weft_op *given, const weft_op *op, weft_error *error)
{
    const int n = atomic_load(&n_entries);
    for (int i = 0; i < n; i++)
        if (strcmp(entries[i].op.name, op->name) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "op %s was registered before; register it once, or "
                             "give this one another name",
                             op->name);
    if (n == WEFT_MAX_OUTSIDE_OPS)
        return weft_fail(error, WEFT_USAGE,
                         "op %s: there are %d ops from outside already, which is the most",
                         op->name, n);
    entries[n] = (entry){given, *op};
    atomic_store(&n_entries, n + 1);
    return WEFT_OK;
}

weft_status weft_op_outside_add(const weft_op *given, const weft_op *op, weft_error *error)
{
    pthread_mutex_lock(&adding);
    const weft_status status = add(given, op, error);
    pthread_mutex_unlock(&adding);
    return status;
}
