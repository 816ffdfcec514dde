/* work_sharing: the lanes of a rank share the items of a loop. Each does its own piece, then steals from the others' (work
 * stealing).
 *
 * A lane takes from the front of its piece, who helps it from the back, so each stays where its data are for as long
 * as all are equally fast. Both change one word: the pass, the first item that is left, and where they end. A lane
 * that works on another's piece says so in a word of its own before it takes items: no lane begins with these items
 * in a later pass before that is done. Such a wait is for a lane in an earlier pass, never in a later one, so there
 * are no circles. Lanes in later passes need not be waited for: what they took they took when this lane's was already
 * claimed, and they wait for it.
 */
#include "mesh_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64, ITEM_BITS = 20 };
enum { SPINS = 1000, YIELDS = 100, NAP_NS = 20000 }; /* of who waits for a helper */
#define MOST_ITEMS ((int64_t)1 << ITEM_BITS)

typedef struct share {
    _Alignas(LINE) _Atomic uint64_t left;
    _Atomic uint64_t helping; /* 0: nobody */
} share;

struct weft_work {
    int64_t count;
    int n_lanes, shift; /* an item here is 2^shift of the loop's */
    share of[];
};

/* The pass, from the first item to the end. */
typedef struct span {
    uint64_t pass;
    int64_t first, end;
} span;

static uint64_t packed(span x)
{
    return x.pass << (2 * ITEM_BITS) | (uint64_t)x.first << ITEM_BITS | (uint64_t)x.end;
}

static span span_of(uint64_t word)
{
    const int64_t mask = MOST_ITEMS - 1;
    return (span){word >> (2 * ITEM_BITS), (int64_t)(word >> ITEM_BITS) & mask,
                  (int64_t)word & mask};
}

weft_work *weft_work_create(int n_lanes)
{
    const size_t bytes = sizeof(weft_work) + (size_t)n_lanes * sizeof(share);
    weft_work *s = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (s != NULL) memset(s, 0, bytes);
    return s;
}

void weft_work_destroy(weft_work *shares)
{
    free(shares);
}

/* Of piece `lane`, in items here. */
static int64_t piece_begin(const weft_work *s, int lane)
{
    const int64_t count = s->count > 0 ? ((s->count - 1) >> s->shift) + 1 : 0;
    const int64_t base = count / s->n_lanes, longer = count % s->n_lanes;
    return lane * base + (lane < longer ? lane : longer);
}

/* The loop's item with which one here begins. */
static int64_t item_at(const weft_work *s, int64_t i)
{
    return i <= s->count >> s->shift ? i << s->shift : s->count;
}

static void open_pass(weft_work *s, int lane, uint64_t pass)
{
    const span all = {pass, piece_begin(s, lane), piece_begin(s, lane + 1)};
    weft_sync_store(&s->of[lane].left, packed(all));
}

void weft_work_begin(weft_work *s, int64_t count, int n_lanes)
{
    s->count = count, s->n_lanes = n_lanes, s->shift = 0;
    while (count >> s->shift >= MOST_ITEMS - 1)
        s->shift++;
    for (int lane = 0; lane < n_lanes; lane++) {
        open_pass(s, lane, 1);
        weft_sync_store(&s->of[lane].helping, 0);
    }
}

static bool has_piece(const weft_work *s, int lane)
{
    return lane >= 0 && lane < s->n_lanes;
}

void weft_work_again(weft_work *s, int lane)
{
    if (!has_piece(s, lane)) return;
    open_pass(s, lane, span_of(weft_sync_load(&s->of[lane].left)).pass + 1);
}

/* Whether `other` is at these items in an earlier pass. */
static bool is_helping(const weft_work *s, int other, span mine)
{
    const uint64_t word = weft_sync_load(&s->of[other].helping);
    const span its = span_of(word);
    return word != 0 && its.pass < mine.pass && its.first < mine.end && mine.first < its.end;
}

/* Until what others do of these items, in the passes before, is done. */
static void await_helpers(const weft_work *s, int lane, span mine, weft_wait_sign *sign)
{
    for (int other = 0; other < s->n_lanes; other++) {
        weft_waiter wait = {
            "a lane that is at these items in an earlier pass", other, {SPINS, YIELDS}, sign, 0};
        while (other != lane && is_helping(s, other, mine))
            if (!weft_waiter_pause(&wait)) weft_waiter_nap(&wait, NAP_NS);
        weft_waiter_end(&wait);
    }
}

/* Fewer at the end, so that nobody waits long for the last. */
static int64_t how_many(const weft_work *s, span left, int64_t most)
{
    const int64_t n = left.end - left.first, least = (most - 1) / 3 + 1;
    if (n > most) return most;
    if (s->n_lanes == 1 || n <= least) return n;
    return (n + 1) / 2 > least ? (n + 1) / 2 : least;
}

static bool take_own(weft_work *s, int lane, int64_t most, span *taken)
{
    _Atomic uint64_t *left = &s->of[lane].left;
    for (uint64_t word = weft_sync_load(left);;) {
        span rest = *taken = span_of(word);
        if (rest.first == rest.end) return false;
        rest.first += how_many(s, rest, most);
        taken->end = rest.first;
        if (weft_sync_replace(left, &word, packed(rest))) return true;
    }
}

static bool take_from(weft_work *s, int lane, int other, int64_t most, span *taken)
{
    _Atomic uint64_t *left = &s->of[other].left;
    const uint64_t pass = span_of(weft_sync_load(&s->of[lane].left)).pass;
    for (uint64_t word = weft_sync_load(left);;) {
        span rest = *taken = span_of(word);
        if (rest.pass != pass || rest.first == rest.end) break;
        rest.end -= how_many(s, rest, most);
        taken->first = rest.end;
        weft_sync_store(&s->of[lane].helping, packed(*taken));
        if (weft_sync_replace(left, &word, packed(rest))) return true;
    }
    weft_sync_store(&s->of[lane].helping, 0);
    return false;
}

bool weft_work_take(weft_work *s, int lane, int64_t most, weft_wait_sign *sign, int64_t *begin,
                    int64_t *end)
{
    span taken;
    if (!has_piece(s, lane)) return false;
    const int64_t each = most >> s->shift > 0 ? most >> s->shift : 1;
    weft_sync_store(&s->of[lane].helping, 0); /* what it took before is done */
    bool found = take_own(s, lane, each, &taken);
    for (int i = 1; i < s->n_lanes && !found; i++)
        found = take_from(s, lane, (lane + i) % s->n_lanes, each, &taken);
    if (!found) return false;
    await_helpers(s, lane, taken, sign);
    *begin = item_at(s, taken.first);
    *end = item_at(s, taken.end);
    return true;
}

void weft_work_piece(const weft_work *s, int lane, int64_t *begin, int64_t *end)
{
    *begin = item_at(s, piece_begin(s, lane));
    *end = item_at(s, piece_begin(s, lane + 1));
}
