/* arena: memory taken in small pieces from blocks that grow, given back at once; texts kept once by hash.
 *
 * Some hold a plan and some the notes of one loop: blocks begin small, since all of a block is zeroed. */
#include "weft/arena.h"

#include "mesh_internal.h"
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4 << 10, MOST_BYTES = 4 << 20, ALIGNMENT = 16, BUCKETS = 512 };

/* No graph has so much to say: somebody's size overflowed. */
static const size_t TOO_MUCH = (size_t)1 << 39;

typedef struct block {
    struct block *next;
    size_t used, bytes; /* of data */
    _Alignas(ALIGNMENT) char data[];
} block;

typedef struct kept_text {
    struct kept_text *next;
    uint32_t hash;
    char text[];
} kept_text;

struct weft_arena {
    block *blocks; /* newest first; only the newest has room */
    size_t next;   /* bytes of the next block: they double, up to MOST_BYTES; 0: BLOCK_BYTES */
    kept_text **buckets; /* [BUCKETS], from the first text on; before it NULL */
};

weft_arena *weft_arena_create(void)
{
    return calloc(1, sizeof(weft_arena));
}

/* Zeroed. A plan of thousands of steps fills the largest blocks, and a fault a page would take as long as making it: they
 * lie on huge pages. A small plan would touch more than it needs. */
static block *take_block(size_t bytes)
{
    void *taken = NULL;
    if (bytes < MOST_BYTES) return calloc(1, bytes);
    return weft_host_take(bytes, &taken, NULL) == WEFT_OK ? taken : NULL;
}

static void give_block(block *b)
{
    const size_t bytes = sizeof *b + b->bytes;
    if (bytes < MOST_BYTES)
        free(b);
    else
        weft_host_give(b, bytes);
}

/* A new block in front, with room for `bytes`. A large piece gets a block of its own behind the
 * newest, so that the room left in that one is not lost. */
static block *add_block(weft_arena *arena, size_t bytes)
{
    const size_t usual = (arena->next > 0 ? arena->next : BLOCK_BYTES) - sizeof(block);
    const bool is_usual = bytes <= usual / 4;
    const size_t capacity = is_usual ? usual : bytes;
    block *b = take_block(sizeof *b + capacity);
    if (b == NULL) return NULL;
    b->bytes = capacity;
    if (!is_usual && arena->blocks != NULL) {
        b->next = arena->blocks->next;
        arena->blocks->next = b;
    } else {
        b->next = arena->blocks;
        arena->blocks = b;
    }
    if (is_usual && arena->next < MOST_BYTES) arena->next = 2 * (usual + sizeof(block));
    return b;
}

void weft_arena_destroy(weft_arena **arena)
{
    if (arena == NULL || *arena == NULL) return;
    for (block *b = (*arena)->blocks, *next; b != NULL; b = next) {
        next = b->next;
        give_block(b);
    }
    free(*arena);
    *arena = NULL;
}

void *weft_arena_take(weft_arena *arena, size_t bytes)
{
    if (arena == NULL || bytes > TOO_MUCH) return NULL;
    bytes = bytes == 0 ? ALIGNMENT : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    block *b = arena->blocks;
    if (b == NULL || b->bytes - b->used < bytes) b = add_block(arena, bytes);
    if (b == NULL) return NULL;
    void *piece = b->data + b->used; /* zeroed: from calloc, and given out once */
    b->used += bytes;
    return piece;
}

void *weft_arena_copy(weft_arena *arena, const void *from, size_t bytes)
{
    void *copy = from != NULL || bytes == 0 ? weft_arena_take(arena, bytes) : NULL;
    if (copy != NULL && bytes > 0) memcpy(copy, from, bytes);
    return copy;
}

char *weft_arena_text(weft_arena *arena, const char *format, ...)
{
    va_list arguments, again;
    if (arena == NULL || format == NULL) return NULL;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = weft_text_formatv(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : weft_arena_take(arena, (size_t)length + 1);
    if (text != NULL) weft_text_formatv(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

static uint32_t hash_of(const char *text) /* FNV-1a */
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

const char *weft_arena_intern(weft_arena *arena, const char *text)
{
    if (arena == NULL || text == NULL) return NULL;
    uint32_t hash = hash_of(text);
    if (arena->buckets == NULL)
        arena->buckets = weft_arena_take(arena, BUCKETS * sizeof *arena->buckets);
    if (arena->buckets == NULL) return NULL;
    kept_text **bucket = &arena->buckets[hash % BUCKETS];
    for (kept_text *kept = *bucket; kept != NULL; kept = kept->next)
        if (kept->hash == hash && strcmp(kept->text, text) == 0) return kept->text;
    size_t bytes = strlen(text) + 1;
    kept_text *kept = weft_arena_take(arena, sizeof *kept + bytes);
    if (kept == NULL) return NULL;
    kept->hash = hash;
    memcpy(kept->text, text, bytes);
    kept->next = *bucket;
    *bucket = kept;
    return kept->text;
}
