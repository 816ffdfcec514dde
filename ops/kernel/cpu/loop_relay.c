/* loop_relay.c: which acts on elements become one act over registers. See loop_making.h.
 *
 * An op goes on with the tile of the one before it where that is one of its operands, and the other is a block, or
 * one number of the row, or of each block. The only other use of a value in between is a store. An op with another operand loads it
 * into the tile, once the old value is stored. So all ops of a pass go through a tile before the next one, and slow
 * instructions (a root, a division) overlap with loads and stores. Asking for the next block is done on the way. A
 * relay is worth it from two ops on, or where it saves spreading a number along the row.
 */
#include "cpu/loop_making.h"
#include "cpu/relay.h"

#include <string.h>

enum { LEAST_BLOCK = 256 }; /* elements; shorter blocks have too much rest */

/* ---- numbers of rows, and of blocks ------------------------------------------------------------ */

static bool is_number(const weft_making *m, int slot)
{
    const weft_space *s = m->space;
    if (m->value[slot].op >= 0) return m->value[slot].of_rows;
    return weft_space_blocks_are_even(s, s->stride[slot]);
}

static weft_leg_run leg_of(const weft_making *m, int k, weft_leg_kind kind)
{
    const weft_relay *relay = m->loop->op[k].relay;
    if (relay == NULL || m->block < LEAST_BLOCK || m->resumes[k] ||
        m->loop->op[k].kind != WEFT_LOOP_ELEMENTS)
        return NULL;
    return relay->leg[kind][weft_relay_width_index()];
}

bool weft_making_takes_number(const weft_making *m, int k, int i)
{
    const weft_loop_op *op = &m->loop->op[k];
    if (m->space->rows != 1 || m->space->row == 1 || op->n_in != 2 || !is_number(m, op->in[i]))
        return false;
    if (i == 0 && is_number(m, op->in[1])) return false; /* one of them is the tile */
    return leg_of(m, k, i == 0 ? WEFT_LEG_NUMBER_AND : WEFT_LEG_AND_NUMBER) != NULL;
}

/* ---- legs ------------------------------------------------------------------------------------ */

typedef struct relaying {
    weft_making *making;
    const weft_relay_width *width;
    weft_relay_leg legs[WEFT_MOST_LEGS];
    int n_legs, n_ops;
    bool has_number;
    weft_act last; /* the act of the last op */
} relaying;

static weft_leg_kind kind_of(const weft_act *act, int tile)
{
    static const weft_leg_kind kinds[2][2] = {{WEFT_LEG_AND_BLOCK, WEFT_LEG_AND_NUMBER},
                                              {WEFT_LEG_BLOCK_AND, WEFT_LEG_NUMBER_AND}};
    return act->n_in == 1 ? WEFT_LEG_ALONE : kinds[tile][act->is_number[1 - tile]];
}

/* The leg of an act whose operand number `tile` is the tile; NULL: there is none, as of all acts with three operands. */
static weft_leg_run leg_of_act(const weft_making *m, const weft_act *act, int tile)
{
    const bool has_kind = act->run == weft_act_elements && act->n_in <= 2;
    return has_kind ? leg_of(m, act->number, kind_of(act, tile)) : NULL;
}

static void add_leg(relaying *r, weft_relay_leg leg)
{
    r->legs[r->n_legs++] = leg;
}

static void add_op(relaying *r, const weft_act *act, int tile)
{
    add_leg(r, (weft_relay_leg){.run = leg_of_act(r->making, act, tile),
                                .rest = weft_rest_op,
                                .ref = act->n_in == 1 ? 0 : act->x[1 - tile],
                                .number = act->number,
                                .kind = kind_of(act, tile),
                                .block = act->block});
    r->last = *act;
    r->n_ops++;
    r->has_number |= act->n_in == 2 && act->is_number[1 - tile];
}

/* A line that is written is read first, if it is nobody's operand. Where all elements are gone through once that goes on
 * without end, and the processor sees it coming; it does not where the writing is done row by row. */
static bool is_fetched_to_write(const relaying *r, int ref)
{
    const weft_making *m = r->making;
    if (m->n_passes < 2 || m->space->n_groups * m->space->n_parts < 2) return false;
    for (int o = 0; o < m->loop->n_out; o++)
        for (int k = 0; m->out[o] == ref && k <= m->loop->n_in; k++) {
            if (k == m->loop->n_in) return true;
            if (weft_making_shares(m, o, k)) return false;
        }
    return false;
}

