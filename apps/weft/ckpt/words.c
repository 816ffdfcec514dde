/* words: the files of a vocabulary, which go along with a model. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt.h"

enum { MAX_PATH = 4096 };

static const char *const word_files[] = {"vocab.json",        "merges.txt",
                                         "encoder.json",      "vocab.bpe",
                                         "tokenizer.json",    "tokenizer_config.json",
                                         "added_tokens.json", "special_tokens_map.json"};
enum { N_WORD_FILES = sizeof word_files / sizeof *word_files };

bool ckpt_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static weft_status copy_file(const char *from, const char *to, weft_error *error)
{
    char buffer[1 << 14];
    FILE *in = fopen(from, "rbe");
    if (!in) return weft_fail(error, WEFT_IO, "cannot open %.300s: %s", from, strerror(errno));
    FILE *out = fopen(to, "wbe");
    bool is_good = out != NULL;
    for (size_t n; is_good && (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        is_good = fwrite(buffer, 1, n, out) == n;
    is_good = is_good && !ferror(in);
    if (out) is_good = fclose(out) == 0 && is_good;
    fclose(in);
    return is_good ? WEFT_OK
                   : weft_fail(error, WEFT_IO, "cannot write %.300s: %s", to, strerror(errno));
}

weft_status ckpt_copy_words(const char *from, const char *to, int *n, weft_error *error)
{
    char old[MAX_PATH + 32], fresh[MAX_PATH + 32];
    *n = 0;
    for (int i = 0; i < N_WORD_FILES; i++) {
        snprintf(old, sizeof old, "%.4000s/%s", from, word_files[i]);
        if (access(old, F_OK) != 0) continue;
        if ((*n)++ == 0 && mkdir(to, 0777) != 0 && errno != EEXIST)
            return weft_fail(error, WEFT_IO, "cannot make the folder %.300s: %s", to,
                             strerror(errno));
        snprintf(fresh, sizeof fresh, "%.4000s/%s", to, word_files[i]);
        if (!is_same(old, fresh)) WEFT_TRY(copy_file(old, fresh, error));
    }
    return WEFT_OK;
}
