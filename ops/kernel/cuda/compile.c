/* compile: see compile.h. One lock: ranks of a process that want the same kernel wait for the one that compiles it. */
#include "compile.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "headers.h"
#include "mesh/cuda/library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over all that follows */

/* ---- NVRTC ----------------------------------------------------------------------------------- */

#define NVRTC_CALLS(CALL)                                                                          \
    CALL(nvrtcVersion)                                                                             \
    CALL(nvrtcGetErrorString)                                                                      \
    CALL(nvrtcCreateProgram)                                                                       \
    CALL(nvrtcDestroyProgram)                                                                      \
    CALL(nvrtcCompileProgram)                                                                      \
    CALL(nvrtcGetCUBINSize)                                                                        \
    CALL(nvrtcGetCUBIN)                                                                            \
    CALL(nvrtcGetProgramLogSize)                                                                   \
    CALL(nvrtcGetProgramLog)
#define MEMBER(name) __typeof__(name) *name;
static struct nvrtc {
    NVRTC_CALLS(MEMBER)
    int major, minor;
    bool is_open;
} nvrtc;

/* Of the toolkit that this was built with; a later one of the same number does as well. */
static weft_status open_nvrtc(weft_error *error)
{
#define ENTRY(name) {#name, offsetof(struct nvrtc, name)},
    static const cuda_entry entries[] = {NVRTC_CALLS(ENTRY)};
    const char *missing;
    char file[40];
    if (nvrtc.is_open) return WEFT_OK;
    snprintf(file, sizeof file, "libnvrtc.so.%d", CUDA_VERSION / 1000);
    missing = cuda_library_fill(file, entries, sizeof entries / sizeof *entries, &nvrtc);
    if (missing == file)
        return weft_fail(error, WEFT_USAGE,
                         "the device cuda compiles loops by NVRTC, which cannot be loaded: %.200s; "
                         "install the CUDA Toolkit's libnvrtc %d, or name its folder in "
                         "LD_LIBRARY_PATH",
                         dlerror(), CUDA_VERSION / 1000);
    if (missing != NULL)
        return weft_fail(error, WEFT_USAGE, "%s has no %s; the device cuda compiles loops by it",
                         file, missing);
    nvrtc.is_open = nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor) == NVRTC_SUCCESS;
    return nvrtc.is_open ? WEFT_OK : weft_fail(error, WEFT_INTERNAL, "%s has no version", file);
}

static weft_status fail_compile(nvrtcProgram program, nvrtcResult result, weft_error *error)
{
    size_t bytes = 0;
    char *log = NULL;
    if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS) log = calloc(1, bytes + 1);
    if (log != NULL) (void)nvrtc.nvrtcGetProgramLog(program, log);
    const weft_status status =
        weft_fail(error, WEFT_INTERNAL, "NVRTC %d.%d does not compile a loop: %s: %.300s",
                  nvrtc.major, nvrtc.minor, nvrtc.nvrtcGetErrorString(result), log ? log : "");
    free(log);
    return status;
}

/* Every operation is rounded by itself: loops wait for memory, and random numbers have the CPU's bits. */
static weft_status compile(nvrtcProgram program, const char *architecture, void **image,
                           size_t *bytes, weft_error *error)
{
    char target[60];
    snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    const char *const options[] = {target, "--std=c++17", "--fmad=false"};
    nvrtcResult result =
        nvrtc.nvrtcCompileProgram(program, sizeof options / sizeof *options, options);
    if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetCUBINSize(program, bytes);
    *image = result == NVRTC_SUCCESS ? malloc(*bytes + 1) : NULL;
    if (*image != NULL) result = nvrtc.nvrtcGetCUBIN(program, *image);
    if (result == NVRTC_SUCCESS && *image != NULL) return WEFT_OK;
    return fail_compile(program, result, error);
}

static weft_status compile_locked(const char *source, const char *architecture, void **image,
                                  size_t *bytes, weft_error *error)
{
    nvrtcProgram program = NULL;
    WEFT_TRY(open_nvrtc(error));
    const nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, source, "loop.cu", cuda_n_headers,
                                                        cuda_header_texts, cuda_header_names);
    if (result != NVRTC_SUCCESS)
        return weft_fail(error, WEFT_INTERNAL, "NVRTC: nvrtcCreateProgram: %s",
                         nvrtc.nvrtcGetErrorString(result));
    const weft_status status = compile(program, architecture, image, bytes, error);
    (void)nvrtc.nvrtcDestroyProgram(&program);
    return status;
}

