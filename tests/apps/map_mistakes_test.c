/* map_mistakes_test: every mistake in a map, and on the command line about one, is one sentence; and numbers of a file that
 * ours cannot hold are refused, all others exact. */
#include "map_files.h"

#include <math.h>

#include "apps/weft/carry/numbers.h"

/* ---- mistakes -------------------------------------------------------------------------------- */

/* What is in "tensors", what stands before it, and facts of the sentence. */
static const struct {
    const char *tensors, *before, *facts[3];
} mistakes[] = {
    {"{\"from\": \"wieght\", \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"wieght", "nearest", "weight"}},
    {"{\"from\": \"weight\", \"to\": \"w\"}", "", {"h.0.bias", "not in the map", "leave"}},
    {"{\"from\": \"h.{i}.bais\", \"to\": \"b{i}\"}, {\"from\": \"weight\", \"to\": \"w\"}",
     "",
     {"h.0.bias is not in the map", "h.{i}.bais"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\"], \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"[4, 6]", "2 dims", "the map names 1"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b*c\"], \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"sizes of b and c", "--sizes b="}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b*c\"], \"to\": \"w\"}",
     "\"sizes\": {\"b\": 5}, \"rest\": \"keep\",",
     {"b*c", "multiple of 5", "6"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b\"], \"to\": \"w\"}",
     "\"sizes\": {\"b\": 5}, \"rest\": \"keep\",",
     {"\"b\" is 5", "it is 6"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b\"], \"to\": \"w\"}",
     "\"sizes\": {\"heads\": 5}, \"rest\": \"keep\",",
     {"heads", "called so"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b\"], \"split\": {\"b\": \"c\"}, \"to\": "
     "[\"u\", \"v\", \"w\", \"x\"]}",
     "\"rest\": \"keep\",",
     {"b has 6", "4 equal parts"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b\"], \"split\": {\"b\": [\"c\", \"d\"]}, \"to\": "
     "[\"u\", \"v\"]}",
     "\"sizes\": {\"c\": 1, \"d\": 2}, \"rest\": \"keep\",",
     {"parts of b", "3 together", "6"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b\"], \"split\": {\"b\": [\"c\", \"d\"]}, \"to\": "
     "[\"u\", \"v\", \"w\"]}",
     "\"rest\": \"keep\",",
     {"split into 2", "3 names"}},
    {"{\"from\": \"weight\", \"dims\": [\"aa\", \"bb\"], \"split\": {\"bbb\": \"c\"}, \"to\": "
     "[\"u\", \"v\"]}",
     "\"rest\": \"keep\",",
     {"bbb", "did you mean bb"}},
    {"{\"from\": \"weight\", \"dims\": [\"aa\", \"bb\"], \"order\": [\"bb\", \"ab\"], \"to\": "
     "\"w\"}",
     "\"rest\": \"keep\",",
     {"ab", "none of its dims"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b\"], \"order\": [\"b\"], \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"order", "1 of the 2 dims"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"a\"], \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"two of its dims are called a"}},
    {"{\"from\": \"weight\", \"dims\": [\"a\", \"b c\"], \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"b c", "letters"}},
    {"{\"from\": \"weight\", \"to\": \"a w\"}", "\"rest\": \"keep\",", {"a w", "letters"}},
    {"{\"from\": \"weight\", \"to\": \"h.0.bias\"}",
     "\"rest\": \"keep\",",
     {"weight", "h.0.bias", "both be called"}},
    {"{\"from\": \"h.{i}.bias\", \"to\": \"same\"}",
     "\"rest\": \"keep\",",
     {"h.0.bias and h.1.bias", "called same"}},
    {"{\"from\": \"h.{i}.bias\", \"to\": \"b{j}\"}", "", {"b{j}", "not in \"from\""}},
    {"{\"from\": \"weight\", \"too\": \"w\"}", "", {"too", "did you mean \"to\""}},
    {"{\"from\": \"weight\"}", "", {"weight", "one of \"to\", \"leave\" and \"zero\""}},
    {"{\"from\": \"weight\", \"to\": [\"u\", \"v\"]}", "", {"weight", "without \"split\""}},
    {"{\"from\": \"weight\", \"to\": \"w\", \"order\": [\"a\"]}", "", {"weight", "want \"dims\""}},
    {"{\"from\": \"weight\", \"leave\": \"so\"}, {\"from\": \"weight\", \"to\": \"w\"}",
     "\"rest\": \"keep\",",
     {"weight", "both taken and left"}},
    {"{\"from\": \"weight\", \"zero\": \"it is so\"}",
     "\"rest\": \"keep\",",
     {"h.0.mask", "BOOL", "leave"}},
    {"{\"from\": \"h.{i}.mask\", \"to\": \"mask{i}\"}", "\"rest\": \"keep\",", {"mask", "BOOL"}},
    {"", "\"rset\": \"keep\",", {"rset", "did you mean \"rest\""}},
    {"", "\"rest\": \"drop\",", {"rest", "keep", "drop"}},
    {"", "\"slots\": [\"a/b\"],", {"a/b", "letters"}},
    {"", "\"sizes\": {\"a\": 0},", {"size", "1 to 2^40"}},
    {"{", "", {"map.json:1", "no JSON"}},
};

static void test_mistakes_in_a_map(void)
{
    char text[2048];
    begin_file();
    add_tensor("weight", "F32", SIZES(4, 6), 1);
    add_tensor("h.0.bias", "F32", SIZES(6), 1);
    add_tensor("h.1.bias", "F32", SIZES(6), 1);
    add_tensor("h.0.mask", "BOOL", SIZES(6), 1);
    end_file("small.safetensors");
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        snprintf(text, sizeof text, "{%s \"tensors\": [%s]}", mistakes[i].before,
                 mistakes[i].tensors);
        write_map(text);
        const command_result *r = run_ckpt("import small.safetensors never --map map.json");
        weft_test_check(r->status == 2 && command_lines(r->text, "") == 1, __FILE__, __LINE__,
                        text);
        for (int f = 0; f < 3 && mistakes[i].facts[f]; f++)
            CHECK_TEXT(r->text, mistakes[i].facts[f]);
    }
    CHECK_EQ_INT(run_ckpt("list never")->status, 2); /* and nothing was made */
}

static void test_mistakes_on_the_command_line(void)
{
    static const struct {
        const char *line, *fact;
    } wrong[] = {
        {"import small.safetensors never",
         "has the tensor h.0.mask of BOOL, which is no number here"},
        {"import small.safetensors never --map nowhere.json", "nowhere.json"},
        {"import small.safetensors never --map gtp2", "gtp2"},
        {"import small.safetensors never --map map.json --dims weight=a,b", "one of the two"},
        {"import small.safetensors never --dims weihgt=a,b",
         "weihgt is not in the file; the nearest"},
        {"import small.safetensors never --dims weight", "NAME=a,b"},
        {"import small.safetensors never --dims weight=a,2b", "2b"},
        {"import small.safetensors never --dims weight=a,b --sizes a", "heads=12"},
        {"import small.safetensors never --sizes a=3", "sizes of what"},
        {"list never --map gpt2", "for ckpt import"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const command_result *r = run_ckpt(wrong[i].line);
        weft_test_check(r->status == 2 && command_lines(r->text, "") == 1, __FILE__, __LINE__,
                        r->text);
        CHECK_TEXT(r->text, wrong[i].fact);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static float converted(const char *type, uint16_t bits)
{
    const number_type *found = number_type_find(type);
    CHECK(found->convert == NULL); /* they are numbers of ours */
    return (float)weft_dtype_get(found->dtype, &bits, 0);
}

/* Every f16 and bf16, against their definitions in doubles. */
static void test_every_half_is_exact(void)
{
    int n_wrong = 0;
    for (int bits = 0; bits < 1 << 16; bits++) {
        const double sign = bits >> 15 ? -1 : 1, f16 = (double)converted("F16", (uint16_t)bits);
        const int e = bits >> 10 & 31, f = bits & 1023;
        const double wanted = e == 31 ? (f ? NAN : sign * INFINITY)
                                      : sign * pow(2, e ? e - 15 : -14) * ((e != 0) + f / 1024.0);
        n_wrong += isnan(wanted) ? !isnan(f16) : f16 != wanted || signbit(f16) != signbit(wanted);
        const double bf16 = (double)converted("BF16", (uint16_t)bits);
        const int be = bits >> 7 & 255, bf = bits & 127;
        const double other = be == 255
                                 ? (bf ? NAN : sign * INFINITY)
                                 : sign * pow(2, be ? be - 127 : -126) * ((be != 0) + bf / 128.0);
        n_wrong += isnan(other) ? !isnan(bf16) : bf16 != other || signbit(bf16) != signbit(other);
    }
    CHECK_EQ_INT(n_wrong, 0);
}

static void test_integers_that_do_not_fit_are_refused(void)
{
    begin_file();
    add_tensor("n", "U64", SIZES(3), 1.5e19);
    end_file("large.safetensors");
    const command_result *r = run_ckpt("import large.safetensors never");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "tensor n is of u64, and its number 0 does not fit into i64");
}

static void run_all(void)
{
    RUN(test_every_half_is_exact);
    RUN(test_integers_that_do_not_fit_are_refused);
    RUN(test_mistakes_in_a_map);
    RUN(test_mistakes_on_the_command_line);
}

int main(void)
{
    return with_folder(run_all);
}
