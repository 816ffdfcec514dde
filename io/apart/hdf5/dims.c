/* dims: what a dataset's dims are called: by the attribute of our own files, by its labels, or
 * by its scales.
 *
 * Names are a help, so what is odd about them is no reason to refuse the numbers: then there are
 * none.
 */
#include <hdf5_hl.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

static const char own[] = "dims";

/* ---- the attribute "dims" -------------------------------------------------------------------- */

/* A text of one fixed length, as ours is. */
bool text_of(hid_t object, const char *name, char *text, size_t room)
{
    memset(text, 0, room);
    if (H5Aexists(object, name) <= 0) return false;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool is_read = type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
                   H5Tis_variable_str(type) == 0 && H5Tget_size(type) < room &&
                   H5Sget_simple_extent_npoints(space) == 1;
    is_read = is_read && H5Aread(attribute, type, text) >= 0;
    text[room - 1] = 0;
    const size_t length = strlen(text);
    memset(text + length, 0, room - length); /* what stood behind its end is not sent */
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (attribute >= 0) H5Aclose(attribute);
    return is_read;
}

static bool read_own(hid_t dataset, char *text)
{
    return text_of(dataset, own, text, STREAM_DIMS);
}

bool has_own_dims(hid_t dataset)
{
    char text[STREAM_DIMS];
    return read_own(dataset, text);
}

/* ---- labels and scales ----------------------------------------------------------------------- */

typedef struct scale {
    const reader *r;
    const char *name; /* borrowed from r->found */
} scale;

static herr_t first_scale(hid_t dataset, unsigned dim, hid_t other, void *argument)
{
    scale *s = argument;
    H5O_info_t object;
    (void)dataset, (void)dim;
    if (H5Oget_info2(other, &object, H5O_INFO_BASIC) < 0) return -1;
    for (int i = 0; i < s->r->n_found && s->name == NULL; i++)
        if (s->r->found[i].place == object.addr) s->name = s->r->found[i].path;
    return 1;
}

/* The label of one dim, or the last part of its scale's path; "" when it has neither, or one that is longer than a name of
 * ours may be. */
static void look_up(const reader *r, hid_t dataset, unsigned dim, char *text, size_t bytes)
{
    scale s = {.r = r};
    *text = 0;
    const ssize_t length = H5DSget_label(dataset, dim, text, bytes);
    if (length > 0 && (size_t)length < bytes) return;
    *text = 0;
    if (length > 0) return;
    if (H5DSget_num_scales(dataset, dim) <= 0) return;
    if (H5DSiterate_scales(dataset, dim, NULL, first_scale, &s) < 0 || s.name == NULL) return;
    const char *slash = strrchr(s.name, '/');
    const char *name = slash ? slash + 1 : s.name;
    if (strlen(name) < bytes) strcpy(text, name);
}

static bool is_good(const char *name)
{
    bool is_plain = *name != 0;
    for (const char *c = name; *c; c++)
        is_plain &= !is_control(*c) && *c != ' ' && *c != ',';
    return is_plain;
}

void dims_of(const reader *r, hid_t dataset, int n_dims, char *dims)
{
    enum { LONGEST = 64 };
    char name[LONGEST];
    bool is_own = read_own(dataset, dims);
    for (const char *c = dims; *c && is_own; c++)
        is_own = !is_control(*c);
    if (is_own) return;
    memset(dims, 0, STREAM_DIMS);
    for (int d = 0; d < n_dims; d++) {
        look_up(r, dataset, (unsigned)d, name, sizeof name);
        if (!is_good(name)) {
            memset(dims, 0, STREAM_DIMS);
            return;
        }
        const size_t used = strlen(dims);
        snprintf(dims + used, STREAM_DIMS - used, "%s%s", d > 0 ? "," : "", name);
    }
}
