/* nvrtc: a libnvrtc.so of the emulated driver: the functions that Weft calls. It compiles the same source, with the same headers,
 * by the C compiler, to a library that the emulated driver loads as a module. Headers take the compiler longer than a loop does:
 * they are compiled once, and kept in EMULATED_KEPT for all processes, in a folder that a hash of their texts names.
 *
 * With TEST_NVRTC_ALSO=128 the toolkit's NVRTC compiles each text too, for sm_80 and sm_90. Its warnings are errors
 * here, and so are more than 128 registers and spills to memory. Where it is not there, a line on stderr says so.
 *
 * Its version is 0.1, so that nobody takes for a GPU's what it made. The environment: TEST_NVRTC_FAULT: "SYNC();=": each of
 * these in the headers is replaced by what stands behind the = (none), for tests of what the emulation finds.
 */
#include <nvrtc.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { ROOM = 4096, MOST_FILES = 100 };

typedef struct folder {
    char path[1000];
    char *files[MOST_FILES]; /* written in it */
    int n_files;
} folder;

struct _nvrtcProgram {
    folder own;         /* its text, and what the compiler makes of it */
    char headers[1000]; /* where these are */
    const char *source, *const *texts, *const *names;
    int n_headers;
    char *image, *log;
    size_t image_bytes, log_bytes;
};

extern char **environ;

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 0, *minor = 1;
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "an NVRTC error";
}

/* ---- files ----------------------------------------------------------------------------------- */

/* With the fault that a test plants. */
static void write_text(FILE *file, const char *text)
{
    const char *fault = getenv("TEST_NVRTC_FAULT"), *is = fault ? strchr(fault, '=') : NULL;
    const size_t n = is ? (size_t)(is - fault) : 0;
    while (*text != '\0') {
        if (n > 0 && strncmp(text, fault, n) == 0) {
            fputs(is + 1, file);
            text += n;
        } else
            fputc(*text++, file);
    }
}

/* Folders above it, where they are not there. */
static void make_above(char *path, size_t n_there)
{
    for (char *at = path + n_there + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
}

/* The path of a file that is, or will be, in it. */
static const char *add_path(folder *in, const char *name)
{
    char path[ROOM];
    if (in->n_files == MOST_FILES) return NULL;
    snprintf(path, sizeof path, "%s/%s", in->path, name);
    make_above(path, strlen(in->path));
    return in->files[in->n_files++] = strdup(path);
}

static bool add_file(folder *in, const char *name, const char *text)
{
    const char *path = add_path(in, name);
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file == NULL) return false;
    write_text(file, text);
    return fclose(file) == 0;
}

static bool read_file(const char *in, const char *name, char **to, size_t *bytes)
{
    char path[ROOM];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", in, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    const bool has_facts = fstat(fileno(file), &facts) == 0;
    *bytes = has_facts ? (size_t)facts.st_size : 0;
    *to = calloc(1, *bytes + 1);
    const bool is_read = *to != NULL && fread(*to, 1, *bytes, file) == *bytes;
    fclose(file);
    return is_read;
}

/* The folders that files are in, and the folder itself, once they are empty. */
static void remove_all(folder *in)
{
    for (int i = 0; i < in->n_files; i++)
        (void)unlink(in->files[i]);
    for (int i = 0; i < in->n_files; i++) {
        char *slash;
        while ((slash = strrchr(in->files[i], '/')) != NULL &&
               strlen(in->path) <= (size_t)(slash - in->files[i])) {
            *slash = '\0';
            (void)rmdir(in->files[i]);
        }
        free(in->files[i]);
    }
    in->n_files = 0;
}

/* ---- the compiler ---------------------------------------------------------------------------- */

/* The same for headers and for loops: otherwise it would not take what it made of the headers. */
#define OPTIONS EMULATED_CC, "-std=gnu11", "-O1", "-w", "-fPIC", "-ffp-contract=off"

