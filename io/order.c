/* order: stages that change which records come and when, by arithmetic on their numbers: shuffle, take, repeat, concat, interleave, mix.
 *
 * Each is one function: it finds the record of an operand that is record i. None of them keeps more than its operands and a few numbers, so
 * order costs no memory however many records there are, and any record is found at once.
 */
#include "chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ends.h"

enum { MAX_OPERANDS = 4096, TABLE = 1024, LONGEST_TABLE = 65536, LEAST_PLACES = 16 };

typedef struct order order;
struct order {
    int64_t (*pick)(const order *o, int64_t i, int *operand);
    int64_t records; /* of a pass */
    uint64_t seed;
    int64_t group; /* of a shuffle by blocks; the first of a take */
    int n;
    weft_chain **operands; /* [n]; the chain's */
    int64_t *ends;         /* [n] concat, interleave: see there */
    int *sorted;           /* [n] interleave: operands, the shortest first */
    uint16_t *table,
        *ranks;      /* [n_table] mix: the operand of a place; how many of its places are before */
    int64_t *places; /* [n] mix: places of an operand */
    int64_t n_table;
};

static void order_close(void *self)
{
    order *o = self;
    free(o->ends), free(o->sorted), free(o->table), free(o->ranks), free(o->places);
    free(o->operands);
    free(o);
}

static weft_status order_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                              void *scratch, weft_error *error)
{
    const order *o = self;
    int operand = 0;
    const int64_t record = o->pick(o, i, &operand);
    return weft_chain_ask(o->operands[operand], record, wants, n_wants, scratch, error);
}

static weft_status order_count(const void *self, int64_t i, int field, void *scratch, int64_t *n,
                               weft_error *error)
{
    const order *o = self;
    int operand = 0;
    const int64_t record = o->pick(o, i, &operand);
    return weft_chain_count(o->operands[operand], record, field, scratch, n, error);
}

static void order_place(const void *self, int field, int64_t i, int64_t number, char *text,
                        size_t bytes)
{
    const order *o = self;
    int operand = 0;
    const int64_t record = o->pick(o, i, &operand);
    weft_chain_place(o->operands[operand], field, record, number, text, bytes);
}

#define ORDER(text)                                                                                \
    .name = text, .read = order_read, .count = order_count, .place = order_place,                  \
    .close = order_close, .is_stage = true
static const weft_chain_kind shuffle_kind = {ORDER("shuffle"), .is_order = true};
static const weft_chain_kind take_kind = {ORDER("take"), .is_order = true};
static const weft_chain_kind repeat_kind = {ORDER("repeat")};
static const weft_chain_kind freeze_kind = {ORDER("freeze"), .is_order = true};
static const weft_chain_kind concat_kind = {ORDER("concat")};
static const weft_chain_kind interleave_kind = {ORDER("interleave")};
static const weft_chain_kind mix_kind = {ORDER("mix")};

/* ---- one operand --------------------------------------------------------------------------------- */

/* A fresh permutation each pass. */
static int64_t pick_shuffled(const order *o, int64_t i, int *operand)
{
    const int64_t n = o->records, pass = i / n;
    (void)operand;
    return pass * n + weft_permute(o->seed + (uint64_t)pass * 0xD6E8FEB86659FD93u, n, i % n);
}

/* Blocks of `group` records come in any order, and in groups of as many blocks their records do: a disk reads near places. The last
 * block, if it is shorter, comes last. */
static int64_t pick_blocks(const order *o, int64_t i, int *operand)
{
    const int64_t n = o->records, pass = i / n, b = o->group, at = i % n;
    const int64_t n_blocks = n / b, whole = n_blocks * b, window = b * b;
    const uint64_t key = o->seed + (uint64_t)pass * 0xD6E8FEB86659FD93u;
    (void)operand;
    if (at >= whole) return pass * n + whole + weft_permute(key + 1, n - whole, at - whole);
    const int64_t begin = at / window * window;
    const int64_t count = whole - begin < window ? whole - begin : window;
    const int64_t there =
        begin + weft_permute(key + 2 + (uint64_t)(at / window), count, at - begin);
    return pass * n + weft_permute(key, n_blocks, there / b) * b + there % b;
}

static int64_t pick_taken(const order *o, int64_t i, int *operand)
{
    (void)operand;
    return i / o->records * o->operands[0]->found.records + o->group + i % o->records;
}

static int64_t pick_repeated(const order *o, int64_t i, int *operand)
{
    (void)o, (void)operand;
    return i;
}

static int64_t pick_frozen(const order *o, int64_t i, int *operand)
{
    (void)operand;
    return i % o->records;
}

/* ---- several operands ---------------------------------------------------------------------------- */

