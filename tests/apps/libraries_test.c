/* libraries_test: what the library and the programs bring into a process, and when. */
#include "command.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static const char library[] = WEFT_TEST_BIN "/../lib/libweft.so";

/* Beside MPI's own, the loader and libc among them. */
enum { MOST = 12 };
static const char *const of_mpi[] = {"libmpi", "libopen-", "libevent", "libpmix",
                                     "libucp", "libucs",   "libuct",   "libfabric"};
static const char *const of_sanitizers[] = {"libasan", "libubsan", "liblsan", "libstdc++"};
static const char *const unwanted[] = {"libhdf5", "libcurl",   "libssl",  "libcrypto",
                                       "libkrb5", "libgssapi", "libldap", "liblber"};
#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

static bool begins_with_one(const char *name, const char *const *table, int n)
{
    for (int i = 0; i < n; i++)
        if (strncmp(name, table[i], strlen(table[i])) == 0) return true;
    return false;
}

/* ldd's lines: "\tlibm.so.6 => /lib/...", "\t/lib64/ld-linux-x86-64.so.2 (0x...)", and the kernel's linux-vdso, which
 * is no file. */
static int count_own(const char *text)
{
    char shown[1024] = "";
    int n = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
        const char *name = line + strspn(line, " \t");
        if (*name == 0 || strncmp(name, "linux-", 6) == 0) continue;
        if (begins_with_one(name, of_mpi, COUNT(of_mpi)) ||
            begins_with_one(name, of_sanitizers, COUNT(of_sanitizers)))
            continue;
        const size_t used = strlen(shown);
        snprintf(shown + used, sizeof shown - used, " %.*s", (int)strcspn(name, " \n"), name);
        n++;
    }
    printf("  %d beside MPI's:%s\n", n, shown);
    return n;
}

static void test_library_brings_few(void)
{
    char line[1024];
    snprintf(line, sizeof line, "ldd %s", library);
    const command_result r = command_run_all(line);
    if (!CHECK(r.status == 0 && strstr(r.text, "libc.so") != NULL)) return;
    const int n = count_own(r.text);
    CHECK(n > 0 && n <= MOST);
    for (int i = 0; i < COUNT(unwanted); i++)
        weft_test_check(strstr(r.text, unwanted[i]) == NULL, __FILE__, __LINE__, unwanted[i]);
}

static void test_programs_bring_no_hdf5(void)
{
    static const char *const programs[] = {"gpt", "mnist", "charlm", "seq2seq", "word2vec", "weft"};
    char line[1024];
    for (int i = 0; i < COUNT(programs); i++) {
        snprintf(line, sizeof line, "ldd " WEFT_TEST_BIN "/%s", programs[i]);
        const command_result r = command_run_all(line);
        CHECK(r.status == 0 && strstr(r.text, "libweft.so") != NULL);
        CHECK(strstr(r.text, "libhdf5") == NULL);
    }
}

/* The loader says what it brings, and gpt the numbers of step 1. */
static void test_hdf5_comes_with_the_first_save(void)
{
    char folder[] = "/tmp/weft-libraries-XXXXXX", line[2048];
    if (!CHECK(mkdtemp(folder) != NULL)) return;
    snprintf(line, sizeof line,
             "LD_DEBUG=files timeout 60 " WEFT_TEST_BIN "/gpt train --data " WEFT_TEST_DATA
             "/test.h --run %s/run --layers 1 --width 16 "
             "--heads 2 --seq 8 --batch 4 --steps 4 --save-every 2 2>&1 | "
             "grep -E 'calling init: .*libhdf5|^ +1 +[0-9.]+ '",
             folder);
    const command_result saving = command_run_all(line);
    const char *step = strstr(saving.text, "   1  "), *hdf5 = strstr(saving.text, "libhdf5");
    weft_test_check(step != NULL && hdf5 != NULL && step < hdf5, __FILE__, __LINE__, saving.text);
    snprintf(line, sizeof line,
             "LD_DEBUG=files timeout 60 " WEFT_TEST_BIN "/gpt sample --run %s/run --sample 8 "
             "2>&1 | grep -c libhdf5",
             folder);
    CHECK_EQ_INT(atoi(command_run_all(line).text), 0);
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
}

int main(void)
{
    if (WEFT_TEST_EMULATOR[0] != '\0') {
        weft_test_skip("ldd lists what a library of this machine brings, not an emulated one's");
        return weft_test_report();
    }
    if (command_run_all("command -v ldd").status != 0) {
        weft_test_skip("ldd, which lists what a library brings, is not there");
        return weft_test_report();
    }
    RUN(test_library_brings_few);
    RUN(test_programs_bring_no_hdf5);
#ifdef WEFT_HAVE_HDF5
    RUN(test_hdf5_comes_with_the_first_save);
#endif
    return weft_test_report();
}
