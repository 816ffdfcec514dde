/* weft-read-hdf5: tells over a pipe which tensors an HDF5 file has, and their elements; it is
 * started by `weft ckpt import`, or by libweft where records are read, with the file as its stdin, and is of no use alone.
 *
 * libhdf5 was not made for files that somebody has tampered with: it can crash, spin, or do worse.
 * So it runs here, where it may read one descriptor, write another, and take some memory; the
 * kernel kills the process for any other system call. docs/reliability.md.
 */
#include "reader.h"

#include "../shut_in.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- sending --------------------------------------------------------------------------------- */

void send_message(stream_kind kind, const void *body, size_t bytes)
{
    const stream_head head = {(uint32_t)kind, (uint32_t)bytes};
    socket_write(&head, sizeof head);
    socket_write(body, bytes);
}

static char frame[STREAM_FRAME];
static size_t framed;

void send_rest(void)
{
    if (framed > 0) send_message(STREAM_BYTES, frame, framed);
    framed = 0;
}

void send_bytes(const void *from, size_t bytes)
{
    const char *next = from;
    while (bytes > 0) {
        const size_t room = sizeof frame - framed, n = bytes < room ? bytes : room;
        memcpy(frame + framed, next, n);
        framed += n;
        next += n;
        bytes -= n;
        if (framed == sizeof frame) send_rest();
    }
}

/* ---- refusing -------------------------------------------------------------------------------- */

void refuse(bool is_damaged, const char *format, ...)
{
    stream_refusal refusal;
    va_list arguments;
    memset(&refusal, 0, sizeof refusal);
    refusal.is_damaged = is_damaged;
    va_start(arguments, format);
    vsnprintf(refusal.sentence, sizeof refusal.sentence, format, arguments);
    va_end(arguments);
    for (char *c = refusal.sentence; *c; c++)
        if (is_control(*c)) *c = '?';
    const size_t length = strlen(refusal.sentence);
    memset(refusal.sentence + length, 0, sizeof refusal.sentence - length);
    send_message(STREAM_REFUSED, &refusal, sizeof refusal);
    _exit(0);
}

static herr_t keep_first(unsigned n, const H5E_error2_t *failure, void *text)
{
    if (n == 0) snprintf(text, STREAM_SENTENCE / 3, "%s", failure->desc ? failure->desc : "");
    return 0;
}

static herr_t find_minor(unsigned n, const H5E_error2_t *failure, void *wanted)
{
    (void)n;
    return failure->min_num == *(const hid_t *)wanted;
}

bool is_failure(hid_t minor)
{
    return H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_minor, &minor) > 0;
}

enum { VERSION = 64 };

static herr_t find_version(unsigned n, const H5E_error2_t *failure, void *version)
{
    (void)n;
    if (failure->desc && strstr(failure->desc, "version"))
        snprintf(version, VERSION, "%s", failure->desc);
    return 0;
}

/* How libhdf5 knows that a file is newer than itself: by versions, of its parts, that it does not know. A part with a checksum
 * had the right one before its version was looked at. */
static bool say_newer(char *text, size_t bytes, const char *what, const char *path)
{
    char version[VERSION] = ""; /* a copy: the next call takes the reasons away */
    unsigned major, minor, release;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_version, version);
    if (!*version || H5get_libversion(&major, &minor, &release) < 0) return false;
    snprintf(text, bytes,
             "is in a newer format than libhdf5 %u.%u.%u here reads (%s of %.60s: %.50s); write it "
             "again where it was made: h5repack --high=2, or h5py.File(..., libver=('earliest', "
             "'v110'))",
             major, minor, release, what, printable(path), printable(version));
    return true;
}

/* What is said where libhdf5 failed; whether it is damage. */
static bool say_failed(char *text, size_t bytes, const char *what, const char *path)
{
    static const char *const open[] = {"already open for write", "file consistency flags"};
    char reason[STREAM_SENTENCE / 3] = "no reason given";
    if (is_failure(H5E_NOSPACE)) {
        snprintf(text, bytes, "%s of %s takes more memory than reading may", what, printable(path));
        return true;
    }
    if (say_newer(text, bytes, what, path)) return false;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        if (!strstr(reason, open[i])) continue;
        snprintf(text, bytes,
                 "is still being written, or was not closed by who wrote it; close it, or h5clear "
                 "-s takes the mark away");
        return false;
    }
    snprintf(text, bytes, "%s of %s cannot be read (libhdf5: %s)", what, printable(path),
             printable(reason));
    return true;
}

void refuse_failed(const char *what, const char *path)
{
    char text[STREAM_PROBLEM];
    const bool is_damaged = say_failed(text, sizeof text, what, path);
    refuse(is_damaged, "%s", text);
}