/* ends[k]: records of the operands up to and with k. */
static int64_t pick_joined(const order *o, int64_t i, int *operand)
{
    const int64_t pass = i / o->records, at = i % o->records;
    int64_t begin;
    *operand = (int)weft_ends_find(o->ends, o->n, at, &begin);
    return pass * o->operands[*operand]->found.records + at - begin;
}

/* One of each in turn, of those that have some left. ends[k]: where operand sorted[k], the shortest but k, has given its last: from
 * ends[k - 1] on n - k of them take turns. */
static int64_t pick_in_turn(const order *o, int64_t i, int *operand)
{
    const int64_t pass = i / o->records, at = i % o->records;
    int64_t begin;
    const int low = (int)weft_ends_find(o->ends, o->n, at, &begin);
    const int64_t given = low > 0 ? o->operands[o->sorted[low - 1]]->found.records : 0;
    const int left = o->n - low, turn = (int)((at - begin) % left);
    int nth = -1, k = -1;
    while (nth < turn) /* the turn-th, in their own order, of those left */
        nth += o->operands[++k]->found.records > given;
    *operand = k;
    return pass * o->operands[k]->found.records + given + (at - begin) / left;
}

static int64_t pick_mixed(const order *o, int64_t i, int *operand)
{
    const int64_t place = i % o->n_table;
    *operand = o->table[place];
    return i / o->n_table * o->places[*operand] + o->ranks[place];
}

/* ---- making them --------------------------------------------------------------------------------- */

static order *new_order(int64_t (*pick)(const order *o, int64_t i, int *operand),
                        weft_chain *const *operands, int n)
{
    order *o = calloc(1, sizeof *o);
    if (o == NULL) return NULL;
    o->pick = pick, o->n = n;
    o->operands = calloc((size_t)n, sizeof *o->operands);
    o->ends = calloc((size_t)n, sizeof *o->ends);
    o->sorted = calloc((size_t)n, sizeof *o->sorted);
    o->places = calloc((size_t)n, sizeof *o->places);
    if (o->operands && o->ends && o->sorted && o->places) {
        memcpy(o->operands, operands, (size_t)n * sizeof(weft_chain *));
        return o;
    }
    order_close(o);
    return NULL;
}

/* A stage over one chain, in its place. Takes over o. */
static weft_status replace(const weft_chain_kind *kind, order *o, bool varies, const char *setting,
                           weft_chain **chain, weft_error *error)
{
    weft_chain_found found = (*chain)->found;
    found.records = o->records;
    found.varies |= varies;
    return weft_stage_make(kind, o, &found, setting, chain, 1, chain, error);
}

weft_status weft_chain_shuffle(weft_chain **chain, int64_t block, uint64_t seed, weft_error *error)
{
    char setting[80];
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN_RANGE(block, 0, INT64_C(1) << 30, error);
    order *o = new_order(block > 0 ? pick_blocks : pick_shuffled, chain, 1);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    o->records = (*chain)->found.records, o->seed = seed, o->group = block;
    snprintf(setting, sizeof setting, "seed %llu, block %lld", (unsigned long long)seed,
             (long long)block);
    return replace(&shuffle_kind, o, true, setting, chain, error);
}

weft_status weft_chain_take(weft_chain **chain, int64_t first, int64_t count, weft_error *error)
{
    char setting[80];
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    const int64_t n = (*chain)->found.records;
    if (first < 0 || count < 0 || first >= n || count > n - first)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_chain_take: %lld records from %lld on, and there are %lld; take less",
            (long long)count, (long long)first, (long long)n);
    order *o = new_order(pick_taken, chain, 1);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    o->records = count > 0 ? count : n - first, o->group = first;
    snprintf(setting, sizeof setting, "%lld from %lld on", (long long)o->records, (long long)first);
    return replace(&take_kind, o, false, setting, chain, error);
}

weft_status weft_chain_take_unshuffled(weft_chain **chain, int64_t first, int64_t count,
                                       weft_error *error)
{
    weft_chain *c = *chain;
    if (c->kind != &shuffle_kind) return weft_chain_take(chain, first, count, error);
    order *o = c->self;
    WEFT_TRY(weft_chain_take_unshuffled(&c->operands[0], first, count, error));
    o->operands[0] = c->operands[0];
    o->records = c->found.records = c->operands[0]->found.records;
    return WEFT_OK;
}

int64_t weft_chain_first(const weft_chain *chain)
{
    int64_t first = 0;
    for (; chain->kind->is_order || chain->kind->is_same; chain = chain->operands[0])
        if (chain->kind == &take_kind) first += ((const order *)chain->self)->group;
    return first;
}

weft_status weft_chain_repeat(weft_chain **chain, int64_t times, weft_error *error)
{
    char setting[40];
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN_RANGE(times, 1, WEFT_MAX_SAMPLES / (*chain)->found.records, error);
    order *o = new_order(pick_repeated, chain, 1);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    o->records = times * (*chain)->found.records;
    snprintf(setting, sizeof setting, "%lld times", (long long)times);
    return replace(&repeat_kind, o, false, setting, chain, error);
}

