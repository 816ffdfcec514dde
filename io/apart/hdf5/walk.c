/* walk: from the root along every link to every dataset, and no further: not out of the file,
 * not in a circle.
 */
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* Where the walk is. */
typedef struct place {
    reader *r;
    char path[STREAM_NAME];
    size_t length; /* of path */
    int depth;
    int n_links;     /* met so far */
    haddr_t *groups; /* [n_groups] that were entered, sorted */
    size_t n_groups, room;
} place;

static void walk_group(place *p, hid_t group);

/* ---- one link -------------------------------------------------------------------------------- */

/* Names that could be taken for something else where they are printed, or as the path of a file. */
static void check_name(const place *p, const char *name)
{
    if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        refuse(false, "has the name \"%s\" in the group /%s; such a name is not taken", name,
               printable(p->path));
    for (const char *c = name; *c; c++)
        if (is_control(*c))
            refuse(false, "has a control character (%d) in the name %s of the group /%s", *c,
                   printable(name), printable(p->path));
}

/* Down to `name`; returns how long the path was. */
static size_t enter(place *p, const char *name)
{
    const size_t before = p->length, more = strlen(name) + (before > 0);
    if (before + more >= sizeof p->path)
        refuse(false, "has a name longer than %zu bytes: %s", sizeof p->path - 1,
               printable(p->path));
    if (before > 0) p->path[p->length++] = '/';
    strcpy(p->path + p->length, name);
    p->length = before + more;
    return before;
}

static void leave(place *p, size_t before)
{
    p->length = before;
    p->path[before] = 0;
}

static found *add_found(place *p, haddr_t where)
{
    reader *r = p->r;
    if (r->n_found == r->room) {
        r->room = r->room ? 2 * r->room : 64;
        r->found = realloc(r->found, (size_t)r->room * sizeof *r->found);
        if (r->found == NULL) refuse(true, "to read it takes more memory than reading may");
    }
    char *path = take(p->length);
    strcpy(path, p->path);
    r->found[r->n_found] = (found){.path = path, .place = where};
    return &r->found[r->n_found++];
}

/* Here is something that can only be left. returns false */
static bool add_odd(place *p, const stream_tensor *t)
{
    found *f = add_found(p, HADDR_UNDEF);
    f->problem = take(strlen(t->problem));
    strcpy(f->problem, t->problem);
    f->is_damaged = t->is_damaged;
    return false;
}

static bool check_link(place *p, const H5L_info_t *link)
{
    stream_tensor t;
    if (link->type == H5L_TYPE_HARD || link->type == H5L_TYPE_SOFT) return true;
    if (link->type == H5L_TYPE_EXTERNAL)
        object(&t, "has the external link /%s, to another file; that is not followed",
               printable(p->path));
    else
        object(&t, "has the link /%s of a kind that a user has defined (%d); that is not followed",
               printable(p->path), (int)link->type);
    return add_odd(p, &t);
}

static bool object_of(place *p, hid_t group, const char *name, H5O_info_t *info)
{
    stream_tensor t;
    H5L_info_t link;
    p->r->is_led_out = false;
    if (H5Oget_info_by_name2(group, name, info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, p->r->links) >=
        0)
        return true;
    object_failed(&t, "the object", p->path);
    if (is_failure(H5E_NLINKS))
        object(&t, "has the soft link /%s, which leads in a circle", printable(p->path));
    else if (p->r->is_led_out)
        object(&t, "has the soft link /%s, which leads into another file", printable(p->path));
    else if (H5Lget_info(group, name, &link, p->r->links) >= 0 && link.type == H5L_TYPE_SOFT)
        object(&t, "has the soft link /%s, which leads nowhere in this file", printable(p->path));
    return add_odd(p, &t);
}

/* ---- groups and datasets --------------------------------------------------------------------- */

/* Each group once: one in itself would never end, and doors that all lead to the next room, two by
 * two, hardly. */
static bool mark_group(place *p, haddr_t where)
{
    stream_tensor t;
    size_t low = 0, high = p->n_groups;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (p->groups[middle] == where) {
            object(&t, "reaches the group /%s a second time, by another name or in a circle",
                   printable(p->path));
            return add_odd(p, &t);
        }
        if (p->groups[middle] < where)
            low = middle + 1;
        else
            high = middle;
    }
    if (p->n_groups == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->groups = realloc(p->groups, p->room * sizeof *p->groups);
        if (p->groups == NULL) refuse(true, "to read it takes more memory than reading may");
    }
    memmove(p->groups + low + 1, p->groups + low, (p->n_groups - low) * sizeof *p->groups);
    p->groups[low] = where;
    p->n_groups++;
    return true;
}

static void visit_group(place *p, hid_t group, const char *name, haddr_t where)
{
    stream_tensor t;
    const hid_t inner = H5Gopen2(group, name, H5P_DEFAULT);
    if (inner < 0) {
        object_failed(&t, "the group", p->path);
        add_odd(p, &t);
        return;
    }
    if (mark_group(p, where)) walk_group(p, inner);
    H5Gclose(inner);
}

static void visit_object(place *p, hid_t group, const char *name)
{
    H5O_info_t info;
    stream_tensor t;
    if (!object_of(p, group, name, &info)) return;
    if (info.num_attrs > MOST_ATTRIBUTES) {
        object(&t, "has %llu attributes at /%s; at most %d are taken",
               (unsigned long long)info.num_attrs, printable(p->path), MOST_ATTRIBUTES);
        add_odd(p, &t);
    } else if (info.type == H5O_TYPE_DATASET) {
        add_found(p, info.addr);
    } else if (info.type == H5O_TYPE_GROUP) {
        visit_group(p, group, name, info.addr);
    } else {
        object(&t, "has the committed type /%s; only groups and datasets of numbers are taken",
               printable(p->path));
        add_odd(p, &t);
    }
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *argument)
{
    place *p = argument;
    if (++p->n_links > MOST_LINKS) refuse(false, "has more than %d links", MOST_LINKS);
    check_name(p, name);
    const size_t before = enter(p, name);
    if (check_link(p, link)) visit_object(p, group, name);
    leave(p, before);
    return 0;
}

static void walk_group(place *p, hid_t group)
{
    if (++p->depth > MOST_DEPTH)
        refuse(false, "has groups in groups, more than %d deep, at /%s", MOST_DEPTH,
               printable(p->path));
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_link, p) < 0)
        refuse_failed("the list of names", p->length ? p->path : "the root");
    p->depth--;
}

void walk(reader *r)
{
    place p = {.r = r};
    H5O_info_t root;
    if (H5Oget_info2(r->file, &root, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) < 0)
        refuse_failed("the root", "the file");
    if (root.num_attrs > MOST_ATTRIBUTES)
        refuse(false, "has %llu attributes at its root; at most %d are taken",
               (unsigned long long)root.num_attrs, MOST_ATTRIBUTES);
    (void)mark_group(&p, root.addr);
    walk_group(&p, r->file);
    free(p.groups);
}
