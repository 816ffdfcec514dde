/* hdf5_source: the other end of stream.h: what weft-read-hdf5 says of a file, checked as if
 * the file itself had said it.
 *
 * A few kilobytes of a file can stand for terabytes (compression, elements that were never written,
 * one dataset under many names). So all tensors together may have 100 times the bytes of the file,
 * and 64 MiB besides.
 */
#include "hdf5_carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream.h"
#include "sandbox.h"
#include "weft/io.h"

static const int64_t memory_bytes = INT64_C(1) << 30, bytes_besides = INT64_C(64) << 20;
enum {
    GROWTH = 100,
    QUIET_MS = 30000,
    PROCESSOR_S = 60,
    BYTES_A_SECOND = 32 << 20, /* no decompression is slower */
    LONGEST_PATH = 4096
};

typedef struct foreign {
    weft_sandbox box;
    int64_t file_bytes;
    int64_t bytes; /* of the wanted tensors so far */
    int room;      /* of from->tensors */
    bool is_told;  /* which tensors are wanted */
    char data[STREAM_DATA];
} foreign;

static weft_status fail_stream(const source *from, weft_error *error, const char *what)
{
    return weft_fail(error, WEFT_CORRUPT,
                     "%.200s is damaged or hostile: the process that read it said what cannot be "
                     "(%s); nothing was written",
                     from->path, what);
}

/* ---- messages -------------------------------------------------------------------------------- */

static weft_status fail_refused(source *from, const stream_head *head, weft_error *error)
{
    stream_refusal r;
    foreign *f = from->file;
    if (head->bytes != sizeof r) return fail_stream(from, error, "a refusal of no size");
    WEFT_TRY(weft_sandbox_read(&f->box, &r, sizeof r, error));
    if (!stream_is_text(r.sentence, sizeof r.sentence))
        return fail_stream(from, error, "no sentence");
    if (r.is_damaged)
        return weft_fail(error, WEFT_CORRUPT, "%.160s is damaged: %.280s", from->path, r.sentence);
    return weft_fail(error, WEFT_USAGE, "%.140s %.330s", from->path, r.sentence);
}

/* The next message must be of one of two kinds; `bytes` is what the first must have. */
static weft_status next_message(source *from, stream_kind one, size_t bytes, stream_kind other,
                                stream_head *head, weft_error *error)
{
    foreign *f = from->file;
    WEFT_TRY(weft_sandbox_read(&f->box, head, sizeof *head, error));
    if (head->kind == STREAM_REFUSED) return fail_refused(from, head, error);
    if (head->kind == (uint32_t)one && head->bytes == bytes) return WEFT_OK;
    if (head->kind == (uint32_t)other && other != one) return WEFT_OK;
    return fail_stream(from, error, "a message out of turn");
}

/* ---- tensors --------------------------------------------------------------------------------- */

static weft_status add_bytes(source *from, const carried *t, weft_error *error)
{
    foreign *f = from->file;
    int64_t bytes = (int64_t)weft_dtype_bytes(t->dtype), all;
    const int64_t most = bytes_besides + GROWTH * f->file_bytes;
    bool is_past = false;
    for (int d = 0; d < t->n_dims; d++)
        is_past |= __builtin_mul_overflow(bytes, t->sizes[d], &bytes);
    is_past |= __builtin_add_overflow(f->bytes, bytes, &all) || all > most;
    if (is_past)
        return weft_fail(error, WEFT_USAGE,
                         "%.160s has %lld bytes, and its tensors, up to %.100s, more than %lld: so "
                         "much is not taken out of so little; h5repack -f NONE makes a plain file",
                         from->path, (long long)f->file_bytes, t->name, (long long)most);
    f->bytes = all;
    return WEFT_OK;
}

static weft_status keep_tensor(source *from, const stream_tensor *t, weft_error *error)
{
    foreign *f = from->file;
    if (from->n_tensors == CARRY_MOST_TENSORS)
        return weft_fail(error, WEFT_USAGE, "%.200s has more than %d tensors; no more are taken",
                         from->path, CARRY_MOST_TENSORS);
    if (from->n_tensors == f->room) {
        const int room = f->room ? 2 * f->room : 64;
        carried *more = realloc(from->tensors, (size_t)room * sizeof *more);
        if (!more) return weft_fail_memory(error, (size_t)room * sizeof *more);
        from->tensors = more;
        f->room = room;
    }
    carried *c = &from->tensors[from->n_tensors];
    *c = (carried){strdup(t->name), strdup(t->dims), (weft_dtype)t->dtype, t->n_dims};
    c->type = strdup(t->type);
    c->problem = *t->problem ? strdup(t->problem) : NULL;
    c->is_damaged = t->is_damaged;
    from->n_tensors++;
    if (!c->name || !c->dims || !c->type || (*t->problem && !c->problem))
        return weft_fail_memory(error, sizeof *t);
    c->is_slot = t->is_slot;
    memcpy(c->sizes, t->sizes, (size_t)t->n_dims * sizeof *t->sizes);
    return WEFT_OK;
}

