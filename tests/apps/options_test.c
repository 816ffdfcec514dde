/* options_test: four sources of settings, the later one wins, and nothing wrong passes unseen. */
#define WEFT_VERSION "of the test"
#include "apps/options.c" /* the programs' own; they are in no library */
#include "apps/options_check.c"
#include "apps/options_complete.c"
#include "apps/options_help.c"
#include "apps/options_man.c"
#include "apps/service.c"

#include <stdlib.h>
#include <unistd.h>

#include "comma.h"
#include "test.h"

static const option some[] = {
    {"batch", OPTION_COUNT, "16", "N", "G", "rows", NULL, 1},
    {"few", OPTION_COUNT, "3", "N", "G", "of them", NULL, 2, 65536},
    {"rate", OPTION_REAL, "1e-3", "X", "G", "speed"},
    {"dtype", OPTION_CHOICE, "f32", "TYPE", "G", "numbers", "f32 f64"},
    {"dry-run", OPTION_FLAG, "no", "", "G", "plan only"},
    {"data", OPTION_TEXT, "", "FILE", "G", "text"},
    {"max-time", OPTION_TIME, "", "TIME", "G", "limit"},
    {"patience", OPTION_TIME, "10s", "TIME", "G", "none is allowed", NULL, -1},
    {"config", OPTION_TEXT, "", "FILE", "G", "settings"},
    {"dims", OPTION_LIST, "", "NAME=a,b ...", "G", "names"},
};
static const option_table table = {"test", "usage\n", some, sizeof some / sizeof *some};
static char path[] = "/tmp/weft-options-XXXXXX";

