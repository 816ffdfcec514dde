/* stacked.h: an engine from outside that stands on the one there is, and lets every exchange take some polls more. */
#ifndef WEFT_TEST_STACKED_H
#define WEFT_TEST_STACKED_H

#include "test.h"
#include "weft/extend/engine.h"

typedef struct stacked {
    weft_comm_exchange *below;
    int n_polls;
} stacked;

static inline int64_t stacked_bytes(const weft_comm *comm)
{
    (void)comm;
    return sizeof(stacked);
}

static inline weft_status stacked_create(weft_comm_exchange *it, weft_error *error)
{
    stacked *mine = it->state;
    return weft_exchange_take(weft_comm_below(it->comm), &mine->below, error);
}

static inline void stacked_destroy(weft_comm_exchange *it)
{
    weft_exchange_give(((stacked *)it->state)->below);
}

static inline weft_status stacked_start(weft_comm_exchange *it, weft_error *error)
{
    stacked *mine = it->state;
    mine->n_polls = 0;
    mine->below->send = it->send;
    mine->below->recv = it->recv;
    return weft_exchange_begin(mine->below, it->ticket, it->fingerprint, error);
}

static inline bool stacked_poll(weft_comm_exchange *it)
{
    stacked *mine = it->state;
    if (!weft_exchange_poll(mine->below) || mine->n_polls++ < 3) return false;
    weft_fail(&it->error, mine->below->error.status, "%s", mine->below->error.message);
    return true;
}

static const weft_engine stacked_engine = {.size = sizeof(weft_engine),
                                           .name = "stacked",
                                           .below = "",
                                           .exchange_bytes = stacked_bytes,
                                           .exchange_create = stacked_create,
                                           .exchange_destroy = stacked_destroy,
                                           .start = stacked_start,
                                           .poll = stacked_poll};

/* Run the same tests again by it. */
static inline void test_again_by_stacked(void (*tests)(void))
{
    weft_error error = {0};
    CHECK_OK(weft_extend_engine(&stacked_engine, &error), error);
    CHECK_OK(weft_engine_choose("stacked", &error), error);
    tests();
    CHECK_OK(weft_engine_choose(NULL, &error), error);
}

#endif