/* All that comes before elements. */
static weft_status read_front(source *from, weft_error *error)
{
    stream_head head;
    stream_state state;
    stream_tensor t;
    foreign *f = from->file;
    for (;;) {
        WEFT_TRY(next_message(from, STREAM_TENSOR, sizeof t, STREAM_STATE, &head, error));
        if (head.kind == STREAM_STATE) break;
        WEFT_TRY(weft_sandbox_read(&f->box, &t, sizeof t, error));
        if (!stream_is_tensor(&t)) return fail_stream(from, error, "a tensor that cannot be");
        WEFT_TRY(keep_tensor(from, &t, error));
    }
    if (head.bytes != sizeof state) return fail_stream(from, error, "a state of no size");
    WEFT_TRY(weft_sandbox_read(&f->box, &state, sizeof state, error));
    if (!stream_is_text(state.data, sizeof state.data))
        return fail_stream(from, error, "data of no text");
    from->step = state.step;
    from->sample = state.sample;
    from->seed = state.seed;
    memcpy(f->data, state.data, sizeof f->data);
    from->data = f->data;
    return WEFT_OK;
}

static weft_status choose(source *from, const bool *wanted, weft_error *error)
{
    foreign *f = from->file;
    const size_t n = (size_t)from->n_tensors;
    char *bytes = calloc(n + 1, 1);
    weft_status status = bytes ? WEFT_OK : weft_fail_memory(error, n);
    for (size_t i = 0; status == WEFT_OK && i < n; i++) {
        bytes[i] = !wanted || wanted[i];
        if (bytes[i]) status = add_bytes(from, &from->tensors[i], error);
    }
    if (status == WEFT_OK) weft_sandbox_write(&f->box, bytes, n);
    f->is_told = status == WEFT_OK;
    free(bytes);
    return status;
}

/* ---- elements -------------------------------------------------------------------------------- */

static weft_status read_tensor(source *from, int i, void *buffer, weft_error *error)
{
    foreign *f = from->file;
    const carried *t = &from->tensors[i];
    stream_head head;
    char *next = buffer;
    int64_t left = (int64_t)weft_dtype_bytes(t->dtype);
    if (!f->is_told) WEFT_TRY(choose(from, NULL, error));
    for (int d = 0; d < t->n_dims; d++)
        left *= t->sizes[d];
    while (left > 0) {
        const size_t bytes = left < STREAM_FRAME ? (size_t)left : STREAM_FRAME;
        WEFT_TRY(next_message(from, STREAM_BYTES, bytes, STREAM_BYTES, &head, error));
        WEFT_TRY(weft_sandbox_read(&f->box, next, bytes, error));
        next += bytes;
        left -= (int64_t)bytes;
    }
    return WEFT_OK;
}

static weft_status finish(source *from, weft_error *error)
{
    stream_head head;
    return next_message(from, STREAM_END, 0, STREAM_END, &head, error);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_source(source *from)
{
    foreign *f = from->file;
    if (f) weft_sandbox_stop(&f->box);
    free(f);
    for (int i = 0; i < from->n_tensors; i++) {
        free((char *)from->tensors[i].name);
        free((char *)from->tensors[i].dims);
        free((char *)from->tensors[i].type);
        free((char *)from->tensors[i].problem);
    }
    free(from->tensors);
    *from = (source){0};
}

static weft_status start(source *from, int file, char *const *reader, int quiet_ms,
                         weft_error *error)
{
    foreign *f = from->file;
    struct stat facts;
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode))
        return weft_fail(error, WEFT_USAGE, "%.300s is not a regular file", from->path);
    f->file_bytes = facts.st_size < INT64_MAX / (2 * GROWTH) ? facts.st_size : 0;
    const int64_t most = bytes_besides + GROWTH * f->file_bytes;
    const weft_sandbox_order order = {
        .subject = from->path,
        .arguments = reader,
        .input = file,
        .memory_bytes = memory_bytes,
        .processor_s = PROCESSOR_S + most / BYTES_A_SECOND,
        .quiet_ms = quiet_ms,
        .after = "nothing was written",
        .status = WEFT_CORRUPT,
    };
    WEFT_TRY(weft_sandbox_start(&f->box, &order, error));
    return read_front(from, error);
}

weft_status hdf5_source_open(const char *path, char *const *reader, int quiet_ms, source *from,
                             weft_error *error)
{
    foreign *f = calloc(1, sizeof *f);
    *from = (source){path,
                     .separators = ",",
                     .knows_slots = true,
                     .file = f,
                     .choose = choose,
                     .read = read_tensor,
                     .finish = finish,
                     .close = close_source};
    if (!f) return weft_fail_memory(error, sizeof *f);
    f->box.pipe = -1;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    weft_status status = WEFT_OK;
    if (file < 0)
        status = weft_fail(error, WEFT_IO, "cannot open %.300s: %s", path, strerror(errno));
    else
        status = start(from, file, reader, quiet_ms, error);
    if (file >= 0) close(file);
    if (status != WEFT_OK) close_source(from);
    return status;
}

/* The reader lies beside this program. */
static weft_status open_file(const char *path, source *from, weft_error *error)
{
    char program[LONGEST_PATH + 32];
    *from = (source){0};
    WEFT_TRY(weft_file_check(path, WEFT_FILE_HDF5, error));
    const ssize_t bytes = readlink("/proc/self/exe", program, LONGEST_PATH);
    program[bytes > 0 ? bytes : 0] = 0;
    char *slash = strrchr(program, '/');
    strcpy(slash ? slash + 1 : program, "weft-read-hdf5");
    if (access(program, X_OK) != 0) {
        return weft_fail(error, WEFT_USAGE,
                         "%.200s cannot be read: there is no %.200s; it is built with weft where "
                         "libhdf5-dev and libseccomp-dev are installed",
                         path, program);
    }
    char *const reader[] = {program, NULL};
    return hdf5_source_open(path, reader, QUIET_MS, from, error);
}

const carry_format carry_hdf5 = {.name = "hdf5",
                                 .endings = {".h5", ".hdf5", NULL},
                                 .write = weft_stored_export,
                                 .open = open_file};
