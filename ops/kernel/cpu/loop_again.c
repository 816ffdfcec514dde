/* loop_again.c: a prepared loop at other addresses.
 *
 * A prepared loop names operands and results by refs, and has their addresses in no other place. Addresses decide two things
 * alone: which results share an operand's memory, and which are not there. Where these are the same, so is all else.
 */
#include "cpu/loop_prepared.h"

static bool is_alike(bool is_there, const void *now)
{
    return is_there == (now != NULL);
}

/* A result lies where an operand does in one of them as in the other. Nothing else meets. */
static bool shares_alike(const weft_space *like, const weft_space *s, int o)
{
    if (!is_alike(like->out[o] != NULL, s->out[o])) return false;
    for (int k = 0; k < s->n_in; k++) {
        const bool shares = weft_space_shares(s, o, k);
        if (shares != weft_space_shares(like, o, k) || (shares && s->out[o] != s->data[k]))
            return false;
    }
    for (int p = 0; p < o; p++)
        if (!(s->is_apart != NULL && s->is_apart[o] && s->is_apart[p]) &&
            weft_spans_meet(s->out[o], s->out_bytes[o], s->out[p], s->out_bytes[p]))
            return false;
    return true;
}

static bool is_alike_in_memory(const weft_space *like, const weft_space *s)
{
    for (int k = 0; k < s->n_in; k++)
        if (!is_alike(like->data[k] != NULL, s->data[k])) return false;
    for (int o = 0; o < s->n_out; o++)
        if (!shares_alike(like, s, o)) return false;
    return true;
}

static weft_status move_refs(weft_space *s, weft_arena *arena, weft_error *error)
{
    const size_t bytes = (size_t)s->n_refs * sizeof *s->refs;
    s->refs = weft_arena_copy(arena, s->refs, bytes);
    if (!s->refs) return weft_fail_memory(error, bytes);
    for (int r = 1; r < s->n_refs; r++) {
        weft_ref *ref = &s->refs[r];
        if (ref->of > 0) ref->data = (char *)(uintptr_t)s->data[ref->of - 1];
        if (ref->of < 0) ref->data = s->out[-ref->of - 1];
    }
    return WEFT_OK;
}

weft_status weft_loop_again(const weft_prepared_loop *like, const void *const *in, void *const *out,
                            weft_arena *arena, const weft_prepared_loop **again, weft_error *error)
{
    const size_t bytes = (size_t)like->n_spaces * sizeof *like->spaces;
    *again = NULL;
    weft_prepared_loop *p = weft_arena_copy(arena, like, sizeof *p);
    weft_space *spaces = weft_arena_copy(arena, like->spaces, bytes);
    if (!p || !spaces) return weft_fail_memory(error, bytes);
    p->spaces = spaces;
    for (int i = 0; i < p->n_spaces; i++) {
        weft_space *s = &spaces[i];
        s->data = (const char **)(uintptr_t)(in + (size_t)i * (size_t)s->n_in);
        s->out = (char *const *)(out + (size_t)i * (size_t)s->n_out);
        if (!is_alike_in_memory(&like->spaces[i], s)) return WEFT_OK;
        WEFT_TRY(move_refs(s, arena, error));
    }
    *again = p;
    return WEFT_OK;
}
