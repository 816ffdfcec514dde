/* nvrtc: a libnvrtc.so of the emulated driver: the functions that Weft calls. It compiles the same source, with the same headers,
 * by the C compiler, to a library that the emulated driver loads as a module.
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

struct _nvrtcProgram {
    char folder[200];
    char *files[MOST_FILES]; /* written in it */
    int n_files;
    const char *source, *const *headers, *const *names;
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

static bool add_file(nvrtcProgram p, const char *name, const char *text)
{
    char path[ROOM];
    if (p->n_files == MOST_FILES) return false;
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    for (char *at = path + strlen(p->folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    write_text(file, text);
    p->files[p->n_files++] = strdup(path);
    return fclose(file) == 0;
}

static bool read_file(const char *folder, const char *name, char **to, size_t *bytes)
{
    char path[ROOM];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, name);
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
static void remove_all(nvrtcProgram p)
{
    for (int i = 0; i < p->n_files; i++)
        (void)unlink(p->files[i]);
    for (int i = 0; i < p->n_files; i++) {
        char *slash;
        while ((slash = strrchr(p->files[i], '/')) != NULL &&
               strlen(p->folder) <= (size_t)(slash - p->files[i])) {
            *slash = '\0';
            (void)rmdir(p->files[i]);
        }
        free(p->files[i]);
    }
    p->n_files = 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *to, const char *source, const char *name,
                                      int n_headers, const char *const *headers,
                                      const char *const *names)
{
    (void)name;
    nvrtcProgram p = *to = calloc(1, sizeof *p);
    if (p == NULL) return NVRTC_ERROR_OUT_OF_MEMORY;
    p->source = source, p->headers = headers, p->names = names, p->n_headers = n_headers;
    snprintf(p->folder, sizeof p->folder, "/tmp/weft_nvrtc_XXXXXX");
    bool is_written = mkdtemp(p->folder) != NULL && add_file(p, "loop.c", source);
    for (int i = 0; i < n_headers; i++)
        is_written = is_written && add_file(p, names[i], headers[i]);
    return is_written ? NVRTC_SUCCESS : NVRTC_ERROR_PROGRAM_CREATION_FAILURE;
}

static int run_compiler(nvrtcProgram p)
{
    char source[ROOM], library[ROOM], errors[ROOM];
    snprintf(source, sizeof source, "%s/loop.c", p->folder);
    snprintf(library, sizeof library, "%s/loop.so", p->folder);
    snprintf(errors, sizeof errors, "%s/errors", p->folder);
    p->files[p->n_files++] = strdup(library);
    p->files[p->n_files++] = strdup(errors);
    /* Quoted headers alone are looked for in the folder: the system's are the compiler's own. */
    const char *const arguments[] = {EMULATED_CC,
                                     "-std=gnu11",
                                     "-O1",
                                     "-w",
                                     "-fPIC",
                                     "-shared",
                                     "-iquote",
                                     p->folder,
                                     "-iquote",
                                     EMULATED_FOLDER,
                                     "-ffp-contract=off",
                                     "-o",
                                     library,
                                     source,
                                     EMULATED_DRIVER,
                                     "-lm",
                                     NULL};
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
    if (nvrtcCreateProgram_(&real, p->source, "loop.cu", p->n_headers, p->headers, p->names) !=
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
    const int status = run_compiler(p);
    (void)read_file(p->folder, "errors", &p->log, &p->log_bytes);
    const bool is_made = status == 0 && read_file(p->folder, "loop.so", &p->image, &p->image_bytes);
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
    remove_all(p);
    free(p->image), free(p->log), free(p);
    *program = NULL;
    return NVRTC_SUCCESS;
}
