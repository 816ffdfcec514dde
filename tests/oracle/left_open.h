/* left_open.h: what ops and compositions give of operands at the edges of their dtype that may depend on the order of sums, and so
 * on the layout and the kernel: the list of docs/ops.md.
 */
#ifndef WEFT_TESTS_ORACLE_LEFT_OPEN_H
#define WEFT_TESTS_ORACLE_LEFT_OPEN_H

typedef struct left_open {
    const char *group; /* of op_groups */
    int extremes;      /* WEFT_ORACLE_ bits: operands that are so */
    const char *why;
} left_open;

extern const left_open left_opens[];
extern const int n_left_opens;

/* The extremes of the group's; 0: it is not on the list. */
int left_open_of(const char *group);

#endif
