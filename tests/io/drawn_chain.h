/* drawn_chain.h: a chain that a seed draws: up to four sources, of files of all kinds and of a function, each in stages of its own, joined,
 * and in stages again. A record is x, MADE numbers of i64: whatever the source has, hashed, and random numbers of the record. */
#ifndef WEFT_TESTS_DRAWN_CHAIN_H
#define WEFT_TESTS_DRAWN_CHAIN_H

#include "made_files.h"
#include "weft/data.h"

enum { DRAWN_WIDE = 12, DRAWN_SOURCES = 4 };

typedef struct dice {
    uint64_t state;
} dice;

static inline int roll(dice *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

static inline uint64_t drawn_hash(const void *bytes, size_t n, uint64_t hash)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return hash;
}

/* What a map takes: the bytes of each field. */
typedef struct drawn_fields {
    size_t bytes[WEFT_MAX_FIELDS];
    int n;
} drawn_fields;

/* Numbers below 2^20, so that sums of all are exact. */
static inline weft_status drawn_map(const void *argument, int64_t i, const void *const *in,
                                    void *const *out, weft_philox_key key, weft_error *error)
{
    const drawn_fields *fields = argument;
    uint64_t hash = 0xCBF29CE484222325u;
    uint32_t words[4];
    (void)i, (void)error;
    for (int f = 0; f < fields->n; f++)
        hash = drawn_hash(in[f], fields->bytes[f], hash);
    for (int w = 0; w < DRAWN_WIDE; w++) {
        if (w % 4 == 0) weft_philox(key, (uint64_t)w / 4, words);
        hash = (hash ^ words[w % 4]) * 0x100000001B3u;
        ((int64_t *)out[0])[w] = (int64_t)(hash >> 40 & 0xFFFFF);
    }
    return WEFT_OK;
}

static inline weft_status drawn_sample(const void *argument, int field, int64_t sample, void *row,
                                       weft_error *error)
{
    (void)field, (void)error;
    for (int i = 0; i < 2; i++)
        ((int32_t *)row)[i] = made_number(*(const uint64_t *)argument, (int)sample, i);
    return WEFT_OK;
}

/* One of the order's stages, or none. Sizes stay small. */
static inline weft_status drawn_stage(dice *d, weft_chain **chain, weft_error *error)
{
    const int64_t n = weft_chain_records(*chain), first = roll(d, (int)(n < 1000 ? n : 1000));
    switch (roll(d, 6)) {
    case 0:
        return weft_chain_shuffle(chain, 0, (uint64_t)roll(d, 1000), error);
    case 1:
        return weft_chain_shuffle(chain, 1 + roll(d, 6), (uint64_t)roll(d, 1000), error);
    case 2:
        return weft_chain_take(chain, first,
                               1 + roll(d, (int)(n - first < 1000 ? n - first : 1000)), error);
    case 3:
        return weft_chain_repeat(chain, 1 + roll(d, 3), error);
    default:
        return WEFT_OK;
    }
}

/* By its number alone; the first stays, so that there is one. */
static inline weft_status drawn_keep(const void *argument, int64_t i, const void *const *in,
                                     const int64_t *counts, bool *stays, weft_error *error)
{
    (void)argument, (void)in, (void)counts, (void)error;
    *stays = i == 0 || made_number(17, (int)i, 0) % 3 != 0;
    return WEFT_OK;
}

/* What keeps records, or which of them stay, below all that orders them. */
static inline weft_status drawn_kept(dice *d, const char *base, weft_chain **chain,
                                     weft_error *error)
{
    const weft_filter_options filter = {
        .name = "some", .function = drawn_keep, .folder = base, .n_threads = 1 + roll(d, 3)};
    switch (roll(d, 6)) {
    case 0:
        return weft_chain_cache(chain, 1 + roll(d, 400), error);
    case 1:
        return weft_chain_snapshot(chain, &(weft_snapshot_options){base, 1 + roll(d, 3)}, error);
    case 2:
        return weft_chain_filter(chain, &filter, error);
    default:
        return WEFT_OK;
    }
}

/* x out of whatever fields there are. */
static inline weft_status drawn_mapped(dice *d, drawn_fields *fields, weft_chain **chain,
                                       weft_error *error)
{
    static const weft_sample_field x = {"x", {"wide", DRAWN_WIDE}, WEFT_I64};
    fields->n = weft_chain_fields(*chain);
    for (int f = 0; f < fields->n; f++)
        fields->bytes[f] = (size_t)weft_shape_count(weft_chain_field_shape(*chain, f)) *
                           weft_dtype_bytes(weft_chain_field_dtype(*chain, f));
    const weft_map_options map = {.name = "hashed",
                                  .fields = &x,
                                  .n_fields = 1,
                                  .function = drawn_map,
                                  .argument = fields,
                                  .is_random = roll(d, 2),
                                  .seed = (uint64_t)roll(d, 1000)};
    return weft_chain_map(chain, &map, error);
}

