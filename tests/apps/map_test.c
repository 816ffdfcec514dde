/* map_test: files of other programs become ours by a map: every element lies where it belongs, and every mistake in a map
 * is one sentence. */
#include "command.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "apps/weft/numbers.h"
#include "test.h"
#include "weft/checkpoint.h"

enum { LINE = 4096, MOST = 1 << 16 };

static char folder[64];

/* ---- files ----------------------------------------------------------------------------------- */

/* A safetensors file being made. */
typedef struct file {
    json_t *header;
    char data[1 << 20];
    size_t bytes;
} file;

static file made;

static void begin_file(void)
{
    json_decref(made.header);
    made.header = json_object();
    made.bytes = 0;
}

/* Element `i` of a tensor: a multiple of 1/16 with few bits, which all types of floats have, another for each name. */
static double value_of(const char *name, int64_t i)
{
    uint64_t hash = 1469598103934665603U;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    hash = (hash ^ (uint64_t)i) * 1099511628211U;
    return (double)((int64_t)(hash >> 40 & 127) - 63) / 16;
}

static void put(const char *type, double value)
{
    char *to = made.data + made.bytes;
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 16);
    const int exponent = (int)(bits >> 23 & 255) - 127 + 15;
    const uint16_t half =
        value == 0 ? 0
                   : (uint16_t)(bits >> 31 << 15 | (uint32_t)exponent << 10 | (bits >> 13 & 1023));
    const int64_t whole = (int64_t)value;
    if (strcmp(type, "F32") == 0) memcpy(to, &narrow, 4), made.bytes += 4;
    if (strcmp(type, "F64") == 0) memcpy(to, &value, 8), made.bytes += 8;
    if (strcmp(type, "BF16") == 0) memcpy(to, &upper, 2), made.bytes += 2;
    if (strcmp(type, "F16") == 0) memcpy(to, &half, 2), made.bytes += 2;
    if (strcmp(type, "I64") == 0) memcpy(to, &whole, 8), made.bytes += 8;
    const uint64_t natural = value > 0 ? (uint64_t)value : 0;
    if (strcmp(type, "U64") == 0) memcpy(to, &natural, 8), made.bytes += 8;
    if (strcmp(type, "BOOL") == 0) *to = whole != 0, made.bytes += 1;
}

/* sizes [n]; scale 0: all zero. */
static void add_tensor(const char *name, const char *type, int n, const int64_t *sizes,
                       double scale)
{
    const size_t begin = made.bytes;
    json_t *shape = json_array();
    int64_t count = 1;
    for (int d = 0; d < n; d++) {
        count *= sizes[d];
        json_array_append_new(shape, json_integer(sizes[d]));
    }
    for (int64_t i = 0; i < count; i++)
        put(type, scale * value_of(name, i));
    json_object_set_new(made.header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape,
                                  "data_offsets", (json_int_t)begin, (json_int_t)made.bytes));
}
#define SIZES(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void write_bytes(const char *name, const char *prefix, size_t n_prefix, const char *bytes,
                        size_t n)
{
    char path[LINE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "we");
    CHECK(to && fwrite(prefix, 1, n_prefix, to) == n_prefix && fwrite(bytes, 1, n, to) == n);
    if (to) CHECK_EQ_INT(fclose(to), 0);
}

static void end_file(const char *name)
{
    char *text = json_dumps(made.header, JSON_COMPACT), *all;
    const uint64_t bytes = strlen(text);
    const size_t front = 8 + bytes;
    if (!CHECK((all = malloc(front)) != NULL)) return;
    memcpy(all, &bytes, 8); /* this machine is little-endian, as the format */
    memcpy(all + 8, text, bytes);
    write_bytes(name, all, front, made.data, made.bytes);
    free(all);
    free(text);
}

/* ---- programs -------------------------------------------------------------------------------- */

static command_result *run_ckpt(const char *arguments)
{
    static command_result result; /* a large one */
    char line[LINE];
    snprintf(line, sizeof line, "cd %s && timeout -k 1 30 " WEFT_TEST_BIN "/weft ckpt %s 2>&1",
             folder, arguments);
    result = command_run_all(line);
    return &result;
}

