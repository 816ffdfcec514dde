/* sources: how a file is opened as records: by its format, which its first bytes tell (kinds.c, source/records.c) or the caller. */
#include "sources.h"
#include "dataset.h"
#include "source/records.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const weft_source_format formats[] = {
    {"text", weft_text_source},
    {"tokens", weft_tokens_source},
    {"idx", weft_idx_source},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static weft_status find_named(const char *path, const char *name, const weft_source_format **found,
                              weft_error *error)
{
    const char *names[FORMATS];
    for (int i = 0; i < FORMATS; i++) {
        names[i] = formats[i].format;
        if (strcmp(names[i], name) == 0) *found = &formats[i];
    }
    if (*found != NULL) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%.240s: there is no format %.40s; the nearest is %s", path,
                     name, weft_nearest(name, names, FORMATS));
}

/* By the first bytes of the file. */
static weft_status find_seen(const char *path, const weft_source_format **found, weft_error *error)
{
    const char *format = NULL, *what = NULL;
    int64_t bytes;
    int file;
    WEFT_TRY(weft_file_open(path, &file, &bytes, error));
    const weft_status status = weft_kind_format(file, path, bytes, &format, &what, error);
    close(file);
    WEFT_TRY(status);
    for (int i = 0; i < FORMATS; i++)
        if (format != NULL && strcmp(formats[i].format, format) == 0) *found = &formats[i];
    if (*found != NULL) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.240s cannot be read as records: it is %s; say its format, or convert it",
                     path, what);
}

/* Neither a pattern nor a folder; what is not there is told by its name. */
static bool is_one_file(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0) return !S_ISDIR(facts.st_mode);
    return strpbrk(path, "*?[") == NULL;
}

static weft_status open_by_format(const char *path, const weft_open_options *o, weft_chain **chain,
                                  weft_error *error)
{
    const weft_source_format *found = NULL;
    weft_open_options texts = *o; /* of several each is a record */
    const bool is_text = o->format != NULL && strcmp(o->format, "text") == 0;
    texts.format = "text";
    if (o->format != NULL ? !is_text && weft_records_finds(o->format)
                          : weft_records_sees(path) != NULL)
        return weft_records_source(path, o, chain, error);
    if (!is_one_file(path) && (o->format == NULL || is_text))
        return weft_records_source(path, &texts, chain, error);
    if (o->format != NULL) WEFT_TRY(find_named(path, o->format, &found, error));
    if (o->format == NULL) WEFT_TRY(find_seen(path, &found, error));
    return found->open(path, o, chain, error);
}

static weft_status check_images(const char *path, const weft_open_options *o, weft_chain **chain,
                                weft_error *error)
{
    bool has_images = o->rows == 0 && o->columns == 0;
    for (int f = 0; f < (*chain)->found.n_fields; f++)
        has_images |= (*chain)->found.fields[f].shape.n_dims == 3;
    if (has_images) return WEFT_OK;
    char format[40];
    snprintf(format, sizeof format, "%.30s", weft_chain_format(*chain));
    weft_chain_close(chain);
    return weft_fail(error, WEFT_USAGE,
                     "%.240s has no images that could be scaled to %lld x %lld: it is %s; leave "
                     "rows and columns 0",
                     path, (long long)o->rows, (long long)o->columns, format);
}

weft_status weft_chain_open(const char *path, const weft_open_options *options, weft_chain **chain,
                            weft_error *error)
{
    static const weft_open_options none = {0};
    const weft_open_options *o = options ? options : &none;
    WEFT_GIVEN(chain, error);
    *chain = NULL;
    WEFT_GIVEN(path, error);
    WEFT_TRY(open_by_format(path, o, chain, error));
    return check_images(path, o, chain, error);
}
