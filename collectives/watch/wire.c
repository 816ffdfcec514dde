/* wire: messages between the watching threads. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double weft_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void add_address(weft_hub_address *hub, const struct sockaddr *from, in_port_t port)
{
    struct sockaddr_in6 *to = &hub->addresses[hub->n];
    if (hub->n == WEFT_HUB_ADDRESSES) return;
    *to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
    if (from->sa_family == AF_INET) {
        to->sin6_addr.s6_addr[10] = to->sin6_addr.s6_addr[11] = 0xff;
        memcpy(to->sin6_addr.s6_addr + 12,
               &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else {
        to->sin6_addr = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr)) return; /* needs an interface to mean anything */
    }
    hub->n++;
}

/* Other hosts' ways first, then the way within this host. */
static void list_addresses(weft_hub_address *hub, in_port_t port)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (int is_own = 0; is_own < 2; is_own++) {
        for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
            const bool is_loopback = i->ifa_flags & IFF_LOOPBACK;
            if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || is_loopback != (is_own == 1)) continue;
            if (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6)
                add_address(hub, i->ifa_addr, port);
        }
    }
    freeifaddrs(all);
}

/* IPv6 sockets speak IPv4 too; where the kernel has no IPv6, there is IPv4 alone. */
static int open_socket(int *family)
{
    const int off = 0;
    *family = AF_INET6;
    int file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file >= 0) {
        setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        return file;
    }
    *family = AF_INET;
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The same address as the family wants it; 0: it cannot be said in that family. */
static socklen_t address_for(int family, const struct sockaddr_in6 *address,
                             struct sockaddr_storage *room)
{
    memset(room, 0, sizeof *room);
    if (family == AF_INET6) {
        memcpy(room, address, sizeof *address);
        return sizeof *address;
    }
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = address->sin6_port};
    memcpy(&four.sin_addr, address->sin6_addr.s6_addr + 12, 4);
    memcpy(room, &four, sizeof four);
    const bool is_four =
        IN6_IS_ADDR_V4MAPPED(&address->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&address->sin6_addr);
    return is_four ? sizeof four : 0;
}

int weft_hub_listen(weft_hub_address *address)
{
    int family;
    struct sockaddr_storage room;
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    *address = (weft_hub_address){0};
    gethostname(address->host, sizeof address->host - 1);
    address->pid = (int32_t)getpid();
    const int file = open_socket(&family);
    if (file < 0) return -1;
    socklen_t bytes = address_for(family, &any, &room);
    if (getrandom(address->nonce, sizeof address->nonce, 0) != sizeof address->nonce ||
        bind(file, (struct sockaddr *)&room, bytes) != 0 || listen(file, 1024) != 0 ||
        getsockname(file, (struct sockaddr *)&room, &bytes) != 0) {
        close(file);
        return -1;
    }
    list_addresses(address, family == AF_INET6 ? ((struct sockaddr_in6 *)&room)->sin6_port
                                               : ((struct sockaddr_in *)&room)->sin_port);
    return file;
}

int weft_hub_connect(const weft_hub_address *address, int k)
{
    int family;
    struct sockaddr_storage room;
    const int file = open_socket(&family);
    if (file < 0) return -1;
    const socklen_t bytes = address_for(family, &address->addresses[k], &room);
    if (bytes > 0 && (connect(file, (struct sockaddr *)&room, bytes) == 0 || errno == EINPROGRESS))
        return file;
    close(file);
    return -1;
}

bool weft_link_is_up(int file)
{
    int code = 0;
    socklen_t bytes = sizeof code;
    return getsockopt(file, SOL_SOCKET, SO_ERROR, &code, &bytes) == 0 && code == 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

void weft_link_flush(weft_link *link)
{
    while (link->file >= 0 && link->out_at < link->n_out) {
        const ssize_t n = send(link->file, link->out + link->out_at, link->n_out - link->out_at,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return;                                                    /* full */
        link->out_at = n > 0 ? link->out_at + (size_t)n : link->n_out; /* gone: hearing tells */
    }
    link->n_out = link->out_at = 0;
}

void weft_link_say(weft_link *link, const weft_message *message)
{
    weft_link_flush(link);
    if (link->file < 0 || link->n_out > 0) return;
    link->n_out = WEFT_MESSAGE_HEAD + message->bytes;
    memcpy(link->out, message, link->n_out);
    weft_link_flush(link);
}

/* A whole message at the start of what has come. */
static bool take_message(weft_link *link, weft_message *message, bool *is_over)
{
    if (link->n_in < WEFT_MESSAGE_HEAD) return false;
    memcpy(message, link->in, WEFT_MESSAGE_HEAD);
    if (message->bytes > sizeof message->body) {
        *is_over = true; /* no process of ours says such a thing */
        return false;
    }
    const size_t bytes = WEFT_MESSAGE_HEAD + message->bytes;
    if (link->n_in < bytes) return false;
    memcpy(message, link->in, bytes);
    memmove(link->in, link->in + bytes, link->n_in - bytes);
    link->n_in -= bytes;
    return true;
}

bool weft_link_hear(weft_link *link, weft_message *message, bool *is_over)
{
    *is_over = false;
    while (!take_message(link, message, is_over)) {
        if (*is_over) return false;
        const ssize_t n =
            recv(link->file, link->in + link->n_in, sizeof link->in - link->n_in, MSG_DONTWAIT);
        if (n > 0) {
            link->n_in += (size_t)n;
            link->heard = weft_seconds();
            continue;
        }
        *is_over = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
        return false;
    }
    return true;
}

void weft_link_close(weft_link *link)
{
    if (link->file >= 0) close(link->file);
    link->file = -1;
    link->n_in = link->n_out = link->out_at = 0;
}

/* False: it is not so by then. */
static bool wait_for(const weft_link *link, short event, double until)
{
    struct pollfd file = {link->file, event, 0};
    const int ms = (int)ceil(1000 * fmax(until - weft_seconds(), 0));
    return link->file >= 0 && poll(&file, 1, ms) == 1;
}

static void say_last(weft_link *link, const weft_message *last, double until)
{
    while (link->n_out > 0 && wait_for(link, POLLOUT, until)) /* what is half said */
        weft_link_flush(link);
    weft_link_say(link, last);
    while (link->n_out > 0 && wait_for(link, POLLOUT, until))
        weft_link_flush(link);
    if (link->file >= 0) shutdown(link->file, SHUT_WR);
}

void weft_links_end(weft_link *links, int n, const weft_message *last)
{
    static const double SAYING_S = 0.7, CLOSING_S = 0.3;
    char rest[512];
    const double until = weft_seconds() + SAYING_S;
    for (int i = 0; i < n; i++)
        say_last(&links[i], last, until);
    const double closed = weft_seconds() + CLOSING_S;
    for (int i = 0; i < n; i++) {
        /* What lay unread here would make the kernel break the connection off, the last word with it. */
        while (wait_for(&links[i], POLLIN, closed) &&
               recv(links[i].file, rest, sizeof rest, 0) > 0) {
        }
        weft_link_close(&links[i]);
    }
}

bool weft_link_host_answers(const weft_link *link, double seconds)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    return link->file >= 0 && getsockopt(link->file, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           1e-3 * info.tcpi_last_ack_recv < seconds;
}
