/* arena_test: pieces are zeroed, aligned, apart from each other; equal texts are one. */
#include "weft/arena.h"

#include <stdint.h>

#include "test.h"

static bool is_filled(const unsigned char *piece, size_t bytes, unsigned char value)
{
    for (size_t i = 0; i < bytes; i++)
        if (piece[i] != value) return false;
    return true;
}

static void test_pieces_are_zeroed_aligned_and_apart(void)
{
    enum { N = 2000 };
    static unsigned char *pieces[N];
    static size_t bytes[N];
    weft_arena *arena = weft_arena_create();
    if (!CHECK(arena != NULL)) return;
    for (int i = 0; i < N; i++) {
        bytes[i] = i % 97 == 0 ? 100000 + (size_t)i : (size_t)(i * 7 % 300);
        pieces[i] = weft_arena_take(arena, bytes[i]);
        if (!CHECK(pieces[i] != NULL)) return;
        CHECK_EQ_INT((uintptr_t)pieces[i] % 16, 0);
        CHECK(is_filled(pieces[i], bytes[i], 0));
        memset(pieces[i], i % 251 + 1, bytes[i]);
    }
    for (int i = 0; i < N; i++)
        CHECK(is_filled(pieces[i], bytes[i], (unsigned char)(i % 251 + 1)));
    weft_arena_destroy(&arena);
    CHECK(arena == NULL);
    weft_arena_destroy(&arena);
}

static void test_too_much_is_null(void)
{
    weft_arena *arena = weft_arena_create();
    CHECK(weft_arena_take(arena, SIZE_MAX) == NULL);
    CHECK(weft_arena_take(arena, SIZE_MAX / 2) == NULL);
    CHECK(weft_arena_take(arena, 10) != NULL);
    weft_arena_destroy(&arena);
}

static void test_text_and_copy(void)
{
    weft_arena *arena = weft_arena_create();
    CHECK(strcmp(weft_arena_text(arena, "layer%d", 3), "layer3") == 0);
    CHECK(strcmp(weft_arena_text(arena, "%s", ""), "") == 0);
    const int numbers[] = {4, 5, 6};
    CHECK(memcmp(weft_arena_copy(arena, numbers, sizeof numbers), numbers, sizeof numbers) == 0);
    CHECK(weft_arena_copy(arena, NULL, 0) != NULL);
    weft_arena_destroy(&arena);
}

static void test_equal_texts_are_one(void)
{
    enum { N = 3000 };
    static const char *kept[N];
    weft_arena *arena = weft_arena_create();
    char text[32];
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "name%d", i);
        kept[i] = weft_arena_intern(arena, text);
        CHECK(kept[i] != text && strcmp(kept[i], text) == 0);
    }
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "name%d", i);
        CHECK(weft_arena_intern(arena, text) == kept[i]);
    }
    CHECK(kept[0] != kept[1]);
    weft_arena_destroy(&arena);
}

int main(void)
{
    RUN(test_pieces_are_zeroed_aligned_and_apart);
    RUN(test_too_much_is_null);
    RUN(test_text_and_copy);
    RUN(test_equal_texts_are_one);
    return weft_test_report();
}
