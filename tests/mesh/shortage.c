/* shortage: which call for memory is refused.
 *
 * Whose call it is, is read off the stack: the innermost frame of Weft's own code or of the launcher's decides, and the
 * libraries between work for it.
 */
#include "shortage.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- whose code an address is ---------------------------------------------------------------- */

typedef enum owner {
    SERVANT, /* works for whoever called it */
    WEFT,
    OTHER /* the launcher's: what it does without memory is its own affair */
} owner;

static const struct {
    const char *begin; /* of an object's name */
    owner owner;
} owners[] = {
    {"libweft_shortage", SERVANT}, {"libweft", WEFT},  {"libmpi", OTHER},
    {"libopen-", OTHER},           {"libpmix", OTHER}, {"mca_", OTHER},
    {"libevent", OTHER},
};

typedef struct object {
    uintptr_t begin, end, base;
    char name[40];
    owner owner;
} object;

enum { MOST_OBJECTS = 160, BEFORE = 1 << 16 };
static struct {
    object objects[MOST_OBJECTS];
    atomic_int n_objects;
    pthread_mutex_t mutex;
    shortage_told own, *told;
    int64_t at;
    bool is_for_good;
    atomic_bool is_on;
    _Alignas(16) char before[BEFORE]; /* for those who ask before libc's functions are known */
    size_t used;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Looking at the stack, or for a function, may itself take memory. Volatile: libc's headers say of dlsym that it calls
 * nobody here. */
static _Thread_local __attribute__((tls_model("initial-exec"))) volatile bool is_inside;

static int add_object(struct dl_phdr_info *info, size_t size, void *first)
{
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    bool is_program = *(bool *)first;
    *(bool *)first = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const int at = atomic_load(&state.n_objects);
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || at == MOST_OBJECTS) continue;
        object *o = &state.objects[at];
        *o = (object){.base = info->dlpi_addr, .owner = is_program ? WEFT : SERVANT};
        o->begin = info->dlpi_addr + part->p_vaddr;
        o->end = o->begin + part->p_memsz;
        snprintf(o->name, sizeof o->name, "%s", is_program ? "program" : name);
        for (size_t k = 0; k < sizeof owners / sizeof *owners; k++)
            if (strncmp(name, owners[k].begin, strlen(owners[k].begin)) == 0) {
                o->owner = owners[k].owner;
                break;
            }
        atomic_store(&state.n_objects, at + 1);
    }
    return 0;
}

static const object *find_object(uintptr_t address)
{
    const int n = atomic_load(&state.n_objects);
    for (int i = 0; i < n; i++)
        if (address >= state.objects[i].begin && address < state.objects[i].end)
            return &state.objects[i];
    return NULL;
}

static const object *object_of(void *address)
{
    const object *found = find_object((uintptr_t)address);
    if (found) return found;
    pthread_mutex_lock(&state.mutex);
    if (!find_object((uintptr_t)address)) { /* loaded since */
        bool is_first = true;
        atomic_store(&state.n_objects, 0);
        dl_iterate_phdr(add_object, &is_first);
    }
    pthread_mutex_unlock(&state.mutex);
    return find_object((uintptr_t)address);
}

/* ---- what nobody can survive ----------------------------------------------------------------- */

static const struct {
    const char *object; /* begin of the name of the object that asks */
    const char *reason;
} spared[SHORTAGE_SPARED] = {
    {"libopenblas", "OpenBLAS asks again, for ever; Weft asks for the same before"},
    {"libhdf5", "HDF5 crashes, or is of no use until the process ends; Weft asks for room before"},
    {"libhwloc", "hwloc crashes; Weft asks for room before"},
};

const char *shortage_spared_reason(int kind)
{
    return kind < SHORTAGE_SPARED ? spared[kind].reason : NULL;
}

/* ---- what happens to a call ------------------------------------------------------------------ */

static int find_spared(const object *o)
{
    for (int k = 0; o && k < SHORTAGE_SPARED && spared[k].object; k++)
        if (strncmp(o->name, spared[k].object, strlen(spared[k].object)) == 0) return k;
    return -1;
}

static bool is_spared(const object *by)
{
    const int k = find_spared(by);
    if (k >= 0) atomic_fetch_add(&state.told->spared[k], 1);
    return k >= 0;
}

static bool is_for_weft(void *caller)
{
    void *frames[64];
    const int n = backtrace(frames, 64);
    const object *by = NULL; /* who works for it and is spared */
    int first = 0;           /* above our own */
    while (first < n && frames[first] != caller)
        first++;
    for (int i = first; i < n; i++) {
        const object *o = object_of(frames[i]);
        if (o && o->owner != SERVANT) return o->owner == WEFT && !is_spared(by);
        if (by == NULL && o && find_spared(o) >= 0) by = o;
    }
    return false;
}

static void tell_where(void *caller)
{
    void *frames[2 * SHORTAGE_FRAMES];
    const int n = backtrace(frames, 2 * SHORTAGE_FRAMES);
    int first = 0;
    while (first < n && frames[first] != caller)
        first++;
    for (int i = 0; i < SHORTAGE_FRAMES && first + i < n; i++) {
        const object *o = object_of(frames[first + i]);
        snprintf(state.told->where[i], sizeof state.told->where[i], "%s+0x%llx", o ? o->name : "?",
                 (unsigned long long)((uintptr_t)frames[first + i] - (o ? o->base : 0)));
    }
}

