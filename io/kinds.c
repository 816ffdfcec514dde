/* kinds: what a file is by its first bytes: one table, which every reader asks before it says that a file breaks a rule.
 *
 * A kind has a way out, and the uses that the way leads to; where it leads to none, the use says what it wants. A reader of
 * text takes any bytes, as ever, but those of a format that is certainly none.
 * source  the formats' own descriptions; file(1)
 */
#include "chain.h"
#include "dataset.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define USE(name) (1u << WEFT_FILE_##name)
enum {
    LOOK = 4096, /* bytes that are looked at */
    TEXTS = USE(TEXT) | USE(LINES) | USE(JSON),
    TENSORS = USE(SAFETENSORS) | USE(HDF5),
    ALL = (1u << WEFT_FILE_USES) - 1
};

/* What is looked at. */
typedef struct look {
    unsigned char head[LOOK + 1]; /* ended by 0 */
    size_t n;                     /* bytes of it */
    int64_t bytes;                /* of the file */
    unsigned char last;           /* its last byte */
    int file;                     /* -1: there is none */
} look;

typedef struct kind {
    const char *name; /* "it is ..." */
    unsigned passes;  /* the uses that it is right for */
    unsigned leads;   /* those that the way out leads to */
    const char *way;
    int at; /* where the magic stands */
    const char *magic;
    int n; /* its bytes; 0: none */
    bool (*is)(const look *l);
    const char *format; /* by which sources.c opens it as records; NULL: it does not */
} kind;

/* What is wanted, and where one gets it. */
static const struct {
    const char *noun, *way;
} uses[WEFT_FILE_USES] = {
    [WEFT_FILE_TEXT] = {"text", "name a file of text, in UTF-8"},
    [WEFT_FILE_LINES] = {"text of lines", "name a file of lines, in UTF-8"},
    [WEFT_FILE_JSON] = {"JSON", "name a file of JSON, in UTF-8"},
    [WEFT_FILE_TOKENS] = {"file of tokens", "weft tokens encode makes one of a text"},
    [WEFT_FILE_IDX] = {"IDX file", "MNIST's own files are in that format, plain or as .gz"},
    [WEFT_FILE_SAFETENSORS] = {"safetensors file",
                               "name one that safetensors' save_file or weft ckpt export wrote"},
    [WEFT_FILE_HDF5] = {"HDF5 file", "name one that Keras, h5py or weft ckpt export wrote"},
    [WEFT_FILE_CHECKPOINT] = {"checkpoint", "name a run's directory, or one of its steps"},
};

/* ---- texts ------------------------------------------------------------------------------------- */

size_t weft_text_mark(const void *bytes, size_t n)
{
    return bytes != NULL && n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/* The first that is no white space, behind a byte order mark. */
static const char *begin_of(const look *l)
{
    const char *c = (const char *)l->head + weft_text_mark(l->head, l->n);
    while (isspace((unsigned char)*c))
        c++;
    return c;
}

static bool is_empty(const look *l)
{
    return l->bytes == 0;
}

static bool is_blank(const look *l)
{
    return l->bytes <= LOOK && *begin_of(l) == '\0' && strlen((const char *)l->head) == l->n;
}

/* Two bytes a letter: with a mark, or every other byte 0 while those between are seen. */
static bool is_utf16(const look *l)
{
    size_t n_letters[2] = {0, 0};
    if (l->n >= 2 && l->bytes % 2 == 0 &&
        (memcmp(l->head, "\xFF\xFE", 2) == 0 || memcmp(l->head, "\xFE\xFF", 2) == 0))
        return true;
    for (size_t i = 0; i + 1 < l->n; i += 2)
        for (size_t k = 0; k < 2; k++)
            n_letters[k] +=
                l->head[i + 1 - k] == 0 && (isprint(l->head[i + k]) || isspace(l->head[i + k]));
    return l->n >= 8 && l->bytes % 2 == 0 &&
           (n_letters[0] >= l->n * 2 / 5 || n_letters[1] >= l->n * 2 / 5);
}

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

static bool is_html(const look *l)
{
    const char *c = begin_of(l);
    return begins(c, "<!doctype html") || begins(c, "<html") || begins(c, "<head");
}

static bool is_xml(const look *l)
{
    return begins(begin_of(l), "<?xml");
}

/* A number as 404 or 503 among its words. */
static bool has_status(const char *text)
{
    for (; *(text += strcspn(text, "0123456789")) != '\0'; text += strspn(text, "0123456789"))
        if (strspn(text, "0123456789") == 3 && (*text == '4' || *text == '5')) return true;
    return false;
}

/* A page, or a line, by which a server says that it does not give the file. */
static bool is_answer(const look *l)
{
    static const char *const lines[] = {
        "Entry not found", "Repository not found", "Not Found",  "404: Not Found",
        "Access denied",   "Invalid username or",  "{\"error\"", "{\"message\":\"Not Found\""};
    static const char *const words[] = {"not found", "forbidden",   "denied",  "unauthorized",
                                        "error",     "unavailable", "sign in", "log in",
                                        "too many",  "bad gateway", "timeout", "just a moment"};
    const char *c = begin_of(l), *title = strcasestr(c, "<title");
    char text[160] = "";
    for (size_t i = 0; l->bytes < 1024 && i < sizeof lines / sizeof *lines; i++)
        if (begins(c, lines[i])) return true;
    if (is_xml(l)) return strstr(c, "<Error>") != NULL;
    if (!is_html(l) || title == NULL) return false;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(title + 1, "<"), title + 1);
    if (has_status(text)) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(text, words[i])) return true;
    return false;
}