weft_status weft_chain_freeze(weft_chain **chain, weft_error *error)
{
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    order *o = new_order(pick_frozen, chain, 1);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    weft_chain_found found = (*chain)->found;
    o->records = found.records;
    found.varies = false;
    return weft_stage_make(&freeze_kind, o, &found, "", chain, 1, chain, error);
}

static bool same_labels(const weft_field *a, const weft_field *b)
{
    bool same = a->n_labels == b->n_labels;
    for (int i = 0; same && i < a->n_labels; i++)
        same = strcmp(a->labels[i], b->labels[i]) == 0;
    return same;
}

/* All have the fields of the first: name, dtype, shape. */
static weft_status check_fields(const weft_chain *first, const weft_chain *other, int number,
                                const char *call, weft_error *error)
{
    char here[256], there[256];
    if (other->found.n_fields != first->found.n_fields)
        return weft_fail(
            error, WEFT_USAGE,
            "%s: chain 0 has %d fields and chain %d has %d; give chains of the same fields", call,
            first->found.n_fields, number, other->found.n_fields);
    for (int f = 0; f < first->found.n_fields; f++) {
        const weft_field *a = &first->found.fields[f], *b = &other->found.fields[f];
        weft_shape_print(&a->shape, here, sizeof here);
        weft_shape_print(&b->shape, there, sizeof there);
        if (!same_labels(a, b))
            return weft_fail(
                error, WEFT_USAGE,
                "%s: %.60s of chain 0 is of %d classes, and of chain %d of %d, or they "
                "are called otherwise; give chains of the same classes",
                call, a->name, a->n_labels, number, b->n_labels);
        if (strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->is_ragged == b->is_ragged &&
            (a->is_ragged || strcmp(here, there) == 0))
            continue;
        return weft_fail(error, WEFT_USAGE,
                         "%s: field %d of chain 0 is %.60s, %s %.80s, and of chain %d %.60s, %s "
                         "%.80s; make them equal",
                         call, f, a->name, weft_dtype_name(a->dtype), here, number, b->name,
                         weft_dtype_name(b->dtype), there);
    }
    return WEFT_OK;
}

/* What chains of the same fields have in common. */
static weft_status find_common(weft_chain *const *chains, int n, const char *call,
                               weft_chain_found *found, weft_error *error)
{
    WEFT_GIVEN(chains, error);
    if (n < 1 || n > MAX_OPERANDS)
        return weft_fail(error, WEFT_USAGE, "%s: %d chains; give 1 to %d", call, n, MAX_OPERANDS);
    for (int k = 0; k < n; k++) {
        if (chains[k] == NULL)
            return weft_fail(error, WEFT_USAGE, "%s: chain %d is NULL; open it first", call, k);
        for (int other = 0; other < k; other++)
            if (chains[other] == chains[k])
                return weft_fail(error, WEFT_USAGE,
                                 "%s: chains %d and %d are the same one; open the file once more "
                                 "for each",
                                 call, other, k);
    }
    *found = chains[0]->found;
    found->records = 0;
    for (int k = 0; k < n; k++) {
        const weft_chain_found *other = &chains[k]->found;
        WEFT_TRY(check_fields(chains[0], chains[k], k, call, error));
        found->records += other->records;
        found->varies |= other->varies;
        if (found->scratch_bytes < other->scratch_bytes)
            found->scratch_bytes = other->scratch_bytes;
        for (int f = 0; f < found->n_fields; f++) {
            weft_field *field = &found->fields[f];
            if (field->is_ragged && field->shape.dims[0].size < other->fields[f].shape.dims[0].size)
                field->shape.dims[0].size = other->fields[f].shape.dims[0].size;
            field->native &= other->fields[f].native;
        }
        if (found->records > WEFT_MAX_SAMPLES)
            return weft_fail(error, WEFT_USAGE, "%s: more than 2^62 records; give fewer", call);
    }
    return WEFT_OK;
}

weft_status weft_chain_concat(weft_chain **chains, int n, weft_chain **chain, weft_error *error)
{
    weft_chain_found found;
    WEFT_GIVEN(chain, error);
    WEFT_TRY(find_common(chains, n, __func__, &found, error));
    order *o = new_order(pick_joined, chains, n);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    for (int k = 0; k < n; k++)
        o->ends[k] = o->records += chains[k]->found.records;
    return weft_stage_make(&concat_kind, o, &found, "", chains, n, chain, error);
}

static void sort_by_length(order *o)
{
    for (int k = 0; k < o->n; k++) {
        int at = k;
        for (; at > 0 &&
               o->operands[o->sorted[at - 1]]->found.records > o->operands[k]->found.records;
             at--)
            o->sorted[at] = o->sorted[at - 1];
        o->sorted[at] = k;
    }
}

