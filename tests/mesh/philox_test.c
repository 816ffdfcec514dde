/* philox_test: the known answers of the authors' Random123 library (kat_vectors, philox4x32 10). */
#include "weft/philox.h"

#include "test.h"

typedef struct answer {
    uint32_t counter[4], key[2], words[4];
} answer;

static const answer answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_known_answers(void)
{
    for (int i = 0; i < 3; i++) {
        const answer *a = &answers[i];
        weft_philox_key key = {.seed = a->key[0] | (uint64_t)a->key[1] << 32,
                               .stream = a->counter[2],
                               .step = a->counter[3]};
        uint32_t words[4];
        weft_philox(key, a->counter[0] | (uint64_t)a->counter[1] << 32, words);
        CHECK(memcmp(words, a->words, sizeof words) == 0);
    }
}

static void test_units_are_below_one(void)
{
    CHECK(weft_philox_unit(0) == 0.0);
    CHECK(weft_philox_unit(~0u) < 1.0);
    CHECK((float)weft_philox_unit(~0u) < 1.0f);
}

int main(void)
{
    RUN(test_known_answers);
    RUN(test_units_are_below_one);
    return weft_test_report();
}