static bool is_json(const look *l)
{
    const char *c = begin_of(l);
    if (*c != '{' && *c != '[') return false;
    for (c++; isspace((unsigned char)*c);)
        c++;
    return *c != '\0' && strchr("\"{}[]-0123456789", *c) != NULL;
}

static bool is_index(const look *l)
{
    return is_json(l) && strstr((const char *)l->head, "\"weight_map\"") != NULL;
}

/* No byte that only formats of their own have. */
static bool is_text(const look *l)
{
    for (size_t i = 0; i < l->n; i++)
        if ((l->head[i] < ' ' && !isspace(l->head[i])) || l->head[i] == 0x7F) return false;
    return l->n > 0;
}

/* Two lines with as many commas, semicolons or tabs, at least two. */
static bool is_csv(const look *l)
{
    const char *line = begin_of(l);
    if (!is_text(l)) return false;
    for (const char *comma = ",;\t"; *comma; comma++) {
        int n[2] = {0, 0};
        const char *c = line;
        for (int i = 0; i < 2; i++, c += *c != '\0')
            for (; *c != '\0' && *c != '\n'; c++)
                n[i] += *c == *comma;
        if (n[0] >= 2 && n[0] == n[1]) return true;
    }
    return false;
}

/* ---- archives and pickles ------------------------------------------------------------------------ */

/* Whether the name of a zip archive's first file ends so. */
static bool holds(const look *l, const char *ending)
{
    enum { NAME = 30, LENGTH = 26 };
    if (l->n < NAME || memcmp(l->head, "PK\3\4", 4) != 0) return false;
    const size_t n = l->head[LENGTH] | (size_t)l->head[LENGTH + 1] << 8, e = strlen(ending);
    return NAME + n <= l->n && n >= e && memcmp(l->head + NAME + n - e, ending, e) == 0;
}

static bool is_torch(const look *l)
{
    static const char legacy[] = "\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    return holds(l, "/data.pkl") || holds(l, "/.format_version") || holds(l, "/byteorder") ||
           (l->n > sizeof legacy + 2 && memcmp(l->head + 2, legacy, sizeof legacy - 1) == 0);
}

static bool is_npz(const look *l)
{
    return holds(l, ".npy");
}

static bool is_keras(const look *l)
{
    return holds(l, "metadata.json") || holds(l, "config.json") || holds(l, "model.weights.h5");
}

static bool is_pickle(const look *l)
{
    return l->n > 2 && l->head[0] == 0x80 && l->head[1] >= 2 && l->head[1] <= 5 && l->last == '.';
}

/* ---- our own ------------------------------------------------------------------------------------- */

static bool is_safetensors(const look *l)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0 && l->n > 9; i--)
        length = length << 8 | l->head[i];
    return length >= 2 && length <= 100000000 && (int64_t)length <= l->bytes - 8 &&
           l->head[8] == '{' && (isspace(l->head[9]) || strchr("\"}", l->head[9]) != NULL);
}

/* The signature may stand behind a block of the user's. */
static bool is_hdf5(const look *l)
{
    static const char signature[] = "\211HDF\r\n\032\n";
    char there[sizeof signature - 1] = "";
    const size_t n = sizeof there;
    if (l->n >= n && memcmp(l->head, signature, n) == 0) return true;
    for (int64_t at = 512; l->file >= 0 && at < l->bytes; at *= 2)
        if (pread(l->file, there, n, at) == (ssize_t)n && memcmp(there, signature, n) == 0)
            return true;
    return false;
}

