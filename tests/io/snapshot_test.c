/* snapshot_test: a file has what its chain gave, of fixed and of ragged rows, written by any threads and by processes at once. The next run
 * reads it without asking the chain. A full disk, a record that cannot be read and a kill leave nothing of it. Damage is told or mended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "kept_chain.h"

enum { RECORDS = 40000, FEW = 300 };

static char folder[] = "/tmp/weft-snapshot-XXXXXX", where[64];

static void forget_all(void)
{
    char line[100];
    snprintf(line, sizeof line, "rm -rf %s", where);
    CHECK_EQ_INT(system(line), 0);
}

static weft_status open_kept(kept_source *k, int n_threads, weft_chain **chain, weft_error *error)
{
    const weft_snapshot_options o = {.folder = where, .n_threads = n_threads};
    *chain = kept_open(k);
    const weft_status status = weft_chain_snapshot(chain, &o, error);
    if (status != WEFT_OK) weft_chain_close(chain);
    return status;
}

/* How many files, and the last one's name. */
static int n_files(char *name)
{
    int n = 0;
    DIR *listing = opendir(where);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL)
        if (entry->d_name[0] != '.') snprintf(name, 400, "%s/%s", where, entry->d_name), n++;
    if (listing != NULL) closedir(listing);
    return n;
}

static void check_some(const weft_chain *chain)
{
    for (int64_t i = 0; i < chain->found.records; i += 1 + i % 5 * 7)
        kept_check(chain, i);
    for (int64_t i = chain->found.records - 1; i < chain->found.records + 3; i++)
        kept_check(chain, i); /* and of the next pass */
}

static void check_kept(bool has_text, int n_threads)
{
    kept_source k = {.records = RECORDS, .odd = -1, .has_text = has_text};
    weft_error error = {0};
    weft_chain *chain = NULL, *plain = kept_open(&k);
    const weft_hash own = weft_chain_digest(plain);
    forget_all();
    for (int run = 0; run < 2; run++) {
        atomic_store(&k.n_read, 0);
        if (!CHECK_OK(open_kept(&k, n_threads, &chain, &error), error)) break;
        CHECK_EQ_INT(atomic_load(&k.n_read), run == 0 ? RECORDS : 0);
        const weft_hash digest = weft_chain_digest(chain);
        CHECK(weft_hash_equal(&digest, &own));
        check_some(chain);
        weft_chain_close(&chain);
    }
    weft_chain_close(&plain);
}

static void test_a_file_has_what_the_chain_gave(void)
{
    for (int n = 1; n < 5; n += 3) {
        check_kept(false, n);
        check_kept(true, n);
    }
}

static void test_processes_at_once_write_it_once(void)
{
    char name[400];
    pid_t children[4];
    forget_all();
    for (int c = 0; c < 4; c++)
        if ((children[c] = fork()) == 0) {
            kept_source k = {.records = RECORDS, .odd = -1, .has_text = true};
            weft_error error = {0};
            weft_chain *chain = NULL;
            if (!CHECK_OK(open_kept(&k, 2, &chain, &error), error)) _exit(100);
            check_some(chain);
            _exit(atomic_load(&k.n_read) >= RECORDS); /* check_some reads f64 from the source */
        }
    int n_wrote = 0;
    for (int c = 0; c < 4; c++) {
        int status = 0;
        CHECK(waitpid(children[c], &status, 0) == children[c] && WIFEXITED(status));
        CHECK(WEXITSTATUS(status) <= 1);
        n_wrote += WEXITSTATUS(status);
    }
    CHECK_EQ_INT(n_wrote, 1);
    CHECK_EQ_INT(n_files(name), 1);
}

/* ---- what goes wrong -------------------------------------------------------------------------------- */

static void test_a_full_disk_is_one_sentence_and_leaves_nothing(void)
{
    char name[400];
    int n_refused = 0;
    for (int64_t at = 1; at < 60; at++) {
        kept_source k = {.records = FEW, .odd = -1, .has_text = at % 2};
        weft_error error = {0};
        weft_chain *chain = NULL;
        forget_all();
        faults_start(&(fault_plan){.folder = where,
                                   .calls = FAULT_WRITES | 1 << FAULT_RENAME | 1 << FAULT_SYNC,
                                   .at = at / 2 + 1,
                                   .action = FAULT_FAIL,
                                   .error = ENOSPC,
                                   .is_for_good = true});
        const weft_status status = open_kept(&k, 1, &chain, &error);
        const bool has_struck = faults_struck();
        faults_stop();
        weft_chain_close(&chain);
        if (!has_struck) break;
        n_refused++;
        CHECK_EQ_INT(status, WEFT_IO);
        CHECK_TEXT(error.message, "No space left on device");
        CHECK_TEXT(error.message, where);
        CHECK_EQ_INT(n_files(name), 0);
    }
    CHECK(n_refused >= 6);
}

