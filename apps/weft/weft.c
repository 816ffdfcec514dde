/* weft: one program with a command for each thing it looks at. Machines: info, doctor, calibrate, machine. Checkpoints: ckpt. Jobs:
 * top while they run, postmortem when they have ended, trace for their steps. Runs and plans: report as a page, diff beside each other.
 * tune finds the options that a training learns best with; run runs a saved program, serve answers by it; tokens makes words of a text, data tells what
 * files hold. */
#include <jansson.h>
#include <string.h>

#include "../links.h"
#include "../options_pages.h"
#include "ckpt/ckpt.h"
#include "data/data.h"
#include "diff/diff.h"
#include "doctor/doctor.h"
#include "machine/machine.h"
#include "postmortem.h"
#include "report/report.h"
#include "saved/saved.h"
#include "serve/serve.h"
#include "tokens.h"
#include "top/top.h"
#include "trace/trace.h"
#include "tune/tune.h"

static const option info_options[] = {
    {"mesh", OPTION_TEXT, "", "AXES", "Options", "show this mesh's ranks; without it, data:N"},
    {"layout", OPTION_TEXT, "", "RULES", "Options", "check these rules against the mesh"},
    {"zero", OPTION_CHOICE, "0", "STAGE", "Options", "as for gpt", "0 1 2 3"},
    {"links", OPTION_FLAG, "no", "", "Options",
     "measure the links over each axis, some hundred ms, and print the --link that states them"},
    APP_EXTEND_OPTIONS("Options"),
    {"json", OPTION_FLAG, "no", "", "Options", "the same as data"},
};
static const option_table info_table = {
    .program = "weft info",
    .usage = "weft info [options]   the machine, the engines, the BLAS in use, the ranks\n",
    .options = info_options,
    .n_options = sizeof info_options / sizeof *info_options,
    .about = "the machine, the engines, the BLAS kernel in use, the ranks",
};

/* ---- info --------------------------------------------------------------------------------------
 */

static void print_ranks(const weft_mesh *mesh)
{
    int coordinates[WEFT_MAX_AXES];
    const int n = weft_mesh_n_ranks(mesh), shown = n < 64 ? n : 64;
    for (int rank = 0; rank < shown; rank++) {
        weft_mesh_coordinates(mesh, rank, coordinates);
        printf("  rank %-4d", rank);
        for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
            printf(" %s %d", weft_mesh_axis_name(mesh, a), coordinates[a]);
        printf("\n");
    }
    if (shown < n) printf("  and %d more\n", n - shown);
}

static void print_links(const weft_mesh *mesh, const weft_link_speed *speeds)
{
    char link[APP_LINK_BYTES];
    weft_links_text(mesh, speeds, link, sizeof link);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (speeds[a].bytes_per_s > 0)
            printf("link        over %s: %.4g MB/s of a rank, %.4g us, %s\n",
                   weft_mesh_axis_name(mesh, a), 1e-6 * speeds[a].bytes_per_s,
                   1e6 * speeds[a].latency_s,
                   speeds[a].is_between_hosts ? "between hosts" : "within a host");
    if (*link)
        printf("            stated, it is --link %s\n", link);
    else
        printf("link        none: no axis has two ranks\n");
}

/* Devices that come in libraries of their own, of which a user wants to know why they are not here. */
static const char *const wanted[] = {"cuda"};
enum { N_WANTED = sizeof wanted / sizeof *wanted };

static void print_devices(void)
{
    weft_error why[N_WANTED] = {{.rank = -1}};
    for (int i = 0; i < N_WANTED; i++)
        (void)!weft_device_look(wanted[i], &why[i]);
    for (int d = 0; d < WEFT_DEVICES && weft_devices[d]; d++) {
        char text[300] = "";
        if (weft_devices[d]->describe) weft_devices[d]->describe(text, sizeof text);
        printf("%-11s %s%s%s\n", d == 0 ? "devices" : "", weft_devices[d]->name, *text ? ": " : "",
               text);
    }
    for (int i = 0; i < N_WANTED; i++)
        if (why[i].status != WEFT_OK) printf("%-11s %s\n", "", why[i].message);
}

/* "4 + 8 of two kinds" */
static void print_kinds(const weft_machine *m)
{
    if (m->n_kinds == 1) return;
    for (int i = 0; i < m->n_kinds; i++)
        printf("%s%d", i == 0 ? ", " : " + ", m->kind_cores[i]);
    printf(" of %d kinds, slow ones first", m->n_kinds);
}