static void check_good(const char *arguments)
{
    const command_result *r = run_ckpt(arguments);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

/* ---- what is in a checkpoint ----------------------------------------------------------------- */

static weft_stored *open_stored(const char *name)
{
    char path[LINE];
    weft_error error = {0};
    weft_stored *stored = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(weft_stored_open(path, &stored, &error), error);
    return stored;
}

/* The tensor and its elements, as doubles [MOST]; NULL: it is not there, or its dims are not "vocab:256,embed:24". */
static const weft_stored_tensor *read_stored(const weft_stored *stored, const char *name,
                                             const char *dims, double *values)
{
    static char raw[8 * MOST];
    weft_error error = {0};
    char text[256], wanted[260];
    snprintf(wanted, sizeof wanted, "[%s]", dims);
    for (int i = 0; stored && i < weft_stored_n_tensors(stored); i++) {
        const weft_stored_tensor *t = weft_stored_tensor_at(stored, i);
        if (strcmp(t->name, name) != 0) continue;
        weft_shape_print(&t->shape, text, sizeof text);
        CHECK_TEXT(text, wanted);
        if (!CHECK_OK(weft_stored_read(stored, i, raw, &error), error)) return NULL;
        const int64_t count = weft_shape_count(&t->shape);
        for (int64_t k = 0; k < count; k++)
            values[k] = weft_dtype_get(weft_dtype_find(t->dtype), raw, k);
        return t;
    }
    weft_test_check(false, __FILE__, __LINE__, name);
    return NULL;
}

/* Where element (a, b, c) of ours lies in the file's tensor; NULL: in the same order. */
typedef int64_t (*place)(int64_t a, int64_t b, int64_t c);

static void check_tensor(const weft_stored *stored, const char *name, const char *dims,
                         const char *from, double scale, place where)
{
    static double values[MOST];
    const weft_stored_tensor *t = read_stored(stored, name, dims, values);
    int n_wrong = 0;
    if (!t) return;
    const int64_t n[3] = {t->shape.dims[0].size, t->shape.n_dims > 1 ? t->shape.dims[1].size : 1,
                          t->shape.n_dims > 2 ? t->shape.dims[2].size : 1};
    for (int64_t a = 0; a < n[0]; a++)
        for (int64_t b = 0; b < n[1]; b++)
            for (int64_t c = 0; c < n[2]; c++) {
                const int64_t here = (a * n[1] + b) * n[2] + c;
                n_wrong += values[here] != scale * value_of(from, where ? where(a, b, c) : here);
            }
    weft_test_check(n_wrong == 0, __FILE__, __LINE__, name);
}

/* ---- GPT-2 ----------------------------------------------------------------------------------- */

enum { LAYERS = 2, WIDTH = 24, HEADS = 3, KV = WIDTH / HEADS, SEQ = 12, VOCAB = 256 };
#define OURS "--layers 2 --width 24 --heads 3 --seq 12 "

static const char *prefix; /* of all names in the file */

static const char *named(const char *name, int layer)
{
    static char texts[4][128];
    static int next;
    char *text = texts[next++ % 4];
    if (layer < 0)
        snprintf(text, sizeof texts[0], "%s%s", prefix, name);
    else
        snprintf(text, sizeof texts[0], "%sh.%d.%s", prefix, layer, name);
    return text;
}

static void make_gpt2(const char *type, bool has_head, double attention_bias)
{
    begin_file();
    add_tensor(named("wte.weight", -1), type, SIZES(VOCAB, WIDTH), 1);
    add_tensor(named("wpe.weight", -1), type, SIZES(SEQ, WIDTH), 1);
    for (int l = 0; l < LAYERS; l++) {
        add_tensor(named("attn.bias", l), "BOOL", SIZES(1, 1, SEQ, SEQ), 1);
        add_tensor(named("attn.masked_bias", l), type, 0, NULL, 1);
        add_tensor(named("ln_1.weight", l), type, SIZES(WIDTH), 1);
        add_tensor(named("ln_1.bias", l), type, SIZES(WIDTH), 1);
        add_tensor(named("attn.c_attn.weight", l), type, SIZES(WIDTH, 3 * WIDTH), 1);
        add_tensor(named("attn.c_attn.bias", l), type, SIZES(3 * WIDTH), attention_bias);
        add_tensor(named("attn.c_proj.weight", l), type, SIZES(WIDTH, WIDTH), 1);
        add_tensor(named("attn.c_proj.bias", l), type, SIZES(WIDTH), 0);
        add_tensor(named("ln_2.weight", l), type, SIZES(WIDTH), 1);
        add_tensor(named("ln_2.bias", l), type, SIZES(WIDTH), 1);
        add_tensor(named("mlp.c_fc.weight", l), type, SIZES(WIDTH, 4 * WIDTH), 1);
        add_tensor(named("mlp.c_fc.bias", l), type, SIZES(4 * WIDTH), 1);
        add_tensor(named("mlp.c_proj.weight", l), type, SIZES(4 * WIDTH, WIDTH), 1);
        add_tensor(named("mlp.c_proj.bias", l), type, SIZES(WIDTH), 1);
    }
    add_tensor(named("ln_f.weight", -1), type, SIZES(WIDTH), 1);
    add_tensor(named("ln_f.bias", -1), type, SIZES(WIDTH), 1);
    if (has_head) add_tensor("lm_head.weight", type, SIZES(VOCAB, WIDTH), 1);
    end_file("gpt2.safetensors");
}

static int64_t by_width(int64_t a, int64_t b, int64_t c)
{
    return a * WIDTH + b + c;
}

static int64_t by_hidden(int64_t a, int64_t b, int64_t c)
{
    return a * 4 * WIDTH + b + c;
}

static int64_t turned(int64_t embed, int64_t vocab, int64_t c)
{
    return vocab * WIDTH + embed + c;
}

static int64_t query(int64_t embed, int64_t head, int64_t kv)
{
    return embed * 3 * WIDTH + head * KV + kv;
}

static int64_t key(int64_t embed, int64_t head, int64_t kv)
{
    return query(embed, head, kv) + WIDTH;
}

static int64_t value(int64_t embed, int64_t head, int64_t kv)
{
    return query(embed, head, kv) + 2 * WIDTH;
}

static int64_t project(int64_t head, int64_t kv, int64_t embed)
{
    return (head * KV + kv) * WIDTH + embed;
}

static const struct {
    const char *ours, *dims, *theirs;
    place where;
} of_layer[] = {
    {"norm1.gain", "embed:24", "ln_1.weight", NULL},
    {"norm1.bias", "embed:24", "ln_1.bias", NULL},
    {"query", "embed:24, heads:3, kv:8", "attn.c_attn.weight", query},
    {"key", "embed:24, heads:3, kv:8", "attn.c_attn.weight", key},
    {"value", "embed:24, heads:3, kv:8", "attn.c_attn.weight", value},
    {"project", "heads:3, kv:8, embed:24", "attn.c_proj.weight", project},
    {"norm2.gain", "embed:24", "ln_2.weight", NULL},
    {"norm2.bias", "embed:24", "ln_2.bias", NULL},
    {"up", "embed:24, hidden:96", "mlp.c_fc.weight", by_hidden},
    {"up.bias", "hidden:96", "mlp.c_fc.bias", NULL},
    {"down", "hidden:96, embed:24", "mlp.c_proj.weight", by_width},
    {"down.bias", "embed:24", "mlp.c_proj.bias", NULL},
};
enum { N_OF_LAYER = sizeof of_layer / sizeof *of_layer };

static void check_gpt2(const char *run, const char *head)
{
    char name[64], slot[80];
    weft_stored *stored = open_stored(run);
    if (!stored) return;
    CHECK_EQ_INT(weft_stored_n_tensors(stored), 3 * (5 + LAYERS * N_OF_LAYER));
    check_tensor(stored, "bytes", "vocab:256, embed:24", named("wte.weight", -1), 1, by_width);
    check_tensor(stored, "head", "embed:24, vocab:256", head, 1, turned);
    check_tensor(stored, "places", "seq:12, embed:24", named("wpe.weight", -1), 1, by_width);
    check_tensor(stored, "norm.gain", "embed:24", named("ln_f.weight", -1), 1, NULL);
    check_tensor(stored, "norm.bias", "embed:24", named("ln_f.bias", -1), 1, NULL);
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < N_OF_LAYER; i++) {
            snprintf(name, sizeof name, "block%d.%s", l, of_layer[i].ours);
            check_tensor(stored, name, of_layer[i].dims, named(of_layer[i].theirs, l), 1,
                         of_layer[i].where);
            snprintf(slot, sizeof slot, "%s/v", name);
            check_tensor(stored, slot, of_layer[i].dims, "", 0, NULL);
        }
    }
    weft_stored_close(&stored);
}

