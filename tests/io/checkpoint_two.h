/* checkpoint_two.h: a directory with two steps; the newest is about to be damaged. */
#ifndef TEST_CHECKPOINT_TWO_H
#define TEST_CHECKPOINT_TWO_H

#include "checkpoint_net.h"

#include <sys/stat.h>

static const net_options f64 = {.dtype = WEFT_F64};
static const place alone = {"data:1", "", 0, 1};
static char directory[128], manifest_path[256], data_path[256];
static char older[NET_BYTES]; /* variables of step 1 */

/* Steps 1 and 2 in `directory`. */
static inline bool make_two(const char *what)
{
    weft_error error = {0};
    net n;
    snprintf(directory, sizeof directory, "%s", scratch(what));
    snprintf(manifest_path, sizeof manifest_path, "%s/step_00000002/manifest.json", directory);
    snprintf(data_path, sizeof data_path, "%s/step_00000002/state.h5", directory);
    bool is_good = CHECK_OK(net_open(&alone, &f64, &n, &error), error);
    for (int step = 1; step <= 2 && is_good; step++) {
        is_good = CHECK_OK(net_run(&n, step, step, NULL, &error), error) &&
                  CHECK_OK(net_save(&n, directory, &error), error);
        if (step == 1) net_read(&n, older);
    }
    net_close(&n);
    return is_good;
}

static inline bool stored_is_good(void)
{
    char path[160];
    weft_error error = {0};
    weft_stored *stored;
    snprintf(path, sizeof path, "%s/step_00000002", directory);
    weft_status status = weft_stored_open(path, &stored, &error);
    if (status == WEFT_OK) status = weft_stored_verify(stored, &error);
    weft_stored_close(&stored);
    if (status != WEFT_OK) CHECK_EQ_INT(status, WEFT_CORRUPT);
    return status == WEFT_OK;
}

static inline int64_t file_bytes(const char *path)
{
    struct stat facts = {0};
    CHECK_EQ_INT(stat(path, &facts), 0);
    return facts.st_size;
}

#endif
