/* hub: process 0's end of the watch: it hears from all others, and so can judge. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "look.h"
#include "watch.h"

enum { STRANGERS = 64 }; /* connections that have not said who they are */

/* One a process, as the watch is. */
static struct {
    int n, listener, n_links, deputy;
    weft_hub_address address;
    weft_link *links;      /* [n + STRANGERS], the first n_links are in use */
    weft_rank_view *views; /* [n], as last heard */
    double *heard;         /* [n] when                */
    double said;
    weft_recall asked;    /* of all, until they have answered */
    weft_verdict verdict; /* heard from a process that took this one for lost */
} hub = {.listener = -1, .deputy = -1};

bool weft_hub_open(int n_processes, int listener, const weft_hub_address *address)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* one a process: more than many shells allow */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    hub.n = n_processes;
    hub.listener = listener;
    hub.address = *address;
    hub.links = calloc((size_t)n_processes + STRANGERS, sizeof *hub.links);
    hub.views = calloc((size_t)n_processes, sizeof *hub.views);
    hub.heard = calloc((size_t)n_processes, sizeof *hub.heard);
    return hub.links && hub.views && hub.heard;
}

static int hub_files(struct pollfd *files, int room)
{
    int n = 0;
    files[n++] = (struct pollfd){hub.listener, POLLIN, 0};
    for (int i = 0; i < hub.n_links && n < room; i++)
        files[n++] = (struct pollfd){hub.links[i].file,
                                     (short)(POLLIN | (hub.links[i].n_out > 0 ? POLLOUT : 0)), 0};
    return n;
}

/* ---- hearing --------------------------------------------------------------------------------- */