weft_status cuda_compile_source(const char *source, const char *architecture, void **image,
                                size_t *bytes, weft_error *error)
{
    pthread_mutex_lock(&lock);
    const weft_status status = compile_locked(source, architecture, image, bytes, error);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static const char source_format[] = "#include \"loop_source.h\"\n\n"
                                    "typedef struct %s_work {\n"
                                    "    int64_t word[%d];\n"
                                    "} %s_work;\n\n"
                                    "KERNEL(%s, %s_work)\n{\n%s}\n";

char *cuda_loop_source(const char *body, int n_words, const char *name)
{
    const size_t room = strlen(body) + sizeof source_format + 5 * strlen(name) + 20;
    char *source = malloc(room);
    if (source != NULL)
        snprintf(source, room, source_format, name, n_words, name, name, name, body);
    return source;
}

/* What this process has. */
typedef struct compiled compiled;
struct compiled {
    compiled *next;
    cuda_kernel kernel;
    char name[24];
    char key[]; /* all that the machine code depends on */
};
static compiled *all;
static cuda_compiled counts;

cuda_compiled cuda_compile_counts(void)
{
    pthread_mutex_lock(&lock);
    const cuda_compiled now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

static uint64_t headers_hash(void)
{
    static uint64_t hash;
    if (hash == 0) {
        hash = CUDA_HASH_BEGIN;
        for (int i = 0; i < cuda_n_headers; i++)
            hash = cuda_hash(hash, cuda_header_texts[i], strlen(cuda_header_texts[i]));
    }
    return hash;
}

/* Kernels are called by a hash of what they do. The key says what compiles it, for what, and all of it. */
static compiled *make(const char *body, int n_words)
{
    const uint64_t hash = cuda_hash(CUDA_HASH_BEGIN, body, strlen(body));
    compiled *c = calloc(1, sizeof *c + sizeof source_format + strlen(body) + 400);
    if (c == NULL) return NULL;
    snprintf(c->name, sizeof c->name, "loop_%016llx", (unsigned long long)hash);
    char *source = cuda_loop_source(body, n_words, c->name);
    if (source == NULL) return free(c), NULL;
    sprintf(c->key, "NVRTC %d.%d sm_%d%d %016llx\n%s", nvrtc.major, nvrtc.minor,
            cuda_gpu_here.major, cuda_gpu_here.minor, (unsigned long long)headers_hash(), source);
    free(source);
    c->kernel.name = c->name;
    return c;
}

static weft_status load(compiled *c, weft_error *error)
{
    char architecture[20];
    void *image = NULL;
    size_t bytes = 0;
    cuda_kernel *kernels[] = {&c->kernel};
    snprintf(architecture, sizeof architecture, "sm_%d%d", cuda_gpu_here.major,
             cuda_gpu_here.minor);
    const bool is_found = cuda_cache_read(c->key, &image, &bytes);
    weft_status status = WEFT_OK;
    if (!is_found)
        status = compile_locked(strchr(c->key, '\n') + 1, architecture, &image, &bytes, error);
    if (status == WEFT_OK && !is_found) cuda_cache_write(c->key, image, bytes);
    if (status == WEFT_OK) status = cuda_load_image(image, kernels, 1, error);
    *(is_found ? &counts.n_found : &counts.n_compiled) += 1;
    free(image);
    return status;
}

static weft_status find_or_load(const char *body, int n_words, const cuda_kernel **kernel,
                                weft_error *error)
{
    WEFT_TRY(open_nvrtc(error)); /* its version is in the key */
    compiled *made = make(body, n_words);
    if (made == NULL) return weft_fail_memory(error, sizeof *made);
    for (compiled *c = all; c != NULL; c = c->next)
        if (strcmp(c->key, made->key) == 0) {
            *kernel = &c->kernel;
            return free(made), WEFT_OK;
        }
    const weft_status status = load(made, error);
    if (status != WEFT_OK) return free(made), status;
    made->next = all;
    all = made;
    *kernel = &made->kernel;
    return WEFT_OK;
}

weft_status cuda_compile_loop(const char *body, int n_words, const cuda_kernel **kernel,
                              weft_error *error)
{
    pthread_mutex_lock(&lock);
    const weft_status status = find_or_load(body, n_words, kernel, error);
    pthread_mutex_unlock(&lock);
    return status;
}