/* Documents of letters, some of them empty, in windows. */
static inline weft_status drawn_packed(dice *d, const char *base, int n, bool writes,
                                       const uint64_t *seed, weft_chain **chain, weft_error *error)
{
    char path[400], index[400];
    snprintf(index, sizeof index, "%s.index", base);
    const weft_pack_options options = {.seq = 4 + roll(d, 20),
                                       .look_ahead = 1 + roll(d, 12),
                                       .end = roll(d, 3) - 1,
                                       .folder = roll(d, 2) ? index : NULL,
                                       .n_threads = 1 + roll(d, 3)};
    snprintf(path, sizeof path, "%s.documents.jsonl", base);
    FILE *file = writes ? fopen(path, "w") : NULL;
    for (int i = 0; file != NULL && i < n; i++)
        fprintf(file, "{\"text\": \"%.*s\"}\n", i == 0 ? 9 : made_number(*seed, i, 0) % 40,
                "the letters of which all documents are made");
    if (file != NULL) CHECK_EQ_INT(fclose(file), 0);
    WEFT_TRY(weft_chain_open(path, NULL, chain, error));
    return weft_chain_pack(chain, &options, error);
}

/* fields, seed: live as long as the chain. */
static inline weft_status drawn_source(dice *d, const char *folder, int number, bool writes,
                                       uint64_t *seed, drawn_fields *fields, weft_chain **chain,
                                       weft_error *error)
{
    static const weft_sample_field pair = {"pair", {"two", 2}, WEFT_I32};
    char base[300], path[400];
    const int kind = roll(d, MADE_KINDS + 2), n = 2 + roll(d, 28);
    *seed = (uint64_t)roll(d, 1 << 30);
    snprintf(base, sizeof base, "%s/%d", folder, number);
    if (kind == MADE_KINDS) {
        const weft_samples_options options = {&pair, 1, n, drawn_sample, seed, false, 0};
        WEFT_TRY(weft_chain_samples(&options, chain, error));
    } else if (kind > MADE_KINDS) {
        WEFT_TRY(drawn_packed(d, base, n, writes, seed, chain, error));
    } else {
        made_path((made_kind)kind, base, path);
        if (writes) made_file((made_kind)kind, base, *seed, n);
        WEFT_TRY(weft_chain_open(path, NULL, chain, error));
    }
    snprintf(path, sizeof path, "%s.kept", base);
    WEFT_TRY(drawn_kept(d, path, chain, error));
    for (int k = 0; k < 2; k++)
        WEFT_TRY(drawn_stage(d, chain, error));
    return drawn_mapped(d, fields, chain, error);
}

typedef struct drawn {
    weft_chain *chain;
    drawn_fields fields[DRAWN_SOURCES + 1];
    uint64_t seeds[DRAWN_SOURCES];
} drawn;

static inline weft_status drawn_join(dice *d, weft_chain **parts, int n, weft_chain **chain,
                                     weft_error *error)
{
    double weights[DRAWN_SOURCES];
    for (int k = 0; k < n; k++)
        weights[k] = 1 + roll(d, 9);
    switch (roll(d, 3)) {
    case 0:
        return weft_chain_concat(parts, n, chain, error);
    case 1:
        return weft_chain_interleave(parts, n, chain, error);
    default:
        return weft_chain_mix(parts, weights, n, chain, error);
    }
}

/* drawn_open - the chain of a seed; its files lie in the folder, and are written there if `writes`. */
static inline bool drawn_open(drawn *c, uint64_t seed, const char *folder, bool writes)
{
    dice d = {seed * 0x9E3779B97F4A7C15u + 1};
    const int n = 1 + roll(&d, DRAWN_SOURCES);
    weft_chain *parts[DRAWN_SOURCES] = {NULL};
    weft_error error = {.rank = -1};
    weft_status status = WEFT_OK;
    *c = (drawn){NULL};
    for (int k = 0; k < n && status == WEFT_OK; k++)
        status =
            drawn_source(&d, folder, k, writes, &c->seeds[k], &c->fields[k], &parts[k], &error);
    if (status == WEFT_OK) status = drawn_join(&d, parts, n, &c->chain, &error);
    for (int k = 0; k < 2 && status == WEFT_OK; k++)
        status = drawn_stage(&d, &c->chain, &error);
    if (status == WEFT_OK && roll(&d, 2))
        status = drawn_mapped(&d, &c->fields[n], &c->chain, &error);
    return CHECK_OK(status, error);
}

#endif
