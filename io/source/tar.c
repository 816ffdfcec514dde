/* tar: files of one key are a record, as webdataset groups them: the key is the path up to the first point of the file's own name, and
 * the rest is the field. Headers alone are read when it is opened.
 *
 * source  POSIX ustar and pax, and GNU's long names and sizes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"

enum { BLOCK = 512, LONG_NAME = 1 << 16 };

typedef struct group {
    int64_t first, n; /* members */
} group;

typedef struct entry {
    weft_member member;
    int field; /* -1: of none */
} entry;

typedef struct tar {
    int64_t n_entries, entries_room, n_groups, groups_room;
    entry *entries;
    group *groups;
    char key[LONG_NAME]; /* of the last group, while it is indexed */
} tar;

/* What headers before a file say of it. */
typedef struct pending {
    char *name;   /* NULL: nothing */
    int64_t size; /* -1: nothing */
} pending;

/* Octal digits, or a binary number where the first bit is set. */
static bool take_size(const unsigned char *from, int n, int64_t *size)
{
    *size = 0;
    int i = 0;
    if (from[0] & 0x80) {
        for (i = 1; i < n; i++) {
            if (*size >> 54) return false;
            *size = *size << 8 | from[i];
        }
        return from[0] == 0x80;
    }
    while (i < n && from[i] == ' ')
        i++;
    for (; i < n && from[i] >= '0' && from[i] <= '7'; i++)
        *size = *size << 3 | (from[i] - '0');
    return i == n || from[i] == '\0' || from[i] == ' ';
}

static bool has_right_sum(const unsigned char *block)
{
    int64_t said, sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : block[i];
    return take_size(block + 148, 8, &said) && said == sum;
}

static bool is_zero(const unsigned char *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i] != 0) return false;
    return true;
}

/* ---- names ------------------------------------------------------------------------------------------ */

/* "30 path=train/0001.jpg\n", of which the number counts all bytes */
static void take_pax(char *text, int64_t n, pending *p)
{
    for (char *at = text, *end = text + n; at < end;) {
        char *key;
        const long length = strtol(at, &key, 10);
        if (length <= 0 || length > end - at || key >= at + length || *key != ' ') return;
        at[length - 1] = '\0';
        if (strncmp(key + 1, "path=", 5) == 0) {
            free(p->name);
            p->name = strdup(key + 6);
        }
        if (strncmp(key + 1, "size=", 5) == 0 && !weft_text_i64(key + 6, strlen(key + 6), &p->size))
            p->size = -1;
        at += length;
    }
}

static weft_status take_extra(const weft_source *source, char type, int64_t at, int64_t size,
                              pending *p, weft_error *error)
{
    char *text;
    if (size >= LONG_NAME)
        return weft_source_fail(
            source, error,
            "the header at byte %lld has %lld bytes, and at most 64 KiB can be; it is damaged",
            (long long)at, (long long)size);
    WEFT_TRY(weft_source_take(source, &text, size, at, error));
    if (type == 'L') {
        free(p->name);
        p->name = text;
        return WEFT_OK;
    }
    if (type == 'x') take_pax(text, size, p);
    free(text);
    return WEFT_OK;
}

static void take_own_name(const unsigned char *block, char name[300])
{
    const bool has_prefix = memcmp(block + 257, "ustar\0", 6) == 0 && block[345] != 0;
    snprintf(name, 300, "%.155s%s%.100s", has_prefix ? (const char *)block + 345 : "",
             has_prefix ? "/" : "", (const char *)block);
}

/* ---- groups ----------------------------------------------------------------------------------------- */

static int find_field(const weft_table *table, const char *ending)
{
    for (int i = 0; i < table->n_fields; i++)
        if (strcmp(table->fields[i].name, ending) == 0) return i;
    return -1;
}

static weft_status new_group(tar *t, const char *name, size_t n, weft_error *error)
{
    void *groups = t->groups;
    const weft_status status =
        weft_grow(&groups, t->n_groups, &t->groups_room, sizeof *t->groups, error);
    t->groups = groups;
    if (status != WEFT_OK) return status;
    memcpy(t->key, name, n);
    t->key[n] = '\0';
    t->groups[t->n_groups++] = (group){t->n_entries, 0};
    return WEFT_OK;
}

