/* nccl_link.h: what ranks of an emulated communicator have between them: a file in memory that all map, with a pipe from each to each. */
#ifndef EMULATED_NCCL_LINK_H
#define EMULATED_NCCL_LINK_H

#include <stdbool.h>
#include <stddef.h>

enum { EMULATED_NCCL_RANKS = 16 };

typedef struct emulated_shared emulated_shared;
typedef struct emulated_link {
    emulated_shared *shared; /* NULL: it is closed */
    char name[100];
    int n, self, n_splits;
} emulated_link;

/* A name that no other has, for rank 0 to tell the others. */
void emulated_link_name(char *name, size_t bytes);
/* Of that rank on that GPU. Never waits; all ranks are there when it is open. twins: two of them have one GPU of one host. */
void emulated_link_open(emulated_link *link, const char *name, int n, int self, const char gpu[16]);
bool emulated_link_is_open(const emulated_link *link);
bool emulated_link_has_twins(const emulated_link *link);
void emulated_link_close(emulated_link *link);

/* All ranks say to which group they go, and by which number; when all have: its name, how many they are, and who this is. */
void emulated_link_split(emulated_link *link, int color, int key);
bool emulated_link_has_split(emulated_link *link, char *name, size_t bytes, int *n, int *self);

/* As many bytes as there is room for, or as are there. room, has: whether there is for so many. */
size_t emulated_link_write(emulated_link *link, int to, const void *data, size_t bytes);
size_t emulated_link_read(emulated_link *link, int from, void *data, size_t bytes);
bool emulated_link_room(const emulated_link *link, int to, size_t bytes);
bool emulated_link_has(const emulated_link *link, int from, size_t bytes);

#endif
