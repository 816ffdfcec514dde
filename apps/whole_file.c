/* whole_file: a file that is there whole, or as it was before. */
#include "whole_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static weft_status refuse(const app_whole_file *file, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", file->path, strerror(errno));
}

weft_status app_whole_open(app_whole_file *file, const char *path, weft_error *error)
{
    struct stat facts;
    file->stream = NULL;
    if (strlen(path) >= sizeof file->path)
        return weft_fail(error, WEFT_USAGE, "the name of a file is too long: %.100s...", path);
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->beside, sizeof file->beside, "%s.new", path);
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return weft_fail(error, WEFT_USAGE, "cannot write %.300s: it is no file; name another",
                         path);
    file->stream = fopen(file->beside, "we");
    return file->stream ? WEFT_OK : refuse(file, error);
}

weft_status app_whole_close(app_whole_file *file, bool keeps, weft_error *error)
{
    if (!file->stream) return WEFT_OK;
    const bool is_written = !ferror(file->stream) && fflush(file->stream) == 0;
    weft_status status = keeps && !is_written ? refuse(file, error) : WEFT_OK;
    if (fclose(file->stream) != 0 && keeps && status == WEFT_OK) status = refuse(file, error);
    file->stream = NULL;
    if (keeps && status == WEFT_OK && rename(file->beside, file->path) != 0)
        status = refuse(file, error);
    if (!keeps || status != WEFT_OK) unlink(file->beside);
    return status;
}
