/* delay_line: what enters a network device of its own leaves it again, so much later and no faster than so many bytes a
 * second: the cable of a far host, for kernels without netem.
 *
 *   delay_line DEVICE DELAY_US [BYTES_A_SECOND]   makes the tap device and keeps it until it is ended
 *   delay_line check                              exit status 77, with the reason, where this machine has no such devices
 *
 * Frames stay as large as TCP makes them (a tap with segmentation offload: up to 64 KiB), and each is copied in and
 * out once. While some wait it sleeps by its clock alone, a whole delay at a time, so that a fast stream does not
 * wake it for every frame. A frame is thus late or early by half of the delay at most. Both cores may be computing:
 * what it takes of them is what it disturbs. SIGTERM ends it, with a line of what it carried and what that cost.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_FRAMES = 1024,           /* that wait; what comes then is dropped, as a switch does */
    FRAME_BYTES = 10 + 66 * 1024, /* a virtio_net_hdr, and the largest segment with its headers */
    LEAST_DOZE = 20000,           /* ns */
    SKIPPED = 77
};

typedef struct frame {
    int64_t due; /* ns */
    ssize_t bytes;
    char data[FRAME_BYTES];
} frame;

typedef struct line {
    int tap;
    int64_t delay, doze;         /* ns */
    double ns_per_byte;          /* 0: as fast as it comes */
    int64_t last;                /* when the last byte of what came before has left */
    frame *waiting[MOST_FRAMES]; /* [n] from `first`, around the end: in the order they came */
    int first, n;
    frame *unused[MOST_FRAMES + 1]; /* the last used on top: still in the cache */
    int n_unused;
    int64_t carried, carried_bytes, dropped;
} line;

static volatile sig_atomic_t is_over;

static void end(int number)
{
    (void)number;
    is_over = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int skip(const char *what)
{
    printf("skipped: %s: %s\n", what, strerror(errno));
    return SKIPPED;
}

/* Segments are cut, and sums made, by whoever takes them in the end: nobody. */
static int open_tap(const char *name, const char **what)
{
    struct ifreq device = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(device.ifr_name, sizeof device.ifr_name, "%s", name);
    *what = "cannot open /dev/net/tun";
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0) return -1;
    *what = "this machine lets nobody make a tap device";
    if (ioctl(tap, TUNSETIFF, &device) < 0) return -1;
    *what = "tap devices without segmentation offload";
    if (ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0) return -1;
    return tap;
}

static frame *take_frame(line *l)
{
    return l->n_unused > 0 ? l->unused[--l->n_unused] : malloc(sizeof(frame));
}

static void give_frame(line *l, frame *f)
{
    l->unused[l->n_unused++] = f;
}

/* The cable takes one frame after the other, each at its rate, and all so much later. */
static int64_t due_of(line *l, ssize_t bytes, int64_t now)
{
    if (l->last < now) l->last = now;
    l->last += (int64_t)(l->ns_per_byte * (double)bytes);
    return l->last + l->delay - l->doze / 2;
}

/* All that has come; what finds no room is read too, and lost. */
static void read_frames(line *l)
{
    for (frame *f; (f = take_frame(l)) != NULL;) {
        f->bytes = read(l->tap, f->data, sizeof f->data);
        if (f->bytes <= 0 || l->n == MOST_FRAMES) {
            l->dropped += f->bytes > 0;
            is_over |= f->bytes < 0 && errno != EAGAIN && errno != EINTR; /* the device is gone */
            give_frame(l, f);
            if (f->bytes <= 0) return;
            continue;
        }
        f->due = due_of(l, f->bytes, now_ns());
        l->waiting[(l->first + l->n++) % MOST_FRAMES] = f;
    }
}

static void write_frames(line *l)
{
    while (l->n > 0 && l->waiting[l->first]->due <= now_ns()) {
        frame *f = l->waiting[l->first];
        if (write(l->tap, f->data, (size_t)f->bytes) < 0) l->dropped++;
        l->carried++;
        l->carried_bytes += f->bytes;
        l->first = (l->first + 1) % MOST_FRAMES;
        l->n--;
        give_frame(l, f);
    }
}

static void sleep_until_next(const line *l)
{
    struct pollfd came = {.fd = l->tap, .events = POLLIN};
    if (l->n == 0) {
        (void)!poll(&came, 1, -1);
        return;
    }
    int64_t left = l->waiting[l->first]->due - now_ns();
    if (left > l->doze) left = l->doze;
    const struct timespec doze = {.tv_nsec = left > 0 ? left : 0};
    if (left > 0) nanosleep(&doze, NULL);
}

static int carry(line *l)
{
    struct rusage used;
    while (!is_over) {
        read_frames(l);
        write_frames(l);
        sleep_until_next(l);
    }
    getrusage(RUSAGE_SELF, &used);
    printf("%lld frames, %.1f MB, %lld dropped, %.2f s of a core\n", (long long)l->carried,
           1e-6 * (double)l->carried_bytes, (long long)l->dropped,
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec));
    return 0;
}

int main(int n, char **arguments)
{
    static line l;
    const char *what;
    const bool checks = n == 2 && strcmp(arguments[1], "check") == 0;
    if (!checks && n != 3 && n != 4) {
        fprintf(stderr, "delay_line DEVICE DELAY_US [BYTES_A_SECOND], or delay_line check\n");
        return 2;
    }
    l.tap = open_tap(checks ? "weftcheck%d" : arguments[1], &what);
    if (l.tap < 0) return skip(what);
    if (checks) return 0;
    l.delay = (int64_t)(1e3 * strtod(arguments[2], NULL));
    l.doze = l.delay > LEAST_DOZE ? l.delay : LEAST_DOZE;
    const double rate = n == 4 ? strtod(arguments[3], NULL) : 0;
    l.ns_per_byte = rate > 0 ? 1e9 / rate : 0;
    signal(SIGTERM, end);
    prctl(PR_SET_TIMERSLACK, 1000);
    return carry(&l);
}