static bool counts(void *caller)
{
    const object *o = object_of(caller);
    if (o && o->owner != SERVANT) return o->owner == WEFT;
    return is_for_weft(caller);
}

static bool is_refused(void *caller)
{
    if (!atomic_load_explicit(&state.is_on, memory_order_relaxed) || is_inside) return false;
    is_inside = true;
    bool is_now = false;
    if (counts(caller)) {
        const int64_t n = atomic_fetch_add(&state.told->seen, 1) + 1;
        is_now = state.at > 0 && (n == state.at || (n > state.at && state.is_for_good));
        if (is_now && !atomic_exchange(&state.told->has_struck, true)) tell_where(caller);
    }
    is_inside = false;
    return is_now;
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define EXPORT      __attribute__((visibility("default")))
#define CALLER      __builtin_return_address(0)
#define REAL(name)  ((__typeof__(&name))real_of((void **)&name##_real, #name))
#define KNOWN(name) static __typeof__(&name) name##_real
KNOWN(malloc);
KNOWN(calloc);
KNOWN(realloc);
KNOWN(free);
KNOWN(aligned_alloc);
KNOWN(memalign);
KNOWN(posix_memalign);
KNOWN(mmap);
KNOWN(pthread_create);

/* libc's own function, or a sanitizer's on the way to it; NULL while that is being found out. */
static void *real_of(void **known, const char *name)
{
    if (*known == NULL && !is_inside) {
        is_inside = true;
        *known = dlsym(RTLD_NEXT, name);
        is_inside = false;
    }
    return *known;
}

static void *take_before(size_t bytes)
{
    void *memory = state.before + state.used;
    state.used += (bytes + 31) / 16 * 16;
    return state.used <= BEFORE ? memory : NULL;
}

static bool is_from_before(const void *memory)
{
    return (const char *)memory >= state.before && (const char *)memory < state.before + BEFORE;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

EXPORT void *malloc(size_t bytes)
{
    if (is_refused(CALLER)) return no_memory();
    return REAL(malloc) ? malloc_real(bytes) : take_before(bytes);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    if (is_refused(CALLER)) return no_memory();
    return REAL(calloc) ? calloc_real(n, bytes) : take_before(n * bytes);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    if (is_refused(CALLER)) return no_memory();
    if (REAL(realloc) && !is_from_before(memory)) return realloc_real(memory, bytes);
    void *moved = malloc(bytes);
    if (moved && memory) {
        const size_t most = (size_t)(state.before + BEFORE - (char *)memory);
        memcpy(moved, memory, bytes < most ? bytes : most);
    }
    return moved;
}

EXPORT void free(void *memory)
{
    if (memory && !is_from_before(memory) && REAL(free)) free_real(memory);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return is_refused(CALLER) ? no_memory() : REAL(aligned_alloc)(alignment, bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return is_refused(CALLER) ? no_memory() : REAL(memalign)(alignment, bytes);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    return is_refused(CALLER) ? ENOMEM : REAL(posix_memalign)(memory, alignment, bytes);
}

EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (!is_refused(CALLER)) return REAL(mmap)(at, bytes, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    if (is_refused(CALLER)) return EAGAIN;
    return REAL(pthread_create)(thread, attributes, body, argument);
}

/* ---- for the tests --------------------------------------------------------------------------- */

void shortage_tell(shortage_told *told)
{
    state.told = told;
}

void shortage_start(int64_t at, bool is_for_good)
{
    void *frames[4];
    shortage_stop();
    backtrace(frames, 4); /* loads what it needs */
    if (state.told == NULL) state.told = &state.own;
    memset(state.told, 0, sizeof *state.told);
    state.at = at;
    state.is_for_good = is_for_good;
    atomic_store(&state.is_on, true);
}

void shortage_stop(void)
{
    atomic_store(&state.is_on, false);
}

__attribute__((constructor)) static void start_from_environment(void)
{
    const char *text = getenv(SHORTAGE_VARIABLE), *rank = getenv("OMPI_COMM_WORLD_RANK"),
               *wanted = getenv(SHORTAGE_RANK_VARIABLE);
    long long at;
    int is_for_good;
    char path[4096], program[64];
    if (text == NULL || (wanted && (!rank || strcmp(wanted, rank) != 0))) return;
    if (sscanf(text, "%lld %d %63s %4095s", &at, &is_for_good, program, path) != 4) return;
    if (strcmp(program, program_invocation_short_name) != 0) return;
    const int file = open(path, O_RDWR);
    void *told = file < 0 ? MAP_FAILED
                          : REAL(mmap)(NULL, sizeof(shortage_told), PROT_READ | PROT_WRITE,
                                       MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    unsetenv(SHORTAGE_VARIABLE); /* of this program, not of what it starts */
    if (told == MAP_FAILED) return;
    shortage_tell(told);
    shortage_start(at, is_for_good != 0);
    atexit(
        shortage_stop); /* what libraries do when the program is over is theirs: glibc aborts at a thread-local */
}
