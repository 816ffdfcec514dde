/* doctor_read_test: lines of 100,000 characters in files as /proc has them are one line each, and what stands at their end is
 * found. */
#include <stdlib.h>
#include <unistd.h>

#include "apps/weft/doctor/doctor.h"
#include "test.h"

enum { LONG = 100000 };

static char path[] = "/tmp/weft_doctor_read_XXXXXX";

/* `begin`, LONG times `c`, `end`: a line; then `after`. */
static void put(const char *before, const char *begin, char c, const char *end, const char *after)
{
    FILE *file = fopen(path, "we");
    if (!CHECK(file != NULL)) return;
    fprintf(file, "%s%s", before, begin);
    for (int i = 0; i < LONG; i++)
        fputc(c, file);
    fprintf(file, "%s\n%s", end, after);
    CHECK(fclose(file) == 0);
}

static void test_mounts_of_long_lines(void)
{
    char options[64];
    put("21 1 8:7 / /home rw - ext4 /dev/a rw\n", "22 1 8:1 / /", 'x', " rw - nfs host rw,nolock",
        "23 1 8:2 / /d rw - xfs /dev/b ro\n");
    doctor_mount_options(path, 8, 1, options, sizeof options);
    CHECK_TEXT(options, "nfs host rw,nolock");
    doctor_mount_options(path, 8, 2, options, sizeof options);
    CHECK_TEXT(options, "xfs /dev/b ro");
    doctor_mount_options(path, 8, 3, options, sizeof options);
    CHECK(options[0] == '\0');
    /* what stands inside a line begins none */
    put("", "22 1 8:1 / /", 'x', "23 1 8:2 / /d rw", "24 1 8:4 / /e rw - ext4 /dev/c rw\n");
    doctor_mount_options(path, 8, 2, options, sizeof options);
    CHECK(options[0] == '\0');
    doctor_mount_options(path, 8, 4, options, sizeof options);
    CHECK_TEXT(options, "ext4 /dev/c rw");
    /* options longer than there is room for are cut, not run over */
    put("", "22 1 8:1 / / rw - overlay o ", 'l', "", "");
    doctor_mount_options(path, 8, 1, options, sizeof options);
    CHECK_EQ_INT(strlen(options), sizeof options - 1);
}

static void test_flags_at_the_end_of_a_long_line(void)
{
    put("model name : avx2\n", "flags : ", 'f', " sse avx2 fma", "flags : sse\n");
    CHECK(doctor_line_has(path, "flags", " avx2"));
    CHECK(!doctor_line_has(path, "flags", " avx512f"));
    put("", "bugs : ", 'b', "flags : avx2", "flags : sse\n");
    CHECK(!doctor_line_has(path, "flags", " avx2"));
}

static void test_numbers_behind_a_long_line(void)
{
    double number = 0;
    put("", "Other: ", '1', "MemTotal: 5 kB", "MemTotal:  123456 kB\n");
    CHECK(doctor_line_number(path, "MemTotal:") == 123456);
    CHECK(doctor_line_number(path, "SwapFree:") == 0);
    put("200000 100000\n", "", '9', "", "");
    CHECK(doctor_read_number(path, &number) && number == 2);
    put("", "", 'x', "", "12\n");
    CHECK(!doctor_read_number(path, &number));
}

int main(void)
{
    const int file = mkstemp(path);
    if (!CHECK(file >= 0)) return weft_test_report();
    close(file);
    RUN(test_mounts_of_long_lines);
    RUN(test_flags_at_the_end_of_a_long_line);
    RUN(test_numbers_behind_a_long_line);
    unlink(path);
    return weft_test_report();
}
