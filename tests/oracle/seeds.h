/* seeds.h: which random programs a test goes through: as many as are quick; PROGRAM SEED: that one; PROGRAM --many N: N. */
#ifndef WEFT_TESTS_ORACLE_SEEDS_H
#define WEFT_TESTS_ORACLE_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct seed_range {
    uint64_t first, last;
} seed_range;

/* False, having said so: the words are none of these. */
static inline bool seeds_of(int argc, char **argv, uint64_t quick, seed_range *seeds)
{
    const bool is_many = argc == 3 && strcmp(argv[1], "--many") == 0;
    const char *word = argc > 1 ? argv[argc - 1] : "";
    char *end = NULL;
    const uint64_t number = strtoull(word, &end, 10);
    *seeds = argc == 2 ? (seed_range){number, number} : (seed_range){1, is_many ? number : quick};
    if (argc == 1 || ((is_many || argc == 2) && *word >= '0' && *word <= '9' && *end == '\0'))
        return true;
    fprintf(stderr, "%s [SEED | --many N], and these are no such numbers\n", argv[0]);
    return false;
}

#endif
