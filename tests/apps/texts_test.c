/* texts_test: gpt learns from patterns, JSON lines and mixtures with weights. Continued on another mesh, it has the losses of a run that was
 * never stopped. Other files and weights are refused with both. Files that cannot be read give one sentence. */
#include "losses.h"
#include "text_folder.h"

#include <math.h>

enum { STEPS = 6 };
#define GPT                                                                                        \
    WEFT_TEST_BIN "/gpt train --layers 1 --width 8 --heads 2 --batch 4 --seq 8 --rope --quiet "    \
                  "--dropout 0 --schedule constant "
#define MIX "--data text.txt:0.6,'books/*.txt:0.3',lines.jsonl:0.1 "

static void write_files(void)
{
    char path[200];
    CHECK_EQ_INT(
        text_folder_run("mkdir books secret && echo hidden away from all > secret/a.txt && "
                        "head -c 700 text.txt > books/b1.txt && "
                        "tail -c 900 text.txt > books/b2.txt && printf 'a.b,1\\n' > n.csv "
                        "&& head -c 20 text.txt > tiny.txt && cp /bin/true z")
            ->status,
        0);
    snprintf(path, sizeof path, "%s/lines.jsonl", folder);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    for (int i = 0; i < 40; i++)
        fprintf(file, "{\"id\": %d, \"text\": \"line %d of some lines\", \"title\": \"T%d\"}\n", i,
                i, i * i);
    CHECK_EQ_INT(fclose(file), 0);
}

