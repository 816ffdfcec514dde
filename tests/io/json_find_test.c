/* json_find_test: what is found in a line of JSON is what jansson finds that builds a tree of it: in objects that are drawn, and in those
 * after damage. A line that is taken and is no JSON would be a fault. One that is JSON and is not taken is counted, and is rare.
 */
#include "source/json_find.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { CASES = 20000, LONGEST = 4000 };

static const char *const keys[] = {"text", "id", "row", "", "x", "ä", "te"};
enum { N_KEYS = sizeof keys / sizeof *keys };

static uint64_t state;

static uint64_t draw(uint64_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % n;
}

typedef struct writing {
    char text[LONGEST + 64];
    int n;
} writing;

static void put(writing *w, const char *text)
{
    const int n = (int)strlen(text);
    if (w->n + n > LONGEST) return;
    memcpy(w->text + w->n, text, (size_t)n);
    w->n += n;
}

static void put_blanks(writing *w)
{
    static const char *const blanks[] = {"", "", "", " ", "\t", "  ", "\r"};
    put(w, blanks[draw(7)]);
}

static void put_string(writing *w)
{
    static const char *const parts[] = {"a",
                                        "word ",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\/",
                                        "\\u00e4",
                                        "\\u0000",
                                        "\\ud83d\\ude00",
                                        "\xc3\xa4",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "eight letters and more",
                                        "\\t",
                                        "\\uFFFF",
                                        "}",
                                        "]",
                                        ",",
                                        ":",
                                        " "};
    put(w, "\"");
    for (uint64_t n = draw(12); n > 0; n--)
        put(w, parts[draw(draw(3) ? 2 : sizeof parts / sizeof *parts)]);
    put(w, "\"");
}

static void put_number(writing *w, bool is_whole)
{
    static const char *const numbers[] = {"0",
                                          "-0",
                                          "7",
                                          "-12",
                                          "123456789012345678",
                                          "1000000000000",
                                          "0.5",
                                          "-0.0",
                                          "1e5",
                                          "2.5E-3",
                                          "0.1",
                                          "123.4567890123456789",
                                          "1e22",
                                          "9.9e+99",
                                          "-7.25",
                                          "1234567890123456789"};
    put(w, numbers[draw(is_whole ? 6 : 16)]);
}

static void put_value(writing *w, int deep)
{
    static const char *const words[] = {"true", "false", "null"};
    const uint64_t kind = draw(deep > 2 ? 4 : 7);
    if (kind < 2) put_string(w);
    if (kind == 2) put_number(w, draw(2));
    if (kind == 3) put(w, words[draw(3)]);
    if (kind < 4) return;
    const bool is_object = kind == 6, is_whole = draw(2);
    put(w, is_object ? "{" : "[");
    put_blanks(w);
    for (uint64_t n = draw(5), i = 0; i < n; i++) {
        if (i > 0) put(w, ","), put_blanks(w);
        if (is_object)
            put(w, draw(9) ? "\"k\"" : "\"text\""), put_blanks(w), put(w, ":"), put_blanks(w);
        if (kind == 4)
            put_number(w, is_whole);
        else
            put_value(w, deep + 1);
        put_blanks(w);
    }
    put(w, is_object ? "}" : "]");
}

static void put_object(writing *w)
{
    w->n = 0;
    put_blanks(w), put(w, "{"), put_blanks(w);
    for (uint64_t n = draw(6), i = 0; i < n; i++) {
        if (i > 0) put(w, ","), put_blanks(w);
        put(w, "\""), put(w, keys[draw(N_KEYS)]), put(w, "\""), put_blanks(w), put(w, ":");
        put_blanks(w), put_value(w, 0), put_blanks(w);
    }
    put(w, "}"), put_blanks(w);
    w->text[w->n] = '\0';
}

static void damage(writing *w)
{
    for (uint64_t n = 1 + draw(3); n > 0 && w->n > 0; n--) {
        static const char letters[] = "{}[]\",:\\u0e.-\x80\xc3 ";
        if (draw(3) == 0) w->n = (int)draw((uint64_t)w->n) + 1;
        w->text[draw((uint64_t)w->n)] =
            draw(4) ? letters[draw(sizeof letters - 1)] : (char)draw(256);
    }
    w->text[w->n] = '\0';
}

