/* kept_chain.h: records of what chains have: a number, a row of floats, a text of any length; how often each was read. */
#ifndef WEFT_TESTS_KEPT_CHAIN_H
#define WEFT_TESTS_KEPT_CHAIN_H

#include "chain.h"

#include "test.h"

enum { KEPT_WIDE = 5, KEPT_LONGEST = 50 };

typedef struct kept_source {
    int64_t records, odd; /* odd: a record that cannot be read; -1: none */
    bool has_text;
    atomic_int n_read;
} kept_source;

static inline int64_t kept_length(int64_t record)
{
    return record % 7 == 2 ? 0 : record * 7919 % KEPT_LONGEST;
}

static inline double kept_number(int64_t record, int field, int64_t i)
{
    return field == 0   ? (double)(record * record % 1000003)
           : field == 1 ? (double)record / 3 + (double)i
                        : (double)('a' + (record + i * i) % 26);
}

static inline weft_status kept_read(const void *self, int64_t record, const weft_want *wants,
                                    int n_wants, void *scratch, weft_error *error)
{
    kept_source *k = (kept_source *)self; /* which counts */
    (void)scratch;
    atomic_fetch_add(&k->n_read, 1);
    if (record == k->odd)
        return weft_fail(error, WEFT_IO, "shelf.bin: record %lld is torn", (long long)record);
    for (const weft_want *w = wants; w < wants + n_wants; w++)
        for (int64_t i = w->begin; i < w->end; i++) {
            const double x = kept_number(record, w->field, i);
            if (w->dtype == WEFT_I64) ((int64_t *)w->to)[i - w->begin] = (int64_t)x;
            if (w->dtype == WEFT_F32) ((float *)w->to)[i - w->begin] = (float)x;
            if (w->dtype == WEFT_F64) ((double *)w->to)[i - w->begin] = x;
            if (w->dtype == WEFT_U8) ((uint8_t *)w->to)[i - w->begin] = (uint8_t)x;
        }
    return WEFT_OK;
}

static inline weft_status kept_count(const void *self, int64_t record, int field, void *scratch,
                                     int64_t *n, weft_error *error)
{
    (void)self, (void)field, (void)scratch, (void)error;
    *n = kept_length(record);
    return WEFT_OK;
}

/* Floats are f32 and, more exactly, f64. */
static inline weft_chain *kept_open(kept_source *k)
{
    static const weft_chain_kind kind = {.name = "shelf", .read = kept_read, .count = kept_count};
    weft_error error = {0};
    weft_chain *chain = NULL;
    weft_chain_found found = {.records = k->records,
                              .n_fields = k->has_text ? 3 : 2,
                              .fields = {{.name = "id", .dtype = WEFT_I64},
                                         {.name = "x",
                                          .dtype = WEFT_F32,
                                          .native = 1u << WEFT_F32 | 1u << WEFT_F64,
                                          .shape = {1, {{"wide", KEPT_WIDE}}}},
                                         {.name = "text",
                                          .dtype = WEFT_U8,
                                          .is_ragged = true,
                                          .shape = {1, {{"byte", KEPT_LONGEST}}}}}};
    CHECK_OK(weft_chain_make(&kind, k, &found, &chain, &error), error);
    return chain;
}

/* Record i of a chain is what the source has, in each dtype, whole and in part. */
static inline void kept_check(const weft_chain *chain, int64_t i)
{
    const int64_t record = i % chain->found.records;
    int64_t id = -1, length = 0;
    float x[KEPT_WIDE], part[2];
    double exact[KEPT_WIDE];
    uint8_t text[KEPT_LONGEST];
    weft_error error = {0};
    const weft_want wants[] = {{0, WEFT_I64, 0, 1, &id},
                               {1, WEFT_F32, 0, KEPT_WIDE, x},
                               {1, WEFT_F64, 0, KEPT_WIDE, exact},
                               {1, WEFT_F32, 2, 4, part}};
    CHECK_OK(weft_chain_ask(chain, i, wants, 4, NULL, &error), error);
    CHECK_EQ_INT(id, (int64_t)kept_number(record, 0, 0));
    for (int k = 0; k < KEPT_WIDE; k++)
        CHECK(x[k] == (float)kept_number(record, 1, k) && exact[k] == kept_number(record, 1, k));
    CHECK(part[0] == x[2] && part[1] == x[3]);
    if (chain->found.n_fields < 3) return;
    CHECK_OK(weft_chain_count(chain, i, 2, NULL, &length, &error), error);
    if (!CHECK_EQ_INT(length, kept_length(record)) || length == 0) return;
    const weft_want want = {2, WEFT_U8, length / 2, length, text};
    CHECK_OK(weft_chain_ask(chain, i, &want, 1, NULL, &error), error);
    for (int64_t k = length / 2; k < length; k++)
        CHECK_EQ_INT(text[k - length / 2], (uint8_t)kept_number(record, 2, k));
}

#endif