static void test_a_record_that_cannot_be_read_leaves_nothing(void)
{
    char name[400];
    for (int n = 1; n < 4; n++) {
        kept_source k = {.records = RECORDS, .odd = 31234, .has_text = true};
        weft_error error = {0};
        weft_chain *chain = NULL;
        forget_all();
        CHECK_EQ_INT(open_kept(&k, n, &chain, &error), WEFT_IO);
        CHECK_TEXT(error.message, "shelf.bin: record 31234 is torn");
        CHECK_EQ_INT(n_files(name), 0);
    }
}

/* What a killed process left is written over, by its name. */
static void test_what_is_half_written_is_never_read(void)
{
    char name[400], left[420];
    kept_source k = {.records = FEW, .odd = -1, .has_text = true};
    weft_error error = {0};
    weft_chain *chain = NULL;
    forget_all();
    CHECK_OK(open_kept(&k, 1, &chain, &error), error);
    weft_chain_close(&chain);
    CHECK_EQ_INT(n_files(name), 1);
    snprintf(left, sizeof left, "%s.new", name);
    CHECK(rename(name, left) == 0 && truncate(left, 777) == 0);
    CHECK_OK(open_kept(&k, 1, &chain, &error), error);
    check_some(chain);
    weft_chain_close(&chain);
    CHECK_EQ_INT(n_files(name), 1);
}

/* Cut: made again. A bit of the head or the table: made again. A bit of a record: told when it is read. */
static void test_damage_is_mended_or_told(void)
{
    char name[400];
    kept_source k = {.records = FEW, .odd = -1, .has_text = true};
    struct stat facts;
    forget_all();
    for (int at = 0; at < 60; at++) {
        weft_error error = {0};
        weft_chain *chain = NULL;
        if (!CHECK_OK(open_kept(&k, 1, &chain, &error), error)) return;
        weft_chain_close(&chain);
        CHECK(n_files(name) == 1 && stat(name, &facts) == 0);
        const off_t place = facts.st_size * at / 60;
        char byte;
        const int file = open(name, O_RDWR);
        CHECK(pread(file, &byte, 1, place) == 1);
        byte ^= 16;
        CHECK(at % 2 ? ftruncate(file, place) == 0 : pwrite(file, &byte, 1, place) == 1);
        close(file);
        if (!CHECK_OK(open_kept(&k, 1, &chain, &error), error)) return;
        int64_t id;
        const weft_want want = {0, WEFT_I64, 0, 1, &id};
        const weft_status status = weft_chain_ask(chain, 0, &want, 1, NULL, &error);
        if (status == WEFT_OK) {
            check_some(chain);
        } else {
            CHECK_EQ_INT(status, WEFT_CORRUPT);
            CHECK_TEXT(error.message, "records 0 to 299 are not as they were written");
            CHECK_TEXT(error.message, name);
            CHECK_EQ_INT(unlink(name), 0);
        }
        weft_chain_close(&chain);
    }
}

static void check_refused(weft_chain **chain, const char *to, weft_status status, const char *fact)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_chain_snapshot(chain, &(weft_snapshot_options){to, 1}, &error), status);
    CHECK_TEXT(error.message, fact);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    kept_source k = {.records = FEW, .odd = -1};
    weft_error error = {0};
    weft_chain *chain = kept_open(&k);
    check_refused(&chain, NULL, WEFT_USAGE, "options->folder is NULL");
    check_refused(&chain, "/dev/null/x", WEFT_IO, "/dev/null/x");
    CHECK_OK(weft_chain_shuffle(&chain, 0, 1, &error), error);
    check_refused(&chain, where, WEFT_USAGE, "passes of the chain differ by its shuffle");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!CHECK(mkdtemp(folder) != NULL)) return weft_test_report();
    snprintf(where, sizeof where, "%s/kept", folder);
    RUN(test_a_file_has_what_the_chain_gave);
    RUN(test_processes_at_once_write_it_once);
    RUN(test_a_full_disk_is_one_sentence_and_leaves_nothing);
    RUN(test_a_record_that_cannot_be_read_leaves_nothing);
    RUN(test_what_is_half_written_is_never_read);
    RUN(test_damage_is_mended_or_told);
    RUN(test_what_cannot_be_is_one_sentence);
    forget_all();
    CHECK_EQ_INT(rmdir(folder), 0);
    return weft_test_report();
}