static void check_good(const char *line)
{
    const command_result *r = text_folder_run(line);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

/* The losses of all steps, one by one. */
static void check_losses(const char *run, const double *expected)
{
    char path[200];
    double losses[STEPS + 1] = {0};
    snprintf(path, sizeof path, "%s/%s", folder, run);
    if (!CHECK_EQ_INT(losses_read(path, STEPS, losses), STEPS)) return;
    for (int i = 1; i <= STEPS; i++)
        CHECK(fabs(losses[i] - expected[i]) <= 1e-5 * expected[i]);
}

/* Stopped in the middle, and continued where ranks share the work otherwise. */
static void check_continued(const char *data, const char *launcher, const char *mesh)
{
    char line[2048], path[200];
    double losses[STEPS + 1] = {0};
    snprintf(line, sizeof line, GPT "%s --fresh --run whole --steps %d", data, STEPS);
    check_good(line);
    snprintf(path, sizeof path, "%s/whole", folder);
    CHECK_EQ_INT(losses_read(path, STEPS, losses), STEPS);
    snprintf(line, sizeof line, GPT "%s --fresh --run parts --steps %d --until 3", data, STEPS);
    check_good(line);
    snprintf(line, sizeof line, "%s " GPT "%s --run parts --steps %d %s", launcher, data, STEPS,
             mesh);
    check_good(line);
    check_losses("parts", losses);
}

static void test_a_mixture_goes_on_to_the_sample_on_another_mesh(void)
{
    check_continued(MIX, "", "--mesh data:2 --layout batch:data");
    check_continued("--data 'books/*.txt,lines.jsonl' --eval-share 0.2", "",
                    "--mesh seq:2 --layout seq:seq");
    if (WEFT_TEST_MPIEXEC[0] != '\0')
        check_continued(MIX, WEFT_TEST_MPIEXEC " -n 2 --oversubscribe",
                        "--mesh data:2 --layout batch:data");
}

static void test_packed_documents_go_on_to_the_sample_on_another_mesh(void)
{
    const char *data = "--pack --index kept --data lines.jsonl:0.6,'books/*.txt:0.4'";
    check_continued(data, "", "--mesh seq:2 --layout seq:seq");
    check_continued("--pack --data lines.jsonl --layers 2 --stages 2 --micro 2", "",
                    "--mesh pipe:2 --layout stage:pipe");
    if (WEFT_TEST_MPIEXEC[0] != '\0')
        check_continued(data, WEFT_TEST_MPIEXEC " -n 3 --oversubscribe",
                        "--mesh data:3 --layout batch:data");
}

/* The same losses, whatever makes the words, and when. */
static void check_same(const char *one, const char *other)
{
    char line[2048], path[200];
    double losses[STEPS + 1] = {0};
    snprintf(line, sizeof line, GPT "%s --fresh --run whole --steps %d", one, STEPS);
    check_good(line);
    snprintf(path, sizeof path, "%s/whole", folder);
    CHECK_EQ_INT(losses_read(path, STEPS, losses), STEPS);
    snprintf(line, sizeof line, GPT "%s --fresh --run parts --steps %d", other, STEPS);
    check_good(line);
    check_losses("parts", losses);
}

static void check_refused(const char *arguments, int status, const char *fact, const char *other)
{
    char line[2048];
    snprintf(line, sizeof line, GPT "%s", arguments);
    const command_result *r = text_folder_run(line);
    weft_test_check(r->status == status && strstr(r->text, fact) != NULL &&
                        strstr(r->text, other) != NULL,
                    __FILE__, __LINE__, r->text);
    CHECK_EQ_INT(command_lines(r->text, ""), 1);
}

static void test_texts_become_words_as_they_are_read(void)
{
    const char *data = "--tokens vocab --index kept --data text.txt:0.4,lines.jsonl:0.6";
    check_good(WEFT_TEST_BIN
               "/weft tokens train text.txt vocab --words 290 && sed 's/.*text\": \"//; s/\", "
               "\"title.*//; s/$/<|endoftext|>/' lines.jsonl | tr -d '\\n' > joined.txt "
               "&& " WEFT_TEST_BIN "/weft tokens encode joined.txt joined.tokens --tokens vocab "
               "--special");
    check_same("--tokens vocab --pack --data joined.tokens",
               "--tokens vocab --pack --data lines.jsonl");
    check_same("--tokens vocab --data joined.tokens,joined.tokens",
               "--tokens vocab --data lines.jsonl,lines.jsonl");
    check_continued(data, "", "--mesh data:2 --layout batch:data");
    check_refused("--tokens vocab --data lines.jsonl --field id", 2, "0 fields are texts",
                  "id is none of them");
    if (WEFT_TEST_MPIEXEC[0] != '\0')
        check_continued(data, WEFT_TEST_MPIEXEC " -n 2 --oversubscribe",
                        "--mesh data:2 --layout batch:data");
}

static void test_other_files_and_weights_are_refused_with_both(void)
{
    check_good(GPT MIX "--fresh --run own --steps 2");
    check_refused("--run own --steps 3 --data text.txt:0.5,'books/*.txt:0.4',lines.jsonl:0.1", 2,
                  "data was mix 0.6:0.3:0.1 and is mix 0.5:0.4:0.1", "or --data-changed");
    check_refused("--run own --steps 3 --data text.txt:0.6,books/b1.txt:0.3,lines.jsonl:0.1", 2,
                  "other data: data.2 was text: 1600 bytes (hash ",
                  "and is text: 700 bytes (hash ");
    check_good(GPT "--data text.txt:60,'books/*.txt:30',lines.jsonl:10 --run own --steps 3");
}

static void test_what_cannot_be_learned_is_one_sentence(void)
{
    check_refused("--data text.txt:0,lines.jsonl:1", 2, "the weight of text.txt is 0",
                  "each is above 0");
    check_refused("--data text.txt:-2,lines.jsonl:1", 2, "text.txt is -2", "above 0");
    check_refused("--data text.txt:x,lines.jsonl:1", 2, "behind text.txt stands \":x\"",
                  "no weight");
    check_refused("--data text.txt:1,lines.jsonl", 2, "text.txt has the weight 1 and lines.jsonl",
                  "all of them weights, or none");
    check_refused("--data text.txt,,lines.jsonl", 2, "between two commas", "a.txt,b.txt");
    check_refused("--data 'boks/*.txt'", 2, "boks/*.txt", "no file is called so");
    check_refused("--data boks/b1.txt", 2, "No such file", "as books");
    check_refused("--data tekst.txt", 2, "No such file", "as text.txt");
    check_refused("--data books", 2, "not a directory", "'books/*.txt'");
    check_refused("--data books,text.txt", 2, "not a directory", "'books/*.txt'");
    check_refused("--data lines.jsonl --field titel", 2, "no field titel", "did you mean title?");
    check_refused("--data lines.jsonl --field id", 2, "id is i64 of 0 dims, and no text",
                  "lines.jsonl");
    CHECK_EQ_INT(
        text_folder_run("printf '\\350\\363\\064\\001abcdefghijklmnopqr' > t.tokens")->status, 0);
    check_refused("--data text.txt,t.tokens", 2, "t.tokens is no text: it is a file of tokens",
                  "--tokens");
    check_refused("--data text.txt --index kept", 2, "--index kept and no --pack",
                  "--pack or --tokens too");
    check_refused("--data lines.jsonl --pack --field id", 2, "id is i64", "of one size");
    check_refused("--data text.txt --pack --eval-share 0.2", 2, "--eval-share 0.2 of the 1 samples",
                  "less than one");
    check_refused("--data text.txt,z", 2, "z is no text: it is a program", "name a file of text");
    check_refused("--data tiny.txt --mesh data:4 --layout batch:data", 2,
                  "tiny.txt has 2 windows of seq 8, and 4 ranks", "fewer ranks");
    check_refused("--data text.txt --eval-data text.txt:1,tekst.txt:2", 2, "No such file",
                  "as text.txt");
    check_refused("--data text.txt,tiny.txt --eval-share 0.1", 2,
                  "--eval-share 0.1 of the 2 samples of tiny.txt is less than one", "");
    if (geteuid() != 0) {
        CHECK_EQ_INT(text_folder_run("chmod 0 secret/a.txt")->status, 0);
        check_refused("--data secret/a.txt,text.txt", 2, "Permission denied", "secret/a.txt");
    }
}

static void test_the_field_is_chosen(void)
{
    check_good(GPT "--data lines.jsonl --field title --fresh --run title --steps 1");
    check_good(GPT
               "--data text.txt --eval-data lines.jsonl:1,books/b1.txt:2 --eval-steps 2 --fresh "
               "--run held --steps 2");
    CHECK_EQ_INT(text_folder_run("grep -q '\"held_out\"' held/metrics.jsonl")->status, 0);
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "texts"))) return weft_test_report();
    write_files();
    RUN(test_a_mixture_goes_on_to_the_sample_on_another_mesh);
    RUN(test_packed_documents_go_on_to_the_sample_on_another_mesh);
    RUN(test_texts_become_words_as_they_are_read);
    RUN(test_other_files_and_weights_are_refused_with_both);
    RUN(test_what_cannot_be_learned_is_one_sentence);
    RUN(test_the_field_is_chosen);
    CHECK_EQ_INT(text_folder_run("rm -r ../$(basename $(pwd))")->status, 0);
    return weft_test_report();
}
