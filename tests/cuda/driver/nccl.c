/* nccl: a libnccl.so.2 of the emulated driver: the functions that Weft calls, between threads and between processes of this host.
 *
 * Communicators do not block. A call is done some polls of ncclCommGetAsyncError later, and a call that comes before
 * is a fault; kernels are on the stream only then. Sums are added up in an order of their own, another for each
 * stretch of elements and the same on all ranks. Ranks that make different calls are found. Two ranks on one GPU of
 * one host (NCCL_HOSTID) are refused.
 *
 * The environment: TEST_NCCL_VERSION: what ncclGetVersion says. TEST_NCCL_FAIL: "ncclAllReduce:3": what the third call of it put is
 * never done, and ncclCommGetAsyncError then says ncclRemoteError. TEST_NCCL_TELL: at the end a line on stderr: how often each was called.
 */
#include "parts.h"

#include <nccl.h>

#include "nccl_link.h"

enum { MOST_RANKS = EMULATED_NCCL_RANKS };

typedef struct message {
    char *data; /* of the device, or of the host */
    size_t bytes, done;
    bool has_begun; /* its head has gone, or has come */
} message;

typedef struct operation {
    struct ncclComm *comm;
    const char *call;
    CUstream stream;
    message out[MOST_RANKS], in[MOST_RANKS];
    /* of a sum: what came, to be added up into `recv` from the begin-th element on */
    char *inbox;
    const void *send;
    void *recv;
    size_t count, begin;
    ncclDataType_t type;
    bool is_stuck;
    int polls;
} operation;

struct ncclComm {
    struct ncclComm *next; /* of all there are */
    emulated_link link;
    CUdevice device;
    operation *launching;    /* put onto its stream at the next look */
    int looks;               /* until what was asked is done */
    struct ncclComm **child; /* asked for */
    ncclResult_t error;
    bool is_aborted;
};

static _Thread_local struct {
    int depth;
    operation *operation; /* sends and receives of the group so far */
} group;

static void die(const char *call, const char *why)
{
    char text[200];
    snprintf(text, sizeof text, "%s: %s", call, why);
    emulated_die(text);
}

/* ---- counting ---------------------------------------------------------------------------------- */

static struct {
    const char *call;
    int n;
} counts[] = {{"ncclAllReduce", 0}, {"ncclReduceScatter", 0},      {"ncclAllGather", 0},
              {"ncclSend", 0},      {"ncclCommInitRankConfig", 0}, {"ncclCommSplit", 0}};
enum { N_COUNTS = sizeof counts / sizeof *counts };

/* Whether this one is to fail. */
static bool count_call(const char *call)
{
    const char *plan = getenv("TEST_NCCL_FAIL");
    const size_t length = strlen(call);
    int n = 0;
    for (int i = 0; i < N_COUNTS; i++)
        if (strcmp(counts[i].call, call) == 0)
            n = __atomic_add_fetch(&counts[i].n, 1, __ATOMIC_RELAXED);
    return plan != NULL && strncmp(plan, call, length) == 0 && plan[length] == ':' &&
           n == strtol(plan + length + 1, NULL, 10);
}

__attribute__((destructor)) static void tell(void)
{
    if (getenv("TEST_NCCL_TELL") == NULL) return;
    fprintf(stderr, "emulated NCCL:");
    for (int i = 0; i < N_COUNTS; i++)
        fprintf(stderr, " %s %d", counts[i].call, counts[i].n);
    fprintf(stderr, "\n");
}

/* ---- what is done on streams ------------------------------------------------------------------- */

static size_t bytes_of(ncclDataType_t type)
{
    return type == ncclChar ? 1 : type == ncclFloat32 || type == ncclInt32 ? 4 : 8;
}

#define ADD(T, U)                                                                                  \
    do {                                                                                           \
        T sum = ((const T *)from[first])[i];                                                       \
        for (int k = 1; k < n; k++)                                                                \
            sum = (T)((U)sum + (U)((const T *)from[(first + k) % n])[i]);                          \
        ((T *)to)[i] = sum;                                                                        \
    } while (0)

/* Stretches of elements begin with another rank each. */
static void add_up(operation *o)
{
    const int n = o->comm->link.n;
    const size_t bytes = o->count * bytes_of(o->type);
    const char *from[MOST_RANKS];
    void *to = emulated_at(o->recv);
    char *own = malloc(bytes + 1); /* send may be recv */
    memcpy(own, (char *)emulated_at(o->send) + o->begin * bytes_of(o->type), bytes);
    for (int r = 0; r < n; r++)
        from[r] = r == o->comm->link.self ? own : o->inbox + (size_t)r * bytes;
    for (size_t i = 0; i < o->count; i++) {
        const int first = (int)(((o->begin + i) / 5 + 1) % (size_t)n);
        if (o->type == ncclFloat32)
            ADD(float, float);
        else if (o->type == ncclFloat64)
            ADD(double, double);
        else if (o->type == ncclInt32)
            ADD(int32_t, uint32_t);
        else
            ADD(int64_t, uint64_t);
    }
    free(own);
}

