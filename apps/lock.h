/* lock.h: one training at a time in a run directory.
 *
 *     app_lock lock = {0};
 *     WEFT_TRY(app_lock_take(&lock, "runs/gpt", error));
 *     ...
 *     app_lock_leave(&lock);
 */
#ifndef WEFT_APPS_LOCK_H
#define WEFT_APPS_LOCK_H

#include <stdbool.h>

#include "weft/error.h"

typedef struct app_lock {
    bool is_held;
    int file;
    char note[200]; /* why nobody is kept out, where the file system has no locks; "" otherwise */
} app_lock;

/* app_lock_take - lock DIR/lock for this process, and write into it who that is. Local; for the
 * root alone. The kernel lets go when the process ends, however it ends, so a lock that is left
 * behind is none. A lock held already is let go once the new one is held: for a folder that has
 * been moved aside.
 *
 * returns WEFT_USAGE while another process has it, with host, process and since when; WEFT_IO when
 *         the file cannot be made
 */
weft_status app_lock_take(app_lock *lock, const char *folder, weft_error *error);
/* app_lock_look - whether another process has it: WEFT_USAGE with the same sentence. For a moment this one shares it,
 * so a job that begins just then is kept out. Local. */
weft_status app_lock_look(const char *folder, weft_error *error);
void app_lock_leave(app_lock *lock);

#endif