bool object(stream_tensor *t, const char *format, ...)
{
    va_list arguments;
    memset(t->problem, 0, sizeof t->problem);
    va_start(arguments, format);
    vsnprintf(t->problem, sizeof t->problem, format, arguments);
    va_end(arguments);
    t->is_damaged = false;
    return false;
}

bool object_failed(stream_tensor *t, const char *what, const char *path)
{
    char text[STREAM_PROBLEM];
    const bool is_damaged = say_failed(text, sizeof text, what, path);
    object(t, "%s", text);
    t->is_damaged = is_damaged;
    return false;
}

void *take(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    if (memory == NULL) refuse(true, "to read it takes more memory than reading may");
    return memory;
}

const char *printable(const char *name)
{
    enum { TEXTS = 4, LONGEST = 120 };
    static char texts[TEXTS][LONGEST];
    static int turn;
    char *text = texts[turn++ % TEXTS];
    snprintf(text, LONGEST, "%s", name);
    for (char *c = text; *c; c++)
        if (is_control(*c)) *c = '?';
    return text;
}

/* ---- what this process may still do ---------------------------------------------------------- */

static const allowed_call allowed[] = {
    {SCMP_SYS(pread64), 1, {0, SCMP_CMP_EQ, 0, 0}},
    {SCMP_SYS(nanosleep), 0, {0}}, /* before it looks at a wrong checksum again */
    {SCMP_SYS(clock_nanosleep), 0, {0}},
};

/* ---- the file -------------------------------------------------------------------------------- */

/* A whole number among the root's attributes; `otherwise` when there is none. */
static uint64_t number_of(hid_t file, const char *name, uint64_t otherwise)
{
    uint64_t number = otherwise;
    if (H5Aexists(file, name) <= 0) return otherwise;
    const hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_INTEGER &&
        H5Sget_simple_extent_npoints(space) == 1 &&
        H5Aread(attribute, H5T_NATIVE_UINT64, &number) < 0)
        number = otherwise;
    return number;
}

static void send_state(hid_t file)
{
    stream_state state = {(int64_t)number_of(file, "step", 0),
                          (int64_t)number_of(file, "sample", 0), number_of(file, "seed", 1), ""};
    char format[STREAM_TYPE];
    if (text_of(file, "format", format, sizeof format) && strcmp(format, "weft") == 0)
        (void)text_of(file, "data", state.data, sizeof state.data);
    send_message(STREAM_STATE, &state, sizeof state);
}

static hid_t open_file(hid_t access)
{
    if (!is_hdf5()) refuse(false, "is no HDF5 file: it does not have the format's signature");
    /* A name that begins with a slash: for others the library asks where it is. */
    const hid_t file = H5Fopen("/input", H5F_ACC_RDONLY, access);
    if (file < 0) refuse_failed("the beginning", "the file");
    return file;
}

/* No link leads out of the file: external ones are refused by name before; this is for those on the
 * way of another. */
static herr_t never(const char *file, const char *path, const char *external, const char *object,
                    unsigned *flags, hid_t access, void *is_led_out)
{
    (void)file, (void)path, (void)external, (void)object, (void)flags, (void)access;
    *(bool *)is_led_out = true;
    return -1;
}

/* Which tensors are wanted: a byte for each. */
static char *read_wanted(int n)
{
    char *wanted = take((size_t)n);
    if (!socket_read(wanted, (size_t)n)) _exit(1); /* nobody is there any more */
    return wanted;
}

enum { OPEN_SECONDS = 60 };

int main(int argc, char **argv)
{
    reader r = {0};
    H5dont_atexit();
    if (H5open() < 0) return 1;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
    const hid_t access = driver_properties();
    r.links = H5Pcreate(H5P_LINK_ACCESS);
    if (access < 0 || r.links < 0 || H5Pset_elink_cb(r.links, never, &r.is_led_out) < 0) return 1;
    const int result = shut_in(allowed, sizeof allowed / sizeof *allowed);
    if (result != 0) refuse(false, SHUT_IN_REFUSED, strerror(-result));
    const bool is_rows = argc > 1 && strcmp(argv[1], "rows") == 0;
    if (is_rows) allow_seconds(OPEN_SECONDS);
    r.file = open_file(access);
    walk(&r);
    for (int i = 0; i < r.n_found; i++)
        declare(&r, &r.found[i]);
    send_state(r.file);
    if (is_rows) {
        send_rows(&r);
        _exit(0);
    }
    const char *wanted = read_wanted(r.n_found);
    for (int i = 0; i < r.n_found; i++)
        if (wanted[i]) send_elements(&r, &r.found[i]);
    send_message(STREAM_END, NULL, 0);
    _exit(0); /* closing would read again */
}