static void check_gpt(const char *run, const char *command, const char *said)
{
    char line[LINE];
    snprintf(line, sizeof line,
             "cd %s && timeout -k 1 30 " WEFT_TEST_BIN "/gpt %s --run %s " OURS "2>&1", folder,
             command, run);
    const command_result r = command_run_all(line);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    CHECK_TEXT(r.text, said);
}

/* Of every type, with and without the prefix and a head of its own. */
static void test_gpt2_becomes_our_gpt(void)
{
    static const char *const types[] = {"F32", "F16", "BF16", "F32"};
    for (int i = 0; i < 4; i++) {
        char run[16], line[LINE];
        const bool has_head = i == 2;
        prefix = i % 2 ? "transformer." : "";
        snprintf(run, sizeof run, "gpt2-%d", i);
        make_gpt2(types[i], has_head, 0);
        snprintf(line, sizeof line, "import gpt2.safetensors %s/ckpt --map gpt2 --sizes kv=8", run);
        check_good(line);
        check_gpt2(run, has_head ? "lm_head.weight" : named("wte.weight", -1));
        check_gpt(run, "sample --sample 20", "");
        check_gpt(run, "train --data text.txt --batch 4 --steps 3 --resume auto",
                  "continues from the checkpoint of step 1");
    }
}

