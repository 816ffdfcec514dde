/* arena.h: memory that is taken in small pieces and given back at once.
 *
 *     weft_arena *arena = weft_arena_create();
 *     char *name = weft_arena_text(arena, "layer%d", 3);
 *     weft_arena_destroy(&arena);
 */
#ifndef WEFT_ARENA_H
#define WEFT_ARENA_H

#include "weft/error.h"

WEFT_BEGIN

typedef struct weft_arena weft_arena;

/* Local. NULL when out of memory. Not safe for use from two threads at once. A NULL arena or text gives NULL. */
WEFT_API weft_arena *weft_arena_create(void);
WEFT_API void weft_arena_destroy(weft_arena **arena);

/* weft_arena_take - `bytes` zeroed bytes, aligned to 16; NULL when out of memory. Local. */
WEFT_API void *weft_arena_take(weft_arena *arena, size_t bytes);

/* weft_arena_copy - a copy of `bytes` bytes at `from`; NULL when out of memory. Local. */
WEFT_API void *weft_arena_copy(weft_arena *arena, const void *from, size_t bytes);

/* weft_arena_text - printf into the arena; NULL when out of memory. Local. */
WEFT_API char *weft_arena_text(weft_arena *arena, const char *format, ...) WEFT_FORMAT(2, 3);

/* weft_arena_intern - the one copy in this arena of a text: equal texts give equal pointers. Local. */
WEFT_API const char *weft_arena_intern(weft_arena *arena, const char *text);

WEFT_END

#endif
