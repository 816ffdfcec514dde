/* apart_test: what the process that decodes files of others may do, and what comes of it: it crashes, ends, lies, is ended by somebody
 * else, or serves many threads. In every case this process lives, and a failure is one sentence with file and record.
 *
 * The processes that misbehave are this very program under the name weft-read-files, in folders called by what they do.
 */
#ifdef WEFT_FILES_FOLDER
#include "apart/files_asked.h"
#include "source/records.h"
#include "weft/error.h"

#include <png.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_folder.h"
#include "test.h"

enum { HIGH = 5, WIDE = 7, PIXELS = HIGH * WIDE * 3, IMAGES = 12, THREADS = 4 };
static char images[64];

/* ---- the other end -------------------------------------------------------------------------------- */

static int misbehave(const char *way)
{
    files_asked asked;
    files_answer answer = {.is_good = 1, .rows = 1, .columns = 1, .channels = 1};
    if (strstr(way, "/ends/")) return 3;
    if (read(1, &asked, sizeof asked) != sizeof asked) return 1;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's own would exit */
    if (strstr(way, "/crashes/")) raise(SIGSEGV);
    if (strstr(way, "/spins/")) raise(SIGPROF); /* what the timer of processor time does */
    if (strstr(way, "/large/")) answer.rows = answer.columns = (int64_t)1 << 40;
    if (strstr(way, "/negative/")) answer.rows = -1;
    if (strstr(way, "/talks/"))
        answer.is_good = 0, memset(answer.why, '\n', sizeof answer.why); /* it does not end */
    if (strstr(way, "/half/")) return write(1, &answer, 9) == 9 ? 0 : 1;
    return write(1, &answer, sizeof answer) == sizeof answer ? 0 : 1;
}

/* ---- images --------------------------------------------------------------------------------------- */

static unsigned char pixel(int image, int i)
{
    return (unsigned char)(image * 17 + i * 3);
}

static void write_images(void)
{
    snprintf(images, sizeof images, "%s/images", folder);
    CHECK_EQ_INT(mkdir(images, 0700), 0);
    for (int k = 0; k < IMAGES; k++) {
        char path[96];
        unsigned char pixels[PIXELS];
        png_image png = {
            .version = PNG_IMAGE_VERSION, .width = WIDE, .height = HIGH, .format = PNG_FORMAT_RGB};
        for (int i = 0; i < PIXELS; i++)
            pixels[i] = pixel(k, i);
        snprintf(path, sizeof path, "%s/%02d.png", images, k);
        CHECK(png_image_write_to_file(&png, path, 0, pixels, 0, NULL));
    }
}

static weft_records *open_images(void)
{
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = NULL;
    CHECK_OK(weft_records_open(images, NULL, &records, &error), error);
    CHECK_EQ_INT(weft_records_count(records), IMAGES);
    return records;
}

static void check_image(const weft_records *records, int k)
{
    unsigned char pixels[PIXELS];
    int64_t dims[WEFT_RECORD_DIMS] = {0};
    weft_error error = WEFT_NO_ERROR;
    int n_wrong = 0;
    CHECK_OK(weft_records_shape(records, k, 0, dims, &error), error);
    CHECK(dims[0] == HIGH && dims[1] == WIDE && dims[2] == 3);
    CHECK_OK(weft_records_read(records, k, 0, 0, PIXELS, pixels, &error), error);
    for (int i = 0; i < PIXELS; i++)
        n_wrong += pixels[i] != pixel(k, i);
    CHECK_EQ_INT(n_wrong, 0);
}

/* ---- what it may do ------------------------------------------------------------------------------- */

/* A folder that has this program as its reader. */
static void use(const char *way, const char *self)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, way);
    CHECK_EQ_INT(mkdir(path, 0700), 0);
    setenv("WEFT_FILES_PATH", path, 1);
    strcat(path, "/weft-read-files");
    CHECK_EQ_INT(symlink(self, path), 0);
}

static char self[4000];