static void add_store(relaying *r)
{
    if (weft_making_streams(r->making, r->last.number)) {
        r->making->space->streams = true;
        add_leg(r, (weft_relay_leg){
                       .run = r->width->stream, .rest = weft_rest_store, .ref = r->last.y[0]});
        return;
    }
    if (is_fetched_to_write(r, r->last.y[0]))
        add_leg(r, (weft_relay_leg){.run = r->width->ask,
                                    .rest = weft_rest_none,
                                    .ref = r->last.y[0],
                                    .ahead = WEFT_BLOCK});
    add_leg(r,
            (weft_relay_leg){.run = r->width->store, .rest = weft_rest_store, .ref = r->last.y[0]});
}

/* Which operand of an act is what the last op made; -1: none, or both. */
static int goes_on_with(const relaying *r, const weft_act *act)
{
    int tile = -1;
    for (int i = 0; i < act->n_in; i++) {
        if (act->x[i] != r->last.y[0]) continue;
        if (tile >= 0 || act->is_number[i]) return -1;
        tile = i;
    }
    return tile >= 0 && leg_of_act(r->making, act, tile) ? tile : -1;
}

/* The operand that is loaded into the tile; the other may be a number. */
static int loaded_by(const weft_act *act)
{
    return act->n_in == 2 && act->is_number[0];
}

static bool may_begin_with(const relaying *r, const weft_act *act)
{
    return leg_of_act(r->making, act, loaded_by(act)) != NULL;
}

static void add_load(relaying *r, const weft_act *act)
{
    add_leg(r, (weft_relay_leg){
                   .run = r->width->load, .rest = weft_rest_load, .ref = act->x[loaded_by(act)]});
}

/* Room for a store, which may ask first, a load, an op, and for the last store and the end. */
static bool has_room(const relaying *r)
{
    return r->n_legs + 7 <= WEFT_MOST_LEGS;
}

/* Of the next block, or no further ahead than that of all but relays is: a block of several pieces is not kept. */
static void add_asks(relaying *r, const weft_act *begin, const weft_act *end)
{
    const int ahead = r->making->segment->n_row_dims == 0 ? WEFT_BLOCK : 0;
    for (const weft_act *act = begin; act < end && has_room(r); act++)
        add_leg(
            r, (weft_relay_leg){
                   .run = r->width->ask, .rest = weft_rest_none, .ref = act->x[0], .ahead = ahead});
}

/* The act goes on with the tile, or with what it has loaded into it. */
static bool take_in(relaying *r, const weft_act *act)
{
    const int tile = goes_on_with(r, act);
    if (!has_room(r) || (tile < 0 && !may_begin_with(r, act))) return false;
    if (tile < 0 || r->last.only_for != act->number) add_store(r);
    if (tile < 0) add_load(r, act);
    add_op(r, act, tile < 0 ? loaded_by(act) : tile);
    return true;
}

static const weft_act *skip_asks(const weft_act *act, const weft_act *end)
{
    while (act < end && act->run == weft_act_ahead)
        act++;
    return act;
}

/* From the act `begin` on; up to which it takes acts in: `begin` itself, it is none. */
static const weft_act *follow(relaying *r, const weft_act *begin, const weft_act *end)
{
    const weft_act *act = skip_asks(begin, end);
    r->n_legs = r->n_ops = 0, r->has_number = false;
    if (act == end || !may_begin_with(r, act)) return begin;
    add_load(r, act);
    add_asks(r, begin, act);
    add_op(r, act, loaded_by(act));
    const weft_act *taken = act + 1;
    for (act = skip_asks(taken, end); act < end && take_in(r, act); act = skip_asks(taken, end)) {
        add_asks(r, taken, act);
        taken = act + 1;
    }
    add_store(r);
    add_leg(r, (weft_relay_leg){.run = r->width->end, .rest = weft_rest_none});
    return r->n_ops > 1 || r->has_number ? taken : begin;
}

weft_status weft_making_relay(weft_making *m, weft_error *error)
{
    relaying r = {.making = m, .width = &weft_relay_widths[weft_relay_width_index()]};
    const weft_act *act = m->acts, *end = act + m->n_acts;
    m->n_acts = 0; /* fewer than before: each is read before it is written over */
    while (act < end) {
        const weft_act *taken = follow(&r, act, end);
        if (taken == act) {
            m->acts[m->n_acts++] = *act++;
            continue;
        }
        const size_t bytes = (size_t)r.n_legs * sizeof *r.legs;
        weft_relay_leg *legs = weft_arena_take(m->arena, bytes);
        if (!legs) return weft_fail_memory(error, bytes);
        memcpy(legs, r.legs, bytes);
        m->acts[m->n_acts++] =
            (weft_act){.run = weft_act_relay, .width = r.width, .legs = legs, .n_legs = r.n_legs};
        act = taken;
    }
    return WEFT_OK;
}