static bool is_idx(const look *l)
{
    return l->n >= 8 && l->head[0] == 0 && l->head[1] == 0 && l->head[2] >= 8 && l->head[2] <= 14 &&
           l->head[3] >= 1 && l->head[3] <= 4;
}

/* ---- the table: the first that fits is it -------------------------------------------------------- */

#define MAGIC(from, text) .at = from, .magic = text, .n = (int)sizeof(text) - 1
#define LOOKS(function)   .is = function
#define TORCH             "in Python: safetensors.torch.save_file(torch.load(FILE, weights_only=True), NEW)"
#define ARRAYS            "in Python: safetensors.numpy.save_file({name: array}, NEW)"

static const kind kinds[] = {
    {"empty", USE(TEXT) | USE(LINES) | USE(IDX), 0, NULL, LOOKS(is_empty)},
    {"nothing but white space", TEXTS, 0, NULL, LOOKS(is_blank)},
    {"a safetensors file", USE(SAFETENSORS), TENSORS | USE(CHECKPOINT),
     "weft ckpt import takes it by its ending .safetensors, or --format safetensors",
     LOOKS(is_safetensors)},
    {"an HDF5 file", USE(HDF5), TENSORS | USE(CHECKPOINT),
     "weft ckpt import takes it by its ending .h5, or --format hdf5", LOOKS(is_hdf5)},
    {"a file of tokens", USE(TOKENS), USE(TEXT),
     "weft tokens decode makes text of it; gpt reads it with --tokens",
     MAGIC(0, "\xe8\xf3\x34\x01"), .format = "tokens"},
    {"a model of llm.c's", 0, 0, NULL, MAGIC(0, "\xc6\xf2\x34\x01")},
    {"an IDX file", USE(IDX), 0, NULL, LOOKS(is_idx), .format = "idx"},
    {"a pointer of Git LFS, not the file itself", 0, ALL, "git lfs pull fetches that",
     MAGIC(0, "version https://git-lfs")},
    {"a server's answer that it does not give the file", 0, ALL,
     "read what it says, and get the file again", LOOKS(is_answer)},
    {"an HTML page", USE(TEXT), ALL & ~USE(TEXT), "get the file itself, not the page about it",
     LOOKS(is_html), .format = "text"},
    {"XML", USE(TEXT), 0, NULL, LOOKS(is_xml), .format = "text"},
    {"the index of a model in several files", USE(JSON) | USE(TEXT), TENSORS,
     "join these in one file first: load them and safetensors.torch.save_file all",
     LOOKS(is_index)},
    {"text in UTF-32", 0, TEXTS, "iconv -f UTF-32 -t UTF-8 FILE > NEW", MAGIC(0, "\xff\xfe\0\0")},
    {"text in UTF-32", 0, TEXTS, "iconv -f UTF-32 -t UTF-8 FILE > NEW", MAGIC(0, "\0\0\xfe\xff")},
    {"text in UTF-16", 0, TEXTS, "iconv -f UTF-16 -t UTF-8 FILE > NEW", LOOKS(is_utf16)},
    {"a file of PyTorch's", 0, TENSORS, TORCH, LOOKS(is_torch)},
    {"NumPy arrays (.npz)", 0, TENSORS, ARRAYS, LOOKS(is_npz)},
    {"a NumPy array (.npy)", 0, TENSORS, ARRAYS, MAGIC(0, "\x93NUMPY")},
    {"a Keras archive (.keras)", 0, TENSORS, "in Python: model.save(NEW + \".h5\")",
     LOOKS(is_keras)},
    {"a Python pickle", 0, TENSORS,
     "load it where it was made, and save its arrays: safetensors.numpy.save_file",
     LOOKS(is_pickle)},
    {"a GGUF file", 0, TENSORS, "take the model that it was made of, as safetensors",
     MAGIC(0, "GGUF")},
    {"a GGML file", 0, TENSORS, "take the model that it was made of, as safetensors",
     MAGIC(0, "lmgg")},
    {"a gzip archive", USE(IDX), ALL, "gunzip it first", MAGIC(0, "\x1f\x8b")},
    {"a zip archive", 0, ALL, "unzip it first", MAGIC(0, "PK\3\4")},
    {"a bzip2 archive", 0, ALL, "bunzip2 it first", MAGIC(0, "BZh")},
    {"an xz archive", 0, ALL, "unxz it first", MAGIC(0, "\xfd\x37zXZ\0")},
    {"a zstd archive", 0, ALL, "unzstd it first", MAGIC(0, "\x28\xb5\x2f\xfd")},
    {"a 7z archive", 0, ALL, "unpack it first", MAGIC(0, "7z\xbc\xaf\x27\x1c")},
    {"a RAR archive", 0, ALL, "unpack it first", MAGIC(0, "Rar!\x1a\x07")},
    {"a tar archive", 0, ALL, "unpack it first: tar -xf", MAGIC(257, "ustar")},
    {"a PDF document", 0, USE(TEXT), "pdftotext makes text of it", MAGIC(0, "%PDF-")},
    {"a Parquet file", 0, 0, NULL, MAGIC(0, "PAR1")},
    {"an Arrow file", 0, 0, NULL, MAGIC(0, "ARROW1")},
    {"an SQLite database", 0, 0, NULL, MAGIC(0, "SQLite format 3")},
    {"a MATLAB file", 0, USE(HDF5), "save it with -v7.3, which is HDF5", MAGIC(0, "MATLAB 5.0")},
    {"a PNG image", 0, 0, NULL, MAGIC(0, "\x89PNG\r\n")},
    {"a JPEG image", 0, 0, NULL, MAGIC(0, "\xff\xd8\xff")},
    {"a program", 0, 0, NULL,
     MAGIC(0, "\x7f"
              "ELF")},
    {"JSON", TEXTS & ~USE(LINES), 0, NULL, LOOKS(is_json), .format = "text"},
    {"a table of text (CSV)", TEXTS, 0, NULL, LOOKS(is_csv), .format = "text"},
    {"text", TEXTS, 0, NULL, LOOKS(is_text), .format = "text"},
};

