/* hdf5: datasets of an HDF5 file, whose first dims are the records. libhdf5 reads them in a process apart, weft-read-hdf5.
 *
 * A process opens the file and tells its datasets; then it is asked for rows. As many threads as read at once have one each. One that has
 * ended is followed by another, so a file that ends it costs a sentence each time.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../apart/pool.h"
#include "../apart/programs.h"
#include "../apart/stream.h"
#include "../dataset.h"
#include "source.h"

enum { QUIET_MS = 120000, MOST_FREE = 16, MOST_TENSORS = 65536 };
static const int64_t memory_bytes = INT64_C(2) << 30, longest_row = INT64_C(1) << 28;

typedef struct process {
    weft_process base;
    char program[WEFT_PROGRAM_PATH], word[8], *arguments[3];
} process;

typedef struct set {
    int *tensors; /* [n_fields] which of the file's tensors a field is */
    int64_t room;
} set;

/* ---- one process --------------------------------------------------------------------------------- */

static void close_process(weft_process *p)
{
    weft_sandbox_stop(&p->box);
    free(p);
}

static weft_pool pool = {
    .close = close_process, .most = MOST_FREE, .lock = PTHREAD_MUTEX_INITIALIZER};

static weft_status start_with(const weft_source *source, int file, process **started,
                              weft_error *error)
{
    process *p = calloc(1, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    p->base.box.pipe = -1;
    p->base.key.source = source->number;
    strcpy(p->word, "rows");
    p->arguments[0] = p->program, p->arguments[1] = p->word;
    const weft_sandbox_order order = {.subject = source->path,
                                      .arguments = p->arguments,
                                      .input = file,
                                      .memory_bytes = memory_bytes,
                                      .quiet_ms = QUIET_MS,
                                      .is_kept = true,
                                      .after = "get it again",
                                      .status = WEFT_USAGE};
    weft_status status = weft_program_find("weft-read-hdf5", "weft", source->path, "an HDF5 file",
                                           p->program, error);
    if (status == WEFT_OK) status = weft_sandbox_start(&p->base.box, &order, error);
    if (status == WEFT_OK)
        *started = p;
    else
        close_process(&p->base);
    return status;
}

static weft_status start(const weft_source *source, process **started, weft_error *error)
{
    int file = source->file;
    int64_t bytes;
    if (file < 0) WEFT_TRY(weft_file_open(source->path, &file, &bytes, error));
    const weft_status status = start_with(source, file, started, error);
    if (file != source->file) close(file);
    return status;
}

static weft_status fail_lie(const weft_source *source, const char *what, weft_error *error)
{
    return weft_source_fail(source, error,
                            "it is damaged or hostile: the process that read it said what cannot "
                            "be (%s); get it again",
                            what);
}

/* The head of the next message, which is no refusal. */
static weft_status take_head(process *p, const weft_source *source, stream_head *head,
                             weft_error *error)
{
    stream_refusal r;
    WEFT_TRY(weft_sandbox_read(&p->base.box, head, sizeof *head, error));
    if (head->kind != STREAM_REFUSED) return WEFT_OK;
    if (head->bytes != sizeof r) return fail_lie(source, "a refusal of no size", error);
    WEFT_TRY(weft_sandbox_read(&p->base.box, &r, sizeof r, error));
    if (!stream_is_text(r.sentence, sizeof r.sentence))
        return fail_lie(source, "no sentence", error);
    if (r.is_damaged)
        return weft_fail(error, WEFT_USAGE, "%.160s is damaged: %.280s", source->path, r.sentence);
    return weft_fail(error, WEFT_USAGE, "%.140s %.330s", source->path, r.sentence);
}

/* The next tensor; *is_more: false when there is none behind the last. */
static weft_status take_tensor(process *p, const weft_source *source, stream_tensor *t,
                               bool *is_more, weft_error *error)
{
    stream_head head;
    stream_state state;
    WEFT_TRY(take_head(p, source, &head, error));
    *is_more = head.kind == STREAM_TENSOR;
    if (!*is_more && head.kind == STREAM_STATE && head.bytes == sizeof state)
        return weft_sandbox_read(&p->base.box, &state, sizeof state, error);
    if (!*is_more || head.bytes != sizeof *t)
        return fail_lie(source, "a message out of turn", error);
    WEFT_TRY(weft_sandbox_read(&p->base.box, t, sizeof *t, error));
    return stream_is_tensor(t) ? WEFT_OK : fail_lie(source, "a tensor that cannot be", error);
}

/* ---- the fields ---------------------------------------------------------------------------------- */

static weft_status check_tensor(const weft_table *table, const stream_tensor *t, weft_error *error)
{
    int64_t bytes = (int64_t)weft_dtype_bytes((weft_dtype)t->dtype);
    if (t->problem[0] != '\0')
        return weft_fail(error, WEFT_USAGE, "%.120s %.300s; name the fields that are wanted",
                         table->source.path, t->problem);
    if (t->n_dims == 0)
        return weft_source_fail(&table->source, error,
                                "%.80s is one number, and records are rows of a first dim; name "
                                "the fields that are wanted",
                                t->name);
    for (int d = 1; d < t->n_dims; d++)
        if (__builtin_mul_overflow(bytes, t->sizes[d], &bytes) || bytes > longest_row)
            return weft_source_fail(&table->source, error,
                                    "a row of %.80s has more than 256 MiB; it is not for training",
                                    t->name);
    if (table->n_fields == 0 || table->n_records == t->sizes[0]) return WEFT_OK;
    return weft_source_fail(&table->source, error,
                            "%.80s has %lld rows and %s has %lld; all need as many, name those "
                            "that go together",
                            t->name, (long long)t->sizes[0], table->fields[0].name,
                            (long long)table->n_records);
}

static weft_status add_field(weft_table *table, const stream_tensor *t, int number,
                             weft_error *error)
{
    set *s = table->state;
    WEFT_TRY(check_tensor(table, t, error));
    WEFT_TRY(weft_grow((void **)&s->tensors, table->n_fields, &s->room, sizeof *s->tensors, error));
    s->tensors[table->n_fields] = number;
    table->n_records = t->sizes[0];
    return weft_table_field(table, t->name, strlen(t->name), (weft_dtype)t->dtype, t->n_dims - 1,
                            t->sizes + 1)
               ? WEFT_OK
               : weft_fail_memory(error, sizeof *table->fields);
}

static weft_status take_fields(weft_table *table, process *p, const char *wanted, weft_error *error)
{
    stream_tensor t;
    bool is_more = true;
    for (int n = 0; n < MOST_TENSORS; n++) {
        WEFT_TRY(take_tensor(p, &table->source, &t, &is_more, error));
        if (!is_more) return WEFT_OK;
        if (weft_table_wants(wanted, t.name, strlen(t.name)))
            WEFT_TRY(add_field(table, &t, n, error));
    }
    return fail_lie(&table->source, "too many tensors", error);
}

static weft_status hdf5_open(weft_table *table, const char *wanted, weft_error *error)
{
    process *p = NULL;
    if ((table->state = calloc(1, sizeof(set))) == NULL)
        return weft_fail_memory(error, sizeof(set));
    WEFT_TRY(start(&table->source, &p, error));
    const weft_status status = take_fields(table, p, wanted, error);
    if (status != WEFT_OK)
        close_process(&p->base);
    else
        weft_pool_give(&pool, &p->base);
    return status;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* One that has told its tensors: they are those that were told first, or the file is another one. */
static weft_status take_process(const weft_table *table, process **taken, weft_error *error)
{
    const set *s = table->state;
    stream_tensor t;
    bool is_more = true;
    *taken = (process *)weft_pool_take(&pool, (weft_apart_key){table->source.number, 0}, false);
    if (*taken != NULL) return WEFT_OK;
    WEFT_TRY(start(&table->source, taken, error));
    weft_status status = WEFT_OK;
    for (int n = 0, f = 0; is_more && status == WEFT_OK && n < MOST_TENSORS; n++) {
        status = take_tensor(*taken, &table->source, &t, &is_more, error);
        if (status != WEFT_OK || !is_more || f >= table->n_fields || s->tensors[f] != n) continue;
        const weft_record_field *field = &table->fields[f++];
        bool is_same = t.problem[0] == '\0' && t.dtype == (uint32_t)field->dtype &&
                       t.n_dims == field->n_dims + 1 && t.sizes[0] == table->n_records;
        for (int d = 0; is_same && d < field->n_dims; d++)
            is_same = t.sizes[d + 1] == field->dims[d];
        if (!is_same)
            status = weft_fail(error, WEFT_IO,
                               "%.240s was changed while it is read: %s is not what it was; do not "
                               "change data while it is read",
                               table->source.path, field->name);
    }
    if (status != WEFT_OK) close_process(&(*taken)->base);
    return status;
}

static weft_status take_bytes(process *p, const weft_source *source, char *to, int64_t bytes,
                              weft_error *error)
{
    stream_head head;
    while (bytes > 0) {
        const int64_t n = bytes < STREAM_FRAME ? bytes : STREAM_FRAME;
        WEFT_TRY(take_head(p, source, &head, error));
        if (head.kind != STREAM_BYTES || head.bytes != n)
            return fail_lie(source, "a message out of turn", error);
        WEFT_TRY(weft_sandbox_read(&p->base.box, to, (size_t)n, error));
        to += n;
        bytes -= n;
    }
    return WEFT_OK;
}

static weft_status hdf5_read(const weft_table *table, int64_t record, int field, int64_t begin,
                             int64_t end, void *to, weft_error *error)
{
    const set *s = table->state;
    const stream_rows asked = {
        .tensor = s->tensors[field], .record = record, .begin = begin, .end = end};
    process *p = NULL;
    WEFT_TRY(weft_source_check(&table->source, error));
    WEFT_TRY(take_process(table, &p, error));
    weft_sandbox_write(&p->base.box, &asked, sizeof asked);
    const weft_status status =
        take_bytes(p, &table->source, to,
                   (end - begin) * (int64_t)weft_dtype_bytes(table->fields[field].dtype), error);
    if (status == WEFT_OK)
        weft_pool_give(&pool, &p->base);
    else
        close_process(&p->base);
    return status;
}

static void hdf5_close(weft_table *table)
{
    set *s = table->state;
    weft_pool_forget(&pool, table->source.number);
    free(s->tensors);
    free(s);
}

/* The signature may stand behind a block of the user's. */
static bool hdf5_is(const unsigned char *head, size_t n)
{
    static const char signature[] = "\211HDF\r\n\032\n";
    for (size_t at = 0; at + 8 <= n; at = at > 0 ? 2 * at : 512)
        if (memcmp(head + at, signature, 8) == 0) return true;
    return false;
}

const weft_record_kind weft_kind_hdf5 = {.name = "hdf5",
                                         .endings = " .h5 .hdf5 ",
                                         .is = hdf5_is,
                                         .open = hdf5_open,
                                         .read = hdf5_read,
                                         .close = hdf5_close};
