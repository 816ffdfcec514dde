/* fake_memory: one file in memory, mapped twice (fake_device.h). */
#include "fake_parts.h"

#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over blocks */

static const size_t ROOM = (size_t)1
                           << 38; /* of addresses; pages are there when they are written */
enum { GAP = 4096 };

typedef struct block {
    const char *begin;
    size_t bytes;
    bool is_taken;
} block;

static char *handed, *real; /* the two mappings */
static size_t used;
static block *blocks; /* of the device, by address, as they were taken */
static size_t n_blocks, room_blocks;

static char *map(int file, int protection)
{
    void *at = mmap(NULL, ROOM, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) perror("fake device: mmap"), exit(1);
    return at;
}

void fake_open_memory(void)
{
    const int file = memfd_create("fake device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)ROOM) != 0) perror("fake device: memory"), exit(1);
    handed = map(file, PROT_NONE);
    real = map(file, PROT_READ | PROT_WRITE);
    close(file);
}

bool fake_is_handed(const void *at)
{
    return (const char *)at >= handed && (const char *)at < handed + ROOM;
}

void *fake_move(const void *at)
{
    return fake_is_handed(at) ? real + ((const char *)at - handed) : (void *)(uintptr_t)at;
}

static weft_status take_filled(size_t bytes, int with, void **memory, weft_error *error)
{
    *memory = NULL;
    if (bytes > ROOM / 4) return weft_fail_memory(error, bytes);
    pthread_mutex_lock(&lock);
    if (n_blocks == room_blocks) {
        room_blocks = 2 * room_blocks + 64;
        blocks = realloc(blocks, room_blocks * sizeof *blocks);
    }
    char *at = handed + used;
    used += (bytes + 2 * GAP - 1) / GAP * GAP;
    if (used > ROOM || blocks == NULL) fputs("fake device: out of addresses\n", stderr), exit(1);
    blocks[n_blocks++] = (block){at, bytes, true};
    pthread_mutex_unlock(&lock);
    if (with != 0) memset(fake_move(at), with, bytes);
    *memory = at;
    return WEFT_OK;
}

weft_status fake_take(weft_stream *stream, size_t bytes, void **memory, weft_error *error)
{
    (void)stream;
    return take_filled(bytes, 0xFF, memory, error);
}

weft_status fake_take_zeroed(weft_stream *stream, size_t bytes, void **memory, weft_error *error)
{
    (void)stream;
    return take_filled(bytes, 0, memory, error);
}

static block *block_of(const char *at)
{
    size_t low = 0, high = n_blocks;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (blocks[middle].begin <= at)
            low = middle;
        else
            high = middle;
    }
    return n_blocks > 0 && blocks[low].begin <= at ? &blocks[low] : NULL;
}

void fake_give(weft_stream *stream, void *memory, size_t bytes)
{
    (void)stream;
    if (memory == NULL) return;
    pthread_mutex_lock(&lock);
    block *b = block_of(memory);
    const bool is_right = b != NULL && b->begin == memory && b->bytes == bytes && b->is_taken;
    if (is_right) b->is_taken = false;
    pthread_mutex_unlock(&lock);
    if (!is_right) fake_note(FAKE_DEAD, "memory was given back that is not taken, or not so much");
    madvise(fake_move(memory), (bytes + GAP - 1) / GAP * GAP, MADV_REMOVE);
}

bool fake_is_alive(const char *at, int64_t bytes)
{
    if (!fake_is_handed(at)) return true;
    pthread_mutex_lock(&lock);
    const block *b = block_of(at);
    const bool is = b != NULL && b->is_taken && at + bytes <= b->begin + b->bytes;
    pthread_mutex_unlock(&lock);
    return is;
}

weft_status fake_take_staging(size_t bytes, void **memory, weft_error *error)
{
    *memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (*memory == NULL) return weft_fail_memory(error, bytes);
    memset(*memory, 0, bytes);
    return WEFT_OK;
}

void fake_give_staging(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}