/* Heads say what it is: ranks that do not make the same calls must not take each other's bytes. */
typedef struct head {
    char call[24];
    uint64_t bytes;
} head;

static bool send_some(operation *o, int r)
{
    message *m = &o->out[r];
    if (m->data == NULL) return true;
    if (!m->has_begun) {
        head h = {.bytes = m->bytes};
        snprintf(h.call, sizeof h.call, "%s", o->call);
        if (!emulated_link_room(&o->comm->link, r, sizeof h)) return false;
        (void)emulated_link_write(&o->comm->link, r, &h, sizeof h);
        m->has_begun = true;
    }
    m->done += emulated_link_write(&o->comm->link, r, (char *)emulated_at(m->data) + m->done,
                                   m->bytes - m->done);
    return m->done == m->bytes;
}

static bool receive_some(operation *o, int r)
{
    message *m = &o->in[r];
    if (m->data == NULL) return true;
    if (!m->has_begun) {
        head h;
        if (!emulated_link_has(&o->comm->link, r, sizeof h)) return false;
        (void)emulated_link_read(&o->comm->link, r, &h, sizeof h);
        if (strncmp(h.call, o->call, sizeof h.call) != 0 || h.bytes != m->bytes)
            die(o->call, "another rank makes another call, or one of another size");
        m->has_begun = true;
    }
    m->done += emulated_link_read(&o->comm->link, r, (char *)emulated_at(m->data) + m->done,
                                  m->bytes - m->done);
    return m->done == m->bytes;
}

static bool poll(void *argument)
{
    operation *o = argument;
    bool is_over = true;
    if (o->comm->is_aborted || o->comm->link.shared == NULL) return true;
    if (o->is_stuck) {
        if (++o->polls > 8) o->comm->error = ncclRemoteError;
        return false;
    }
    for (int r = 0; r < o->comm->link.n; r++) {
        is_over &= send_some(o, r);
        is_over &= receive_some(o, r);
    }
    if (!is_over) return false;
    if (o->inbox != NULL) add_up(o);
    free(o->inbox);
    free(o);
    return true;
}

/* ---- communicators ----------------------------------------------------------------------------- */

static void check_idle(const struct ncclComm *comm, const char *call)
{
    if (comm == NULL) die(call, "no communicator");
    if (comm->looks > 0)
        die(call, "what was asked before is not done; ncclCommGetAsyncError tells");
}

EXPORT ncclResult_t ncclGetVersion(int *version)
{
    *version = emulated_number("TEST_NCCL_VERSION", NCCL_VERSION_CODE);
    return ncclSuccess;
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    emulated_link_name(id->internal, sizeof id->internal);
    return ncclSuccess;
}

/* What is on streams may ask for one that was destroyed: all stay until the process ends. */
static void keep(struct ncclComm *comm)
{
    static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
    static struct ncclComm *all;
    pthread_mutex_lock(&keeping);
    comm->next = all;
    all = comm;
    pthread_mutex_unlock(&keeping);
}

static struct ncclComm *make(const char *name, int n, int self, CUdevice device)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    CUuuid uuid;
    keep(comm);
    comm->device = device;
    (void)cuDeviceGetUuid(&uuid, comm->device);
    emulated_link_open(&comm->link, name, n, self, uuid.bytes);
    comm->looks = 2;
    return comm;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int n, ncclUniqueId id, int self,
                                           ncclConfig_t *config)
{
    (void)count_call("ncclCommInitRankConfig");
    if (config->blocking != 0) die("ncclCommInitRankConfig", "it blocks");
    if (n > MOST_RANKS || self >= n) return ncclInvalidArgument;
    *to = make(id.internal, n, self, emulated_device());
    return ncclInProgress;
}

EXPORT ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t *to,
                                  ncclConfig_t *config)
{
    (void)count_call("ncclCommSplit");
    check_idle(parent, "ncclCommSplit");
    if (config->blocking != 0) die("ncclCommSplit", "it blocks");
    *to = NULL;
    emulated_link_split(&parent->link, color, key);
    parent->child = to;
    parent->looks = 1;
    return ncclInProgress;
}