static const kind *kind_of(const look *l)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        const size_t end = (size_t)(k->at + k->n);
        if (k->is ? k->is(l) : l->n >= end && memcmp(l->head + k->at, k->magic, (size_t)k->n) == 0)
            return k;
    }
    return NULL;
}

static weft_status check(const look *l, const char *path, weft_file_use use, weft_error *error)
{
    const kind *k = kind_of(l);
    if (k == NULL || (k->passes >> use & 1)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%.240s is no %s: it is %s; %s", path, uses[use].noun,
                     k->name, k->leads >> use & 1 ? k->way : uses[use].way);
}

weft_status weft_kind_format(int file, const char *path, int64_t bytes, const char **format,
                             const char **what, weft_error *error)
{
    look l = {.n = bytes < LOOK ? (size_t)bytes : LOOK, .bytes = bytes, .file = file};
    WEFT_TRY(weft_file_read(file, path, l.head, (int64_t)l.n, 0, error));
    if (bytes > 0) WEFT_TRY(weft_file_read(file, path, &l.last, 1, bytes - 1, error));
    const kind *k = kind_of(&l);
    *format = k ? k->format : NULL;
    *what = k ? k->name : "bytes of no known format";
    return WEFT_OK;
}

weft_status weft_kind_check(int file, const char *path, int64_t bytes, weft_file_use use,
                            weft_error *error)
{
    look l = {.n = bytes < LOOK ? (size_t)bytes : LOOK, .bytes = bytes, .file = file};
    WEFT_TRY(weft_file_read(file, path, l.head, (int64_t)l.n, 0, error));
    if (bytes > 0) WEFT_TRY(weft_file_read(file, path, &l.last, 1, bytes - 1, error));
    return check(&l, path, use, error);
}

weft_status weft_bytes_check(const void *bytes, size_t n, const char *path, weft_file_use use,
                             weft_error *error)
{
    look l = {.n = n < LOOK ? n : LOOK, .bytes = (int64_t)n, .file = -1};
    WEFT_GIVEN(path, error);
    WEFT_GIVEN_ENUM(use, WEFT_FILE_USES, error);
    WEFT_GIVEN_RANGE((int64_t)n, 0, INT64_C(1) << 40, error);
    if (n > 0) WEFT_GIVEN(bytes, error);
    if (n > 0) memcpy(l.head, bytes, l.n), l.last = ((const unsigned char *)bytes)[n - 1];
    return check(&l, path, use, error);
}

weft_status weft_file_check(const char *path, weft_file_use use, weft_error *error)
{
    int file;
    int64_t bytes;
    WEFT_GIVEN(path, error);
    WEFT_GIVEN_ENUM(use, WEFT_FILE_USES, error);
    WEFT_TRY(weft_file_open(path, &file, &bytes, error));
    const weft_status status = weft_kind_check(file, path, bytes, use, error);
    close(file);
    return status;
}