static void take_in(double now)
{
    int file;
    while (hub.n_links < hub.n + STRANGERS &&
           (file = accept4(hub.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        hub.links[hub.n_links++] = (weft_link){.file = file, .process = -1, .heard = now};
}

static weft_message own_view(weft_message_kind kind)
{
    weft_message message = {.kind = kind, .bytes = sizeof hub.views[0], .deputy = hub.deputy};
    memcpy(message.body, &hub.views[0], sizeof hub.views[0]);
    return message;
}

static bool hears_hello(weft_link *link, const weft_message *m)
{
    const bool is_ours = m->kind == WEFT_SAYS_HELLO && m->bytes == WEFT_NONCE_BYTES &&
                         memcmp(m->body, hub.address.nonce, WEFT_NONCE_BYTES) == 0;
    if (!is_ours || m->process <= 0 || m->process >= hub.n) return false;
    link->process = m->process;
    /* At once: who has heard nothing does not know whether it was taken in. */
    const weft_message view = own_view(WEFT_SAYS_VIEW);
    weft_link_say(link, &view);
    return true;
}

static bool hears_view(weft_link *link, const weft_message *m)
{
    weft_rank_view *view = &hub.views[link->process];
    if (m->bytes != sizeof *view) return false;
    memcpy(view, m->body, sizeof *view);
    view->host[sizeof view->host - 1] = view->doing[sizeof view->doing - 1] = '\0';
    view->busy[sizeof view->busy - 1] = '\0';
    if (view->n_channels < 0 || view->n_channels > WEFT_CHANNELS) view->n_channels = 0;
    view->rank = link->process;
    const bool is_elsewhere = strcmp(view->host, hub.address.host) != 0;
    if (is_elsewhere && (hub.deputy < 0 || link->process < hub.deputy)) hub.deputy = link->process;
    return true;
}

static bool hears_died(weft_link *link, const weft_message *m)
{
    if (m->bytes != sizeof(int32_t)) return false;
    memcpy(&hub.views[link->process].signal, m->body, sizeof(int32_t));
    return true;
}

static bool hears_left(weft_link *link, const weft_message *m)
{
    if (!hears_view(link, m)) return false;
    link->is_ending = true;
    hub.views[link->process].presence = WEFT_LEFT;
    return true;
}

static bool hears_verdict(weft_link *link, const weft_message *m)
{
    (void)link;
    if (m->bytes != sizeof hub.verdict) return false;
    memcpy(&hub.verdict, m->body, sizeof hub.verdict);
    return true;
}

/* False: nobody of ours speaks so. */
static bool hear(weft_link *link, const weft_message *m)
{
    static bool (*const hears[])(weft_link *,
                                 const weft_message *) = {[WEFT_SAYS_VIEW] = hears_view,
                                                          [WEFT_SAYS_VERDICT] = hears_verdict,
                                                          [WEFT_SAYS_DIED] = hears_died,
                                                          [WEFT_SAYS_LEFT] = hears_left};
    if (link->process < 0) return hears_hello(link, m);
    return m->kind < sizeof hears / sizeof *hears && hears[m->kind] && hears[m->kind](link, m);
}

/* Whether the link stays. */
static bool serve(weft_link *link)
{
    weft_message message;
    bool is_over;
    weft_link_flush(link);
    while (weft_link_hear(link, &message, &is_over))
        if (!hear(link, &message)) return false;
    if (link->process >= 0) hub.heard[link->process] = link->heard;
    return !is_over;
}

static void say(weft_message_kind kind, const void *body, size_t bytes)
{
    weft_message message = {.kind = kind, .bytes = (uint32_t)bytes, .deputy = hub.deputy};
    memcpy(message.body, body, bytes);
    for (int i = 0; i < hub.n_links; i++)
        if (hub.links[i].process > 0) weft_link_say(&hub.links[i], &message);
}

/* In a turn in which nothing else is said, or the link may leave it out. */
static void ask(void)
{
    const weft_recall asked = weft_views_ask(hub.views, hub.n);
    if (asked.sequence == 0) return; /* the last one's answers stay */
    hub.asked = asked;
    say(WEFT_SAYS_ASK, &asked, sizeof asked);
}

static void hub_turn(double now)
{
    take_in(now);
    if (weft_n_recorders() > 0) weft_look_at(0, now, &hub.asked, &hub.views[0]);
    for (int i = 0; i < hub.n_links; i++) {
        weft_link *link = &hub.links[i];
        if (serve(link)) continue;
        if (link->process > 0 && !link->is_ending) hub.views[link->process].presence = WEFT_GONE;
        weft_link_close(link);
        *link = hub.links[--hub.n_links];
        i--;
    }
    if (now - hub.said < 1) {
        ask();
        return;
    }
    hub.said = now;
    say(WEFT_SAYS_VIEW, &hub.views[0], sizeof hub.views[0]);
}

/* ---- what is known --------------------------------------------------------------------------- */

static weft_rank_view *hub_views(double now, double patience, int *n)
{
    for (int i = 0; i < hub.n_links; i++) {
        const int process = hub.links[i].process;
        if (process <= 0 || hub.links[i].is_ending) continue;
        weft_rank_view *view = &hub.views[process];
        view->silent = now - hub.heard[process];
        view->presence = view->silent < patience / 2                           ? WEFT_PRESENT
                         : weft_link_host_answers(&hub.links[i], patience / 2) ? WEFT_SILENT
                                                                               : WEFT_UNREACHABLE;
    }
    *n = hub.n;
    return hub.views;
}

static bool hub_tell(const weft_verdict *verdict)
{
    say(WEFT_SAYS_VERDICT, verdict, sizeof *verdict);
    return true;
}

static const weft_verdict *hub_told(void)
{
    return &hub.verdict;
}

/* Those that have just connected are taken in first: they would see the connection end, and nothing said. */
static void hub_leave(void)
{
    hub_turn(weft_seconds());
    const weft_message message = own_view(WEFT_SAYS_LEFT);
    weft_links_end(hub.links, hub.n_links, &message);
    close(hub.listener);
    free(hub.links);
    free(hub.views);
    free(hub.heard);
    hub.n_links = 0;
    hub.listener = hub.deputy = -1;
}

static void hub_forgive(double seconds)
{
    for (int i = 0; i < hub.n_links; i++)
        hub.links[i].heard += seconds; /* which every turn copies to hub.heard */
    for (int i = 0; i < hub.n; i++)
        hub.heard[i] += seconds;
}

static void hub_last_word(int signal)
{
    weft_message message = {.kind = WEFT_SAYS_DIED, .bytes = sizeof(int32_t)};
    const int32_t number = signal;
    memcpy(message.body, &number, sizeof number);
    for (int i = 0; i < hub.n_links; i++)
        (void)!send(hub.links[i].file, &message, WEFT_MESSAGE_HEAD + message.bytes,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
}

const weft_watch_ends weft_hub = {hub_files, hub_turn,  hub_views,   hub_tell,
                                  hub_told,  hub_leave, hub_forgive, hub_last_word};