static weft_status add_member(weft_table *table, const char *name, const weft_member *m,
                              const char *wanted, weft_error *error)
{
    tar *t = table->state;
    const char *slash = strrchr(name, '/'), *own = slash ? slash + 1 : name,
               *point = strchr(own, '.');
    if (point == NULL || point == own || strlen(name) >= LONG_NAME)
        return WEFT_OK; /* none of a sample, as webdataset has it */
    const size_t n = (size_t)(point - name), e = strlen(point + 1);
    if (t->n_groups == 0 || strncmp(t->key, name, n) != 0 || t->key[n] != '\0')
        WEFT_TRY(new_group(t, name, n, error));
    if (!weft_table_wants(wanted, point + 1, e) || e >= WEFT_RECORD_NAME) return WEFT_OK;
    int field = find_field(table, point + 1);
    if (field < 0 && t->n_groups == 1) {
        field = table->n_fields;
        WEFT_TRY(weft_member_field(table, point + 1, m, error));
    }
    void *entries = t->entries;
    const weft_status status =
        weft_grow(&entries, t->n_entries, &t->entries_room, sizeof *t->entries, error);
    t->entries = entries;
    if (status != WEFT_OK) return status;
    t->entries[t->n_entries++] = (entry){*m, field};
    t->groups[t->n_groups - 1].n++;
    return WEFT_OK;
}

/* ---- the index --------------------------------------------------------------------------------------- */

static weft_status index_block(weft_table *table, const unsigned char *block, int64_t *at,
                               pending *p, const char *wanted, weft_error *error)
{
    const weft_source *source = &table->source;
    const char type = (char)block[156];
    int64_t size;
    char own[300];
    if (!take_size(block + 124, 12, &size) || !has_right_sum(block))
        return weft_source_fail(
            source, error,
            "byte %lld should begin a header and does not; it is damaged, write it again",
            (long long)*at);
    const bool is_extra = type == 'L' || type == 'x' || type == 'g' || type == 'K',
               is_file = type == '0' || type == '\0' || type == '7';
    if (is_file && p->size >= 0) size = p->size;
    const int64_t begin = *at + BLOCK;
    if (size > source->bytes - begin)
        return weft_source_fail(
            source, error,
            "the file at byte %lld has %lld bytes, and %lld are left; it is cut off, get it again",
            (long long)*at, (long long)size, (long long)(source->bytes - begin));
    *at = begin + (size + BLOCK - 1) / BLOCK * BLOCK;
    if (is_extra) return take_extra(source, type, begin, size, p, error);
    take_own_name(block, own);
    weft_status status = WEFT_OK;
    if (is_file)
        status =
            add_member(table, p->name ? p->name : own, &(weft_member){begin, size}, wanted, error);
    free(p->name);
    *p = (pending){NULL, -1};
    return status;
}

static weft_status tar_open(weft_table *table, const char *wanted, weft_error *error)
{
    tar *t = table->state = calloc(1, sizeof *t);
    pending p = {NULL, -1};
    unsigned char block[BLOCK];
    weft_status status = WEFT_OK;
    if (t == NULL) return weft_fail_memory(error, sizeof *t);
    for (int64_t at = 0; at < table->source.bytes && status == WEFT_OK;) {
        status = weft_source_read(&table->source, block, BLOCK, at, error);
        if (status == WEFT_OK && is_zero(block)) break;
        if (status == WEFT_OK) status = index_block(table, block, &at, &p, wanted, error);
    }
    free(p.name);
    table->n_records = t->n_groups;
    return status;
}

static weft_status find(const weft_table *table, int64_t record, int field, const weft_member **m,
                        weft_error *error)
{
    const tar *t = table->state;
    const group *g = &t->groups[record];
    for (int64_t i = g->first; i < g->first + g->n; i++)
        if (t->entries[i].field == field) {
            *m = &t->entries[i].member;
            return WEFT_OK;
        }
    return weft_source_fail(&table->source, error,
                            "record %lld has no file that ends in .%s, which the first has; leave "
                            "the record out, or name fields that all have",
                            (long long)record, table->fields[field].name);
}

static weft_status tar_shape(const weft_table *table, int64_t record, int field, int64_t *dims,
                             weft_error *error)
{
    const weft_member *m = NULL;
    WEFT_TRY(find(table, record, field, &m, error));
    return weft_member_shape(&table->source, &table->fields[field], table->fields[field].name, m,
                             dims, error);
}

static weft_status tar_read(const weft_table *table, int64_t record, int field, int64_t begin,
                            int64_t end, void *to, weft_error *error)
{
    const weft_member *m = NULL;
    WEFT_TRY(find(table, record, field, &m, error));
    return weft_member_read(&table->source, &table->fields[field], table->fields[field].name, m,
                            begin, end, to, error);
}

static void tar_close(weft_table *table)
{
    tar *t = table->state;
    free(t->entries);
    free(t->groups);
    free(t);
}

static bool tar_is(const unsigned char *head, size_t n)
{
    return n >= BLOCK && memcmp(head + 257, "ustar", 5) == 0;
}

const weft_record_kind weft_kind_tar = {.name = "tar",
                                        .endings = " .tar .tgz ",
                                        .is = tar_is,
                                        .open = tar_open,
                                        .shape = tar_shape,
                                        .read = tar_read,
                                        .close = tar_close};