/* What our gpt has no place for is not dropped: it is zero, or refused. */
static void test_gpt2_with_biases_in_attention_is_refused(void)
{
    prefix = "";
    make_gpt2("F32", false, 1);
    const command_result *r = run_ckpt("import gpt2.safetensors never --map gpt2 --sizes kv=8");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "h.0.attn.c_attn.bias is not zero");
    CHECK_TEXT(r->text, "our gpt has no biases in attention");
}

/* ---- what a map can say ---------------------------------------------------------------------- */

static void write_map(const char *text)
{
    write_bytes("map.json", "", 0, text, strlen(text));
}

enum { GROUPS = 2, FEW = 4 }; /* heads; of a head */

static int64_t interleaved(int64_t embed, int64_t head, int64_t kv)
{
    return embed +
           3 * ((head * 3 + 1) * FEW + kv); /* the key; the file's is [heads*part*kv, embed] */
}

static int64_t second(int64_t rows, int64_t b, int64_t c)
{
    return (rows + 2) * 3 + b + c;
}

static int64_t third(int64_t rows, int64_t groups, int64_t columns)
{
    return ((2 + 4) + rows * 1 + groups) * 3 + columns;
}

static int64_t backwards(int64_t c, int64_t b, int64_t a)
{
    return (a * 3 + b) * 4 + c;
}

static void test_splits_and_orders(void)
{
    begin_file();
    add_tensor("mixed", "F64", SIZES(GROUPS * 3 * FEW, 3), 1);
    add_tensor("uneven", "F32", SIZES(2 + 4 + 3, 3), 1);
    add_tensor("cube", "F32", SIZES(2, 3, 4), 1);
    add_tensor("numbers", "I64", SIZES(5), 16);
    add_tensor("naturals", "U64", SIZES(2), 16);
    add_tensor("one", "F32", 0, NULL, 1);
    end_file("some.safetensors");
    write_map("{\"sizes\": {\"kv\": 4, \"two\": 2, \"one\": 1}, \"rest\": \"keep\", \"tensors\": ["
              "{\"from\": \"mixed\", \"dims\": [\"heads*part*kv\", \"embed\"],"
              " \"split\": {\"part\": \"\"}, \"order\": [\"embed\", \"heads\", \"kv\"],"
              " \"to\": [\"q\", \"k\", \"v\"]},"
              "{\"from\": \"uneven\", \"dims\": [\"all\", \"columns\"],"
              " \"split\": {\"all\": [\"two\", \"rows\", \"tail*one\"]},"
              " \"to\": [\"first\", \"second\", \"third\"]},"
              "{\"from\": \"cube\", \"dims\": [\"a\", \"b\", \"c\"],"
              " \"order\": [\"c\", \"b\", \"a\"], \"to\": \"turned\"}]}");
    const command_result *r =
        run_ckpt("import some.safetensors general --map map.json --sizes part=3 rows=4");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_TEXT(r->text, "1 of u64");
    weft_stored *stored = open_stored("general");
    if (!stored) return;
    check_tensor(stored, "k", "embed:3, heads:2, kv:4", "mixed", 1, interleaved);
    check_tensor(stored, "second", "rows:4, columns:3", "uneven", 1, second);
    check_tensor(stored, "third", "tail:3, one:1, columns:3", "uneven", 1, third);
    check_tensor(stored, "turned", "c:4, b:3, a:2", "cube", 1, backwards);
    check_tensor(stored, "numbers", "dim0:5", "numbers", 16, NULL);
    CHECK_EQ_INT(weft_stored_n_tensors(stored), 10);
    weft_stored_close(&stored);
}

