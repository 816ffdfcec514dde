/* locale_test: programs with a part, such as a plug-in, that sets a locale with a decimal comma: options, schedules
 * and links are read, and logs, metrics and reports written, as without it.
 */
#include "command.h"
#include "comma.h"
#include "test.h"

#ifdef WEFT_SANITIZE
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

static char folder[] = "/tmp/weft-comma-XXXXXX";

/* A library that sets the locale as it is loaded. */
static bool make_setter(void)
{
    char line[512];
    snprintf(line, sizeof line,
             "printf '#include <locale.h>\\n__attribute__((constructor)) static void set(void) "
             "{ setlocale(LC_ALL, \"" COMMA
             "\"); }\\n' > %s/set.c && cc -shared -fPIC -o %s/set.so "
             "%s/set.c && seq 1 2000 >%s/text",
             folder, folder, folder, folder);
    return system(line) == 0;
}

static command_result train(const char *before, const char *where)
{
    char line[2048];
    snprintf(line, sizeof line,
             "mkdir %s/%s && cd %s/%s && timeout 100 env %s " WEFT_TEST_BIN
             "/gpt train --data ../text --steps 3 --layers 1 --width 8 --heads 2 --seq 4 --batch 4 "
             "--rate 0.0125 --schedule piecewise --pieces 2=0.5 --max-time 1.5h --mesh data:2 "
             "--layout batch:data --link 0.5GB+1.5us --run run 2>&1",
             folder, where, folder, where, before);
    return command_run_all(line);
}

/* Lines of a file of the run that have all of what does not depend on the clock. */
static command_result lines_of(const char *where, const char *file)
{
    char line[512];
    snprintf(line, sizeof line,
             "grep -oE '\"(loss|rate|grad_norm|step|value)\": ?[^,}]*' %s/%s/run/%s", folder, where,
             file);
    return command_run_all(line);
}

static bool has_comma_in_number(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (at[0] == ',' && at > text && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' &&
            at[1] <= '9')
            return true;
    return false;
}

static void test_a_run_is_the_same_under_a_comma(void)
{
    static const char *const files[] = {"metrics.jsonl", "run.json"};
    char before[512], line[512];
    snprintf(before, sizeof before, "LOCPATH=%s LD_PRELOAD=%s/set.so", comma_folder, folder);
    const command_result plain = train("", "plain"), comma = train(before, "comma");
    CHECK_TEXT(plain.text, "loss");
    CHECK_TEXT(comma.text, "loss");
    CHECK_TEXT(comma.text, "rate=0.0125");
    CHECK(!has_comma_in_number(comma.text));
    for (int i = 0; i < 2; i++) {
        const command_result one = lines_of("plain", files[i]), other = lines_of("comma", files[i]);
        CHECK_TEXT(one.text, i == 0 ? "loss" : "0.0125");
        if (!CHECK(strcmp(one.text, other.text) == 0))
            fprintf(stderr, "%.300s\n----\n%.300s\n", one.text, other.text);
    }
    snprintf(line, sizeof line, "cat %s/comma/run/metrics.jsonl | tr -d ' '", folder);
    CHECK(!has_comma_in_number(command_run_all(line).text));
}

static void test_reports_are_json_under_a_comma(void)
{
    char line[1024];
    snprintf(line, sizeof line,
             "LOCPATH=%s LD_PRELOAD=%s/set.so " WEFT_TEST_BIN
             "/weft info --json | tr -d ' \\n' | grep -cE ':[0-9]+,[0-9]+[,}]'",
             comma_folder, folder);
    CHECK_TEXT(command_run_all(line).text, "0");
}

int main(void)
{
    if (IS_SANITIZED)
        weft_test_skip("a sanitized program takes no library before the sanitizer's own");
    else if (!comma_open())
        weft_test_skip("localedef cannot make " COMMA " here (Debian: locales)");
    else if (CHECK(mkdtemp(folder) != NULL) && CHECK(make_setter())) {
        char line[64];
        RUN(test_a_run_is_the_same_under_a_comma);
        RUN(test_reports_are_json_under_a_comma);
        snprintf(line, sizeof line, "rm -rf %s", folder);
        CHECK(system(line) == 0);
    }
    comma_close();
    return weft_test_report();
}
