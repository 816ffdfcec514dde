/* reader.h (private): the parts of weft-read-hdf5, the process that looks into an HDF5 file which nobody vouches
 * for. Anything it does not take ends it: refuse. */
#ifndef WEFT_IO_HDF5_READER_H
#define WEFT_IO_HDF5_READER_H

#define H5_USE_110_API /* the same calls from every HDF5 since 1.10 */
#include <hdf5.h>
#include <stdbool.h>

#include "../stream.h"

/* What one file may have. A file past these is no set of tensors. */
enum {
    MOST_LINKS = 1 << 17,
    MOST_DEPTH = 32,
    MOST_ATTRIBUTES = 1024, /* of one object */
    MOST_CHUNK = 128 << 20, /* bytes */
    CHUNK_CACHE = 384 << 20
};

/* A dataset that was met. */
typedef struct found {
    char *path;    /* from the root, without its first slash */
    haddr_t place; /* of its header: the same dataset under another name has the same */
    char *problem; /* why it is no dataset that could be read; NULL: it is one */
    bool is_damaged;
} found;

typedef struct reader {
    hid_t file;
    hid_t links;     /* how links are followed: never out of the file */
    bool is_led_out; /* the last one would have gone there */
    found *found;
    int n_found, room;
} reader;

static inline bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7F;
}

/* ---- reader.c */

/* refuse - say why and end. is_damaged: the file contradicts itself, or libhdf5 fails on it. */
_Noreturn void refuse(bool is_damaged, const char *format, ...) WEFT_FORMAT(2, 3);
/* refuse_failed - libhdf5 failed: its own innermost reason goes along. A format that is newer than it is no damage. */
_Noreturn void refuse_failed(const char *what, const char *path);
/* The same of one tensor: only who wants it is refused. returns false */
bool object(stream_tensor *t, const char *format, ...) WEFT_FORMAT(2, 3);
bool object_failed(stream_tensor *t, const char *what, const char *path);
/* Whether libhdf5's last failure has this minor number. */
bool is_failure(hid_t minor);
void send_message(stream_kind kind, const void *body, size_t bytes);
/* send_bytes - elements of a tensor, any number at a time; send_rest - its last frame. */
void send_bytes(const void *from, size_t bytes);
void send_rest(void);
void *take(size_t bytes); /* malloc, or refuse */
/* printable - a name as it may stand in a sentence; the text is reused after four calls. */
const char *printable(const char *name);

/* ---- driver.c */

/* driver_properties - how to open the file that is descriptor 0, whatever name is given, once.
 * Negative: no memory. */
hid_t driver_properties(void);
/* is_hdf5 - whether the format's signature stands where it may stand. */
bool is_hdf5(void);

/* ---- walk.c */

/* walk - every dataset of the file into r->found, in the order of names. */
void walk(reader *r);

/* ---- tensor.c */

/* declare - check one dataset, and send it as a STREAM_TENSOR, with what is wrong with it. */
void declare(const reader *r, const found *f);
/* send_elements - all its elements. */
void send_elements(const reader *r, const found *f);
/* send_rows - one request after another, until nobody asks. */
void send_rows(const reader *r);

/* ---- dims.c */

/* dims_of - the names of a dataset's dims, "batch,seq" into dims [STREAM_DIMS]; "" when it has none
 * that are good. */
void dims_of(const reader *r, hid_t dataset, int n_dims, char *dims);
/* text_of - an attribute of fixed length, all of text [room] being set; false, and "": there is none that is good. */
bool text_of(hid_t object, const char *name, char *text, size_t room);
/* has_own_dims - whether it has the attribute that our own files have. */
bool has_own_dims(hid_t dataset);

#endif
