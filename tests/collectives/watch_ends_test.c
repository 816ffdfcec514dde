/* watch_ends_test: the two ends of the watch, turned by hand: who leaves, who dies, and who was never taken in. The kernel
 * connects for a process that has not come to listen yet, so the hub may leave, or die, before it knows of somebody. */
#include "watch/watch.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static const double PATIENCE = 10;

typedef struct watched {
    weft_hub_address address;
    int listener;
} watched;

/* Both ends in this process; the connection is made, and nobody has taken it in. */
static bool open_both(watched *w)
{
    w->listener = weft_hub_listen(&w->address);
    return CHECK(w->listener >= 0) && CHECK(weft_recorder_of(0) != NULL) &&
           CHECK(weft_hub_open(2, w->listener, &w->address)) &&
           CHECK(weft_spoke_open(1, &w->address));
}

static bool is_greeted(void)
{
    struct pollfd file;
    return weft_spoke.files(&file, 1) == 1 && !(file.events & POLLOUT);
}

static void turn_spoke(double seconds)
{
    const double until = weft_seconds() + seconds;
    do {
        weft_spoke.turn(weft_seconds());
        usleep(5000);
    } while (weft_seconds() < until);
}

static bool connect_spoke(void)
{
    for (int i = 0; i < 400 && !is_greeted(); i++)
        turn_spoke(0.01);
    return CHECK(is_greeted());
}

static bool is_judged(weft_verdict *verdict)
{
    int n;
    const weft_rank_view *views = weft_spoke.views(weft_seconds(), PATIENCE, &n);
    return weft_judge(views, n, PATIENCE, verdict);
}

static weft_presence hub_presence(void)
{
    int n;
    return weft_spoke.views(weft_seconds(), PATIENCE, &n)[0].presence;
}

static void test_a_hub_that_never_took_a_process_in_is_not_said_to_be_lost(void)
{
    watched w;
    weft_verdict verdict;
    if (!open_both(&w) || !connect_spoke()) return;
    shutdown(w.listener, SHUT_RDWR); /* what waits to be accepted is broken off */
    turn_spoke(0.1);
    CHECK(!is_judged(&verdict));
    weft_spoke.leave();
    weft_hub.leave();
}

static void test_a_hub_that_leaves_says_so_to_one_that_has_just_connected(void)
{
    watched w;
    weft_verdict verdict;
    if (!open_both(&w) || !connect_spoke()) return;
    weft_hub.leave();
    turn_spoke(0.1);
    CHECK_EQ_INT(hub_presence(), WEFT_LEFT);
    CHECK(!is_judged(&verdict));
    weft_spoke.leave();
}

static void test_a_process_that_leaves_is_heard_by_the_hub(void)
{
    watched w;
    int n;
    if (!open_both(&w) || !connect_spoke()) return;
    weft_hub.turn(weft_seconds());
    turn_spoke(0.1);
    weft_spoke.leave();
    weft_hub.turn(weft_seconds());
    CHECK_EQ_INT(weft_hub.views(weft_seconds(), PATIENCE, &n)[1].presence, WEFT_LEFT);
    weft_hub.leave();
}

/* In a process of its own: it takes the other in, says what it does, and is no more. */
static void die_as_hub(const watched *w)
{
    weft_recorder_of(0);
    weft_hub_open(2, w->listener, &w->address);
    for (int i = 0; i < 100; i++) {
        weft_hub.turn(weft_seconds());
        usleep(5000);
    }
    _exit(0);
}

static void test_a_hub_that_dies_soon_after_it_took_a_process_in_is_lost(void)
{
    watched w = {.listener = -1};
    weft_verdict verdict;
    w.listener = weft_hub_listen(&w.address);
    if (!CHECK(w.listener >= 0) || !CHECK(weft_spoke_open(1, &w.address))) return;
    const pid_t hub = fork();
    if (hub == 0) die_as_hub(&w);
    close(w.listener);
    for (int i = 0; i < 400 && hub_presence() != WEFT_GONE; i++)
        turn_spoke(0.01);
    CHECK(is_judged(&verdict));
    CHECK_TEXT(verdict.text, "has ended without a word");
    weft_spoke.leave();
    waitpid(hub, NULL, 0);
}

int main(void)
{
    RUN(test_a_hub_that_never_took_a_process_in_is_not_said_to_be_lost);
    RUN(test_a_hub_that_leaves_says_so_to_one_that_has_just_connected);
    RUN(test_a_process_that_leaves_is_heard_by_the_hub);
    RUN(test_a_hub_that_dies_soon_after_it_took_a_process_in_is_lost);
    return weft_test_report();
}
