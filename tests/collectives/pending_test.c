/* Waiting: whatever a desk waits with - looks, yields, sleep that somebody ends or that nobody does -, it ends when the thing
 * that is waited for is over, and all else that is under way goes on meanwhile. */
#include "pending.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "test.h"

/* Over when it has been looked at so often, and somebody has said so. */
typedef struct thing {
    weft_pending pending; /* first */
    int n_looks;
    _Atomic int is_said;
} thing;

static bool poll_thing(weft_pending *it)
{
    thing *t = (thing *)(void *)it;
    t->n_looks--;
    return t->n_looks <= 0 && atomic_load(&t->is_said);
}

typedef struct teller {
    weft_desk *desk;
    thing *thing;
} teller;

static void *tell(void *argument)
{
    const teller *t = argument;
    usleep(3000);
    atomic_store(&t->thing->is_said, 1);
    weft_desk_ring(t->desk);
    return NULL;
}

static void test_every_way_of_waiting_ends(void)
{
    for (int can_sleep = 0; can_sleep < 2; can_sleep++)
        for (int n_no_yields = 0; n_no_yields < 3; n_no_yields++)
            for (int is_late = 0; is_late < 2; is_late++) {
                weft_desk desk = {
                    .n_spins = 10, .can_sleep = can_sleep, .n_no_yields = n_no_yields};
                thing late = {.pending = {.poll = poll_thing}, .n_looks = is_late ? 50 : 5};
                thing other = {.pending = {.poll = poll_thing}, .n_looks = 2, .is_said = 1};
                weft_error error = {0};
                pthread_t thread;
                atomic_store(&late.is_said, !is_late);
                weft_desk_begin(&desk, &late.pending);
                weft_desk_begin(&desk, &other.pending);
                const bool is_told =
                    is_late && pthread_create(&thread, NULL, tell, &(teller){&desk, &late}) == 0;
                CHECK(is_told == (bool)is_late);
                CHECK_OK(weft_desk_wait(&desk, &late.pending, &error), error);
                CHECK(late.pending.is_over && other.pending.is_over);
                CHECK(desk.first == NULL && desk.last == NULL);
                if (is_late && n_no_yields > 0) CHECK_EQ_INT(desk.n_no_yields, n_no_yields - 1);
                if (is_told) pthread_join(thread, NULL);
            }
}

static void test_what_went_wrong_is_told(void)
{
    weft_desk desk = {.n_spins = 10};
    thing bad = {.pending = {.poll = poll_thing}, .n_looks = 20, .is_said = 1};
    weft_error error = {0};
    bad.pending.error = (weft_error){.status = WEFT_MISMATCH, .message = "another call"};
    weft_desk_begin(&desk, &bad.pending);
    CHECK_EQ_INT(weft_desk_wait(&desk, &bad.pending, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, "another call");
}

int main(void)
{
    RUN(test_every_way_of_waiting_ends);
    RUN(test_what_went_wrong_is_told);
    return weft_test_report();
}
