/* disk: a model of a disk that loses power. */
#include "disk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, NAME = 64, PATHS = 4400, ROOT = 0, NONE = -1 };

double disk_random(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* ---- the record ------------------------------------------------------------------------------ */

static char *text_of(const char *from, int n)
{
    char *text = calloc(1, (size_t)n + 1);
    return text ? memcpy(text, from, (size_t)n) : NULL;
}

static bool add_record(disk_log *log, int room, const char **at, const char *end)
{
    disk_record *r = &log->records[log->n];
    if (log->n == room || end - *at < (long)sizeof r->call) return false;
    memcpy(&r->call, *at, sizeof r->call);
    *at += sizeof r->call;
    r->path = text_of(*at, r->call.path_bytes);
    r->other = text_of(*at + r->call.path_bytes, r->call.other_bytes);
    r->data = *at + r->call.path_bytes + r->call.other_bytes;
    *at = r->data + r->call.data_bytes;
    log->n++;
    return r->path && r->other && *at <= end;
}

bool disk_load(int file, disk_log *log)
{
    const off_t bytes = lseek(file, 0, SEEK_END);
    const int room = (int)(bytes / (off_t)sizeof(fault_record)) + 1;
    *log = (disk_log){.records = calloc((size_t)room, sizeof *log->records),
                      .bytes = malloc((size_t)bytes + 1)};
    if (!log->records || !log->bytes || pread(file, log->bytes, (size_t)bytes, 0) != bytes)
        return false;
    const char *at = log->bytes, *end = log->bytes + bytes;
    while (at < end)
        if (!add_record(log, room, &at, end)) return false;
    return true;
}

void disk_unload(disk_log *log)
{
    for (int i = 0; i < log->n; i++) {
        free(log->records[i].path);
        free(log->records[i].other);
    }
    free(log->records);
    free(log->bytes);
    *log = (disk_log){0};
}

/* ---- directories and files ------------------------------------------------------------------- */

typedef struct entry {
    char name[NAME];
    int node;
} entry;

typedef struct names {
    entry *entries;
    int n;
} names;

/* Not yet for certain. */
typedef struct change {
    const disk_record *record;
    int node, other; /* that the names led to; NONE */
} change;

typedef struct node {
    bool is_directory;
    names seen, stored; /* by processes; on the disk for certain */
    char *bytes;        /* on the disk for certain */
    int64_t n_bytes;
    change *changes;
    int n_changes;
} node;

typedef struct disk {
    node *nodes;
    int n;
    uint64_t seed;
    const power_loss *loss;
} disk;

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int find_name(const names *all, const char *name)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->entries[i].name, name) == 0) return all->entries[i].node;
    return NONE;
}

/* node NONE: the name goes. */
static void set_name(names *all, const char *name, int node)
{
    int i = 0;
    while (i < all->n && strcmp(all->entries[i].name, name) != 0)
        i++;
    if (node == NONE) {
        if (i < all->n) all->entries[i] = all->entries[--all->n];
        return;
    }
    if (i == all->n) {
        all->entries = realloc(all->entries, (size_t)(all->n + 1) * sizeof *all->entries);
        snprintf(all->entries[all->n++].name, NAME, "%s", name);
    }
    all->entries[i].node = node;
}

/* The node at a path as processes see it, or of the directory it is in. */
static int walk(const disk *d, const char *path, bool is_parent)
{
    char text[PATHS];
    int at = ROOT;
    snprintf(text, sizeof text, "%s", path);
    if (is_parent) text[last_name(path) - path] = 0;
    for (char *rest = text, *name; (name = strsep(&rest, "/")) != NULL && at != NONE;)
        if (*name) at = find_name(&d->nodes[at].seen, name);
    return at;
}

static int add_node(disk *d, bool is_directory)
{
    d->nodes = realloc(d->nodes, (size_t)(d->n + 1) * sizeof *d->nodes);
    d->nodes[d->n] = (node){.is_directory = is_directory};
    return d->n++;
}

static void add_change(disk *d, int at, const disk_record *record, int node, int other)
{
    struct node *n = &d->nodes[at];
    n->changes = realloc(n->changes, (size_t)(n->n_changes + 1) * sizeof *n->changes);
    n->changes[n->n_changes++] = (change){record, node, other};
}

/* ---- a change reaches the disk --------------------------------------------------------------- */

static void set_length(node *n, int64_t bytes)
{
    if (bytes > n->n_bytes) {
        n->bytes = realloc(n->bytes, (size_t)bytes);
        memset(n->bytes + n->n_bytes, 0, (size_t)(bytes - n->n_bytes));
    }
    n->n_bytes = bytes;
}

static void store_bytes(node *n, const disk_record *r, int64_t begin, int64_t end)
{
    if (end > n->n_bytes) set_length(n, end);
    memcpy(n->bytes + begin, r->data + (begin - r->call.at), (size_t)(end - begin));
}

/* A name goes only if it leads where it did: the change that made it may be lost. */
static void drop_name(names *all, const char *name, int node)
{
    if (find_name(all, name) == node) set_name(all, name, NONE);
}

