/* spoke: every other process's end of the watch: it tells the hub what it sees, and watches the
 * hub. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "look.h"
#include "watch.h"

static const double TRY_S = 2, GIVE_UP_S = 30, SOON_S = 0.5;

/* One a process, as the watch is. */
static struct {
    int process, deputy, next_address;
    weft_hub_address address;
    weft_link link;
    bool is_up, has_given_up, has_heard; /* from the hub, of itself */
    double opened, begun, said;          /* when; `begun`: this try to connect */
    uint64_t said_calls;                 /* of the view that was told last     */
    bool said_waiting;
    weft_recall asked, answered; /* by the hub; in the view that was told last */
    weft_rank_view views[2];     /* the hub as last heard, and this rank */
    weft_verdict verdict;
} spoke = {.link = {.file = -1}, .deputy = -1};

bool weft_spoke_open(int process, const weft_hub_address *address)
{
    spoke.process = process;
    spoke.address = *address;
    spoke.opened = weft_seconds();
    spoke.deputy = -1;
    spoke.has_heard = spoke.has_given_up = false;
    /* Should it be stopped before it has said anything. */
    spoke.views[0] = (weft_rank_view){.is_known = true, .pid = address->pid, .saved = -1};
    memcpy(spoke.views[0].host, address->host, sizeof address->host);
    snprintf(spoke.views[0].doing, sizeof spoke.views[0].doing, "starting");
    return address->n > 0;
}