static settings *read_words(int n, const char *const *words, weft_error *error)
{
    char *arguments[16];
    for (int i = 0; i < n; i++)
        arguments[i] = (char *)words[i];
    *error = (weft_error){.rank = -1};
    return settings_read(&table, n, arguments, error);
}
#define READ(error, ...)                                                                           \
    read_words((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                      \
               (const char *[]){__VA_ARGS__}, error)

static void write_config(const char *text)
{
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs(text, file);
    fclose(file);
}

static void test_defaults_and_forms(void)
{
    weft_error error;
    settings *s = READ(&error, "--batch=32", "--dry-run", "--data", "--x");
    if (!CHECK_OK(error.status, error) || !s) return;
    CHECK_EQ_INT(settings_count(s, "batch"), 32);
    CHECK_CLOSE(settings_real(s, "rate"), 1e-3, 0);
    CHECK(settings_flag(s, "dry-run"));
    CHECK(settings_is(s, "data", "--x"));
    CHECK_TEXT(settings_origin(s, "batch"), "command line");
    CHECK_TEXT(settings_origin(s, "rate"), "default");
    settings_destroy(&s);
    s = READ(&error, "--dry-run", "--no-dry-run");
    if (s) CHECK(!settings_flag(s, "dry-run"));
    settings_destroy(&s);
}

/* Operands stand where the user likes; a list ends at the first word that is no item of one. */
static void test_operands_and_lists(void)
{
    static const char *const orders[][9] = {
        {"import", "file", "dir", "--dims", "a=x,y", "b=z", "--dry-run", "--batch", "3"},
        {"import", "--dims", "a=x,y", "b=z", "file", "dir", "--batch", "3", "--dry-run"},
        {"--dry-run", "import", "--batch", "3", "file", "--dims", "a=x,y", "b=z", "dir"},
    };
    for (int order = 0; order < 3; order++) {
        char *words[9];
        weft_error error = {.rank = -1};
        for (int i = 0; i < 9; i++)
            words[i] = (char *)orders[order][i];
        if (!CHECK_EQ_INT(options_operands(&table, 9, words, &error), 3)) continue;
        CHECK(!strcmp(words[0], "import") && !strcmp(words[1], "file") && !strcmp(words[2], "dir"));
        settings *s = settings_read(&table, 6, words + 3, &error);
        if (!CHECK_OK(error.status, error) || !s) continue;
        CHECK(settings_is(s, "dims", "a=x,y b=z"));
        CHECK_EQ_INT(settings_count(s, "batch"), 3);
        CHECK(settings_flag(s, "dry-run"));
        settings_destroy(&s);
    }
    weft_error error = {.rank = -1};
    char *alone[] = {"--dims"};
    CHECK_EQ_INT(options_operands(&table, 1, alone, &error), 0);
    CHECK(settings_read(&table, 1, alone, &error) == NULL);
    CHECK_TEXT(error.message, "--dims wants a value: --dims NAME=a,b ...");
}

static void test_later_sources_win(void)
{
    weft_error error;
    write_config("# a comment\nbatch = 2\nrate = 0.5 # and one here\ndata = a#b\n\n");
    setenv("WEFT_RATE", "0.25", 1);
    setenv("WEFT_DRY_RUN", "yes", 1);
    settings *s = READ(&error, "--config", path, "--data", "c");
    if (CHECK_OK(error.status, error) && s) {
        CHECK_EQ_INT(settings_count(s, "batch"), 2);
        CHECK_CLOSE(settings_real(s, "rate"), 0.25, 0);
        CHECK(settings_flag(s, "dry-run"));
        CHECK(settings_is(s, "data", "c"));
        CHECK_TEXT(settings_origin(s, "batch"), "file");
        CHECK_TEXT(settings_origin(s, "rate"), "environment");
    }
    settings_destroy(&s);
    unsetenv("WEFT_RATE");
    unsetenv("WEFT_DRY_RUN");
}

/* Refused with WEFT_USAGE; `fact` is in the sentence. */
static void check_refused(const weft_error *error, const settings *s, const char *fact)
{
    CHECK(s == NULL);
    CHECK_EQ_INT(error->status, WEFT_USAGE);
    CHECK_TEXT(error->message, fact);
}

static void test_wrong_settings_are_refused(void)
{
    weft_error error;
    check_refused(&error, READ(&error, "--bacth", "3"), "--batch");
    check_refused(&error, READ(&error, "--batch", "0"), "from 1");
    check_refused(&error, READ(&error, "--batch", "1099511627777"), "2^40");
    check_refused(&error, READ(&error, "--few", "1"), "--few 1: few must be from 2 to 65536");
    check_refused(&error, READ(&error, "--few", "65537"), "few must be from 2 to 65536");
    check_refused(&error, READ(&error, "--batch", "3x"), "3x");
    check_refused(&error, READ(&error, "--batch"), "wants a value");
    check_refused(&error, READ(&error, "--rate", "nan"), "finite");
    check_refused(&error, READ(&error, "--rate", "-1"), "at least 0");
    check_refused(&error, READ(&error, "--dtype", "f16"), "f32");
    check_refused(&error, READ(&error, "--no-batch"), "--no-batch");
    check_refused(&error, READ(&error, "batch"), "batch");
    setenv("WEFT_BACTH", "3", 1);
    check_refused(&error, READ(&error, "--dry-run"), "WEFT_BATCH");
    unsetenv("WEFT_BACTH");
    setenv("WEFT_BATCH", "zero", 1);
    check_refused(&error, READ(&error, "--dry-run"), "WEFT_BATCH=zero");
    unsetenv("WEFT_BATCH");
}

/* What Kubernetes and Docker write of services called weft, weft-seed and weft-2; and what only looks like it. */
static void test_services_of_a_cluster_are_no_options(void)
{
    static const char *const links[][2] = {
        {"WEFT_PORT", "tcp://10.0.0.1:80"},
        {"WEFT_SERVICE_HOST", "10.0.0.1"},
        {"WEFT_SERVICE_PORT", "80"},
        {"WEFT_SERVICE_PORT_HTTP", "80"},
        {"WEFT_PORT_80_TCP", "tcp://10.0.0.1:80"},
        {"WEFT_PORT_80_TCP_PROTO", "tcp"},
        {"WEFT_PORT_80_TCP_PORT", "80"},
        {"WEFT_PORT_80_TCP_ADDR", "10.0.0.1"},
        {"WEFT_BATCH_PORT", "udp://[fd00::1]:65535"},
        {"WEFT_BATCH_SERVICE_HOST", "fd00::1"},
        {"WEFT_2_SERVICE_PORT_METRICS_1", "9090"},
        {"WEFT_2_PORT_9090_SCTP_ADDR", "10.96.0.12"},
        {"WEFT_NAME", "/web/weft"},
        {"WEFT_ENV_PATH", "/bin"},
    };
    static const char *const slips[][2] = {
        {"WEFT_PORT", "80"},
        {"WEFT_PORT", "http://10.0.0.1:80"},
        {"WEFT_PORT", "tcp://10.0.0.1:80000"},
        {"WEFT_PORT", "tcp://:80"},
        {"WEFT_PORT_TCP", "tcp://10.0.0.1:80"},
        {"WEFT_BATCH_PORT", "3"},
        {"WEFT_BACTH", "80"},
        {"WEFT_BACTH", "tcp://10.0.0.1:80"},
        {"WEFT_SERVICE_HOST", "here"},
        {"WEFT_SERVICE_PORT", "0"},
        {"WEFT_SERVICE_PORT_", "80"},
        {"WEFT_PORT_80_TCP_PROTO", "yes"},
        {"WEFT_NAME", "mine"},
        {"WEFT_ENV_PATH", "/bin"},
    };
    const int n_links = sizeof links / sizeof *links, n_slips = sizeof slips / sizeof *slips;
    weft_error error;
    for (int i = 0; i < n_links; i++)
        setenv(links[i][0], links[i][1], 1);
    settings *s = READ(&error, "--rate", "1");
    if (CHECK_OK(error.status, error) && s) CHECK_EQ_INT(settings_count(s, "batch"), 16);
    settings_destroy(&s);
    setenv("WEFT_BACTH", "3", 1); /* a slip among them stays one */
    check_refused(&error, READ(&error, "--dry-run"), "WEFT_BACTH; did you mean WEFT_BATCH?");
    unsetenv("WEFT_BACTH");
    for (int i = 0; i < n_links; i++)
        unsetenv(links[i][0]);
    for (int i = 0; i < n_slips; i++) {
        setenv(slips[i][0], slips[i][1], 1);
        check_refused(&error, READ(&error, "--dry-run"), slips[i][0]);
        unsetenv(slips[i][0]);
    }
}

static void test_wrong_files_are_refused(void)
{
    weft_error error;
    write_config("batch = 2\nbacth = 3\n");
    check_refused(&error, READ(&error, "--config", path), ":2:");
    write_config("batch 2\n");
    check_refused(&error, READ(&error, "--config", path), "key = value");
    CHECK(READ(&error, "--config", "/nonexistent.conf") == NULL);
    CHECK_EQ_INT(error.status, WEFT_IO);
}

/* What --help=KIND prints of `t`; the caller's. */
static char *told(void (*print)(const option_family *, FILE *), const option_table *t)
{
    char *text = NULL;
    size_t bytes = 0;
    const option_family family = {t->program, t->about, &t, 1};
    FILE *file = open_memstream(&text, &bytes);
    if (!CHECK(file != NULL)) exit(1);
    print(&family, file);
    fclose(file);
    return text;
}

static void test_help_fits_a_terminal(void)
{
    size_t longest = 0;
    char *text = told(options_help_all, &table);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        longest = strcspn(line, "\n") > longest ? strcspn(line, "\n") : longest;
    CHECK(longest <= 80);
    for (int i = 0; i < table.n_options; i++)
        CHECK_TEXT(text, some[i].name);
    free(text);
}

static void test_short_help_has_what_most_want(void)
{
    option_table few = table;
    few.first = "batch dry-run";
    char *text = told(options_help, &few);
    CHECK_TEXT(text, "--batch N");
    CHECK_TEXT(text, "--dry-run");
    CHECK_TEXT(text, "8 options more");
    CHECK_TEXT(text, "test --help=all");
    CHECK(strstr(text, "--rate") == NULL && strstr(text, "--data") == NULL);
    free(text);
}

/* Each option once, with what it takes. */
static void test_pages_and_completion_have_every_option(void)
{
    option_table pages = table;
    pages.about = "tries 'quotes', [brackets]: and .dots";
    pages.commands = "begin end";
    char *man = told(options_man, &pages), *bash = told(options_bash, &pages),
         *zsh = told(options_zsh, &pages);
    for (int i = 0; i < table.n_options; i++) {
        char name[64];
        snprintf(name, sizeof name, " --%s ", some[i].name);
        name[strlen(name) - 1] = '\0';
        CHECK_TEXT(bash, name);
        snprintf(name, sizeof name, "'--%s%s[", some[i].name,
                 some[i].kind == OPTION_FLAG ? "" : "=");
        CHECK_TEXT(zsh, name);
    }
    CHECK_TEXT(man, "\\fB\\-\\-dry\\-run\\fR\n");
    CHECK_TEXT(man, "\\fB\\-\\-batch\\fR \\fIN\\fR\nrows (16)\n");
    CHECK_TEXT(bash, "--dtype) COMPREPLY=($(compgen -W 'f32 f64'");
    CHECK_TEXT(bash, "compgen -W 'begin end'");
    CHECK_TEXT(zsh, "'--dtype=[numbers]:TYPE:(f32 f64)'");
    CHECK_TEXT(zsh, "'--data=[text]:FILE:_files'");
    free(man), free(bash), free(zsh);
}

/* What was said, and nothing else. */
static void test_settings_are_told_shortly(void)
{
    weft_error error;
    char *text = NULL;
    size_t bytes = 0;
    settings *s = READ(&error, "--data", "a/path/of/some/more/length/with/a/file/at/its/end",
                       "--batch", "32", "--dry-run", "--max-time=90s");
    FILE *file = open_memstream(&text, &bytes);
    if (!CHECK(s != NULL && file != NULL)) return;
    settings_print(s, file);
    fclose(file);
    CHECK(strcmp(text,
                 "settings: batch=32 dry-run=yes\n"
                 "  data=a/path/of/some/more/length/with/a/file/at/its/end max-time=90s\n") == 0);
    free(text);
    settings_destroy(&s);
}

/* A flag of which there is more: --name=all. */
static void test_a_flag_may_have_a_choice(void)
{
    static const option plan[] = {
        {"plan", OPTION_FLAG, "no", "[=all]", "G", "it; all: whole", "all"}};
    const option_table flags = {"test", "usage\n", plan, 1};
    static const char *const words[][2] = {
        {"--no-plan", "no"}, {"--plan", "yes"}, {"--plan=all", "all"}};
    for (int i = 0; i < 3; i++) {
        char *word = (char *)words[i][0];
        weft_error error = {.rank = -1};
        settings *s = settings_read(&flags, 1, &word, &error);
        if (!CHECK_OK(error.status, error) || !s) continue;
        CHECK(settings_is(s, "plan", words[i][1]));
        CHECK_EQ_INT(settings_flag(s, "plan"), i > 0);
        settings_destroy(&s);
    }
    char *word = (char *)"--plan=some";
    weft_error error = {.rank = -1};
    check_refused(&error, settings_read(&flags, 1, &word, &error), "must be all, yes or no");
    char *text = told(options_help_all, &flags);
    CHECK_TEXT(text, "  --plan[=all]           it; all: whole (no)");
    free(text);
}

static void test_help_of_another_kind_is_refused(void)
{
    weft_error error;
    CHECK(READ(&error, "--help=al") == NULL);
    CHECK_EQ_INT(error.status, WEFT_USAGE);
    CHECK_TEXT(error.message, "one of all, man, bash, zsh");
}

static void test_times_have_units(void)
{
    weft_error error;
    const struct {
        const char *text;
        double seconds;
    } good[] = {{"90s", 90}, {"30m", 1800}, {"1.5h", 5400}};
    static const char *const wrong[] = {"90", "h", "2d", "-1s", "0s", "2h30m", "infs"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        settings *s = READ(&error, "--max-time", good[i].text);
        if (CHECK_OK(error.status, error) && s)
            CHECK_CLOSE(settings_seconds(s, "max-time"), good[i].seconds, 0);
        settings_destroy(&s);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(READ(&error, "--max-time", wrong[i]) == NULL);
        CHECK_TEXT(error.message, "90s, 30m or 2h");
    }
    CHECK(READ(&error, "--patience", "-1s") == NULL);
    CHECK_TEXT(error.message, "from 0");
    settings *s = READ(&error, "--patience", "0s");
    if (CHECK_OK(error.status, error) && s) CHECK_CLOSE(settings_seconds(s, "patience"), 0, 0);
    settings_destroy(&s);
    s = READ(&error, "--batch", "2");
    if (s) CHECK_CLOSE(settings_seconds(s, "max-time"), 0, 0);
    settings_destroy(&s);
}

static void test_numbers_have_a_point_in_every_locale(void)
{
    if (!comma_open()) {
        printf("not tried: localedef cannot make " COMMA " here (Debian: locales)\n");
        return;
    }
    weft_error error;
    write_config("rate\xa0= 0.5\n"); /* a blank of Latin-1, not of ours */
    comma_set(true);
    settings *s = READ(&error, "--rate", "0.125", "--max-time", "1.5h");
    const double rate = s ? settings_real(s, "rate") : 0,
                 time = s ? settings_seconds(s, "max-time") : 0;
    settings_destroy(&s);
    s = READ(&error, "--rate", "0,125");
    const bool is_refused = s == NULL;
    comma_set(false);
    settings_destroy(&s);
    CHECK_CLOSE(rate, 0.125, 0);
    CHECK_CLOSE(time, 5400, 0);
    CHECK(is_refused);
    CHECK_TEXT(error.message, "\"0,125\" is not a number");
    comma_set(true);
    s = READ(&error, "--config", path);
    comma_set(false);
    check_refused(&error, s, ":1:");
    comma_close();
}

static void test_other_defaults_give_way_to_what_was_said(void)
{
    weft_error error;
    settings *s = READ(&error, "--batch", "32");
    if (!CHECK(s != NULL)) return;
    CHECK_OK(settings_default(s, "batch", "8", &error), error);
    CHECK_OK(settings_default(s, "dtype", "f64", &error), error);
    CHECK_EQ_INT(settings_count(s, "batch"), 32);
    CHECK(settings_is(s, "dtype", "f64"));
    CHECK_EQ_INT(settings_default(s, "dtype", "f16", &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "run.json");
    settings_destroy(&s);
}

int main(void)
{
    const int file = mkstemp(path);
    if (CHECK(file >= 0)) {
        close(file);
        RUN(test_defaults_and_forms);
        RUN(test_operands_and_lists);
        RUN(test_later_sources_win);
        RUN(test_wrong_settings_are_refused);
        RUN(test_services_of_a_cluster_are_no_options);
        RUN(test_wrong_files_are_refused);
        RUN(test_help_fits_a_terminal);
        RUN(test_short_help_has_what_most_want);
        RUN(test_pages_and_completion_have_every_option);
        RUN(test_settings_are_told_shortly);
        RUN(test_a_flag_may_have_a_choice);
        RUN(test_help_of_another_kind_is_refused);
        RUN(test_times_have_units);
        RUN(test_numbers_have_a_point_in_every_locale);
        RUN(test_other_defaults_give_way_to_what_was_said);
        unlink(path);
    }
    return weft_test_report();
}
