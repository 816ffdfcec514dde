/* test.h: the whole test harness: checks that count, and a report for CTest.
 *
 *     static void test_first_error_stays(void) { CHECK_EQ_INT(weft_status_of(...), WEFT_USAGE); }
 *     int main(void)
 *     {
 *         RUN(test_first_error_stays);
 *         return weft_test_report();
 *     }
 *
 * A failed check prints its place and goes on. Checks may be made from any thread. CTest reads exit
 * status 77 as "skipped". A comment line RANKS: 2 3 4 near the top of a test asks CMake for MPI
 * runs besides. How many random cases a test takes is weft_test_cases(n).
 */
#ifndef WEFT_TEST_H
#define WEFT_TEST_H

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WEFT_TEST_SKIPPED = 77,
    WEFT_TEST_SHOWN = 40 /* failures printed; the rest are only counted */
};

typedef struct weft_test_state {
    atomic_int n_passed, n_failed;
    const char *skipped; /* why the whole program was skipped */
    const char *running; /* the test function under way */
} weft_test_state;

/* One for the whole program: every file that includes this defines it, the linker keeps one. */
__attribute__((weak)) weft_test_state weft_test_;

static inline bool weft_test_check(bool passed, const char *file, int line, const char *what)
{
    if (passed) {
        atomic_fetch_add(&weft_test_.n_passed, 1);
        return true;
    }
    if (atomic_fetch_add(&weft_test_.n_failed, 1) < WEFT_TEST_SHOWN)
        fprintf(stderr, "%s:%d: %s: failed: %s\n", file, line,
                weft_test_.running != NULL ? weft_test_.running : "main", what);
    return false;
}

static inline bool weft_test_check_int(long long a, long long b, const char *file, int line,
                                       const char *what)
{
    char text[512];
    snprintf(text, sizeof text, "%s: %lld and %lld", what, a, b);
    return weft_test_check(a == b, file, line, text);
}

/* |a - b| within `relative` of the larger magnitude (of 1 when both are below 1e-300); NaN equals
 * nothing. */
static inline bool weft_test_check_close(double a, double b, double relative, const char *file,
                                         int line, const char *what)
{
    char text[512];
    const double scale = fmax(fabs(a), fabs(b));
    const bool close = a == b || fabs(a - b) <= relative * (scale > 1e-300 ? scale : 1.0);
    snprintf(text, sizeof text, "%s: %.17g and %.17g differ by more than %g of the larger", what, a,
             b, relative);
    return weft_test_check(close, file, line, text);
}

static inline bool weft_test_check_text(const char *haystack, const char *needle, const char *file,
                                        int line)
{
    char text[1600];
    snprintf(text, sizeof text, "\"%.400s\" is not in \"%.1000s\"", needle,
             haystack != NULL ? haystack : "(NULL)");
    return weft_test_check(haystack != NULL && strstr(haystack, needle) != NULL, file, line, text);
}

/* Each is true when the check passed, so a test can stop: if (!CHECK(p != NULL)) return; */
#define CHECK(condition) weft_test_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_EQ_INT(a, b)                                                                         \
    weft_test_check_int((long long)(a), (long long)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_CLOSE(a, b, relative)                                                                \
    weft_test_check_close((a), (b), (relative), __FILE__, __LINE__, #a " close to " #b)
#define CHECK_TEXT(haystack, needle) weft_test_check_text((haystack), (needle), __FILE__, __LINE__)
/* For calls that take a weft_error: CHECK_OK(weft_run(program, &error), error). Prints the message.
 */
#define CHECK_OK(call, error)                                                                      \
    weft_test_check((call) == 0, __FILE__, __LINE__, (error).message[0] ? (error).message : #call)

#define RUN(test)                                                                                  \
    do {                                                                                           \
        weft_test_.running = #test;                                                                \
        printf("%s\n", #test);                                                                     \
        fflush(stdout);                                                                            \
        test();                                                                                    \
        weft_test_.running = NULL;                                                                 \
    } while (0)

/* Of the cases that a test draws it takes TEST_CASES percent (of the environment, where ./run puts it; 100 without). */
static inline double weft_test_share(void)
{
    const char *text = getenv("TEST_CASES");
    const double percent = text != NULL ? atof(text) : 100;
    return percent > 0 ? percent / 100 : 1;
}

/* How many that is of n, at least one. */
static inline int weft_test_cases(int n)
{
    const double cases = ceil(n * weft_test_share());
    return cases > 1 ? (int)cases : 1;
}

/* 1, or `sparse` where a sanitizer looks, to which ./run gives few cases: the step through what differs in its numbers alone, or
 * runs the same code once more. */
static inline int weft_test_stride(int sparse)
{
    return weft_test_share() < 0.1 ? sparse : 1;
}

/* The test stands still if it does not call this again within so many seconds, however busy the machine is: then it
 * ends ("Alarm clock"), and does not wait for CTest's limit. 0: no longer. Called where something has got on, so what
 * counts is progress and not speed. */
static inline void weft_test_hangs_after(unsigned seconds)
{
    alarm(seconds);
}

/* This test cannot run here: say why. Checks that failed before still count. */
static inline void weft_test_skip(const char *reason)
{
    weft_test_.skipped = reason;
}

/* The last line of main: 0, 1 when a check failed or none was made, 77 when skipped. */
static inline int weft_test_report(void)
{
    const int passed = atomic_load(&weft_test_.n_passed),
              failed = atomic_load(&weft_test_.n_failed);
    if (failed == 0 && weft_test_.skipped != NULL) {
        printf("skipped: %s\n", weft_test_.skipped);
        return WEFT_TEST_SKIPPED;
    }
    printf("%d passed, %d failed\n", passed, failed);
    if (passed + failed == 0) printf("no check was made\n");
    return failed > 0 || passed == 0;
}

#endif