static void store(node *n, const change *c)
{
    const disk_record *r = c->record;
    const char *name = last_name(r->path), *other = last_name(r->other);
    if (r->call.call == FAULT_WRITE) store_bytes(n, r, r->call.at, r->call.at + r->call.bytes);
    if (r->call.call == FAULT_TRUNCATE) set_length(n, r->call.at);
    if (r->call.call == FAULT_MAKE || r->call.call == FAULT_MKDIR)
        set_name(&n->stored, name, c->node);
    if (r->call.call == FAULT_UNLINK || r->call.call == FAULT_RENAME)
        drop_name(&n->stored, name, c->node);
    if (r->call.call == FAULT_RENAME) set_name(&n->stored, other, c->node);
    if (r->call.call == FAULT_EXCHANGE) {
        set_name(&n->stored, name, c->other);
        set_name(&n->stored, other, c->node);
    }
}

static void store_all(node *n)
{
    for (int i = 0; i < n->n_changes; i++)
        store(n, &n->changes[i]);
    n->n_changes = 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool change_names(disk *d, const disk_record *r)
{
    const char *name = last_name(r->path), *other = last_name(r->other);
    const int at = walk(d, r->path, true);
    if (at == NONE || strlen(name) >= NAME || strlen(other) >= NAME) return false;
    int first = find_name(&d->nodes[at].seen, name), second = NONE;
    if (r->call.call == FAULT_MAKE || r->call.call == FAULT_MKDIR) {
        first = add_node(d, r->call.call == FAULT_MKDIR);
        set_name(&d->nodes[at].seen, name, first);
    } else if (first == NONE) {
        return false;
    } else if (r->call.call == FAULT_UNLINK) {
        set_name(&d->nodes[at].seen, name, NONE);
    } else {
        if (walk(d, r->other, true) != at) return false; /* we never move between directories */
        second = find_name(&d->nodes[at].seen, other);
        set_name(&d->nodes[at].seen, other, first);
        set_name(&d->nodes[at].seen, name, r->call.call == FAULT_EXCHANGE ? second : NONE);
    }
    add_change(d, at, r, first, second);
    return true;
}

static bool is_deleted(const char *path)
{
    static const char tail[] = " (deleted)";
    const size_t n = strlen(path);
    return n >= sizeof tail && strcmp(path + n - (sizeof tail - 1), tail) == 0;
}

static bool play(disk *d, const disk_record *r)
{
    if (r->call.call == FAULT_MARK || is_deleted(r->path)) return true;
    const bool is_content = r->call.call == FAULT_WRITE || r->call.call == FAULT_TRUNCATE;
    if (!is_content && r->call.call != FAULT_SYNC) return change_names(d, r);
    const int at = walk(d, r->path, false);
    if (at == NONE) return false;
    if (is_content)
        add_change(d, at, r, NONE, NONE);
    else
        store_all(&d->nodes[at]);
    return true;
}

/* ---- the loss -------------------------------------------------------------------------------- */

static void tear(disk *d, node *n, const disk_record *r)
{
    const int64_t last = r->call.at + r->call.bytes;
    for (int64_t begin = r->call.at, end; begin < last; begin = end) {
        end = (begin / SECTOR + 1) * SECTOR < last ? (begin / SECTOR + 1) * SECTOR : last;
        if (disk_random(&d->seed) < d->loss->kept) store_bytes(n, r, begin, end);
    }
}

static void lose(disk *d, node *n)
{
    const int first_lost =
        d->loss->is_ordered ? (int)(disk_random(&d->seed) * (n->n_changes + 1)) : n->n_changes;
    int64_t length = n->n_bytes;
    for (int i = 0; i < n->n_changes; i++) {
        const disk_record *r = n->changes[i].record;
        if (r->call.call == FAULT_WRITE && r->call.at + r->call.bytes > length)
            length = r->call.at + r->call.bytes;
        if (r->call.call == FAULT_WRITE && d->loss->is_torn && i <= first_lost)
            tear(d, n, r);
        else if (i < first_lost && (d->loss->is_ordered || disk_random(&d->seed) < d->loss->kept))
            store(n, &n->changes[i]);
    }
    if (!n->is_directory && length > n->n_bytes && disk_random(&d->seed) < 0.25)
        set_length(n, length);
}

static bool put_file(const char *path, const node *n)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    const bool is_good =
        file >= 0 && write(file, n->bytes, (size_t)n->n_bytes) == (ssize_t)n->n_bytes;
    return file >= 0 && close(file) == 0 && is_good;
}

static bool put_directory(const disk *d, int at, const char *folder)
{
    bool is_good = mkdir(folder, 0777) == 0;
    for (int i = 0; i < d->nodes[at].stored.n && is_good; i++) {
        char path[PATHS];
        const entry *e = &d->nodes[at].stored.entries[i];
        const node *n = &d->nodes[e->node];
        if (snprintf(path, sizeof path, "%s/%s", folder, e->name) >= PATHS) return false;
        is_good = n->is_directory ? put_directory(d, e->node, path) : put_file(path, n);
    }
    return is_good;
}

bool disk_after(const disk_log *log, const power_loss *loss, const char *folder)
{
    disk d = {.seed = loss->seed, .loss = loss};
    add_node(&d, true);
    bool is_good = true;
    for (int i = 0; i < loss->n && is_good; i++)
        is_good = play(&d, &log->records[i]);
    for (int i = 0; i < d.n; i++)
        lose(&d, &d.nodes[i]);
    is_good = is_good && put_directory(&d, ROOT, folder);
    for (int i = 0; i < d.n; i++) {
        free(d.nodes[i].seen.entries);
        free(d.nodes[i].stored.entries);
        free(d.nodes[i].bytes);
        free(d.nodes[i].changes);
    }
    free(d.nodes);
    return is_good;
}
