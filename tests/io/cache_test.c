/* cache_test: records are those of the chain, from memory and not; none that is kept is read twice, by any threads; room is what was said.
 */
#include <pthread.h>

#include "kept_chain.h"

enum { RECORDS = 500, THREADS = 4, ROW = 48 /* bytes of a record: 8, 5 x 4, each to 16 */ };

static weft_chain *cached(kept_source *k, int64_t bytes)
{
    weft_error error = {0};
    weft_chain *chain = kept_open(k);
    CHECK_OK(weft_chain_cache(&chain, bytes, &error), error);
    return chain;
}

static void read_id(const weft_chain *chain, int64_t i)
{
    int64_t id = -1;
    weft_error error = {0};
    const weft_want want = {0, WEFT_I64, 0, 1, &id};
    CHECK_OK(weft_chain_ask(chain, i, &want, 1, NULL, &error), error);
    CHECK_EQ_INT(id, (int64_t)kept_number(i % chain->found.records, 0, 0));
}

static void test_what_there_is_room_for_is_read_once(void)
{
    static const int64_t kept[] = {0, 1, 100, RECORDS};
    for (int c = 0; c < 4; c++) {
        kept_source k = {.records = RECORDS, .odd = -1};
        weft_chain *chain = cached(&k, kept[c] * (ROW + 1) + 1);
        for (int64_t i = 0; i < 4 * RECORDS; i++)
            read_id(chain, i);
        CHECK_EQ_INT(atomic_load(&k.n_read), kept[c] + 4 * (RECORDS - kept[c]));
        for (int64_t i = 0; i < RECORDS; i++)
            kept_check(chain, i);
        weft_chain_close(&chain);
    }
}

static void *read_all(void *argument)
{
    const weft_chain *chain = argument;
    for (int64_t i = 0; i < RECORDS; i++) {
        read_id(chain, i);
        kept_check(chain, RECORDS - 1 - i);
    }
    return NULL;
}

static void test_threads_read_the_same(void)
{
    kept_source k = {.records = RECORDS, .odd = -1};
    weft_chain *chain = cached(&k, 300 * (ROW + 1));
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        CHECK_EQ_INT(pthread_create(&threads[t], NULL, read_all, chain), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    weft_chain_close(&chain);
}

/* It is asked again: a failure is not kept. */
static void test_a_failure_is_not_kept(void)
{
    kept_source k = {.records = RECORDS, .odd = 7};
    weft_chain *chain = cached(&k, 1 << 20);
    weft_error error = {0};
    int64_t id = -1;
    const weft_want want = {0, WEFT_I64, 0, 1, &id};
    CHECK_EQ_INT(weft_chain_ask(chain, 7, &want, 1, NULL, &error), WEFT_IO);
    CHECK_TEXT(error.message, "record 7 is torn");
    k.odd = -1;
    read_id(chain, 7);
    weft_chain_close(&chain);
}

static void check_refused(weft_chain **chain, int64_t bytes, const char *fact)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_chain_cache(chain, bytes, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, fact);
    weft_chain_close(chain);
}

static void test_the_digest_is_the_chains_and_what_cannot_be_is_told(void)
{
    kept_source k = {.records = RECORDS, .odd = -1};
    weft_error error = {0};
    weft_chain *plain = kept_open(&k), *chain = cached(&k, 1 << 20);
    const weft_hash own = weft_chain_digest(plain), same = weft_chain_digest(chain);
    CHECK(weft_hash_equal(&own, &same));
    CHECK_OK(weft_chain_shuffle(&chain, 0, 1, &error), error);
    check_refused(&chain, 100, "passes of the chain differ by its shuffle");
    check_refused(&plain, 0, "at least 1");
    k.has_text = true;
    plain = kept_open(&k);
    check_refused(&plain, 100, "different sizes of text");
}

int main(void)
{
    RUN(test_what_there_is_room_for_is_read_once);
    RUN(test_threads_read_the_same);
    RUN(test_a_failure_is_not_kept);
    RUN(test_the_digest_is_the_chains_and_what_cannot_be_is_told);
    return weft_test_report();
}
