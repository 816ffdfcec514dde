/* doctor: weft doctor, one table a host: every check is ok, a warning or a failure, with the way
 * out.
 *
 * Every process makes its findings; the root collects them as JSON and prints that, or tables of
 * it. Alone, MPI is tried in a child process: broken MPI must not take the doctor down.
 */
#include "doctor.h"

#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const option options[] = {
    {"run", OPTION_TEXT, ".", "DIR", "Options", "the folder that runs shall be in"},
    {"quiet", OPTION_FLAG, "no", "", "Options", "no lines for what is good"},
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data"},
    {"device-path", OPTION_TEXT, "", "DIR", "Options",
     "where libweft_cuda.so is; without it, beside libweft.so"},
};
static const option_table table = {
    .program = "weft doctor",
    .usage = "weft doctor [options]   whether this node can do what Weft needs; under mpirun or "
             "srun all\n                        nodes, and what differs between them\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
};

enum scope { HOST, EACH };

static const struct {
    const char *name;
    verdict (*check)(const doctor *d, finding *f);
    enum scope scope;
} checks[] = {
#define DOCTOR_CHECK(name, function, scope) {name, doctor_##function, scope},
#include "doctor_list.inc"
#undef DOCTOR_CHECK
};
enum { N_CHECKS = sizeof checks / sizeof *checks };

static const char *const words[DOCTOR_VERDICTS] = {"none", "ok", "warn", "fail"};

verdict doctor_say(finding *f, verdict v, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    return v;
}

/* ---- this process --------------------------------------------------------------------------- */

