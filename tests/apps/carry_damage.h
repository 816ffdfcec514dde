/* carry_damage.h: files damaged by chance: what is read, changed in one or several places, and written. */
#ifndef TEST_CARRY_DAMAGE_H
#define TEST_CARRY_DAMAGE_H

#include <ftw.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { MOST = 1 << 18 };

typedef struct bytes {
    char data[MOST];
    size_t n;
} bytes;

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t chance = 88172645463325252u;

static uint64_t next(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    return chance ^= chance << 17;
}

static size_t below(size_t n)
{
    return n > 0 ? (size_t)(next() % n) : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void read_bytes(const char *path, bytes *b)
{
    FILE *file = fopen(path, "rb");
    b->n = file ? fread(b->data, 1, MOST, file) : 0;
    if (file) fclose(file);
    CHECK(b->n > 0 && b->n < MOST / 2);
}

static void write_bytes(const char *path, const bytes *b)
{
    FILE *file = fopen(path, "wb");
    if (!CHECK(file != NULL)) return;
    fwrite(b->data, 1, b->n, file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool is_there(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void insert(bytes *b, size_t at, const char *what, size_t n)
{
    if (b->n + n > MOST) return;
    memmove(b->data + at + n, b->data + at, b->n - at);
    memcpy(b->data + at, what, n);
    b->n += n;
}

static void take_out(bytes *b, size_t at, size_t n)
{
    if (n > b->n - at) n = b->n - at;
    memmove(b->data + at, b->data + at + n, b->n - at - n);
    b->n -= n;
}

static void flip_bit(bytes *b, size_t at)
{
    b->data[at] = (char)(b->data[at] ^ 1 << below(8));
}

static void set_byte(bytes *b, size_t at)
{
    b->data[at] = (char)next();
}

/* An integer that somebody may add to, multiply, or believe. */
static void set_integer(bytes *b, size_t at)
{
    static const uint64_t odd[] = {0,         1,          0xFF,        0x7FFF,
                                   0xFFFF,    0x7FFFFFFF, 0xFFFFFFFF,  UINT64_C(1) << 32,
                                   INT64_MAX, UINT64_MAX, 0x80000000u, UINT64_C(1) << 63};
    const uint64_t number = odd[below(sizeof odd / sizeof *odd)];
    const size_t width = (size_t)1 << below(4);
    for (size_t i = 0; i < width && at + i < b->n; i++)
        b->data[at + i] = (char)(number >> 8 * i);
}

/* One place's bytes at another: pointers that lead elsewhere, messages in the wrong place. */
static void copy_over(bytes *b, size_t at)
{
    const size_t from = below(b->n), n = 1 + below(64);
    if (from + n <= b->n && at + n <= b->n) memmove(b->data + at, b->data + from, n);
}

static void cut(bytes *b, size_t at)
{
    if (below(8) == 0) b->n = at + 1;
}

static void grow(bytes *b, size_t at)
{
    char what[16];
    for (size_t i = 0; i < sizeof what; i++)
        what[i] = (char)next();
    insert(b, at, what, 1 + below(sizeof what));
}

static void shrink(bytes *b, size_t at)
{
    take_out(b, at, 1 + below(16));
}

static void (*const damages[])(bytes *, size_t) = {flip_bit,  flip_bit, set_byte, set_integer,
                                                   copy_over, cut,      grow,     shrink};

/* A copy of `from` with 1 to 8 damages; those that move bytes are rare, as they break all at once.
 */
static void damage(const bytes *from, bytes *to)
{
    memcpy(to->data, from->data, from->n);
    to->n = from->n;
    const int n = below(2) == 0 ? 1 : 2 + (int)below(7);
    const size_t kinds = below(4) == 0 ? 8 : 5;
    for (int i = 0; i < n && to->n > 0; i++)
        damages[below(kinds)](to, below(to->n));
}

#endif
