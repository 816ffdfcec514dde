/* wire.h (private): messages between the watching threads, over TCP connections of their own: MPI may be what hangs.
 *
 * Everybody is connected to process 0, the hub, and to nobody else: a job that has lost process 0 is lost anyway. Nothing
 * here waits, but to end. All Local.
 */
#ifndef WEFT_WIRE_H
#define WEFT_WIRE_H

#include <netinet/in.h>

#include "view.h"

enum { WEFT_HUB_ADDRESSES = 8, WEFT_MESSAGE_BYTES = 3072, WEFT_NONCE_BYTES = 16 };

/* Where the hub listens: the bytes that it tells all processes at the start. */
typedef struct weft_hub_address {
    unsigned char nonce[WEFT_NONCE_BYTES]; /* who cannot show it is not of this job */
    char host[WEFT_HOST_BYTES];
    int32_t pid, n;
    struct sockaddr_in6 addresses[WEFT_HUB_ADDRESSES]; /* IPv4 as ::ffff:a.b.c.d */
} weft_hub_address;

typedef enum weft_message_kind {
    WEFT_SAYS_HELLO = 1, /* nonce            */
    WEFT_SAYS_VIEW,      /* weft_rank_view   */
    WEFT_SAYS_VERDICT,   /* weft_verdict     */
    WEFT_SAYS_DIED,      /* int32_t signal   */
    WEFT_SAYS_LEFT,      /* weft_rank_view: the last, for how far it has come is judged by it */
    WEFT_SAYS_ASK        /* weft_recall: a call that the hub wants to know of */
} weft_message_kind;

typedef struct weft_message {
    uint32_t kind, bytes; /* of body */
    int32_t process;      /* who says it */
    int32_t deputy; /* from the hub: the lowest process on another host than its own; -1: none */
    char body[WEFT_MESSAGE_BYTES];
} weft_message;
_Static_assert(sizeof(weft_rank_view) <= WEFT_MESSAGE_BYTES, "a view is one message");
enum { WEFT_MESSAGE_HEAD = offsetof(weft_message, body) };

typedef struct weft_link {
    int file;       /* -1: none */
    int process;    /* -1: has not said hello yet */
    double heard;   /* when anything came */
    bool is_ending; /* it has said that it leaves */
    size_t n_in, n_out, out_at;
    char in[sizeof(weft_message)], out[sizeof(weft_message)];
} weft_link;

double weft_seconds(void); /* monotonic */

/* Listen, on any port; fills all of `address`. Returns the listener, -1: no network. */
int weft_hub_listen(weft_hub_address *address);
/* Begin to connect to the k-th address; the connection is there when poll says that it can be written. -1: it cannot be. */
int weft_hub_connect(const weft_hub_address *address, int k);
/* Whether a connection that was begun is there. */
bool weft_link_is_up(int file);

/* weft_link_say - queue a message, unless one is still on its way: what is said every second may be left out once. */
void weft_link_say(weft_link *link, const weft_message *message);
/* Send what can be sent. */
void weft_link_flush(weft_link *link);
/* weft_link_hear - the next whole message. False: none yet. *is_over: the other side is gone. */
bool weft_link_hear(weft_link *link, weft_message *message, bool *is_over);
void weft_link_close(weft_link *link);
/* weft_links_end - a last word on all of them; each is closed when the other side has closed it, or after a moment. The one
 * thing here that waits: a second at most. */
void weft_links_end(weft_link *links, int n, const weft_message *last);
/* Whether the other side's kernel has confirmed anything within `seconds`. */
bool weft_link_host_answers(const weft_link *link, double seconds);

#endif
