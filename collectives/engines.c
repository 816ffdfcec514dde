/* engines: which there are - Weft's own, then those from outside - and which one carries a mesh.
 *
 * Nothing is ever taken out, so readers need no lock: an entry is written before the count that lets them see it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "weft/extend/size.h"

/* Without a choice the first that can. */
static const weft_engine *const own[] = {
    &weft_engine_threads,
#ifdef WEFT_HAVE_MPI
    &weft_engine_mpi,
#endif
};
enum { N_OWN = sizeof own / sizeof *own };
static weft_engine outside[WEFT_MAX_OUTSIDE_ENGINES];
static atomic_int n_outside;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const weft_engine *)
    chosen; /* of the process, as the cores of a rank are; NULL: none */

static const weft_engine *engine_at(int index)
{
    if (index < N_OWN) return own[index];
    return index - N_OWN < atomic_load(&n_outside) ? &outside[index - N_OWN] : NULL;
}

static const weft_engine *engine_named(const char *name)
{
    const weft_engine *at;
    for (int i = 0; (at = engine_at(i)) != NULL; i++)
        if (strcmp(at->name, name) == 0) return at;
    return NULL;
}

static weft_status fail_unknown(const char *name, weft_error *error)
{
    const char *names[N_OWN + WEFT_MAX_OUTSIDE_ENGINES];
    char all[256] = "";
    int n = 0;
    size_t used = 0;
    for (const weft_engine *at; (at = engine_at(n)) != NULL; n++) {
        names[n] = at->name;
        if (used < sizeof all)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", at->name);
    }
    const char *near = weft_nearest(name, names, n);
    return weft_fail(error, WEFT_USAGE, "there is no engine %.100s; %s%s%s", name,
                     near != NULL ? "did you mean " : "there are ", near != NULL ? near : all,
                     near != NULL ? "?" : "; others come with plug-ins");
}

/* ---- which carries a mesh ------------------------------------------------------------------------ */

static const weft_engine *first_own(const weft_mesh *mesh, weft_error *error)
{
    for (int i = 0; i < N_OWN; i++) {
        weft_error *why = i == N_OWN - 1 ? error : NULL;
        if (own[i]->takes(mesh, why) == WEFT_OK) return own[i];
    }
    return NULL;
}

const weft_engine *weft_engine_below(const weft_engine *engine, const weft_mesh *mesh,
                                     weft_error *error)
{
    if (engine->below == NULL) return NULL;
    return engine->below[0] != '\0' ? engine_named(engine->below) : first_own(mesh, error);
}

/* And so can all that it stands on. */
static weft_status check_takes(const weft_engine *engine, const weft_mesh *mesh, weft_error *error)
{
    for (; engine != NULL; engine = weft_engine_below(engine, mesh, error))
        if (engine->takes != NULL) WEFT_TRY(engine->takes(mesh, error));
    return error->status;
}

/* What the mesh's device would rather have, where it is there and can. */
static const weft_engine *of_device(const weft_mesh *mesh)
{
    const char *name = weft_devices[weft_mesh_device(mesh)]->engine;
    const weft_engine *engine = name != NULL ? engine_named(name) : NULL;
    weft_error why = WEFT_NO_ERROR;
    return engine != NULL && check_takes(engine, mesh, &why) == WEFT_OK ? engine : NULL;
}

const weft_engine *weft_engine_for(const weft_mesh *mesh, weft_error *error)
{
    const weft_engine *engine = atomic_load(&chosen);
    weft_error why = WEFT_NO_ERROR;
    if (weft_mesh_n_local(mesh) == 0)
        weft_fail(&why, WEFT_USAGE,
                  "mesh %.200s is only a plan and has no ranks to exchange anything; make it with "
                  "weft_mesh_create",
                  weft_mesh_text(mesh));
    else if (engine != NULL)
        (void)!check_takes(engine, mesh, &why);
    else if ((engine = of_device(mesh)) == NULL)
        engine = first_own(mesh, &why);
    if (why.status == WEFT_OK) return engine;
    weft_fail(error, why.status, "%s", why.message);
    return NULL;
}

bool weft_engine_puts(const weft_mesh *mesh)
{
    const bool is_open = weft_devices[weft_mesh_device(mesh)]->is_open;
    weft_error why = WEFT_NO_ERROR;
    if (is_open || weft_mesh_n_local(mesh) == 0) return false;
    const weft_engine *engine = weft_engine_for(mesh, &why);
    return engine != NULL && engine->put != NULL;
}

/* ---- the order of sums --------------------------------------------------------------------------- */

static atomic_bool sums_in_order; /* of the process, as the engine is */