static int spoke_files(struct pollfd *files, int room)
{
    if (spoke.link.file < 0 || room < 1) return 0;
    const bool has_more = !spoke.is_up || spoke.link.n_out > 0;
    files[0] = (struct pollfd){spoke.link.file, (short)(POLLIN | (has_more ? POLLOUT : 0)), 0};
    return 1;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void give_up(void)
{
    spoke.has_given_up = true;
    fprintf(stderr,
            "weft: rank %d cannot reach the watch of rank 0 on host %s, so a hang of rank %d will "
            "not be noticed; hosts must be able to connect to each other by TCP\n",
            spoke.process, spoke.address.host, spoke.process);
}

static void try_next(double now)
{
    weft_link_close(&spoke.link);
    if (now - spoke.opened > GIVE_UP_S) {
        give_up();
        return;
    }
    const int k = spoke.next_address++ % spoke.address.n;
    spoke.link = (weft_link){.file = weft_hub_connect(&spoke.address, k), .heard = now};
    spoke.begun = now;
}

static void greet(double now)
{
    weft_message hello = {
        .kind = WEFT_SAYS_HELLO, .bytes = WEFT_NONCE_BYTES, .process = spoke.process};
    memcpy(hello.body, spoke.address.nonce, WEFT_NONCE_BYTES);
    weft_link_say(&spoke.link, &hello);
    spoke.is_up = true;
    spoke.link.heard = now;
}

static void get_connected(double now)
{
    struct pollfd file = {spoke.link.file, POLLOUT, 0};
    if (spoke.link.file >= 0 && poll(&file, 1, 0) == 1) {
        if (weft_link_is_up(spoke.link.file))
            greet(now);
        else
            try_next(now);
    } else if (spoke.link.file < 0 ? now - spoke.begun > SOON_S : now - spoke.begun > TRY_S) {
        try_next(now);
    }
}

/* ---- hearing and saying ---------------------------------------------------------------------- */

static void hear(const weft_message *m)
{
    weft_rank_view *hub = &spoke.views[0];
    spoke.has_heard = true;
    if (m->kind == WEFT_SAYS_VIEW && m->bytes == sizeof *hub) {
        memcpy(hub, m->body, sizeof *hub);
        spoke.deputy = m->deputy;
    } else if (m->kind == WEFT_SAYS_VERDICT && m->bytes == sizeof spoke.verdict) {
        memcpy(&spoke.verdict, m->body, sizeof spoke.verdict);
    } else if (m->kind == WEFT_SAYS_ASK && m->bytes == sizeof spoke.asked) {
        memcpy(&spoke.asked, m->body, sizeof spoke.asked);
    } else if (m->kind == WEFT_SAYS_DIED && m->bytes == sizeof(int32_t)) {
        memcpy(&hub->signal, m->body, sizeof(int32_t));
    } else if (m->kind == WEFT_SAYS_LEFT && m->bytes == sizeof *hub) {
        memcpy(hub, m->body, sizeof *hub);
        hub->presence = WEFT_LEFT;
    }
}

static weft_message own_view(weft_message_kind kind)
{
    weft_message message = {
        .kind = kind, .bytes = sizeof(weft_rank_view), .process = spoke.process};
    memcpy(message.body, &spoke.views[1], sizeof spoke.views[1]);
    return message;
}

/* Once a second, and soon after this rank has begun to wait: whoever judges wants to know. */
static void say_view(double now)
{
    const weft_rank_view *own = &spoke.views[1];
    const bool is_new = (own->is_waiting && own->waiting > SOON_S &&
                         (own->n_begun != spoke.said_calls || !spoke.said_waiting)) ||
                        memcmp(&own->recalled, &spoke.answered, sizeof spoke.answered) != 0;
    if (!own->is_known || (now - spoke.said < 1 && !is_new)) return;
    const weft_message message = own_view(WEFT_SAYS_VIEW);
    weft_link_say(&spoke.link, &message);
    spoke.said = now;
    spoke.said_calls = own->n_begun;
    spoke.answered = own->recalled;
    spoke.said_waiting = own->is_waiting && own->waiting > SOON_S;
}

/* A connection that ends before the hub has said a word was never taken in: the kernel of a hub that has just left connects
 * too. Whether the hub left or died is not to be told from that; it is tried again, as when nobody listens yet. */
static void lose_hub(double now)
{
    weft_rank_view *hub = &spoke.views[0];
    weft_link_close(&spoke.link);
    spoke.is_up = spoke.has_heard;
    spoke.begun = now;
    if (spoke.has_heard && hub->presence != WEFT_LEFT) hub->presence = WEFT_GONE;
}

static void spoke_turn(double now)
{
    weft_message message;
    bool is_over = false;
    if (weft_n_recorders() > 0) weft_look_at(0, now, &spoke.asked, &spoke.views[1]);
    if (spoke.has_given_up) return;
    if (!spoke.is_up) get_connected(now);
    if (!spoke.is_up) return;
    while (spoke.link.file >= 0 && weft_link_hear(&spoke.link, &message, &is_over))
        hear(&message);
    if (is_over) lose_hub(now);
    if (spoke.is_up) say_view(now);
    weft_link_flush(&spoke.link);
}

/* ---- what is known --------------------------------------------------------------------------- */

static weft_rank_view *spoke_views(double now, double patience, int *n)
{
    weft_rank_view *hub = &spoke.views[0];
    hub->silent = now - spoke.link.heard;
    if (spoke.is_up && hub->presence != WEFT_LEFT && hub->presence != WEFT_GONE)
        hub->presence = hub->silent < patience / 2                          ? WEFT_PRESENT
                        : weft_link_host_answers(&spoke.link, patience / 2) ? WEFT_SILENT
                                                                            : WEFT_UNREACHABLE;
    /* Only of the hub does this process judge, and the hub of all; when the hub has left, whether
     * this rank waits for it. */
    *n = hub->presence == WEFT_LEFT && spoke.views[1].is_known ? 2 : 1;
    return spoke.views;
}

/* The hub is lost: one of the others speaks, somebody who still can. The hub may only have been
 * stopped, and must not speak too when it goes on. */
static bool spoke_tell(const weft_verdict *verdict)
{
    weft_message message = {
        .kind = WEFT_SAYS_VERDICT, .bytes = sizeof *verdict, .process = spoke.process};
    memcpy(message.body, verdict, sizeof *verdict);
    weft_link_say(&spoke.link, &message);
    const bool is_host_lost = spoke.views[0].presence == WEFT_UNREACHABLE;
    return spoke.process == (is_host_lost ? spoke.deputy : 1);
}

static const weft_verdict *spoke_told(void)
{
    return &spoke.verdict;
}

static void spoke_leave(void)
{
    if (spoke.is_up && weft_n_recorders() > 0)
        weft_look_at(0, weft_seconds(), &spoke.asked, &spoke.views[1]);
    const weft_message message = own_view(WEFT_SAYS_LEFT);
    weft_links_end(&spoke.link, spoke.is_up ? 1 : 0, &message);
    weft_link_close(&spoke.link);
    spoke.is_up = false;
}

static void spoke_forgive(double seconds)
{
    spoke.link.heard += seconds;
}

static void spoke_last_word(int signal)
{
    weft_message message = {
        .kind = WEFT_SAYS_DIED, .bytes = sizeof(int32_t), .process = spoke.process};
    const int32_t number = signal;
    memcpy(message.body, &number, sizeof number);
    if (spoke.is_up)
        (void)!send(spoke.link.file, &message, WEFT_MESSAGE_HEAD + message.bytes,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
}

const weft_watch_ends weft_spoke = {spoke_files, spoke_turn,  spoke_views,   spoke_tell,
                                    spoke_told,  spoke_leave, spoke_forgive, spoke_last_word};