static int count_allowed(void)
{
    int count = 0;
    for (size_t n = 1024; n <= 1 << 20 && count == 0; n *= 4) {
        cpu_set_t *set = CPU_ALLOC(n);
        const size_t bytes = CPU_ALLOC_SIZE(n);
        if (set && sched_getaffinity(0, bytes, set) == 0) count = CPU_COUNT_S(bytes, set);
        if (set) CPU_FREE(set);
    }
    return count > 0 ? count : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

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
    for (int i = 0; i < N_CHECKS; i++) {
        finding f = {.verdict = DOCTOR_NONE};
        if (checks[i].scope == HOST && !is_first_on_host) continue;
        f.verdict = checks[i].check(d, &f);
        if (f.verdict == DOCTOR_NONE) continue;
        json_t *one = json_pack("[s, s+, s+]", words[f.verdict], f.text, "", f.fact, "");
        if (!one) one = json_pack("[s, s, s]", words[f.verdict], "(not text)", "");
        json_object_set_new(findings, checks[i].name, one);
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
    weft_mesh_limit_cores(1);
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

static weft_status gather(circle *c, const void *mine, int64_t bytes, void *all, int64_t *counts,
                          int64_t *places, weft_error *error)
{
    weft_request request;
    WEFT_TRY(weft_all_gather_start(c->comm, mine, bytes, all, counts, places, &request, error));
    return weft_wait(&request, error);
}

/* Every process's text, each with its end, in `all`, which is the caller's; places [n]. */
static weft_status gather_texts(circle *c, const char *mine, char **all, int64_t *places,
                                weft_error *error)
{
    const int64_t bytes = (int64_t)strlen(mine) + 1;
    int64_t *counts = calloc((size_t)c->n * 2, sizeof *counts), *eights = counts + c->n, total = 0;
    if (!counts) return weft_fail_memory(error, 0);
    for (int i = 0; i < c->n; i++) {
        eights[i] = sizeof bytes;
        places[i] = i * (int64_t)sizeof bytes;
    }
    weft_status status = gather(c, &bytes, sizeof bytes, counts, eights, places, error);
    for (int i = 0; i < c->n; i++) {
        places[i] = total;
        total += counts[i];
    }
    *all = status == WEFT_OK ? malloc((size_t)total) : NULL;
    if (status == WEFT_OK && !*all) status = weft_fail_memory(error, (size_t)total);
    if (status == WEFT_OK) status = gather(c, mine, bytes, *all, counts, places, error);
    free(counts);
    return status;
}

/* ---- what the root makes of it -------------------------------------------------------------- */

static int verdict_of(const json_t *finding)
{
    const char *word = json_string_value(json_array_get(finding, 0));
    for (int i = 0; word && i < DOCTOR_VERDICTS; i++)
        if (strcmp(words[i], word) == 0) return i;
    return DOCTOR_NONE;
}

static const char *part(const json_t *finding, size_t i)
{
    const char *text = json_string_value(json_array_get(finding, i));
    return text ? text : "";
}

static json_t *of_process(const json_t *process, const char *check)
{
    return json_object_get(json_object_get(process, "findings"), check);
}

static void add_line(json_t *lines, const char *name, const json_t *finding, int process)
{
    json_t *line = json_pack("{s:s, s:s, s:s}", "name", name, "verdict", part(finding, 0), "text",
                             part(finding, 1));
    if (process >= 0) json_object_set_new(line, "process", json_integer(process));
    json_array_append_new(lines, line);
}

/* A line a check; and one more for the process of the host that has it worst, if that is worse. */
static json_t *lines_of_host(const json_t *all, const json_t *members)
{
    json_t *lines = json_array(), *member;
    const json_t *first =
        json_array_get(all, (size_t)json_integer_value(json_array_get(members, 0)));
    for (int i = 0; i < N_CHECKS; i++) {
        const json_t *found = of_process(first, checks[i].name);
        int worst = verdict_of(found), process = -1;
        size_t k;
        if (found) add_line(lines, checks[i].name, found, -1);
        json_array_foreach(members, k, member)
        {
            const int p = (int)json_integer_value(member);
            const json_t *one = of_process(json_array_get(all, (size_t)p), checks[i].name);
            if (checks[i].scope == EACH && verdict_of(one) > worst) {
                worst = verdict_of(one);
                process = p;
            }
        }
        if (process >= 0)
            add_line(lines, checks[i].name,
                     of_process(json_array_get(all, (size_t)process), checks[i].name), process);
    }
    return lines;
}

static const char *host_of(const json_t *process)
{
    return json_string_value(json_object_get(process, "host"));
}

/* [{"host": ..., "processes": [0, 1], "checks": [...]}, ...] in the order of the processes. */
static json_t *hosts_of(const json_t *all)
{
    json_t *hosts = json_array(), *members = json_object(), *process, *list;
    const char *name;
    size_t i;
    json_array_foreach(all, i, process)
    {
        name = host_of(process);
        if (!json_object_get(members, name)) json_object_set_new(members, name, json_array());
        json_array_append_new(json_object_get(members, name), json_integer((json_int_t)i));
    }
    json_object_foreach(members, name, list)
        json_array_append_new(hosts, json_pack("{s:s, s:O, s:o}", "host", name, "processes", list,
                                               "checks", lines_of_host(all, list)));
    json_decref(members);
    return hosts;
}

static const json_t *first_of(const json_t *all, const json_t *host)
{
    const json_t *first = json_array_get(json_object_get(host, "processes"), 0);
    return json_array_get(all, (size_t)json_integer_value(first));
}

/* What has to be the same on all hosts: of check i, and after the checks the clock, which was read
 * when all had just waited for each other. */
static void fact_of(const json_t *process, int i, double zero, char *text, size_t bytes)
{
    enum { APART = 1 /* second */ };
    const double apart = json_number_value(json_object_get(process, "time")) - zero;
    if (i < N_CHECKS)
        snprintf(text, bytes, "%s", part(of_process(process, checks[i].name), 2));
    else if (fabs(apart) < APART)
        snprintf(text, bytes, "as the first host's");
    else
        snprintf(text, bytes, "%+.1f s", apart);
}

/* [{"name": "kernel", "values": {"n1": "5.10", "n2": "5.15"}}, ...] */
static json_t *differences(const json_t *all, const json_t *hosts)
{
    json_t *differs = json_array(), *host;
    const double zero = json_number_value(json_object_get(json_array_get(all, 0), "time"));
    for (int i = 0; i <= N_CHECKS; i++) {
        json_t *values = json_object();
        char first[160] = "", text[160];
        bool is_same = true;
        size_t k;
        json_array_foreach(hosts, k, host)
        {
            fact_of(first_of(all, host), i, zero, text, sizeof text);
            if (k == 0) snprintf(first, sizeof first, "%s", text);
            is_same = is_same && strcmp(first, text) == 0;
            json_object_set_new(values, json_string_value(json_object_get(host, "host")),
                                json_string(text));
        }
        const char *name = i < N_CHECKS ? checks[i].name : "clocks";
        if (!is_same)
            json_array_append_new(differs, json_pack("{s:s, s:O}", "name", name, "values", values));
        json_decref(values);
    }
    return differs;
}

static int count(const json_t *report, verdict v)
{
    const json_t *host, *line;
    size_t i, k;
    int n = 0;
    json_array_foreach(json_object_get(report, "hosts"), i, host)
        json_array_foreach(json_object_get(host, "checks"), k, line) n +=
        strcmp(json_string_value(json_object_get(line, "verdict")), words[v]) == 0;
    return n;
}

static json_t *report_of(const json_t *all)
{
    json_t *hosts = hosts_of(all);
    json_t *report = json_pack("{s:o, s:o}", "hosts", hosts, "differs", differences(all, hosts));
    json_object_set_new(report, "ok", json_boolean(count(report, DOCTOR_FAIL) == 0));
    return report;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_line(const json_t *line, bool is_quiet)
{
    const json_t *process = json_object_get(line, "process");
    const char *verdict = json_string_value(json_object_get(line, "verdict"));
    if (is_quiet && strcmp(verdict, words[DOCTOR_OK]) == 0) return;
    printf("  %-4s  %-11s  %s", verdict, json_string_value(json_object_get(line, "name")),
           json_string_value(json_object_get(line, "text")));
    if (process) printf(" (process %lld)", (long long)json_integer_value(process));
    putchar('\n');
}

static void print_difference(const json_t *difference)
{
    json_t *value;
    const char *host, *before = "";
    printf("  %-11s ", json_string_value(json_object_get(difference, "name")));
    json_object_foreach(json_object_get(difference, "values"), host, value)
    {
        const char *text = json_string_value(value);
        printf("%s %s: %s", before, host, *text ? text : "-");
        before = ";";
    }
    putchar('\n');
}

static void print_report(const json_t *report, bool is_quiet)
{
    const json_t *host, *one;
    size_t i, k;
    json_array_foreach(json_object_get(report, "hosts"), i, host)
    {
        const size_t n = json_array_size(json_object_get(host, "processes"));
        printf("%s, %zu process%s\n", json_string_value(json_object_get(host, "host")), n,
               n == 1 ? "" : "es");
        json_array_foreach(json_object_get(host, "checks"), k, one) print_line(one, is_quiet);
    }
    if (json_array_size(json_object_get(report, "differs")) > 0)
        puts("what differs between the hosts");
    json_array_foreach(json_object_get(report, "differs"), i, one) print_difference(one);
    printf("%d ok, %d to look at, %d that fail\n", count(report, DOCTOR_OK),
           count(report, DOCTOR_WARN), count(report, DOCTOR_FAIL));
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
    json_t *report = report_of(all);
    *has_failed = !json_is_true(json_object_get(report, "ok"));
    if (settings_flag(s, "json")) {
        json_dumpf(report, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_report(report, settings_flag(s, "quiet"));
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
    d.n_allowed = count_allowed();
    join(&d, &joining);
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
    settings *s = settings_read(&table, n, arguments, &error);
    if (s) app_device_path(s);
    const bool has_failed = s && visit(s, &error);
    settings_destroy(&s);
    const int code = app_leave(table.program, APP_STARTING, &error);
    return code == 0 && has_failed ? 2 : code;
}