void weft_sums_in_order(bool always)
{
    atomic_store(&sums_in_order, always);
}

bool weft_device_reduces(const weft_comm *comm, const weft_combining *rule)
{
    return !atomic_load(&sums_in_order) && comm->engine->reduces(comm, rule);
}

/* Ranks on units tell each other which, and nobody else would answer. */
void weft_engine_print(const weft_engine *engine, const weft_mesh *mesh, char *text, size_t bytes)
{
    const weft_device *device = weft_devices[weft_mesh_device(mesh)];
    const bool says = engine->put != NULL && atomic_load(&sums_in_order);
    snprintf(text, bytes, "%.20s%s%.20s%s", engine->name, device->unit ? " on " : "",
             device->unit ? device->name : "", says ? ", sums in order" : "");
}

/* ---- the choice ---------------------------------------------------------------------------------- */

weft_status weft_engine_choose(const char *text, weft_error *error)
{
    char name[WEFT_MAX_NAME + 1];
    if (text == NULL || text[0] == '\0') {
        atomic_store(&chosen, NULL);
        return WEFT_OK;
    }
    const size_t n = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, text);
    const weft_engine *engine = engine_named(name);
    if (engine == NULL || n >= sizeof name) return fail_unknown(name, error);
    const char *settings = text[n] == ':' ? text + n + 1 : "";
    if (engine->set != NULL)
        WEFT_TRY(engine->set(settings, error));
    else if (text[n] == ':')
        return weft_fail(error, WEFT_USAGE,
                         "engine %s has no settings, and was given \"%.200s\"; write %s alone",
                         name, settings, name);
    atomic_store(&chosen, engine);
    return WEFT_OK;
}

/* ---- from outside -------------------------------------------------------------------------------- */

static weft_status check_pair(const weft_engine *engine, const char *one, bool has_one,
                              const char *other, bool has_other, weft_error *error)
{
    if (has_one == has_other) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "engine %s: it has %s and no %s; give both, or leave both NULL", engine->name,
                     has_one ? one : other, has_one ? other : one);
}

static weft_status check_table(const weft_engine *e, weft_error *error)
{
    WEFT_TRY(weft_name_check("engine", e->name, error));
    if (e->start == NULL || e->poll == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "engine %s: %s is NULL; it begins an exchange and brings it to its end",
                         e->name, e->start == NULL ? "start" : "poll");
    if (e->below == NULL && e->takes == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "engine %s: below and takes are NULL; say on which engine it stands, or "
                         "which meshes it can carry",
                         e->name);
    WEFT_TRY(check_pair(e, "group_create", e->group_create != NULL, "group_destroy",
                        e->group_destroy != NULL, error));
    WEFT_TRY(check_pair(e, "exchange_create", e->exchange_create != NULL, "exchange_destroy",
                        e->exchange_destroy != NULL, error));
    WEFT_TRY(check_pair(e, "put", e->put != NULL, "reduces", e->reduces != NULL, error));
    WEFT_TRY(check_pair(e, "put", e->put != NULL, "put_reduce", e->put_reduce != NULL, error));
    WEFT_TRY(check_pair(e, "put", e->put != NULL, "check", e->check != NULL, error));
    return check_pair(e, "peer", e->peer != NULL, "release", e->release != NULL, error);
}

static weft_status add(const weft_engine *engine, weft_error *error)
{
    const int n = atomic_load(&n_outside);
    if (engine_named(engine->name) != NULL)
        return weft_fail(error, WEFT_USAGE,
                         "there is an engine %s already; give this one another name", engine->name);
    if (engine->below != NULL && engine->below[0] != '\0' && engine_named(engine->below) == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "engine %s stands on %.100s, which is not known; register that first",
                         engine->name, engine->below);
    if (n == WEFT_MAX_OUTSIDE_ENGINES)
        return weft_fail(error, WEFT_USAGE,
                         "engine %s: there are %d from outside already, which is the most",
                         engine->name, n);
    outside[n] = *engine;
    atomic_store(&n_outside, n + 1);
    return WEFT_OK;
}

WEFT_SIZE_IS_WHOLE(weft_engine, check);

weft_status weft_extend_engine(const weft_engine *engine, weft_error *error)
{
    weft_engine taken;
    WEFT_GIVEN(engine, error);
    WEFT_TRY(weft_size_take(engine, &taken, WEFT_SIZE_TO(weft_engine, release), sizeof taken,
                            "weft_extend_engine", error));
    WEFT_TRY(check_table(&taken, error));
    pthread_mutex_lock(&adding);
    const weft_status status = add(&taken, error);
    pthread_mutex_unlock(&adding);
    return status;
}