/* The same of an HDF5 file, whose tensors come one after the other through a pipe. */
static void test_maps_are_for_hdf5_too(void)
{
    if (access(WEFT_TEST_BIN "/weft-read-hdf5", X_OK) != 0) {
        printf("  not tried: weft-read-hdf5 was not built\n");
        return;
    }
    write_map("{\"rest\": \"keep\", \"tensors\": ["
              "{\"from\": \"turned\", \"dims\": [\"c\", \"b\", \"a\"],"
              " \"order\": [\"a\", \"b\", \"c\"], \"to\": \"again\"},"
              "{\"from\": \"q\", \"leave\": \"to see that it can be\"}]}");
    check_good("export general general.h5");
    check_good("import general.h5 from-h5 --map map.json");
    weft_stored *stored = open_stored("from-h5");
    if (!stored) return;
    check_tensor(stored, "again", "a:2, b:3, c:4", "cube", 1, NULL);
    check_tensor(stored, "k", "embed:3, heads:2, kv:4", "mixed", 1, interleaved);
    CHECK_EQ_INT(weft_stored_n_tensors(stored), 9);
    weft_stored_close(&stored);
}

static void test_dims_by_name(void)
{
    begin_file();
    for (int l = 0; l < 3; l++) {
        char name[16];
        snprintf(name, sizeof name, "h.%d.w", l);
        add_tensor(name, "F32", SIZES(2, 6), 1);
    }
    add_tensor("b", "F32", SIZES(6), 1);
    end_file("named.safetensors");
    const command_result *r = run_ckpt("import named.safetensors named");
    CHECK_TEXT(r->text, "4 of them have dims that the file does not name");
    CHECK_TEXT(r->text, "--dims NAME=a,b");
    r = run_ckpt("import --dims 'h.{i}.w=in,heads*kv' b=out --sizes kv=3 named.safetensors named");
    weft_test_check(r->status == 0 && !strstr(r->text, "dim0"), __FILE__, __LINE__, r->text);
    weft_stored *stored = open_stored("named");
    if (!stored) return;
    check_tensor(stored, "h.2.w", "in:2, heads:2, kv:3", "h.2.w", 1, NULL);
    check_tensor(stored, "b", "out:6", "b", 1, NULL);
    weft_stored_close(&stored);
    CHECK_TEXT(run_ckpt("show named")->text, "[in:2, heads:2, kv:3]");
}

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
     {"h.0.mask", "bool", "leave"}},
    {"{\"from\": \"h.{i}.mask\", \"to\": \"mask{i}\"}", "\"rest\": \"keep\",", {"mask", "bool"}},
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
        {"import small.safetensors never", "h.0.mask is of a type that is no number here"},
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

int main(void)
{
    char text[2000], line[LINE];
#ifndef WEFT_HAVE_HDF5
    weft_test_skip("built without HDF5, which checkpoints are written with");
    return weft_test_report();
#endif
    snprintf(folder, sizeof folder, "/tmp/weft-map-XXXXXX");
    if (CHECK(mkdtemp(folder) != NULL)) {
        memset(text, 'a', sizeof text);
        write_bytes("text.txt", "", 0, text, sizeof text);
        RUN(test_every_half_is_exact);
        RUN(test_integers_that_do_not_fit_are_refused);
        RUN(test_gpt2_becomes_our_gpt);
        RUN(test_gpt2_with_biases_in_attention_is_refused);
        RUN(test_splits_and_orders);
        RUN(test_maps_are_for_hdf5_too);
        RUN(test_dims_by_name);
        RUN(test_mistakes_in_a_map);
        RUN(test_mistakes_on_the_command_line);
        json_decref(made.header);
        snprintf(line, sizeof line, "rm -r %s", folder);
        CHECK_EQ_INT(command_run(line).status, 0);
    }
    return weft_test_report();
}
