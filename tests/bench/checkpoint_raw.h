/* checkpoint_raw.h: plain writes and reads of as many bytes, by one process while the others sleep: what saves and restores are
 * measured against. */
#ifndef TEST_CHECKPOINT_RAW_H
#define TEST_CHECKPOINT_RAW_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "weft/collectives.h"

enum { PIECE = 4 << 20, PATH = 3000 };

static weft_world world;
static char directory[PATH];

static weft_status path_in_directory(char *path, const char *name)
{
    snprintf(path, PATH + 100, "%s/%s", directory, name);
    return WEFT_OK;
}

/* What a system call that should not fail has said. */
static void must(bool is_good, const char *what)
{
    if (is_good) return;
    perror(what);
    exit(1);
}

/* Seconds to write and sync `bytes` bytes; the memory they come from is touched before. */
static double raw_write(int64_t bytes)
{
    static char *piece;
    char path[PATH + 100];
    path_in_directory(path, "raw");
    if (piece == NULL) must((piece = malloc(PIECE)) != NULL, "malloc");
    for (int64_t i = 0; i < PIECE; i++)
        piece[i] = (char)(i * 131 >> 3);
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    must(file >= 0 && posix_fallocate(file, 0, bytes) == 0, path);
    const double begin = bench_now();
    for (int64_t at = 0; at < bytes; at += PIECE) {
        const int64_t n = bytes - at < PIECE ? bytes - at : PIECE;
        must(pwrite(file, piece, (size_t)n, at) == n, path);
    }
    must(fsync(file) == 0, path);
    const double took = bench_now() - begin;
    close(file);
    unlink(path);
    return took;
}

static double raw_read(const char *path)
{
    static char *piece;
    if (piece == NULL) must((piece = calloc(1, PIECE)) != NULL, "calloc");
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    must(file >= 0, path);
    const double begin = bench_now();
    ssize_t n;
    for (int64_t at = 0; (n = pread(file, piece, PIECE, at)) > 0;)
        at += n;
    const double took = bench_now() - begin;
    close(file);
    return took;
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double raw_cpu; /* of the last at_root */

/* The root measures while the others sleep: one that waits in MPI would take its core. */
static double at_root(double (*measure)(const void *), const void *argument)
{
    char path[PATH + 100];
    double took = 0.0;
    weft_error error = {0};
    path_in_directory(path, "root-is-done");
    if (world.process == 0) {
        const double begin = processor_seconds();
        took = measure(argument);
        raw_cpu = processor_seconds() - begin;
        const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        must(file >= 0, path);
        close(file);
    }
    while (access(path, F_OK) != 0)
        usleep(1000);
    must(weft_world_agree(&error) == WEFT_OK, "agree");
    if (world.process == 0) unlink(path);
    must(weft_world_agree(&error) == WEFT_OK, "agree");
    return took;
}

static double raw_write_of(const void *bytes)
{
    return raw_write(*(const int64_t *)bytes);
}

static double raw_read_of(const void *path)
{
    return raw_read(path);
}

/* Clean pages out of the cache. False where that is not allowed. */
static bool drop_cache(void)
{
    sync();
    const int file = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    const bool is_dropped = file >= 0 && write(file, "1\n", 2) == 2;
    if (file >= 0) close(file);
    return is_dropped;
}

#endif
