/* run_text: what is said of a training that can be stopped and continued. */
#include <stdio.h>

#include "run.h"

void app_run_saves(const app_run *run, char *text, size_t bytes)
{
    const settings *s = run->setup.settings;
    const int64_t every = settings_count(s, "save-every");
    const double after = settings_seconds(s, "save-after");
    char steps[64] = "", old[96] = "";
    if (every > 0) snprintf(steps, sizeof steps, "every %lld steps, ", (long long)every);
    if (after > 0) snprintf(old, sizeof old, "once the newest is %g s old (--save-after), ", after);
    snprintf(text, bytes, "checkpoints: %s%sat the end", steps, old);
}

bool app_run_best(const app_run *run, char *text, size_t bytes)
{
    const app_run_looks *looks = &run->looks;
    if (looks->best_step == 0) return false;
    snprintf(text, bytes,
             "lowest loss of held-out data: %.6f at step %lld, whose checkpoint stays in %s "
             "(--best); --resume %lld goes on from it",
             looks->best, (long long)looks->best_step, settings_text(run->setup.settings, "run"),
             (long long)looks->best_step);
    return true;
}

bool app_run_ending(const app_run *run, char *text, size_t bytes)
{
    const char *folder = settings_text(run->setup.settings, "run");
    if (run->is_stopped)
        snprintf(text, bytes,
                 "stopped early after step %lld, which is saved in %s: %s; the same command "
                 "continues it",
                 (long long)run->step, folder, run->watch.why);
    else if (run->first >= run->setup.last)
        snprintf(text, bytes,
                 "the run in %s is complete: step %lld of %lld; more --steps continue it, --fresh "
                 "begins again",
                 folder, (long long)run->first, (long long)run->setup.last);
    else
        return false;
    return true;
}