weft_status weft_chain_interleave(weft_chain **chains, int n, weft_chain **chain, weft_error *error)
{
    weft_chain_found found;
    WEFT_GIVEN(chain, error);
    WEFT_TRY(find_common(chains, n, __func__, &found, error));
    order *o = new_order(pick_in_turn, chains, n);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    sort_by_length(o);
    o->records = found.records;
    for (int64_t k = 0, given = 0, end = 0; k < n; k++) {
        const int64_t count = chains[o->sorted[k]]->found.records;
        o->ends[k] = end += (count - given) * (n - k);
        given = count;
    }
    return weft_stage_make(&interleave_kind, o, &found, "", chains, n, chain, error);
}

/* Shares are whole numbers of so many parts: the same on any machine, and what the setting says of them is all of them. */
enum { PARTS = 1000000000 };

/* Each place goes to the operand that lacks most of its share so far. shares [n] in parts. */
static weft_status fill_table(order *o, const int64_t *shares, weft_error *error)
{
    o->table = calloc((size_t)o->n_table, sizeof *o->table);
    o->ranks = calloc((size_t)o->n_table, sizeof *o->ranks);
    if (o->table == NULL || o->ranks == NULL)
        return weft_fail_memory(error, (size_t)o->n_table * sizeof *o->table);
    for (int64_t place = 0; place < o->n_table; place++) {
        int most = 0;
        int64_t lack = INT64_MIN;
        for (int k = 0; k < o->n; k++) {
            const int64_t its = shares[k] * (place + 1) - o->places[k] * PARTS;
            if (its > lack) lack = its, most = k;
        }
        o->table[place] = (uint16_t)most;
        o->ranks[place] = (uint16_t)o->places[most]++;
    }
    return WEFT_OK;
}

/* "0.7:0.25:0.05" */
static void print_shares(const int64_t *shares, int n, char *text)
{
    for (int k = 0; k < n; k++) {
        char *end = text + sprintf(text, "%s%lld.%09lld", k > 0 ? ":" : "",
                                   (long long)(shares[k] / PARTS), (long long)(shares[k] % PARTS));
        while (end[-1] == '0')
            *--end = '\0';
        if (end[-1] == '.') *--end = '\0';
        text = end;
    }
}

static weft_status check_weights(const double *weights, int n, double *sum, double *least,
                                 weft_error *error)
{
    *sum = 0, *least = 1e300;
    for (int k = 0; k < n; k++) {
        if (!(weights[k] > 0 && weights[k] < 1e15))
            return weft_fail(error, WEFT_USAGE,
                             "weft_chain_mix: weight %d is %g; each must be above 0 (leave out a "
                             "chain of which nothing is wanted)",
                             k, weights[k]);
        *sum += weights[k];
        *least = weights[k] < *least ? weights[k] : *least;
    }
    if (*least / *sum * LONGEST_TABLE >= 1) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "weft_chain_mix: the least weight, %g of %g, is below 1 of %d; make it larger, "
        "or leave that chain out",
        *least, *sum, LONGEST_TABLE);
}

weft_status weft_chain_mix(weft_chain **chains, const double *weights, int n, weft_chain **chain,
                           weft_error *error)
{
    weft_chain_found found;
    double sum, least;
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(weights, error);
    WEFT_TRY(find_common(chains, n, __func__, &found, error));
    WEFT_TRY(check_weights(weights, n, &sum, &least, error));
    order *o = new_order(pick_mixed, chains, n);
    if (o == NULL) return weft_fail_memory(error, sizeof *o);
    o->records = found.records;
    int64_t *shares = calloc((size_t)n, sizeof *shares);
    char *setting = malloc((size_t)n * 32 + 1);
    weft_status status = WEFT_OK;
    if (shares == NULL || setting == NULL) status = weft_fail_memory(error, (size_t)n * 32);
    for (int k = 0; k < n && status == WEFT_OK; k++)
        shares[k] = (int64_t)(weights[k] / sum * PARTS + 0.5);
    const int64_t least_share = (int64_t)(least / sum * PARTS + 0.5);
    for (o->n_table = TABLE; o->n_table < LONGEST_TABLE; o->n_table *= 2)
        if (least_share * o->n_table >= (int64_t)LEAST_PLACES * PARTS) break;
    if (status == WEFT_OK) status = fill_table(o, shares, error);
    if (status == WEFT_OK) print_shares(shares, n, setting);
    found.varies = true;
    if (status == WEFT_OK)
        status = weft_stage_make(&mix_kind, o, &found, setting, chains, n, chain, error);
    else
        order_close(o);
    free(setting);
    free(shares);
    return status;
}
