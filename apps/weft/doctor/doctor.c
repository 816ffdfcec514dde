/* doctor: weft doctor, one table a host: every check is ok, a warning or a failure, with the way
 * out.
 *
 * Every process makes its findings; the root collects them as JSON and prints that, or tables of
 * it. Alone, MPI is tried in a child process: broken MPI must not take the doctor down.
 */
#include "report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const option options[] = {
    {"run", OPTION_TEXT, ".", "DIR", "Options", "the folder that runs shall be in"},
    {"quiet", OPTION_FLAG, "no", "", "Options", "no lines for what is good"},
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data"},
    {"lanes", OPTION_COUNT, "0", "N", "Options",
     "threads of each rank, as for gpt; 0: as many as its share of the cores", NULL, 0,
     WEFT_MAX_LANES},
    {"device-path", OPTION_TEXT, "", "DIR", "Options",
     "where libweft_cuda.so is; without it, beside libweft.so"},
};
const option_table doctor_table = {
    .program = "weft doctor",
    .usage = "weft doctor [options]   whether this node can do what Weft needs; under mpirun\n"
             "                        or srun all nodes, and what differs between them\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "whether a node can do what Weft needs, and the way out where not",
};

const doctor_check doctor_checks[DOCTOR_CHECKS] = {
#define DOCTOR_CHECK(name, function, scope) {name, doctor_##function, scope},
#include "list.inc"
#undef DOCTOR_CHECK
};

const char *const doctor_words[DOCTOR_VERDICTS] = {"none", "ok", "warn", "fail"};

verdict doctor_say(finding *f, verdict v, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    return v;
}

/* ---- this process --------------------------------------------------------------------------- */

/* A run makes its folder, where what is above it is there. */
static void find_folder(doctor *d)
{
    struct stat facts;
    snprintf(d->folder, sizeof d->folder, "%.4000s", d->given);
    for (int i = 0; i < 2; i++) {
        if (stat(d->folder, &facts) == 0) {
            if (!S_ISDIR(facts.st_mode)) *d->folder = '\0';
            return;
        }
        size_t n = strlen(d->folder);
        while (n > 1 && d->folder[n - 1] == '/')
            d->folder[--n] = '\0';
        char *slash = strrchr(d->folder, '/');
        if (!slash)
            snprintf(d->folder, sizeof d->folder, ".");
        else
            slash[slash == d->folder] = '\0';
    }
    *d->folder = '\0';
}

/* {"host": ..., "time": ..., "findings": {"cores": ["ok", text, fact], ...}} */
static json_t *examine(const doctor *d, const char *host, bool is_first_on_host)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    json_t *findings = json_object();
    for (int i = 0; i < DOCTOR_CHECKS; i++) {
        finding f = {.verdict = DOCTOR_NONE};
        if (doctor_checks[i].scope == DOCTOR_HOST && !is_first_on_host) continue;
        f.verdict = doctor_checks[i].check(d, &f);
        if (f.verdict == DOCTOR_NONE) continue;
        json_t *one = json_pack("[s, s+, s+]", doctor_words[f.verdict], f.text, "", f.fact, "");
        if (!one) one = json_pack("[s, s, s]", doctor_words[f.verdict], "(not text)", "");
        json_object_set_new(findings, doctor_checks[i].name, one);
    }
    return json_pack("{s:s, s:f, s:o}", "host", host, "time",
                     (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, "findings", findings);
}

/* ---- between processes ---------------------------------------------------------------------- */

typedef struct circle { /* all processes, to exchange texts */
    weft_mesh *mesh;
    weft_comms *comms;
    weft_comm *comm;
    int n, self;
} circle;

static weft_status circle_open(circle *c, const weft_world *world, weft_error *error)
{
    *c = (circle){.n = world->n_processes, .self = world->process};
    weft_lanes_choose(1);
    WEFT_TRY(weft_mesh_create(world, "", &c->mesh, error));
    WEFT_TRY(weft_comms_create(c->mesh, &c->comms, error));
    WEFT_TRY(weft_comms_prepare(c->comms, 1, error));
    c->comm = weft_comm_of(c->comms, c->self, 1);
    return WEFT_OK;
}