/* What is found. */
static void print_cores(const weft_machine *m)
{
    printf("cores       %d", m->n_cores);
    if (m->host_cores > m->n_cores) printf(" of the host's %d", m->host_cores);
    if (m->n_threads > m->n_cores) printf(", with %d hardware threads", m->n_threads);
    print_kinds(m);
    if (m->n_nodes > 1) printf(", %d nodes of memory", m->n_nodes);
    if (m->cpu_quota > 0) printf(", time for %.3g of them", m->cpu_quota);
    putchar('\n');
}

/* What is used. */
static void print_lanes(const weft_mesh *mesh)
{
    const int n_lanes = weft_mesh_lanes(mesh), n_ranks = weft_mesh_n_ranks(mesh);
    char text[400];
    printf("lanes       %d a rank, %lld thread%s in all\n", n_lanes, (long long)n_ranks * n_lanes,
           n_ranks * n_lanes == 1 ? "" : "s");
    weft_mesh_crowding(mesh, text, sizeof text);
    if (*text) printf("            %s\n", text);
}

static void print_info(const weft_mesh *mesh, const char *engine)
{
    const weft_machine *m = weft_machine_info();
    printf("weft        %s\n", WEFT_VERSION);
    printf("processor   %s\n", m->processor);
    print_cores(m);
    printf("memory      %.1f GiB\n", (double)m->memory_bytes / (1 << 30));
    printf("caches      L2 %.1f MiB, L3 %.1f MiB\n", (double)m->l2_bytes / (1 << 20),
           (double)m->l3_bytes / (1 << 20));
    printf("blas        %s, kernel %s", m->blas, m->blas_kernel);
    if (strcmp(m->blas_kernel, m->blas_kernel_found) != 0)
        printf(" (it chose %s by itself, which is slower here)", m->blas_kernel_found);
    printf("\nengines     threads, mpi: %s\n", WEFT_HAS_MPI ? "yes" : "no, not found when built");
    print_devices();
    printf("mesh        %s: %d rank%s by %s\n", weft_mesh_text(mesh), weft_mesh_n_ranks(mesh),
           weft_mesh_n_ranks(mesh) == 1 ? "" : "s", engine);
    print_lanes(mesh);
    print_ranks(mesh);
}

static json_t *devices_json(void)
{
    json_t *devices = json_array();
    for (int i = 0; i < N_WANTED; i++)
        (void)!weft_device_look(wanted[i], NULL);
    for (int d = 0; d < WEFT_DEVICES; d++)
        if (weft_devices[d]) json_array_append_new(devices, json_string(weft_devices[d]->name));
    return devices;
}

static json_t *links_json(const weft_mesh *mesh, const weft_link_speed *speeds)
{
    json_t *axes = json_object();
    for (int a = 0; speeds && a < weft_mesh_n_axes(mesh); a++)
        if (speeds[a].bytes_per_s > 0)
            json_object_set_new(axes, weft_mesh_axis_name(mesh, a),
                                json_pack("{s:f, s:f, s:b}", "bytes_per_s", speeds[a].bytes_per_s,
                                          "latency_s", speeds[a].latency_s, "between_hosts",
                                          speeds[a].is_between_hosts));
    return axes;
}

static json_t *found_json(const weft_machine *m)
{
    json_t *kinds = json_array();
    for (int i = 0; i < m->n_kinds; i++)
        json_array_append_new(kinds, json_integer(m->kind_cores[i]));
    return json_pack("{s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "hardware_threads", m->n_threads,
                     "host_cores", m->host_cores, "host_hardware_threads", m->host_threads,
                     "memory_nodes", m->n_nodes, "kinds", kinds, "cpu_quota",
                     m->cpu_quota > 0 ? json_real(m->cpu_quota) : json_null(), "threads_limit",
                     m->threads_limit > 0 ? json_integer(m->threads_limit) : json_null());
}

/* speeds: NULL: they were not measured */
static weft_status print_json(const weft_mesh *mesh, const char *engine,
                              const weft_link_speed *speeds, weft_error *error)
{
    char link[APP_LINK_BYTES];
    char note[400];
    weft_links_text(mesh, speeds, link, sizeof link);
    weft_mesh_crowding(mesh, note, sizeof note);
    const weft_machine *m = weft_machine_info();
    json_t *all = json_pack(
        "{s:s, s:s, s:i, s:o, s:I, s:I, s:I, s:{s:s, s:s, s:s}, s:{s:b, s:b}, s:o, s:{s:s, s:i, "
        "s:s, "
        "s:i, s:s?}, s:o, s:s?}",
        "version", WEFT_VERSION, "processor", m->processor, "cores", m->n_cores, "found",
        found_json(m), "memory_bytes", (json_int_t)m->memory_bytes, "l2_bytes",
        (json_int_t)m->l2_bytes, "l3_bytes", (json_int_t)m->l3_bytes, "blas", "name", m->blas,
        "kernel", m->blas_kernel, "kernel_found", m->blas_kernel_found, "engines", "threads", 1,
        "mpi", WEFT_HAS_MPI, "devices", devices_json(), "mesh", "text", weft_mesh_text(mesh),
        "ranks", weft_mesh_n_ranks(mesh), "engine", engine, "lanes", weft_mesh_lanes(mesh), "note",
        *note ? note : NULL, "links", links_json(mesh, speeds), "link", *link ? link : NULL);
    if (!all) return weft_fail_memory(error, 0);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return WEFT_OK;
}