/* Its exit status; what it says is written to `errors`. */
static int run_compiler(const char *const *arguments, const char *errors)
{
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT, 0600);
    if (posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments,
                     environ) == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    posix_spawn_file_actions_destroy(&actions);
    return status;
}

/* Quoted headers alone are looked for in the folders: the system's are the compiler's own. */
static int compile_loop(nvrtcProgram p)
{
    const char *source = add_path(&p->own, "loop.c"), *library = add_path(&p->own, "loop.so"),
               *errors = add_path(&p->own, "errors");
    const char *const arguments[] = {OPTIONS,   "-shared",       "-iquote", p->headers,
                                     "-iquote", EMULATED_FOLDER, "-o",      library,
                                     source,    EMULATED_DRIVER, "-lm",     NULL};
    return run_compiler(arguments, errors);
}

/* ---- headers --------------------------------------------------------------------------------- */

static void hash_text(uint64_t *hash, const char *text)
{
    for (const char *at = text; at == text || at[-1] != '\0'; at++)
        *hash = (*hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
}

/* And of the fault that is written into them, and of which of them is compiled. */
static uint64_t hash_headers(nvrtcProgram p, const char *first)
{
    const char *fault = getenv("TEST_NVRTC_FAULT");
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash_text(&hash, first);
    hash_text(&hash, fault != NULL ? fault : "");
    for (int i = 0; i < p->n_headers; i++)
        hash_text(&hash, p->names[i]), hash_text(&hash, p->texts[i]);
    return hash;
}

/* Headers that do not compile are written all the same: the loop's own errors tell of them. */
static bool write_headers(nvrtcProgram p, const char *first, folder *in)
{
    char header[ROOM], compiled[ROOM];
    bool is_written = true;
    for (int i = 0; i < p->n_headers; i++)
        is_written = is_written && add_file(in, p->names[i], p->texts[i]);
    snprintf(header, sizeof header, "%s/%s", in->path, first);
    snprintf(compiled, sizeof compiled, "%s.gch", first);
    const char *const arguments[] = {
        OPTIONS, "-iquote",  in->path, "-iquote", EMULATED_FOLDER,
        "-x",    "c-header", header,   "-o",      add_path(in, compiled),
        NULL};
    (void)run_compiler(arguments, add_path(in, "errors"));
    return is_written;
}

/* Made beside the others and renamed: where another process was first, its own are taken. */
static bool find_headers(nvrtcProgram p)
{
    static folder made; /* Weft compiles one at a time */
    char first[200] = "";
    (void)sscanf(p->source, "#include \"%199[^\"]\"", first);
    snprintf(p->headers, sizeof p->headers, "%s/headers-%016llx", EMULATED_KEPT,
             (unsigned long long)hash_headers(p, first));
    if (access(p->headers, R_OK) == 0) return true;
    make_above(p->headers, 0);
    made = (folder){.path = EMULATED_KEPT "/making-XXXXXX"};
    const bool is_written = mkdtemp(made.path) != NULL && write_headers(p, first, &made);
    const bool is_kept = is_written && rename(made.path, p->headers) == 0;
    remove_all(&made); /* its files are elsewhere now, or another's are kept */
    return is_kept || access(p->headers, R_OK) == 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *to, const char *source, const char *name,
                                      int n_headers, const char *const *headers,
                                      const char *const *names)
{
    (void)name;
    nvrtcProgram p = *to = calloc(1, sizeof *p);
    if (p == NULL) return NVRTC_ERROR_OUT_OF_MEMORY;
    p->source = source, p->texts = headers, p->names = names, p->n_headers = n_headers;
    snprintf(p->own.path, sizeof p->own.path, "/tmp/weft_nvrtc_XXXXXX");
    const bool is_written =
        mkdtemp(p->own.path) != NULL && add_file(&p->own, "loop.c", source) && find_headers(p);
    return is_written ? NVRTC_SUCCESS : NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
}

/* ---- the toolkit's own ----------------------------------------------------------------------- */

#define REAL(name)                                                                                 \
    __typeof__(name) *name##_;                                                                     \
    *(void **)&name##_ = dlsym(library, #name);                                                    \
    if (name##_ == NULL) return false

/* What the assembler says of a kernel: at most so many registers, and nothing spilled. Any other line is a warning, and that is an
 * error. */
static bool is_good_line(const char *line, long most)
{
    long stores = 0, loads = 0;
    int registers = 0;
    const char *used = strstr(line, "Used ");
    const char *frame = strstr(line, " bytes stack frame, ");
    if (frame != NULL)
        return sscanf(frame, " bytes stack frame, %ld bytes spill stores, %ld bytes spill loads",
                      &stores, &loads) == 2 &&
               stores == 0 && loads == 0;
    if (strncmp(line, "ptxas info", strlen("ptxas info")) != 0)
        return strspn(line, " \n") == strlen(line);
    return used == NULL || sscanf(used, "Used %d registers", &registers) != 1 || registers <= most;
}

static bool fits_the_processor(const char *log, long most)
{
    bool fits = true;
    char line[1000];
    while (*log != '\0' && fits) {
        const size_t n = strcspn(log, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, log);
        fits = is_good_line(line, most);
        log += n + (log[n] != '\0');
    }
    return fits;
}

static bool compiles_for(void *library, nvrtcProgram p, const char *architecture, long most)
{
    REAL(nvrtcCreateProgram);
    REAL(nvrtcCompileProgram);
    REAL(nvrtcGetProgramLogSize);
    REAL(nvrtcGetProgramLog);
    REAL(nvrtcDestroyProgram);
    const char *options[] = {architecture, "--std=c++17", "--fmad=false", "--ptxas-options=-v"};
    nvrtcProgram real = NULL;
    if (nvrtcCreateProgram_(&real, p->source, "loop.cu", p->n_headers, p->texts, p->names) !=
        NVRTC_SUCCESS)
        return false;
    const bool is_made = nvrtcCompileProgram_(real, 4, options) == NVRTC_SUCCESS;
    free(p->log);
    (void)nvrtcGetProgramLogSize_(real, &p->log_bytes);
    p->log = calloc(1, p->log_bytes + 1);
    if (p->log != NULL) (void)nvrtcGetProgramLog_(real, p->log);
    const bool fits = p->log == NULL || fits_the_processor(p->log, most);
    if (!fits) fprintf(stderr, "NVRTC: %s\n%s\n", p->log, p->source);
    (void)nvrtcDestroyProgram_(&real);
    return is_made && fits;
}

static bool compiles_really(nvrtcProgram p)
{
    static bool has_said;
    const char *also = getenv("TEST_NVRTC_ALSO");
    const long most = also != NULL ? strtol(also, NULL, 10) : 0;
    if (most == 0) return true;
    void *library = dlopen(REAL_NVRTC, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        if (!has_said) fprintf(stderr, "skipped: loops by NVRTC: %s\n", dlerror());
        has_said = true;
        return true;
    }
    return compiles_for(library, p, "--gpu-architecture=sm_80", most) &&
           compiles_for(library, p, "--gpu-architecture=sm_90", most);
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    (void)n, (void)options;
    const int status = compile_loop(p);
    (void)read_file(p->own.path, "errors", &p->log, &p->log_bytes);
    const bool is_made =
        status == 0 && read_file(p->own.path, "loop.so", &p->image, &p->image_bytes);
    return is_made && compiles_really(p) ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes)
{
    *bytes = p->image_bytes;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *to)
{
    memcpy(to, p->image, p->image_bytes);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes)
{
    *bytes = p->log_bytes + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *to)
{
    if (p->log != NULL) memcpy(to, p->log, p->log_bytes);
    to[p->log_bytes] = '\0';
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    nvrtcProgram p = *program;
    remove_all(&p->own);
    free(p->image), free(p->log), free(p);
    *program = NULL;
    return NVRTC_SUCCESS;
}