static void circle_close(circle *c)
{
    weft_comms_destroy(&c->comms);
    weft_mesh_destroy(&c->mesh);
}

/* Every process's text, each with its end, in `all`, which is the caller's; places [n]. */
static weft_status gather_texts(circle *c, const char *mine, char **all, int64_t *places,
                                weft_error *error)
{
    const int64_t bytes = (int64_t)strlen(mine) + 1;
    weft_request request;
    int64_t *counts = calloc((size_t)c->n, sizeof *counts), total = 0;
    if (!counts) return weft_fail_memory(error, 0);
    weft_status status = weft_comm_gather(c->comm, &bytes, sizeof bytes, counts, error);
    for (int i = 0; i < c->n; i++) {
        places[i] = total;
        total += counts[i];
    }
    *all = status == WEFT_OK ? malloc((size_t)total) : NULL;
    if (status == WEFT_OK && !*all) status = weft_fail_memory(error, (size_t)total);
    if (status == WEFT_OK)
        status = weft_all_gather_start(c->comm, mine, bytes, *all, counts, places, &request, error);
    if (status == WEFT_OK) status = weft_wait(&request, error);
    free(counts);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------- */

static bool has_launcher(void)
{
    return getenv("OMPI_COMM_WORLD_RANK") || getenv("PMIX_RANK") || getenv("SLURM_STEP_ID");
}

/* Under a launcher MPI is met with the others. Not tried in a child before: a rank that comes half
 * a second late makes Open MPI 4.1 under srun crash now and then. */
static void join(doctor *d, weft_error *error)
{
    d->world = (weft_world){.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    if (!has_launcher()) doctor_mpi_probe();
    if (app_join(&d->world, error) != WEFT_OK)
        d->no_world = error->message;
    else if (has_launcher() && d->world.n_processes > 1)
        doctor_mpi_joined();
}

/* The lanes of a run are started, and end at once. */
static void try_lanes(doctor *d, int lanes)
{
    weft_error why = {.rank = -1};
    weft_mesh *mesh = NULL;
    if (d->no_world) return;
    weft_lanes_choose(lanes);
    if (weft_mesh_create(&d->world, "", &mesh, &why) != WEFT_OK) app_name_options(&why);
    snprintf(d->no_lanes, sizeof d->no_lanes, "%s", why.message);
    d->n_lanes = weft_mesh_lanes(mesh);
    weft_mesh_crowding(mesh, d->crowding, sizeof d->crowding);
    weft_mesh_destroy(&mesh);
}

typedef struct meeting { /* what processes have told each other first */
    char *hosts;         /* each: its host's name */
    int64_t *places;
    char mark[4400]; /* a file that the root has put into its folder */
} meeting;

static const char *host_at(const meeting *m, int i)
{
    return m->hosts + m->places[i];
}

/* The hosts, and whether they see one folder. Its end is where all read their clocks. */
static weft_status meet(circle *c, doctor *d, const char *host, meeting *m, weft_error *error)
{
    char *mark = NULL;
    int64_t *places = calloc((size_t)c->n, sizeof *places);
    m->places = calloc((size_t)c->n, sizeof *m->places);
    if (!places || !m->places) return weft_fail_memory(error, 0);
    doctor_probe_path(d, host, m->mark, sizeof m->mark);
    FILE *file = c->self == 0 && *d->folder ? fopen(m->mark, "wxe") : NULL;
    if (file) fclose(file);
    const char *base = strrchr(m->mark, '/');
    weft_status status = gather_texts(c, host, &m->hosts, m->places, error);
    if (status == WEFT_OK) status = gather_texts(c, base, &mark, places, error);
    if (status == WEFT_OK) {
        char there[8400];
        snprintf(there, sizeof there, "%s%s", d->folder, mark);
        d->is_shared = *d->folder && access(there, F_OK) == 0;
        for (int i = 0; i < c->n; i++) {
            int k = 0;
            while (strcmp(host_at(m, k), host_at(m, i)) != 0)
                k++;
            d->n_hosts += k == i;
        }
    }
    free(mark);
    free(places);
    return status;
}

/* What only all together can find out. */
static weft_status try_together(circle *c, doctor *d, weft_error *error)
{
    enum { SHARED_BYTES = 64 << 20 }; /* of a small model */
    weft_link_speed speeds[WEFT_MAX_AXES];
    void *memory;
    WEFT_TRY(weft_comms_take(c->comms, SHARED_BYTES, &memory, error));
    d->apart = weft_comms_apart(c->comms);
    WEFT_TRY(weft_comms_measure(c->comms, speeds, error));
    d->link = speeds[0];
    weft_links_text(c->mesh, speeds, d->link_text, sizeof d->link_text);
    return WEFT_OK;
}

static bool is_first_of(const meeting *m, int self)
{
    int first = 0;
    while (strcmp(host_at(m, first), host_at(m, self)) != 0)
        first++;
    return first == self;
}

/* The findings of all; NULL but at the root. */
static json_t *examine_all(doctor *d, const char *host, weft_error *error)
{
    circle c = {0};
    meeting m = {0};
    char *mine = NULL, *texts = NULL;
    json_t *all = NULL;
    int64_t *places = calloc((size_t)d->world.n_processes, sizeof *places);
    if (places && circle_open(&c, &d->world, error) == WEFT_OK &&
        try_together(&c, d, error) == WEFT_OK && meet(&c, d, host, &m, error) == WEFT_OK) {
        json_t *one = examine(d, host, is_first_of(&m, c.self));
        mine = json_dumps(one, JSON_COMPACT);
        json_decref(one);
        (void)!gather_texts(&c, mine ? mine : "{}", &texts, places, error);
    }
    if (c.self == 0 && *m.mark) unlink(m.mark);
    for (int i = 0; texts && c.self == 0 && i < c.n; i++) {
        if (!all) all = json_array();
        json_array_append_new(all, json_loads(texts + places[i], 0, NULL));
    }
    free(mine);
    free(texts);
    free(places);
    free(m.hosts);
    free(m.places);
    circle_close(&c);
    return all;
}

static weft_status print(const json_t *all, const settings *s, bool *has_failed, weft_error *error)
{
    json_t *report = doctor_report(all);
    *has_failed = !json_is_true(json_object_get(report, "ok"));
    if (settings_flag(s, "json")) {
        json_dumpf(report, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        doctor_print(report, settings_flag(s, "quiet"));
    }
    json_decref(report);
    if (fflush(stdout) != 0) return weft_fail(error, WEFT_IO, "cannot write to stdout");
    return WEFT_OK;
}

static bool visit(const settings *s, weft_error *error)
{
    doctor d = {.given = settings_text(s, "run"), .n_hosts = 0};
    char host[256] = "?";
    bool has_failed = false, any;
    json_t *all = NULL;
    weft_error joining = {.rank = -1};
    gethostname(host, sizeof host - 1);
    find_folder(&d);
    join(&d, &joining);
    try_lanes(&d, (int)settings_count(s, "lanes"));
    if (d.no_world || d.world.n_processes == 1) {
        d.n_hosts = 1;
        all = json_array();
        json_array_append_new(all, examine(&d, host, true));
    } else {
        all = examine_all(&d, host, error);
    }
    if (all && (!d.no_world || weft_world_is_root())) (void)!print(all, s, &has_failed, error);
    json_decref(all);
    if (d.no_world) return true;
    return weft_world_any(has_failed, &any, error) == WEFT_OK && any;
}

int doctor_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    signal(SIGXFSZ, SIG_IGN); /* a file that gets too long is a finding, not the end */
    settings *s = settings_read(&doctor_table, n, arguments, &error);
    if (s) app_device_path(s);
    const bool has_failed = s && visit(s, &error);
    settings_destroy(&s);
    const int code = app_leave(doctor_table.program, APP_STARTING, &error);
    return code == 0 && has_failed ? 2 : code;
}