/* Whether what was asked of it is done by now. */
static bool goes_on(struct ncclComm *comm)
{
    char name[NCCL_UNIQUE_ID_BYTES];
    int n, self;
    if (comm->child != NULL) {
        if (!emulated_link_has_split(&comm->link, name, sizeof name, &n, &self)) return false;
        *comm->child = make(name, n, self, comm->device);
        comm->child = NULL;
    }
    if (!emulated_link_is_open(&comm->link)) return false;
    if (emulated_link_has_twins(&comm->link)) comm->error = ncclInvalidUsage;
    if (comm->looks > 1) return comm->looks--, false;
    operation *o = comm->launching;
    comm->launching = NULL;
    comm->looks = 0;
    if (o != NULL && emulated_put_polled(o->stream, poll, o) != CUDA_SUCCESS)
        comm->error = ncclUnhandledCudaError;
    return true;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    if (comm == NULL) return ncclInvalidArgument;
    const bool is_done = comm->looks == 0 || goes_on(comm);
    *state = comm->error != ncclSuccess ? comm->error : is_done ? ncclSuccess : ncclInProgress;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    check_idle(comm, "ncclCommFinalize");
    comm->looks = 1;
    return ncclInProgress;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    check_idle(comm, "ncclCommDestroy");
    pthread_mutex_lock(&emulated_lock);
    emulated_link_close(&comm->link);
    pthread_mutex_unlock(&emulated_lock);
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    pthread_mutex_lock(&emulated_lock);
    comm->is_aborted = true;
    pthread_mutex_unlock(&emulated_lock);
    return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}

EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    return comm->error == ncclInvalidUsage ? "Duplicate GPU detected" : "";
}

/* ---- calls ------------------------------------------------------------------------------------- */

static operation *begin(struct ncclComm *comm, const char *call, CUstream stream)
{
    check_idle(comm, call);
    operation *o = calloc(1, sizeof *o);
    o->comm = comm;
    o->call = call;
    o->stream = stream;
    o->is_stuck = count_call(call);
    return o;
}

static ncclResult_t launch(operation *o)
{
    if (o == NULL) return ncclSuccess;
    o->comm->launching = o;
    o->comm->looks = 1 + (int)emulated_random(3);
    return ncclInProgress;
}

EXPORT ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
    operation *o = group.operation;
    if (group.depth == 0) die("ncclGroupEnd", "there is no group");
    if (--group.depth > 0) return ncclSuccess;
    group.operation = NULL;
    return launch(o);
}

/* In and out of a group, or alone. */
static operation *begin_message(ncclComm_t comm, CUstream stream)
{
    if (group.depth == 0)
        die("ncclSend and ncclRecv", "outside of a group ranks wait for each other");
    if (group.operation == NULL) group.operation = begin(comm, "ncclSend", stream);
    if (group.operation->comm != comm || group.operation->stream != stream)
        die("ncclSend and ncclRecv", "a group of several communicators or streams is not emulated");
    return group.operation;
}

static void set(message *m, void *data, size_t bytes)
{
    if (m->data != NULL) die("ncclSend and ncclRecv", "twice to one rank in a group");
    *m = (message){data, bytes, 0, false};
}

EXPORT ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream)
{
    set(&begin_message(comm, stream)->out[peer], (void *)(uintptr_t)from, count * bytes_of(type));
    return ncclSuccess;
}

EXPORT ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream)
{
    set(&begin_message(comm, stream)->in[peer], to, count * bytes_of(type));
    return ncclSuccess;
}

EXPORT ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream)
{
    operation *o = begin(comm, "ncclAllGather", stream);
    const size_t bytes = count * bytes_of(type);
    for (int r = 0; r < comm->link.n; r++) {
        set(&o->out[r], (void *)(uintptr_t)send, bytes); /* to itself too */
        set(&o->in[r], (char *)recv + (size_t)r * bytes, bytes);
    }
    return launch(o);
}

static ncclResult_t reduce(const char *call, const void *send, void *recv, size_t count,
                           bool is_scattered, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           CUstream stream)
{
    operation *o = begin(comm, call, stream);
    const size_t bytes = count * bytes_of(type);
    if (op != ncclSum) die(call, "only sums are emulated");
    o->inbox = malloc((size_t)comm->link.n * bytes + 1);
    o->send = send;
    o->recv = recv;
    o->count = count;
    o->begin = is_scattered ? (size_t)comm->link.self * count : 0;
    o->type = type;
    for (int r = 0; r < comm->link.n; r++) {
        if (r == comm->link.self) continue;
        set(&o->out[r], (char *)(uintptr_t)send + (is_scattered ? (size_t)r * bytes : 0), bytes);
        set(&o->in[r], o->inbox + (size_t)r * bytes, bytes);
    }
    return launch(o);
}

EXPORT ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return reduce("ncclAllReduce", send, recv, count, false, type, op, comm, stream);
}

EXPORT ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count,
                                      ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream)
{
    return reduce("ncclReduceScatter", send, recv, count, true, type, op, comm, stream);
}