static void check_way(const char *way, const char *fact)
{
    unsigned char pixels[PIXELS];
    weft_error error = WEFT_NO_ERROR;
    weft_records *records = open_images();
    use(way, self);
    CHECK_EQ_INT(weft_records_read(records, 3, 0, 0, PIXELS, pixels, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, fact);
    CHECK_TEXT(error.message, "/03.png: the image at byte 0");
    CHECK_TEXT(error.message, "(record 3)");
    CHECK(strchr(error.message, '\n') == NULL);
    setenv("WEFT_FILES_PATH", WEFT_FILES_FOLDER, 1);
    check_image(records, 3); /* another process, and all is well */
    weft_records_close(&records);
}

/* In a child each: what is free there is not what this process has. */
static void in_child(const char *way, const char *fact)
{
    fflush(NULL);
    const pid_t child = fork();
    int status = -1;
    if (child == 0) {
        check_way(way, fact);
        _exit(atomic_load(&weft_test_.n_failed) > 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_what_it_does_is_a_sentence_with_file_and_record(void)
{
    in_child("crashes", "crashed (Segmentation fault)");
    in_child("spins", "used up its processor time");
    in_child("ends", "ended too early (exit status 3)");
    in_child("half", "ended too early");
    in_child("large", "said what cannot be");
    in_child("negative", "said what cannot be");
    in_child("talks", "said what cannot be");
}

static void *read_some(void *argument)
{
    const weft_records *records = argument;
    for (int i = 0; i < 5 * IMAGES; i++)
        check_image(records, i * 5 % IMAGES);
    return NULL;
}

static void test_many_threads_are_served(void)
{
    pthread_t threads[THREADS];
    weft_records *records = open_images();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, read_some, records), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weft_records_close(&records);
}

/* It is gone when this returns, and who started it may still ask how. */
static void end_child(pid_t child)
{
    siginfo_t facts = {0};
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &facts, WEXITED | WNOWAIT);
}

/* All children of this process. */
static void end_children(void)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (file != NULL && fgets(line, sizeof line, file) != NULL)
        for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
            end_child((pid_t)atoi(word));
    if (file != NULL) fclose(file);
}

static void test_one_that_somebody_ends_is_followed_by_another(void)
{
    weft_records *records = open_images();
    check_image(records, 1);
    end_children();
    check_image(records, 2);
    weft_records_close(&records);
}

static void test_a_child_has_processes_of_its_own(void)
{
    weft_records *records = open_images();
    int status = -1;
    check_image(records, 1);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        check_image(records, 1);
        check_image(records, 2);
        _exit(atomic_load(&weft_test_.n_failed) > 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_image(records, 1);
    check_image(records, 4);
    weft_records_close(&records);
}

static void test_a_file_that_changes_is_said(void)
{
    char path[96];
    unsigned char pixels[PIXELS];
    weft_error size = WEFT_NO_ERROR, gone = WEFT_NO_ERROR;
    weft_records *records = open_images();
    check_image(records, 5);
    snprintf(path, sizeof path, "%s/05.png", images);
    CHECK_EQ_INT(truncate(path, 30), 0);
    CHECK_EQ_INT(weft_records_read(records, 5, 0, 0, PIXELS, pixels, &size), WEFT_IO);
    CHECK_TEXT(size.message, "05.png was changed while it is read");
    CHECK_TEXT(size.message, "(record 5)");
    weft_records_close(&records);
    CHECK_EQ_INT(truncate(path, 0), 0);
    CHECK_EQ_INT(weft_records_open(images, NULL, &records, &gone), WEFT_IO);
    CHECK_TEXT(gone.message, "05.png is empty");
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *name = strrchr(argv[0], '/');
    if (name != NULL && strcmp(name, "/weft-read-files") == 0) return misbehave(argv[0]);
    weft_test_hangs_after(300);
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!CHECK(n > 0) || !own_folder_open("apart")) return weft_test_report();
    setenv("WEFT_FILES_PATH", WEFT_FILES_FOLDER, 1);
    write_images();
    RUN(test_what_it_does_is_a_sentence_with_file_and_record);
    RUN(test_many_threads_are_served);
    RUN(test_one_that_somebody_ends_is_followed_by_another);
    RUN(test_a_child_has_processes_of_its_own);
    RUN(test_a_file_that_changes_is_said);
    own_folder_close();
    return weft_test_report();
}
#else
#include "own_folder.h"

MAIN_THAT_IS_SKIPPED("built without weft-read-files")
#endif