static weft_status show(const settings *s, weft_mesh *mesh, const weft_layout *layout,
                        weft_error *error)
{
    weft_comms *comms = NULL;
    weft_link_speed speeds[WEFT_MAX_AXES];
    const bool measures = settings_flag(s, "links");
    WEFT_TRY(weft_layout_check(layout, mesh, NULL, 0, error));
    if (measures) WEFT_TRY(app_links_measure(mesh, speeds, error));
    WEFT_TRY(weft_comms_create(mesh, &comms, error));
    const char *engine = weft_comms_engine(comms);
    weft_status status = WEFT_OK;
    if (weft_mesh_is_root(mesh) && settings_flag(s, "json"))
        status = print_json(mesh, engine, measures ? speeds : NULL, error);
    else if (weft_mesh_is_root(mesh))
        print_info(mesh, engine);
    if (measures && weft_mesh_is_root(mesh) && !settings_flag(s, "json")) print_links(mesh, speeds);
    weft_comms_destroy(&comms);
    if (fflush(stdout) != 0) status = weft_fail(error, WEFT_IO, "cannot write to stdout");
    return status;
}

static int info(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    weft_world world;
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    settings *s = settings_read(&info_table, n, arguments, &error);
    if (s && app_open(s, false, &world, &mesh, &layout, &error) == WEFT_OK)
        (void)!show(s, mesh, layout, &error);
    return app_close(&info_table, &s, &mesh, &layout, APP_STARTING, &error);
}

/* ---- the command line --------------------------------------------------------------------------
 */

typedef struct command {
    const option_table *table;
    int (*run)(int n, char **arguments);
} command;

static const command commands[] = {{&info_table, info},
                                   {&run_table, run_main},
                                   {&serve_table, serve_main},
                                   {&ckpt_table, ckpt_main},
                                   {&tokens_table, tokens_main},
                                   {&data_table, data_main},
                                   {&postmortem_table, postmortem_main},
                                   {&top_table, top_main},
                                   {&doctor_table, doctor_main},
                                   {&calibrate_table, calibrate_main},
                                   {&machine_table, machine_main},
                                   {&trace_table, trace_main},
                                   {&report_table, report_main},
                                   {&diff_table, diff_main},
                                   {&tune_table, tune_main}};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(void)
{
    if (!weft_world_is_root()) return;
    printf("weft COMMAND [options]; weft COMMAND --help tells more\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  %-10s %s\n", options_command(commands[i].table), commands[i].table->about);
    printf("\nweft --version says which this is. The programs beside it: gpt, mnist, charlm,\n"
           "seq2seq, word2vec.\n");
}

/* --help=man and the like, of all commands. */
static weft_status tell(const char *kind, weft_error *error)
{
    const option_table *tables[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++)
        tables[i] = commands[i].table;
    if (strcmp(kind, "all") != 0)
        return options_tell(&(option_family){"weft",
                                             "looks at machines, checkpoints, texts and ended jobs",
                                             tables, N_COMMANDS},
                            kind, error);
    help();
    return WEFT_OK;
}

static bool is_help(const char *word)
{
    static const char *const words[] = {"", "help", "-h", "--help"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

static weft_status fail_unknown(const char *name, weft_error *error)
{
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = options_command(commands[i].table);
    const char *near = weft_nearest(name, names, N_COMMANDS);
    return weft_fail(error, WEFT_USAGE, "unknown command \"%s\"; %s%s%s", name,
                     near ? "did you mean " : "weft --help lists what there is", near ? near : "",
                     near ? "?" : "");
}

int main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const char *name = n > 1 ? arguments[1] : "";
    if (strcmp(name, "--version") == 0) return printf("weft %s\n", WEFT_VERSION) < 0;
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, options_command(commands[i].table)) == 0)
            return commands[i].run(n - 2, arguments + 2);
    if (is_help(name))
        help();
    else if (strncmp(name, "--help=", strlen("--help=")) == 0)
        (void)!tell(name + strlen("--help="), &error);
    else
        (void)!fail_unknown(name, &error);
    return error.status == WEFT_OK ? 0 : app_leave("weft", APP_STARTING, &error);
}
