/* error.h: how every room reports a failure: a status, and one sentence for a person.
 *
 *     weft_status open_it(const char *path, weft_error *error)
 *     {
 *         if (!path) return weft_fail(error, WEFT_USAGE, "no data file; name one with --data FILE");
 *         WEFT_TRY(next_step(error));
 *         return WEFT_OK;
 *     }
 */
#ifndef WEFT_ERROR_H
#define WEFT_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every public header is C99 to C23 and C++17; its declarations stand between WEFT_BEGIN and WEFT_END. */
#ifdef __cplusplus
#define WEFT_BEGIN extern "C" {
#define WEFT_END   }
#else
#define WEFT_BEGIN
#define WEFT_END
#endif

#ifdef __GNUC__
#define WEFT_API          __attribute__((visibility("default")))
#define WEFT_MUST_CHECK   __attribute__((warn_unused_result))
#define WEFT_FORMAT(f, a) __attribute__((format(printf, f, a)))
#else
#define WEFT_API
#define WEFT_MUST_CHECK
#define WEFT_FORMAT(f, a)
#endif

WEFT_BEGIN

/* The kind of a failure; its name says who has to act. Values are stable: they travel between ranks. */
typedef enum weft_status {
    WEFT_OK = 0,
    WEFT_USAGE = 1,  /* the caller's or user's mistake: a name, a size, a file that is not right */
    WEFT_IO = 2,     /* the file system or the network refused */
    WEFT_MEMORY = 3, /* an allocation failed */
    WEFT_COMM = 4,   /* a link or a peer rank failed */
    WEFT_MISMATCH = 5,  /* ranks disagree about what to run */
    WEFT_INTERNAL = 6,  /* a promise of Weft's own is broken */
    WEFT_NONFINITE = 7, /* NaN or Inf where numbers must be */
    WEFT_CORRUPT = 8    /* stored or replicated bytes are not what they were */
} weft_status;

/* Begins as {0}, in C++ as {} or, in both languages, WEFT_NO_ERROR. The first failure stays: to use it again after one
 * has been dealt with, weft_error_clear it. */
typedef struct weft_error {
    weft_status status; /* WEFT_OK until the first failure            */
    int rank;           /* the rank that failed, -1 for this one      */
    char message[480];  /* what was found, which rule, what to do     */
} weft_error;
#define WEFT_NO_ERROR                                                                              \
    {                                                                                              \
        WEFT_OK, -1, ""                                                                            \
    }

/* weft_error_clear - forget the failure; NULL is fine. Local. */
WEFT_API void weft_error_clear(weft_error *error);

/* Return from the calling function when `call` fails. The only macro that may return, with those made of it below. */
#define WEFT_TRY(call)                                                                             \
    do {                                                                                           \
        weft_status status_ = (call);                                                              \
        if (status_ != WEFT_OK) return status_;                                                    \
    } while (0)

/* weft_fail - record the first failure and return its status. Local.
 *
 * error   may be NULL (the sentence is lost then, the status is not); a failure already in it stays
 * returns `status`, always, so that a caller can write `return weft_fail(...)`
 */
WEFT_API weft_status weft_fail(weft_error *error, weft_status status, const char *format, ...)
    WEFT_FORMAT(3, 4);

/* weft_fail_memory - the sentence for an allocation that failed; returns WEFT_MEMORY. Local. */
WEFT_API weft_status weft_fail_memory(weft_error *error, size_t bytes);

/* A public function looks at its arguments first, with these; each gives one sentence that begins with the function's
 * own name: "weft_run: program is NULL; ...", "weft_wait: rank is 7; it is from 0 to 3". They return from it.
 *
 * WEFT_GIVEN        a pointer that may not be NULL
 * WEFT_GIVEN_ENUM   a value of an enum whose last entry counts the others
 * WEFT_GIVEN_RANGE  a number from `low` to `high`, both included
 */
#define WEFT_GIVEN(argument, error)                                                                \
    WEFT_TRY(weft_check_given((argument) != NULL, __func__, #argument, error))
#define WEFT_GIVEN_ENUM(argument, end, error)                                                      \
    WEFT_TRY(weft_check_range((int64_t)(argument), 0, (int64_t)(end)-1, __func__, #argument, error))
#define WEFT_GIVEN_RANGE(argument, low, high, error)                                               \
    WEFT_TRY(weft_check_range(argument, low, high, __func__, #argument, error))
WEFT_API weft_status weft_check_given(bool is_given, const char *function, const char *argument,
                                      weft_error *error);
WEFT_API weft_status weft_check_range(int64_t number, int64_t low, int64_t high,
                                      const char *function, const char *argument,
                                      weft_error *error);

/* weft_nearest - the entry of `names` most like `name`, for "did you mean". Local.
 *
 * returns a borrowed entry of `names`, or NULL when none is near (edit distance above a third of the
 *         longer name, at least 2)
 */
WEFT_API const char *weft_nearest(const char *name, const char *const *names, int n_names);

WEFT_END

#endif