/* ---- comparing -------------------------------------------------------------------------------------- */

static bool same_number(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_text(const weft_json_value *v, const json_t *tree)
{
    char to[LONGEST + 64];
    if (!CHECK_EQ_INT((int64_t)json_string_length(tree), v->n)) return;
    const int64_t begin = (int64_t)draw((uint64_t)v->n + 1),
                  end = begin + (int64_t)draw((uint64_t)(v->n - begin) + 1);
    weft_json_take_text(v, 0, v->n, to);
    CHECK(memcmp(to, json_string_value(tree), (size_t)v->n) == 0);
    memset(to, 1, sizeof to);
    weft_json_take_text(v, begin, end, to);
    CHECK(memcmp(to, json_string_value(tree) + begin, (size_t)(end - begin)) == 0 &&
          to[end - begin] == 1);
}

static void check_row(const weft_json_value *v, json_t *tree)
{
    double reals[1000];
    int64_t wholes[1000];
    if (!CHECK_EQ_INT((int64_t)json_array_size(tree), v->n) || !CHECK(v->n <= 1000)) return;
    weft_json_take_numbers(v, WEFT_F64, 0, v->n, reals);
    if (v->is_whole) weft_json_take_numbers(v, WEFT_I64, 0, v->n, wholes);
    for (int64_t i = 0; i < v->n; i++) {
        const json_t *one = json_array_get(tree, (size_t)i);
        CHECK(same_number(reals[i], json_number_value(one)));
        if (v->is_whole) CHECK(json_is_integer(one) && wholes[i] == json_integer_value(one));
    }
    if (v->n < 3) return;
    weft_json_take_numbers(v, WEFT_F64, 1, v->n - 1, reals);
    CHECK(same_number(reals[0], json_number_value(json_array_get(tree, 1))));
}

static bool all_numbers(json_t *tree)
{
    for (size_t i = 0; i < json_array_size(tree); i++)
        if (!json_is_number(json_array_get(tree, i))) return false;
    return json_is_array(tree);
}

static void check_value(const weft_json_value *v, json_t *tree)
{
    double number;
    int64_t whole;
    switch (v->kind) {
    case WEFT_JSON_ABSENT:
        CHECK(tree == NULL);
        break;
    case WEFT_JSON_NULL:
        CHECK(json_is_null(tree));
        break;
    case WEFT_JSON_BOOLEAN:
        CHECK(json_is_boolean(tree) && (*v->begin == 't') == json_is_true(tree));
        break;
    case WEFT_JSON_WHOLE:
        weft_json_take_numbers(v, WEFT_I64, 0, 1, &whole);
        weft_json_take_numbers(v, WEFT_F64, 0, 1, &number);
        CHECK(json_is_integer(tree) && whole == json_integer_value(tree) &&
              same_number(number, json_number_value(tree)));
        break;
    case WEFT_JSON_REAL:
        weft_json_take_numbers(v, WEFT_F64, 0, 1, &number);
        CHECK(json_is_real(tree) && same_number(number, json_real_value(tree)));
        break;
    case WEFT_JSON_TEXT:
        if (CHECK(json_is_string(tree))) check_text(v, tree);
        break;
    case WEFT_JSON_ROW:
        if (CHECK(all_numbers(tree))) check_row(v, tree);
        break;
    case WEFT_JSON_OTHER:
        CHECK(json_is_object(tree) || (json_is_array(tree) && !all_numbers(tree)));
    }
}

/* Whether the line was taken. */
static bool check_line(const writing *w, json_t *tree)
{
    weft_json_value value;
    bool is_taken = true;
    for (int k = 0; k < N_KEYS; k++) {
        is_taken = weft_json_find(w->text, w->n, keys[k], &value);
        if (!is_taken) break;
        if (!CHECK(json_is_object(tree))) break;
        check_value(&value, json_object_get(tree, keys[k]));
    }
    return is_taken;
}

static void check_all(bool is_damaged, int *n_good, int *n_taken)
{
    static writing w;
    *n_good = *n_taken = 0;
    for (int i = 0; i < weft_test_cases(CASES); i++) {
        state = (uint64_t)i * 0x9E3779B97F4A7C15u + 88172645463325252u;
        put_object(&w);
        if (is_damaged) damage(&w);
        json_t *tree = json_loadb(w.text, (size_t)w.n, JSON_ALLOW_NUL, NULL);
        const int before = atomic_load(&weft_test_.n_failed);
        *n_good += json_is_object(tree);
        *n_taken += check_line(&w, tree);
        if (atomic_load(&weft_test_.n_failed) > before)
            fprintf(stderr, "case %d: %.*s\n", i, w.n, w.text);
        json_decref(tree);
    }
}

static void test_what_is_found_is_what_a_tree_has(void)
{
    int n_good, n_taken;
    check_all(false, &n_good, &n_taken);
    printf("  %d of %d objects taken\n", n_taken, n_good);
    CHECK(n_good == weft_test_cases(CASES) && n_taken <= n_good && n_taken > n_good * 9 / 10);
}

static void test_what_is_damaged_is_never_taken_for_another(void)
{
    int n_good, n_taken;
    check_all(true, &n_good, &n_taken);
    printf("  %d good ones left, %d taken\n", n_good, n_taken);
    CHECK(n_taken <= n_good && n_taken > n_good / 2);
}

/* Each alone, as an edge of the grammar. */
static void test_lines_at_the_edges(void)
{
    static const struct {
        const char *line;
        bool is_taken;
    } lines[] = {{"{}", true},
                 {" {\"text\": \"\"} ", true},
                 {"{\"text\": 01}", false},
                 {"{\"text\": -}", false},
                 {"{\"text\": 1.}", false},
                 {"{\"text\": .5}", false},
                 {"{\"text\": 1e}", false},
                 {"{\"text\": 1e999}", false},
                 {"{\"text\": +1}", false},
                 {"{\"text\": [1,]}", false},
                 {"{\"text\": [,1]}", false},
                 {"{\"text\": 1,}", false},
                 {"{\"text\": \"\\ud800\"}", false},
                 {"{\"text\": \"\\udc00\"}", false},
                 {"{\"text\": \"\\x\"}", false},
                 {"{\"text\": \"\xc0\x80\"}", false},
                 {"{\"text\": \"\xed\xa0\x80\"}", false},
                 {"{\"text\": \"\xf4\x90\x80\x80\"}", false},
                 {"{\"text\": \"\xe2\x82\"}", false},
                 {"{\"text\": \"a\tb\"}", false},
                 {"{\"text\": tru}", false},
                 {"{\"text\": nullx}", false},
                 {"{\"text\": 1} x", false},
                 {"{\"text\": 1", false},
                 {"{\"text\"", false},
                 {"{", false},
                 {"", false},
                 {"[1]", false},
                 {"{\"te\\u0078t\": 1}", false},
                 {"{\"text\": 1, \"text\": \"the last\"}", true}};
    weft_json_value value;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!CHECK(weft_json_find(lines[i].line, (int64_t)strlen(lines[i].line), "text", &value) ==
                   lines[i].is_taken))
            fprintf(stderr, "%s\n", lines[i].line);
    CHECK(value.kind == WEFT_JSON_TEXT && value.n == 8);
}

static void test_what_lies_deep_is_left(void)
{
    char line[400] = "{\"x\": ";
    weft_json_value value;
    for (int deep = 0; deep < 100; deep++)
        strcat(line, "[");
    CHECK(!weft_json_find(line, (int64_t)strlen(line), "x", &value));
    for (int deep = 0; deep < 100; deep++)
        strcat(line, "]");
    strcat(line, "}");
    CHECK(!weft_json_find(line, (int64_t)strlen(line), "x", &value));
}

int main(void)
{
    RUN(test_what_is_found_is_what_a_tree_has);
    RUN(test_what_is_damaged_is_never_taken_for_another);
    RUN(test_lines_at_the_edges);
    RUN(test_what_lies_deep_is_left);
    return weft_test_report();
}
