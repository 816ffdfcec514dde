/* checkpoint_crash_test: a process dies at every call that changes the disk during a save: before it, after it, in
 * the middle of a write. The next one finds the state before or the new one, whichever is due there, to the bit;
 * remains are removed, and saving goes on. */
#include "crash_net.h"

static void check_outcome(const trial *t, int64_t due, const char *what)
{
    char text[700];
    forget();
    const int status = in_child(look, t->folder);
    const bool is_none = due == 0 && said->status == WEFT_OK && said->step == 0;
    snprintf(text, sizeof text,
             "%s, %s call %lld: restored version %lld, due %lld, exact %d, status %d %s, skipped "
             "\"%s\", next save %d",
             t->scene->name, what, (long long)t->plan.at, (long long)said->version, (long long)due,
             said->is_exact, said->status, said->message, said->skipped, said->next_status);
    weft_test_check(status == 0 && said->status == WEFT_OK && said->version == due &&
                        (said->is_exact || is_none) && said->skipped[0] == '\0' &&
                        said->next_status == WEFT_OK,
                    __FILE__, __LINE__, text);
}

static int n_tried;

static void crash_at(trial *t, int64_t at, fault_action action, int64_t commit, const char *what)
{
    const bool is_new = at > commit || (at == commit && action != FAULT_CRASH_BEFORE);
    t->plan.at = at;
    t->plan.action = action;
    remove_folder(t->folder);
    CHECK_EQ_INT(mkdir(t->folder, 0777), 0);
    forget();
    char folder[256];
    snprintf(folder, sizeof folder, "%s/ckpt", t->folder);
    trial inner = *t;
    inner.folder = folder;
    CHECK(was_killed(in_child(save_all, &inner)));
    check_outcome(&inner, t->scene->n - !is_new, what);
    n_tried++;
}

static void check_scenario(const scenario *s)
{
    place_of_trial place;
    recorded seen;
    trial t = whole_save(s, &place, &seen);
    CHECK_EQ_INT(said->status, WEFT_OK);
    const int64_t n = said->n_calls, commit = seen.commit;
    CHECK(commit > 10 && commit < n && n < MOST_CALLS);
    t.folder = place.run;
    for (int64_t at = 1; at <= n; at += crash_stride()) {
        crash_at(&t, at, FAULT_CRASH_BEFORE, commit, "before");
        if (seen.is_write[at]) crash_at(&t, at, FAULT_CRASH_HALF, commit, "in");
    }
    crash_at(&t, n, FAULT_CRASH_AFTER, commit, "after");
    remove_folder(place.run);
    printf("  %s: %lld calls, the %lldth commits\n", s->name, (long long)n, (long long)commit);
}

static void test_every_boundary_of_a_save(void)
{
    for (int i = 0; i < N_SCENARIOS; i++)
        check_scenario(&scenarios[i]);
    printf("  %d crashes\n", n_tried);
}

int main(void)
{
    if (!CAN_SAVE) {
        weft_test_skip("built without HDF5, which checkpoints are written with");
    } else if (CHECK(crash_open())) {
        RUN(test_every_boundary_of_a_save);
        crash_close();
    }
    return weft_test_report();
}
